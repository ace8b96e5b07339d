package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/internal/disk/disktest"
)

func (w *world) unprotectBy(p *disktest.Process, o UnprotectOptions) (*UnprotectReport, error) {
	return overRanks(w, p, func(ctx context.Context, g *Group) (*UnprotectReport, error) { return g.Unprotect(ctx, o) })
}

// bare returns an error where anything of Volley's is left but a lock.
func (w *world) bare() error {
	for n, dir := range w.dirs {
		if own := w.meta(n); own != nil {
			return fmt.Errorf("%s has %s", dir, strings.Join(own, ", "))
		}
	}
	return nil
}

// TestUnprotectRefused has groups that lose something with their protection.
func TestUnprotectRefused(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, want string
		do         func(w *world)
		forced     bool
	}{
		{"a lost node", "/n1 is lost: recover it first", func(w *world) { w.lose(0, 1) }, true},
		{"a missing file", "missing: /n1/plain", func(w *world) { w.Lose("/n1/plain") }, true},
		{"rot", "damaged: /n2/big", func(w *world) { w.Overwrite("/n2/big", 5, []byte("rot"), true) }, true},
		{"a stale node", "/n1 is stale: /n1/", func(w *world) {
			w.CopyTree("/n1", "/old")
			w.Overwrite("/n1/big", 5, []byte("new"), false)
			if err := w.protect(); err != nil {
				panic(err)
			}
			w.RemoveAll("/n1")
			w.Rename("/old", "/n1")
		}, true},
		{"replaced files", "/n1/.volley/replaced has files", func(w *world) {
			w.MkdirAll("/n1/.volley/replaced/1", 0o700)
			w.WriteFile("/n1/.volley/replaced/1/plain", []byte("mine"), 0o600)
		}, false},
		{"no nodes", "all nodes are lost", func(w *world) { w.lose(1, 0, 2); w.lose(0, 1, 3) }, false},
		{"damaged manifests", "cannot tell whether generation 1 is in force", func(w *world) {
			for n := range w.dirs {
				w.WriteFile(w.dirs[n]+"/"+manifestPath(1), []byte("{}"), 0o600)
			}
		}, false},
		{"a disk that was not there", "cannot tell which generation is in force", func(w *world) {
			w.Rename("/n1", "/away")
			w.MkdirAll("/n1", 0o700)
			if _, err := w.unprotectBy(w.Process(), UnprotectOptions{Force: true}); err != nil {
				panic(err)
			}
			w.Remove("/n1")
			w.Rename("/away", "/n1")
		}, true},
		{"a mark at one node", "/n1 is lost", func(w *world) {
			w.WriteFile("/n0/.volley/"+store.EndingName, nil, 0o600)
			w.lose(0, 1)
		}, true},
	} {
		w := newWorld(4, 2)
		must(t, w.protect())
		x.do(w)
		before := w.everything()
		if _, err := w.unprotectBy(w.Process(), UnprotectOptions{}); err == nil || !strings.Contains(err.Error(), x.want) || !IsInputError(err) {
			t.Errorf("%s: %v", x.name, err)
		}
		if w.everything() != before {
			t.Errorf("%s: something has changed", x.name)
		}
		trees := w.trees()
		_, err := w.unprotectBy(w.Process(), UnprotectOptions{Force: true})
		if (err == nil) != x.forced || !slices.Equal(w.trees(), trees) || x.forced && w.bare() != nil {
			t.Errorf("%s: forced: %v, %v", x.name, err, w.bare())
		}
	}
	w := newWorld(4, 2)
	must(t, w.protect())
	w.WriteFile("/n1/plain", []byte("mine now"), 0o600) // which nobody loses
	before := w.everything()
	r, err := w.unprotectBy(w.Process(), UnprotectOptions{DryRun: true})
	if err != nil || r.Generation != 1 || r.ParityBytes == 0 || w.everything() != before {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestUnprotectRemains ends protections beside nodes that cannot be read. They are named, and what they have counts no more
// once they are back, unless they are as many as the others.
func TestUnprotectRemains(t *testing.T) {
	t.Parallel()
	for _, k := range []int{2, 4} {
		w := newWorld(k, k/2)
		must(t, w.protect())
		before := w.trees()
		w.Deny("/n1/.volley", syscall.EIO)
		for range 2 { // which ends in the same place
			_, err := w.unprotectBy(w.Process(), UnprotectOptions{Force: true})
			remains := new(RemainsError)
			if !errors.As(err, &remains) || !slices.Equal(remains.Dirs, []string{"/n1"}) || !strings.Contains(err.Error(), "remove /n1/.volley") {
				t.Fatalf("%d nodes: %v", k, err)
			}
		}
		if err := w.protect(); err == nil || !strings.Contains(err.Error(), "/n1 cannot be read") {
			t.Errorf("%d nodes: protect: %v", k, err)
		}
		w.Lift("/n1/.volley")
		c := w.clone()
		switch err := c.protect(); {
		case k == 2 && (err == nil || !strings.Contains(err.Error(), "cannot tell")): // who lies nobody knows
			t.Errorf("%d nodes: protect: %v", k, err)
		case k > 2:
			must(t, err, c.tidy(2), c.whole())
		}
		c = w.clone()
		if r, err := c.verifyBy(c.Process()); k > 2 && (err != nil || r.Protected) {
			t.Errorf("%d nodes: verify: %+v, %v", k, r, err)
		}
		c = w.clone()
		c.RemoveAll("/n1/.volley")
		must(t, c.clone().protect())
		for _, y := range []*world{c, w} {
			if _, err := y.unprotectBy(y.Process(), UnprotectOptions{Force: k == 2}); err != nil {
				t.Errorf("%d nodes: %v", k, err)
			}
			must(t, y.bare())
			if !slices.Equal(y.trees(), before) {
				t.Errorf("%d nodes: files are others", k)
			}
		}
		r, err := w.unprotectBy(w.Process(), UnprotectOptions{})
		if err != nil || r.Protected || r.Notes != nil {
			t.Errorf("%d nodes: once more: %+v, %v", k, r, err)
		}
	}
}

// TestMarkLies has a mark made up, at one node, or for another group than a node is of: it ends no protection.
func TestMarkLies(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	must(t, w.protect())
	mark := func(group string, nodes ...int) *world {
		c := w.clone()
		for _, n := range nodes {
			c.RemoveAll(c.dirs[n] + "/.volley")
			c.MkdirAll(c.dirs[n]+"/.volley", 0o700)
			c.WriteFile(c.dirs[n]+"/.volley/"+store.EndingName, []byte(group), 0o600)
		}
		return c
	}
	text, err := w.ReadFile("/n0/" + manifestPath(1))
	must(t, err)
	m, err := store.DecodeManifest(text)
	must(t, err)
	for _, c := range []*world{mark(m.Group, 1), mark(m.Group, 1, 2)} {
		must(t, c.recover(), c.whole())
	}
	c := mark("another", 1, 2, 3)
	if err := c.protect(); err == nil || !strings.Contains(err.Error(), "cannot tell") {
		t.Errorf("%v", err)
	}
}
