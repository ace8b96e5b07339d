//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/group"
	"volley/internal/exit"
	"volley/internal/testprogram"
	"volley/transport/transporttest"
)

var misuseProgram = flag.String("misuse.program", "", "program that TestMisuse runs; its own where it is empty")

// A misused group is one to which things happen that nobody should do, and everybody does.
type misused struct {
	*testing.T
	dirs []string
	base string
	user *syscall.Credential // who runs volley; nil: who runs the test
	env  []string
}

// misuse makes k nodes, each with files of up to size bytes.
func misuse(t *testing.T, k, size int) *misused {
	t.Helper()
	m := &misused{T: t, dirs: writeNodes(t, k, size)}
	m.base = filepath.Dir(m.dirs[0])
	return m
}

func (m *misused) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// shell does something by the shell, in the directory that holds the nodes, n0, n1 and so on.
func (m *misused) shell(text string) {
	m.Helper()
	text = regexp.MustCompile(`\bn([0-9?])`).ReplaceAllString(text, "node.$1")
	cmd := exec.Command("sh", "-ec", text)
	cmd.Dir = m.base
	if out, err := cmd.CombinedOutput(); err != nil {
		m.Fatalf("%s: %v: %s", text, err, out)
	}
}

// command returns volley, which is to be run on the nodes.
func (m *misused) command(args ...string) *program {
	m.Helper()
	p := newProgram(m.T, append(args, m.dirs...)...)
	if *misuseProgram != "" {
		p.Path = *misuseProgram
	}
	if m.user != nil {
		p.Path = filepath.Join(filepath.Dir(m.base), "volley")
		p.SysProcAttr = &syscall.SysProcAttr{Credential: m.user}
	}
	p.Env = append(p.Env, m.env...)
	return p
}

// volley runs it and fails unless it exits with the code and prints all of these texts.
func (m *misused) volley(code int, args []string, wants ...string) string {
	m.Helper()
	return m.ended(m.run(args...), code, args, wants...)
}

// run runs volley on the nodes: in this process, unless another program or user is to.
func (m *misused) run(args ...string) result {
	m.Helper()
	if *misuseProgram == "" && m.user == nil && m.env == nil {
		return volleyRun(append(args, m.dirs...)...)
	}
	p := m.command(args...)
	m.must(p.Start())
	return p.end(m.T)
}

// ended fails unless volley has exited with the code and printed all of these texts.
func (m *misused) ended(r result, code int, args []string, wants ...string) string {
	m.Helper()
	m.Logf("volley %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	if r.code != code {
		m.Fatalf("volley %s: %+v: want exit %d", strings.Join(args, " "), r, code)
	}
	for _, want := range wants {
		if !strings.Contains(r.stdout+r.stderr, want) {
			m.Fatalf("volley %s: %+v: want %q", strings.Join(args, " "), r, want)
		}
	}
	return r.stdout + r.stderr
}

func (m *misused) protect(wants ...string) string {
	m.Helper()
	return m.volley(exit.OK, []string{"protect", "--tolerate", "2"}, wants...)
}

// data is what is at the nodes.
func (m *misused) data() (list []string) {
	for _, dir := range m.dirs {
		list = append(list, dataOf(m.T, dir))
	}
	return list
}

// same fails where nodes have not what they had; others are not looked at.
func (m *misused) same(want []string, nodes ...int) {
	m.Helper()
	for _, n := range nodes {
		if now := dataOf(m.T, m.dirs[n]); now != want[n] {
			m.Fatalf("node %d is\n%s\nwant\n%s", n, now, want[n])
		}
	}
}

func (m *misused) content(name string) string {
	m.Helper()
	text, err := os.ReadFile(filepath.Join(m.base, strings.Replace(name, "n", "node.", 1)))
	m.must(err)
	return string(text)
}

// asNobody lets volley be run by a user who owns the nodes and may not do everything.
func (m *misused) asNobody() {
	m.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	m.user = &syscall.Credential{Uid: nobody, Gid: nobody}
	path := *misuseProgram
	if path == "" {
		path, _ = os.Executable()
	}
	to := filepath.Join(filepath.Dir(m.base), "volley")
	text, err := os.ReadFile(path)
	m.must(err)
	m.must(testprogram.Write(to, text))
	m.must(os.Chmod(filepath.Dir(m.base), 0o755))
	m.must(filepath.WalkDir(m.base, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	}))
}

