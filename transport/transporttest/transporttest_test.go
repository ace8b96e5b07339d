package transporttest

import (
	"context"
	"slices"
	"testing"
	"time"

	"volley/internal/faulty"
	"volley/transport"
	"volley/transport/local"
)

// TestBrokenTransports has the suite refuse transports that break a promise.
func TestBrokenTransports(t *testing.T) {
	t.Parallel()
	for how, broken := range map[string]struct {
		fault   faulty.Fault
		noticed string
	}{
		"loses a message":        {faulty.Drop(faulty.Nth(0)), "every rank hears every other"},
		"sends a message twice":  {faulty.Duplicate(faulty.Nth(1)), "order within a tag"},
		"flips a bit":            {faulty.Flip(faulty.EverySend, 0, 1<<20, 7), "parts of all sizes"},
		"cuts long messages off": {faulty.Truncate(faulty.EverySend, 1<<16), "parts of all sizes"},
		"ends":                   {faulty.Hang(1000), "abort ends waits under way"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cases := Cases()
			c := cases[slices.IndexFunc(cases, func(c Case) bool { return c.Name == broken.noticed })]
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			var group []transport.Transport
			for _, e := range local.New(2) {
				group = append(group, faulty.New(e, broken.fault))
			}
			if wrong := runGroup(ctx, c, group); wrong == nil {
				t.Errorf("%q did not notice", broken.noticed)
			}
		})
	}
}
