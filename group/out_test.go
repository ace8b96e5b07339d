package group

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/tree"
)

// TestRecoverTo copies lost nodes out, in one process and in one for each node, where lost ones are not
// reached: the nodes stay as they are, and a second time there is nothing to do.
func TestRecoverTo(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 5} {
		w := newWorld(5, 2)
		w.ranks = ranks
		must(t, w.protect())
		was, lost := w.trees(), []int{1, 4}
		w.lose(1, lost...)
		out := func() (*RecoverReport, error) {
			return overRanks(w, w.Process(), func(ctx context.Context, g *Group) (*RecoverReport, error) {
				for _, dir := range g.dirs {
					absent := ""
					if !w.Exists(dir) && ranks > 1 {
						absent = "no route to host"
					}
					g.options.Names, g.options.Absent = append(g.options.Names, "host:"+dir), append(g.options.Absent, absent)
				}
				return g.Recover(ctx, RecoverOptions{OutDir: "/out"})
			})
		}
		left := w.trees()
		r, err := out()
		must(t, err)
		for n, dir := range w.dirs {
			if r.Nodes[n].Dir != "host:"+dir {
				t.Errorf("node %d is called %s", n, r.Nodes[n].Dir)
			}
			if slices.Contains(lost, n) {
				must(t, diff("the copy", was[n], w.Tree(fmt.Sprint("/out/node.", n), tree.MetaName)))
			}
		}
		if !slices.Equal(w.trees(), left) {
			t.Errorf("%d ranks: nodes have changed", ranks)
		}
		if r, err = out(); err != nil || r.Files != 0 || r.Incomplete() != nil {
			t.Errorf("a second time to the same place: %+v, %v", r, err)
		}
		w.RemoveAll("/out")
		w.RemoveAll("/n0")
		if _, err := out(); !IsInputError(err) || !strings.Contains(err.Error(), "tolerates the loss of 2") || w.Exists("/out") {
			t.Errorf("3 lost: %v", err)
		}
	}
}

// TestRecoverToPlaces names places to copy out to that are, or lie in, nodes or hold files, and one in which a copy
// was interrupted.
func TestRecoverToPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	for n := range w.dirs { // node 0 in node.1, and so on
		dir := fmt.Sprint("/base/node.", (n+1)%3)
		w.MkdirAll("/base", 0o755)
		w.Rename(w.dirs[n], dir)
		w.dirs[n] = dir
	}
	must(t, w.protect())
	was := w.tree(0)
	w.RemoveAll(w.dirs[0])
	w.MkdirAll("/full/node.0/x", 0o700)
	before := w.everything()
	out := func(to string) error {
		_, err := w.recoverBy(w.Process(), RecoverOptions{OutDir: to})
		return err
	}
	for to, want := range map[string]string{"/full": "has something else than", "/base": "are the same directory", w.dirs[1]: "lies in", w.dirs[2] + "/a/b": "lies in"} {
		if err := out(to); !IsInputError(err) || !strings.Contains(err.Error(), want) || w.everything() != before {
			t.Errorf("to %s: %v: want %q", to, err, want)
		}
	}
	w.MkdirAll("/out/node.0/.volley/tmp-stage", 0o700)
	w.WriteFile("/out/node.0/.volley/tmp-stage/0", []byte("half"), 0o600)
	must(t, out("/out"), diff("the copy", was, w.Tree("/out/node.0", tree.MetaName)))
}
