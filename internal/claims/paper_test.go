package claims

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPaperCosets has draw-and-loose compute the C((q-1)/Z, M) Vandermonde matrices of Theorem 3, one for each M of the (q-1)/Z cosets
// of Z points, at the theorem's cost: H rounds and packets, and those of prepare-and-shoot for M.
func TestPaperCosets(t *testing.T) {
	name := filepath.Join(t.TempDir(), "points")
	for _, c := range []struct{ q, generator, z, m, sets, rounds, packets int }{
		{13, 2, 4, 2, 3, 3, 3}, {13, 2, 2, 3, 20, 3, 3}, {13, 2, 4, 1, 3, 2, 2}, {17, 3, 4, 3, 4, 4, 4},
	} { // p = 1
		coset := func(first int) (points []int) {
			for j := range c.z {
				v := 1
				for range first + j*(c.q-1)/c.z {
					v = v * c.generator % c.q
				}
				points = append(points, v)
			}
			return points
		}
		sets := 0
		for chosen := range 1 << ((c.q - 1) / c.z) {
			var points []int
			for i := range (c.q - 1) / c.z {
				if chosen>>i&1 == 1 {
					points = append(points, coset(i)...)
				}
			}
			if len(points) != c.m*c.z {
				continue
			}
			sets++
			if err := os.WriteFile(name, []byte(strings.Trim(fmt.Sprint(points), "[]")), 0o666); err != nil {
				t.Fatal(err)
			}
			out := volley(t, "plan", "--model", "paper", "-k", strconv.Itoa(c.m*c.z), "--field", strconv.Itoa(c.q), "--matrix", "vandermonde",
				"--points", name, "--algorithm", "draw-and-loose", "--order", "any") // up to permutation of columns
			if !strings.Contains(out, fmt.Sprintf("C1 = %d rounds", c.rounds)) || !strings.Contains(out, fmt.Sprintf("C2 = %d packets", c.packets)) {
				t.Errorf("q = %d, points %v: want C1 = %d, C2 = %d:\n%s", c.q, points, c.rounds, c.packets, out)
			}
		}
		if sets != c.sets {
			t.Errorf("q = %d, Z = %d, M = %d: %d sets, want %d", c.q, c.z, c.m, sets, c.sets)
		}
	}
}

// TestPaper checks docs/paper.md: it has every numbered item of the paper, each with a test, and nine errata. TestNames
// checks the tests that it names, TestShellBlocks and TestInlineCommands run its commands.
func TestPaper(t *testing.T) {
	body, errata, ok := strings.Cut(read(t, filepath.Join(repository(t), "docs", "paper.md")), "\n## Errata\n")
	if !ok {
		t.Fatal("docs/paper.md has no errata")
	}
	var missing []string
	for kind, n := range map[string]int{"Definition": 1, "Lemma": 6, "Theorem": 4, "Remark": 5, "Algorithm": 1, "Figure": 4} {
		for i := range n {
			missing = append(missing, fmt.Sprintf("%s %d", kind, i+1))
		}
	}
	for line := range strings.Lines(body) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "item" {
			continue
		}
		missing = slices.DeleteFunc(missing, func(item string) bool { return strings.Contains(cells[1], item) })
		if !strings.Contains(cells[3], "`Test") {
			t.Errorf("no test: %s", line)
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/paper.md says nothing about %v", missing)
	}
	if n := len(regexp.MustCompile(`(?m)^\| [1-9] \|`).FindAllString(errata, -1)); n != 9 {
		t.Errorf("%d errata", n)
	}
}
