package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// TestProtectMeanwhile changes files before they are read, and after, while they are protected: what was read last comes
// back, and what has gone does not.
func TestProtectMeanwhile(t *testing.T) {
	t.Parallel()
	was := contentOf(newWorld(2, 1), "/n1/plain")
	for _, x := range []struct {
		what string
		do   func(w *world)
		want string // that /n1/plain has, when it comes back
		gone []string
		left bool // verify finds what has come behind what was protected
	}{
		{"nothing", func(*world) {}, was, nil, false},
		{"longer", func(w *world) { w.AppendFile("/n1/plain", []byte("more")) }, was, nil, true},
		{"overwritten", func(w *world) { w.setBack("/n1/plain", 0, []byte("x")) }, "x" + was[1:], nil, false},
		{"overwritten, and longer", func(w *world) { w.WriteFile("/n1/plain", []byte("x"+was[1:]+"more"), 0o600) }, "x" + was[1:], nil, true},
		{"shorter", func(w *world) { w.WriteFile("/n1/plain", []byte(was[:10]), 0o600) }, was[:10], nil, false},
		{"empty", func(w *world) { w.WriteFile("/n1/plain", nil, 0o600) }, "", nil, false},
		{"another file", func(w *world) { w.WriteFile("/n1/new", []byte("new"), 0o600); w.Rename("/n1/new", "/n1/plain") }, "new", nil, false},
		{"another file, longer", func(w *world) {
			w.WriteFile("/n1/new", []byte(was+was), 0o600)
			w.Rename("/n1/new", "/n1/plain")
		}, was, nil, true},
		{"gone", func(w *world) { w.Remove("/n1/plain") }, "", []string{"/n1/plain"}, false},
		{"a directory", func(w *world) { w.Remove("/n1/plain"); w.MkdirAll("/n1/plain", 0o755) }, "", []string{"/n1/plain"}, false},
		{"all that is in a directory", func(w *world) { w.RemoveAll("/n1/sub") }, was, []string{"/n1/sub/deep/y", "/n1/sub/x", "/n1/twin"}, true},
		{"one name is another file", func(w *world) {
			w.WriteFile("/n1/new", []byte("new"), 0o600)
			w.Rename("/n1/new", "/n1/sub/deep/y")
		}, was, []string{"/n1/twin"}, false},
		{"another time", func(w *world) { w.SetTime("/n1/plain", w.Now()) }, was, nil, false},
		{"another mode", func(w *world) { w.Chmod("/n1/plain", 0o600); w.Chmod("/n1/sub", 0o700) }, was, nil, false},
		{"another target", func(w *world) { w.Remove("/n1/link"); w.Symlink("big", "/n1/link") }, was, nil, false},
		{"data in what was empty", func(w *world) { w.AppendFile("/n1/empty", []byte("more")) }, was, nil, true},
		{"an empty one is a directory", func(w *world) { w.Remove("/n1/empty"); w.MkdirAll("/n1/empty", 0o700) }, was, nil, true},
		{"new ones", func(w *world) { w.WriteFile("/n1/another", nil, 0o600); w.WriteFile("/n1/zzz", nil, 0o600) }, was, nil, false},
	} {
		for _, at := range [][2]string{{"open", "/n1/plain"}, {"read", "/n1/plain"}, {"write", "/n1/.volley/pending.2/parity"}} {
			what := fmt.Sprint(x.what, " at ", at)
			w := newWorld(2, 1)
			must(t, w.protect())
			for _, name := range []string{"/n1/plain", "/n1/sub/x", "/n1/sub/deep/y"} {
				w.SetTime(name, w.Now().Add(-time.Minute))
			}
			r, err := w.protectBy(once(w.Process(), at[0], at[1], func() { x.do(w) }), ProtectOptions{Full: true})
			if err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			same(t, what+": gone", r.Vanished, x.gone)
			same(t, what+": torn", r.Torn, nil)
			must(t, w.tidy(2))
			if err := w.whole(); (err != nil) != x.left {
				t.Errorf("%s: %v", what, err)
			}
			w.lose(1, 1)
			must(t, w.recover())
			must(t, w.whole())
			is, err := w.ReadFile("/n1/plain")
			if x.gone != nil && x.gone[0] == "/n1/plain" {
				if err == nil {
					t.Errorf("%s: it is back", what)
				}
			} else if err != nil || string(is) != x.want {
				t.Errorf("%s: %v, %d bytes came back, want %d", what, err, len(is), len(x.want))
			}
			must(t, w.protect())
			must(t, w.whole())
		}
	}
}

