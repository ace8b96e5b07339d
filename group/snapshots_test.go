package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/transport"
)

// roots are the roots of snapshots of a group in memory, and what its snapshots were.
type roots struct {
	*world
	was map[int64][]string // trees of snapshots, by node
}

// newRoots returns the roots of nodes, that many of which may be lost, with some snapshots in force.
func newRoots(t testing.TB, k, r int, steps ...int64) *roots {
	w := &roots{&world{Machine: disktest.NewMachine(), r: r, ranks: 1}, map[int64][]string{}}
	for n := range k {
		w.dirs = append(w.dirs, fmt.Sprintf("/r%d", n))
		w.MkdirAll(w.dirs[n], 0o755)
	}
	w.SyncAll()
	for _, step := range steps {
		w.save(step)
		if _, err := w.protectStep(w.Process(), Latest, 0); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// save writes a snapshot as a training job does, and gives it its name when it is complete.
func (w *roots) save(step int64) {
	rng := rand.New(rand.NewPCG(uint64(step), 1))
	w.was[step] = nil
	for n, root := range w.dirs {
		w.MkdirAll(root+"/.new/sub", 0o755)
		w.WriteFile(root+"/.new/rank0", random(rng, 300+20*n), 0o644)
		w.WriteFile(root+"/.new/sub/rank1", random(rng, 200), 0o600)
		w.Rename(root+"/.new", root+"/"+session.StepName(step))
		w.was[step] = append(w.was[step], w.Tree(root+"/"+session.StepName(step), tree.MetaName))
	}
	w.SyncAll()
	w.Wait(1e9)
}

func (w *roots) clone() *roots { return &roots{w.world.clone(), w.was} }

func (w *roots) protectStep(p *disktest.Process, step int64, retain int) (*ProtectReport, error) {
	return w.with(protection.Settings{Roots: true, Step: step}).protectBy(p, ProtectOptions{Retain: retain})
}

func (w *roots) latest(p *disktest.Process) (*RecoverReport, error) {
	return w.with(protection.Settings{Roots: true, Step: Latest}).recoverBy(p, RecoverOptions{})
}

func (w *roots) snapshots(t testing.TB) *SnapshotsReport {
	t.Helper()
	r, err := w.snapshotsBy(w.Process())
	must(t, err)
	return r
}

func (w *roots) snapshotsBy(p *disktest.Process) (*SnapshotsReport, error) {
	return onRanks(w.world, func(ctx context.Context, t transport.Transport, dirs []string) (*SnapshotsReport, error) {
		return overSetup(t, dirs, w.options(p, protection.Settings{})).Snapshots(ctx)
	})
}

// names returns what lies in a root.
func (w *roots) names(n int) (list []string) {
	for line := range strings.Lines(w.Tree(w.dirs[n])) {
		if name, _, _ := strings.Cut(line, " "); name != "." && !strings.Contains(name, "/") {
			list = append(list, name)
		}
	}
	return list
}

// comesBack loses nodes, and returns an error unless the latest snapshot comes back as it was, at every node, and is
// one of those that may be the latest.
func (w *roots) comesBack(lost []int, how int, may ...int64) (step int64, err error) {
	x := w.clone()
	x.lose(how, lost...)
	r, err := x.latest(x.Process())
	if err != nil {
		return 0, fmt.Errorf("lost %v: %w", lost, err)
	}
	if !slices.Contains(may, *r.Step) {
		return 0, fmt.Errorf("lost %v: step %d came back, want one of %d", lost, *r.Step, may)
	}
	for n, root := range x.dirs {
		if err := diff(fmt.Sprintf("lost %v: step %d, node %d", lost, *r.Step, n), w.was[*r.Step][n], x.Tree(root+"/"+session.StepName(*r.Step), tree.MetaName)); err != nil {
			return 0, err
		}
		for _, name := range x.names(n) { // what is newer is no snapshot any more
			if step, ok := session.StepOf(name); ok && name == session.StepName(step) && step > *r.Step {
				return 0, fmt.Errorf("lost %v: %s stays beside step %d", lost, name, *r.Step)
			}
		}
	}
	// The job runs on, and saves the next one.
	next := *r.Step + 1
	x.was = map[int64][]string{}
	x.save(next)
	p, err := x.protectStep(x.Process(), Latest, 1)
	if err != nil || *p.Step != next {
		return 0, fmt.Errorf("lost %v: the next snapshot: %+v, %w", lost, p, err)
	}
	for n := range x.dirs {
		if is := x.names(n); !slices.Equal(is, []string{session.StepName(next)}) {
			return 0, fmt.Errorf("lost %v: root %d has %q after step %d, retain 1", lost, n, is, next)
		}
	}
	return *r.Step, nil
}

// What taking a lock changes: its file, and the time of a directory in which nothing was protected.
var lockLine = regexp.MustCompile(`(?m)^.*/\.volley/lock .*$|^r\d/step-\d+ .*$`)

// refuses fails unless no snapshot may be the latest, for reasons in which texts are. Nothing changes.
func (w *roots) refuses(t *testing.T, want ...string) {
	t.Helper()
	tree := func() string { return lockLine.ReplaceAllString(w.Tree("/"), "") }
	before := tree()
	_, err := w.latest(w.Process())
	if !IsInputError(err) {
		t.Fatalf("%v", err)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v: want %q in it", err, text)
		}
	}
	must(t, diff("refused", before, tree()))
}

// comes fails unless a snapshot is the latest, and a note is with it.
func (w *roots) comes(t *testing.T, want int64, note string) {
	t.Helper()
	r, err := w.latest(w.Process())
	must(t, err)
	if *r.Step != want || !strings.Contains(strings.Join(r.Notes, "\n"), note) {
		t.Fatalf("step %d, notes %q: want %d, %q", *r.Step, r.Notes, want, note)
	}
}

// states fails unless snapshots have these.
func (w *roots) states(t *testing.T, want ...string) {
	t.Helper()
	var is []string
	for _, x := range w.snapshots(t).Snapshots {
		is = append(is, fmt.Sprint(x.Step, " ", x.State))
	}
	if !slices.Equal(is, want) {
		t.Fatalf("%q: want %q", is, want)
	}
}

// TestSnapshotsLatest checks which snapshot is the latest, and who says so.
func TestSnapshotsLatest(t *testing.T) {
	t.Parallel()
	w := newRoots(t, 4, 1)
	w.states(t)
	w.refuses(t, "no root has a directory step-N")
	for _, name := range []string{"step-01", "step--1", "step-x", "step-7.tmp", "step-99999999999999999999", "checkpoint"} {
		w.MkdirAll("/r0/"+name, 0o755)
	}
	w.WriteFile("/r1/step-5", []byte("no directory"), 0o644)
	w.Symlink("/r0/checkpoint", "/r2/step-6")
	w.states(t)
	w.save(8)
	w.states(t, "8 unprotected")
	w.comes(t, 8, "not protected")
	w.RemoveAll("/r3/step-8")
	_, err := w.latest(w.Process())
	if !errors.As(err, new(*protection.NoneError)) || !strings.Contains(err.Error(), "step-8: it is not protected, and missing or empty at /r3") {
		t.Fatalf("%v", err)
	}
	w.states(t) // the job begins anew, and saves each step

	w = newRoots(t, 4, 1, 1, 2)
	w.save(3)
	w.save(4)
	w.RemoveAll("/r1/step-4")
	w.states(t, "4 incomplete", "3 unprotected", "2 in force", "1 in force")
	w.clone().comes(t, 3, "step-4 is passed over: it is not protected, and missing or empty at /r1")
	w.lose(0, 2)
	w.states(t, "4 incomplete", "3 incomplete", "2 recoverable", "1 recoverable")
	c := w.clone()
	c.lose(0, 1)
	c.refuses(t, "step-3:", "step-2: 2 nodes are lost, and the group tolerates the loss of 1: /r1, /r2", "step-1:")
	w.comes(t, 2, "step-3 is passed over")

	// The newest has lost more than its records tell: the older one comes back.
	w = newRoots(t, 4, 1, 1, 2)
	for _, name := range []string{"/r0/step-2/rank0", "/r1/step-2/rank0"} {
		w.Overwrite(name, 0, bytes.Repeat([]byte("rot"), 100), true)
	}
	w.states(t, "2 in force", "1 in force")
	w.comes(t, 1, "step-2 is passed over: not everything is recovered: too many nodes are lost, damaged or changed in some blocks: /r0/step-2 is damaged; /r1/step-2 is damaged")

	// Roots that are left out may lack what all others have.
	w = newRoots(t, 4, 1, 1)
	w.save(2)
	w.dirs = w.dirs[:3]
	w.comes(t, 1, "step-2 is passed over: it is not protected, and 3 nodes have it: step-1 is of a group of 4")
}

// TestSnapshotsUnclear has a disk fail, another run protect, and a key decide: none of these lets an older snapshot come by mistake.
func TestSnapshotsUnclear(t *testing.T) {
	t.Parallel()
	// A disk that fails is named, with the reason: what could not be read may be there.
	w := newRoots(t, 4, 1, 1, 2)
	p := w.Process()
	p.Deny("/r0/step-2/"+tree.MetaName, syscall.EIO)
	p.Deny("/r1/step-2", syscall.EIO)
	_, err := w.with(protection.Settings{Roots: true, Step: Latest}).recoverBy(p, RecoverOptions{DryRun: true})
	if !errors.As(err, new(*NotLostError)) || !strings.Contains(err.Error(), "It may not be lost") || !strings.Contains(err.Error(), "/r0 (") || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("%v", err)
	}
	p.Kill()

	// One that is being protected may be in force in a moment.
	w = newRoots(t, 4, 1, 1, 2)
	w.save(3)
	c := w.clone()
	p = c.Process()
	dir, err := p.Open("/r2/step-3")
	must(t, err)
	must(t, dir.Mkdir(tree.MetaName, 0o700))
	_, err = dir.Lock(store.MetaPath(store.LockFile), false, disk.HolderOf("protect", "another"))
	must(t, err)
	if _, err := c.latest(c.Process()); !isBusy(err) {
		t.Errorf("%v", err)
	}
	c.states(t, "3 busy", "2 in force", "1 in force")
	p.Kill()
	c.comes(t, 3, "")

	// With a key, what is not protected does not count, nor what was protected with another.
	key := func(text string) *world {
		return w.with(protection.Settings{Roots: true, Step: Latest, Key: []byte(strings.Repeat(text, 32))})
	}
	w = newRoots(t, 4, 1)
	w.save(1)
	_, err = key("k").protectBy(w.Process(), ProtectOptions{})
	must(t, err)
	w.save(2)
	if r, err := key("k").recoverBy(w.Process(), RecoverOptions{}); err != nil || *r.Step != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	w.refuses(t, "step-1: the group was protected with a key")
	if _, err := key("x").recoverBy(w.Process(), RecoverOptions{}); !IsInputError(err) || !strings.Contains(err.Error(), "made with another") {
		t.Errorf("%v", err)
	}
}

