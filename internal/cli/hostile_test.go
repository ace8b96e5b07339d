//go:build unix

package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	codedpkg "volley/coded"
	"volley/coded/manifest"
	"volley/internal/exit"
	"volley/internal/fuzzlimit"
)

var (
	hostileRuns = flag.Int("hostile.runs", 150, "directories that TestHostile damages")
	hostileSeed = flag.Uint64("hostile.seed", 1, "the first of them")
)

// soon runs the command line, and fails the test when it does not end.
func soon(t *testing.T, args ...string) result {
	t.Helper()
	return soonOf(t, 0, args...)
}

// soonOf is soon for what reads that many bytes.
func soonOf(t *testing.T, n int, args ...string) result {
	t.Helper()
	defer fuzzlimit.Hold(t, n)()
	return mustEnd(t, args...)
}

// mustEnd runs volley in this process, and fails the test where that does not end.
func mustEnd(t *testing.T, args ...string) result {
	t.Helper()
	done := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- result{code: -1, stderr: fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
			}
		}()
		done <- volleyRun(args...)
	}()
	select {
	case r := <-done:
		if r.code < 0 {
			t.Errorf("volley %s: %s", strings.Join(args, " "), r.stderr)
		}
		return r
	case <-time.After(2 * time.Minute):
		t.Fatalf("volley %s does not end", strings.Join(args, " "))
		return result{}
	}
}

// snapshot describes everything below a directory, but for the file of a lock.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == codedpkg.LockName {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			text += fmt.Sprintf(" %x", sha256.Sum256(readFile(t, path)))
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			text += " " + target
		}
		rel, _ := filepath.Rel(dir, path)
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A hostile is someone who may write into a directory of coded files.
type hostile struct {
	*rand.Rand
	t       *testing.T
	dir     string // of coded files
	outside string // the path of a file elsewhere
	did     []string
}

var hostileNames = []string{
	"", ".", "..", "../x", "/etc/passwd", "a/b", `a\b`, "NUL", "x\x00y", "\x1b[2J\n", "manifest.json", ".volley-lock", "base64:?",
	"coded.0", "coded.0.1", "coded.00.999999999999999999", strings.Repeat("n", 300), "random:1", "file:/dev/zero", "dft", "2^8", "257", "99999999999999999999",
}

var hostileNumbers = []float64{0, -1, 1, 2, 255, 1 << 31, 1 << 50, 1 << 62, 1e300, 0.5}

// contentOf returns what a regular file holds, and nothing of what was put in its place.
func contentOf(path string) []byte {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<24 {
		return nil
	}
	text, _ := os.ReadFile(path)
	return text
}

// damage does one thing to one file.
func (h *hostile) damage() {
	names := append(listDir(h.t, h.dir), ".volley-lock", ".volley-left", "coded.0.1")
	name := names[h.IntN(len(names))]
	path := filepath.Join(h.dir, name)
	text := contentOf(path)
	what := h.IntN(10)
	h.did = append(h.did, fmt.Sprintf("%s: %d", name, what))
	put := func(text []byte) { os.Remove(path); os.WriteFile(path, text, 0o666) }
	at := func(n int) int { return h.IntN(max(1, n)) }
	switch what {
	case 0, 1: // bytes
		for range 1 + h.IntN(3) {
			if len(text) > 0 {
				text[at(len(text))] ^= byte(1 + h.IntN(255))
			}
		}
		put(text)
	case 2:
		put(text[:at(len(text))])
	case 3:
		put(slices.Concat(text, bytes.Repeat([]byte{byte(h.IntN(256))}, h.IntN(1<<h.IntN(20)))))
	case 4:
		os.Remove(path)
	case 5:
		os.Rename(path, filepath.Join(h.dir, names[h.IntN(len(names))]))
	case 6:
		os.Remove(path)
		os.Symlink([]string{"/dev/zero", h.outside, "nowhere", name, names[0], "..", h.outside + ".new"}[h.IntN(7)], path)
	case 7:
		os.Remove(path)
		if h.IntN(2) == 0 {
			syscall.Mkfifo(path, 0o666)
		} else {
			os.Mkdir(path, 0o777)
		}
	default:
		h.edit()
	}
}

// edit changes one value of the manifest, of which no digest tells then.
func (h *hostile) edit() {
	var m map[string]any
	path := filepath.Join(h.dir, manifest.FileName)
	if json.Unmarshal(contentOf(path), &m) != nil {
		return
	}
	delete(m, "sha256")
	if !h.change(m) {
		return
	}
	text, err := json.Marshal(m)
	if err != nil {
		h.t.Fatal(err)
	}
	os.Remove(path)
	write(h.t, path, string(text))
	if h.IntN(2) == 0 {
		os.RemoveAll(filepath.Join(h.dir, manifest.CopyName))
	}
}

