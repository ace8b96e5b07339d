package group

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// A resizing is a change of the nodes of a group of 4.
type resizingCase struct {
	name        string
	add, remove []string
	was, is     []string // directories of the nodes, by number
}

var resizings = []resizingCase{
	{"add one", []string{"/n4"}, nil, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n0", "/n1", "/n2", "/n3", "/n4"}},
	{"add two", []string{"/n5", "/n4"}, nil, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n0", "/n1", "/n2", "/n3", "/n5", "/n4"}},
	{"remove one", nil, []string{"/n1"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n0", "/n3", "/n2"}},
	{"remove the last one, by number", nil, []string{"3"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n0", "/n1", "/n2"}},
	{"add two, remove one", []string{"/n4", "/n5"}, []string{"/n0"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n4", "/n1", "/n2", "/n3", "/n5"}},
	{"add one, remove two", []string{"/n4"}, []string{"/n0", "/n2"}, []string{"/n0", "/n1", "/n2", "/n3"}, []string{"/n3", "/n1", "/n4"}},
}

// world returns nodes of which the first 4 are protected.
func (x *resizingCase) world(t testing.TB) *world {
	w := newWorld(6, 1)
	must(t, w.of(x.was).protect())
	return w
}

// of returns a group of other nodes on the same machine.
func (w *world) of(dirs []string) *world {
	x := *w
	x.dirs, x.ranks = dirs, 1
	return &x
}

// run resizes, with a rank for each node or with one.
func (x *resizingCase) run(w *world, p *disktest.Process, each bool, o ResizeOptions) (*ResizeReport, error) {
	y := w.of(slices.Concat(x.was, x.add))
	o.Add, o.Remove = x.add, x.remove
	if each {
		var ids []protection.Identity
		var added []bool
		for _, dir := range y.dirs {
			ids, added = append(ids, store.Identify(p, dir)), append(added, slices.Contains(o.Add, dir))
		}
		order, err := Resized(y.dirs, ids, added, o.Remove)
		if err != nil {
			return nil, err
		}
		given := y.dirs
		y.dirs, y.ranks = nil, len(order)
		for _, i := range order {
			y.dirs = append(y.dirs, given[i])
		}
	}
	return overRanks(y, p, func(ctx context.Context, g *Group) (*ResizeReport, error) { return g.Resize(ctx, o) })
}

// inForce returns an error unless the nodes are protected, and come back when any one of them is lost.
func (x *resizingCase) inForce(w *world, dirs, before []string, rng *rand.Rand) error {
	c := w.of(dirs).clone()
	r, err := c.verifyBy(c.Process())
	if err != nil {
		return err
	}
	if !r.Protected || len(r.Nodes) != len(dirs) || r.Tolerate != 1 {
		return fmt.Errorf("%+v", r)
	}
	n := rng.IntN(len(dirs))
	c.lose(rng.IntN(2), n)
	if err := c.recover(); err != nil {
		return fmt.Errorf("%s is lost: %w", dirs[n], err)
	}
	all := c.of([]string{"/n0", "/n1", "/n2", "/n3", "/n4", "/n5"})
	if trees := all.trees(); !slices.Equal(trees, before) {
		return fmt.Errorf("%s is lost: files are others: %w", dirs[n], diff("all", strings.Join(before, ""), strings.Join(trees, "")))
	}
	if err := c.protect(); err != nil { // a run may follow with these nodes
		return err
	}
	return c.whole()
}

// done returns an error unless the resized group is whole, and nothing is left at nodes that were removed.
func (x *resizingCase) done(w *world, before []string, generation int64) error {
	c := w.of(x.is)
	if err := c.whole(); err != nil {
		return err
	}
	seen := map[int]bool{} // a disk that failed for a moment may have another number
	for _, dir := range c.dirs {
		id := store.Identify(c.Process(), dir)
		if seen[id.Node] || id.Node >= len(x.is) || id.Nodes != len(x.is) || id.Next != (protection.Place{}) {
			return fmt.Errorf("%s is %+v", dir, id)
		}
		seen[id.Node] = true
	}
	if err := c.tidy(generation); err != nil {
		return err
	}
	if all := w.of([]string{"/n0", "/n1", "/n2", "/n3", "/n4", "/n5"}); !slices.Equal(all.trees(), before) {
		return fmt.Errorf("files are others")
	}
	var gone []string
	for _, dir := range x.was {
		if !slices.Contains(x.is, dir) {
			gone = append(gone, dir)
		}
	}
	return w.of(gone).bare()
}

// TestResize adds and removes nodes, and does so once more, which changes nothing: the reports say so. See [resizingCase.committer].
func TestResize(t *testing.T) {
	t.Parallel()
	for i, x := range resizings {
		w := x.world(t)
		before := w.trees()
		r, err := x.run(w, w.Process(), i%2 == 0, ResizeOptions{})
		must(t, err)
		if r.Nodes != len(x.is) || r.NodesBefore != 4 || r.Tolerate != 1 || r.Generation != 2 || !slices.Equal(r.Dirs, x.is) || len(r.Removed) != len(x.remove) || len(r.Added) != len(x.add) {
			t.Errorf("%s: %+v, %+v", x.name, r, r.ProtectReport)
		}
		r, err = x.run(w, w.Process(), i%2 == 0, ResizeOptions{})
		must(t, err, x.done(w, before, 3))
		if r.NodesBefore != len(x.is) || r.Added != nil {
			t.Errorf("%s, once more: %+v", x.name, r)
		}
		for _, dir := range x.add {
			if !slices.Contains(r.Notes, dir+" is a node of the group already, and is not added") {
				t.Errorf("%s, once more: %q", x.name, r.Notes)
			}
		}
	}
}

// TestResizeRefused has groups that cannot be resized as they are.
func TestResizeRefused(t *testing.T) {
	t.Parallel()
	one := []string{"/n4"}
	for _, y := range []struct {
		name, want  string
		add, remove []string
		do          func(w *world)
		o           ResizeOptions
		forced      bool
	}{
		{name: "nothing", want: "a group of 4 nodes, and 0 are added and 0 removed"},
		{name: "as many", want: "To move a node, recover into an empty directory", add: one, remove: []string{"2"}},
		{name: "one is left", want: "2 or more", remove: []string{"0", "1", "2"}},
		{name: "no node", want: `"/x" is to be removed, and is no node of the group`, remove: []string{"/x"}},
		{name: "no number", want: `"4" is to be removed, and is no node of the group`, remove: []string{"4"}},
		{name: "twice", want: `"/n1" is to be removed, and is no node of the group, or named twice`, remove: []string{"1", "/n1"}},
		{name: "a new one", want: `"/n4" is to be removed, and is no node of the group`, add: []string{"/n4", "/n5"}, remove: one},
		{name: "a node of it", want: "/n1 and /n1 are the same directory", add: []string{"/n1"}},
		{name: "no directory", want: "/none: no such directory", add: []string{"/none"}},
		{name: "another group's", want: "/n4 is protected in another group", add: one, do: func(w *world) { must(t, w.of([]string{"/n4", "/n5"}).protect()) }},
		{name: "no protection", want: "the group is not protected", add: one, do: func(w *world) {
			for _, dir := range w.dirs[:4] {
				w.RemoveAll(dir + "/.volley")
			}
		}},
		{name: "a lost node that stays", want: "/n2 is missing what was protected: recover it first", add: one, do: func(w *world) { w.lose(0, 2) }, forced: true},
		{name: "a directory that is missing", want: "/n2 is missing, with what was protected: recover it first", add: one, do: func(w *world) { w.RemoveAll("/n2") }},
		{name: "a lost node that leaves", want: "/n2 is missing what was protected: recover it first", remove: []string{"/n2"}, do: func(w *world) { w.lose(0, 2) }, forced: true},
		{name: "a record", want: "/n1 is missing what was protected", remove: []string{"0"}, do: func(w *world) { w.Remove("/n1/.volley/generation.1/record") }, forced: true},
		{name: "a name", want: "/n1 is missing what was protected", remove: []string{"0"}, do: func(w *world) {
			w.Remove("/n1/.volley/generation.1/node.json")
			w.Remove("/n1/.volley/generation.1/record")
		}, forced: true},
		{name: "rot at a node that leaves", want: "/n0 is damaged: /n0/big: recover it first", remove: []string{"0"}, do: func(w *world) { w.Overwrite("/n0/big", 5, []byte("rot"), true) }, forced: true},
		{name: "rot at a node that stays", want: "/n1/big", remove: []string{"0"}, do: func(w *world) { w.Overwrite("/n1/big", 5, []byte("rot"), true) }, forced: true},
		{name: "too many to lose", want: "5", add: one, o: ResizeOptions{ProtectOptions: ProtectOptions{Tolerate: 5}}},
		{name: "snapshots", want: "snapshots are not resized", add: one, o: ResizeOptions{ProtectOptions: ProtectOptions{Retain: 1}}},
	} {
		x := resizingCase{was: []string{"/n0", "/n1", "/n2", "/n3"}, add: y.add, remove: y.remove}
		w := x.world(t)
		if y.do != nil {
			y.do(w)
		}
		before := w.everything()
		if _, err := x.run(w, w.Process(), false, y.o); err == nil || !strings.Contains(err.Error(), y.want) || !IsInputError(err) {
			t.Errorf("%s: %v, want %q", y.name, err, y.want)
		}
		if w.everything() != before {
			t.Errorf("%s: something has changed", y.name)
		}
		trees := w.trees()
		y.o.Force = true
		if _, err := x.run(w, w.Process(), false, y.o); (err == nil) != y.forced || !slices.Equal(w.trees(), trees) {
			t.Errorf("%s: forced: %v", y.name, err)
		}
	}
}

// TestResizeRemains removes nodes that are there, lost, and not to be read: the report tells them apart.
func TestResizeRemains(t *testing.T) {
	t.Parallel()
	x := resizingCase{was: []string{"/n0", "/n1", "/n2", "/n3", "/n4", "/n5"}, remove: []string{"/n1", "2", "/n3"}}
	w := newWorld(6, 2)
	must(t, w.protect())
	w.RemoveAll("/n1")
	w.Deny("/n2/.volley", syscall.EIO)
	r, err := x.run(w, w.Process(), false, ResizeOptions{ProtectOptions: ProtectOptions{Force: true}})
	must(t, err)
	if !slices.Equal(r.Removed, []string{"/n1", "/n2", "/n3"}) || !slices.Equal(r.Lost, []string{"/n1"}) || !slices.Equal(r.Remains, []string{"/n2"}) {
		t.Errorf("%+v", r)
	}
}

// TestResizeAfterwards gives a resized group as it was, and resizes it back. A dry run changes nothing, and a key is as it was.
func TestResizeAfterwards(t *testing.T) {
	t.Parallel()
	x := resizings[2] // which removes /n1
	w := x.world(t)
	before := w.trees()
	dry, err := x.run(w, w.Process(), false, ResizeOptions{ProtectOptions: ProtectOptions{DryRun: true}})
	if err != nil || dry.Nodes != 3 || !slices.Equal(w.trees(), before) {
		t.Fatalf("%+v, %v", dry, err)
	}
	must(t, w.of(x.was).whole())
	_, err = x.run(w, w.Process(), false, ResizeOptions{ProtectOptions: ProtectOptions{Tolerate: 2}})
	must(t, err)
	for _, dirs := range [][]string{x.was, {"/n0", "/n2"}} {
		y := w.of(dirs)
		if _, err := y.verifyBy(y.Process()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("it has 3 nodes now, and %d were given. Give those of all of them: /n0, /n3, /n2", len(dirs))) {
			t.Errorf("%v: %v", dirs, err)
		}
	}
	back := resizingCase{add: []string{"/n1"}, was: x.is, is: []string{"/n0", "/n3", "/n2", "/n1"}}
	r, err := back.run(w, w.Process(), true, ResizeOptions{})
	if err != nil || r.Tolerate != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	must(t, back.done(w, before, 3))
	w = newWorld(6, 1)
	key := keyed([]byte("a key of 16 bytes and more"))
	must(t, verbs["protect"](w.of(x.was), key))
	if _, err = x.run(w, w.Process(), false, ResizeOptions{}); err == nil || !strings.Contains(err.Error(), "protected with a key") {
		t.Error(err)
	}
	_, err = x.run(w.with(key), w.Process(), false, ResizeOptions{})
	must(t, err, verbs["verify"](w.of(x.is), key))
}
