package group

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/internal/verifyall"
)

// reads are the calls by which a run looks at what is there.
var reads = []string{"open", "read", "readdir", "lstat", "stat", "opendir", "readlink", "listxattr", "lock"}

// A reader is a verb at a group, of whose nodes one is lost or, with another content, rotten. It reports whether something
// is said to be whole that is not.
type reader struct {
	lost, rotten int // nodes; -1: none
	run          func(w *world, p *disktest.Process) (untrue bool, err error)
}

// readers are those of a group that had these trees.
func readers(was []string) map[string]reader {
	recovers := func(n int) func(*world, *disktest.Process) (bool, error) {
		return func(w *world, p *disktest.Process) (bool, error) {
			r, err := w.recoverBy(p, RecoverOptions{})
			return err == nil && r.Incomplete() == nil && diff("", was[n], w.tree(n)) != nil, err
		}
	}
	return map[string]reader{
		"protect": {-1, -1, func(w *world, p *disktest.Process) (bool, error) {
			_, err := w.protectBy(p, ProtectOptions{})
			return false, err
		}},
		"verify": {-1, 1, func(w *world, p *disktest.Process) (bool, error) {
			r, err := w.verifyBy(p)
			return err == nil && r.Intact, err
		}},
		"status": {-1, -1, func(w *world, p *disktest.Process) (bool, error) {
			_, err := w.statusBy(p)
			return false, err
		}},
		"recover":        {-1, 1, recovers(1)},
		"recover a node": {2, -1, recovers(2)},
	}
}

// TestUnreadable fails every read of every verb with each errno in turn, at one node: an error of reading is not an
// absence. The group stays what it was, at no older generation, no verb says that a node is whole which it has not read,
// and afterwards any node comes back.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	first := newWorld(3, 1)
	must(t, first.protect())
	first.Wait(1e9)
	must(t, first.protect())
	was := first.trees()
	for name, x := range readers(was) {
		start := first.clone()
		if x.rotten >= 0 {
			start.Overwrite("/n1/plain", 5, []byte("rot"), true)
		} else if x.lost >= 0 {
			start.lose(0, x.lost)
		}
		var list []disktest.Call
		for _, c := range start.Calls(func(p *disktest.Process) { x.run(start, p) }) {
			known := slices.ContainsFunc(list, func(o disktest.Call) bool { return o.Op == c.Op && o.Path == c.Path })
			if slices.Contains(reads, c.Op) && strings.HasPrefix(c.Path, "/n1") && !known {
				list = append(list, c)
			}
		}
		if len(list) == 0 {
			t.Errorf("%s reads nothing", name)
		}
		for i, c := range list {
			for j, errno := range []syscall.Errno{syscall.EACCES, syscall.EIO, syscall.ESTALE} {
				if (i+j)%verifyall.Pick(3, 1) > 0 {
					continue
				}
				what := fmt.Sprintf("%s, %s %s: %v", name, c.Op, c.Path, errno)
				w := start.clone()
				p := failing(w.Process(), &fs.PathError{Op: c.Op, Path: c.Path, Err: errno}, c.Op, c.Path)
				untrue, err := x.run(w, p)
				p.Kill()
				if untrue {
					t.Errorf("%s: it is said to be whole, and is not", what)
				}
				w.lose(0, max(0, x.lost, x.rotten)) // the error has gone, and so has a node: the one that lacks something
				w.stays(t, fmt.Sprintf("%s: %v", what, err), first, was)
			}
		}
	}
}

// stays recovers a group, which is then what another one is: at no older generation, and with these trees.
func (w *world) stays(t *testing.T, what string, first *world, was []string) {
	t.Helper()
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	if err != nil {
		t.Errorf("%s; afterwards: %v", what, err)
		return
	}
	m, failed := store.DecodeManifest([]byte(contentOf(first, "/n0/"+manifestPath(2))))
	now, wrong := store.DecodeManifest([]byte(contentOf(w, w.dirs[0]+"/"+manifestPath(r.Generation))))
	if failed != nil || wrong != nil || now.Group != m.Group || r.Generation < 2 || r.Incomplete() != nil {
		t.Errorf("%s; afterwards: generation %d, %v, %v", what, r.Generation, wrong, r.Incomplete())
	}
	for i := range w.dirs {
		if wrong := diff(what, was[i], w.tree(i)); wrong != nil {
			t.Error(wrong)
		}
	}
}

