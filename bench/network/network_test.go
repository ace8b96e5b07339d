package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestDocument compares the tables and the charts of docs/performance.md with what the results
// beside them give.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"performance.md", "performance.jsonl"} {
		data := must(os.ReadFile(filepath.Join("../../docs", name)))(t)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := table([]string{filepath.Join(dir, "performance.jsonl"), filepath.Join(dir, "performance.md")}); err != nil {
		t.Fatal(err)
	}
	drawings, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil || len(drawings) == 0 {
		t.Fatal(drawings, err)
	}
	for _, name := range append(drawings, "performance.md") {
		name = filepath.Base(name)
		got := must(os.ReadFile(filepath.Join(dir, name)))(t)
		if want, err := os.ReadFile(filepath.Join("../../docs", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s: %v; not what go run ./bench/network table docs/performance.jsonl docs/performance.md writes", name, err)
		}
	}
}

// TestCells reads back what is written, keeps the last of cells for the same setting, and compares with the best peer.
func TestCells(t *testing.T) {
	setting := Cell{Network: "n", K: 4, Matrix: "m", Field: "f", Size: 1 << 20, Bound: 0.125}
	with := func(ways ...Way) Cell {
		c := setting
		c.Ways = ways
		return c
	}
	ours := Way{Name: bare, Plan: "exchange", Seconds: 0.25, Later: 0.001, Model: 0.2}
	cells := []Cell{
		with(ours, Way{Name: ring, Seconds: 1}, Way{Name: alltoall2, Seconds: 0.5}, Way{Name: allgather, LeftOut: "long"},
			Way{Name: isend2Uncoded, Seconds: 0.2, Dropped: 3}, Way{Name: raw, Seconds: 0.16},
			Way{Name: asDefault, Seconds: 0.26, First: 0.004, Check: 0.008}),
	}
	var b bytes.Buffer
	if err := writeCells(&b, append([]Cell{with(ours)}, cells...)); err != nil {
		t.Fatal(err)
	}
	got, err := readCells(b.Bytes())
	if err != nil || !reflect.DeepEqual(got, cells) {
		t.Fatalf("%v, %v; want %v", got, err, cells)
	}
	text := tables(got, "x")
	for _, want := range []string{
		"| 4 | n | warm | 0.50 – 0.50 | 1.25 – 1.25 | 1.56 – 1.56 |\n",
		"\nMatrix m over f, warm:\n",
		"| 4 | 1 MiB | exchange | 250 ms | alltoall2 | 0.50 | 1.25 | 1.56 | 2.00 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	memory := Cell{Network: "shared memory", K: 2, Matrix: "m", Field: "f", Size: 1 << 18, Ways: []Way{ours,
		{Name: ring, Seconds: 0.5}, {Name: boundWindow, Seconds: 0.1}, {Name: windowOwn, Seconds: 0.05, Kernel: "GFNI"}, {Name: copiesOwn, LeftOut: "long"}}}
	text = tables([]Cell{memory}, "x")
	if !strings.Contains(text, "| to the window |\n") || !strings.Contains(text, "|  | 100 ms | 2.00 |\n") || strings.Contains(text, copiesOwn) {
		t.Errorf("the best way through a window is not beside Volley:\n%s", text)
	}
	if _, err := readCells([]byte("{}\n{\"k\": 4, \"speed\": 1}")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a cell with an unknown key was read: %v", err)
	}
}