// TestListedMeanwhile has a file get longer, and entries without data go, after protect has listed the nodes and long before
// it makes its generation: that is no damage, and the next run takes it in.
func TestListedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world){
		"longer": func(w *world) { w.AppendFile("/n1/plain", []byte("more")) },
		"gone":   func(w *world) { w.Remove("/n1/d/none"); w.Remove("/n1/d/link"); w.Remove("/n1/d/sub") },
	} {
		w := newWorld(4, 1)
		w.MkdirAll("/n1/d/sub", 0o755)
		w.WriteFile("/n1/d/none", nil, 0o644)
		w.Symlink("none", "/n1/d/link")
		w.Wait(time.Hour)
		p, changed := w.Process(), false
		p.Hook = func(c disktest.Call) error {
			if c.Op == "mkdir" && c.Path == "/n1/.volley/pending.1" && !changed {
				changed = true
				change(w)
				w.Wait(time.Second)
			}
			return nil
		}
		_, err := w.protectBy(p, ProtectOptions{})
		must(t, err)
		v, err := w.verifyBy(w.Process())
		must(t, err)
		if !changed || v.Nodes[1].Status != Changed {
			t.Errorf("%s: %+v", name, v)
		}
		must(t, w.protect())
		must(t, w.whole())
	}
}

// TestTorn has a program write to a file each time it is read: it is protected torn, and so verify and recover say, which
// take it for changed, and not for damaged.
func TestTorn(t *testing.T) {
	t.Parallel()
	for _, goes := range []bool{false, true} {
		w := newWorld(4, 1)
		must(t, w.protect())
		w.SetTime("/n1/big", w.Now())
		p, reads := w.Process(), 0
		p.Hook = func(c disktest.Call) error {
			if c.Op != "read" || c.Path != "/n1/big" {
				return nil
			}
			reads++
			w.Overwrite("/n1/big", 69_990, []byte{byte(reads)}, false)
			w.Overwrite("/n1/big", 3, []byte{byte(reads)}, false)
			return nil
		}
		if goes {
			at, calls := p.Hook, 0
			p.Hook = func(c disktest.Call) error {
				if strings.HasPrefix(c.Path, "/n1/.volley/pending.2/record") && calls == 0 {
					calls++
					w.Remove("/n1/big")
				}
				return at(c)
			}
		}
		r, err := w.protectBy(p, ProtectOptions{Strict: true})
		torn := new(StrictError)
		if !errors.As(err, &torn) || torn.ExitCode() != 3 || r == nil {
			t.Fatalf("%v, %+v", err, r)
		}
		same(t, "torn", r.Torn, []string{"/n1/big"})
		must(t, w.tidy(2))
		v, err := w.verifyBy(w.Process())
		must(t, err)
		named := func(notes []string) bool {
			return slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "torn, ") && strings.Contains(n, "/n1/big") })
		}
		if !named(v.Notes) || !goes && v.Nodes[1].Status != Changed {
			t.Errorf("%+v", v)
		}
		before := w.trees()
		back, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		if !named(back.Notes) {
			t.Errorf("%+v", back)
		}
		if !goes {
			must(t, diff("recovered", before[1], w.tree(1)))
			must(t, w.protect())
			if r, err := w.verifyBy(w.Process()); err != nil || named(r.Notes) {
				t.Errorf("%+v, %v", r, err)
			}
			w.lose(1, 1)
			must(t, w.recover())
		}
		must(t, w.whole())
	}
}

