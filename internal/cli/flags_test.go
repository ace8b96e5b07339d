package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"volley/algo"
	"volley/field"
	"volley/matrix"
)

// TestEveryNameWorks takes every name that help and registries give.
func TestEveryNameWorks(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "A.csv")
	if err := os.WriteFile(a, []byte("1,2\n3,4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, f := range field.Kinds() {
		mustRun(t, "plan", "-k", "2", "--field", f.Example)
	}
	for _, x := range algo.Algorithms() {
		mustRun(t, "plan", "-k", "7", "-p", "2", "--algorithm", x.Name)
		mustRun(t, "cost", "-k", "7", "-p", "2", "--algorithm", x.Name)
	}
	for _, m := range matrix.Families() {
		name := strings.NewReplacer("SEED", "18446744073709551615", "A.csv", a).Replace(m.String())
		mustRun(t, "plan", "-k", "2", "--field", "257", "--matrix", name)
		mustRun(t, "matrix", "-k", "2", "--field", "257", "--matrix", name, "--inverse")
	}
	for _, format := range planFormats {
		mustRun(t, "plan", "-k", "2", "--format", format)
	}
	for _, format := range matrixFormats {
		mustRun(t, "matrix", "-k", "2", "--format", format)
	}
}

// TestPoints checks that --points says which points there are.
func TestPoints(t *testing.T) {
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

// TestVerbose checks that what is said on the way goes to stderr.
func TestVerbose(t *testing.T) {
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

// TestShrunkInput encodes a file that is cut before it is read.
func TestShrunkInput(t *testing.T) {
	for _, symbols := range []bool{false, true} {
		in, _ := writePackets(t, 10, 20, 10)
		out := filepath.Join(t.TempDir(), "out")
		cmd := &cobra.Command{}
		o := &encodeOptions{output: out, comm: "local", memory: "1MiB", check: "full", timeout: time.Minute, symbols: symbols}
		o.addMatrix(cmd)
		o.addPlan(cmd)
		job, err := o.prepare(cmd, []string{in})
		if err != nil {
			t.Fatal(err)
		}
		defer job.close()
		name := filepath.Join(in, "packet.01")
		if err := os.Truncate(name, 5); err != nil {
			t.Fatal(err)
		}
		_, err = job.run(context.Background(), os.Stderr)
		if err == nil || exitCode(err) != exitFailed {
			t.Fatalf("exit code %d: %v", exitCode(err), err)
		}
		if got, want := message(err), fmt.Sprintf("packet %s: 20 bytes at first and then 5: it changed while it was read", name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Errorf("the directory is there, with %v in it", listDir(t, out))
		}
	}
}

// TestCannotPrint checks that a full disk behind stdout is no usage error, and no
// success.
func TestCannotPrint(t *testing.T) {
	for _, args := range []string{
		"plan -k 4", "plan -k 4 --why", "plan -k 4 --format json", "plan -k 4 --format svg", "plan -k 4 --processor 1", "plan -k 99",
		"matrix -k 4", "matrix -k 4 --format json", "cost -k 4", "cost -k 2..4", "cost -k 4 --format csv", "cost -k 4 --format json",
		"algorithms", "algorithms --format json", "fields", "fields --format csv",
	} {
		var stderr strings.Builder
		code := run(context.Background(), strings.Fields(args), fullDisk{}, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), errFull.Error()) {
			t.Errorf("%s: exit %d, %q", args, code, stderr.String())
		}
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"20us", "0.8ns", "0", "1.5h", "2h30m", "1us5", "-1s", ".s", "1e9s", "99999999999999999999h", "µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		seconds, err := duration("tau", s)
		if err != nil {
			return
		}
		if !(seconds >= 0 && seconds <= longest.Seconds()) {
			t.Fatalf("%q: %v s", s, seconds)
		}
		if d, err := time.ParseDuration(s); err == nil && seconds < 1e3 && (time.Duration(seconds*1e9)-d).Abs() > time.Microsecond {
			t.Fatalf("%q: %v s, as a Duration %v", s, seconds, d)
		}
	})
}