// blocksCoded protects, and returns how many blocks that has coded, and of how many.
func (m *misused) blocksCoded() (n, of int) {
	m.Helper()
	var r group.ProtectReport
	m.must(json.Unmarshal([]byte(m.volley(exit.OK, []string{"protect", "--tolerate", "2", "--json"})), &r))
	return r.Coded, r.Blocks
}

// TestMisuse does to groups what happens to them: each is a way in which data was lost once,
// or a run failed that had not to.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		f    func(t *testing.T)
	}{
		{"everything deleted", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			want := m.data()
			m.shell("rm -rf n1/*")
			m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "node.1 has 0 of 4 files", "recover the files first", "--accept deleted")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0, 1, 2, 3)
			m.shell("rm -rf n1/*")
			m.volley(exit.OK, []string{"protect", "--tolerate", "2", "--accept", "deleted"}, "4 files deleted")
		}},
		{"everything emptied", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			want := m.data()
			m.shell("for f in n1/ckpt n1/sub/b n1/sub/c; do : > $f; done")
			m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "node.1 has", `"ckpt"`, "--accept deleted")
			m.volley(exit.OK, []string{"recover", "--revert", "changed"})
			m.same(want, 0, 1, 2, 3)
		}},
		{"everything encrypted", func(t *testing.T) {
			m := misuse(t, 2, 100_000)
			m.shell("for i in 1 2 3 4 5 6 7 8 9; do echo $i >n0/doc$i; echo $i >n1/doc$i; done")
			m.volley(exit.OK, []string{"protect", "--tolerate", "1"})
			want := m.data()
			for _, text := range []string{
				"for f in n1/doc? n1/ckpt; do echo locked >$f; done",
				"for f in n1/doc? n1/ckpt; do rm $f; echo locked >$f.locked; done",
			} {
				m.shell(text)
				m.volley(exit.Usage, []string{"protect", "--tolerate", "1"}, "node.1 has other content in 10 of 13 files", `"doc3"`, "--accept changed")
				m.volley(exit.OK, []string{"recover", "--revert", "changed,deleted"})
				m.shell("rm -f n1/*.locked")
				m.same(want, 0, 1)
				m.volley(exit.OK, []string{"protect", "--tolerate", "1"})
			}
			m.shell("for f in n1/doc? n1/ckpt; do echo edited >$f; done")
			m.volley(exit.OK, []string{"protect", "--tolerate", "1", "--accept", "deleted,changed"}, "10 files changed since the last run")
			m.shell("for f in n1/doc? n1/ckpt; do echo edited again >$f; done")
			m.volley(exit.OK, []string{"protect", "--tolerate", "1", "--accept", "changed"}, "10 files changed since the last run")
		}},
		{"all on one disk", func(t *testing.T) {
			m := misuse(t, 3, 1000)
			const note = "all nodes are on one disk"
			m.volley(exit.OK, []string{"protect", "--tolerate", "1"}, "note: "+note, "protected, generation 1")
			m.volley(exit.Wrong, []string{"protect", "--tolerate", "1", "--strict"}, "note: "+note, "protected, generation 2", "volley: more nodes than may be lost are in one place: "+note)
			if out := m.volley(exit.OK, []string{"protect", "--tolerate", "1", "--quiet"}); out != "" {
				t.Errorf("--quiet: %q", out)
			}
			m.volley(exit.OK, []string{"protect", "--tolerate", "1", "--json"}, `"hosts": [`, `"devices": [`, note)
		}},
		{"half deleted", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.shell("for i in 1 2 3 4 5 6; do for n in n0 n1 n2 n3; do cp n0/ckpt $n/ckpt.$i; done; done")
			m.protect()
			m.shell("rm n1/ckpt.[123456]")
			m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "node.1 has 4 of 10 files", "--accept deleted")
			m.volley(exit.OK, []string{"protect", "--tolerate", "2", "--accept", "deleted"}, "6 files deleted")
			m.volley(exit.OK, []string{"verify"})
		}},
		{"checkpoints rotated", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.shell("for i in 1 2 3 4 5 6; do for n in n0 n1 n2 n3; do cp n0/ckpt $n/ckpt.$i; done; done")
			m.protect()
			m.shell("rm n?/ckpt.[12]; for n in n0 n1 n2 n3; do cp n1/ckpt $n/ckpt.7; cp n1/ckpt $n/ckpt.8; done")
			m.protect("8 files deleted or emptied since the last run")
			m.shell("rm n1/ckpt.[34]; cp n1/ckpt n1/ckpt.9")
			m.protect("2 files deleted or emptied since the last run")
			want := m.data()
			m.shell("rm -rf n1 n2")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0, 1, 2, 3)
		}},
		{"all nodes cleared for the next job", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			m.shell("rm n?/ckpt; for n in n0 n1 n2; do rm -r $n/sub; done")
			m.protect("files deleted or emptied")
		}},
		{"rewritten with the same length", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			want := m.data()
			size := len(m.content("n1/ckpt"))
			m.must(os.WriteFile(filepath.Join(m.dirs[1], "ckpt"), bytes.Repeat([]byte("n"), size), 0o644))
			want[1] = dataOf(t, m.dirs[1])
			m.volley(exit.OK, []string{"verify"}, `changed: "ckpt"`, "next: volley protect, which takes in what has changed")
			m.shell("rm -rf n3")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"}, "left as it is: 1 changed file; recover --revert changed ")
			m.same(want, 0, 1, 2, 3)
			m.protect()
			m.volley(exit.OK, []string{"verify"})
		}},
		{"reverted twice", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			want := m.data()
			for _, text := range []string{"first", "other", "third"} {
				m.must(os.WriteFile(filepath.Join(m.dirs[1], "ckpt"), []byte(text), 0o644))
				m.volley(exit.OK, []string{"recover", "--revert", "changed"}, "what was there is in ")
				m.same(want, 0, 1, 2, 3)
			}
			kept, _ := filepath.Glob(filepath.Join(m.dirs[1], ".volley/replaced/*/ckpt*"))
			texts := map[string]bool{}
			for _, path := range kept {
				text, _ := os.ReadFile(path)
				texts[string(text)] = true
			}
			if !texts["first"] || !texts["other"] || !texts["third"] {
				t.Errorf("%v have %v", kept, texts)
			}
		}},
		{"a node rolled back", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			m.shell("cp -a n0 old; echo new > n0/ckpt; head -c 50000 /dev/urandom > n0/sub/b; rm n0/sub/c; echo n > n0/new; echo new > n2/ckpt")
			m.protect("generation 2")
			want := m.data()
			m.shell("rm -r n0; mv old n0")
			m.volley(exit.Wrong, []string{"verify"}, "node 0  stale", `stale: "ckpt"`)
			m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "node.0")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.shell("rm -f n0/sub/c") // what was deleted since is a new file
			m.same(want, 0, 1, 2, 3)
			m.volley(exit.OK, []string{"verify"})
			m.protect()
		}},
		{"a node rolled back and written to", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			m.shell("cp -a n0 old; echo new >> n0/ckpt; echo new >> n0/sub/b")
			m.protect("generation 2")
			want := m.data()
			m.shell("rm -r n0; mv old n0; echo mine > n0/sub/b")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"}, "left as it is: 1 changed file; recover --revert changed ")
			if is := m.content("n0/sub/b"); is != "mine\n" {
				t.Errorf("%.20q", is)
			}
			if !strings.HasSuffix(m.content("n0/ckpt"), "new\n") {
				t.Error("ckpt is not that of generation 2")
			}
			m.same(want, 1, 2, 3)
		}},
		{"two nodes of two generations", func(t *testing.T) {
			m := misuse(t, 2, 100_000)
			m.volley(exit.OK, []string{"protect", "--tolerate", "1"})
			m.shell("cp -a n1 old; echo new > n0/ckpt; echo new > n1/ckpt")
			m.volley(exit.OK, []string{"protect", "--tolerate", "1"})
			want := m.data()
			m.shell("rm -r n1; mv old n1")
			for _, args := range [][]string{{"verify"}, {"recover"}, {"protect", "--tolerate", "1"}} {
				m.volley(exit.Usage, args, "node.0 has generation 2", "node.1 has generation 1", "--believe")
			}
			m.volley(exit.OK, []string{"recover", "--believe", "0"})
			m.same(want, 0, 1)
			m.volley(exit.OK, []string{"verify"})
		}},
		{"a forged generation", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			want := m.data()
			renumber(t, filepath.Join(m.dirs[2], ".volley"), 1, 7)
			m.shell("rm -rf n0")
			m.volley(exit.Usage, []string{"verify"}, "node.2 has generation 7", "--believe")
			m.volley(exit.OK, []string{"recover", "--believe", "1"})
			m.same(want, 0, 1, 2, 3)
			m.volley(exit.OK, []string{"verify"})
		}},
		{"the node that had committed is lost", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			m.shell("for n in n0 n1 n2 n3; do mkdir -p old/$n; cp -a $n/.volley/generation.1 old/$n; echo new $n > $n/ckpt; done")
			m.protect("generation 2")
			want := m.data()
			m.shell("for n in n1 n2 n3; do mv $n/.volley/generation.2 $n/.volley/pending.2; cp -a old/$n/generation.1 $n/.volley; done; rm -rf n0 old")
			m.volley(exit.Wrong, []string{"verify"}, "node 0  lost")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0, 1, 2, 3)
			m.volley(exit.OK, []string{"verify"}, "generation 2")
		}},
		{"a generation without end", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.protect()
			m.shell("for n in n0 n1 n2 n3; do cp -a $n/.volley/generation.1 $n/.volley/generation.9223372036854775807; mkdir $n/.volley/pending.9223372036854775806; done; echo new > n0/ckpt")
			m.protect("generation 2")
			m.volley(exit.OK, []string{"verify"})
		}},
		{"the year 2300", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.shell("touch -d 2300-01-01T00:00:00.5 n0/ckpt; touch -d 1900-01-01T00:00:00.5 n0/sub/b")
			m.protect()
			want := m.data()
			whole := stamps(t, m.dirs[0])
			m.shell("rm -r n0")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0)
			if is := stamps(t, m.dirs[0]); is != whole {
				t.Errorf("times\n%s\nwant\n%s", is, whole)
			}
			m.volley(exit.OK, []string{"verify"})
		}},
		{"refused without a trace", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			for _, args := range [][]string{
				{"protect", "--tolerate", "4"},
				{"verify"}, {"recover"}, {"recover", "--dry-run"},
			} {
				m.volley(map[string]int{"protect": exit.Usage, "verify": exit.Wrong, "recover": exit.Absent}[args[0]], args)
			}
			if list, _ := filepath.Glob(filepath.Join(m.base, "*/.volley")); list != nil {
				t.Errorf("there are %v", list)
			}
		}},
		{"a pipe that nobody writes", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.shell("mkfifo n3/pipe")
			m.volley(exit.OK, []string{"protect", "--tolerate", "2"}, "note: not protected: ", "pipe is a named pipe")
			m.volley(exit.OK, []string{"verify"}, "whole: ")
		}},
		{"all nodes lost", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.protect()
			m.shell("rm -rf n?")
			m.volley(exit.Wrong, []string{"verify"}, "all nodes are lost")
			m.volley(exit.Absent, []string{"recover"}, "all nodes are lost")
			if list, _ := filepath.Glob(filepath.Join(m.base, "*")); list != nil {
				t.Errorf("there are %v", list)
			}
		}},
		{"a directory that may not be written to", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.asNobody()
			m.shell("chmod 0500 n0/sub; chmod 0400 n0/sub/b")
			t.Cleanup(func() { m.shell("chmod -R u+w n0") })
			m.protect()
			want := m.data()
			m.shell("chmod 0700 n0/sub; rm n0/sub/b; chmod 0500 n0/sub")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0, 1, 2, 3)
			m.shell("chmod -R u+w n0; rm -rf n0; mkdir n0; chown --reference n1 n0")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			for n := range m.dirs {
				if now := filesOf(t, m.dirs[n]); len(now) != 4 {
					t.Errorf("node %d: %v", n, now)
				}
			}
		}},
		{"a directory that others own", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.asNobody()
			m.protect()
			want := m.data()
			m.shell("rm -rf n0; mkdir n0; chmod 0777 n0") // as where a disk is mounted
			var wants []string
			if m.user != nil {
				wants = []string{"mode not restored: operation not permitted"}
			}
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"}, wants...)
			for n := range m.dirs {
				if now := filesOf(t, m.dirs[n]); len(now) != 4 {
					t.Errorf("node %d: %v", n, now)
				}
			}
			m.same(want, 1, 2, 3)
			m.volley(exit.OK, []string{"verify"})
		}},
		{"everything shorter", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			m.shell("echo short > n1/ckpt; echo short > n1/sub/b")
			m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "node.1 has 4 of 4 files", "shorter", `"ckpt"`, `"sub/b"`, "--accept deleted")
		}},
		{"busy with one of two that read", func(t *testing.T) {
			g := newPairGroup(t, 300_000, true)
			p := g.stopped(t, pairVerb{name: "verify", args: []string{"verify"}})
			if other := newProgram(t, g.with("verify")...); other.Run() != nil {
				t.Error("a second verify failed")
			}
			// The second one has ended, and is not named.
			if r := volleyRun(g.with("recover")...); r.code != exit.Failed || !strings.Contains(r.stderr, "is busy: another run of volley uses it") {
				t.Errorf("%+v", r)
			}
			p.Process.Signal(syscall.SIGCONT)
			p.end(t)
		}},
		{"what recover has sent", func(t *testing.T) {
			m := misuse(t, 4, 100_000)
			m.protect()
			m.shell("rm -rf n0")
			if out := m.volley(exit.OK, []string{"recover", "--revert", "deleted"}); strings.Contains(out, "; 0 B sent") {
				t.Error(out)
			}
		}},
		{"a directory of somebody else's", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.protect()
			want := m.data()
			m.shell("mv n1 away; mkdir -p n1/photos; for i in 1 2 3; do echo $i > n1/photos/$i; done")
			there := dataOf(t, m.dirs[1])
			m.volley(exit.Usage, []string{"recover"}, "node.1 has other files than node 1")
			if now := dataOf(t, m.dirs[1]); now != there {
				t.Errorf("it was\n%s\nand is\n%s", there, now)
			}
			m.shell("mv n1 elsewhere; mkdir n1")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			if is := m.content("elsewhere/photos/2"); is != "2\n" {
				t.Errorf("%q", is)
			}
			m.same(want, 0, 1, 2, 3)
			m.shell("rm -r n1/.volley") // its own files, and nothing says so
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.volley(exit.OK, []string{"verify"})
			m.same(want, 0, 1, 2, 3)
		}},
		{"a little more at the largest node", func(t *testing.T) {
			m := misuse(t, 4, 300_000)
			m.shell("for n in n0 n1 n2 n3; do head -c 2000000 /dev/urandom > $n/big; done; head -c 100000 /dev/urandom >> n0/big")
			m.protect()
			for _, more := range []string{"head -c 1000 /dev/urandom > n0/more", "head -c 1000 /dev/urandom > n0/more2", "head -c 10 /dev/urandom > n0/a", "rm n0/more"} {
				m.shell(more)
				n, of := m.blocksCoded()
				t.Logf("%s: %d of %d blocks", more, n, of)
				if of < 80 || n > 4 { // those of a row at most
					t.Errorf("%s: %d of %d blocks", more, n, of)
				}
			}
			want := m.data()
			m.shell("rm -rf n0 n2")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0, 1, 2, 3)
		}},
		{"8 small nodes that grow", func(t *testing.T) {
			m := misuse(t, 8, 300)
			m.volley(exit.OK, []string{"protect", "--tolerate", "2"})
			m.shell("for n in n0 n1 n2 n3 n4 n5 n6 n7; do head -c 4000000 /dev/urandom > $n/big; done")
			out := m.volley(exit.OK, []string{"protect", "--tolerate", "2"})
			if !regexp.MustCompile(`parity +1\.[0-9] MiB`).MatchString(out) {
				t.Error(out)
			}
			m.volley(exit.OK, []string{"verify"})
		}},
		{"a node that cannot be read", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.asNobody()
			m.protect()
			want := m.data()
			m.shell("chmod 000 n1")
			m.volley(exit.Wrong, []string{"verify"}, "node 1  failing", "node 0  whole", "give another, empty directory in its place")
			m.shell("rm -rf n3; mkdir n3; chown --reference n2 n3")
			m.volley(exit.Wrong, []string{"recover"}, "node.1 cannot be read")
			for _, p := range []string{"ckpt", "sub/b", "sub/c"} {
				if _, err := os.Stat(filepath.Join(m.dirs[3], p)); err != nil {
					t.Error(err)
				}
			}
			m.shell("mkdir n9; chown --reference n2 n9")
			m.dirs[1] = filepath.Join(m.base, "node.9")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0, 2)
			if now := filesOf(t, m.dirs[1]); len(now) != 4 {
				t.Error(now)
			}
			m.shell("chmod 700 n1")
		}},
		{"something else in the place of a node", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.asNobody()
			m.protect()
			want := m.data()
			m.shell("mv n1 away")
			for _, x := range []struct {
				do, verify, recover string
				codes               [2]int // of verify and recover
			}{
				{"ln -s away n1", "whole: 4 nodes", "all nodes are whole", [2]int{exit.OK, exit.OK}},
				{"ln -s node.2 n1", "are the same directory", "are the same directory", [2]int{exit.Usage, exit.Usage}},
				{"ln -s node.2/sub n1", "lies in", "lies in", [2]int{exit.Usage, exit.Usage}},
				{"ln -s node.1 n1", "node 1  failing", "node.1 cannot be read", [2]int{exit.Wrong, exit.Wrong}},
				{"ln -s nowhere n1", "node 1  lost", "node.1 cannot be read", [2]int{exit.Wrong, exit.Wrong}},
				{"echo > n1", "node.1 is not a directory", "node.1 is not a directory", [2]int{exit.Usage, exit.Usage}},
				{"mkfifo n1", "node.1 is not a directory", "node.1 is not a directory", [2]int{exit.Usage, exit.Usage}},
			} {
				m.shell(x.do)
				before, _ := os.Lstat(m.dirs[1])
				m.volley(x.codes[0], []string{"verify"}, x.verify)
				m.volley(x.codes[1], []string{"recover"}, x.recover)
				if after, err := os.Lstat(m.dirs[1]); err != nil || !os.SameFile(before, after) {
					t.Errorf("%s: it is another one: %v", x.do, err)
				}
				m.same(want, 0, 2, 3)
				m.shell("rm n1")
			}
			m.shell("mv away n1")
			m.same(want, 1)
			m.volley(exit.OK, []string{"verify"})
		}},
		{"a .volley that cannot be read", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.asNobody()
			m.protect()
			m.shell("chmod 000 n1/.volley; rm n3/ckpt")
			m.volley(exit.Wrong, []string{"verify"}, "node 1  failing", "node 0  whole")
			m.volley(exit.Wrong, []string{"recover", "--revert", "deleted"}, "node.1 cannot be read")
			m.content("n3/ckpt")
			m.shell("chmod 700 n1/.volley")
			m.volley(exit.OK, []string{"verify"})
		}},
		{"files that cannot be read", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.asNobody()
			m.protect()
			want := m.data()
			m.shell("chmod 000 n1/sub n2/.volley/generation.1/parity n0/ckpt; rm n3/ckpt")
			m.volley(exit.Wrong, []string{"verify"}, "node 1  damaged", "node 2  damaged", "permission denied", "run it as who may read what permission denies")
			m.command("recover", "--revert", "deleted").Run()
			m.content("n3/ckpt")
			m.shell("chmod 755 n1/sub; chmod 644 n0/ckpt; chmod 600 n2/.volley/generation.*/parity")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.same(want, 0, 1, 2, 3)
			m.volley(exit.OK, []string{"verify"})
		}},
		{"a file is rewritten in memory meanwhile", func(t *testing.T) {
			m := misuse(t, 4, 600_000)
			path := filepath.Join(m.dirs[0], "ckpt")
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			m.must(err)
			defer f.Close()
			memory, err := syscall.Mmap(int(f.Fd()), 0, 600_000, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
			m.must(err)
			defer syscall.Munmap(memory)
			memory[0]++ // from here on the time stays, until the page is written back
			at := time.Now().Add(-time.Hour)
			m.must(os.Chtimes(path, at, at))
			rng := rand.New(rand.NewPCG(3, 3))
			for range 3 {
				stop, stopped := make(chan bool), make(chan bool)
				go func() {
					defer close(stopped)
					for {
						select {
						case <-stop:
							return
						default:
							memory[rng.IntN(len(memory))]++
						}
					}
				}()
				p := m.command("protect", "--tolerate", "2", "--force")
				m.must(p.Start())
				r := p.end(t)
				close(stop)
				<-stopped
				if r.code != exit.OK {
					if !strings.Contains(r.stderr, "ckpt") {
						t.Errorf("%+v", r)
					}
					continue
				}
				want := m.data()
				m.shell("rm -rf n3")
				p = m.command("recover")
				m.must(p.Start())
				if r := p.end(t); r.code != exit.OK {
					t.Fatalf("protected while a file was written to, and a node lost: %+v", r)
				}
				m.same(want, 1, 2, 3)
				m.shell("rm -rf n0/ckpt")
				m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
				m.volley(exit.OK, []string{"verify"})
				if f2, err := os.OpenFile(path, os.O_RDWR, 0); err == nil { // it is another file now
					syscall.Munmap(memory)
					memory, err = syscall.Mmap(int(f2.Fd()), 0, 600_000, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
					f2.Close()
					m.must(err)
					memory[0]++
				}
			}
		}},
		{"one block too many is bad", func(t *testing.T) {
			m := misuse(t, 4, 300_000)
			m.protect()
			m.shell("rm -rf n0 n1")
			vanish(t, filepath.Join(m.dirs[2], "ckpt"))
			m.volley(exit.Wrong, []string{"recover"}, "not everything is recovered")
			if len(filesOf(t, m.dirs[0])) < 2 || len(filesOf(t, m.dirs[1])) < 2 {
				t.Errorf("%v and %v have come back", filesOf(t, m.dirs[0]), filesOf(t, m.dirs[1]))
			}
		}},
		{"leftovers", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.protect()
			m.shell("echo > n1/.volley/tmp-3; echo > n2/.volley/.volley-ABC; mkdir n0/.volley/pending.5; echo > n0/.volley/pending.5/parity; mkdir n3/.volley/tmp-generation.1")
			m.volley(exit.OK, []string{"verify"}, "tmp-3", ".volley-ABC", "pending.5", "tmp-generation.1", "removes")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted", "--dry-run"}, "tmp-3", "removes")
			if said := m.volley(exit.OK, []string{"recover", "--revert", "deleted"}); strings.Contains(said, "interrupted") {
				t.Errorf("recover names what it has removed: %s", said)
			}
			if list, _ := filepath.Glob(filepath.Join(m.base, "*/.volley/tmp-*")); list != nil {
				t.Errorf("there are %v", list)
			}
			for n := range m.dirs {
				checkLeft(t, "recovered", m.dirs[n])
			}
		}},
		{"one run of four", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			for _, env := range []string{"OMPI_COMM_WORLD_SIZE=4", "PMI_SIZE=4", "SLURM_STEP_NUM_TASKS=4"} {
				m.env = []string{env}
				m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "--comm")
				m.volley(exit.Usage, []string{"verify"}, "--comm")
			}
			m.volley(exit.OK, []string{"protect", "--tolerate", "2", "--comm", "local"})
			m.env = []string{"WORLD_SIZE=4", "SLURM_NTASKS=4"}
			m.protect()
		}},
		{"hung up", func(t *testing.T) {
			m := misuse(t, 4, 4_000_000)
			p := m.command("protect", "--tolerate", "2")
			m.must(p.Start())
			for begun := time.Now(); time.Since(begun) < transporttest.Limit; {
				if _, err := os.Lstat(filepath.Join(m.dirs[3], ".volley/pending.1/parity")); err == nil {
					break
				}
			}
			p.Process.Signal(syscall.SIGHUP)
			if r := p.end(t); r.code == exit.OK {
				return // it had ended already
			}
			if list, _ := filepath.Glob(filepath.Join(m.base, "*/.volley/*")); list != nil {
				t.Errorf("there are %v", list)
			}
		}},
		{"numbers in JSON", func(t *testing.T) {
			m := misuse(t, 4, 10_000)
			m.protect()
			m.shell("rm n1/ckpt; : > n1/sub/b")
			m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "node.1 has 2 of 4 files")
			out := m.volley(exit.OK, []string{"protect", "--tolerate", "2", "--accept", "deleted", "--json"})
			var r group.ProtectReport
			if err := json.Unmarshal([]byte(out), &r); err != nil || r.Deleted != 2 {
				t.Errorf("%v: %s", err, out)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.f(t)
		})
	}
}

// stamps are the times of what lies in a directory, to the second and beyond 2262.
func stamps(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".volley" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&b, "%s %s\n", d.Name(), info.ModTime().UTC().Format(time.RFC3339Nano))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
