package group

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/group/internal/session"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// committers are the rows of the sweep that this package has: protect, recover, verify and status in all scenes, unprotect,
// resize, and protect and recover of snapshots.
func committers(t *testing.T) (list []*disktest.Committer) {
	for _, s := range scenes(t) {
		list = append(list, s.committer())
	}
	for i, x := range resizings {
		list = append(list, x.committer(t, (uint64(i)+*callSeed)%2 == 0))
	}
	return append(list, unprotecting(t), protectingSnapshot(t), recoveringSnapshot(t))
}

// unprotecting is unprotect. No file of the user's changes. Before the first node has lost anything all is protected.
func unprotecting(t *testing.T) *disktest.Committer {
	w := newWorld(4, 2).ordered()
	must(t, w.protect())
	before := w.trees()
	run := func(p *disktest.Process) error {
		c := w.on(p.Machine())
		_, err := c.unprotectBy(p, UnprotectOptions{})
		if errors.As(err, new(*protection.RefusedError)) && c.bare() == nil { // all is gone already
			return nil
		}
		return err
	}
	return &disktest.Committer{
		Name: "unprotect", Machine: w.Machine, Run: run, Seconds: seconds(w),
		Holds: func(x *disktest.Interrupted) (string, error) {
			c := w.on(x.Machine).clone()
			if !slices.Equal(c.trees(), before) {
				return "", errors.New("files are others")
			}
			if err := c.bare(); err == nil || x.Err == nil {
				return "nothing", err
			}
			for n := range c.dirs {
				if is := c.meta(n); !slices.Contains(is, "generation.1/manifest.json") || !slices.Contains(is, "generation.1/parity") {
					return "all", nil
				}
			}
			c.lose(0, x.Rand.Perm(4)[:2]...)
			if err := c.recover(); err != nil || !slices.Equal(c.trees(), before) {
				return "", fmt.Errorf("recover: %w", err)
			}
			return "all", c.protect()
		},
		Tidy: func(m *disktest.Machine) error {
			c := w.on(m)
			return cmp.Or(c.bare(), c.protect(), c.whole())
		},
	}
}

// committer is resize. At any moment the nodes that there were or those that there are to be are protected, any of which
// may be lost.
func (x resizingCase) committer(t *testing.T, each bool) *disktest.Committer {
	w := x.world(t).ordered()
	before := w.trees()
	return &disktest.Committer{
		Name: fmt.Sprintf("resize: %s, a rank each %v", x.name, each), Machine: w.Machine, Concurrent: each,
		Run: func(p *disktest.Process) error {
			_, err := x.run(w.on(p.Machine()), p, each, ResizeOptions{})
			return err
		},
		Holds: func(i *disktest.Interrupted) (string, error) {
			c := w.on(i.Machine).clone()
			err := x.inForce(c, x.is, before, i.Rand)
			if err == nil && i.Err == nil {
				r, err2 := c.of(x.is).verifyBy(c.Process())
				err = err2
				if err == nil {
					err = x.done(c, before, r.Generation)
				}
			}
			if err == nil || i.Err == nil {
				return "the new nodes", err
			}
			if old := x.inForce(c, x.was, before, i.Rand); old != nil {
				return "", fmt.Errorf("neither group is protected: %w; %w", old, err)
			}
			return "the nodes that there were", nil
		},
	}
}

// protectingSnapshot is the protection of a snapshot, which removes the oldest. Nodes are lost, and the latest one in force
// comes back.
func protectingSnapshot(t *testing.T) *disktest.Committer {
	w := newRoots(t, 4, 2, 1, 2)
	w.ordered()
	w.save(3)
	return &disktest.Committer{
		Name: "protect a snapshot", Machine: w.Machine,
		Run: func(p *disktest.Process) error {
			_, err := w.at(p.Machine()).protectStep(p, 3, 2)
			return err
		},
		Holds: func(x *disktest.Interrupted) (string, error) {
			may := []int64{2, 3}
			if x.Err == nil {
				may = []int64{3}
			}
			step, err := w.at(x.Machine).comesBack(x.Rand.Perm(4)[:2], x.Rand.IntN(2), may...)
			return fmt.Sprint("step ", step), err
		},
		Tidy: func(m *disktest.Machine) error {
			for n := range w.dirs {
				if is := w.at(m).names(n); !slices.Equal(is, []string{"step-2", "step-3"}) {
					return fmt.Errorf("root %d has %q", n, is)
				}
			}
			return nil
		},
	}
}

// recoveringSnapshot is the recovery of the latest snapshot, beside one that was never protected.
func recoveringSnapshot(t *testing.T) *disktest.Committer {
	w := newRoots(t, 4, 2, 1, 2)
	w.ordered()
	w.save(3)
	w.lose(0, 1, 2)
	w.SyncAll()
	return &disktest.Committer{
		Name: "recover a snapshot", Machine: w.Machine,
		Run: func(p *disktest.Process) error {
			_, err := w.at(p.Machine()).latest(p)
			return err
		},
		Holds: func(x *disktest.Interrupted) (string, error) {
			c := w.at(x.Machine)
			for n, root := range c.dirs {
				if is := c.Tree(root+"/"+session.StepName(2), tree.MetaName); x.Err == nil && is != w.was[2][n] {
					return "", fmt.Errorf("node %d: %w", n, diff("step 2", w.was[2][n], is))
				}
			}
			step, err := c.comesBack(nil, 0, 2)
			return fmt.Sprint("step ", step), err
		},
	}
}

// at returns the roots on another machine.
func (w *roots) at(m *disktest.Machine) *roots { return &roots{w.on(m), w.was} }

// everyCall interrupts the verbs at all calls or at some, in each way.
func everyCall(t *testing.T, some int, list []disktest.Interruption) {
	t.Parallel()
	for i, c := range committers(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%d runs were interrupted", c.Test(t, list, some, rand.New(rand.NewPCG(*callSeed, uint64(i)))))
		})
	}
}

// TestCrash interrupts every verb at some calls: by a kill, a power cut, errors, and runs of others.
func TestCrash(t *testing.T) { everyCall(t, *mostCalls, interruptions) }
