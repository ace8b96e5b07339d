//go:build linux

package cli

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"volley/internal/disk"
	"volley/internal/exit"
)

// outside makes a directory that belongs to no node, and returns a check that nothing in it has changed.
func (m *misused) outside() (dir string, same func()) {
	m.Helper()
	dir = m.TempDir()
	for _, name := range []string{"b", "c", "parity", "record", "manifest.json", "tmp-mine", ".volley-mine", "node.json", "lock"} {
		m.must(os.WriteFile(filepath.Join(dir, name), []byte("mine\n"), 0o644))
	}
	before := dataOf(m.T, dir)
	return dir, func() {
		m.Helper()
		equal(m.T, dataOf(m.T, dir), before)
	}
}

// TestGroupSymlinks puts symbolic links in the places of directories and of what is Volley's: no
// verb reads, writes or removes anything behind them.
func TestGroupSymlinks(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{true, false} { // or to another directory of the node
		t.Run(fmt.Sprint("directory, elsewhere ", elsewhere), func(t *testing.T) {
			m := misuse(t, 4, 20_000)
			m.shell("mkdir n1/other; echo mine > n1/other/b")
			m.protect()
			want := m.data()
			to, same := m.outside()
			if !elsewhere {
				to = "other"
			}
			m.shell("rm -r n1/sub; ln -s " + to + " n1/sub")
			m.volley(exit.Wrong, []string{"verify"}, `changed: "sub"`)
			m.volley(exit.Wrong, []string{"recover"}, "sub is no directory any more")
			m.volley(exit.OK, []string{"recover", "--revert", "changed"})
			same()
			m.same(want, 0, 1, 2, 3)
			m.shell("rm -r n1/sub; ln -s " + to + " n1/sub")
			m.protect()
			same()
			m.volley(exit.OK, []string{"verify"})
		})
	}
	for _, name := range []string{"", "/lock", "/generation.1/parity", "/generation.1/manifest.json", "/generation.1/record", "/generation.1/record.0", "/generation.1/node.json", "/generation.1", "/pending.2", "/tmp-stage", "/replaced"} {
		t.Run(".volley"+name, func(t *testing.T) {
			m := misuse(t, 4, 20_000)
			m.protect()
			to, same := m.outside()
			want := m.data()
			if name != "" && name != "/generation.1" && name != "/pending.2" {
				to += "/node.json"
			}
			m.shell("mkdir kept; mv n1/.volley" + name + " kept/x || :; ln -s " + to + " n1/.volley" + name)
			for _, args := range [][]string{{"verify"}, {"recover"}, {"recover", "--revert", "changed"}, {"protect", "--tolerate", "2"}} {
				if r := m.run(args...); name == "" && (r.code != exit.Usage || !strings.Contains(r.stderr, ".volley: it is not a directory")) {
					t.Errorf("%q: %+v", args, r)
				}
				if same(); name != "" {
					m.same(want, 0, 1, 2, 3)
				}
			}
			if name != "" {
				m.shell("find n1/.volley -type l -delete")
				m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
				m.volley(exit.OK, []string{"verify"})
			}
		})
	}
}

// TestGroupSpecialFiles puts pipes, devices and links to endless ones in the places of files: no verb waits for them, or
// reads them.
func TestGroupSpecialFiles(t *testing.T) {
	t.Parallel()
	if os.Getenv(statusFile) == "" { // in one process of its own, whose memory is limited
		p, status := &program{Cmd: exec.Command(thisProgram(t), "-test.run", "^TestGroupSpecialFiles$")}, filepath.Join(t.TempDir(), "status")
		p.Stdout, p.Stderr = &p.stdout, &p.stderr
		p.Env = append(p.Environ(), "GOMEMLIMIT=512MiB", statusFile+"="+status)
		must(t, p.Start())
		r := p.end(t)
		if most := statusBytes(t, status, "VmHWM"); r.code != exit.OK || most > 1<<30 { // Maxrss begins with that of this process
			t.Errorf("%d MiB: %+v", most>>20, r)
		}
		return
	}
	kinds := map[string]string{"pipe": "mkfifo %s", "zero": "ln -s /dev/zero %s", "hole": "truncate -s 1T %s", "socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"%s\")'"}
	if os.Getuid() == 0 {
		kinds["device"] = "mknod %s c 1 5"
	}
	if _, err := exec.LookPath("python3"); err != nil {
		delete(kinds, "socket")
	}
	for kind, makes := range kinds {
		for _, name := range []string{"ckpt", ".volley/generation.1/node.json", ".volley/generation.1/manifest.json", ".volley/generation.1/record", ".volley/generation.1/record.0", ".volley/generation.1/parity", ".volley/generation.1", ".volley/pending.2", ".volley/lock"} {
			if kind == "hole" && (name == "ckpt" || name == ".volley/lock") {
				continue // that is a file, which is to be protected
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				m := misuse(t, 4, 20_000)
				m.protect()
				want := m.data()
				m.shell("rm -rf n1/" + name + "; " + fmt.Sprintf(makes, "n1/"+name))
				for _, args := range [][]string{{"verify"}, {"recover"}, {"recover", "--revert", "deleted"}} {
					if len(args) == 3 {
						m.shell("[ -d n1/" + name + " ] || rm -f n1/" + name) // recover may have put another there
					}
					r := mustEnd(t, append(args, m.dirs...)...)
					if r.code < exit.OK || r.code > exit.Wrong || len(args) == 3 && r.code != exit.OK {
						t.Fatalf("%v: %+v", args, r)
					}
				}
				m.same(want, 0, 1, 2, 3)
			})
		}
	}
}

