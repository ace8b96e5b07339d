package group

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// TestPowerCutAfter cuts the power when a verb has ended: nothing that it has done is missing.
func TestPowerCutAfter(t *testing.T) {
	inScenes(t, func(t *testing.T, s *scene, _ *rand.Rand) {
		for seed := range uint64(2) {
			rng := rand.New(rand.NewPCG(seed, 2))
			c := s.world.clone()
			done, err := s.verb(c, c.Process())
			if err != nil || !done {
				t.Fatalf("done %v, %v", done, err)
			}
			before, replaced := everything(c), replacedAt(c)
			c.PowerCut(func(string) bool { return seed == 0 || rng.IntN(2) == 0 })
			after := everything(c)
			for n := range c.dirs {
				if err := diff(fmt.Sprintf("seed %d: node %d", seed, n), before[n], after[n]); err != nil {
					t.Error(err)
				}
			}
			if err := diff(fmt.Sprintf("seed %d: replaced", seed), replaced, replacedAt(c)); err != nil {
				t.Error(err)
			}
			if err := c.whole(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	})
}

// everything lists what is at the nodes, but for locks, replaced files and notes of what was read, which need not last,
// and the times of .volley and what is in it.
func everything(w *world) []string {
	var list []string
	for n, dir := range w.dirs {
		info, err := w.Lstat(dir)
		if err != nil {
			panic(err)
		}
		text := fmt.Sprint(info.ModTime(), "\n", w.tree(n))
		for name, line := range lines(w.Tree(dir+"/"+tree.MetaName, store.LockFile, store.ReplacedName, store.ScrubName)) {
			if fields := strings.Fields(line); len(fields) == 4 {
				text += fmt.Sprintf("%s %s %s %s\n", name, fields[0], fields[2], fields[3])
			}
		}
		list = append(list, sortLines(text))
	}
	return list
}

// replacedAt lists what was put aside, and what is in it.
func replacedAt(w *world) string {
	var b strings.Builder
	for _, dir := range w.dirs {
		for name, line := range lines(w.Tree(dir + "/" + tree.MetaName + "/" + store.ReplacedName)) {
			if strings.HasPrefix(line, "-") {
				fmt.Fprintln(&b, dir, name, line)
			}
		}
	}
	return sortLines(b.String())
}
