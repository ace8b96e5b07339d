package groupfile

import (
	"slices"
	"testing"

	"volley/internal/fuzzlimit"
)

// FuzzGroupFile reads what somebody has written: what comes out are two directories or more, and flags that there are.
func FuzzGroupFile(f *testing.F) {
	f.Add("tolerate: 2\nexclude: ['*.o', b]\nmembers:\n- dir: a:/b\n  domain: c\n- {dir: d, domain: e}")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzlimit.Hold(t, len(text))()
		g, err := parse("/", []byte(text))
		if err != nil {
			return
		}
		if len(g.Dirs) < 2 || g.Domains != nil && len(g.Domains) != len(g.Dirs) || slices.Contains(g.Dirs, "") {
			t.Errorf("%+v", g)
		}
		for key, values := range g.Flags {
			if !slices.Contains(Keys, key) || slices.Contains(values, "") {
				t.Errorf("%s: %q", key, values)
			}
		}
	})
}
