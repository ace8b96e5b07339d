package group

import (
	"errors"
	"syscall"
	"testing"

	"volley/group/protection"
)

// TestNone recovers where nothing was ever protected, and where something is there that cannot be used or read: only the
// first is a NoneError, whose exit code is its own.
func TestNone(t *testing.T) {
	t.Parallel()
	none := func(err error) bool {
		e := new(protection.NoneError)
		return errors.As(err, &e) && e.ExitCode() == 5 && IsInputError(err)
	}
	for _, x := range []struct {
		name string
		do   func(w *world)
		want bool
	}{
		{"never protected", func(*world) {}, true},
		{"nothing is left", func(w *world) { must(t, w.protect()); w.lose(0, 0, 1, 2) }, true},
		{"a node cannot be read", func(w *world) { w.Deny("/n1", syscall.EIO) }, false},
		{"no manifest is good", func(w *world) { must(t, w.protect()); w.spoil(3, true, "generation.1", "manifest.json") }, false},
	} {
		w := newWorld(3, 1)
		x.do(w)
		if err := w.recover(); err == nil || none(err) != x.want {
			t.Errorf("%s: %v: want none: %v", x.name, err, x.want)
		}
	}
	for _, x := range []struct {
		states []Snapshot
		want   bool
	}{
		{nil, true},
		{[]Snapshot{{Step: 1, State: Unprotected}, {State: Incomplete}}, true},
		{[]Snapshot{{Step: 2, State: Unprotected}, {Step: 1, State: Incomplete, Nodes: 3}}, false},
	} {
		if _, err := choose(x.states, true); err == nil || none(err) != x.want {
			t.Errorf("%+v: %v: want none: %v", x.states, err, x.want)
		}
	}
}