// change changes one value somewhere in a document, if it has any.
func (h *hostile) change(node any) bool {
	for {
		change := func(any) {}
		var child any
		switch x := node.(type) {
		case map[string]any:
			keys := slices.Sorted(maps.Keys(x))
			if len(keys) == 0 {
				return false
			}
			key := keys[h.IntN(len(keys))]
			child, change = x[key], func(v any) { x[key] = v }
			h.did = append(h.did, key)
		case []any:
			if len(x) == 0 {
				return false
			}
			k := h.IntN(len(x))
			child, change = x[k], func(v any) { x[k] = v }
		}
		switch value := child.(type) {
		case float64:
			change(hostileNumbers[h.IntN(len(hostileNumbers))])
		case string:
			change(hostileNames[h.IntN(len(hostileNames))])
		case bool:
			change(!value)
		default:
			node = child
			if h.IntN(20) > 0 && node != nil {
				continue
			}
			change(nil)
		}
		return true
	}
}

// TestHostile damages directories of coded files in all ways there are, as somebody would who
// may write there, and decodes them: that ends, in little memory, with all inputs or none,
// and nothing else is touched.
func TestHostile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	in, packets := writePackets(t, 1000, 0, 1, 777)
	a := filepath.Join(root, "A.csv")
	write(t, a, "1,1,1,1\n0,1,2,3\n0,0,1,2\n0,0,0,1\n")
	var bases []string
	for i, flags := range [][]string{
		{in}, {"--field", "257", "--matrix", "file:" + a, in}, {"--field", "babybear", "--matrix", "vandermonde", "--sinks", "6", in},
		{"--field", "17", "--matrix", "dft", "--order", "any", "--model", "paper", "--beta", "0", in},
	} {
		base := filepath.Join(root, fmt.Sprint("base", i))
		mustRun(t, append([]string{"encode", "-o", base}, flags...)...)
		bases = append(bases, base)
	}
	want := map[string]int{}
	for _, p := range packets {
		want[string(p)]++
	}
	decoded := 0
	for seed := *hostileSeed; seed < *hostileSeed+uint64(*hostileRuns) && !t.Failed(); seed++ {
		h := &hostile{Rand: rand.New(rand.NewPCG(seed, 1)), t: t}
		box := filepath.Join(root, "box")
		if err := os.RemoveAll(box); err != nil {
			t.Fatal(err)
		}
		elsewhere := filepath.Join(box, "elsewhere")
		h.dir, h.outside = filepath.Join(box, "coded"), filepath.Join(elsewhere, "secret")
		base := h.IntN(len(bases))
		if err := os.CopyFS(h.dir, os.DirFS(bases[base])); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(elsewhere, 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, h.outside, "nobody else's")
		for range 1 + h.IntN(3) {
			h.damage()
		}
		back := filepath.Join(box, "back")
		args := []string{"decode", "-o", back, h.dir}
		for k := range packets {
			if h.IntN(3) == 0 {
				args = append(args, filepath.Join(in, fmt.Sprintf("packet.%02d", k)))
			}
		}
		before, coded, inputs := snapshot(t, elsewhere), snapshot(t, h.dir), snapshot(t, in)
		r := soon(t, args...)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("-hostile.seed %d -hostile.runs 1: base %d, %q: exit %d: %s\n%s", seed, base, h.did, r.code, r.stderr, fmt.Sprintf(format, args...))
		}
		if r.code < 0 || r.code > exit.Wrong {
			fail("no such code")
		}
		if strings.ContainsFunc(strings.ReplaceAll(r.stderr, "\n", ""), func(c rune) bool { return c < ' ' }) {
			fail("it writes control characters")
		}
		if !maps.Equal(snapshot(t, elsewhere), before) || !maps.Equal(snapshot(t, in), inputs) {
			fail("files elsewhere are others: %v", snapshot(t, elsewhere))
		}
		if now := snapshot(t, h.dir); !maps.Equal(now, coded) {
			fail("the coded files are others: %v", now)
		}
		for _, name := range listDir(t, box) {
			if !slices.Contains([]string{"back", "coded", "elsewhere"}, name) {
				fail("there is %s", name)
			}
		}
		if r.code != exit.OK {
			if _, err := os.Lstat(back); err == nil {
				fail("there is an output: %v", listDir(t, back))
			}
			continue
		}
		decoded++
		got := map[string]int{}
		for _, name := range listDir(t, back) {
			got[string(readFile(t, back, name))]++
		}
		if !maps.Equal(got, want) {
			fail("other inputs come back")
		}
	}
	t.Logf("%d directories, of which %d were decoded", *hostileRuns, decoded)
	if *hostileRuns >= 100 && (decoded < *hostileRuns/10 || decoded > *hostileRuns*9/10) {
		t.Errorf("%d of %d were decoded: some ought to be, and some not", decoded, *hostileRuns)
	}
}
