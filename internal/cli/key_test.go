//go:build unix

package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
)

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
	must(t, errors.Join(os.WriteFile(path, sealed(line), 0o600), os.Rename(dir(from), dir(to))))
}

// madeUp makes copies of the nodes with other files, setuid ones among them, in evil beside them.
func (m *misused) madeUp() (evil []string) {
	m.Helper()
	m.shell("mkdir evil; cp -a n? evil; for n in evil/*; do echo evil > $n/ckpt; cp /bin/true $n/root; chmod 4755 $n/root; rm $n/sub/b; done")
	for _, dir := range m.dirs {
		evil = append(evil, filepath.Join(m.base, "evil", filepath.Base(dir)))
	}
	return evil
}

// TestForged gives one node of four what it would have in a group of other files, with setuid ones among them, and runs
// all verbs. Without a key they stop, or go by the others; with one they go by the others. No file at another node is
// other than it was, none of the others' parity goes, and with an empty directory in its place everything comes back.
func TestForged(t *testing.T) {
	t.Parallel()
	const huge = 1<<53 - 1
	for name, c := range map[string]struct {
		tolerate string // of what is made up
		number   int64  // of its generation, if it is another than 2
		change   string // below .volley of the node
	}{
		"a newer generation, which tolerates all": {tolerate: "3"},
		"a pending generation":                    {change: "mv generation.2 pending.2"},
		"the last generation there is":            {number: huge + 1},
		"the generation before it, pending":       {number: huge, change: fmt.Sprintf("mv generation.%d pending.%d", huge, huge)},
		"the same generation":                     {number: 1},
		"the number of another node":              {change: "cp ../../node.1/.volley/generation.2/node.json generation.2"},
		"no number":                               {change: "rm generation.2/node.json"},
		"another group, of five":                  {},
	} {
		for _, key := range []string{"none", newKey(t)} { // which the hostile node does not have
			t.Run(name+" "+filepath.Base(key), func(t *testing.T) {
				t.Parallel()
				m := misuse(t, 4, 20_000)
				with := func(words string) []string { return append(strings.Fields(words), "--key", key) }
				m.volley(exit.OK, with("protect --tolerate 2"))
				want, evil := m.data(), m.madeUp()
				if name == "another group, of five" {
					m.shell("rm -r evil/*/.volley")
					evil = append(evil, writeNodes(t, 1, 100)...)
				}
				expect(t, exit.OK, "protect --accept deleted --key none --tolerate "+cmp.Or(c.tolerate, "2"), evil)
				if c.number != 0 {
					renumber(t, filepath.Join(evil[2], ".volley"), 2, c.number)
				}
				m.shell("cd evil/node.2/.volley; " + c.change)
				m.shell("rm -r n2; mv evil/node.2 n2; mkdir start; cp -a n? start")
				parity := func(args []string, nodes ...int) {
					t.Helper()
					for _, n := range nodes {
						if list, err := filepath.Glob(filepath.Join(m.dirs[n], ".volley/generation.*/parity")); err != nil || len(list) != 1 {
							t.Errorf("%v: node %d has the parity %v", args, n, list)
						}
					}
				}
				for _, words := range []string{"verify", "protect --tolerate 2 --force", "recover --revert changed"} {
					m.shell("rm -rf n?; cp -a start/* .")
					r := m.run(with(words)...)
					m.same(want, 0, 1, 3)
					parity(with(words), 0, 1, 3)
					if key != "none" && strings.Contains(name, "generation") && r.code == exit.Usage && !strings.HasPrefix(words, "protect") { // which asks to recover before
						t.Errorf("with a key %s has stopped: %+v", words, r)
					}
					m.shell("rm -rf n0") // which is not made again of what the hostile one says
					m.run(with("recover")...)
					m.same(want, 1, 3)
					if _, err := os.Lstat(filepath.Join(m.dirs[0], "root")); err == nil {
						t.Fatalf("%s: node 0 has a file of the hostile one", words)
					}
				}
				m.shell("rm -rf n?; cp -a start/* .; rm -r n0 n2; mkdir n2")
				m.volley(exit.OK, with("recover"))
				m.same(want, 0, 1, 2, 3)
				parity(with("recover"), 0, 1, 2, 3)
				m.volley(exit.OK, with("protect --tolerate 2"))
			})
		}
	}
}

// TestHugeNames makes names of generations without end at one node: the group is protected again and again.
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
	m := misuse(t, 3, 5000)
	expect(t, exit.OK, "protect --tolerate 2", m.madeUp())
	m.shell("rm -r n1; mv evil/node.1 n1")
	want := m.data()
	for _, verb := range [][]string{{"verify"}, {"recover"}, {"protect", "--tolerate", "1"}} {
		m.volley(exit.Usage, verb, "cannot tell which generation is in force")
		m.same(want, 0, 2)
	}
}