// TestGroupMetadata loses a node and compares what comes back with what was there: owners, modes,
// extended attributes, hard links, holes and times.
func TestGroupMetadata(t *testing.T) {
	t.Parallel()
	m := misuse(t, 4, 20_000)
	dir := m.dirs[1]
	root := os.Getuid() == 0
	m.shell("ln n1/ckpt n1/again; ln n1/ckpt n1/sub/third; truncate -s 8M n1/hole; echo x >> n1/hole; echo prog > n1/tool; mkdir n1/set; ln -s nowhere n1/link; mkdir n1/private; chmod 700 n1/private")
	if root {
		m.shell("chown 1000:1001 n1/tool n1/set; chown -h 1002:1003 n1/link; chmod 4755 n1/tool; chmod 2775 n1/set")
	}
	attributes := unix.Setxattr(filepath.Join(dir, "tool"), "user.note", []byte{0, 1, 0xff}, 0) == nil &&
		unix.Setxattr(filepath.Join(dir, "tool"), "user.\xff", []byte("not UTF-8"), 0) == nil &&
		unix.Setxattr(filepath.Join(dir, "set"), "user.dir", []byte("d"), 0) == nil
	t.Logf("root %v, attributes %v", root, attributes)
	if attributes && root {
		m.must(unix.Setxattr(filepath.Join(dir, "tool"), "security.capability", []byte("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0))
	}
	m.shell("touch -d '2001-02-03 04:05:06.789' n1/tool n1/private; touch -h -d '2002-02-03' n1/link")
	m.protect()
	before, data := metaOf(t, dir), dataOf(t, dir)
	again := func(what string) {
		t.Helper()
		equal(t, dataOf(t, dir), data)
		equal(t, metaOf(t, dir), before)
		if m.volley(exit.OK, []string{"verify"}); t.Failed() {
			t.FailNow()
		}
	}
	for _, lost := range []string{"n1", "n1/ckpt", "n1/again n1/tool"} { // the first name, and another one
		m.shell("rm -r " + lost)
		m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
		again(lost)
	}
	damage(t, filepath.Join(dir, "ckpt"))
	m.volley(exit.OK, []string{"verify"}, `changed: "again": somebody has set its time back, or it has rotted`, "protect would make permanent: volley recover --revert changed ")
	m.volley(exit.OK, []string{"recover", "--revert", "changed,deleted"})
	again("other content in a file of three names")
	if root {
		m.shell("chown 1009 n1/tool")
		m.volley(exit.OK, []string{"verify", "-v"}, `other metadata: "tool"`)
	}
}

// TestGroupOwners recovers another user's files as a user who may not give them away:
// they do not let everybody act as that user.
func TestGroupOwners(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root makes files of other users")
	}
	m := misuse(t, 4, 20_000)
	m.shell("echo prog > n1/tool; chown 1000:1001 n1/tool; chmod 6755 n1/tool; chmod 600 n1/ckpt")
	m.protect()
	m.shell("rm -r n1")
	m.asNobody()
	m.shell("chmod 777 .")
	m.volley(exit.OK, []string{"recover", "--revert", "deleted"}, "more: owner not restored", "tool: setuid and setgid not restored")
	info, err := os.Lstat(filepath.Join(m.dirs[1], "tool"))
	m.must(err)
	if uid, _, _ := disk.Owner(info); uid != 65534 || info.Mode() != 0o755 {
		t.Errorf("uid %d, mode %v", uid, info.Mode())
	}
}

// TestGroupPrivate checks that nobody else can read what is in .volley, of which parity tells what is
// in other nodes' files; also where it could be read before.
func TestGroupPrivate(t *testing.T) {
	t.Parallel()
	m := misuse(t, 4, 20_000)
	m.shell("chmod 600 n?/ckpt")
	m.protect()
	private := func(opened bool) {
		t.Helper()
		for _, dir := range m.dirs {
			m.must(filepath.WalkDir(filepath.Join(dir, ".volley"), func(path string, d os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if err == nil && info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s has mode %v", path, info.Mode())
				}
				if opened && d.IsDir() && (strings.HasPrefix(d.Name(), "generation.") || d.Name() == "scrub") {
					return filepath.SkipDir // it hides what it has
				}
				return err
			}))
		}
	}
	private(false)
	for _, args := range [][]string{{"protect", "--tolerate", "2"}, {"recover"}} {
		m.shell("chmod -R a+rX n?/.volley")
		m.volley(exit.OK, []string{"verify"}, "node.1/.volley can be read by others")
		m.volley(exit.OK, args)
		private(true)
		if out := m.volley(exit.OK, []string{"verify"}); strings.Contains(out, "read by others") {
			t.Error(out)
		}
	}
}

// metaOf tells everything of the files of a node but what is in them.
func metaOf(t testing.TB, dir string) string {
	t.Helper()
	first := map[disk.FileID]string{}
	return inLines(described(t, dir, ".volley", func(path string, info os.FileInfo) string {
		uid, gid, _ := disk.Owner(info)
		id := disk.Linked(info)
		if first[id] == "" {
			first[id] = path
		}
		text := fmt.Sprintf("%v %d:%d %v sparse %v", info.Mode(), uid, gid, info.ModTime(), info.Size() > 1<<20 && disk.Sparse(info))
		if id != (disk.FileID{}) {
			text += " is " + first[id]
		}
		if info.Mode()&os.ModeSymlink == 0 {
			names, value := make([]byte, 4096), make([]byte, 4096)
			n, _ := unix.Listxattr(path, names)
			for _, attribute := range slices.Sorted(strings.SplitSeq(strings.TrimSuffix(string(names[:max(n, 0)]), "\x00"), "\x00")) {
				n, _ := unix.Getxattr(path, attribute, value)
				text += fmt.Sprintf(" %s=%x", attribute, value[:max(n, 0)])
			}
		}
		return text
	}))
}

// accessList is a list for a user beside the owner, who may read and write.
func accessList(uid uint32) []byte {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 7, math.MaxUint32}, {2, 7, uid}, {4, 5, math.MaxUint32}, {16, 7, math.MaxUint32}, {32, 5, math.MaxUint32}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}

