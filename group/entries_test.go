package group

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/internal/printable"
)

// ofEntry reports whether a call is about an entry of node 1 that comes back, or the directory of one.
func ofEntry(c disktest.Call) bool {
	own, is := strings.CutPrefix(c.Path, "/n1/")
	staged, isStaged := strings.CutPrefix(own, ".volley/tmp-stage/")
	switch {
	case !is || isStaged && (staged == "parity" || staged == "mine"):
		return false
	case isStaged:
		return true
	}
	return !strings.HasPrefix(own, ".volley")
}

// entryErrors has calls about an entry of node 1 fail, by an error that they can get: each at one call, or at all of its
// path. All other entries are back, the report names those that are not, and parity and records are there.
func entryErrors(t *testing.T, w *world, want []string) {
	w = w.ordered()
	calls := w.Calls(func(p *disktest.Process) {
		c := *w
		_, err := c.recoverBy(p, RecoverOptions{})
		must(t, err)
	})
	began := slices.IndexFunc(calls, func(c disktest.Call) bool { return c.Op == "mkdir" && c.Path == "/n1/.volley/tmp-stage" })
	calls = calls[began+1:]
	tried, rng := 0, rand.New(rand.NewPCG(*callSeed, 7))
	for _, e := range disktest.Errnos {
		seen := map[string]bool{}
		for _, c := range calls {
			if !ofEntry(c) || !slices.Contains(e.Ops, c.Op) {
				continue
			}
			if *mostCalls > 0 && rng.IntN(24) > 0 {
				continue
			}
			for _, always := range []bool{false, true} {
				if key := c.Op + c.Path; always && seen[key] {
					continue
				} else if always {
					seen[key] = true
				}
				tried++
				x := w.clone()
				p := x.Process()
				if always {
					p.Deny(c.Path, e.Err, c.Op)
				} else {
					p.FailAt(c.N, e.Err)
				}
				r, err := x.recoverBy(p, RecoverOptions{})
				if err == nil {
					err = leftAlone(x, r, want)
				}
				noted := err == nil && r.Notes != nil // modes and times that cannot be set
				if p.Kill(); err == nil {
					if r, err = x.recoverBy(x.Process(), RecoverOptions{}); err == nil && r.Unrecovered != nil {
						err = fmt.Errorf("once more: %q", r.Unrecovered)
					}
				}
				if err == nil && !noted {
					err = diff("once more", entriesOf(want[1]), entriesOf(x.tree(1)))
				}
				if err != nil {
					t.Errorf("%s at %v, always %v: %v", e.Name, c, always, err)
				}
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d runs had an error", tried)
}

// entriesOf returns a tree without the times of directories, and without which names are of one file.
func entriesOf(tree string) string { return otherNames.ReplaceAllString(withoutTimes(tree), "") }

var otherNames = regexp.MustCompile(`(?m) = .*$`)

// dataOf returns what a line of a tree says of data: the digest of a file, or the target of a link.
func dataOf(line string) string {
	if line == "" || strings.HasPrefix(line, "d") {
		return line[:min(1, len(line))]
	}
	return line[strings.LastIndexByte(line, ' '):]
}

// leftAlone checks that all is back but for what a report names.
func leftAlone(w *world, r *RecoverReport, want []string) error {
	for n := range w.dirs {
		if n != 1 && w.tree(n) != want[n] {
			return diff(fmt.Sprint("node ", n), want[n], w.tree(n))
		}
	}
	named := func(p string) bool {
		p = printable.Text(p)
		return slices.ContainsFunc(slices.Concat(r.Unrecovered, r.Notes), func(text string) bool {
			return strings.HasPrefix(text, p+" ") || strings.HasPrefix(text, p+": ")
		})
	}
	is := lines(entriesOf(w.tree(1)))
	missing := 0
	for p, line := range lines(entriesOf(want[1])) {
		ok := false
		for up := "/n1/" + p; up != "/" && !ok; up = path.Dir(up) {
			ok = named(path.Clean(up))
		}
		if is[p] == line || r.Notes != nil && dataOf(is[p]) == dataOf(line) { // a note is of several entries
			continue
		}
		if missing++; !ok {
			return fmt.Errorf("%s was %q and is %q: not named in %q, %q", p, line, is[p], r.Unrecovered, r.Notes)
		}
	}
	if missing > 0 && len(r.Unrecovered)+len(r.Notes) == 0 {
		return errors.New("nothing is named")
	}
	for _, text := range r.Unrecovered {
		if strings.Contains(text, "nothing more is recovered here") {
			return errors.New(text)
		}
	}
	c := w.clone()
	v, err := c.verifyBy(c.Process())
	if err != nil {
		return err
	}
	for _, f := range v.Nodes[1].Findings {
		if strings.HasPrefix(string(f.Path), tree.MetaName) {
			return fmt.Errorf("%+v", f)
		}
	}
	return nil
}

// TestEntryErrors loses a node, and entries of one, and has one call about an entry fail after the other.
func TestEntryErrors(t *testing.T) {
	t.Parallel()
	start := newWorld(3, 1)
	must(t, start.protect())
	want := start.trees()
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		w := start.clone()
		w.lose(0, 1)
		w.MkdirAll("/n1", 0o755)
		entryErrors(t, w, want)
	})
	t.Run("damaged", func(t *testing.T) {
		t.Parallel()
		w := start.clone()
		w.Overwrite("/n1/big", 5, []byte("rot"), true)
		w.Remove("/n1/sub/deep/y")
		w.Remove("/n1/closed/broken")
		w.Remove("/n1/nothing")
		w.RemoveAll("/n1/closed/inner")
		w.Overwrite("/n1/.volley/generation.1/parity", 9, []byte("rot"), true)
		entryErrors(t, w, want)
	})
}

// mountedWorld is a protected group that has another file system below node 1.
func mountedWorld(t *testing.T, o disktest.Mount) *world {
	w := &world{Machine: disktest.NewMachine(), r: 1, ranks: 1}
	rng := rand.New(rand.NewPCG(4, 3))
	for n := range 3 {
		dir := fmt.Sprint("/n", n)
		w.dirs = append(w.dirs, dir)
		w.MkdirAll(dir+"/m", 0o755)
		if n == 1 {
			w.Mount("/n1/m", o)
		}
		w.MkdirAll(dir+"/m/d/e", 0o750)
		w.WriteFile(dir+"/here", random(rng, 70_000), 0o644)
		w.WriteFile(dir+"/m/f", random(rng, 3000), 0o600)
		w.WriteFile(dir+"/m/d/g", random(rng, 80_000), 0o444)
	}
	if o.Links != 1 {
		w.Link("/n1/m/f", "/n1/m/d/twin")
	}
	if !o.NoSymlinks {
		w.Symlink("f", "/n1/m/link")
	}
	w.Wait(1e9)
	must(t, w.protect())
	return w
}

// TestMountedBelow recovers what lies on another file system below the node, also after the run was interrupted at any
// call: no name has a part of what it is to have, and nothing else is left.
func TestMountedBelow(t *testing.T) {
	t.Parallel()
	start := mountedWorld(t, disktest.Mount{}).ordered()
	want := start.trees()
	for _, x := range []struct {
		what string
		do   func(w *world)
	}{
		{"all is lost", func(w *world) { w.RemoveAll("/n1/m/d"); w.Remove("/n1/m/f"); w.Remove("/n1/m/link") }},
		{"a first name is lost", func(w *world) { w.Remove("/n1/m/d/twin") }},
		{"another name is lost", func(w *world) { w.Remove("/n1/m/f") }},
		{"others are in the way", func(w *world) {
			w.Overwrite("/n1/m/f", 5, []byte("rot"), true)
			w.RemoveAll("/n1/m/d/e")
			w.Overwrite("/n1/m/d/g", 5, []byte("rot"), true)
		}},
	} {
		w := start.clone()
		x.do(w)
		w.Overwrite("/n1/here", 5, []byte("rot"), true)
		before := lines(entriesOf(w.tree(1)))
		check := func(m *disktest.Machine) error {
			c := *w
			c.Machine = m
			after := lines(entriesOf(want[1]))
			for p, line := range lines(entriesOf(c.tree(1))) {
				if !strings.HasPrefix(line, "d") && line != after[p] && line != before[p] && !strings.Contains(p, ".volley-") {
					return fmt.Errorf("%s is %q", p, line)
				}
			}
			r, err := c.recoverBy(c.Process(), RecoverOptions{})
			if err != nil || r.Unrecovered != nil {
				return fmt.Errorf("once more: %+v, %v", r, err)
			}
			return diff("once more", withoutTimes(want[1]), withoutTimes(c.tree(1)))
		}
		sweep := &disktest.Sweep{
			Machine: w.Machine, Tries: 8 * *mostCalls, Interruptions: []disktest.Interruption{disktest.Kill, disktest.CutAll, disktest.CutSome},
			Run: func(p *disktest.Process) error {
				c := *w
				c.Machine = p.Machine()
				_, err := c.recoverBy(p, RecoverOptions{})
				return err
			},
			Check: func(i *disktest.Interrupted) error {
				if i.Name == "" {
					c := *w
					c.Machine = i.Machine
					if err := diff("not interrupted", want[1], c.tree(1)); err != nil {
						return err
					}
					return c.whole()
				}
				return check(i.Machine)
			},
		}
		t.Logf("%s: %d runs were interrupted", x.what, sweep.Test(t))
	}
}

// TestPoorDisk recovers a node on a disk that can do less than the one that it was protected on: what it cannot have is
// named, all else is back, and a second run changes nothing and says the same.
func TestPoorDisk(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what string
		disk disktest.Mount
		more func(w *world)
		left []string
		lost []string
	}{
		{"all", disktest.Mount{}, nil, nil, nil},
		{"no hard links", disktest.Mount{Links: 1}, nil, nil, nil},
		{"no exchange", disktest.Mount{NoExchange: true}, nil, nil, nil},
		{"no hard links and no exchange", disktest.Mount{Links: 1, NoExchange: true}, nil, nil, nil},
		{"two names of a file", disktest.Mount{Links: 2}, func(w *world) { w.Link("/n1/twin", "/n1/third") }, nil, nil},
		{"no symbolic links", disktest.Mount{NoSymlinks: true}, nil, []string{
			"/n1/closed/broken cannot be made: operation not permitted", "/n1/link cannot be made: operation not permitted",
		}, []string{"closed/broken", "link"}},
		{"short names", disktest.Mount{NameBytes: 100}, func(w *world) {
			w.MkdirAll("/n1/"+strings.Repeat("d", 101)+"/in", 0o755)
			w.WriteFile("/n1/"+strings.Repeat("f", 101), []byte("f"), 0o600)
		}, []string{
			"/n1/" + strings.Repeat("d", 101) + " cannot be made, nor what lies in it: file name too long", "/n1/" + strings.Repeat("f", 101) + " cannot be made: file name too long",
		}, []string{strings.Repeat("d", 101), strings.Repeat("d", 101) + "/in", strings.Repeat("f", 101)}},
		{"one case", disktest.Mount{IgnoreCase: true}, func(w *world) {
			w.WriteFile("/n1/PLAIN", []byte("another"), 0o600)
			w.MkdirAll("/n1/SUB/deep", 0o755)
			w.WriteFile("/n1/SUB/deep/y", []byte("another y"), 0o600)
			w.WriteFile("/n1/Big", nil, 0o600)
		}, []string{
			"/n1/big cannot be made: to this disk the name is that of /n1/Big", "/n1/plain cannot be made: to this disk the name is that of /n1/PLAIN",
			"/n1/sub cannot be made, nor what lies in it: to this disk the name is that of /n1/SUB",
		}, []string{"big", "plain", "sub"}},
	} {
		w := newWorld(3, 1)
		if x.more != nil {
			x.more(w)
		}
		w.Wait(1e9)
		must(t, w.protect())
		was := lines(w.tree(1))
		w.RemoveAll("/n1")
		w.MkdirAll("/n1", 0o755)
		w.Mount("/n1", x.disk)
		r, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		check := func(r *RecoverReport) {
			t.Helper()
			if len(r.Unrecovered) != len(x.left) || r.Replaced != nil || (r.Incomplete() == nil) != (x.left == nil) {
				t.Errorf("%s: left %q, replaced %q, want %q", x.what, r.Unrecovered, r.Replaced, x.left)
			}
			for _, text := range x.left {
				start, _, _ := strings.Cut(text, ",")
				if !slices.ContainsFunc(r.Unrecovered, func(is string) bool { return strings.HasPrefix(is, text) || strings.HasPrefix(is, start) }) {
					t.Errorf("%s: %q, want %q", x.what, r.Unrecovered, text)
				}
			}
			is := lines(w.tree(1))
			for p, line := range was {
				line, _, _ := strings.Cut(line, " = ")
				gone := slices.ContainsFunc(x.lost, func(l string) bool { return p == l || strings.HasPrefix(p, l+"/") })
				now, _, _ := strings.Cut(is[p], " = ")
				if p != "." && gone != (is[p] == "") || !gone && p != "." && now != line {
					t.Errorf("%s: %s was %q and is %q", x.what, p, line, is[p])
				}
			}
		}
		check(r)
		now := w.tree(1)
		r, err = w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		check(r)
		if must(t, diff(x.what+": once more", now, w.tree(1))); r.Files > 0 {
			t.Errorf("%s: once more: %+v", x.what, r)
		}
		v, err := w.verifyBy(w.Process())
		must(t, err)
		for _, f := range v.Nodes[1].Findings {
			if strings.HasPrefix(string(f.Path), tree.MetaName) {
				t.Errorf("%s: %+v", x.what, f)
			}
		}
	}
}

