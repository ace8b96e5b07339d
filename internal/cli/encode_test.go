package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// writePackets writes a file of random bytes for each size and returns their directory and contents.
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
