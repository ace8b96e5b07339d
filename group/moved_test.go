package group

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"volley/group/protection"
)

// TestMoved moves files within a node while another node is lost. What a node holds under any name serves to restore
// others: all comes back of which no more than R nodes lack the bytes. Recover brings no old name back, but to revert.
func TestMoved(t *testing.T) {
	t.Parallel()
	start := newWorld(3, 1)
	rng := rand.New(rand.NewPCG(8, 8))
	for _, p := range []string{"x", "y", "d/a", "d/in/b"} {
		start.MkdirAll("/n0/d/in/void", 0o755)
		start.WriteFile("/n0/"+p, random(rng, 50_000), 0o644)
	}
	start.WriteFile("/n0/d/none", nil, 0o644)
	start.Symlink("a", "/n0/d/link")
	start.Link("/n0/d/a", "/n0/d/more")
	start.WriteFile("/n0/same1", []byte("same"), 0o644)
	start.WriteFile("/n0/same2", []byte("same"), 0o644)
	start.SetTime("/n0/same1", time.Unix(1_600_000_000, 0))
	start.SetTime("/n0/same2", time.Unix(1_600_000_000, 0))
	start.Wait(time.Hour)
	must(t, start.protect())
	start.Wait(time.Hour)
	was := start.trees()
	mv := func(from, to string) func(w *world) {
		return func(w *world) { w.Rename("/n0/"+from, "/n0/"+to) }
	}
	all := func(list ...func(*world)) func(*world) {
		return func(w *world) {
			for _, do := range list {
				do(w)
			}
		}
	}
	write := func(p string, size int) func(w *world) {
		return func(w *world) { w.WriteFile("/n0/"+p, random(rng, size), 0o644) }
	}
	cp := func(from, to string) func(w *world) {
		return func(w *world) { w.CopyTree("/n0/"+from, "/n0/"+to) }
	}
	rm := func(p string) func(w *world) { return func(w *world) { w.RemoveAll("/n0/" + p) } }
	mkdir := func(p string) func(w *world) { return func(w *world) { w.MkdirAll("/n0/"+p, 0o755) } }
	rot := func(p string) func(w *world) {
		return func(w *world) { w.Overwrite("/n0/"+p, 7, []byte("rot"), true) }
	}
	directory := "d moved e, d/a moved e/a, d/in moved e/in, d/in/b moved e/in/b, d/in/void moved e/in/void, " +
		"d/link moved e/link, d/more moved e/more, d/none moved e/none"
	for _, x := range []struct {
		name  string
		do    func(*world)
		finds string // by verify
		lacks bool   // bytes of its own
	}{
		{"renamed", mv("x", "z"), "x moved z", false},
		{"swapped", all(mv("x", "t"), mv("y", "x"), mv("t", "y")), "x moved y, y moved x", false},
		{"a new file in its place", all(mv("x", "x.1"), write("x", 900)), "x moved x.1, x new", false},
		{"a directory in its place", all(mv("x", "t"), mkdir("x"), mv("t", "x/x")), "x moved x/x, x new", false},
		{"edited then", all(mv("x", "z"), func(w *world) { w.Overwrite("/n0/z", 3, []byte("edit"), false) }), "x deleted, z new", true},
		{"rotten then", all(mv("x", "z"), rot("z")), "x missing, z new", true},
		{"copied, and gone", all(cp("x", "z"), cp("x", "w"), rm("x")), "x moved w, z new", false},
		{"copied, and rotten", all(cp("x", "z"), rot("x")), "x damaged, z new", false},
		{"onto another", mv("x", "y"), "x moved y, y changed", true},
		{"a chain", all(mv("y", "z"), mv("x", "y")), "x moved y, y moved z", false},
		{"a directory", mv("d", "e"), directory, false},
		{"a directory, but for a file", all(mv("d", "e"), rm("e/in/b")), "d deleted, d/a moved e/a, d/in deleted, d/in/b deleted, " +
			"d/in/void deleted, d/link moved e/link, d/more moved e/more, d/none moved e/none, e new, e/in new, e/in/void new", true},
		{"scattered", all(mv("d/in/b", "p"), mv("d/in/void", "v"), rm("d/in")), "d/in deleted, d/in/b moved p, d/in/void deleted, v new", false},
		{"one of its names", mv("d/more", "d/less"), "d/more moved d/less", false},
		{"all its names", all(mv("d/a", "d/p"), mv("d/more", "d/q")), "d/a moved d/p, d/more moved d/q", false},
		{"all its names, to one", all(mv("d/a", "p"), rm("d/more")), "d/a moved p, d/more deleted", false},
		{"two of the same, to one", all(mv("same1", "s"), rm("same2")), "same1 moved s, same2 deleted", false},
	} {
		for _, lost := range []bool{false, true} {
			w := start.clone()
			x.do(w)
			if x.lacks && lost {
				continue
			}
			what := fmt.Sprintf("%s, lost %v", x.name, lost)
			v, err := w.verifyBy(w.Process())
			must(t, err)
			if is := listed(v.Nodes[0].Findings); is != x.finds {
				t.Errorf("%s: found\n%s\nwant\n%s", what, is, x.finds)
			}
			before := w.tree(0)
			if lost {
				w.lose(0, 1)
			}
			reverted := w.clone()
			r, err := w.recoverBy(w.Process(), RecoverOptions{})
			must(t, err)
			if r.Unrecovered != nil {
				t.Errorf("%s: %q", what, r.Unrecovered)
			}
			if v.Nodes[0].Status == Intact {
				must(t, diff(what+": the node", before, w.tree(0)))
			}
			must(t, diff(what+": the lost node", was[1], w.tree(1)))
			if !x.lacks {
				must(t, w.protect(), w.whole())
			}

			r, err = reverted.recoverBy(reverted.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
			must(t, err)
			if x.name == "a directory in its place" { // nothing takes that away
				continue
			}
			is := lines(reverted.tree(0))
			for name, line := range lines(was[0]) {
				now, _, _ := strings.Cut(is[name], " = ")
				if then, _, _ := strings.Cut(line, " = "); line[0] == '-' && now != then {
					t.Errorf("%s: reverted: %s is %s, was %s: %q", what, name, now, then, r.Unrecovered)
				}
			}
			must(t, diff(what+": the lost node, reverted", was[1], reverted.tree(1)))
		}
	}
}

// listed lists findings.
func listed(list []protection.Finding) (text string) {
	for _, f := range list {
		if text != "" {
			text += ", "
		}
		text += string(f.Path) + " " + f.Kind
		if f.Target != "" {
			text += " " + string(f.Target)
		}
	}
	return text
}