// TestReplacedPath replaces what has a name too long for a number behind it, and what was once a file and is now a directory:
// all that was replaced is kept.
func TestReplacedPath(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	long := strings.Repeat("x", 254)
	w.WriteFile("/n1/"+long, []byte("good"), 0o600)
	w.WriteFile("/n1/sub/void/in", []byte("good"), 0o600)
	must(t, w.protect())
	was := w.trees()
	rot := func(p, text string) {
		info, err := w.Lstat(p)
		must(t, err)
		w.WriteFile(p, []byte(text), 0o600)
		w.SetTime(p, info.ModTime())
	}
	for i := range 12 {
		rot("/n1/"+long, fmt.Sprint("bad ", i))
		rot("/n1/plain", fmt.Sprint("bad plain ", i))
		if i == 4 {
			w.RemoveAll("/n1/sub/void")
			w.WriteFile("/n1/sub/void", []byte("void was a file"), 0o600)
		} else {
			rot("/n1/sub/void/in", fmt.Sprint("bad in ", i))
		}
		r, err := w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
		must(t, err, r.Incomplete(), diff("recovered", withoutTimes(was[1]), withoutTimes(w.tree(1))))
		for _, text := range []string{fmt.Sprint("bad ", i), fmt.Sprint("bad plain ", i), "void was a file", fmt.Sprint("bad in ", i)} {
			if i < 4 && text == "void was a file" || i == 4 && strings.HasPrefix(text, "bad in") {
				continue
			}
			if !holds(w, "/n1/.volley/"+store.ReplacedName, text) {
				t.Errorf("round %d: %q is not kept: %q", i, text, r.Replaced)
			}
		}
	}
}

