package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// TestForged gives one node of four what it would have in a group of other files, with setuid
// ones among them, and runs all verbs. Without a key they stop, or go by the others; with one they
// go by the others. No file at another node is other than it was, none of the others' parity goes,
// and with an empty directory in its place everything comes back.
func TestForged(t *testing.T) {
	t.Parallel()
	const at = 2
	huge := int64(1<<53 - 1)
	for _, c := range []struct {
		name, evil string // tolerate, of what is made up
		change     func(t *testing.T, meta string)
	}{
		{"a newer generation", "2", func(t *testing.T, meta string) {}},
		{"a newer one, which tolerates all", "3", func(t *testing.T, meta string) {}},
		{"pending", "2", func(t *testing.T, meta string) { shell(t, `mv "$1/generation.2" "$1/pending.2"`, meta) }},
		{"the last generation there is", "2", func(t *testing.T, meta string) { renumber(t, meta, 2, 1<<53) }},
		{"one before it, pending", "2", func(t *testing.T, meta string) {
			renumber(t, meta, 2, huge)
			shell(t, `mv "$1/generation.$2" "$1/pending.$2"`, meta, fmt.Sprint(huge))
		}},
		{"the same generation", "2", func(t *testing.T, meta string) { renumber(t, meta, 2, 1) }},
		{"the number of another node", "2", func(t *testing.T, meta string) {
			shell(t, `cp "$1/../../node.1/.volley/generation.2/node.json" "$1/generation.2"`, meta)
		}},
		{"no number", "2", func(t *testing.T, meta string) { shell(t, `rm "$1/generation.2/node.json"`, meta) }},
		{"another group", "new", func(t *testing.T, meta string) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, keyed := range []bool{false, true} {
				dirs := writeNodes(t, 4, 20_000)
				base := filepath.Dir(dirs[0])
				key := filepath.Join(base, "key")
				shell(t, `umask 077; head -c 32 /dev/urandom | base64 > "$1"`, key)
				run := func(base string, args ...string) (r struct {
					code int
					text string
				}) {
					for n := range dirs {
						args = append(args, filepath.Join(base, fmt.Sprintf("node.%d", n)))
					}
					x := volleyRun(args...)
					r.code, r.text = x.code, x.stdout+x.stderr
					return r
				}
				with := func(args ...string) []string {
					if keyed {
						return append(args, "--key", key)
					}
					return args
				}
				done := func(base string, args ...string) {
					t.Helper()
					if r := run(base, args...); r.code != 0 {
						t.Fatalf("%v: %+v", args, r)
					}
				}
				done(base, with("protect", "--tolerate", "2")...)
				var before []string
				for _, dir := range dirs {
					before = append(before, dataOf(t, dir))
				}
				evil := filepath.Join(t.TempDir(), "evil")
				shell(t, `mkdir "$2"; cp -a "$1"/node.* "$2"; cd "$2"; for n in node.*; do echo evil > $n/ckpt; cp /bin/true $n/root; chmod 4755 $n/root; rm $n/sub/b; done`, base, evil)
				tolerate := c.evil
				if c.evil == "new" {
					tolerate = "2"
					shell(t, `rm -r "$1"/node.*/.volley`, evil)
				}
				if keyed { // which the node does not have
					done(evil, "protect", "--tolerate", tolerate, "--accept", "deleted", "--key", "none")
				} else {
					done(evil, "protect", "--tolerate", tolerate, "--accept", "deleted")
				}
				c.change(t, filepath.Join(evil, fmt.Sprintf("node.%d/.volley", at)))
				shell(t, `rm -r "$1/node.$3"; cp -a "$2/node.$3" "$1"; mkdir "$1/start"; cp -a "$1"/node.* "$1/start"`, base, evil, fmt.Sprint(at))
				same := func(what string, r any, but ...int) {
					t.Helper()
					for n, dir := range dirs {
						if n == at || len(but) > 0 && but[0] == n {
							continue
						}
						if is := dataOf(t, dir); is != before[n] {
							t.Fatalf("keyed %v: %s: node %d was\n%s\nand is\n%s\n%+v", keyed, what, n, before[n], is, r)
						}
						if parity, err := filepath.Glob(filepath.Join(dir, ".volley/generation.*/parity")); err != nil || len(parity) != 1 {
							t.Errorf("keyed %v: %s: node %d has the parity %v", keyed, what, n, parity)
						}
					}
				}
				stopped := 0
				for _, args := range [][]string{{"verify"}, {"recover"}, {"protect", "--tolerate", "2"}, {"protect", "--tolerate", "2", "--force"}, {"recover", "--revert", "changed"}} {
					shell(t, `cd "$1"; rm -rf node.*; cp -a start/node.* .`, base)
					r := run(base, with(args...)...)
					same(fmt.Sprint(args), r)
					if r.code == 2 {
						stopped++
					}
					// The lost node is not made of what the hostile one says.
					shell(t, `cd "$1"; rm -rf node.0`, base)
					same(fmt.Sprint(args, ", then recover of another"), run(base, with("recover")...), 0)
					if text := dataOfAny(t, dirs[0]); strings.Contains(text, "root") {
						t.Fatalf("keyed %v, %v: node 0 has\n%s", keyed, args, text)
					}
				}
				if keyed && strings.Contains(c.name, "generation") && stopped > 1 { // protect, which asks to recover before
					t.Errorf("with a key %d verbs have stopped", stopped)
				}
				shell(t, `cd "$1"; rm -rf node.*; cp -a start/node.* .; mv node.2 moved; mkdir node.2; rm -r node.0`, base)
				done(base, with("recover")...)
				done(base, with("verify")...)
				for n, dir := range dirs {
					if is := dataOf(t, dir); is != before[n] {
						t.Errorf("keyed %v: node %d was\n%s\nand came back as\n%s", keyed, n, before[n], is)
					}
				}
				done(base, with("protect", "--tolerate", "2")...)
			}
		})
	}
}

