package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
)

// TestDying has the disk of a node die at some calls of every verb. The others go on without
// it, now and later, and its data comes back in another directory.
func TestDying(t *testing.T) {
	seed := rand.Uint64()
	inScenes(t, func(t *testing.T, s *scene, of *rand.Rand) {
		rng := rand.New(rand.NewPCG(seed, of.Uint64()))
		tried := 0
		for d := range s.world.dirs {
			var at []int
			for _, c := range s.calls {
				if strings.HasPrefix(c.Path, s.world.dirs[d]) {
					at = append(at, c.N)
				}
			}
			if most := *mostCalls; most > 0 {
				rng.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
				at = at[:min(most, len(at))]
			}
			for _, n := range at {
				tried++
				if err := s.dies(d, n, rng); err != nil {
					t.Errorf("seed %d: node %d dies at %v: %v", seed, d, s.calls[n], err)
					break
				}
			}
		}
		t.Logf("%d disks died", tried)
	})
}

// TestDyingSetAside has a disk die where a file is to be put aside, and its directory made for
// that: neither is tried for ever.
func TestDyingSetAside(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 4))
	tried := 0
	for _, s := range scenes(t) {
		for _, c := range s.calls {
			if s.name == "recover a stale node" && strings.Contains(c.Path, "/.volley/"+store.ReplacedName) {
				tried++
				if err := s.dies(1, c.N, rng); err != nil {
					t.Errorf("at %v: %v", c, err)
				}
			}
		}
	}
	if tried == 0 {
		t.Error("nothing was put aside")
	}
}

// dies has the disk of node d die at a call.
func (s *scene) dies(d, n int, rng *rand.Rand) error {
	c := s.world.clone()
	p := c.Process()
	dying(p, n, c.dirs[d], syscall.EIO)
	_, err := s.verb(c, p)
	p.Kill() // it has ended
	for i := range c.dirs {
		if slices.Contains(s.damaged, i) {
			if err := s.between(i, c.tree(i)); err != nil {
				return err
			}
		} else if wrong := diff(fmt.Sprintf("node %d", i), s.before[i], c.tree(i)); wrong != nil && !s.rolls { // else to the generation before
			return fmt.Errorf("the run ended with %v: %w", err, wrong)
		}
	}
	// Verify names it.
	p = c.Process()
	dying(p, 0, c.dirs[d], syscall.EIO)
	r, err := c.verifyBy(p)
	p.Kill()
	expected := func(g int64) []string {
		switch {
		case s.protects && g != s.oldest:
			return s.after
		case s.was != nil:
			return s.was
		}
		return s.before
	}
	if err != nil && strings.Contains(err.Error(), "cannot tell whether generation") {
		// It may have what others have not committed: the error says to give an empty directory.
		if !strings.Contains(err.Error(), c.dirs[d]+" (") {
			return fmt.Errorf("verify: %w", err)
		}
		c.lose(0, d)
		r, err := c.recoverBy(c.Process(), RecoverOptions{})
		if err != nil || r.Incomplete() != nil {
			return fmt.Errorf("with an empty directory: %v, %v", err, r)
		}
		return diff(fmt.Sprintf("generation %d came back", r.Generation), expected(r.Generation)[d], c.tree(d))
	}
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if r.Nodes[d].Status != Failing || r.Intact {
		return fmt.Errorf("verify: %+v", *r)
	}
	if !r.Protected {
		if s.oldest > 0 {
			return errors.New("verify: not protected any more")
		}
		return nil
	}
	// So does protect, and leaves it at that.
	p = c.Process()
	dying(p, 0, c.dirs[d], syscall.EIO)
	before := c.trees()
	if _, err := c.protectBy(p, ProtectOptions{}); err == nil || s.damaged == nil && !strings.Contains(err.Error(), c.dirs[d]) {
		return fmt.Errorf("protect: %v", err)
	}
	p.Kill()
	// With one more that is lost, the rest comes back around it.
	damaged := len(s.damaged)
	if slices.Contains(s.damaged, d) {
		damaged--
	}
	if damaged > 1 {
		return nil // too much for two
	}
	lost := (d + 1 + rng.IntN(len(c.dirs)-1)) % len(c.dirs)
	if damaged == 1 {
		lost = s.damaged[0]
		if lost == d {
			lost = s.damaged[1]
		}
	}
	if s.changed >= 0 && s.changed != d && r.Generation == s.oldest {
		lost = s.changed
	}
	for i := range c.dirs {
		if err := diff(fmt.Sprintf("protect: node %d", i), before[i], c.tree(i)); err != nil {
			return err
		}
	}
	if s.rolls && r.Generation < s.newest {
		return nil
	}
	c.lose(rng.IntN(2), lost)
	p = c.Process()
	dying(p, 0, c.dirs[d], syscall.EIO)
	rec, err := c.recoverBy(p, RecoverOptions{})
	p.Kill()
	if err != nil {
		return fmt.Errorf("recover around it: %w", err)
	}
	if err := diff(fmt.Sprintf("recover around it: node %d", lost), expected(rec.Generation)[lost], c.tree(lost)); err != nil {
		return err
	}
	// In another directory it is back.
	broken := c.dirs[d]
	c.dirs[d] = "/elsewhere"
	p = c.Process()
	dying(p, 0, broken, syscall.EIO)
	if rec, err = c.recoverBy(p, RecoverOptions{}); err != nil {
		return fmt.Errorf("recover elsewhere: %w", err)
	}
	return diff(fmt.Sprintf("recover elsewhere: node %d", d), expected(rec.Generation)[d], c.tree(d))
}
