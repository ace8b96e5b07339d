package group

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/internal/verifyall"
)

// namesWorld is a protected group in which node 1 has a file of three names, x/a, x/b and y/c.
func namesWorld(t *testing.T, k, r int) *world {
	w := &world{Machine: disktest.NewMachine(), r: r, ranks: 1}
	rng := rand.New(rand.NewPCG(3, 3))
	for n := range k {
		dir := fmt.Sprint("/n", n)
		w.dirs = append(w.dirs, dir)
		w.MkdirAll(dir+"/x", 0o755)
		w.MkdirAll(dir+"/y", 0o755)
		w.WriteFile(dir+"/other", random(rng, 90_000), 0o644)
	}
	w.WriteFile("/n1/x/a", random(rng, 80_000), 0o640)
	w.Link("/n1/x/a", "/n1/x/b")
	w.Link("/n1/x/a", "/n1/y/c")
	w.Wait(time.Hour)
	must(t, w.protect())
	w.Wait(time.Hour)
	return w
}

// TestFileNames has anything happen to the names of a file while another node is lost. No name gets bytes that were not
// protected under it: what was changed stays, what is right stays, all else comes back, and any name that is right
// serves for what the other node had.
func TestFileNames(t *testing.T) {
	t.Parallel()
	names := []string{"/n1/x/a", "/n1/x/b", "/n1/y/c"}
	start := namesWorld(t, 3, 1)
	bytes := contentOf(start, names[0])
	then, err := start.Lstat(names[0])
	must(t, err)
	replace := func(do func(w *world, p string)) func(*world, string) {
		return func(w *world, p string) { w.RemoveAll(p); do(w, p) }
	}
	regular := func(w *world, p string) bool {
		info, err := w.Lstat(p)
		return err == nil && info.Mode().IsRegular()
	}
	write := func(text string, timed bool) func(*world, string) {
		return replace(func(w *world, p string) {
			if w.WriteFile(p, []byte(text), 0o640); timed {
				w.SetTime(p, then.ModTime())
			}
		})
	}
	states := []struct {
		name string
		do   func(w *world, p string)
	}{
		{"kept", func(*world, string) {}},
		{"gone", func(w *world, p string) { w.RemoveAll(p) }},
		{"saved anew", write("edited", false)},
		{"saved anew, as long", write(strings.Repeat("e", len(bytes)), false)},
		{"a copy", write(bytes, true)},
		{"a copy of today", write(bytes, false)},
		{"a rotten copy", write("#"+bytes[1:], true)},
		{"rotten", func(w *world, p string) {
			if regular(w, p) {
				w.Overwrite(p, 70_000, []byte("rot"), true)
			}
		}},
		{"written to", func(w *world, p string) {
			if regular(w, p) {
				w.Overwrite(p, 5, []byte("mine"), false)
			}
		}},
		{"a directory", replace(func(w *world, p string) { w.MkdirAll(p+"/in", 0o700) })},
		{"a symbolic link", replace(func(w *world, p string) { w.Symlink("../other", p) })},
	}
	n := len(states)
	rng := rand.New(rand.NewPCG(*callSeed, 9))
	for _, i := range rng.Perm(n * n * n)[:verifyall.Pick(60, n*n*n)] {
		for _, revert := range []bool{false, true} {
			what := fmt.Sprint("revert ", revert)
			w := start.clone()
			for j, s := range []int{i % n, i / n % n, i / n / n} {
				what += ", " + states[s].name
				states[s].do(w, names[j])
			}
			namesComeBack(t, what, w, start, names, revert)
		}
	}
}

