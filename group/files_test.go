package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/tree"
	"volley/group/protection"
)

// userTree lists what is the user's in a directory.
func (w *world) userTree(dir string) string { return w.Tree(dir, tree.MetaName) }

// TestRecoverFiles brings some files back at nodes that are whole, damaged or lost, and nothing else anywhere.
func TestRecoverFiles(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 4} {
		w := newWorld(4, 2)
		w.ranks = ranks
		must(t, w.protect())
		before := w.clone()
		w.Wait(1e9)
		w.Overwrite("/n0/big", 40_000, []byte("rotten"), true)
		w.Overwrite("/n0/plain", 4, []byte("rotten"), true)
		w.Remove("/n1/sub/x")
		w.Remove("/n1/sub/deep/y")
		w.WriteFile("/n1/plain", []byte("changed"), 0o644)
		w.RemoveAll("/n3")
		damaged := w.clone()

		r, err := w.recoverBy(w.Process(), RecoverOptions{Files: []string{"big", "/sub/x"}})
		must(t, err)
		must(t, r.Incomplete())
		for _, f := range []string{"/n0/big", "/n1/sub/x", "/n3/big", "/n3/sub/x"} {
			is, err := w.Lstat(f)
			must(t, err)
			was, _ := before.Lstat(f)
			want, _ := before.ReadFile(f)
			text, _ := w.ReadFile(f)
			if string(text) != string(want) || is.Mode() != was.Mode() || !is.ModTime().Equal(was.ModTime()) {
				t.Errorf("%d ranks: %s is not as it was", ranks, f)
			}
		}
		for _, f := range []string{"/n0/plain", "/n1/plain"} {
			was, _ := damaged.ReadFile(f)
			if text, _ := w.ReadFile(f); string(text) != string(was) {
				t.Errorf("%d ranks: %s was written", ranks, f)
			}
		}
		for _, f := range []string{"/n1/sub/deep/y", "/n3/plain", "/n3/.volley"} {
			if w.Exists(f) {
				t.Errorf("%d ranks: %s is there", ranks, f)
			}
		}
		must(t, diff("node 2", damaged.Tree("/n2", "lock"), w.Tree("/n2", "lock")))
		if r.Matched != 8 || r.Files != 4 {
			t.Errorf("%d ranks: %d match, %d came back", ranks, r.Matched, r.Files)
		}
		must(t, diff("the node that had lost two files", before.clone().userTree("/n2"), w.userTree("/n2")))

		w.deletes = true // what else was deleted is not lost by that
		v, err := w.verifyBy(w.Process())
		must(t, err)
		if f := v.Nodes[1].Findings; !slices.ContainsFunc(f, func(f protection.Finding) bool { return f.Path == "sub/deep/y" && f.Kind == Deleted }) {
			t.Errorf("%d ranks: %+v", ranks, f)
		}
		w.deletes = false
		_, err = w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
		must(t, err)
		for n := range w.dirs {
			must(t, diff(w.dirs[n], before.tree(n), w.tree(n)))
		}
		must(t, w.whole())
	}
}

// TestRecoverFilesRevert reverts what matches alone, and says in a dry run what it would.
func TestRecoverFilesRevert(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	was, _ := w.ReadFile("/n0/plain")
	w.Wait(1e9)
	for _, f := range []string{"/n0/plain", "/n0/big", "/n1/plain"} {
		w.WriteFile(f, []byte("changed"), 0o644)
	}
	r, err := w.recoverBy(w.Process(), RecoverOptions{Files: []string{"/plain"}, Revert: protection.Edits{Changed: true}, DryRun: true})
	must(t, err)
	if fmt.Sprint(r.Reverts) != "[/n0/plain /n1/plain]" {
		t.Errorf("would revert %v", r.Reverts)
	}
	r, err = w.recoverBy(w.Process(), RecoverOptions{Files: []string{"/plain"}})
	must(t, err)
	if text, _ := w.ReadFile("/n0/plain"); string(text) != "changed" || fmt.Sprint(r.Kept) != "[/n0/plain /n1/plain]" {
		t.Errorf("kept %v, and %q is there", r.Kept, text)
	}
	if len(r.Notes) == 0 || r.Notes[0] != `"/plain" is at /n0, /n1, /n2: begin with the directory of one for that alone` {
		t.Errorf("notes %q", r.Notes)
	}
	r, err = w.recoverBy(w.Process(), RecoverOptions{Files: []string{"/n1/plain", "!/n0/plain"}, Revert: protection.Edits{Changed: true}, DryRun: true})
	must(t, err)
	if fmt.Sprint(r.Reverts) != "[/n1/plain]" || r.Matched != 1 {
		t.Errorf("would revert %v", r.Reverts)
	}
	_, err = w.recoverBy(w.Process(), RecoverOptions{Files: []string{"plain", "!nothing"}, Revert: protection.Edits{Changed: true}})
	must(t, err)
	if text, _ := w.ReadFile("/n0/plain"); string(text) != string(was) {
		t.Errorf("%q is there", text)
	}
	if text, _ := w.ReadFile("/n0/big"); string(text) != "changed" {
		t.Errorf("%q is there", text)
	}
}

// TestRecoverFilesBeyond has blocks of a file come back, and not all, at a node to which nothing else does.
func TestRecoverFilesBeyond(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	w.Remove("/n0/big")
	w.Overwrite("/n1/big", 0, []byte("rotten"), true)
	w.Overwrite("/n2/big", 0, []byte("rotten"), true)
	r, err := w.recoverBy(w.Process(), RecoverOptions{Files: []string{"/n0/big"}})
	must(t, err)
	if len(r.Unrecovered) != 1 || r.Blocks == 0 {
		t.Errorf("%d blocks, and not recovered: %q", r.Blocks, r.Unrecovered)
	}
}

