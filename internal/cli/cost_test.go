package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"volley/algo"
)

// TestMeans checks the means of C2 over its lower bound that docs and reports name: of the
// paper's algorithm, and of the tuned one in as many rounds.
func TestMeans(t *testing.T) {
	text := mustRun(t, strings.Fields("cost -k 2..2048 -p 1,2,4,8 --algorithm universal,prepare-and-shoot --rounds-over 0 --mean --format csv")...)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{1.393, 1.406, 1.387, 1.357}, {1.665, 1.911, 2.465, 2.645}} {
		for c, most := range want {
			got, err := strconv.ParseFloat(rows[i+1][c+1], 64)
			if err != nil || got > most+0.0005 || i == 1 && got < most-0.0005 {
				t.Errorf("%s, %s: %v, %v, want %v", rows[i+1][0], rows[0][c+1], got, err, most)
			}
		}
	}
}

// TestCostOutput checks that a file is written whole, or stays as it was.
func TestCostOutput(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "c2.csv")
	if out := mustRun(t, "cost", "-k", "2..9", "--format", "csv", "-o", name); out != "" {
		t.Errorf("printed %q", out)
	}
	if got, want := readFile(t, name), mustRun(t, "cost", "-k", "2..9", "--format", "csv"); string(got) != want {
		t.Error("the file is not what would be printed")
	}
	mustRun(t, "cost", "-k", "4", "-o", name) // replaces it
	before := readFile(t, name)
	for _, args := range []string{"-k 1 --mean", "-k x", "-k 4 --format svg"} {
		if r := volleyRun(append([]string{"cost", "-o", name}, strings.Fields(args)...)...); r.code != exitUsage {
			t.Errorf("%s: exit %d", args, r.code)
		}
	}
	if !bytes.Equal(before, readFile(t, name)) || !bytes.Contains(before, []byte("universal")) {
		t.Errorf("the file has become %q", readFile(t, name))
	}
	if names := listDir(t, dir); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
	if err := os.Symlink("/dev/null", filepath.Join(dir, "null")); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{dir, filepath.Join(dir, "null"), filepath.Join(dir, "no", "file"), filepath.Join(name, "file")} {
		if r := volleyRun("cost", "-k", "4", "-o", to); r.code != exitUsage || !strings.Contains(r.stderr, to) {
			t.Errorf("-o %s: exit %d, %s", to, r.code, r.stderr)
		}
	}
}

func TestCostUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-p 0", "0 ports"},
		{"-p 1,x", `"x"`},
		{"-p 4..1", "4..1"},
		{"--rounds-over -1", "-1"},
		{"--rounds-over 0..", `"0.."`},
		{"--algorithm universal,magic", "magic"},
		{"--algorithm universal,auto", "auto"},
		{"--algorithm universal,dft", "--matrix"},
		{"--algorithm ,", `""`},
		{"-k 1..65536 -p 1,2", "65536 rows"},
		{"--format svg", "want one of text, csv, json"},
		{"--mean --load", "leave one out"},
		{"--mean -k 1", "K above 1"},
		{"--jitter much", "much"},
		{"--jitter gauss:0.2", "gauss"},
		{"--jitter -0.1", "-0.1"},
		{"--jitter NaN", "NaN"},
		{"--jitter 1001", "1001"},
		{"--stragglers 0.05", "0.05"},
		{"--stragglers 2x4", "2x4"},
		{"--stragglers 0.1x0.5", "0.1x0.5"},
		{"--stragglers 0.1xNaN", "0.1xNaN"},
		{"--stragglers x", `"x"`},
		{"--jitter 0.2 --repeat 0", "--repeat 0"},
		{"--jitter 0.2 --repeat 99999999", "99999999"},
		{"--jitter 0.2 --seed -1", "-1"},
		{"--seed 3", "--jitter"},
		{"--repeat 3", "--jitter"},
		{"--jitter 0.2 --mean", "--mean"},
		{"-k 1048576 --algorithm ring-allgather --jitter 0.2", "too large"},
		{"--size 1KiB..1MiB", "--size"},
		{"--matrix cauchy --algorithm lagrange -k 4", "lagrange"},
		{"-k 4 --algorithm ring-allgather --rounds-over 0", "--rounds-over"},
		{"--matrix cauchy --algorithm lagrange,dft -k 4", "no algorithm for this: dft"},
	} {
		r := volleyRun(append([]string{"cost"}, strings.Fields(c.args)...)...)
		if r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, printed %q, %q does not contain %q", c.args, r.code, r.stdout, r.stderr, c.want)
		}
	}
	for _, args := range []string{"--mean", "--load", "--format csv"} {
		var stderr strings.Builder
		code := run(context.Background(), append([]string{"cost", "-k", "4"}, strings.Fields(args)...), fullDisk{}, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), errFull.Error()) {
			t.Errorf("%s on a full disk: exit %d, %q", args, code, stderr.String())
		}
	}
}

