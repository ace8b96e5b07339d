package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/algo"
	"volley/coded/manifest"
	"volley/field"
	"volley/internal/exit"
	"volley/matrix/matrices"
)

// TestEveryNameWorks takes every name that help and registries give.
func TestEveryNameWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := filepath.Join(dir, "A.csv")
	if err := os.WriteFile(a, []byte("1,2\n3,4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, x := range algo.Parts() { // whatever there is of it at small K, there is no panic
		for _, k := range []string{"1", "2", "3", "5"} {
			args := append([]string{"plan", "--algorithm", x.Name}, strings.Fields(x.Example)...)
			if r := volleyRun(append(args, "-k", k)...); r.code != exit.OK && r.code != exit.Usage {
				t.Errorf("%v, K = %s: exit %d: %s", args, k, r.code, r.stderr)
			}
		}
	}
	for _, f := range field.Kinds() {
		mustRun(t, "plan", "-k", "2", "--field", f.Example)
	}
	for _, x := range algo.Parts() {
		for _, verb := range []string{"plan", "cost"} {
			mustRun(t, append([]string{verb, "--algorithm", x.Name}, strings.Fields(x.Example)...)...)
		}
	}
	for _, m := range matrices.Families() {
		name := strings.NewReplacer("SEED", "18446744073709551615", "A.csv", a).Replace(m.String())
		f := "257"
		if m.Name == "lch" { // which is nothing over a prime field
			f = "2^8"
		}
		mustRun(t, "plan", "-k", "2", "--field", f, "--matrix", name)
		mustRun(t, "matrix", "-k", "2", "--field", f, "--matrix", name, "--inverse")
	}
}

// TestAccept gives --accept what is no edit.
func TestAccept(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 2, 100)
	for _, verb := range [][]string{{"protect", "--tolerate", "1"}, {"resize", "--add", t.TempDir()}} {
		for _, text := range []string{"", "all", "deleted,", "deleted changed", "Deleted"} {
			r := volleyRun(slices.Concat(verb, []string{"--accept", text}, dirs)...)
			if r.code != exit.Usage {
				t.Errorf("%v --accept %s: %+v", verb, text, r)
			}
			wants(t, r.stderr, fmt.Sprintf("--accept: %q: want changed, deleted", text))
		}
	}
	for _, flags := range [][]string{{"--accept", "changed,deleted"}, {"--accept", "deleted", "--accept=changed"}} {
		mustRun(t, slices.Concat([]string{"protect", "--tolerate", "1"}, flags, dirs)...)
	}
}

// TestPoints checks that --points says which points there are.
func TestPoints(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "points")
	if err := os.WriteFile(file, []byte("7\n1\n3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for points, want := range map[string]string{
		"powers": "1,1,1\n1,3,9\n1,9,81\n",
		file:     "1,1,1\n7,1,3\n49,1,9\n",
		"coset":  "1,1,1\n1,3,9\n1,9,81\n", // 3 does not divide 256: coset i holds g^i alone
	} {
		out := mustRun(t, "matrix", "-k", "3", "--field", "257", "--matrix", "vandermonde", "--points", points)
		if _, rows, _ := strings.Cut(out, "\n"); rows != want {
			t.Errorf("%s: %s, want %s", points, rows, want)
		}
	}
	coset := mustRun(t, "matrix", "-k", "4", "--field", "257", "--matrix", "vandermonde")
	if !strings.HasPrefix(coset, "# alpha 1 256 241 16\n") && !strings.HasPrefix(coset, "# alpha 1 256 16 241\n") {
		t.Errorf("the default for K = 4 is not the powers of a root of unity, reversed: %s", coset)
	}
}

// TestMatrixFlags checks what --omega, --alpha, --order and the field of a
// matrix do.
func TestMatrixFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "points")
	if err := os.WriteFile(file, []byte("7\n1\n3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--field 257 --matrix lagrange -k 3 --omega codes --alpha " + file: "# omega 0 1 2\n# alpha 7 1 3\n15,0,1\n222,1,254\n21,0,3\n",
		"--field 257 --matrix lagrange -k 2 --omega powers":                "# omega 1 3\n# alpha 3 254\n0,3\n1,255\n",
		"--field 257 --matrix dft -k 4 --order reversed":                   "# order reversed\n1,1,1,1\n1,256,241,16\n1,1,256,256\n1,256,16,241\n",
		"--field 257 --matrix dft -k 2 --order any":                        "# order any\n1,1\n1,256\n",
		"--field 2^8 --matrix rs:jerasure -k 2":                            "1,1\n1,143\n",
	} {
		if out := mustRun(t, append([]string{"matrix"}, strings.Fields(flags)...)...); out != want {
			t.Errorf("%s:\n%s\nwant\n%s", flags, out, want)
		}
	}
	for flags, want := range map[string]string{
		"--matrix fti": "2^16", "--matrix fti --field 2^8": "2^8", "--matrix cauchy": "2^8", "": "2^8",
	} {
		var object struct{ Field string }
		args := append([]string{"matrix", "-k", "3", "--format", "json"}, strings.Fields(flags)...)
		if err := json.Unmarshal([]byte(mustRun(t, args...)), &object); err != nil {
			t.Fatal(err)
		}
		if object.Field != want {
			t.Errorf("%q is over %s, want %s", flags, object.Field, want)
		}
	}
	var object struct{ Order string }
	if err := json.Unmarshal([]byte(mustRun(t, "matrix", "-k", "3", "--matrix", "dft", "--format", "json")), &object); err != nil {
		t.Fatal(err)
	}
	if object.Order != "natural" {
		t.Errorf("%+v", object)
	}
	in, _ := writePackets(t, 10, 20)
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "encode", "-o", out, "--matrix", "fti", in)
	if manifest := string(readFile(t, out, manifest.FileName)); !strings.Contains(manifest, `"field": "2^16"`) {
		t.Errorf("encode --matrix fti: %s", manifest)
	}
}

// TestVerbose checks that what is said on the way goes to stderr.
func TestVerbose(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, 5, 6)
	quiet := volleyRun("encode", "--json", "-o", filepath.Join(t.TempDir(), "out"), in)
	loud := volleyRun("encode", "--json", "-v", "-o", filepath.Join(t.TempDir(), "out"), in)
	if quiet.stderr != "" || !strings.Contains(loud.stderr, "encoding") {
		t.Errorf("stderr without -v: %q; with it: %q", quiet.stderr, loud.stderr)
	}
	if quiet.stdout[:200] != loud.stdout[:200] {
		t.Errorf("-v changes stdout: %s", loud.stdout)
	}
}

// TestCannotPrint checks that a full disk behind stdout is no usage error, and no
// success.
func TestCannotPrint(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"plan -k 4", "plan -k 4 --why", "plan -k 4 --format json", "plan -k 4 --processor 1", "plan -k 99",
		"matrix -k 4", "matrix -k 4 --format json", "cost -k 4", "cost -k 2..4", "cost -k 4 --format csv", "cost -k 4 --format json",
		"check ../../examples/plan.json", "check ../../examples/plan.json --json", "algorithms", "algorithms --format json", "fields", "fields --format csv",
	} {
		var stderr strings.Builder
		code := run(context.Background(), strings.Fields(args), fullDisk{}, &stderr)
		if code != exit.Failed || !strings.Contains(stderr.String(), errFull.Error()) {
			t.Errorf("%s: exit %d, %q", args, code, stderr.String())
		}
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
