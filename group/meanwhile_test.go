package group

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/transport"
)

// once does something before the first call of a kind.
func once(p *disktest.Process, op, path string, do func()) *disktest.Process {
	done := false
	p.Hook = func(c disktest.Call) error {
		if !done && c.Op == op && c.Path == path {
			done = true
			do()
		}
		return nil
	}
	return p
}

// TestTorn has a program write to a file each time it is read: it is protected torn, and so verify and recover say, which
// take it for changed, and not for damaged.
func TestTorn(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 1)
	must(t, w.protect())
	w.SetTime("/n1/big", w.Now())
	p, reads := w.Process(), 0
	p.Hook = func(c disktest.Call) error {
		if c.Op == "read" && c.Path == "/n1/big" {
			reads++
			w.Overwrite("/n1/big", 69_990, []byte{byte(reads)}, false)
			w.Overwrite("/n1/big", 3, []byte{byte(reads)}, false)
		}
		return nil
	}
	r, err := w.protectBy(p, ProtectOptions{})
	must(t, err)
	same(t, "torn", r.Torn, []string{"/n1/big"})
	named := func(notes []string) bool {
		return slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "torn, ") && strings.Contains(n, "/n1/big") })
	}
	v, err := w.verifyBy(w.Process())
	if must(t, err, w.tidy(2)); !named(v.Notes) || v.Nodes[1].Status != Changed {
		t.Errorf("%+v", v)
	}
	before := w.trees()
	back, err := w.recoverBy(w.Process(), RecoverOptions{})
	if must(t, err); !named(back.Notes) {
		t.Errorf("%+v", back)
	}
	must(t, diff("recovered", before[1], w.tree(1)), w.protect())
	if v, err := w.verifyBy(w.Process()); err != nil || named(v.Notes) {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestUndisturbed runs recover on a group that is whole: it writes nothing but its locks.
func TestUndisturbed(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	w.WriteFile("/n1/new", []byte("new"), 0o600)
	for _, c := range w.Calls(func(p *disktest.Process) { _, err := w.recoverBy(p, RecoverOptions{}); must(t, err) }) {
		if c.Writes && c.Op != "lock" && c.Op != "unlock" && c.Op != "syncdir" {
			t.Errorf("%v", c)
		}
	}
}

// A ledger has what is open.
type ledger struct {
	disk.Disk
	open sync.Map
}

func (l *ledger) Open(path string) (disk.Dir, error) {
	d, err := l.Disk.Open(path)
	if err != nil {
		return nil, err
	}
	l.open.Store(d, path)
	return &ledgerDir{d, l}, nil
}

type ledgerDir struct {
	disk.Dir
	l *ledger
}

func (d *ledgerDir) Close() error { d.l.open.Delete(d.Dir); return d.Dir.Close() }

func (d *ledgerDir) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f, err := d.Dir.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	d.l.open.Store(f, f.Name())
	return &ledgerFile{f, d.l}, nil
}

type ledgerFile struct {
	disk.File
	l *ledger
}

func (f *ledgerFile) Close() error { f.l.open.Delete(f.File); return f.File.Close() }

// TestClosed checks that verbs close what they open, whether they succeed or fail at a call.
func TestClosed(t *testing.T) {
	t.Parallel()
	changed := newWorld(3, 1)
	must(t, changed.protect())
	damaged := changed.clone()
	change(changed, "/n1")
	damaged.Overwrite("/n1/big", 5, []byte("rot"), true)
	damaged.Overwrite("/n1/.volley/generation.1/parity", 5, []byte("rot"), true)
	damaged.Remove("/n1/link")
	verbs := map[string]func(ctx context.Context, g *Group) (any, error){
		"protect": func(ctx context.Context, g *Group) (any, error) { return g.Protect(ctx, ProtectOptions{Tolerate: 1}) },
		"recover": func(ctx context.Context, g *Group) (any, error) { return g.Recover(ctx, RecoverOptions{}) },
		"status":  func(ctx context.Context, g *Group) (any, error) { return g.Status(ctx) },
		"verify":  func(ctx context.Context, g *Group) (any, error) { return g.Verify(ctx, VerifyOptions{}) },
	}
	for name, verb := range verbs {
		run := func(w *world, d disk.Disk) error {
			o := session.Setup{Settings: protection.Settings{Timeout: time.Minute, Memory: 1 << 20}, Disk: d}
			_, err := onRanks(w, func(ctx context.Context, t transport.Transport, dirs []string) (any, error) {
				return verb(ctx, overSetup(t, dirs, o))
			})
			return err
		}
		before := damaged
		if name == "protect" {
			before = changed
		}
		last := map[string]int{"none": -1} // of its kind, when most is open
		for _, c := range before.Calls(func(p *disktest.Process) { must(t, run(before.clone(), p)) }) {
			kind, _, _ := strings.Cut(path.Base(c.Path), "-") // without what is made up
			last[c.Op+" "+kind] = c.N
		}
		for kind, n := range last {
			w := before.clone()
			p := w.Process()
			if n >= 0 {
				p.FailAt(n, syscall.EIO)
			}
			l := &ledger{Disk: p}
			err := run(w, l)
			l.open.Range(func(_, path any) bool {
				t.Errorf("%s, %s fails: %v: %v is open", name, kind, err, path)
				return true
			})
		}
	}
}

