package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley"
	"volley/internal/cli/session"

	"volley/coded/manifest"
	"volley/internal/exit"
)

// result is what a run of the command line gave.
type result struct {
	code           int
	stdout, stderr string
}

// volleyRun runs the command line in this process.
func volleyRun(args ...string) result {
	return resultIn(context.Background(), session.New(), args...)
}

// mustRun runs the command line and fails the test unless it exits with 0.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	r := volleyRun(args...)
	if r.code != exit.OK {
		t.Fatalf("volley %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// expect runs a command line of words and then of directories. It fails the test unless that exits with the code and
// prints all of these texts, and returns what it prints.
func expect(t *testing.T, code int, words string, dirs []string, texts ...string) string {
	t.Helper()
	t.Logf("volley %s", words)
	return volleyRun(append(strings.Fields(words), dirs...)...).is(t, code, texts...)
}

// is fails the test unless the run has exited with the code and printed all of these texts. It returns what it printed.
func (r result) is(t *testing.T, code int, texts ...string) string {
	t.Helper()
	if r.code != code {
		t.Fatalf("%+v: want exit code %d", r, code)
	}
	wants(t, r.stdout+r.stderr, texts...)
	return r.stdout + r.stderr
}

// writePackets writes a file of random bytes for each size and returns their
// directory and contents.
func writePackets(t *testing.T, sizes ...int) (string, [][]byte) {
	t.Helper()
	dir := t.TempDir()
	rng := rand.NewChaCha8([32]byte{1})
	packets := make([][]byte, len(sizes))
	for k, n := range sizes {
		packets[k] = make([]byte, n)
		rng.Read(packets[k])
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("packet.%02d", k)), packets[k], 0o666))
	}
	return dir, packets
}

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return data
}

func listDir(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// readCoded returns the coded packets of a directory.
func readCoded(t *testing.T, dir string, k int) [][]byte {
	t.Helper()
	coded := make([][]byte, k)
	for i := range coded {
		coded[i] = readFile(t, dir, manifest.CodedName(i, k, 0))
	}
	return coded
}

// TestEncodeFlags checks the effect of each flag. A directory stands for the files in it that do not begin with a dot.
func TestEncodeFlags(t *testing.T) {
	t.Parallel()
	in, _ := writePackets(t, slices.Repeat([]int{200_000}, 9)...)
	write(t, filepath.Join(in, ".hidden"), "x")
	must(t, os.Mkdir(filepath.Join(in, "sub"), 0o777))
	encode := func(flags string, packets ...string) (r volley.Report) {
		args := append(strings.Fields("encode --json "+flags), "-o", filepath.Join(t.TempDir(), "out"))
		must(t, json.Unmarshal([]byte(mustRun(t, append(args, packets...)...)), &r))
		return r
	}
	whole := encode("", in)
	for flags, as := range map[string]func(r volley.Report) bool{
		"--model paper -p 2":             func(r volley.Report) bool { return r.Ports == 2 && r.C1 == 2 },
		"--model paper -p 100":           func(r volley.Report) bool { return r.Ports == 8 && r.C1 == 1 },
		"--check off":                    func(r volley.Report) bool { return !r.Verified && r.CheckSeconds == 0 && whole.CheckSeconds > 0 },
		"--field 2^16":                   func(r volley.Report) bool { return r.Field == "2^16" && r.SymbolsPerPacket == 100_000 },
		"--matrix random:3 --inverse":    func(r volley.Report) bool { return r.Matrix == "inverse(random:3)" },
		"--model paper --beta 1s":        func(r volley.Report) bool { return r.C1 == 4 }, // the fewest rounds
		"--model paper --beta 0":         func(r volley.Report) bool { return r.C2 <= 5 }, // the least volume
		"--model paper --tau 1us":        func(r volley.Report) bool { return r.C2 <= 5 },
		"--algorithm bruck-allgather":    func(r volley.Report) bool { return r.Algorithm == "bruck-allgather" },
		"--memory 256KiB --timeout 1m":   func(r volley.Report) bool { return r.Segments >= 5 && r.BytesSentMax == whole.BytesSentMax },
		"-k 9 --rounds-over 0 --sinks 2": func(r volley.Report) bool { return r.K == 9 },
	} {
		if r := encode(flags, in); !as(r) {
			t.Errorf("%s: %+v", flags, r)
		}
	}
	if r := encode("-k 3", filepath.Join(in, "packet.0{rank}")); whole.Segments != 1 || whole.K != 9 || r.K != 3 {
		t.Errorf("%+v, and of a pattern: %+v", whole, r)
	}
}
