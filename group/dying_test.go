package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/internal/disk/disktest"
)

// TestDying has the disk of a node die at some calls of every verb, and where a file is to be put aside at all of them: the
// directory made for that is not tried for ever. The others go on without it, now and later, and its data comes back in
// another directory.
func TestDying(t *testing.T) {
	t.Parallel()
	for i, s := range scenes(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(*callSeed, uint64(i)))
			for d := range s.world.dirs {
				for _, n := range s.deaths(d, rng) {
					if err := s.dies(d, n, rng); err != nil {
						t.Errorf("node %d dies at %v: %v", d, s.calls[n], err)
						break
					}
				}
			}
		})
	}
}

// deaths returns the calls at which the disk of a node dies.
func (s *scene) deaths(d int, rng *rand.Rand) []int {
	var calls, aside []int
	for _, c := range s.calls {
		if strings.HasPrefix(c.Path, s.world.dirs[d]) {
			calls = append(calls, c.N)
		}
		if d == 1 && strings.Contains(c.Path, "/.volley/"+store.ReplacedName) {
			aside = append(aside, c.N)
		}
	}
	if most := *mostCalls; most > 0 {
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		calls = append(calls[:min(most, len(calls))], aside...)
	}
	return calls
}

// without runs a verb for which the disk of a node is dead from a call on. Its process has ended then.
func without[T any](c *world, dir string, from int, verb func(*disktest.Process) (T, error)) (T, error) {
	p := c.Process()
	defer p.Kill()
	dying(p, from, dir, syscall.EIO)
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

// dies has the disk of node d die at a call.
func (s *scene) dies(d, n int, rng *rand.Rand) error {
	c := s.world.clone()
	broken := c.dirs[d]
	_, err := without(c, broken, n, func(p *disktest.Process) (bool, error) { return s.verb(c, p) })
	for i := range c.dirs {
		if slices.Contains(s.damaged, i) {
			if err := s.between(i, c.tree(i)); err != nil {
				return err
			}
		} else if wrong := diff(fmt.Sprintf("node %d", i), s.before[i], c.tree(i)); wrong != nil && !s.rolls { // else to the generation before
			return fmt.Errorf("the run ended with %v: %w", err, wrong)
		}
	}
	r, err := without(c, broken, 0, c.verifyBy)
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
	_, err = without(c, broken, 0, func(p *disktest.Process) (*ProtectReport, error) { return c.protectBy(p, ProtectOptions{}) })
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
		r, err := without(c, broken, 0, recover)
		if err != nil {
			return fmt.Errorf("recover with %s: %w", x.dir, err)
		}
		if err := diff(fmt.Sprintf("recover with %s: node %d", x.dir, x.back), s.expected(r.Generation)[x.back], c.tree(x.back)); err != nil {
			return err
		}
	}
	return nil
}
