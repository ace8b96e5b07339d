package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"

	"volley/internal/disk/disktest"
)

// diskDies has the disk of a node die at a call, for the run.
var diskDies = disktest.Interruption{Name: "a disk dies", Matters: func(c disktest.Call) bool { return nodeOf(c) != "" }, Strike: func(p *disktest.Process, c disktest.Call, _ *rand.Rand) error {
	p.Deny(nodeOf(c), syscall.EIO)
	return nil
}}

// nodeOf returns the directory of the node at which a call is, or nothing.
func nodeOf(c disktest.Call) string {
	if _, rest, ok := strings.Cut(c.Path, "/n"); ok && strings.HasPrefix(c.Path, "/n") {
		n, _, _ := strings.Cut(rest, "/")
		return "/n" + n
	}
	return ""
}

// without runs a verb for which the disk of a node is dead. Its process has ended then.
func without[T any](c *world, dir string, verb func(*disktest.Process) (T, error)) (T, error) {
	p := c.Process()
	defer p.Kill()
	p.Deny(dir, syscall.EIO)
	return verb(p)
}

// expected is what nodes have of a generation.
func (s *scene) expected(g int64) []string {
	switch {
	case s.protects && g != s.oldest:
		return s.after
	case s.was != nil:
		return s.was
	}
	return s.before
}

// goesOn returns an error unless the others go on without a node whose disk has died in a run, now and later, and its data
// comes back in another directory.
func (s *scene) goesOn(c *world, broken string, rng *rand.Rand) error {
	c, d := c.clone(), slices.Index(s.world.dirs, broken)
	r, err := without(c, broken, c.verifyBy)
	switch {
	case err != nil && strings.Contains(err.Error(), "cannot tell whether generation") && strings.Contains(err.Error(), broken+" ("):
		// It may have what others have not committed: the error says to give an empty directory.
		c.lose(0, d)
		r, err := c.recoverBy(c.Process(), RecoverOptions{})
		if err != nil || r.Incomplete() != nil {
			return fmt.Errorf("with an empty directory: %v, %v", err, r)
		}
		return diff(fmt.Sprintf("generation %d came back", r.Generation), s.expected(r.Generation)[d], c.tree(d))
	case err != nil:
		return fmt.Errorf("verify: %w", err)
	case r.Nodes[d].Status != Failing || r.Intact || !r.Protected && s.oldest > 0:
		return fmt.Errorf("verify: %+v", *r)
	case !r.Protected:
		return nil
	}
	// Protect names it, and leaves it at that.
	before := c.trees()
	_, err = without(c, broken, func(p *disktest.Process) (*ProtectReport, error) { return c.protectBy(p, ProtectOptions{}) })
	if err == nil || s.damaged == nil && !strings.Contains(err.Error(), broken) {
		return fmt.Errorf("protect: %v", err)
	}
	for i := range c.dirs {
		if err := diff(fmt.Sprintf("protect: node %d", i), before[i], c.tree(i)); err != nil {
			return err
		}
	}
	if s.rolls && r.Generation < s.newest {
		return nil
	}
	return s.around(c, d, r.Generation, rng)
}

// around loses one more node than the one whose disk is dead: the rest comes back around it, and it in another directory.
func (s *scene) around(c *world, d int, generation int64, rng *rand.Rand) error {
	lost := (d + 1 + rng.IntN(len(c.dirs)-1)) % len(c.dirs)
	switch others := slices.DeleteFunc(slices.Clone(s.damaged), func(n int) bool { return n == d }); len(others) {
	case 0:
	case 1:
		lost = others[0]
	default:
		return nil // too much for two
	}
	if s.changed > 0 && s.changed != d && generation == s.oldest {
		lost = s.changed
	}
	c.lose(rng.IntN(2), lost)
	broken := c.dirs[d]
	recover := func(p *disktest.Process) (*RecoverReport, error) { return c.recoverBy(p, RecoverOptions{}) }
	for _, x := range []struct {
		dir  string
		back int
	}{{broken, lost}, {"/elsewhere", d}} {
		c.dirs[d] = x.dir
		r, err := without(c, broken, recover)
		if err != nil {
			return fmt.Errorf("recover with %s: %w", x.dir, err)
		}
		if err := diff(fmt.Sprintf("recover with %s: node %d", x.dir, x.back), s.expected(r.Generation)[x.back], c.tree(x.back)); err != nil {
			return err
		}
	}
	return nil
}