// namesComeBack recovers a group in which something has happened to the names of a file.
func namesComeBack(t *testing.T, what string, w, start *world, names []string, revert bool) {
	apart := strings.Contains(what, "copy") // somebody has made copies
	bytes, was := contentOf(start, names[0]), start.trees()
	then, err := start.Lstat(names[0])
	must(t, err)
	is := func(p string) (how string, holds bool) {
		info, err := w.Lstat(p)
		switch {
		case err != nil:
			return "missing", false
		case !info.Mode().IsRegular():
			return "changed", false
		case contentOf(w, p) == bytes:
			return "right", true
		case disk.Inode(info) == disk.Inode(then) && disk.Changed(info).Equal(disk.Changed(then)):
			return "damaged", false
		}
		return "changed", false
	}
	before, how, held := map[string]string{}, map[string]string{}, false
	for _, p := range names {
		var holds bool
		before[p] = w.Tree(p)
		how[p], holds = is(p)
		held = held || holds
	}
	if held { // else what the node had there is lost, too
		w.lose(0, 2)
	}
	r, err := w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: revert}})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	changed := 0
	for _, p := range names {
		_, holds := is(p)
		directory := strings.HasPrefix(before[p], ". d")
		named := slices.ContainsFunc(r.Unrecovered, func(text string) bool { return strings.HasPrefix(text, p+" ") })
		switch {
		case how[p] == "changed" && (!revert || directory):
			changed++
			if w.Tree(p) != before[p] || named != (revert && directory) {
				t.Errorf("%s: %s: was\n%s, is\n%s, %q", what, p, before[p], w.Tree(p), r.Unrecovered)
			}
		case !holds || named:
			t.Errorf("%s: %s was %s, and has not what was protected: %q", what, p, how[p], r.Unrecovered)
		}
	}
	must(t, diff(what+": the lost node", was[2], w.tree(2)))
	if changed == 0 && !apart {
		must(t, diff(what+": all names are one file", withoutTimes(was[1]), withoutTimes(w.tree(1))))
	}
	now := w.tree(1)
	again, err := w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: revert}})
	must(t, err)
	if must(t, diff(what+": once more", now, w.tree(1))); !slices.Equal(again.Unrecovered, r.Unrecovered) || again.Files > 0 {
		t.Errorf("%s: once more: %+v", what, again)
	}
}

// TestFileNamesRaced changes the name that another is to be one more of, at any call: the other never gets what was written.
func TestFileNamesRaced(t *testing.T) {
	t.Parallel()
	start := namesWorld(t, 3, 1).ordered()
	bytes := contentOf(start, "/n1/x/a")
	start.Remove("/n1/x/a")
	calls := start.Calls(func(p *disktest.Process) {
		c := *start
		_, err := c.recoverBy(p, RecoverOptions{})
		must(t, err)
	})
	for i, c := range calls {
		for j, p := range []string{"/n1/x/b", "/n1/y/c"} {
			if (i+j)%verifyall.Pick(3, 1) > 0 {
				continue
			}
			w := start.clone()
			q := w.Process()
			q.CallAt(c.N, func() {
				w.Remove(p)
				w.WriteFile(p, []byte(strings.Repeat("e", len(bytes))), 0o640)
			})
			_, err := w.recoverBy(q, RecoverOptions{})
			if is, _ := w.ReadFile("/n1/x/a"); is != nil && string(is) != bytes {
				t.Fatalf("at %v: %s was saved anew, and x/a has that: %v", c, p, err)
			}
		}
	}
}

// TestFileNamesLinked has a name that lies behind a symbolic link now: nothing is read or linked through that.
func TestFileNamesLinked(t *testing.T) {
	t.Parallel()
	w := namesWorld(t, 3, 1)
	bytes := contentOf(w, "/n1/y/c")
	w.MkdirAll("/elsewhere", 0o700)
	w.WriteFile("/elsewhere/a", []byte("secret"), 0o600)
	w.RemoveAll("/n1/x")
	w.Symlink("/elsewhere", "/n1/x")
	w.Remove("/n1/y/c")
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err)
	if contentOf(w, "/n1/y/c") != bytes || contentOf(w, "/elsewhere/a") != "secret" || len(r.Unrecovered) != 2 {
		t.Errorf("%+v", r)
	}
	info, err := w.Lstat("/n1/y/c")
	must(t, err)
	if info.Mode() != fs.FileMode(0o640) || disk.Linked(info) != (disk.FileID{}) {
		t.Errorf("%v", info)
	}
}