// TestGroupDefaultACL recovers files that have no access list into a node whose directories give one to
// what is made in them: nobody gets at the files who did not before.
func TestGroupDefaultACL(t *testing.T) {
	t.Parallel()
	m := misuse(t, 4, 20_000)
	m.shell("mkdir n1/sub/d; chmod 660 n1/sub/b; chmod 770 n1/sub/d")
	m.protect()
	before := metaOf(t, m.dirs[1])
	for _, dir := range []string{"", "sub", ".volley"} {
		if err := unix.Setxattr(filepath.Join(m.dirs[1], dir), "system.posix_acl_default", accessList(1000), 0); err != nil {
			t.Skip(err)
		}
	}
	m.shell("rm -r n1/sub/*")
	m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
	for _, dir := range []string{"", "sub", ".volley"} {
		m.must(unix.Removexattr(filepath.Join(m.dirs[1], dir), "system.posix_acl_default"))
	}
	equal(t, metaOf(t, m.dirs[1]), before)
}

// TestGroupMovedIntoMeta has the user of a node move a directory in which others have files to names in
// .volley that verbs remove: those files stay.
func TestGroupMovedIntoMeta(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tmp-x", ".volley-x", "tmp-generation.1", "tmp-stage", "generation.1", "generation.7", "pending.2", "pending.9"} {
		for _, args := range [][]string{{"recover"}, {"protect", "--tolerate", "2"}} {
			m := misuse(t, 4, 20_000)
			m.protect()
			m.shell("mkdir -p n1/.volley/" + name + "/theirs; echo theirs > n1/.volley/" + name + "/theirs/file; rm n1/ckpt")
			r := m.run(args...)
			found, _ := filepath.Glob(filepath.Join(m.dirs[1], ".volley/*/theirs/file"))
			aside, _ := filepath.Glob(filepath.Join(m.dirs[1], ".volley/replaced/*/theirs/file"))
			if len(found)+len(aside) != 1 {
				t.Errorf("%s: %v has removed others' files: %+v", name, args, r)
			}
			m.shell("rm -rf n1/.volley/tmp-* n1/.volley/*/theirs n1/.volley/replaced")
			m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
			m.volley(exit.OK, []string{"verify"})
		}
	}
}

