package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/field"
	"volley/matrix"
)

// TestDocument compares the tables and the chart of docs/performance.md with what the
// results beside it give.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"performance.md", "performance.jsonl"} {
		data, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := table([]string{filepath.Join(dir, "performance.jsonl"), filepath.Join(dir, "performance.md")}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"performance.md", "performance.svg"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(filepath.Join("../../docs", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s: %v; not what go run ./bench/network table docs/performance.jsonl docs/performance.md writes", name, err)
		}
	}
}

// TestRows reads back what is written, keeps the last of rows for the same thing, and
// compares what may be compared.
func TestRows(t *testing.T) {
	dropped := 2.0
	rows := []Row{
		{K: 4, Link: "l", Matrix: "m", Field: "f", Size: 1 << 20, Who: ours, Plan: "universal", Ports: 1, C1: 2, C2: 2, Beta: 1e-3, Tau: 1e-7, Seconds: 0.25},
		{K: 4, Link: "l", Matrix: "m", Field: "f", Size: 1 << 20, Who: ring, C1: 3, C2: 3, Beta: 1e-3, Tau: 1e-7, Seconds: 0.5, Dropped: &dropped},
		{K: 4, Link: "l", Matrix: "m", Field: "f", Size: 1 << 20, Who: gather, C1: 4, C2: 6, Beta: 1e-3, Tau: 1e-7, LeftOut: "would take long"},
	}
	for i := range rows {
		rows[i].predict()
	}
	if got, want := rows[0].Predicted, 2e-3+2*(1<<20)*1e-7; got != want {
		t.Errorf("the model says %v, want %v", got, want)
	}
	compare(rows)
	if f := rows[0].Faster; len(f) != 1 || f[ring] != 2 {
		t.Errorf("faster than %v, want 2 times faster than the ring alone", f)
	}
	var b bytes.Buffer
	if err := writeRows(&b, append(rows[:1:1], rows...)); err != nil {
		t.Fatal(err)
	}
	got, err := readRows(b.Bytes())
	if err != nil || len(got) != 3 {
		t.Fatalf("%d rows, %v; want 3", len(got), err)
	}
	text := tables(got, "x.svg")
	for _, want := range []string{
		"### Matrix m over f\n", "| 4 | l | 1 MiB | universal | 2 | 2 | 0.25 (0.212) |", "0.5 (0.318), 2 dropped **2×**", "| – (0.633) |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if _, err := readRows([]byte(`{"k": 4, "speed": 1}`)); err == nil {
		t.Error("a row with an unknown key was read")
	}
}

// TestFill refuses a document without marks.
func TestFill(t *testing.T) {
	if got, err := fill([]byte("a\n"+beginMark+"old\n"+endMark+"b\n"), "new\n"); err != nil || string(got) != "a\n"+beginMark+"new\n"+endMark+"b\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := fill([]byte("a\n"+endMark+beginMark), ""); err == nil {
		t.Error("a document without marks in order was filled")
	}
}

// TestDirectSum compares the sum with maps that are applied block by block, for sizes
// about those of a block and of the period of packets.
func TestDirectSum(t *testing.T) {
	for _, name := range []string{"2^8", "257", "babybear"} {
		f, err := field.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		const k = 5
		spec := matrix.Spec{Family: "random", Argument: "1"}
		a, err := spec.Build(f, k, k)
		if err != nil {
			t.Fatal(err)
		}
		unit := f.SymbolBytes()
		for _, size := range []int{unit, 64 * unit, period * unit, (2*period + 3) * unit, cached + 4*unit} {
			in := make([][]byte, k)
			for i := range in {
				in[i] = make([]byte, size)
				packet(f, i, in[i])
				if f.FirstInvalid(in[i]) >= 0 {
					t.Fatalf("%s: packet %d is not over the field", name, i)
				}
			}
			for j := range k {
				var row []field.Element
				for i := range k {
					row = append(row, a.At(i, j))
				}
				got := make([]byte, size)
				apply(f.Map([][]field.Element{row}), unit, [][]byte{got}, in, false)
				if !bytes.Equal(got, directSum(a, j, size)) {
					t.Errorf("%s, %d bytes: coded packet %d differs", name, size, j)
				}
			}
		}
	}
}