// TestReplaced has a program put another file in the place of one, some times or each time, before it is opened or read:
// what comes back is one of them, or the file is named and not protected. It never is what none of them was.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"open", "read"} {
		for times := range 12 {
			for _, goes := range []bool{false, true} {
				what := fmt.Sprintf("%d times at %s, then it goes: %v", times, op, goes)
				w := newWorld(3, 1)
				must(t, w.protect())
				versions := []string{contentOf(w, "/n1/big")}
				p := w.Process()
				p.Hook = func(c disktest.Call) error {
					if c.Op != op || c.Path != "/n1/big" {
						return nil
					}
					if len(versions) > times {
						if goes && w.Exists("/n1/big") {
							w.Remove("/n1/big")
						}
						return nil
					}
					text := strings.Repeat(string(rune('a'+len(versions))), 70_000)
					versions = append(versions, text)
					w.WriteFile("/another", []byte(text), 0o600)
					w.Rename("/another", "/n1/big")
					return nil
				}
				r, err := w.protectBy(p, ProtectOptions{Full: true})
				if err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				must(t, w.tidy(2))
				w.lose(1, 1)
				must(t, w.recover())
				if is, err := w.ReadFile("/n1/big"); err != nil {
					same(t, what+": gone", r.Vanished, []string{"/n1/big"})
				} else if !slices.Contains(versions, string(is)) {
					t.Errorf("%s: none of %d versions comes back: %q…, torn %q", what, len(versions), is[:8], r.Torn)
				}
				must(t, w.whole())
			}
		}
	}
}

// TestRecoverMeanwhile changes what recover has found right, before it uses it: it keeps nothing of what comes of that, and
// brings back the rest.
func TestRecoverMeanwhile(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what string
		do   func(w *world)
		want string // "": it does not matter
	}{
		{"nothing", func(*world) {}, ""},
		{"the rest of the file", func(w *world) { w.Overwrite("/n1/big", 60_000, []byte("rot"), true) }, "/n1/big cannot be made: data that it comes of has changed meanwhile"},
		{"the sources", func(w *world) {
			for _, dir := range []string{"/n0", "/n2", "/n3"} {
				w.Overwrite(dir+"/big", 5, []byte("rot"), true)
				w.Overwrite(dir+"/.volley/generation.1/parity", 5, []byte("rot"), true)
				w.Overwrite(dir+"/.volley/generation.1/parity", 40_000, []byte("rot"), true)
			}
		}, "cannot be made: data that it comes of has changed meanwhile; run again; and 1 more"},
		{"the rest of the parity", func(w *world) { w.Overwrite("/n1/.volley/generation.1/parity", 40_000, []byte("rot"), true) }, "/n1/.volley/generation.1/parity cannot be made: data"},
		{"no parity any more", func(w *world) { w.Remove("/n1/.volley/generation.1/parity") }, "no such file"},
	} {
		w := newWorld(4, 2)
		must(t, w.protect())
		was := w.trees()
		w.Overwrite("/n1/big", 5, []byte("rot"), true)
		w.Overwrite("/n1/.volley/generation.1/parity", 5, []byte("rot"), true)
		damaged := w.tree(1)
		r, err := w.recoverBy(once(w.Process(), "create", "/n1/.volley/tmp-stage/parity", func() { x.do(w) }), RecoverOptions{})
		if err == nil {
			err = r.Incomplete()
		}
		if x.want == "" {
			must(t, err)
			must(t, diff(x.what, was[1], w.tree(1)))
			continue
		}
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v: want %q", x.what, err, x.want)
		}
		if slices.ContainsFunc(w.meta(1), store.Leftover) {
			t.Errorf("%s: %q is left", x.what, w.meta(1))
		}
		if x.what == "the sources" { // now too much is damaged
			must(t, diff(x.what, damaged, w.tree(1)))
			continue
		}
		must(t, w.recover())
		must(t, diff(x.what, was[1], w.tree(1)))
	}
}

