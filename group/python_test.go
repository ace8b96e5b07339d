package group_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group"
	"volley/group/protection"
	"volley/internal/testprogram"
	"volley/transport"
)

// recovery is docs/recover.py, which is written after docs/format.md and shares nothing with this package. The test is
// skipped where there is no Python.
func recovery(t *testing.T) string {
	t.Helper()
	return testprogram.NeedPython(t, filepath.Join("..", "docs", "recover.py"))
}

// python runs [recovery]. It returns what it prints on standard error, and whether it has failed.
func python(t *testing.T, out string, dirs []string, flags ...string) (string, bool) {
	t.Helper()
	_, errs, failed := testprogram.Python(t, recovery(t), "", slices.Concat(flags, []string{out}, dirs)...)
	return errs, failed
}

// TestPython recovers nodes by docs/recover.py, so that the description of the format is
// enough for another program.
func TestPython(t *testing.T) {
	t.Parallel()
	recovery(t)
	for _, c := range []struct {
		k, r, files, most int
		lost              [][]int
	}{
		{5, 2, 12, 100_000, [][]int{{0, 1}, {1, 4}, {3}}},
		{6, 2, 12, 300_000, [][]int{{0, 5}, {2, 3}, {4}}},
		{5, 4, 12, 10_000, [][]int{{0, 1, 3, 4}}},
		{3, 1, 0, 0, [][]int{{1}}},           // no data: chunks of 0 bytes
		{130, 2, 3, 1000, [][]int{{7, 129}}}, // over 2^16
	} {
		t.Run(fmt.Sprintf("K=%d,R=%d", c.k, c.r), func(t *testing.T) {
			t.Parallel()
			dirs := trees(t, c.k, c.files, c.most, uint64(c.k))
			o := group.ProtectOptions{Tolerate: c.r, Accept: protection.Edits{Deleted: true}}
			_, err := protect(1, dirs, o)
			must(t, err)
			// Once more, with a file less: a later generation, and zeros where the file was.
			os.Remove(filepath.Join(dirs[0], "plain0"))
			_, err = protect(1, dirs, o)
			must(t, err)
			for _, lost := range c.lost {
				left := slices.Clone(dirs)
				for i, n := range lost { // missing, or empty
					left[n] = filepath.Join(t.TempDir(), "lost")
					if i%2 == 1 {
						must(t, os.Mkdir(left[n], 0o755))
					}
				}
				out := filepath.Join(t.TempDir(), "out")
				if text, failed := python(t, out, left); failed || text != "" {
					t.Fatalf("lost %v: %s", lost, text)
				}
				back, err := os.ReadDir(out)
				must(t, err)
				if len(back) != len(lost) {
					t.Errorf("lost %v: %v came back", lost, back)
				}
				for _, n := range lost {
					if want, got := filesBelow(t, dirs[n]), listing(t, filepath.Join(out, fmt.Sprint(n))); want != got {
						t.Errorf("lost %v: node %d was\n%s\nand is\n%s", lost, n, want, got)
					}
				}
			}
		})
	}
}