// TestSnapshotsRetain checks what protect takes, and what goes.
func TestSnapshotsRetain(t *testing.T) {
	t.Parallel()
	w := newRoots(t, 3, 1, 1, 2, 3)
	_, err := w.protectStep(w.Process(), 4, 1)
	if !IsInputError(err) || !strings.Contains(err.Error(), "step-4 is not at every node: /r0 has step-3, step-2, step-1") {
		t.Fatalf("%v", err)
	}
	w.Chmod("/r0/step-1/sub", 0o500)
	w.save(4)
	w.save(5)
	w.RemoveAll("/r1/step-5") // not there yet
	r, err := w.protectStep(w.Process(), Latest, 0)
	must(t, err)
	if *r.Step != 4 || r.Removed != nil {
		t.Fatalf("%+v", r)
	}
	must(t, func() error { _, err := w.latest(w.Process()); return err }()) // sets step 5 aside
	w.save(6)                                                               // which is never protected
	w.save(7)
	p := w.Process() // a run that uses step 2
	dir, err := p.Open("/r1/step-2")
	must(t, err)
	_, err = dir.Lock(store.MetaPath(store.LockFile), false, disk.HolderOf("recover", "another"))
	must(t, err)
	r, err = w.protectStep(w.Process(), Latest, 2)
	must(t, err)
	if *r.Step != 7 || !slices.Equal(r.Removed, []int64{3, 1}) || !strings.Contains(strings.Join(r.Notes, ""), "step-2 stays: /r1/step-2 is busy") {
		t.Fatalf("%+v", r)
	}
	p.Kill()
	_, err = w.protectStep(w.Process(), Latest, 2)
	must(t, err)
	for n := range w.dirs { // what recover has set aside goes when a snapshot that is no older is in force
		if is := w.names(n); strings.Contains(strings.Join(is, " "), ".aside-") {
			t.Fatalf("root %d has %q", n, is)
		}
	}
	if _, err := w.protectStep(w.Process(), Latest, -1); !IsInputError(err) {
		t.Errorf("%v", err)
	}
	if _, err := w.protectStep(w.Process(), -2, 1); !IsInputError(err) {
		t.Errorf("%v", err)
	}
}
