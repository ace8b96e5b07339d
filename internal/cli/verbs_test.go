package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/exit"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/verify"
)

// TestPlanJSON checks that the plan that is printed computes the matrix that is
// printed.
func TestPlanJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ matrix, plan string }{
		{"-k 7", ""}, {"-k 12", "--model paper -p 3 --algorithm bruck-allgather"}, {"-k 9 --matrix vandermonde", ""},
		{"-k 8 --matrix dft --inverse", ""}, {"-k 5 --matrix random:9", "--algorithm prepare-and-shoot"},
	} {
		flags := "--field 257 " + c.matrix
		text := mustRun(t, append([]string{"matrix"}, strings.Fields(flags)...)...)
		a, err := matrices.FromCSV(fieldtest.Parse(t, "257"), strings.NewReader(text), "A")
		must(t, err)
		p, err := plan.Decode(strings.NewReader(mustRun(t, append([]string{"plan", "--json"}, strings.Fields(flags+" "+c.plan)...)...)))
		must(t, err)
		if err := verify.Check(t.Context(), p, a); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMatrixIsThatOfEncode encodes with the printed matrix, which is printed again, and with the flags
// that printed it.
func TestMatrixIsThatOfEncode(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 100, 200, 300, 400, 50, 60)
	for _, line := range []string{"--matrix vandermonde --points powers", "--matrix random:4 --inverse", "--sinks 2"} {
		dir, flags := t.TempDir(), strings.Fields(line)
		file := filepath.Join(dir, "A.csv")
		text := mustRun(t, append([]string{"matrix", "-k", "6"}, flags...)...)
		write(t, file, text)
		sinks := 1 + strings.Count(text[strings.LastIndex(strings.TrimSpace(text), "\n"):], ",")
		wants(t, text, mustRun(t, "matrix", "--matrix", "file:"+file)) // which says K and R
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
		mustRun(t, append([]string{"encode", "-o", one, in}, flags...)...)
		mustRun(t, "encode", "-o", two, "--matrix", "file:"+file, "--sinks", strconv.Itoa(sinks), in)
		a, b := readCoded(t, one, sinks), readCoded(t, two, sinks)
		for k := range a {
			if !bytes.Equal(a[k], b[k]) {
				t.Errorf("%s: coded packet %d differs", line, k)
			}
		}
	}
}

// TestEveryNameWorks takes every name that help and registries give.
func TestEveryNameWorks(t *testing.T) {
	t.Parallel()
	for _, x := range algo.Algorithms() {
		for _, format := range []string{"text", "csv", "json"} {
			wants(t, mustRun(t, "algorithms", "--format", format), x.Name)
		}
	}
	wants(t, mustRun(t, "algorithms"), "\n\nlayers\n  parts    dft", "\nC1 counts rounds, C2 packets, ")
	for _, x := range algo.Parts() {
		example := append(strings.Fields(x.Example), "--algorithm", x.Name)
		mustRun(t, append([]string{"cost"}, example...)...)
		wants(t, mustRun(t, append([]string{"plan", "--model", "paper", "--why"}, strings.Fields(x.Example)...)...), x.Name)
		for _, k := range []string{"1", "2", "3", "5"} { // whatever there is of it at small K, there is no panic
			if r := volleyRun(append(append([]string{"plan"}, example...), "-k", k)...); r.code != exit.OK && r.code != exit.Usage {
				t.Errorf("%v, K = %s: %+v", example, k, r)
			}
		}
	}
	for _, f := range field.Kinds() {
		mustRun(t, "plan", "-k", "2", "--field", f.Example)
	}
	file := filepath.Join(t.TempDir(), "A.csv")
	write(t, file, "1,2\n3,4\n")
	for _, m := range matrices.Families() {
		name := strings.NewReplacer("SEED", "18446744073709551615", "A.csv", file).Replace(m.String())
		f := "257"
		if m.Name == "lch" { // which is nothing over a prime field
			f = "2^8"
		}
		mustRun(t, "plan", "-k", "2", "--field", f, "--matrix", name)
		mustRun(t, "matrix", "-k", "2", "--field", f, "--matrix", name, "--inverse")
	}
}

// TestCancelled checks that what takes long, or writes, can be stopped.
func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(exit.ErrInterrupted)
	coded, in, _ := encoded(t, []int{1000, 1000})
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"cost", "-k", "64"}, {"encode", "-o", out, in}, {"decode", "-o", out, coded}, {"decode", "-o", out, coded, filepath.Join(in, "packet.01")}} {
		var stdout, stderr strings.Builder
		code := run(ctx, args, &stdout, &stderr)
		if _, err := os.Lstat(out); code != exit.Interrupted || stdout.String() != "" || stderr.String() != "volley: interrupted\n" || err == nil {
			t.Errorf("%v: exit %d, %s%s, %v", args, code, stdout.String(), stderr.String(), err)
		}
	}
}