// TestCancelled ends verbs by their context, before they begin and at their last call: each says so.
func TestCancelled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "/n1/.volley/pending.1"} {
		w := newWorld(2, 1)
		ctx, cancel := context.WithCancel(t.Context())
		p := w.Process()
		if name == "" {
			cancel()
		}
		_, err := onRanks(w, func(_ context.Context, x transport.Transport, dirs []string) (any, error) {
			return overSetup(x, dirs, w.options(once(p, "rename", name, cancel), protection.Settings{})).Protect(ctx, ProtectOptions{Tolerate: 1})
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%q: %v", name, err)
		}
		cancel()
	}
}

// TestRecoverSwapped has the user of a node put another file, or directory, in the place of what gets an
// owner, a mode or a time, at each of the calls that do: these go to nothing else.
func TestRecoverSwapped(t *testing.T) {
	t.Parallel()
	const stage = "/n1/.volley/" + store.StageName
	before := newWorld(3, 1)
	must(t, before.protect())
	before.MkdirAll("/n1/theirs/dir", 0o711)
	before.Chmod("/n1/theirs/dir", 0o701)
	before.WriteFile("/n1/theirs/file", []byte("theirs"), 0o611)
	before.SetTime("/n1/theirs/file", time.Unix(1, 0))
	for _, name := range []string{"big", "sub", "closed/inner", "link", "nothing"} {
		before.RemoveAll("/n1/" + name)
	}
	for _, c := range before.Calls(func(p *disktest.Process) {
		_, err := before.clone().recoverBy(p, RecoverOptions{})
		must(t, err)
	}) {
		if !slices.Contains([]string{"chown", "chmod", "settime", "setxattr"}, c.Op) || !strings.HasPrefix(c.Path, "/n1/") {
			continue
		}
		w := before.clone()
		_, err := w.recoverBy(once(w.Process(), c.Op, c.Path, func() {
			at := c.Path
			info, err := w.Lstat(at)
			must(t, err)
			theirs := "/n1/theirs/file"
			if info.IsDir() {
				theirs = "/n1/theirs/dir"
			}
			if strings.HasPrefix(at, stage) { // in which nobody else can write
				at = stage
				w.Rename(at, "/n1/moved")
				w.MkdirAll(at, 0o700)
				at = c.Path
			} else {
				w.Rename(at, "/n1/moved")
			}
			w.Rename(theirs, at)
		}), RecoverOptions{})
		tree := w.Tree("/n1")
		if !regexp.MustCompile(`(?m) -rw---x--x 1\.0+ 6 `).MatchString(tree) || !regexp.MustCompile(`(?m) drwx-----x `).MatchString(tree) {
			t.Errorf("%v: %v\n%s", c, err, tree)
		}
	}
}

// TestProtectSwapped has the user of a node put another directory in the place of one, while the
// files in it are read, and take it back: what is in the other's files does not get the owner and
// mode of what was there.
func TestProtectSwapped(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	w.MkdirAll("/n1/theirs", 0o755)
	w.WriteFile("/n1/theirs/y", random(rand.New(rand.NewPCG(1, 2)), 200), 0o755)
	w.Chmod("/n1/sub/deep/y", 0o755|fs.ModeSetuid)
	want := w.tree(1)
	swap := func(to, from string) {
		w.Rename("/n1/sub/deep", to)
		w.Rename("/n1/theirs", "/n1/sub/deep")
		w.Rename(to, from)
	}
	p, swapped := w.Process(), false
	p.Hook = func(c disktest.Call) error {
		switch {
		case !swapped && c.Op == "open" && c.Path == "/n1/sub/deep/y":
			swapped = true
			swap("/n1/aside", "/n1/theirs")
		case swapped && c.Op == "sync" && c.Path == "/n1/.volley/pending.2/parity":
			swap("/n1/aside", "/n1/theirs")
		}
		return nil
	}
	_, err := w.protectBy(p, ProtectOptions{})
	must(t, err)
	mine := contentOf(w, "/n1/sub/deep/y")
	w.RemoveAll("/n1")
	must(t, w.recover())
	info, err := w.Lstat("/n1/sub/deep/y")
	if err == nil && info.Mode()&fs.ModeSetuid != 0 && contentOf(w, "/n1/sub/deep/y") != mine {
		t.Errorf("protected was\n%s\nand there\n%s", w.tree(1), want)
	}
}
