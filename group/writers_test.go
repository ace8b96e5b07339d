package group

import (
	"slices"
	"strings"
	"testing"

	"volley/internal/disk/disktest"
)

// TestRecoverAgainstWriters has a program save a file under a name that comes back, by a rename, before each call of recover
// to the disk: what it has saved lies there afterwards, or in replaced, also if recover is killed at its next call and runs
// again. Where names cannot be exchanged one moment is left: the name of a file that is there is given to another by a
// rename, and no call asks before who has it.
func TestRecoverAgainstWriters(t *testing.T) {
	t.Parallel()
	for _, poor := range []bool{false, true} {
		before := newWorld(3, 1).ordered()
		before.Remount("/", func(o *disktest.Mount) { o.NoExchange = poor })
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
		for _, name := range []string{"plain", "big", "link", "sub/deep/y"} {
			tried := 0
			for _, c := range calls {
				overwrites := poor && c.Op == "rename" && c.New == "/n1/"+name && name == "plain"
				if !strings.HasPrefix(c.Path, "/n1/") || !slices.Contains(strings.Fields("lstat link rename exchange syncdir mkdir remove"), c.Op) || overwrites || *mostCalls > 0 && (c.N+len(name))%3 > 0 {
					continue
				}
				for _, kill := range []bool{false, true} {
					if saveAt(t, before.clone(), name, c, kill) {
						tried++
					}
				}
			}
			if tried == 0 {
				t.Errorf("%s: nothing was tried", name)
			}
		}
	}
}

// saveAt has theirs saved under a name before a call of recover, and reports whether it was.
func saveAt(t *testing.T, w *world, name string, c disktest.Call, kill bool) (saved bool) {
	t.Helper()
	line := lines(w.tree(1))["theirs"]
	p := w.Process()
	p.Hook = func(is disktest.Call) error {
		switch info, err := w.Lstat("/n1/sub/deep"); {
		case is.N == c.N+1 && kill:
			p.Kill()
		case is.N == c.N && (!strings.HasPrefix(name, "sub") || err == nil && info.IsDir()):
			w.Rename("/n1/theirs", "/n1/"+name)
			saved = true
		}
		return nil
	}
	_, err := w.recoverBy(p, RecoverOptions{})
	if !saved {
		return false
	}
	if kill {
		p.Kill()
		must(t, w.recover())
	}
	if tree := w.Tree("/n1"); !strings.Contains(tree, line[strings.LastIndex(line, " ")+1:]) {
		t.Errorf("%s, saved before %v, killed %v, is gone: %v\n%s", name, c, kill, err, tree)
	}
	return true
}
