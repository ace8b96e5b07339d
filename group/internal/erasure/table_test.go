package erasure

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"volley"
)

var rewrite = flag.Bool("rewrite", false, "write the table in docs/protect.md anew")

// TestTable compares the table of docs/protect.md with the plans.
func TestTable(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/protect.md"
	const begin, end = "<!-- table -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	table := costTable(t)
	if old == table {
		return
	}
	if !*rewrite {
		t.Fatalf("%s has\n%s\nand the plans make\n%s\ngo test ./group/internal/erasure -run TestTable -rewrite", path, old, table)
	}
	if err := os.WriteFile(path, []byte(head+begin+table+end+tail), 0o666); err != nil {
		t.Fatal(err)
	}
}

// costTable is the table of what protecting takes and what redset takes.
func costTable(t *testing.T) string {
	const data = 1 << 30
	var b strings.Builder
	b.WriteString("| K | R | stored | rounds | sent | redset: rounds | sent |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, k := range []int{8, 64} {
		for _, r := range slices.Compact([]int{1, 4, k / 2}) {
			set := &Environment{Memory: volley.DefaultMemory, Network: volley.DefaultNetwork()}
			code, err := NewCode(k, r)
			must(t, err)
			c, err := code.Cost(t.Context(), set, data)
			must(t, err)
			fmt.Fprintf(&b, "| %d | %d | %.3g | %d | %.3g | %d | %d |\n", k, r, float64(c.StoredBytes)/data, c.Rounds, float64(c.SentBytes)/data, k-r, r)
		}
	}
	return b.String()
}
