package group

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/protection"
)

// TestDeleted tells what users have deleted from what a disk has lost, by the time of the directory: recover brings back
// what is lost, and what was deleted where it is asked to. Where more than half of a node's files are gone they are lost.
func TestDeleted(t *testing.T) {
	t.Parallel()
	gone := func(list ...string) func(w *world) {
		return func(w *world) {
			for _, name := range list {
				w.RemoveAll("/n1/" + name)
			}
		}
	}
	for _, x := range []struct {
		name    string
		do      func(w *world)
		status  string
		what    string   // of what is gone
		deleted []string // what recover leaves
	}{
		{"a file", gone("sub/deep/y"), Changed, Deleted, []string{"sub/deep/y"}},
		{"a directory", gone("sub"), Changed, Deleted, []string{"sub", "sub/deep", "sub/deep/y", "sub/void", "sub/x"}},
		{"one name of two", gone("twin"), Changed, Deleted, []string{"twin"}},
		{"the disk has lost a file", func(w *world) { w.Lose("/n1/sub/deep/y") }, Damaged, Missing, nil},
		{"more than half", gone("plain", "big", "sub", "twin", "empty"), Damaged, Missing, nil},
	} {
		w := newWorld(4, 2)
		w.deletes = true
		must(t, w.protect())
		was := w.tree(1)
		other := w.tree(2)
		w.Wait(1e9)
		x.do(w)
		is := w.tree(1)
		for _, glance := range []bool{true, false} {
			v, err := w.examineBy(w.Process(), glance)
			must(t, err)
			if v.Nodes[1].Status != x.status || !slices.ContainsFunc(v.Nodes[1].Findings, func(f protection.Finding) bool { return f.Kind == x.what }) || v.Intact {
				t.Errorf("%s: glance %v: %+v", x.name, glance, v.Nodes[1])
			}
		}
		w.RemoveAll("/n2") // comes back nevertheless
		r, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		var left []string
		for _, p := range r.Deleted {
			left = append(left, string(p[len("/n1/"):]))
		}
		want := is
		if x.deleted == nil {
			want = was
		}
		if wrong := diff("node 1", want, w.tree(1)); wrong != nil || !slices.Equal(left, x.deleted) {
			t.Errorf("%s: left %v: %v", x.name, left, wrong)
		}
		if wrong := diff("node 2", other, w.tree(2)); wrong != nil || r.Incomplete() != nil {
			t.Errorf("%s: %v, %v", x.name, wrong, r.Incomplete())
		}
		w.deletes = false
		if _, err = w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}}); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if is := w.tree(1); !hasAll(lines(was), lines(is), false) { // a directory that users have written in keeps its time
			t.Errorf("%s: with what was deleted: %v", x.name, diff("node 1", was, is))
		}
	}
}

// TestLostAhead has a disk lose a file, or a recovery not bring one back: protect refuses to make that final. What users have
// deleted stays so when recover brings something else back in the same directory.
func TestLostAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	w.deletes = true
	must(t, w.protect())
	w.Wait(1e9)
	w.Lose("/n1/sub/x")
	input := new(protection.RefusedError)
	if err := w.protect(); !errors.As(err, &input) || input.Option != protection.OptionForce || !strings.Contains(err.Error(), "/n1/sub/x") {
		t.Errorf("%v", err)
	}
	must(t, w.recover())
	must(t, w.protect())

	w.RemoveAll("/n1")
	w.Deny("/n1/plain", syscall.EACCES, "rename", "link")
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	if err != nil || r.Incomplete() == nil {
		t.Errorf("%+v, %v", r, err)
	}
	w.Lift("/n1/plain")
	if err := w.protect(); !errors.As(err, &input) || !strings.Contains(err.Error(), "/n1/plain") {
		t.Errorf("a file that recover could not bring back: %v", err)
	}
	must(t, w.recover())
	must(t, w.whole())

	w.Wait(1e9)
	must(t, w.protect())
	w.Remove("/n1/plain")
	w.Overwrite("/n1/big", 3, []byte("rot"), true)
	r, err = w.recoverBy(w.Process(), RecoverOptions{})
	if err != nil || r.Files != 1 || len(r.Deleted) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, w.protect())
	if _, err := w.Lstat("/n1/plain"); err == nil {
		t.Error("what users have deleted is there again")
	}
}
