//go:build linux

package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
)

// saveSnapshot writes a snapshot below every root.
func saveSnapshot(t *testing.T, roots []string, step int) {
	t.Helper()
	for n, dir := range writeNodes(t, len(roots), 40_000+step) {
		must(t, os.MkdirAll(roots[n], 0o755))
		copyTree(t, dir, filepath.Join(roots[n], fmt.Sprint("step-", step)))
	}
}

// newRoots returns the names of directories that do not exist.
func newRoots(t *testing.T, k int) (roots []string) {
	t.Helper()
	base := t.TempDir()
	for n := range k {
		roots = append(roots, filepath.Join(base, fmt.Sprint("root.", n)))
	}
	return roots
}

// TestSnapshots protects snapshots of several hosts, and of ranks, loses nodes, and gives their roots in other orders.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	protects := map[string]string{"group file": "protect"} // which has the flags
	for name, run := range map[string]func(t *testing.T, words, roots []string) (int, string){
		"group file": func(t *testing.T, words, roots []string) (int, string) { // in which flags may be that some verbs have not
			file := writeGroup(t, roots, nil, "tolerate: 2", "step: latest", "retain: 2")
			r := volleyRun(append(words, "--group", file)...)
			return r.code, r.stdout + r.stderr
		},
		"ssh": ways["ssh"],
		"tcp": ways["tcp"],
	} {
		t.Run(name, func(t *testing.T) {
			roots := newRoots(t, 4)
			do := func(want int, words string, texts ...string) string {
				t.Helper()
				code, text := run(t, strings.Fields(words), roots)
				if code != want {
					t.Fatalf("%s: exit code %d: %s", words, code, text)
				}
				wants(t, text, texts...)
				return text
			}
			for step := 9; step <= 11; step++ {
				saveSnapshot(t, roots, step)
				snapshot := fmt.Sprintf("snapshot   step-%d\n", step)
				if text := do(exit.OK, cmp.Or(protects[name], "protect --step latest --tolerate 2 --retain 2")); strings.Count(text, snapshot) != 1 {
					t.Fatal(text)
				}
			}
			saveSnapshot(t, roots, 12) // which no node has protected when two are lost
			var steps []string
			for _, n := range []int{3, 0, 1, 2} {
				steps = append(steps, filepath.Join(roots[n], "step-11"))
			}
			want := dataOfAll(t, steps)
			removeAll(t, roots[0], roots[2])
			roots = []string{roots[3], roots[0], roots[1], roots[2]}
			do(exit.OK, "snapshots", "\n12    no", "2 of 4  incomplete: it is not protected, and missing or empty at", "recoverable: not whole at ")
			if text := do(exit.OK, "snapshots --json", `"latest": 11,`); strings.Contains(text, `"step": 9,`) {
				t.Error(text)
			}
			do(exit.OK, "recover --step latest --json", `"step": 11,`, "step-12 is passed over")
			equal(t, dataOfAll(t, steps), want)
			for _, verb := range []string{"verify --step latest", "verify --step 11", "status --step latest", "status --step 11"} {
				do(exit.OK, verb, "step-11")
			}
			if text := do(exit.Wrong, "verify --step 10"); strings.Count(text, "  lost  ") != 2 {
				t.Error(text)
			}
			do(exit.OK, "recover --step 10")
			do(exit.Usage, "protect --step 12 --tolerate 2", "step-12 is not at every node: ")
		})
	}
}

// TestSnapshotsMisuse gives flags that make no sense. Where all that says that the newest snapshot is protected is
// damaged, no older one takes its place, unless the command line names it.
func TestSnapshotsMisuse(t *testing.T) {
	t.Parallel()
	roots := newRoots(t, 3)
	saveSnapshot(t, roots, 1)
	for words, want := range map[string]string{
		"protect --tolerate 1 --step latest --retain -1":           "--retain -1:",
		"protect --tolerate 1 --step -3":                           "--step: \"-3\": want latest, or a number, 0 or more",
		"protect --tolerate 1 --step x":                            "--step: \"x\": want latest",
		"protect --tolerate 1 --step latest --group-size 3":        "--group-size: snapshots are of one group",
		"snapshots --group-size 3":                                 "--group-size: snapshots are of one group",
		"recover --step 7":                                         "step-7 is at no node that can be read",
		"protect --tolerate 1 --step latest " + roots[0] + "/none": "no step-N (N a number without leading zeros) is at every node",
		"snapshots /dev/null":                                      "is not a directory: name the root",
	} {
		expect(t, exit.Usage, words, roots, want)
	}
	expect(t, exit.Absent, "verify --step latest", roots, "no snapshot can be recovered: step-1: it is not protected")
	for _, root := range roots {
		if has, err := os.ReadDir(root); err != nil || len(has) != 1 {
			t.Errorf("%s has %v, %v", root, has, err)
		}
	}
	expect(t, exit.OK, "protect --step latest --tolerate 1", roots)
	saveSnapshot(t, roots, 2)
	expect(t, exit.OK, "protect --step latest --tolerate 1", roots)
	for _, root := range roots {
		must(t, os.Truncate(filepath.Join(root, "step-2/.volley/generation.1/manifest.json"), 20))
	}
	expect(t, exit.Usage, "recover --step latest", roots, "step-2: ", "generation.1/manifest.json", "no older snapshot takes its place", "--step N")
	expect(t, exit.OK, "snapshots", roots, "unclear: ", "in force")
	expect(t, exit.OK, "recover --step 1", roots)
}
