package group

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/internal/verifyall"
)

// TestUnset recovers as a user who may not give files away, or set their attributes: all data is back, the report names
// what is not and why, and no file that is now this user's is setuid.
func TestUnset(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	w.Chown("/n1/big", 1000, 1000, "", "")
	must(t, w.protect())
	w.lose(0, 1)
	p := w.Process()
	p.Hook = func(c disktest.Call) error {
		switch c.Op {
		case "chown":
			return syscall.EPERM
		case "setxattr":
			return syscall.ENOSPC
		}
		return nil
	}
	r, err := w.recoverBy(p, RecoverOptions{})
	must(t, err)
	for _, want := range []string{
		"/n1/big and 3 more: owner not restored: operation not permitted",
		"/n1/plain: setuid and setgid not restored, as the owner is not",
		"/n1/plain: attribute user.note not restored: no space left on device",
		"/n1/sub: attribute system.posix_acl_default not restored: no space left on device",
	} {
		if !slices.Contains(r.Notes, want) {
			t.Errorf("%q: want %q", r.Notes, want)
		}
	}
	if info, err := w.Lstat("/n1/plain"); err != nil || info.Mode() != 0o644 || r.Incomplete() != nil {
		t.Errorf("%v, %v, %v", info.Mode(), err, r.Incomplete())
	}
	w.lose(0, 1)
	p.Hook = func(c disktest.Call) error {
		if c.Op == "setxattr" {
			return &fs.PathError{Op: c.Op, Path: "x", Err: errors.New("no number has this")}
		}
		return nil
	}
	if r, err = w.recoverBy(p, RecoverOptions{}); err != nil || !slices.Contains(r.Notes, "/n1/plain: attribute user.note not restored: no number has this") {
		t.Errorf("%v, %+v", err, r)
	}
	v, err := w.verifyBy(w.Process())
	if err != nil || len(v.Nodes[1].Findings) == 0 || slices.ContainsFunc(v.Nodes[1].Findings, func(x protection.Finding) bool { return x.Kind != Metadata }) {
		t.Errorf("%v: %+v", err, v.Nodes[1])
	}
}

// TestRecoverLinks damages a file that has two names, and puts a directory in its place: both names are again of one
// file, or the one that can come back is a file of its own until the other can.
func TestRecoverLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	was, y := w.trees(), contentOf(w, "/n1/twin")
	w.Overwrite("/n1/twin", 5, []byte("rot"), true)
	must(t, w.recover())
	must(t, diff("both names", was[1], w.tree(1)))
	w.Remove("/n1/sub/deep/y")
	w.Remove("/n1/twin")
	w.MkdirAll("/n1/sub/deep/y/mine", 0o700)
	r, err := w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
	must(t, err)
	same(t, "in its place", r.Unrecovered, []string{
		"/n1/sub/deep/y is a directory, and was a file when it was protected: move it away",
	})
	if contentOf(w, "/n1/twin") != y {
		t.Error("the other name has not come back")
	}
	w.RemoveAll("/n1/sub/deep/y")
	must(t, w.recover())
	must(t, diff("moved away", was[1], w.tree(1)))
}

// TestMetaLinked has a file in .volley that has another name elsewhere: its mode stays, as the other name's may be
// meant.
func TestMetaLinked(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1)
	w.MkdirAll("/n1/.volley", 0o755)
	w.WriteFile("/elsewhere", []byte("for all"), 0o644)
	w.Link("/elsewhere", "/n1/.volley/linked")
	w.WriteFile("/n1/.volley/open", nil, 0o644)
	must(t, w.protect())
	for name, want := range map[string]fs.FileMode{"/elsewhere": 0o644, "/n1/.volley/open": 0o600, "/n1/.volley": fs.ModeDir | 0o700} {
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
					return otherNames.ReplaceAllString(tree, "")
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

// TestSourcesChange has what a file is made of again change, after recover has found it right: nothing that is wrong
// takes the place of the file.
func TestSourcesChange(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	must(t, w.protect())
	w.Overwrite("/n1/big", 5, []byte("rot"), true)
	damaged := w.tree(1)
	r, err := w.recoverBy(once(w.Process(), "create", "/n1/.volley/tmp-stage/0", func() {
		for _, dir := range []string{"/n0", "/n2", "/n3"} {
			w.Overwrite(dir+"/big", 5, []byte("rot"), true)
			w.Overwrite(dir+"/.volley/generation.1/parity", 5, []byte("rot"), true)
		}
	}), RecoverOptions{})
	must(t, err)
	if err := r.Incomplete(); err == nil || !strings.Contains(err.Error(), "/n1/big cannot be made: data that it comes of has changed meanwhile") {
		t.Errorf("%v", err)
	}
	must(t, diff("it is as it was", damaged, w.tree(1)))
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
