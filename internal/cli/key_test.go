package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

func shell(t *testing.T, script string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{"-euc", script, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// newKey makes the file of a key.
func newKey(t *testing.T) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	shell(t, `umask 077; head -c 32 /dev/urandom | base64 > "$1"`, key)
	return key
}

// renumber gives what a node has of a generation another number.
func renumber(t *testing.T, meta string, from, to int64) {
	t.Helper()
	dir := func(g int64) string { return filepath.Join(meta, fmt.Sprint("generation.", g)) }
	path := filepath.Join(dir(from), "manifest.json")
	line, _, _ := bytes.Cut(readFile(t, path), []byte("\n"))
	line = bytes.Replace(line, fmt.Appendf(nil, `"generation":%d`, from), fmt.Appendf(nil, `"generation":%d`, to), 1)
	if err := errors.Join(os.WriteFile(path, sealed(line), 0o600), os.Rename(dir(from), dir(to))); err != nil {
		t.Fatal(err)
	}
}

// madeUp returns copies of nodes with other files, setuid ones among them.
func madeUp(t *testing.T, dirs []string) (evil []string) {
	t.Helper()
	base := t.TempDir()
	for _, dir := range dirs {
		copyTree(t, dir, base)
		to := filepath.Join(base, filepath.Base(dir))
		evil = append(evil, to)
		rewrite(t, filepath.Join(to, "ckpt"), []byte("evil"))
		rewrite(t, filepath.Join(to, "root"), []byte("#!/bin/sh"))
		if err := errors.Join(os.Chmod(filepath.Join(to, "root"), fs.ModeSetuid|0o755), os.Remove(filepath.Join(to, "sub/b"))); err != nil {
			t.Fatal(err)
		}
	}
	return evil
}

// TestForged gives one node of four what it would have in a group of other files, with setuid
// ones among them, and runs all verbs. Without a key they stop, or go by the others; with one they
// go by the others. No file at another node is other than it was, none of the others' parity goes,
// and with an empty directory in its place everything comes back.
func TestForged(t *testing.T) {
	t.Parallel()
	const huge = int64(1<<53 - 1)
	for name, c := range map[string]struct {
		tolerate string                          // of what is made up
		change   func(t *testing.T, meta string) // nil: it is made up as another group
	}{
		"a newer generation, which tolerates all": {"3", func(t *testing.T, meta string) {}},
		"pending":                      {"2", func(t *testing.T, meta string) { shell(t, `mv "$1/generation.2" "$1/pending.2"`, meta) }},
		"the last generation there is": {"2", func(t *testing.T, meta string) { renumber(t, meta, 2, 1<<53) }},
		"one before it, pending": {"2", func(t *testing.T, meta string) {
			renumber(t, meta, 2, huge)
			shell(t, `mv "$1/generation.$2" "$1/pending.$2"`, meta, fmt.Sprint(huge))
		}},
		"the same generation": {"2", func(t *testing.T, meta string) { renumber(t, meta, 2, 1) }},
		"the number of another node": {"2", func(t *testing.T, meta string) {
			shell(t, `cp "$1/../../node.1/.volley/generation.2/node.json" "$1/generation.2"`, meta)
		}},
		"no number":              {"2", func(t *testing.T, meta string) { shell(t, `rm "$1/generation.2/node.json"`, meta) }},
		"another group, of five": {"2", nil},
	} {
		for _, with := range []string{"", " --key " + newKey(t)} {
			t.Run(name+with[:min(len(with), 6)], func(t *testing.T) {
				t.Parallel()
				dirs := writeNodes(t, 4, 20_000)
				expect(t, exit.OK, "protect --tolerate 2"+with, dirs)
				f := &forgery{T: t, dirs: dirs, before: dataOfAll(t, dirs), start: t.TempDir()}
				evil := madeUp(t, dirs)
				if c.change == nil {
					removeAll(t, evil[0]+"/.volley", evil[1]+"/.volley", evil[2]+"/.volley", evil[3]+"/.volley")
					evil = append(evil, writeNodes(t, 1, 100)...)
				}
				none := ""
				if with != "" { // which the node does not have
					none = " --key none"
				}
				expect(t, exit.OK, "protect --accept deleted --tolerate "+c.tolerate+none, evil)
				if c.change != nil {
					c.change(t, filepath.Join(evil[2], ".volley"))
				}
				f.replace(evil[2])
				for _, args := range []string{"verify", "protect --tolerate 2 --force", "recover --revert changed"} {
					f.reset()
					r := volleyRun(append(strings.Fields(args+with), dirs...)...)
					f.check(args, r, 2)
					if with != "" && strings.Contains(name, "generation") && r.code == exit.Usage && !strings.HasPrefix(args, "protect") { // which asks to recover before
						t.Errorf("with a key %s has stopped: %+v", args, r)
					}
					removeAll(t, dirs[0]) // which is not made again of what the hostile one says
					f.check(args+", then recover of another", volleyRun(append(strings.Fields("recover"+with), dirs...)...), 2, 0)
					if _, err := os.Lstat(filepath.Join(dirs[0], "root")); err == nil {
						t.Fatalf("%s: node 0 has a file of the hostile one", args)
					}
				}
				f.reset()
				removeAll(t, dirs[0], dirs[2])
				if err := os.Mkdir(dirs[2], 0o755); err != nil {
					t.Fatal(err)
				}
				expect(t, exit.OK, "recover"+with, dirs)
				f.check("recover", result{})
				expect(t, exit.OK, "protect --tolerate 2"+with, dirs)
			})
		}
	}
}

// A forgery is a group of which one node is somebody else's.
type forgery struct {
	*testing.T
	dirs, before []string
	start        string // holds copies
}

// replace puts a directory in the place of node 2, and keeps copies of all.
func (f *forgery) replace(by string) {
	f.Helper()
	removeAll(f.T, f.dirs[2])
	copyTree(f.T, by, f.dirs[2])
	for _, dir := range f.dirs {
		copyTree(f.T, dir, f.start)
	}
}

// reset puts the copies back.
func (f *forgery) reset() {
	f.Helper()
	for _, dir := range f.dirs {
		removeAll(f.T, dir)
		copyTree(f.T, filepath.Join(f.start, filepath.Base(dir)), dir)
	}
}

// check fails where nodes, but for some, have not what they had, or more or less than one parity.
func (f *forgery) check(did string, r result, but ...int) {
	f.Helper()
	for n, dir := range f.dirs {
		if slices.Contains(but, n) {
			continue
		}
		if is := dataOf(f.T, dir); is != f.before[n] {
			f.Fatalf("%s: node %d was\n%s\nand is\n%s\n%+v", did, n, f.before[n], is, r)
		}
		if parity, err := filepath.Glob(filepath.Join(dir, ".volley/generation.*/parity")); err != nil || len(parity) != 1 {
			f.Errorf("%s: node %d has the parity %v", did, n, parity)
		}
	}
}

// TestHugeNames makes names of generations without end at one node: the group is protected again
// and again.
func TestHugeNames(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 1000)
	for i := range 3 {
		if i > 0 {
			meta := filepath.Join(dirs[1], ".volley")
			shell(t, `cd "$1"; mkdir generation.9007199254740992 pending.9007199254740991; echo > pending.9007199254740991/parity; echo > generation.9007199254740990`, meta)
		}
		expect(t, exit.OK, "protect --tolerate 1", dirs, fmt.Sprint("protected, generation ", i+1, "\n"))
		expect(t, exit.OK, "verify", dirs)
	}
	for _, dir := range dirs { // all nodes are at the last generation
		renumber(t, filepath.Join(dir, ".volley"), 3, 1<<53)
	}
	expect(t, exit.OK, "verify", dirs)
	expect(t, exit.Usage, "protect --tolerate 1", dirs, "after which there is no other")
	expect(t, exit.OK, "verify", dirs)
}

