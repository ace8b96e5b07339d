package group

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/verifyall"
)

// TestExposure has users and disks do what they do to random nodes. As many nodes more as verify and status say may be
// lost are lost, and everything of theirs comes back. Where one more is lost, exactly the files that they name do not.
func TestExposure(t *testing.T) {
	t.Parallel()
	for seed := range verifyall.Pick(24, 200) {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		k := 5
		r := 1 + seed%2
		w := newWorld(k, r)
		if seed%4 == 3 { // snapshots of file systems, whose .volley lies elsewhere
			w = w.with(protection.Settings{Meta: "/meta"})
			w.MkdirAll("/meta", 0o755)
		}
		for n := range k {
			for i := range 12 {
				w.WriteFile(fmt.Sprintf("/n%d/more%d", n, i), random(rng, 1+rng.IntN(20_000)), 0o644)
			}
		}
		must(t, w.protect())
		was := w.trees()
		disturb(t, w, rng)
		for name, look := range map[string]func() (*VerifyReport, error){
			"verify": func() (*VerifyReport, error) { return w.verifyBy(w.Process()) },
			"status": func() (*VerifyReport, error) { return w.statusBy(w.Process()) },
		} {
			v, err := look()
			must(t, err)
			dry := w.clone()
			dry.deletes = true
			if found, err := dry.recoverBy(dry.Process(), RecoverOptions{DryRun: true}); err != nil || name == "verify" && v.Beyond != (found.Unrecovered != nil) {
				t.Fatalf("seed %d: %v, and verify says that not all comes back: %t, of %v", seed, err, v.Beyond, found)
			}
			var whole []int
			for _, n := range v.Nodes {
				if n.Status == Intact {
					whole = append(whole, n.Node)
				}
			}
			risks := map[int][]string{}
			for _, x := range v.Risks {
				for _, p := range x.Names {
					if risks[x.Node] = append(risks[x.Node], string(p)); p == "sub/deep/y" { // its other name
						risks[x.Node] = append(risks[x.Node], "twin")
					}
				}
				slices.Sort(risks[x.Node])
			}
			for more := range 2 {
				if len(whole) < v.MayLose+more || v.MayLose+more == 0 || v.MayLose+more > r {
					continue
				}
				c := w.clone()
				var lost []int
				for _, i := range rng.Perm(len(whole))[:v.MayLose+more] {
					lost = append(lost, whole[i])
				}
				c.lose(seed, lost...)
				rec, err := c.recoverBy(c.Process(), RecoverOptions{})
				if err != nil {
					t.Fatalf("seed %d, %s: %d may be lost, lost %v: %v", seed, name, v.MayLose, lost, err)
				}
				for _, n := range lost {
					is := lines(c.tree(n))
					var missing []string
					for path, line := range lines(was[n]) {
						if is[path] == "" && (line[0] == '-' || line[0] == 'u') {
							missing = append(missing, path)
						}
					}
					var want []string
					if more == 1 {
						want = risks[n]
					}
					slices.Sort(missing)
					extra := slices.ContainsFunc(missing, func(p string) bool { return !slices.Contains(want, p) })
					if extra || name == "verify" && !slices.Equal(missing, want) {
						t.Fatalf("seed %d, %s: %d of %d may be lost, lost %v: node %d lacks %v, and it named %v (%v)", seed, name, v.MayLose, r, lost, n, missing, want, rec.Unrecovered)
					}
				}
			}
		}
	}
}

// disturb has users and disks do something to files of nodes.
func disturb(t *testing.T, w *world, rng *rand.Rand) {
	for n := range w.dirs { // some stay as they are
		for _, path := range w.filesOf(n) {
			if rng.IntN([]int{2, 4, 12, 1 << 30}[rng.IntN(4)]) > 0 || n == rng.IntN(len(w.dirs)) {
				continue
			}
			w.Wait(1e6)
			is, err := w.ReadFile(path)
			must(t, err)
			switch rng.IntN(5) {
			case 0: // another content of the same length
				for i := range is {
					is[i] ^= 0x55
				}
				w.WriteFile(path, is, 0o644)
			case 1:
				w.Remove(path)
			case 2:
				w.WriteFile(path, random(rng, 30_000), 0o644)
			case 3:
				w.Rename(path, path+".moved")
			case 4:
				w.RemoveAll(w.own(n) + "/generation.1/parity")
			}
		}
	}
}

// filesOf returns the files of a node that have data.
func (w *world) filesOf(n int) (list []string) {
	for name, line := range lines(w.Tree(w.dirs[n], tree.MetaName)) {
		if line[0] == '-' {
			list = append(list, w.dirs[n]+"/"+name)
		}
	}
	slices.Sort(list)
	return list
}