// TestParityMeanwhile makes parity that is gone again, of data that a program writes to meanwhile: nobody takes what comes of
// it for all of the parity.
func TestParityMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	must(t, w.protect())
	was := w.clone()
	w.Remove("/n1/.volley/generation.1/parity")
	r, err := w.recoverBy(once(w.Process(), "create", "/n1/.volley/tmp-stage/parity", func() {
		for _, dir := range []string{"/n0", "/n2", "/n3"} {
			w.Overwrite(dir+"/big", 5, []byte("new"), false)
		}
	}), RecoverOptions{})
	must(t, err)
	same(t, "left", r.Unrecovered, []string{"/n1/.volley/generation.1/parity cannot be made: data that it comes of has changed meanwhile; run again"})
	for _, glance := range []bool{true, false} {
		if v, err := w.examineBy(w.Process(), glance); err != nil || v.Nodes[1].Status != "damaged" {
			t.Errorf("glance %v: %+v, %v", glance, v, err)
		}
	}
	for _, dir := range []string{"/n0", "/n2", "/n3"} {
		w.WriteFile(dir+"/big", []byte(contentOf(was, dir+"/big")), 0o600)
		info, err := was.Lstat(dir + "/big")
		must(t, err)
		w.SetTime(dir+"/big", info.ModTime())
	}
	must(t, w.recover())
	must(t, w.whole())
}

// TestRecoverBesideWriter loses a node, whose files a program's changes keep from coming back all, and has the program
// write on while recover makes what does: what that spoils is left to the next run, and all else comes back.
func TestRecoverBesideWriter(t *testing.T) {
	t.Parallel()
	w := &world{Machine: disktest.NewMachine(), r: 2, ranks: 1, dirs: []string{"/n0", "/n1", "/n2", "/n3"}}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dir := range w.dirs {
		w.MkdirAll(dir, 0o755)
		for i := range 5 {
			w.WriteFile(fmt.Sprint(dir, "/f", i), random(rng, 128<<10), 0o644) // a row
		}
	}
	w.Wait(time.Hour)
	must(t, w.protect())
	was := w.clone()
	for _, name := range []string{"/n0/f0", "/n1/f0"} {
		w.Overwrite(name, 7, random(rng, 100<<10), false)
	}
	w.RemoveAll("/n3")
	p, made := w.Process(), 0
	p.Hook = func(c disktest.Call) error {
		if c.Op == "create" && c.Path == "/n3/.volley/tmp-stage/parity" {
			if made++; made == 2 { // of the run that gives up what does not come back
				w.Overwrite("/n2/f2", 7, random(rng, 100<<10), false)
			}
		}
		return nil
	}
	recovered := func(p *disktest.Process, left string, back ...string) {
		t.Helper()
		r, err := w.recoverBy(p, RecoverOptions{})
		must(t, err)
		if is := strings.Join(r.Unrecovered, "\n"); !regexp.MustCompile("^(?s)" + left + "$").MatchString(is) {
			t.Errorf("left is %s", is)
		}
		for _, name := range back {
			if contentOf(w, "/n3/"+name) != contentOf(was, "/n3/"+name) {
				t.Errorf("%s did not come back", name)
			}
		}
	}
	recovered(p, `/n3/.volley/generation.1/parity: too many nodes[^\n]*\n/n3/f2 cannot be made: data that it comes of has changed meanwhile; run again`, "f0", "f1", "f3", "f4")
	if v, err := w.statusBy(w.Process()); err != nil || v.Nodes[3].Status != "damaged" || made != 2 {
		t.Errorf("%+v, %v, made %d times", v, err, made)
	}
	recovered(w.Process(), `/n3/.volley/generation.1/parity: too many nodes[^\n]*`, "f0", "f1", "f2", "f3", "f4")
}

