package group

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk/disktest"
	"volley/internal/verifyall"
)

// TestClosedAgain opens what Volley keeps to everybody: protect closes it again, but a file that has another name
// elsewhere, whose mode may be meant.
func TestClosedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1)
	must(t, w.protect())
	w.WriteFile("/elsewhere", []byte("for all"), 0o644)
	w.Link("/elsewhere", "/n1/.volley/linked")
	w.WriteFile("/n1/.volley/open", nil, 0o644)
	w.Chmod("/n1/.volley", 0o755)
	w.Chmod("/n1/.volley/lock", 0o644)
	must(t, w.protect())
	for name, want := range map[string]fs.FileMode{"/elsewhere": 0o644, "/n1/.volley/open": 0o600, "/n1/.volley/lock": 0o600, "/n1/.volley": fs.ModeDir | 0o700} {
		if info, err := w.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v: want %v", name, info, err, want)
		}
	}
}

// TestGone removes a node when it is open already: it counts as lost.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	p := w.Process()
	p.Hook = func(c disktest.Call) error {
		if c.Op == "readdir" && c.Path == "/n1" {
			return syscall.ENOENT
		}
		return nil
	}
	r, err := w.verifyBy(p)
	if err != nil || r.Nodes[1].Status != Lost || r.Intact {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestCleanOrder kills protect at every removal of what it does not need any more: whatever manifest is left at a node,
// all that the manifest speaks of is there.
func TestCleanOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1).ordered()
	must(t, w.protect())
	w.AppendFile("/n1/plain", []byte("more"))
	removals := 0
	for _, c := range w.Calls(func(p *disktest.Process) { _, err := w.clone().protectBy(p, ProtectOptions{}); must(t, err) }) {
		if c.Op != "remove" || !strings.Contains(c.Path, ".1") {
			continue
		}
		removals++
		x := w.clone()
		p := x.Process()
		p.KillAt(c.N + 1)
		x.protectBy(p, ProtectOptions{})
		for n, at := range x.dirs {
			d, err := x.Process().Open(at)
			must(t, err)
			for _, h := range (&store.Node{Index: n, DirName: at, Dir: d}).Load(nil, len(x.dirs)).Held {
				if !h.Complete {
					t.Errorf("killed after %v: node %d has the manifest of generation %d, and not what it speaks of", c, n, h.Generation)
				}
			}
		}
	}
	if removals < 3*4 {
		t.Errorf("%d removals", removals)
	}
}

// TestRecordsReadOnce counts how often verify opens record files where nothing is missing: once to compare their
// digests, and the node's own once more.
func TestRecordsReadOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	opened := map[string]int{}
	for _, c := range w.Calls(func(p *disktest.Process) {
		_, err := w.statusBy(p)
		must(t, err)
	}) {
		if c.Op == "open" {
			opened[c.Path]++
		}
	}
	for n := range w.dirs {
		if own, copied := opened[fmt.Sprintf("/n%d/.volley/generation.1/record", n)], opened[fmt.Sprintf("/n%d/.volley/generation.1/record.%d", n, (n+1)%3)]; own != 2 || copied != 1 {
			t.Errorf("node %d: the record is opened %d times, and a copy of another %d times", n, own, copied)
		}
	}
}

// TestMissingAhead removes a file of many blocks that lies before others: these are right, and it is missing.
func TestMissingAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	for i := range 3 {
		w.WriteFile(fmt.Sprint("/n1/a", i), slices.Repeat([]byte{byte(i), 3, 5}, 100_000), 0o600)
	}
	must(t, w.protect())
	was := w.tree(1)
	w.Lose("/n1/a0")
	r, err := w.verifyBy(w.Process())
	must(t, err)
	if list := r.Nodes[1].Findings; len(list) != 1 || list[0].Path != "a0" || list[0].Kind != Missing {
		t.Errorf("%+v", list)
	}
	must(t, w.recover())
	must(t, diff("it is back", was, w.tree(1)))
}

// TestRecoverToInterrupted kills recover at calls while it copies a lost node out, and fills the disk there: no node
// changes, what is there is right, and the next copy tells what to do, or completes.
func TestRecoverToInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1).ordered()
	must(t, w.protect())
	want := w.trees()
	w.lose(1, 1)
	w.MkdirAll("/out", 0o755)
	before, left := w.trees(), 0
	o := RecoverOptions{OutDir: "/out"}
	for i, c := range w.Calls(func(p *disktest.Process) { _, err := w.recoverBy(p, o); must(t, err) }) {
		if !c.Writes || i%verifyall.Pick(7, 1) != 0 {
			continue
		}
		for how, do := range map[string]func(*disktest.Process){
			"killed":  func(p *disktest.Process) { p.KillAt(c.N) },
			"no room": func(p *disktest.Process) { p.FailAt(c.N, syscall.ENOSPC) },
			"full disk": func(p *disktest.Process) {
				p.Hook = func(o disktest.Call) error {
					if o.N >= c.N && o.Grows() && strings.HasPrefix(o.Path, "/out/") {
						return syscall.ENOSPC
					}
					return nil
				}
			},
		} {
			x := w.clone()
			p := x.Process()
			do(p)
			r, err := x.recoverBy(p, o)
			p.Kill()
			for n, is := range x.trees() {
				must(t, diff(fmt.Sprintf("%s at %v: node %d", how, c, n), before[n], is))
			}
			unset := c.Op == "chown" || c.Op == "setxattr"
			comparable := func(tree string) string {
				if c.Op == "link" { // what cannot be linked is copied
					return regexp.MustCompile(`(?m) = .*$`).ReplaceAllString(tree, "")
				}
				return tree
			}
			if err == nil && r.Incomplete() == nil && !unset {
				must(t, diff(fmt.Sprintf("%s at %v: the copy", how, c), comparable(want[1]), comparable(x.Tree("/out/node.1", tree.MetaName))))
			}
			half := x.Exists("/out/node.1/plain") || x.Exists("/out/node.1/.volley")
			r, err = x.recoverBy(x.Process(), o)
			if half {
				left++
			}
			must(t, err)
			must(t, r.Incomplete())
			if !unset { // what could not be set is no damage
				must(t, diff(fmt.Sprintf("%s at %v: once more", how, c), comparable(want[1]), comparable(x.Tree("/out/node.1", tree.MetaName))))
			}
		}
	}
	if left == 0 {
		t.Error("nothing was left half-way")
	}
}

// TestNothingComesBack damages all of two nodes where one may be lost: no block is said to be recovered.
func TestNothingComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	for _, dir := range w.dirs[:2] {
		for _, name := range []string{"/big", "/.volley/generation.1/parity"} {
			w.Overwrite(dir+name, 0, slices.Repeat([]byte{7}, len(contentOf(w, dir+name))), true)
		}
	}
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err)
	if r.Blocks != 0 || r.Files != 0 || r.Incomplete() == nil {
		t.Errorf("%+v", r)
	}
}
