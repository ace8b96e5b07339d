package disktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/files"
)

// replacing puts a text in the place of that of /d/x, which may be lost where it is not synced.
func replacing(synced bool) func(p *Process) error {
	return func(p *Process) error {
		d, err := p.Open("/d")
		if err != nil {
			return err
		}
		f, err := d.OpenFile("tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte("the new text"))
		if err == nil && synced {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err = d.Rename("tmp", "x"); err == nil && synced {
			err = d.SyncDir(".")
		}
		return err
	}
}

// A report is a test that is told what is wrong.
type report struct {
	testing.TB
	wrong []string
}

func (r *report) Helper() {}
func (r *report) Errorf(format string, a ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, a...))
}

// TestSweep interrupts what is right, and what only looks so.
func TestSweep(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.MkdirAll("/d", 0o755)
	m.WriteFile("/d/x", []byte("old"), 0o644)
	check := func(x *Interrupted) error {
		if x.Machine.PowerCut(nil); !x.Machine.Exists("/d/x") {
			return errors.New("lost")
		}
		if text, _ := x.Machine.ReadFile("/d/x"); string(text) != "the new text" && (string(text) != "old" || x.Err == nil) {
			return fmt.Errorf("it has %q", text)
		}
		return nil
	}
	for _, synced := range []bool{true, false} {
		seen := map[string][]string{}
		r := &report{TB: t}
		sweep := Sweep{Machine: m, Run: replacing(synced), Check: func(x *Interrupted) error {
			if seen[x.Name] = append(seen[x.Name], x.Call.Op); !synced && x.Name == "" {
				return nil
			}
			return check(x)
		}}
		n := sweep.Test(r)
		if synced != (len(r.wrong) == 0) {
			t.Errorf("synced %v: %q", synced, r.wrong)
		}
		if !synced {
			continue
		}
		if got := fmt.Sprint(seen["killed"]); got != "[create write sync rename syncdir]" {
			t.Errorf("killed at %s", got)
		}
		if got := fmt.Sprint(seen["EIO"]); got != "[opendir create write sync close rename syncdir]" {
			t.Errorf("EIO at %s", got)
		}
		if got := fmt.Sprint(seen["EXDEV"]); got != "[rename]" {
			t.Errorf("EXDEV at %s", got)
		}
		total := 0
		for _, x := range Interruptions() {
			total += len(seen[x.Name])
		}
		if total != n || len(seen[""]) != 1 {
			t.Errorf("%d runs of %d are counted", n, total)
		}
		sweep.Tries = 1
		if n := sweep.Test(t); n < 12 || n > len(Interruptions()) {
			t.Errorf("%d runs at one call each", n)
		}
	}
	if tree(m, "/d") != "x=old" {
		t.Error("the machine has changed")
	}
}

// TestSweepReached checks that a run that does not come to the call is told.
func TestSweepReached(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	first := true
	r := &report{TB: t}
	sweep := Sweep{Machine: m, Interruptions: []Interruption{CutAll}, Check: func(*Interrupted) error { return nil }, Run: func(p *Process) error {
		if !first {
			return nil
		}
		first = false
		d, err := p.Open("/")
		if err != nil {
			return err
		}
		return d.Mkdir("d", 0o755)
	}}
	if n := sweep.Test(r); n != 1 || len(r.wrong) != 1 || !strings.Contains(r.wrong[0], "did not come so far") {
		t.Errorf("%d: %q", n, r.wrong)
	}
}

// TestInterruptions checks what each leaves of a run, and that it ends with it.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	m.MkdirAll("/d", 0o755)
	m.MkdirAll("/other", 0o755)
	m.Mount("/d", Mount{})
	run := func(p *Process) error {
		d, err := p.Open("/d")
		if err != nil {
			return err
		}
		err = errors.Join(d.Mkdir("a", 0o755), d.Mkdir("b", 0o755), d.Remove("a"), d.Chmod("b", 0o700))
		if d, err2 := p.Open("/other"); err2 == nil {
			err = errors.Join(err, d.Mkdir("c", 0o755))
		}
		return err
	}
	for name, want := range map[string]string{
		Kill.Name: "d d/a other", CutAll.Name: "d other", FullDisk.Name: "d other other/c", TurnReadOnly.Name: "d d/a other other/c",
		"ENOSPC": "d other other/c", "EIO": "d other other/c", "ESTALE": "d other other/c",
	} {
		all := Interruptions()
		x := all[slices.IndexFunc(all, func(x Interruption) bool { return x.Name == name })]
		c := m.Clone()
		p := c.Process()
		x.Set(p, 2, rand.New(rand.NewPCG(1, 1))) // the second directory
		if err := run(p); err == nil {
			t.Errorf("%s: no error", name)
		}
		p.Kill()
		if got := tree(c, "/"); got != want {
			t.Errorf("%s leaves %s, want %s", name, got, want)
		}
		if err := open(t, c.Process(), "/d").Mkdir("after", 0o755); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// TestPartly checks that of what is written where a run is interrupted any part may be there.
func TestPartly(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for seed := range uint64(100) {
		for _, x := range []Interruption{Kill, {Name: "EIO", Strike: Failing(syscall.EIO)}} {
			m := NewMachine()
			p := m.Process()
			x.Set(p, 2, rand.New(rand.NewPCG(seed, 1)))
			d, err := p.Open("/")
			must(t, err)
			f, err := d.OpenFile("f", os.O_WRONLY|os.O_CREATE, 0o644)
			must(t, err)
			if _, err := f.Write([]byte("abc")); err == nil {
				t.Errorf("%s: no error", x.Name)
			}
			text, _ := m.ReadFile("/f")
			got[x.Name+" "+string(text)] = true
		}
	}
	if len(got) != 8 {
		t.Errorf("%v: want all beginnings", got)
	}
}

// TestErrnos checks that each error is tried at calls that there are.
func TestErrnos(t *testing.T) {
	t.Parallel()
	m := NewMachine()
	ops := map[string]bool{}
	p := m.Process()
	p.Hook = func(c Call) error {
		ops[c.Op] = true
		return nil
	}
	d := open(t, p, "/")
	write(t, d, "f", "text", true)
	f, err := d.OpenFile("f", os.O_RDWR, 0)
	must(t, err)
	_, err = f.Stat()
	_, err2 := f.Read(make([]byte, 1))
	must(t, err, err2, f.Truncate(1), f.Close())
	unlock, err := d.Lock("lock", false, files.Holder{})
	must(t, err, d.Mkdir("d", 0o755), d.Symlink("f", "s"), d.Link("f", "l"), d.Rename("l", "r"), d.Exchange("s", "r"), d.Exchange("s", "r"), d.Remove("r"), d.Chmod("f", 0o600),
		d.Chown("f", 1, 1), d.SetAttribute("f", "user.a", "b"), d.RemoveAttribute("f", "user.a"), d.SetTime("f", m.Now()), d.SyncDir("."), d.SyncAll())
	unlock(true)
	_, err = d.Lstat("f")
	_, err2 = d.ReadDir(".")
	_, err3 := d.Readlink("s")
	_, err4 := d.Attributes("f")
	must(t, err, err2, err3, err4)
	hit := map[string]bool{"unlock": true}
	for _, e := range Errnos {
		for _, op := range e.Ops {
			if hit[op] = true; !ops[op] {
				t.Errorf("%s: there is no call %q", e.Name, op)
			}
		}
		if len(e.Ops) == 0 {
			t.Errorf("%s hits nothing", e.Name)
		}
	}
	for op := range ops {
		if !hit[op] {
			t.Errorf("no error hits %s", op)
		}
	}
}
