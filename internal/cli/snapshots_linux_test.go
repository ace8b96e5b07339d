//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// saveSnapshot writes a snapshot of every node, and returns the roots.
func saveSnapshot(t *testing.T, base string, k, step int) (roots []string) {
	t.Helper()
	for n, dir := range writeNodes(t, k, 40_000+step) {
		root := filepath.Join(base, fmt.Sprint("root.", n))
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		copyTree(t, dir, filepath.Join(root, ".new"))
		if err := os.Rename(filepath.Join(root, ".new"), filepath.Join(root, fmt.Sprint("step-", step))); err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	return roots
}

// TestSnapshots protects snapshots of several hosts, and of ranks, loses nodes, and gives their roots in other orders.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	engines := map[string]func(args ...string) result{
		"one process": func(args ...string) result { return volleyRun(args...) },
		"ssh":         func(args ...string) result { return f.run(f.of(args...)...) },
		"tcp": func(args ...string) result {
			first := slices.IndexFunc(args, filepath.IsAbs)
			roots := args[first:]
			run := newRanks(t, len(roots), nil, append(slices.Clone(args[:first]), "{ROOT}")...)
			for r, c := range run.commands {
				c.Args[len(c.Args)-1] = roots[r]
			}
			codes, text := run.do()
			return result{code: slices.Max(codes), stdout: text, stderr: text}
		},
	}
	for name, do := range engines {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			var roots []string
			with := func(args ...string) []string { return append(args, roots...) }
			for step := range 4 {
				roots = saveSnapshot(t, base, 4, 9+step)
				if step == 3 { // which no node has protected when two are lost
					break
				}
				r := do(with("protect", "--step", "latest", "--tolerate", "2", "--retain", "2")...)
				if r.code != exit.OK || strings.Count(r.stdout, fmt.Sprintf("snapshot   step-%d\n", 9+step)) != 1 {
					t.Fatalf("%+v", r)
				}
			}
			want := dataOfAll(t, []string{filepath.Join(roots[0], "step-11"), filepath.Join(roots[1], "step-11"), filepath.Join(roots[2], "step-11"), filepath.Join(roots[3], "step-11")})
			for _, n := range []int{0, 2} {
				if err := os.RemoveAll(roots[n]); err != nil {
					t.Fatal(err)
				}
			}
			roots = []string{roots[3], roots[0], roots[1], roots[2]}
			r := do(with("snapshots")...)
			for _, text := range []string{"\n12    no", "2 of 4  incomplete: it is not protected, and missing or empty at", "recoverable: not whole at "} {
				if r.code != exit.OK || !strings.Contains(r.stdout, text) {
					t.Errorf("%+v: want %q", r, text)
				}
			}
			if r := do(with("snapshots", "--json")...); !strings.Contains(r.stdout, `"latest": 11,`) || strings.Contains(r.stdout, `"step": 9,`) {
				t.Errorf("%+v", r)
			}
			r = do(with("recover", "--step", "latest", "--json")...)
			if r.code != exit.OK || !strings.Contains(r.stdout, `"step": 11,`) || !strings.Contains(r.stdout, "step-12 is passed over") {
				t.Fatalf("%+v", r)
			}
			var got []string
			for _, n := range []int{1, 2, 3, 0} {
				got = append(got, filepath.Join(roots[n], "step-11"))
			}
			if is := dataOfAll(t, got); !slices.Equal(is, want) {
				t.Fatalf("%q: want %q", is, want)
			}
			for _, verb := range []string{"verify", "status"} {
				for _, which := range [][]string{{"--step", "latest"}, {"--step", "11"}} {
					if r := do(with(append([]string{verb}, which...)...)...); r.code != exit.OK || !strings.Contains(r.stdout, "step-11") {
						t.Errorf("%+v", r)
					}
				}
			}
			if r := do(with("verify", "--step", "10")...); r.code != exit.Wrong || strings.Count(r.stdout, "  lost  ") != 2 {
				t.Errorf("%+v", r)
			}
			if r := do(with("recover", "--step", "10")...); r.code != exit.OK {
				t.Errorf("%+v", r)
			}
			if r := do(with("protect", "--step", "12", "--tolerate", "2")...); r.code != exit.Usage || !strings.Contains(r.stderr, "step-12 is not at every node: ") {
				t.Errorf("%+v", r)
			}
		})
	}
	f.ended(t)
}

// TestSnapshotsMisuse gives flags that make no sense.
func TestSnapshotsMisuse(t *testing.T) {
	t.Parallel()
	roots := saveSnapshot(t, t.TempDir(), 3, 1)
	for args, want := range map[string]string{
		"protect --tolerate 1 --retain 2":                          "--retain 2: want how many snapshots of roots stay",
		"protect --tolerate 1 --step latest --retain -1":           "--retain -1:",
		"protect --tolerate 1 --step -3":                           "--step: \"-3\": want latest, or a number, 0 or more",
		"protect --tolerate 1 --step x":                            "--step: \"x\": want latest",
		"protect --tolerate 1 --step latest --group-size 3":        "--group-size: snapshots are of one group",
		"snapshots --group-size 3":                                 "--group-size: snapshots are of one group",
		"recover --step 7":                                         "all nodes are lost",
		"protect --tolerate 1 --step latest " + roots[0] + "/none": "no step-N (N a number without leading zeros) is at every node",
	} {
		r := volleyRun(append(strings.Fields(args), roots...)...)
		if r.code != exit.Usage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %+v: want %q", args, r, want)
		}
	}
	if r := volleyRun(append([]string{"verify", "--step", "latest"}, roots...)...); r.code != exit.Absent || !strings.Contains(r.stderr, "no snapshot can be recovered: step-1: it is not protected") {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(roots[0]+".file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := volleyRun("snapshots", roots[0]+".file", roots[1]); r.code != exit.Usage || !strings.Contains(r.stderr, "is not a directory: name the root") {
		t.Errorf("%+v", r)
	}
	for _, root := range roots {
		if has, err := os.ReadDir(root); err != nil || len(has) != 1 {
			t.Errorf("%s has %v, %v", root, has, err)
		}
	}
}