// TestExamineMeanwhile has a program write to a file, replace it or remove it before each call to the disk by which a verb
// compares a node: that is no damage, and no verb brings back what was there.
func TestExamineMeanwhile(t *testing.T) {
	t.Parallel()
	before := newWorld(3, 1).ordered()
	before.deletes = true
	must(t, before.protect())
	before.WriteFile("/n1/theirs", []byte("another file"), 0o600)
	before.Overwrite("/n0/plain", 5, []byte("rot"), true) // or recover would write nothing
	examine := func(do func(context.Context, *Group) (*VerifyReport, error)) func(w *world, p *disktest.Process) []NodeReport {
		return func(w *world, p *disktest.Process) []NodeReport {
			r, err := overRanks(w, p, do)
			must(t, err)
			return r.Nodes
		}
	}
	recovers := func(o RecoverOptions) func(w *world, p *disktest.Process) []NodeReport {
		return func(w *world, p *disktest.Process) []NodeReport {
			r, err := w.recoverBy(p, o)
			must(t, err)
			return r.Nodes
		}
	}
	for verb, run := range map[string]func(w *world, p *disktest.Process) []NodeReport{
		"verify": examine(func(ctx context.Context, g *Group) (*VerifyReport, error) { return g.Verify(ctx, VerifyOptions{}) }),
		"verify --part": examine(func(ctx context.Context, g *Group) (*VerifyReport, error) {
			return g.Verify(ctx, VerifyOptions{Part: 1, Parts: 2})
		}),
		"recover":        recovers(RecoverOptions{}),
		"recover --file": recovers(RecoverOptions{Files: []string{"*"}}),
	} {
		calls := before.Calls(func(p *disktest.Process) {
			run(before.clone(), p)
		})
		for what, do := range map[string]func(w *world){
			"overwritten": func(w *world) { w.Overwrite("/n1/big", 7, []byte("new"), false) },
			"replaced":    func(w *world) { w.Rename("/n1/theirs", "/n1/big") },
			"shorter":     func(w *world) { w.WriteFile("/n1/big", []byte("short"), 0o600) },
			"removed":     func(w *world) { w.Remove("/n1/big") },
		} {
			if what == "removed" && verb == "recover --file" {
				continue // which brings it back
			}
			tried := 0
			for _, c := range calls {
				if c.Path != "/n1" && c.Path != "/n1/big" {
					continue
				}
				w, want := before.clone(), []byte(nil)
				p := w.Process()
				p.CallAt(c.N, func() {
					do(w)
					want, _ = w.ReadFile("/n1/big")
					tried++
				})
				for _, f := range run(w, p)[1].Findings {
					if f.Path == "big" && f.Kind != Changed && f.Kind != Deleted {
						t.Errorf("%s, %s before %v: %+v", verb, what, c, f)
					}
				}
				if is, _ := w.ReadFile("/n1/big"); !bytes.Equal(is, want) {
					t.Errorf("%s, %s before %v: it is brought back", verb, what, c)
				}
			}
			if tried == 0 {
				t.Errorf("%s, %s: nothing was tried", verb, what)
			}
		}
	}
}

