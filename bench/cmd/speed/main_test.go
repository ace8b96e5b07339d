package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"volley/bench"
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
		"--case dense,":                     `case "": want one of`,
		"-k 1":                              "want 2 to 128",
		"-k 4..2":                           `-k "4..2"`,
		"--case dense -k 129":               "want 2 to 128",
		"--case dft -k 12":                  "want a power of 2",
		"--case dft --size 100":             "multiple of 32",
		"--case dense --size 0":             "multiple of 1",
		"--size much":                       "want a size such as 64MiB",
		"--algorithm magic":                 "want auto or one of",
		"--case dense -k 4 --algorithm dft": "no such structure",
		"-n 0":                              "want a number, 1 or more",
		"--format svg":                      "want one of text, csv, json",
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