// TestPythonKey has docs/recover.py read parity that lies in several files, of a group with a key, and go by the key.
func TestPythonKey(t *testing.T) {
	t.Parallel()
	recovery(t)
	dirs := trees(t, 4, 8, 1_500_000, 9)
	key := []byte("a key of thirty-two bytes or so")
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, append(key, '\n'), 0o600))
	o := options
	o.Key = key
	for i := range 4 {
		if i > 0 {
			f, err := os.OpenFile(filepath.Join(dirs[i], "plain0"), os.O_WRONLY, 0)
			must(t, err)
			_, err = f.Write(make([]byte, 300_000)) // blocks of all codewords
			must(t, err)
			must(t, f.Close())
		}
		time.Sleep(50 * time.Millisecond) // or the next run reads again what has changed just before this one
		_, err := everywhere(1, dirs, func(ctx context.Context, t transport.Transport, dirs []string) (*group.ProtectReport, error) {
			return group.Join(t, dirs, o).Protect(ctx, group.ProtectOptions{Tolerate: 2})
		})
		must(t, err)
	}
	var changes []string
	for _, dir := range dirs[1:3] {
		found, err := filepath.Glob(filepath.Join(dir, ".volley/generation.4/changes.*"))
		must(t, err)
		changes = append(changes, found...)
	}
	if changes == nil {
		t.Fatal("nothing lies over the base")
	}
	lost, out := filepath.Join(t.TempDir(), "lost"), filepath.Join(t.TempDir(), "out")
	left, other := []string{lost, dirs[1], dirs[2], lost}, filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(other, []byte("0123456789abcdef"), 0o600))
	if text, failed := python(t, out+".other", left, "--key", other); !failed || !strings.Contains(text, "was not made with the key") {
		t.Errorf("another key: %s", text)
	}
	if text, failed := python(t, out+".none", left); failed || text != "" { // nobody has to have it
		t.Error(text)
	}
	if text, failed := python(t, out, left, "--key", file); failed || text != "" {
		t.Fatal(text)
	}
	for _, n := range []int{0, 3} {
		if want, got := filesBelow(t, dirs[n]), listing(t, filepath.Join(out, fmt.Sprint(n))); want != got {
			t.Errorf("node %d was\n%s\nand is\n%s", n, want, got)
		}
	}
}

// filesBelow is a listing without .volley.
func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(listing(t, dir)) {
		if !strings.HasPrefix(line, `".volley`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// filesOf returns what lies below directories, but for what is Volley's: recover lays parity out anew.
func filesOf(t *testing.T, dirs []string) (list []string) {
	t.Helper()
	for _, dir := range dirs {
		list = append(list, filesBelow(t, dir))
	}
	return list
}

// TestPythonErrors has docs/recover.py refuse what is damaged, and say what.
func TestPythonErrors(t *testing.T) {
	t.Parallel()
	recovery(t)
	dirs := trees(t, 4, 7, 10_000, 5)
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
	must(t, err)
	lost := filepath.Join(t.TempDir(), "lost")
	for _, c := range []struct {
		dirs []string
		want string
	}{
		{[]string{lost, lost, dirs[2], dirs[3]}, "nodes [0, 1] are lost: 1 at most"},
		{[]string{lost, dirs[1], dirs[2]}, "of 3 nodes"},
		{[]string{lost, dirs[2], dirs[1], dirs[3]}, "in order"},
		{[]string{lost, lost, lost, lost}, "no manifest"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		if text, failed := python(t, out, c.dirs); !failed || !strings.Contains(text, c.want) {
			t.Errorf("%v: %q: want %q", c.dirs, text, c.want)
		}
	}
	flip := func(pattern string) string {
		paths, err := filepath.Glob(filepath.Join(dirs[1], pattern))
		must(t, err)
		if len(paths) != 1 {
			t.Fatalf("%s: %v", pattern, paths)
		}
		content, err := os.ReadFile(paths[0])
		must(t, err)
		content[len(content)/2] ^= 1
		must(t, os.WriteFile(paths[0], content, 0o644))
		return paths[0]
	}
	left := []string{lost, dirs[1], dirs[2], dirs[3]}
	// Another node has the manifest too.
	path := flip(".volley/generation.*/manifest.json")
	out := filepath.Join(t.TempDir(), "out")
	if text, failed := python(t, out, left); failed || !strings.Contains(text, path) {
		t.Errorf("a damaged manifest: %q", text)
	}
	if want, got := filesBelow(t, dirs[0]), listing(t, filepath.Join(out, "0")); want != got {
		t.Errorf("node 0 was\n%s\nand is\n%s", want, got)
	}
	if text, failed := python(t, out, left); !failed || !strings.Contains(text, "exists") {
		t.Errorf("a second time: %q", text)
	}
	for pattern, want := range map[string]string{".volley/generation.*/parity": "its parity", "plain0": "its data"} {
		flip(pattern)
		if text, failed := python(t, filepath.Join(t.TempDir(), "out"), left); !failed || !strings.Contains(text, dirs[1]+": "+want) {
			t.Errorf("a damaged %s: %q", pattern, text)
		}
		flip(pattern)
	}
}