// TestReplacedAtOpen has a program replace a file just as recover opens it: the disk does not fail, and its new file stays.
func TestReplacedAtOpen(t *testing.T) {
	t.Parallel()
	for _, files := range [][]string{nil, {"*"}} {
		w := newWorld(3, 1).ordered()
		must(t, w.protect())
		w.Overwrite("/n0/plain", 5, []byte("rot"), true)
		w.WriteFile("/n1/theirs", []byte("theirs"), 0o600)
		p, replaced := w.Process(), false
		p.Hook = func(c disktest.Call) error {
			if replaced || c.Op != "open" || c.Path != "/n1/big" {
				return nil
			}
			replaced = true
			w.Rename("/n1/theirs", "/n1/big")
			return &fs.PathError{Op: "open", Path: c.Path, Err: errors.New("has been replaced meanwhile")} // as package disk says it
		}
		r, err := w.recoverBy(p, RecoverOptions{Files: files})
		must(t, err)
		must(t, r.Incomplete())
		if is := contentOf(w, "/n1/big"); is != "theirs" || !replaced || !slices.Contains(r.Kept, "/n1/big") {
			t.Errorf("%v: %q, %+v", files, is, r)
		}
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
	// A directory whose mode cannot be set, and a file system without links, stop nothing.
	w.Remove("/n1/sub/x")
	r, err := w.recoverBy(failing(w.Process(), syscall.EPERM, "chmod", "/n1/sub"), RecoverOptions{})
	must(t, err)
	same(t, "another user's", r.Notes, []string{"/n1/sub: mode not restored: operation not permitted"})
	w.WriteFile("/n1/plain", []byte("mine"), 0o600)
	r, err = w.recoverBy(failing(w.Process(), syscall.EPERM, "link", "/n1/plain"), RecoverOptions{Revert: protection.Edits{Changed: true}})
	must(t, err)
	if len(r.Replaced) != 1 || contentOf(w, string(r.Replaced[0])) != "mine" {
		t.Errorf("%+v", r)
	}
	must(t, w.whole())
	// Verify needs no lock where it cannot write.
	w.Remount("/", func(o *disktest.Mount) { o.ReadOnly = true })
	v, err := w.verifyBy(w.Process())
	if err != nil || !v.Intact {
		t.Errorf("verify: %+v, %v", v, err)
	}
	before := w.Tree("/")
	if err := w.protect(); err == nil || !strings.Contains(err.Error(), "/n0 cannot be written to: ") || before != w.Tree("/") {
		t.Errorf("protect: %v", err)
	}
}

// TestUnreadStale rolls a node back, and has the disk not give what it had then: nobody knows
// which of its files are stale, and none is touched.
func TestUnreadStale(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"generation.1/manifest.json", "generation.1/record"} {
		w := newWorld(4, 2)
		must(t, w.protect())
		w.CopyTree("/n1", "/old")
		w.AppendFile("/n1/plain", []byte("more"))
		must(t, w.protect())
		w.RemoveAll("/n1")
		w.Rename("/old", "/n1")
		before := w.tree(1)
		p := failing(w.Process(), syscall.EIO, "open", "/n1/.volley/"+name)
		r, err := w.verifyBy(p)
		must(t, err)
		if r.Nodes[1].Status != Failing {
			t.Errorf("%s: %+v", name, r.Nodes[1])
		}
		rec, err := w.recoverBy(p, RecoverOptions{})
		must(t, err)
		must(t, diff(name, before, w.tree(1)))
		if rec.Incomplete() == nil || !strings.HasPrefix(rec.Incomplete().Error(), "not everything is recovered: /n1 cannot be read: ") {
			t.Errorf("%s: %+v", name, rec)
		}
		// Of a node that has the generation in force it does not matter.
		w.MkdirAll("/n2/.volley/generation.1", 0o700)
		w.WriteFile("/n2/.volley/generation.1/manifest.json", nil, 0o600)
		r, err = w.verifyBy(failing(w.Process(), syscall.EIO, "open", "/n2/.volley/generation.1/manifest.json"))
		must(t, err)
		if r.Nodes[2].Status != Intact || r.Nodes[1].Status != Stale {
			t.Errorf("%s: %+v", name, r.Nodes)
		}
	}
}

// A ledger counts what is open, by path.
type ledger struct {
	disk.Disk
	mu   sync.Mutex
	open map[string]int
}

func (l *ledger) count(path string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[path] += n
}

func (l *ledger) left() (list []string) {
	for path, n := range l.open {
		if n != 0 {
			list = append(list, fmt.Sprint(path, " ", n))
		}
	}
	return list
}

func (l *ledger) Open(path string) (disk.Dir, error) {
	d, err := l.Disk.Open(path)
	if err != nil {
		return nil, err
	}
	l.count(path, 1)
	return &ledgerDir{d, l, path}, nil
}

type ledgerDir struct {
	disk.Dir
	l    *ledger
	path string
}

func (d *ledgerDir) Close() error { d.l.count(d.path, -1); return d.Dir.Close() }

func (d *ledgerDir) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f, err := d.Dir.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	d.l.count(f.Name(), 1)
	return &ledgerFile{f, d.l, f.Name(), false}, nil
}

type ledgerFile struct {
	disk.File
	l      *ledger
	path   string
	closed bool
}

