//go:build unix

package cli

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/internal/exit"
)

var groupKills = flag.Int("group.kills", 1, "how often each verb on a group is killed")

// A killing is a verb that is killed, and the group that it is run on.
type killing struct {
	name    string
	args    []string
	prepare func(t *testing.T, dirs []string) // of a group that is protected, but for the first
	own     []int                             // nodes at which files are to come back
	changed []int                             // nodes that are not as they were protected
}

// killings are the verbs that are killed, each on 5 nodes of which any two may be lost.
var killings = []killing{
	{name: "first protect", args: []string{"protect", "--tolerate", "2"}},
	{name: "update", args: []string{"protect", "--tolerate", "2"}, changed: []int{1}, prepare: func(t *testing.T, dirs []string) {
		rewrite(t, filepath.Join(dirs[1], "sub/b"), bytes.Repeat([]byte("new"), 40_000))
		rewrite(t, filepath.Join(dirs[1], "more"), []byte("not there before"))
	}},
	{name: "recover lost", args: []string{"recover"}, own: []int{0, 3}, changed: []int{0, 3}, prepare: func(t *testing.T, dirs []string) {
		for _, n := range []int{0, 3} {
			must(t, os.RemoveAll(dirs[n]))
		}
	}},
	{name: "recover damaged", args: []string{"recover", "--revert", "deleted"}, own: []int{2, 4}, changed: []int{2, 4}, prepare: func(t *testing.T, dirs []string) {
		vanish(t, filepath.Join(dirs[2], "ckpt"))
		vanish(t, filepath.Join(dirs[4], "sub/b"))
		parity, err := filepath.Glob(filepath.Join(dirs[4], ".volley/generation.*/parity"))
		if err != nil || len(parity) != 1 {
			t.Fatal(parity, err)
		}
		damage(t, parity[0])
		must(t, os.RemoveAll(filepath.Join(dirs[2], "sub")))
	}},
	{name: "verify", args: []string{"verify"}},
}

// copyTree copies a directory with the modes and times of everything in it.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// testKilled kills each verb that often, by strike, which runs it and says whether it was
// struck: no data is touched, the group is as safe as before, and the next run completes it.
func testKilled(t *testing.T, times int, size int, strike func(t *testing.T, rng *rand.Rand, limit time.Duration, args []string) (struck bool)) {
	for _, k := range killings {
		t.Run(k.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			rng := rand.New(rand.NewPCG(seed, 0))
			g := &pairGroup{dirs: writeNodes(t, 5, size)}
			g.base = filepath.Dir(g.dirs[0])
			if k.name != "first protect" {
				mustRun(t, g.with("protect", "--tolerate", "2")...)
			}
			whole := dataOfAll(t, g.dirs)
			if k.prepare != nil {
				k.prepare(t, g.dirs)
			}
			g.saved = filepath.Join(t.TempDir(), "saved")
			copyTree(t, g.base, g.saved)
			var before []map[string]string
			for _, dir := range g.dirs {
				before = append(before, filesOf(t, dir))
			}

			// What is to be there in the end, and how long it takes.
			g.whole = nil
			begun := time.Now()
			strike(t, rng, 0, g.with(k.args...))
			limit := time.Since(begun)
			g.whole = dataOfAll(t, g.dirs)
			var after []map[string]string
			for n, dir := range g.dirs {
				if !slices.Contains(k.changed, n) && g.whole[n] != whole[n] {
					t.Fatalf("node %d is\n%s\nwant\n%s", n, g.whole[n], whole[n])
				}
				after = append(after, filesOf(t, dir))
			}
			struck := 0
			for i := range times {
				when := fmt.Sprintf("%s killed, seed %d, time %d", k.name, seed, i)
				g.restore(t)
				if strike(t, rng, limit*5/4, g.with(k.args...)) {
					struck++
				}
				for n, dir := range g.dirs {
					if !slices.Contains(k.own, n) {
						if now := dataOf(t, dir); now != g.whole[n] {
							t.Fatalf("%s: node %d is\n%s\nwant\n%s", when, n, now, g.whole[n])
						}
						continue
					}
					now := filesOf(t, dir)
					for name, is := range now {
						if is != before[n][name] && is != after[n][name] {
							t.Fatalf("%s: %s of node %d is neither what was there nor what was protected", when, name, n)
						}
					}
					for name := range before[n] {
						if now[name] == "" && after[n][name] != "" {
							t.Fatalf("%s: %s of node %d is gone", when, name, n)
						}
					}
				}
				g.completeKilled(t, when, rng, &k)
			}
			t.Logf("killed %d times, %d of them in the middle", times, struck)
		})
	}
}

// completeKilled checks that the group has its old or its new generation, and that the run,
// once more, completes what was begun.
func (g *pairGroup) completeKilled(t *testing.T, when string, rng *rand.Rand, k *killing) {
	t.Helper()
	run := func(args ...string) {
		t.Helper()
		volleyRun(g.with(args...)...).is(t, exit.OK)
	}
	lose := func(nodes []int) {
		t.Helper()
		for _, n := range nodes {
			must(t, os.RemoveAll(g.dirs[n]))
		}
		when += fmt.Sprintf(", nodes %v lost", nodes)
	}
	r := volleyRun(g.with("verify")...)
	switch {
	case k.name == "first protect" && r.code == exit.Wrong && strings.Contains(r.stderr, "the group is not protected"):
	case k.name == "first protect" && r.code == exit.Wrong: // some nodes have it: nothing has been promised
	case r.code != exit.OK && r.code != exit.Wrong || strings.Contains(r.stderr, "not protected"):
		t.Fatalf("%s: then verify: %+v", when, r)
	case rng.IntN(2) == 0: // what has not changed is as safe as before
		var others []int
		for _, n := range rng.Perm(len(g.dirs)) {
			if !slices.Contains(k.changed, n) {
				others = append(others, n)
			}
		}
		lost := others[:2-min(2, len(k.changed))]
		if len(k.own) == 2 {
			lost = k.own // once more, with all that has come back
		}
		lose(lost)
		run("recover")
		g.check(t, when)
	}
	run(k.args...)
	run("verify")
	g.check(t, when+", and run again")
	lose(rng.Perm(len(g.dirs))[:2])
	run("recover")
	g.check(t, when)
	run("verify")
	for _, dir := range g.dirs {
		checkLeft(t, when, dir)
	}
}

// TestGroupKilled kills every verb on groups at random moments.
func TestGroupKilled(t *testing.T) {
	t.Parallel()
	testKilled(t, *groupKills, 60_000, func(t *testing.T, rng *rand.Rand, limit time.Duration, args []string) bool {
		p := newProgram(t, args...)
		must(t, p.Start())
		if limit > 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(limit))))
			p.Process.Kill()
		}
		r := p.end(t)
		if limit == 0 && r.code != exit.OK {
			t.Fatalf("%s: %+v", args, r)
		}
		return r.code < 0 // by a signal
	})
}