// TestMountedErrors has calls on another file system fail: quotas and full disks.
func TestMountedErrors(t *testing.T) {
	t.Parallel()
	start := mountedWorld(t, disktest.Mount{})
	want := start.trees()
	w := start.clone()
	w.RemoveAll("/n1/m/d")
	w.Remove("/n1/m/f")
	w.Remove("/n1/here")
	for _, e := range []syscall.Errno{syscall.EDQUOT, syscall.ENOSPC, syscall.EACCES, syscall.EROFS, syscall.EPERM, syscall.EIO} {
		x := w.clone()
		p := x.Process()
		p.Deny("/n1/m", e, disktest.Growing...)
		r, err := x.recoverBy(p, RecoverOptions{})
		must(t, err)
		if p.Kill(); len(r.Unrecovered) == 0 {
			t.Fatalf("%v: %+v", e, r)
		}
		must(t, leftAlone(x, r, want))
		must(t, x.recover(), diff(e.Error(), withoutTimes(want[1]), withoutTimes(x.tree(1))))
	}
}

// TestLinkedSymlinks has several names of one symbolic link: they come back as links of their own.
func TestLinkedSymlinks(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	w.Link("/n1/link", "/n1/sub/again")
	must(t, w.protect(), w.whole())
	w.lose(0, 1)
	must(t, w.recover(), w.whole())
	for _, name := range []string{"/n1/link", "/n1/sub/again"} {
		if info, err := w.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
