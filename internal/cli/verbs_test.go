package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"volley/algo"
	"volley/field/fieldtest"
	"volley/internal/exit"
	"volley/internal/selection"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/verify"
)

// TestPlanJSON checks that the plan that is printed computes the matrix that is
// printed.
func TestPlanJSON(t *testing.T) {
	t.Parallel()
	f := fieldtest.Parse(t, "257")
	for _, flags := range [][]string{
		{"-k", "7"}, {"-k", "12", "--model", "paper", "-p", "3", "--algorithm", "bruck-allgather"}, {"-k", "9", "--matrix", "vandermonde"},
		{"-k", "8", "--matrix", "dft", "--inverse"}, {"-k", "5", "--matrix", "random:9", "--algorithm", "prepare-and-shoot"},
	} {
		flags = append(flags, "--field", "257")
		p, err := plan.Decode(strings.NewReader(mustRun(t, append([]string{"plan", "--format", "json"}, flags...)...)))
		if err != nil {
			t.Fatal(err)
		}
		flags = slices.DeleteFunc(flags, func(s string) bool {
			return s == "--model" || s == "paper" || s == "-p" || s == "3" || s == "--algorithm" || s == "bruck-allgather" || s == "prepare-and-shoot"
		})
		a, err := matrices.FromCSV(f, strings.NewReader(mustRun(t, append([]string{"matrix"}, flags...)...)), "A")
		if err != nil {
			t.Fatal(err)
		}
		if err := verify.Check(t.Context(), p, a); err != nil {
			t.Errorf("%v: %v", flags, err)
		}
	}
}