// dataOfAny is dataOf of a directory that may be missing.
func dataOfAny(t *testing.T, dir string) string {
	if _, err := os.Lstat(dir); err != nil {
		return ""
	}
	return dataOf(t, dir)
}

// TestHugeNames makes names of generations without end at one node: the group is protected again
// and again.
func TestHugeNames(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 1000)
	with := func(args ...string) []string { return append(args, dirs...) }
	for i := range 4 {
		if i > 0 {
			meta := filepath.Join(dirs[1], ".volley")
			shell(t, `cd "$1"; mkdir generation.9007199254740992 pending.9007199254740991; echo > pending.9007199254740991/parity; echo > generation.9007199254740990`, meta)
		}
		if out := mustRun(t, with("protect", "--tolerate", "1")...); !strings.Contains(out, fmt.Sprint("protected, generation ", i+1, "\n")) {
			t.Error(out)
		}
		mustRun(t, with("verify")...)
	}
	// All nodes are at the last generation.
	for _, dir := range dirs {
		renumber(t, filepath.Join(dir, ".volley"), 4, 1<<53)
	}
	mustRun(t, with("verify")...)
	if r := volleyRun(with("protect", "--tolerate", "1")...); r.code != exit.Usage || !strings.Contains(r.stderr, "after which there is no other") {
		t.Errorf("%+v", r)
	}
	mustRun(t, with("verify")...)
}

// TestGroupKey gives a key on the command line.
func TestGroupKey(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 10_000)
	base := filepath.Dir(dirs[0])
	key, other := filepath.Join(base, "key"), filepath.Join(base, "other")
	shell(t, `umask 077; for f in "$@"; do head -c 32 /dev/urandom | base64 > "$f"; done`, key, other)
	pipe := filepath.Join(base, "pipe")
	shell(t, `mkfifo -m 600 "$1"; cp "$2" "$1.open"; chmod 644 "$1.open"`, pipe, key)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"protect --tolerate 1 --key " + pipe, exit.Usage, "regular"},
		{"protect --tolerate 1 --key " + pipe + ".open", exit.Usage, "chmod 600"},
		{"protect --tolerate 1 --key " + base + "/no", exit.Usage, "head -c 32 /dev/urandom"},
		{"verify --key " + key, exit.Wrong, "not protected"},
		{"protect --tolerate 1", exit.OK, ""},
		{"verify --key " + key, exit.Usage, "protect it with the key first, or give no key"},
		{"recover --key " + key, exit.Usage, "protect it with the key first, or give no key"},
		{"protect --tolerate 1 --key " + key, exit.OK, "generation 2"},
		{"protect --tolerate 1", exit.Usage, "--key FILE names it, --key none goes without"},
		{"verify", exit.Usage, "--key FILE names it"},
		{"recover", exit.Usage, "--key FILE names it"},
		{"verify --key " + other, exit.Usage, "no manifest in force was made with this key"},
		{"protect --tolerate 1 --key " + other, exit.Usage, "no manifest in force was made with this key"},
		{"verify --key " + key, exit.OK, ""},
		{"recover --key " + key, exit.OK, ""},
		{"verify --key none", exit.OK, ""},
		{"verify --key ./none", exit.Usage, "no such file"},
		{"protect --tolerate 1 --key none", exit.OK, "generation 3"},
		{"verify", exit.OK, ""},
		{"protect --tolerate 1 --key " + other, exit.OK, "generation 4"},
		{"verify --key " + other, exit.OK, ""},
	} {
		r := volleyRun(append(strings.Fields(c.args), dirs...)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("%s: %+v: want exit code %d and %q", c.args, r, c.code, c.want)
		}
	}
}