// TestRecoverFilesTo writes what was protected of files of all nodes elsewhere, and nothing at the nodes.
func TestRecoverFilesTo(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 4} {
		w := newWorld(4, 2)
		w.ranks = ranks
		must(t, w.protect())
		before := w.clone()
		w.Wait(1e9)
		w.WriteFile("/n0/plain", []byte("changed"), 0o644)
		w.Overwrite("/n1/plain", 4, []byte("rotten"), true)
		w.Rename("/n0/twin", "/n0/third")
		w.RemoveAll("/n3")
		damaged := w.clone()
		for range 2 { // it may be repeated
			r, err := w.recoverBy(w.Process(), RecoverOptions{Files: []string{"/plain", "sub/", "twin"}, OutDir: "/out"})
			must(t, err)
			must(t, r.Incomplete())
			for n, dir := range w.dirs {
				if damaged.Exists(dir) {
					must(t, diff(dir, damaged.Tree(dir, "lock"), w.Tree(dir, "lock")))
				} else if w.Exists(dir) {
					t.Errorf("%s was made", dir)
				}
				c := before.clone()
				for _, f := range []string{"big", "closed", "nothing", "empty", "odd \xff", "link"} {
					c.RemoveAll(dir + "/" + f)
				}
				root, _ := before.Lstat(dir)
				c.SetTime(dir, root.ModTime())
				must(t, diff(fmt.Sprint("node ", n), c.tree(n), w.userTree(fmt.Sprint("/out/node.", n))))
				if w.Exists(fmt.Sprintf("/out/node.%d/.volley", n)) {
					t.Errorf("there is a .volley in what came of node %d", n)
				}
			}
		}
	}
	w := newWorld(3, 1)
	must(t, w.protect())
	for n, dir := range w.dirs {
		w.Rename(dir, fmt.Sprint("/node.", n))
		w.dirs[n] = fmt.Sprint("/node.", n)
	}
	if _, err := w.recoverBy(w.Process(), RecoverOptions{Files: []string{"plain"}, OutDir: "/"}); err == nil || !strings.Contains(err.Error(), "same directory") {
		t.Errorf("into the nodes themselves: %v", err)
	}
}

// TestRecoverFilesRotten has blocks from which a file would come back be wrong, without anybody having noticed.
func TestRecoverFilesRotten(t *testing.T) {
	t.Parallel()
	w := newWorld(5, 2)
	must(t, w.protect())
	was, _ := w.ReadFile("/n0/plain")
	rot := func(n int) {
		for _, f := range []string{"plain", "big", "sub/x", "sub/deep/y", "closed/inner/z", parityPath(1)} {
			f = w.dirs[n] + "/" + f
			text, _ := w.ReadFile(f)
			w.Overwrite(f, 0, make([]byte, len(text)), true)
		}
	}
	w.Remove("/n0/plain")
	for rotten := 1; rotten < 5; rotten++ {
		rot(rotten)
		c := w.clone()
		r, err := c.recoverBy(c.Process(), RecoverOptions{Files: []string{"/plain"}})
		must(t, err)
		text, err := c.ReadFile("/n0/plain")
		back := err == nil && string(text) == string(was)
		if rotten == 1 && !back {
			t.Errorf("it is not back: %v", r.Incomplete())
		}
		if err == nil && !back || rotten == 4 && back {
			t.Errorf("%d rotten: what came back is wrong", rotten)
		}
		if !back && r.Incomplete() == nil {
			t.Errorf("%d rotten: it is not back, and nothing is said", rotten)
		}
	}
}

// TestRecoverFilesNothing names patterns that fit nothing, and those that are none.
func TestRecoverFilesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	for _, files := range [][]string{{"plain", "nosuch"}, {"[a"}, {"!plain"}, {"plain", "!*"}} {
		_, err := w.recoverBy(w.Process(), RecoverOptions{Files: files})
		if !errors.As(err, new(*protection.RefusedError)) || !strings.Contains(err.Error(), files[len(files)-1]) {
			t.Errorf("%q: %v", files, err)
		}
	}
}

// TestRecoverFilesSnapshots brings a file of the latest snapshot back, and sets no newer one aside: nothing says that the
// older one is whole.
func TestRecoverFilesSnapshots(t *testing.T) {
	t.Parallel()
	w := newRoots(t, 3, 1, 1, 2)
	right, _ := w.ReadFile("/r0/step-2/rank0")
	w.Overwrite("/r0/step-2/rank0", 10, []byte("rotten"), true)
	for _, step := range []int64{Latest, 1} {
		c := w.clone()
		if step == 1 { // of which everything is as it was
			c.RemoveAll("/r2/step-2")
		}
		before := c.names(0)
		r, err := c.with(protection.Settings{Roots: true, Step: step}).recoverBy(c.Process(), RecoverOptions{Files: []string{"rank0"}})
		must(t, err)
		must(t, r.Incomplete())
		if is := c.names(0); !slices.Equal(is, before) {
			t.Errorf("step %d: there is %q, and was %q", step, is, before)
		}
		if is, _ := c.ReadFile("/r0/step-2/rank0"); (string(is) == string(right)) != (step == Latest) {
			t.Errorf("step %d: step-2 has %q", step, is)
		}
	}
}