// TestPlanCSV compares the messages with those of the plan as JSON, and counts packets in pieces.
func TestPlanCSV(t *testing.T) {
	t.Parallel()
	want := `round,phase,from,to,port,packets
0,prepare,0,1,0,1
0,prepare,1,2,0,1
0,prepare,2,3,0,1
0,prepare,3,0,0,1
1,shoot,0,2,0,1
1,shoot,1,3,0,1
1,shoot,2,0,0,1
1,shoot,3,1,0,1
`
	if got := mustRun(t, "plan", "--model", "paper", "-k", "4", "--format", "csv"); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	flags := []string{"plan", "-k", "9", "--network", "100mbit/1ms", "--algorithm", "exchange"}
	p, err := plan.Decode(strings.NewReader(mustRun(t, append(flags, "--json")...)))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(map[string]int) // by processor, and of all
	for k := range p.Info().Processors {
		program, err := p.Program(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range program.Rounds {
			for _, s := range r.Sends {
				sent[fmt.Sprint(k)] += len(s.Slots)
				sent[""] += len(s.Slots)
			}
		}
	}
	for _, one := range []string{"", "0", "4"} {
		args := append(slices.Clone(flags), "--format", "csv")
		if one != "" {
			args = append(args, "--processor", one)
		}
		rows, err := csv.NewReader(strings.NewReader(mustRun(t, args...))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		packets := 0.0
		for _, row := range rows[1:] {
			n, err := strconv.ParseFloat(row[5], 64)
			if packets += n; err != nil || one != "" && row[2] != one {
				t.Errorf("processor %q: %v", one, row)
			}
		}
		if want := float64(sent[one]) / float64(p.Info().PieceCount()); math.Abs(packets-want) > 1e-9 || p.Info().PieceCount() < 2 {
			t.Errorf("processor %q: %v packets, want %v in %d pieces", one, packets, want, p.Info().PieceCount())
		}
	}
}

// TestMatrixFile takes the numbers of processors and sinks from a file.
func TestMatrixFile(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]string{{"-k", "5"}, {"-k", "6", "--sinks", "2"}} {
		want := mustRun(t, append([]string{"matrix"}, shape...)...)
		file := filepath.Join(t.TempDir(), "A.csv")
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		got := mustRun(t, "matrix", "--matrix", "file:"+file)
		if entries := want[strings.LastIndex(want, "#"):]; !strings.HasSuffix(entries, got) || !strings.Contains(got, ",") {
			t.Errorf("%v: %s, want the entries of %s", shape, got, want)
		}
		if got := mustRun(t, "matrix", "--json", "--matrix", "file:"+file); !json.Valid([]byte(got)) {
			t.Errorf("--json: %s", got)
		}
	}
	for _, name := range []string{"none", filepath.Join(t.TempDir(), "none.csv"), "/dev/zero"} { // the last has no end
		if r := volleyRun("plan", "--matrix", "file:"+name); r.code != exit.Usage || !strings.Contains(r.stderr, name) {
			t.Errorf("%s: exit %d, %s", name, r.code, r.stderr)
		}
	}
}

func TestPlanText(t *testing.T) {
	t.Parallel()
	text := mustRun(t, "plan", "--model", "paper", "-k", "4")
	for _, want := range []string{"→1: x0", "→2: y2(x0,x3)", "C1 = 2 rounds", "C2 = 2 packets = 1 + 1", "round 1 shoot"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := mustRun(t, "plan", "--model", "paper", "-k", "500", "--matrix", "random:1"); strings.Count(text, "\n") > 10 || !strings.Contains(text, "--processor N") {
		t.Errorf("500 processors: %s", text)
	}
	if text := mustRun(t, "plan", "--model", "paper", "-k", "500", "--matrix", "random:1", "--processor", "7"); !strings.Contains(text, "processor 7\n") || !strings.Contains(text, "y7 = ") {
		t.Errorf("processor 7: %s", text)
	}
	var program struct{ Proc int }
	if err := json.Unmarshal([]byte(mustRun(t, "plan", "-k", "9", "--processor", "7", "--format", "json")), &program); err != nil || program.Proc != 7 {
		t.Errorf("processor 7 as JSON: %+v, %v", program, err)
	}
	for _, a := range algo.Parts() {
		why := mustRun(t, append([]string{"plan", "--model", "paper", "--why"}, strings.Fields(a.Example)...)...)
		if !strings.Contains(why, a.Name) {
			t.Errorf("--why %s does not name %s", a.Example, a.Name)
		}
	}
}

// TestMatrixIsThatOfEncode encodes with the printed matrix and with the flags
// that printed it.
func TestMatrixIsThatOfEncode(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 100, 200, 300, 400, 50, 60)
	for _, flags := range [][]string{
		{"--matrix", "cauchy"}, {"--matrix", "vandermonde", "--points", "powers"}, {"--matrix", "vandermonde"},
		{"--matrix", "random:4", "--inverse"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "A.csv")
		text := mustRun(t, append([]string{"matrix", "-k", "6"}, flags...)...)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
		mustRun(t, append([]string{"encode", "-o", one, in}, flags...)...)
		mustRun(t, "encode", "-o", two, "--matrix", "file:"+file, in)
		a, b := readCoded(t, one, 6), readCoded(t, two, 6)
		for k := range a {
			if !bytes.Equal(a[k], b[k]) {
				t.Errorf("%v: coded packet %d differs", flags, k)
			}
		}
	}
	if text := mustRun(t, "matrix", "-k", "3"); !strings.HasPrefix(text, "# x 0 1 2\n# y 3 4 5\n") {
		t.Errorf("the points of a Cauchy matrix: %s", text)
	}
	var object struct {
		Points  map[string][]string
		Entries [][]string
	}
	if err := json.Unmarshal([]byte(mustRun(t, "matrix", "-k", "3", "--format", "json")), &object); err != nil {
		t.Fatal(err)
	}
	if len(object.Entries) != 3 || len(object.Entries[2]) != 3 || len(object.Points["y"]) != 3 {
		t.Errorf("%+v", object)
	}
}

// TestCost checks known costs in the machine-readable forms.
func TestCost(t *testing.T) {
	t.Parallel()
	text := mustRun(t, "cost", "-k", "5,16..17,27", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cell := func(row int, name string) string {
		i := slices.Index(rows[0], name)
		if i < 0 {
			t.Fatalf("no column %s in %v", name, rows[0])
		}
		return rows[row][i]
	}
	for _, c := range []struct {
		row  int
		name string
		want string
	}{
		{1, "universal_C2", "3"}, {2, "universal_C1", "4"}, {2, "universal_C2", "6"}, {2, "bound_C2", "5"}, {2, "min_cut", "6"},
		{3, "prepare-and-shoot_C2", "10"}, {3, "universal_C2", "7"}, {3, "min_cut", ""}, {3, "bruck-allgather_C2", "16"},
		{4, "K", "27"},
	} {
		if got := cell(c.row, c.name); got != c.want {
			t.Errorf("row %d, %s = %q, want %q", c.row, c.name, got, c.want)
		}
	}
	var table struct{ Rows []map[string]any }
	if err := json.Unmarshal([]byte(mustRun(t, "cost", "-k", "65", "-p", "2", "--algorithm", "prepare-and-shoot", "--format", "json")), &table); err != nil {
		t.Fatal(err)
	}
	if r := table.Rows[0]; r["prepare-and-shoot_C1"] != 4.0 || r["prepare-and-shoot_C2"] != 8.0 || r["min_cut"] != nil || r["universal_C1"] != nil {
		t.Errorf("%v", r)
	}
}

func TestRegistries(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "csv", "json"} {
		algorithms := mustRun(t, "algorithms", "--format", format)
		for _, a := range algo.Algorithms() {
			if !strings.Contains(algorithms, a.Name) {
				t.Errorf("algorithms --format %s does not name %s", format, a.Name)
			}
		}
		if fields := mustRun(t, "fields", "--format", format); !strings.Contains(fields, "2^8") {
			t.Errorf("fields --format %s: %s", format, fields)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]float64{"20us": 20e-6, "0.8ns": 0.8e-9, "1.5ms": 1.5e-3, "0s": 0, "0": 0, "0.5h": 1800, "3µs": 3e-6} {
		if got, err := selection.ParseDuration("tau", s); err != nil || got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("%s: %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "5", "us", "-1us", "1e3us", "2h30m", "1us5", "61m", "9999999h", "1.2.3s", "1 s", "NaNs", "infs"} {
		if d, err := selection.ParseDuration("tau", s); err == nil {
			t.Errorf("%q: %v, want an error", s, d)
		}
	}
}