// TestCostInterrupt checks that what takes long can be stopped.
func TestCostInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errInterrupted)
	for _, args := range []string{"", "--jitter 0.2", "--load"} {
		var stdout, stderr strings.Builder
		code := run(ctx, append([]string{"cost", "-k", "64"}, strings.Fields(args)...), &stdout, &stderr)
		if code != exitInterrupted || stdout.String() != "" {
			t.Errorf("%s: exit %d, %s%s", args, code, stdout.String(), stderr.String())
		}
	}
}

// TestLoad checks a table for a million processors, some of which is not worth finding out.
func TestLoad(t *testing.T) {
	text := mustRun(t, strings.Fields("cost -k 1000000 --algorithm universal,central --rounds-over 20 --load --format json")...)
	var table struct{ Rows []map[string]any }
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2 {
		t.Fatalf("%v", table.Rows)
	}
	if r := table.Rows[0]; r["algorithm"] != "universal" || r["sent_most"] != r["C2"] || r["memory_forgetting"].(float64) > r["memory"].(float64) {
		t.Errorf("%v", r)
	}
	if r := table.Rows[1]; r["received_most"] != 999_999.0 || r["memory_forgetting"] != nil || r["multiply_adds"] != 1e12 {
		t.Errorf("%v", r)
	}
}

// TestNoiseColumns checks that simulated times are there, the same for a seed, and as in
// the model without noise.
func TestNoiseColumns(t *testing.T) {
	csvOf := func(args string) map[string]string {
		rows, err := csv.NewReader(strings.NewReader(mustRun(t, append([]string{"cost", "--format", "csv"}, strings.Fields(args)...)...))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]string{}
		for i, name := range rows[0] {
			m[name] = rows[1][i]
		}
		return m
	}
	quiet := csvOf("-k 16 --jitter 0")
	for _, a := range algo.Algorithms() {
		if a.Structured || quiet[a.Name+"_C1"] == "" {
			continue
		}
		model, err := strconv.ParseFloat(quiet[a.Name+"_seconds"], 64)
		median, err2 := strconv.ParseFloat(quiet[a.Name+"_median_seconds"], 64)
		if err != nil || err2 != nil || median > model*(1+1e-9) || quiet[a.Name+"_p95_seconds"] != quiet[a.Name+"_median_seconds"] {
			t.Errorf("%s: %v, %v: %v", a.Name, err, err2, quiet)
		}
	}
	const noisy = "-k 16 --algorithm universal --jitter exponential:0.3 --stragglers 0.1x4 --repeat 20 "
	a, b, c := csvOf(noisy+"--seed 5"), csvOf(noisy+"--seed 5"), csvOf(noisy+"--seed 6")
	const median, p95 = "universal_median_seconds", "universal_p95_seconds"
	if a[median] != b[median] || a[p95] != b[p95] || a[median] == c[median] {
		t.Errorf("seed 5 %v and %v, seed 6 %v", a, b, c)
	}
}
