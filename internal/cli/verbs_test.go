package cli

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/internal/exit"
	"volley/matrix/matrices"
)

// TestMatrixIsThatOfEncode encodes with the printed matrix, which is printed again, and with the flags that printed it.
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

// TestUnnamedMatrixIsPlanned plans for the entries of a matrix as for its name.
func TestUnnamedMatrixIsPlanned(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"257", "dft"}, {"257", "dft --order reversed"}, {"2^8", "cauchy"}, {"257", "cauchy --omega coset --alpha coset"},
	} {
		run := func(verb, matrix string) string {
			return mustRun(t, strings.Fields(verb+" --field "+c[0]+" -k 64 --matrix "+matrix)...)
		}
		file := filepath.Join(t.TempDir(), "A.csv")
		write(t, file, run("matrix", c[1]))
		structure, named, _ := strings.Cut(run("plan --why --model paper", c[1]), "\n")
		recognised, listed, _ := strings.Cut(run("plan --why --model paper", "file:"+file), "\n")
		if listed != named {
			t.Errorf("%s: by its entries\n%s\nby its name\n%s", c[1], listed, named)
		}
		wants(t, recognised, " by its entries", strings.TrimPrefix(structure, "structure: "))
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