// TestOwnRecordsUnreadable has root protect, and the owner then run every verb, who may not read what root has written:
// none of them takes that for no protection.
func TestOwnRecordsUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	must(t, w.protect())
	before := w.everything()
	denied := func() *disktest.Process {
		p := w.Process()
		p.Hook = func(c disktest.Call) error {
			if c.Op == "open" && strings.Contains(c.Path, store.MetaPath(store.GenerationDir(2))) {
				return syscall.EACCES
			}
			return nil
		}
		return p
	}
	for name, verb := range map[string]func() error{
		"protect":   func() error { _, err := w.protectBy(denied(), ProtectOptions{}); return err },
		"forced":    func() error { _, err := w.protectBy(denied(), ProtectOptions{Force: true}); return err },
		"verify":    func() error { _, err := w.verifyBy(denied()); return err },
		"recover":   func() error { _, err := w.recoverBy(denied(), RecoverOptions{}); return err },
		"unprotect": func() error { _, err := w.unprotectBy(denied(), UnprotectOptions{Force: true}); return err },
	} {
		err := verb()
		if !IsInputError(err) || !strings.Contains(err.Error(), "cannot tell whether generation 2 is in force") || !strings.Contains(err.Error(), "/n1 (") || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, diff(name, before, w.everything()))
	}
	must(t, w.whole())
}

// TestReadOnlySource mounts a survivor for reading only: it counts, is locked as far as its lock can be opened, and what
// another node has lost comes back from it. What the node itself lacks is named.
func TestReadOnlySource(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	w.RemoveAll("/n0")
	w.MkdirAll("/n0", 0o755)
	w.Mount("/n0", disktest.Mount{})
	w.CopyTree("/n1", "/n0/x") // other files than those of node 1
	must(t, w.protect())
	must(t, w.whole()) // whose lock names a run that has ended
	was := w.trees()
	w.Remount("/n0", func(o *disktest.Mount) { o.ReadOnly = true })
	w.lose(0, 2)
	c := w.clone()
	must(t, c.recover())
	must(t, diff("node 2", was[2], c.tree(2)))
	v, err := c.verifyBy(c.Process())
	if err != nil || !v.Intact {
		t.Errorf("%+v, %v", v, err)
	}
	if err := c.protect(); err == nil || err.Error() != "/n0 cannot be written to: read-only file system" {
		t.Errorf("protect: %v", err)
	}
	// Where there is no lock, what changes meanwhile is noticed.
	c = w.clone()
	c.Remount("/n0", func(o *disktest.Mount) { o.ReadOnly = false })
	c.Remove("/n0/" + store.MetaPath(store.LockFile))
	c.Remount("/n0", func(o *disktest.Mount) { o.ReadOnly = true })
	must(t, c.clone().recover())
	p := c.Process()
	changed := false
	p.Hook = func(call disktest.Call) error {
		if !changed && call.Op == "chmod" && strings.HasPrefix(call.Path, "/n2/"+store.MetaPath(store.StageName)+"/") { // all is read
			changed = true
			c.Remount("/n0", func(o *disktest.Mount) { o.ReadOnly = false })
			c.AppendFile("/n0/x/plain", []byte("more"))
			c.Remount("/n0", func(o *disktest.Mount) { o.ReadOnly = true })
		}
		return nil
	}
	_, err = c.recoverBy(p, RecoverOptions{})
	if err == nil || !strings.Contains(err.Error(), "/n0 has changed meanwhile") {
		t.Errorf("changed meanwhile: %v", err)
	}
	if c.Exists("/n2/plain") {
		t.Error("something came back from what has changed")
	}
}

// TestMeta has everything of Volley's lie elsewhere: verbs write nothing in the directories of nodes, which are mounted for
// reading only, and what belongs to another group is refused.
func TestMeta(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	w.MkdirAll("/meta", 0o700)
	w.Mount("/meta", disktest.Mount{})
	w.Remount("/", func(o *disktest.Mount) { o.ReadOnly = true })
	before, plain := w.Tree("/", "meta"), w
	w = w.with(protection.Settings{Meta: "/meta"})
	must(t, w.protect(), w.protect(), w.whole())
	if r, err := plain.verifyBy(w.Process()); err != nil || r.Protected {
		t.Errorf("without meta: %+v, %v", r, err)
	}
	w.RemoveAll("/meta/node.1")
	if w.whole() == nil {
		t.Error("whole without what lay in /meta/node.1")
	}
	must(t, w.recover(), w.whole(), diff("a verb has written in a node", before, w.Tree("/", "meta")))
	w.Remount("/", func(o *disktest.Mount) { o.ReadOnly = false })
	for n, dir := range w.dirs {
		w.CopyTree(dir, fmt.Sprint("/other", n))
	}
	for want, dirs := range map[string][]string{
		"/meta/node.0 has what belongs to /n0, and /other0 was given": {"/other0", "/other1", "/other2"},
		"in the order in which they were protected":                   {"/n2", "/n1", "/n0"},
	} {
		w.dirs = dirs
		for _, err := range []error{w.protect(), w.recover()} {
			if !IsInputError(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: want %q", err, want)
			}
		}
	}
}
