package group

import (
	"fmt"
	"strings"
	"testing"

	"volley/group/internal/tree"
)

// TestRecoverToPlaces names places to copy out to that are, or lie in, nodes, and one in which a copy was interrupted.
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
	before := w.everything()
	out := func(to string, files ...string) error {
		_, err := w.recoverBy(w.Process(), RecoverOptions{OutDir: to, Files: files})
		return err
	}
	for to, want := range map[string]string{"/base": "are the same directory", w.dirs[1]: "lies in", w.dirs[2] + "/a/b": "lies in"} {
		if err := out(to, "*"); !IsInputError(err) || !strings.Contains(err.Error(), want) || w.everything() != before {
			t.Errorf("to %s: %v: want %q", to, err, want)
		}
	}
	if err := out("/out"); !IsInputError(err) || !strings.Contains(err.Error(), "nothing says which files") || w.Exists("/out") {
		t.Errorf("without files: %v", err)
	}
	w.MkdirAll("/out/node.0/.volley/tmp-stage", 0o700)
	w.WriteFile("/out/node.0/.volley/tmp-stage/0", []byte("half"), 0o600)
	must(t, out("/out", "*"), diff("the copy", was, w.Tree("/out/node.0", tree.MetaName)))
}