// TestGroupMounted has another file system below a node: what is lost there is named and copied out, all else comes back,
// and nothing else is left.
func TestGroupMounted(t *testing.T) {
	t.Parallel()
	m := misuse(t, 4, 20_000)
	m.shell("mkdir n1/a; echo in > n1/a/in; touch -d @1000000000 n1/a/in")
	if err := unix.Mount("none", filepath.Join(m.dirs[1], "a"), "tmpfs", 0, "mode=755"); err != nil {
		t.Skip(err)
	}
	unmount := func() { unix.Unmount(filepath.Join(m.dirs[1], "a"), unix.MNT_DETACH) }
	t.Cleanup(unmount)
	m.shell("echo in > n1/a/in; touch -d @1000000000 n1/a/in; ln n1/a/in n1/a/again; ln -s in n1/a/link; mkdir n1/a/d")
	m.protect()
	want := m.data()
	m.shell("rm -r n1/a/* n1/ckpt n1/sub")
	m.volley(exit.Wrong, []string{"recover", "--revert", "deleted"}, "/a/in cannot be made: it is on another file system", "recovered node 1: 3 files")
	m.shell("[ -z \"$(ls -A n1/a; ls -A n1/.volley | grep tmp)\" ]")
	m.volley(exit.OK, []string{"recover", "--file", "/a/", "--to", filepath.Join(m.base, "out")})
	m.shell("[ out/node.1/a/in -ef out/node.1/a/again ]; [ -L out/node.1/a/link ]; [ -d out/node.1/a/d ]")
	unmount()
	m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
	m.volley(exit.OK, []string{"verify"})
	m.same(want, 0, 1, 2, 3)
}

// TestGroupMountedTwice has directories that are one, or lie in each other, by mounts that their paths do not tell of.
func TestGroupMountedTwice(t *testing.T) {
	t.Parallel()
	m := misuse(t, 4, 1000)
	m.shell("mkdir -p again part n0/sub/in n2/at other")
	at := func(name string) string { return filepath.Join(m.base, name) }
	for _, x := range []struct{ from, to string }{{"node.1", "again"}, {"node.0/sub", "part"}, {"node.3", "node.2/at"}} {
		if err := unix.Mount(at(x.from), at(x.to), "", unix.MS_BIND, ""); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { unix.Unmount(at(x.to), unix.MNT_DETACH) })
	}
	m.shell("mkdir n1/below")
	for _, x := range []struct {
		want string
		dirs []string
	}{
		{"node.1 and again are the same directory", []string{"node.1", "again", "other"}},
		{"again/below lies in node.1", []string{"other", "again/below", "node.1"}},
		{"part is node.0/sub, too", []string{"node.0", "other", "part"}},
		{"node.3 is node.2/at, too", []string{"other", "node.2", "node.3"}},
	} {
		args := []string{"protect", "--tolerate", "1"}
		for _, dir := range x.dirs {
			args = append(args, at(dir))
		}
		r := volleyRun(args...)
		if text := strings.ReplaceAll(r.stderr, m.base+"/", ""); r.code != exit.Usage || !strings.Contains(text, x.want) {
			t.Errorf("%q: %+v", x.dirs, r)
		}
	}
}

// TestGroupDeep has directories in directories without an end: protect names them, and the other verbs do their work.
func TestGroupDeep(t *testing.T) {
	t.Parallel()
	m := misuse(t, 4, 20_000)
	m.protect()
	m.shell("cd n1; for i in $(seq 40); do mkdir " + strings.Repeat("d", 200) + "; cd -P " + strings.Repeat("d", 200) + "; done")
	m.volley(exit.Usage, []string{"protect", "--tolerate", "2"}, "has more than 4096 bytes below the node: move it up")
	m.volley(exit.OK, []string{"verify"})
	m.shell("rm n1/ckpt")
	m.volley(exit.OK, []string{"recover", "--revert", "deleted"})
}