func (f *ledgerFile) Close() error {
	if !f.closed {
		f.closed = true
		f.l.count(f.path, -1)
	}
	return f.File.Close()
}

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
	run := func(w *world, verb string, d disk.Disk) error {
		o := session.Setup{Settings: protection.Settings{Timeout: time.Minute, Memory: 1 << 20}, Disk: d}
		_, err := onRanks(w, func(ctx context.Context, t transport.Transport, dirs []string) (any, error) {
			switch g := overSetup(t, dirs, o); verb {
			case "protect":
				return g.Protect(ctx, ProtectOptions{Tolerate: 1})
			case "recover":
				return g.Recover(ctx, RecoverOptions{})
			case "status":
				return g.Status(ctx)
			default:
				return g.Verify(ctx, VerifyOptions{})
			}
		})
		return err
	}
	for _, x := range []struct {
		w    *world
		verb string
	}{{changed, "protect"}, {damaged, "recover"}, {damaged, "verify"}, {damaged, "status"}} {
		calls := x.w.Calls(func(p *disktest.Process) { must(t, run(x.w.clone(), x.verb, p)) })
		last := map[string]int{"none": -1} // of its kind, when most is open
		for _, c := range calls {
			name, _, _ := strings.Cut(path.Base(c.Path), "-") // without what is made up
			last[c.Op+" "+name] = c.N
		}
		for what, n := range last {
			c := x.w.clone()
			p := c.Process()
			if n >= 0 {
				p.FailAt(n, syscall.EIO)
			}
			l := &ledger{Disk: p, open: map[string]int{}}
			err := run(c, x.verb, l)
			if list := l.left(); list != nil {
				t.Errorf("%s, %s fails: %v: %q are open", x.verb, what, err, list)
			}
		}
	}
}

// TestRottenDigest lets a file rot, and asks for another digest, for which it is read anew: it is named, and protected as
// it is only by force.
func TestRottenDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	must(t, w.protect())
	w.Overwrite("/n2/sub/x", 1, []byte("rot"), true)
	for _, to := range []string{BLAKE3, SHA256} {
		input := new(protection.RefusedError)
		if _, err := w.protectBy(w.Process(), ProtectOptions{Digest: to, Full: true}); !errors.As(err, &input) || input.Option != protection.OptionForce || !strings.Contains(err.Error(), "/n2/sub/x is damaged") {
			t.Errorf("%s: %v", to, err)
		}
	}
	_, err := w.protectBy(w.Process(), ProtectOptions{Digest: BLAKE3, Force: true})
	must(t, err)
	must(t, w.whole())
}

// TestTooMuch damages more of some blocks than R allows: what needs these is left as it is, and
// named, and the rest comes back.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 1)
	for n, dir := range w.dirs { // a file in each of three chunks, and in two rows
		for i := range 6 {
			w.WriteFile(fmt.Sprint(dir, "/part", i), bytes.Repeat([]byte{byte(n + i), 7, 9}, store.UsualBlock/3), 0o600)
		}
	}
	must(t, w.protect())
	was := map[string]string{}
	rot := func(path string) {
		was[path] = contentOf(w, path)
		w.Overwrite(path, 5, []byte("rot"), true)
	}
	for i := range 6 {
		rot(fmt.Sprint("/n1/part", i))
	}
	for i := range 3 {
		rot(fmt.Sprint("/n2/part", i))
	}
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err)
	left := 0
	for path, text := range was {
		named := slices.Contains(r.Unrecovered, path+": too many nodes are lost, damaged or changed in some of its blocks")
		if named {
			left++
		}
		if back := contentOf(w, path) == text; back == named {
			t.Errorf("%s: is back %v, and is named %v", path, back, named)
		}
	}
	if left == 0 || left != len(r.Unrecovered) || r.Files != len(was)-left || r.Files == 0 || r.Incomplete() == nil {
		t.Errorf("%d of %d files are left: %+v", left, len(was), r)
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
	// An error that came first is the one.
	w := newWorld(2, 1)
	ctx, cancel := context.WithCancel(t.Context())
	p := w.Process()
	p.Hook = func(c disktest.Call) error {
		if c.Op == "rename" && c.Path == "/n1/.volley/pending.1" {
			cancel()
			return syscall.EIO
		}
		return nil
	}
	if _, err := onRanks(w, func(_ context.Context, x transport.Transport, dirs []string) (any, error) {
		return overSetup(x, dirs, w.options(p, protection.Settings{})).Protect(ctx, ProtectOptions{Tolerate: 1})
	}); !errors.Is(err, syscall.EIO) {
		t.Errorf("an error, and then it is cancelled: %v", err)
	}
}

