package algo_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"volley/algo"
)

var update = flag.Bool("update", false, "write the registry's table into docs/algorithms.md")

// TestDocs checks that docs/algorithms.md has the registry's table and a section
// for each algorithm.
func TestDocs(t *testing.T) {
	const path = "../docs/algorithms.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	var table strings.Builder
	table.WriteString("| algorithm | C1, rounds | C2, packets |\n|---|---|---|\n")
	for _, a := range algo.Algorithms() {
		fmt.Fprintf(&table, "| [`%s`](#%s) |", a.Name, a.Name)
		for _, cell := range []string{a.C1, a.C2} {
			fmt.Fprintf(&table, " %s |", strings.ReplaceAll(cell, "|", `\|`)) // else it ends the cell
		}
		table.WriteString("\n")
		if !strings.Contains(text, "\n## "+a.Name+"\n") {
			t.Errorf("%s has no section %q", path, a.Name)
		}
	}
	const begin, end = "<!-- registry: begin (go test ./algo -update) -->\n", "<!-- registry: end -->"
	before, rest, ok := strings.Cut(text, begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: no marks around the registry's table", path)
	}
	if old == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s: the table is not that of the registry: run go test ./algo -update", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