// TestGroupKey gives a key on the command line.
func TestGroupKey(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 10_000)
	key, other, pipe := newKey(t), newKey(t), filepath.Join(t.TempDir(), "pipe")
	shell(t, `mkfifo -m 600 "$1"; cp "$2" "$1.open"; chmod 644 "$1.open"`, pipe, key)
	for _, c := range []struct {
		words string
		code  int
		want  string
	}{
		{"protect --tolerate 1 --key " + pipe, exit.Usage, "regular"},
		{"protect --tolerate 1 --key " + pipe + ".open", exit.Usage, "chmod 600"},
		{"protect --tolerate 1 --key " + key + "-none", exit.Usage, "head -c 32 /dev/urandom"},
		{"protect --tolerate 1", exit.OK, ""},
		{"verify --key " + key, exit.Usage, "protect it with the key first, or give no key"},
		{"protect --tolerate 1 --key " + key, exit.OK, "generation 2"},
		{"protect --tolerate 1", exit.Usage, "--key FILE names it, --key none goes without"},
		{"recover", exit.Usage, "--key FILE names it"},
		{"verify --key " + other, exit.Usage, "no manifest in force was made with this key"},
		{"recover --key " + key, exit.OK, ""},
		{"verify --key none", exit.OK, ""},
		{"verify --key ./none", exit.Usage, "no such file"},
		{"protect --tolerate 1 --key none", exit.OK, "generation 3"},
		{"verify", exit.OK, ""},
	} {
		expect(t, c.code, c.words, dirs, c.want)
	}
}

// TestForgedFirst gives one node of three that were never protected what it would have if they had
// been, with a setuid file for the others: recover writes nothing there.
func TestForgedFirst(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 5000)
	evil := madeUp(t, dirs)
	expect(t, exit.OK, "protect --tolerate 2", evil)
	removeAll(t, dirs[1])
	copyTree(t, evil[1], dirs[1])
	before := dataOf(t, dirs[0]) + dataOf(t, dirs[2])
	for _, verb := range []string{"verify", "recover", "protect --tolerate 1"} {
		expect(t, exit.Usage, verb, dirs, "cannot tell which generation is in force")
		if is := dataOf(t, dirs[0]) + dataOf(t, dirs[2]); is != before {
			t.Fatalf("%v: the others were\n%s\nand are\n%s", verb, before, is)
		}
	}
}
