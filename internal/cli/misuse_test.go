//go:build unix

package cli

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"volley/internal/exit"
	"volley/internal/testprogram"
)

var misuseProgram = flag.String("misuse.program", "", "program that TestMisuse runs; its own where it is empty")

// A misused group is one to which things happen that nobody should do, and everybody does.
type misused struct {
	*testing.T
	dirs []string
	base string
	user *syscall.Credential // who runs volley; nil: who runs the test
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
	if *misuseProgram == "" && m.user == nil {
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
func (m *misused) data() []string { return dataOfAll(m.T, m.dirs) }

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

var protect2 = []string{"protect", "--tolerate", "2"}

// misuses are ways in which data was lost once, or a run failed that had not to. They get four nodes that are protected,
// and what is there.
var misuses = map[string]func(m *misused, want []string){
	"everything deleted, or encrypted": func(m *misused, want []string) {
		m.shell("rm -rf n1/*")
		m.volley(exit.Usage, protect2, "node.1 has 0 of 4 files", "recover --revert changed,deleted", "--accept deleted")
		m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
		m.same(want, 0, 1, 2, 3)
		m.shell("rm n1/ckpt; : > n1/sub/b")
		m.volley(exit.Usage, protect2, "node.1 has 2 of 4 files")
		m.volley(exit.Wrong, []string{"status"}, "node.1 has 2 of 4 files", "next: volley recover --revert changed,deleted")
		m.volley(exit.OK, append(protect2, "--accept", "deleted", "--json"), `"deleted_files": 2,`)
		m.shell("for i in 1 2 3 4 5 6 7 8 9; do for n in n0 n1 n2 n3; do echo $i >$n/doc$i; done; done")
		m.protect()
		m.shell("for f in n1/doc?; do echo locked >$f; done")
		m.volley(exit.Usage, protect2, "node.1 has other content in 9 of 12 files", `"doc3"`, "--accept changed")
		m.volley(exit.Wrong, []string{"verify"}, "node.1 has other content in 9 of 12 files", "next: volley recover --revert changed,deleted")
		m.volley(exit.OK, append(protect2, "--accept", "deleted,changed"), "9 files changed since the last run")
		m.shell("rm n1/doc1 n1/doc2")
		const loss = `node.1 has lost 2 of 12 files (gone or shorter: "doc1", "doc2")`
		m.volley(exit.OK, []string{"status"}, loss, "recover --revert changed,deleted")
		m.volley(exit.OK, append(protect2, "-q"), loss, "do not come back any more")
		m.volley(exit.OK, append(protect2, "-q"))
	},
	"a node rolled back and written to": func(m *misused, _ []string) {
		m.shell("cp -a n0 old; echo new >> n0/ckpt; head -c 50000 /dev/urandom > n0/sub/b; rm n0/sub/c; echo n > n0/new; echo new >> n2/ckpt")
		m.protect("generation 2")
		want := m.data()
		m.shell("rm -r n0; mv old n0")
		m.volley(exit.Wrong, []string{"verify"}, "node 0  stale", `stale: "ckpt"`)
		m.volley(exit.Usage, protect2, "node.0")
		m.shell("echo mine > n0/sub/b")
		m.volley(exit.OK, []string{"recover", "--revert", "deleted"}, "left as it is: 1 changed file; to bring back what was protected: volley recover --revert changed ")
		if is := m.content("n0/sub/b"); is != "mine\n" {
			m.Errorf("%.20q", is)
		}
		m.same(want, 1, 2, 3)
		m.volley(exit.OK, []string{"recover", "--revert", "changed"})
		m.shell("rm -f n0/sub/c") // what was deleted since is a new file
		m.same(want, 0)
		m.volley(exit.OK, []string{"verify"})
	},
	"two nodes of two generations": func(m *misused, _ []string) {
		m.shell("rm -r n?/.volley")
		m.dirs = m.dirs[:2]
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
	},
	"a directory that may not be written to": func(m *misused, _ []string) {
		m.asNobody()
		m.shell("chmod 0500 n0/sub; chmod 0400 n0/sub/b")
		m.Cleanup(func() { m.shell("chmod -R u+w n0") })
		m.protect()
		want := m.data()
		m.shell("chmod 0700 n0/sub; rm n0/sub/b; chmod 0500 n0/sub")
		m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
		m.same(want, 0, 1, 2, 3)
		m.shell("chmod -R u+w n0; rm -rf n0; mkdir n0; chmod 0777 n0") // root's, as where a disk is mounted
		m.volley(exit.OK, []string{"recover", "--revert", "deleted"}, map[bool]string{true: "mode not restored: operation not permitted"}[m.user != nil])
		if now := filesOf(m.T, m.dirs[0]); len(now) != 4 {
			m.Errorf("%v", now)
		}
		m.volley(exit.OK, []string{"verify"})
	},
	"a node that cannot be read": func(m *misused, want []string) {
		m.asNobody()
		m.shell("chmod 000 n1")
		m.volley(exit.Wrong, []string{"verify"}, "node 1  failing", "node 0  whole", "give another, empty directory in its place")
		m.shell("rm -rf n3; mkdir n3; chown --reference n2 n3")
		m.volley(exit.Wrong, []string{"recover"}, "node.1 cannot be read")
		for _, name := range []string{"ckpt", "sub/b", "sub/c"} {
			m.content("n3/" + name)
		}
		m.shell("mkdir n9; chown --reference n2 n9")
		m.dirs[1] = filepath.Join(m.base, "node.9")
		m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
		m.same(want, 0, 2)
		if now := filesOf(m.T, m.dirs[1]); len(now) != 4 {
			m.Error(now)
		}
		m.shell("chmod 700 n1")
	},
	"files that cannot be read": func(m *misused, want []string) {
		m.asNobody()
		m.shell("chmod 000 n1/sub n2/.volley/generation.1/parity n0/ckpt; rm n3/ckpt")
		m.volley(exit.Wrong, []string{"verify"}, "node 1  damaged", "node 2  damaged", "permission denied", "run it as who may read what permission denies")
		m.command("recover", "--revert", "deleted").Run()
		m.content("n3/ckpt")
		m.shell("chmod 755 n1/sub; chmod 644 n0/ckpt; chmod 600 n2/.volley/generation.*/parity; chmod 000 n1/.volley; rm n3/ckpt")
		m.volley(exit.Wrong, []string{"recover", "--revert", "deleted"}, "node.1 cannot be read")
		m.content("n3/ckpt")
		m.shell("chmod 700 n1/.volley")
		m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
		m.same(want, 0, 1, 2, 3)
		m.volley(exit.OK, []string{"verify"})
	},
	"something else in the place of a node": func(m *misused, want []string) {
		m.asNobody()
		m.shell("mv n1 away")
		for _, x := range []struct {
			do, says string
			code     int
		}{
			{"ln -s away n1", "", exit.OK},
			{"ln -s node.2/sub n1", "lies in", exit.Usage},
			{"ln -s node.1 n1", "node.1 cannot be read", exit.Wrong},
			{"ln -s nowhere n1", "node.1 cannot be read", exit.Wrong},
			{"mkfifo n1", "node.1 is not a directory", exit.Usage},
		} {
			m.shell(x.do)
			before, _ := os.Lstat(m.dirs[1])
			m.volley(x.code, []string{"verify"})
			m.volley(x.code, []string{"recover"}, x.says)
			if after, err := os.Lstat(m.dirs[1]); err != nil || !os.SameFile(before, after) {
				m.Errorf("%s: it is another one: %v", x.do, err)
			}
			m.same(want, 0, 2, 3)
			m.shell("rm n1")
		}
		m.shell("mv away n1")
		m.same(want, 1)
	},
}

// TestMisuse does to groups what happens to them.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for name, do := range misuses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := misuse(t, 4, 10_000)
			m.protect()
			do(m, m.data())
		})
	}
}
