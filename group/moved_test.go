package group

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"volley/group/protection"
)

const movedDir = "d moved e, d/a moved e/a, d/in moved e/in, d/in/b moved e/in/b, d/in/void moved e/in/void, " +
	"d/link moved e/link, d/more moved e/more, d/none moved e/none"

// moves are what users do at node 0, and what verify finds then.
var moves = []struct {
	name, script, finds string
	lacks               bool // bytes of its own
}{
	{"renamed", "mv x z", "x moved z", false},
	{"swapped", "mv x t; mv y x; mv t y", "x moved y, y moved x", false},
	{"a new file in its place", "mv x x.1; write x", "x moved x.1, x new", false},
	{"a directory in its place", "mv x t; mkdir x; mv t x/x", "x moved x/x, x new", false},
	{"edited then", "mv x z; edit z", "x deleted, z new", true},
	{"rotten then", "mv x z; rot z", "x missing, z new", true},
	{"copied, and gone", "cp x z; cp x w; rm x", "x moved w, z new", false},
	{"copied, and rotten", "cp x z; rot x", "x damaged, z new", false},
	{"onto another", "mv x y", "x moved y, y changed", true},
	{"a chain", "mv y z; mv x y", "x moved y, y moved z", false},
	{"a directory", "mv d e", movedDir, false},
	{"a directory, but for a file", "mv d e; rm e/in/b", "d deleted, d/a moved e/a, d/in deleted, d/in/b deleted, " +
		"d/in/void deleted, d/link moved e/link, d/more moved e/more, d/none moved e/none, e new, e/in new, e/in/void new", true},
	{"scattered", "mv d/in/b p; mv d/in/void v; rm d/in", "d/in deleted, d/in/b moved p, d/in/void deleted, v new", false},
	{"one of its names", "mv d/more d/less", "d/more moved d/less", false},
	{"all its names", "mv d/a d/p; mv d/more d/q", "d/a moved d/p, d/more moved d/q", false},
	{"all its names, to one", "mv d/a p; rm d/more", "d/a moved p, d/more deleted", false},
	{"two of the same, to one", "mv same1 s; rm same2", "same1 moved s, same2 deleted", false},
}

// do does at node 0 what a script says.
func (w *world) do(script string) {
	for command := range strings.SplitSeq(script, "; ") {
		words := append(strings.Fields(command), "")
		path, other := "/n0/"+words[1], "/n0/"+words[2]
		switch words[0] {
		case "mv":
			w.Rename(path, other)
		case "cp":
			w.CopyTree(path, other)
		case "rm":
			w.RemoveAll(path)
		case "mkdir":
			w.MkdirAll(path, 0o755)
		case "write":
			w.WriteFile(path, []byte("new"), 0o644)
		case "edit":
			w.Overwrite(path, 3, []byte("edit"), false)
		case "rot":
			w.Overwrite(path, 7, []byte("rot"), true)
		}
	}
}

// TestMoved moves files within a node while another node is lost. What a node holds under any name serves to restore
// others: all comes back of which no more than R nodes lack the bytes. Recover brings no old name back, but to revert.
func TestMoved(t *testing.T) {
	t.Parallel()
	start := newWorld(3, 1)
	rng := rand.New(rand.NewPCG(8, 8))
	start.MkdirAll("/n0/d/in/void", 0o755)
	for _, p := range []string{"x", "y", "d/a", "d/in/b"} {
		start.WriteFile("/n0/"+p, random(rng, 50_000), 0o644)
	}
	start.WriteFile("/n0/d/none", nil, 0o644)
	start.Symlink("a", "/n0/d/link")
	start.Link("/n0/d/a", "/n0/d/more")
	for _, p := range []string{"/n0/same1", "/n0/same2"} {
		start.WriteFile(p, []byte("same"), 0o644)
		start.SetTime(p, time.Unix(1_600_000_000, 0))
	}
	start.Wait(time.Hour)
	must(t, start.protect())
	start.Wait(time.Hour)
	was := start.trees()
	for _, x := range moves {
		w := start.clone()
		w.do(x.script)
		v, err := w.verifyBy(w.Process())
		must(t, err)
		if is := listed(v.Nodes[0].Findings); is != x.finds {
			t.Errorf("%s: found\n%s\nwant\n%s", x.name, is, x.finds)
		}
		for _, lost := range []bool{false, true} {
			if !(x.lacks && lost) {
				w.comesBack(t, fmt.Sprintf("%s, lost %v", x.name, lost), lost, x.lacks, v.Nodes[0].Status == Intact, was)
			}
		}
	}
}

// comesBack recovers node 1, if it is lost, and node 0 as it is, or as it was. An intact one stays as it is.
func (w *world) comesBack(t *testing.T, what string, lost, lacks, intact bool, was []string) {
	t.Helper()
	kept, reverted := w.clone(), w.clone()
	for _, c := range []*world{kept, reverted} {
		if lost {
			c.lose(0, 1)
		}
		r, err := c.recoverBy(c.Process(), RecoverOptions{Revert: protection.Edits{Changed: c == reverted}})
		must(t, err)
		if r.Unrecovered != nil && c == kept {
			t.Errorf("%s: %q", what, r.Unrecovered)
		}
		must(t, diff(what+": the lost node", was[1], c.tree(1)))
	}
	if intact {
		must(t, diff(what+": the node", w.tree(0), kept.tree(0)))
	}
	if !lacks {
		must(t, kept.protect(), kept.whole())
	}
	is := lines(reverted.tree(0))
	for name, line := range lines(was[0]) {
		now, _, _ := strings.Cut(is[name], " = ")
		if then, _, _ := strings.Cut(line, " = "); line[0] == '-' && now != then && !reverted.Exists("/n0/x/x") { // nothing takes that directory away
			t.Errorf("%s: reverted: %s is %s, was %s", what, name, now, then)
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