// TestForgedFirst gives one node of three that were never protected what it would have if they had
// been, with a setuid file for the others: recover writes nothing there.
func TestForgedFirst(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 5000)
	base := filepath.Dir(dirs[0])
	shell(t, `cd "$1"; mkdir evil; cp -a node.* evil; cd evil; for n in node.*; do cp /bin/true $n/root; chmod 4755 $n/root; done`, base)
	evil := []string{base + "/evil/node.0", base + "/evil/node.1", base + "/evil/node.2"}
	mustRun(t, append([]string{"protect", "--tolerate", "2"}, evil...)...)
	shell(t, `cd "$1"; rm -r node.1; mv evil/node.1 .`, base)
	before := dataOf(t, dirs[0]) + dataOf(t, dirs[2])
	for _, args := range [][]string{{"verify"}, {"recover"}, {"protect", "--tolerate", "1"}} {
		if r := volleyRun(append(args, dirs...)...); r.code != exit.Usage || !strings.Contains(r.stderr, "cannot tell which generation is in force") {
			t.Errorf("%v: %+v", args, r)
		}
		if is := dataOf(t, dirs[0]) + dataOf(t, dirs[2]); is != before {
			t.Fatalf("%v: the others were\n%s\nand are\n%s", args, before, is)
		}
	}
}

// TestForgedSize has one node of three say that it is of a group of four: the others are believed
// where one of them is named.
func TestForgedSize(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 5000)
	mustRun(t, append([]string{"protect", "--tolerate", "1"}, dirs...)...)
	before := dataOf(t, dirs[2])
	meta := filepath.Join(dirs[1], ".volley")
	shell(t, `cd "$1"; cp -a generation.1 generation.5`, meta)
	dir := filepath.Join(meta, "generation.5")
	line, _, _ := bytes.Cut(readFile(t, filepath.Join(dir, "manifest.json")), []byte("\n"))
	line = bytes.Replace(line, []byte(`"nodes":3`), []byte(`"nodes":4`), 1)
	line = bytes.Replace(line, []byte(`"data_chunks":2`), []byte(`"data_chunks":3`), 1)
	line = bytes.Replace(line, []byte(`"names":[`), []byte(`"names":["x",`), 1)
	line = bytes.Replace(line, []byte(`"generation":1`), []byte(`"generation":5`), 1)
	line = bytes.Replace(line, []byte(`"members":[`), []byte(`"members":[{"bytes":1,"sha256":"`+strings.Repeat("0", 64)+`"},`), 1)
	id, _, _ := bytes.Cut(readFile(t, filepath.Join(dir, "node.json")), []byte("\n"))
	id = bytes.Replace(id, []byte(`"nodes":3`), []byte(`"nodes":4`), 1)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "manifest.json"), sealed(line), 0o600), os.WriteFile(filepath.Join(dir, "node.json"), sealed(id), 0o600)); err != nil {
		t.Fatal(err)
	}
	if r := volleyRun(append([]string{"verify"}, dirs...)...); r.code != exit.Usage || !strings.Contains(r.stderr, "generation 5 of a group of 4 nodes") || !strings.Contains(r.stderr, "--believe") {
		t.Errorf("%+v", r)
	}
	shell(t, `rm -r "$1"`, dirs[2])
	mustRun(t, append([]string{"recover", "--believe", "0"}, dirs...)...)
	if is := dataOf(t, dirs[2]); is != before {
		t.Errorf("node 2 was\n%s\nand came back as\n%s", before, is)
	}
	mustRun(t, append([]string{"verify"}, dirs...)...)
}
