//go:build unix

package cli

import (
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
	"volley/internal/disk"
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
	return described(t, dir, codedpkg.LockName, func(path string, info fs.FileInfo) string {
		target, _ := os.Readlink(path)
		return fmt.Sprint(info.Mode(), sumOf(path, info), target)
	})
}

// A hostile is someone who may do anything in a directory.
type hostile struct {
	*rand.Rand
	t       *testing.T
	dir     string   // of coded files, or a node
	names   []string // of more than what it has
	targets []string // of links
	hole    int64    // the most bytes of one
	forge   func()   // changes documents so that their digests are right
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

// paths returns everything that the directory has.
func (h *hostile) paths() []string {
	list := slices.Clone(h.names)
	filepath.WalkDir(h.dir, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(h.dir, path); err == nil && rel != "." {
			list = append(list, rel)
		}
		return nil
	})
	return list
}

// within reports whether a path lies in a directory that no link leads to.
func within(path string) bool {
	up := filepath.Dir(path)
	info, err := os.Lstat(up)
	real, err2 := filepath.EvalSymlinks(up)
	return err == nil && info.IsDir() && err2 == nil && real == up
}

// attack does one thing to one name.
func (h *hostile) attack() {
	names := h.paths()
	name := names[h.IntN(len(names))]
	path, to := filepath.Join(h.dir, name), filepath.Join(h.dir, names[h.IntN(len(names))])
	if !within(path) {
		return // it leads elsewhere already, where this test is not to write
	}
	what := h.IntN(16)
	h.did = append(h.did, fmt.Sprintf("%s: %d", name, what))
	text := contentOf(path)
	put := func(text []byte) {
		os.RemoveAll(path)
		if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			f.Write(text)
			f.Close()
		}
	}
	if what > 3 && what < 11 && what != 5 {
		os.RemoveAll(path)
	}
	switch what {
	case 0, 1:
		if len(text) > 0 {
			text[h.IntN(len(text))] ^= byte(1 + h.IntN(255))
			put(text)
		}
	case 2:
		put(text[:h.IntN(len(text)+1)])
	case 3:
		put(append(text, make([]byte, h.IntN(1<<h.IntN(18)))...))
	case 4: // it is removed
	case 5:
		if within(to) {
			os.Rename(path, to)
		}
	case 6, 7:
		os.Symlink(h.targets[h.IntN(len(h.targets))], path)
	case 8:
		syscall.Mkfifo(path, 0o666)
	case 9:
		os.Mkdir(path, 0o777)
	case 10:
		os.Link(h.targets[h.IntN(len(h.targets))], path)
	case 11:
		put(nil)
		os.Truncate(path, h.hole>>h.IntN(20))
	case 12:
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 && disk.Linked(info) == (disk.FileID{}) {
			os.Chmod(path, []fs.FileMode{0, 0o777, 0o777 | fs.ModeSetuid | fs.ModeSetgid, 0o777 | fs.ModeSticky}[h.IntN(4)])
		}
	default:
		h.forge()
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

// TestHostile damages directories of coded files in all ways there are, as somebody would who may write there, and
// decodes them: that ends, in little memory, with all inputs or none, and nothing else is touched.
func TestHostile(t *testing.T) {
	root := t.TempDir()
	in, packets := writePackets(t, 1000, 0, 1, 777)
	a := filepath.Join(root, "A.csv")
	write(t, a, "1,1,1,1\n0,1,2,3\n0,0,1,2\n0,0,0,1\n")
	var bases []string
	for i, flags := range [][]string{
		{in}, {"--field", "257", "--matrix", "file:" + a, in}, {"--field", "babybear", "--matrix", "vandermonde", "--sinks", "6", in},
		{"--field", "17", "--matrix", "dft", "--order", "any", "--model", "paper", "--beta", "0", in},
	} {
		bases = append(bases, filepath.Join(root, fmt.Sprint("base", i)))
		mustRun(t, append([]string{"encode", "-o", bases[i]}, flags...)...)
	}
	var want []string
	for _, p := range packets {
		want = append(want, string(p))
	}
	slices.Sort(want)
	decoded := 0
	for seed := *hostileSeed; seed < *hostileSeed+uint64(*hostileRuns) && !t.Failed(); seed++ {
		rng, box := rand.New(rand.NewPCG(seed, 1)), filepath.Join(root, "box")
		removeAll(t, box)
		h, outside := &hostile{Rand: rng, t: t, dir: filepath.Join(box, "coded"), names: []string{".volley-lock", ".volley-left", "coded.0.1"}}, filepath.Join(box, "elsewhere", "secret")
		h.targets, h.forge = []string{"/dev/zero", outside, "nowhere", "coded.0", "..", outside + ".new"}, h.edit
		base := h.IntN(len(bases))
		lay(t, outside, []byte("nobody else's"), 0o666)
		copyTree(t, bases[base], h.dir)
		for range 1 + h.IntN(3) {
			h.attack()
		}
		back := filepath.Join(box, "back")
		args := []string{"decode", "-o", back, h.dir}
		for k := range packets {
			if h.IntN(3) == 0 {
				args = append(args, filepath.Join(in, fmt.Sprintf("packet.%02d", k)))
			}
		}
		all := func() []map[string]string {
			return []map[string]string{snapshot(t, filepath.Dir(outside)), snapshot(t, h.dir), snapshot(t, in)}
		}
		before := all()
		r := soon(t, args...)
		var got []string
		for _, name := range listDir(t, box) {
			if !slices.Contains([]string{"back", "coded", "elsewhere"}, name) {
				t.Errorf("there is %s", name)
			}
		}
		if _, err := os.Lstat(back); err == nil {
			for _, name := range listDir(t, back) {
				got = append(got, string(readFile(t, back, name)))
			}
		}
		slices.Sort(got)
		switch now := all(); {
		case r.code < exit.OK || r.code > exit.Wrong, strings.ContainsFunc(strings.ReplaceAll(r.stderr, "\n", ""), func(c rune) bool { return c < ' ' }),
			r.code == exit.OK && !slices.Equal(got, want), r.code != exit.OK && got != nil, !slices.EqualFunc(now, before, maps.Equal):
			t.Errorf("-hostile.seed %d -hostile.runs 1: base %d, %q: exit %d: %s\ndecoded %q; elsewhere, coded files and inputs are\n%v, and were\n%v", seed, base, h.did, r.code, r.stderr, got, now, before)
		case r.code == exit.OK:
			decoded++
		}
	}
	t.Logf("%d directories, of which %d were decoded", *hostileRuns, decoded)
	if *hostileRuns >= 100 && (decoded < *hostileRuns/10 || decoded > *hostileRuns*9/10) {
		t.Errorf("%d of %d were decoded: some ought to be, and some not", decoded, *hostileRuns)
	}
}
