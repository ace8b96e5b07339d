package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"volley/bench"
	"volley/bench/instructions"
	"volley/field"
)

// TestBench measures little, and checks which rows there are.
func TestBench(t *testing.T) {
	var table struct{ Rows []map[string]any }
	var stdout, stderr strings.Builder
	if code := run(t.Context(), strings.Fields("--case dense,parity,allgather -k 4,8 --size 128B -n 1 --algorithm additive-fft,universal,universal --format json"), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d, %s", code, stderr.String())
	}
	if err := json.Unmarshal([]byte(stdout.String()), &table); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, r := range table.Rows {
		rows = append(rows, r["case"].(string)+" "+r["algorithm"].(string))
		if r["wrong"] != 0.0 || r["size"] != 128.0 || r["cpu"] == "" || r["peer_seconds"] == nil {
			t.Errorf("%v", r)
		}
	}
	const want = "dense universal, dense universal, parity additive-fft, parity universal, parity additive-fft, parity universal, allgather allgather, allgather allgather"
	if got := strings.Join(rows, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBenchRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--case sparse":                     `case "sparse": want one of dense`,
		"-k 1":                              "want 2 to 128",
		"--size much":                       "want a size such as 64MiB",
		"--algorithm magic":                 "want auto or one of",
		"--case dense -k 4 --algorithm dft": "no such structure",
		"-n 0":                              "want a whole number, 1 or more",
		"--format svg":                      "want one of text, csv, json",
		"--instructions sse":                `--instructions "sse": want some of all, no-gfni`,
		"--instructions all --profiles x":   "--profiles takes no --instructions",
		"packets":                           "takes flags only",
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), strings.Fields(args), &stdout, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %s%s", args, code, stdout.String(), stderr.String())
		}
	}
	err := checkResults([]bench.Result{{}, {Case: "dense", Algorithm: "universal", K: 4, Wrong: 2}})
	if !errors.Is(err, errWrong) || err.Error() != "case dense by universal with K = 4: 2 coded packets wrong" {
		t.Error(err)
	}
	var stdout strings.Builder
	if code := run(t.Context(), []string{"--help"}, &stdout, io.Discard); code != 0 || !strings.Contains(stdout.String(), "--case CASES") || !strings.Contains(stdout.String(), "leopard") {
		t.Errorf("exit %d, %s", code, stdout.String())
	}
}

// TestInstructions measures with every set of instructions: a set is refused where the kernels are others.
func TestInstructions(t *testing.T) {
	sets := instructions.Sets
	if field.Kernels() != "AVX2" && !strings.HasPrefix(field.Kernels(), "GFNI") {
		sets = []string{instructions.Available, instructions.Portable}
	}
	program := filepath.Join(t.TempDir(), "speed")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var stderr strings.Builder
	c := exec.Command(program, "--case=dense,dft", "-k", "4", "--size", "128", "-n", "1", "--instructions", strings.Join(sets, ","), "--format", "json")
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var table struct{ Rows []bench.Result }
	if err := json.Unmarshal(out, &table); err != nil || len(table.Rows) != 2*len(sets) {
		t.Fatalf("%d rows, %v", len(table.Rows), err)
	}
	for i, r := range table.Rows {
		if r.Set != sets[i/2] || r.Wrong != 0 || r.Set == instructions.Portable && r.Kernels != "generic Go" {
			t.Errorf("%+v", r)
		}
	}
}