// TestLoad looks at a node that has the manifest twice, committed and pending, and other leftovers.
func TestLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1)
	must(t, w.protect())
	for _, name := range append(w.meta(1), "") { // nobody else reads them
		want := fs.FileMode(0o600)
		if name == "" || name == "generation.1" {
			want = fs.ModeDir | 0o700
		}
		if info, err := w.Lstat(path.Join("/n1/.volley", name)); err != nil || info.Mode() != want {
			t.Errorf("%q: %v, %v: want %v", name, info.Mode(), err, want)
		}
	}
	if is := (&store.Node{DirName: "/n1"}).Path("sub/x"); is != "/n1/sub/x" {
		t.Errorf("a file of a node that is not open is %s", is)
	}
	text := contentOf(w, "/n1/.volley/generation.1/manifest.json")
	w.MkdirAll("/n1/.volley/pending.1", 0o700)
	w.MkdirAll("/n1/.volley/pending.7", 0o700)
	w.WriteFile("/n1/.volley/pending.1/manifest.json", []byte(text), 0o600)
	w.WriteFile("/n1/.volley/pending.7/manifest.json", []byte(text), 0o600) // of another generation than its name says
	w.WriteFile("/n1/.volley/tmp-stage", nil, 0o600)
	w.Remove("/n1/.volley/generation.1/record.0")
	d, err := w.Process().Open("/n1")
	must(t, err)
	s := (&store.Node{Index: 1, DirName: "/n1", Dir: d}).Load(nil, 2)
	if len(s.Held) != 1 || !s.Held[0].Committed || s.Held[0].Complete || !slices.Equal(s.Held[0].Records, []int{0}) || s.Held[0].Bytes != int64(len(text)) || s.Held[0].Root != disk.Sum([]byte(text)) ||
		!slices.Equal(s.Leftovers, []string{"pending.1", "pending.7", "tmp-stage"}) || !s.Interrupted() || !slices.Equal(s.Numbers, []int64{1, 7}) || s.Node != 1 || s.Lost || !s.Files || len(s.Bad) != 1 || s.Bad[0] != "/n1/.volley/pending.7/manifest.json: generation: 1" || s.Unknown != nil {
		t.Errorf("%+v", s)
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

// TestStaleUnread has the disk fail when the earlier record of a stale node is read: its files are not taken
// for changed ones, which recover would leave.
func TestStaleUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	w.CopyTree("/n1", "/copy")
	change(w, "/n1")
	must(t, w.protect())
	w.RemoveAll("/n1")
	w.Rename("/copy", "/n1")
	p, opened := w.Process(), 0
	p.Hook = func(c disktest.Call) error {
		if c.Op == "open" && c.Path == "/n1/.volley/generation.1/record" {
			if opened++; opened > 1 {
				return syscall.EIO
			}
		}
		return nil
	}
	r, err := w.recoverBy(p, RecoverOptions{})
	must(t, err)
	if err := r.Incomplete(); err == nil || !strings.Contains(err.Error(), "/n1 cannot be read") {
		t.Errorf("%v, %+v", err, r.Nodes[1])
	}
}

// TestRecoverKeepsParity has the disk not give a node's parity, once or all the time, while as many others are
// lost as may be: what it has is not given up for what cannot be made again.
func TestRecoverKeepsParity(t *testing.T) {
	t.Parallel()
	for i, op := range []string{"open", "lstat", "read", "open", "lstat", "read"} {
		w := newWorld(4, 2)
		must(t, w.protect())
		was := w.trees()
		w.lose(0, 1, 2)
		parity := contentOf(w, "/n3/.volley/generation.1/parity")
		p, done := w.Process(), false
		p.Hook = func(c disktest.Call) error {
			if (i < 3 || !done) && c.Op == op && c.Path == "/n3/.volley/generation.1/parity" {
				done = true
				return syscall.EIO
			}
			return nil
		}
		r, err := w.recoverBy(p, RecoverOptions{})
		if !done || err != nil || (i < 3) != (r.Incomplete() != nil) {
			t.Errorf("%s: %v, %+v", op, err, r)
		}
		if contentOf(w, "/n3/.volley/generation.1/parity") != parity {
			t.Errorf("%s: the parity is another", op)
		}
		must(t, w.recover())
		for n := range was {
			must(t, diff(fmt.Sprintf("%s: node %d", op, n), was[n], w.tree(n)))
		}
	}
}
