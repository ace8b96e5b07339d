package group

import (
	"slices"
	"strings"
	"testing"

	"volley/internal/disk/disktest"
)

// TestRecoverAgainstWriters has a program save a file under a name that comes back, by a rename, before each call of recover
// to the disk: what it has saved lies there afterwards, or in replaced. One moment is left: the name of a file that is there is
// given to another by a rename, and no call asks before who has it.
func TestRecoverAgainstWriters(t *testing.T) {
	t.Parallel()
	before := newWorld(3, 1, Striped).ordered()
	must(t, before.protect())
	before.RemoveAll("/n1/big")
	before.RemoveAll("/n1/link")
	before.RemoveAll("/n1/sub/deep")
	before.Overwrite("/n1/plain", 3, []byte("rot"), true)
	before.WriteFile("/n1/theirs", []byte("saved by a program"), 0o611)
	calls := before.Calls(func(p *disktest.Process) {
		_, err := before.clone().recoverBy(p, RecoverOptions{})
		must(t, err)
	})
	line := lines(before.tree(1))["theirs"]
	for _, name := range []string{"plain", "big", "link", "sub/deep/y"} {
		at := "/n1/" + name
		tried := 0
		for _, c := range calls {
			overwrites := c.Op == "rename" && c.New == at && name == "plain"
			if !strings.HasPrefix(c.Path, "/n1/") || !slices.Contains([]string{"lstat", "link", "rename", "syncdir", "mkdir", "remove"}, c.Op) || overwrites {
				continue
			}
			w := before.clone()
			p := w.Process()
			saved := false
			p.At(c.N, func() {
				if info, err := w.Lstat("/n1/sub/deep"); strings.HasPrefix(name, "sub") && (err != nil || !info.IsDir()) {
					return
				}
				w.Rename("/n1/theirs", at)
				saved = true
			})
			_, err := w.recoverBy(p, RecoverOptions{})
			if !saved {
				continue
			}
			tried++
			if tree := w.Tree("/n1"); !strings.Contains(tree, line[strings.LastIndex(line, " ")+1:]) {
				t.Errorf("%s, saved before %v, is gone: %v\n%s", name, c, err, tree)
			}
		}
		if tried == 0 {
			t.Errorf("%s: nothing was tried", name)
		}
	}
}
