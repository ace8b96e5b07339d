package group_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"volley/group"
	"volley/group/internal/store"
	"volley/internal/disk"
	"volley/internal/testprogram"
)

const aclAccess, aclDefault = "system.posix_acl_access", "system.posix_acl_default"

// acl lets user 1000 do what the owner may.
const acl = "\x02\x00\x00\x00" + "\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x07\x00\xe8\x03\x00\x00" +
	"\x04\x00\x04\x00\xff\xff\xff\xff" + "\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"

// metadata is a listing with owners, extended attributes, hard links and holes.
func metadata(t *testing.T, dir string) string {
	t.Helper()
	text := filesBelow(t, dir)
	first := map[disk.FileID]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		if d.Name() == ".volley" {
			return fs.SkipDir
		}
		info, err := d.Info()
		must(t, err)
		rel, err := filepath.Rel(dir, path)
		must(t, err)
		uid, gid, _ := disk.Owner(info)
		id := disk.Linked(info)
		if first[id] == "" {
			first[id] = rel
		}
		text += fmt.Sprintf("%q is %d:%d's, sparse %v", rel, uid, gid, disk.Sparse(info))
		if id != (disk.FileID{}) {
			text += fmt.Sprintf(", the file %q", first[id])
		}
		for _, attribute := range []string{"user.note", "trusted.note", "security.capability", aclAccess, aclDefault} {
			value := make([]byte, 100)
			if n, err := unix.Lgetxattr(path, attribute, value); err == nil {
				text += fmt.Sprintf(", %q=%x", attribute, value[:n])
			}
		}
		text += "\n"
		return nil
	}))
	return text
}

// TestPythonMetadata has docs/recover.py bring back owners, modes, extended attributes, hard links
// and holes, and, as a user who may not give files away, say so and leave out what would let
// everybody act as their owners.
func TestPythonMetadata(t *testing.T) {
	t.Parallel()
	recovery(t)
	root := os.Getuid() == 0
	dirs := trees(t, 3, 5, 10_000, 8)
	set := filepath.Join(dirs[0], "set")
	for _, name := range []string{"sub/again", "again"} {
		must(t, os.Link(filepath.Join(dirs[0], "plain0"), filepath.Join(dirs[0], name)))
	}
	must(t, os.WriteFile(filepath.Join(dirs[0], "hole"), []byte("start"), 0o644))
	must(t, os.Truncate(filepath.Join(dirs[0], "hole"), 300_000))
	must(t, os.WriteFile(set, []byte("program"), 0o755))
	if root {
		must(t, os.Chown(set, 1000, 1001))
		must(t, os.Lchown(filepath.Join(dirs[0], "link"), 1002, 1003))
		unix.Lsetxattr(filepath.Join(dirs[0], "link"), "trusted.note", []byte("of a link"), 0) // where the system lets root
	}
	must(t, os.Chmod(set, 0o755|fs.ModeSetuid|fs.ModeSetgid))
	attributes := unix.Setxattr(set, "user.note", []byte{0, 1, 0xff}, 0) == nil
	lists := unix.Setxattr(filepath.Join(dirs[0], "plain0"), aclAccess, []byte(acl), 0) == nil && unix.Setxattr(filepath.Join(dirs[0], "sub"), aclDefault, []byte(acl), 0) == nil
	capability := root && unix.Setxattr(set, "security.capability", []byte("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0) == nil
	t.Logf("root %v, attributes %v, ACLs %v, capability %v", root, attributes, lists, capability)
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
	must(t, err)
	left := []string{filepath.Join(t.TempDir(), "lost"), dirs[1], dirs[2]}
	above := t.TempDir()
	if lists {
		must(t, unix.Setxattr(above, aclDefault, []byte(acl), 0)) // which is not for what comes back
	}
	out := filepath.Join(above, "out")
	if text, failed := python(t, out, left); failed || text != "" {
		t.Fatal(text)
	}
	if want, got := metadata(t, dirs[0]), metadata(t, filepath.Join(out, "0")); want != got {
		t.Errorf("node 0 was\n%s\nand is\n%s", want, got)
	}
	left = []string{dirs[0], left[0], dirs[2]}
	if text, failed := python(t, filepath.Join(t.TempDir(), "out"), left); failed || text != "" {
		t.Errorf("a node with hard links is read: %s", text)
	}
	if !root {
		return
	}
	nobody := filepath.Join(t.TempDir(), "nobody")
	must(t, os.Mkdir(nobody, 0o755))
	for n := range dirs[1:] {
		must(t, exec.Command("cp", "-a", dirs[n+1], nobody).Run())
	}
	must(t, exec.Command("chown", "-R", "65534:65534", nobody).Run())
	must(t, os.Chmod(filepath.Dir(filepath.Dir(nobody)), 0o755))
	// Nobody may not be able to read Python itself, which has its modules by then.
	_, text, failed := testprogram.Python(t, fmt.Sprintf("import os\nos.chdir(%q)\nos.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n%s", nobody, recovery(t)), "",
		"out", "lost", "node.1", "node.2")
	if failed || !strings.Contains(text, "owner not restored") || !strings.Contains(text, "setuid and setgid not restored") ||
		capability != strings.Contains(text, "attribute 'security.capability' not restored") || strings.Count(text, "owner") != 1 {
		t.Errorf("as nobody: %s", text)
	}
	info, err := os.Stat(filepath.Join(nobody, "out", "0", "set"))
	must(t, err)
	if uid, _, _ := disk.Owner(info); uid != 65534 || info.Mode() != 0o755 {
		t.Errorf("as nobody: uid %d, mode %v", uid, info.Mode())
	}
}

// forge changes the record of node 0, stores it at all nodes, and makes manifests that go with it.
func forge(t *testing.T, dirs []string, from, to string) {
	t.Helper()
	stored, err := os.ReadFile(filepath.Join(dirs[0], ".volley/generation.1/record"))
	must(t, err)
	unpacked, err := store.Unpack(stored)
	must(t, err)
	text, err := io.ReadAll(unpacked)
	must(t, err)
	changed := bytes.Replace(text, []byte(from), []byte(to), 1)
	if bytes.Equal(text, changed) {
		t.Fatalf("the record has no %s", from)
	}
	forged := store.Pack(changed)
	was, is := disk.Sum(stored), disk.Sum(forged)
	for i, dir := range dirs { // where node 0 is lost, others have what looks like its record
		must(t, os.WriteFile(filepath.Join(dir, ".volley", []string{"generation.1/record", "generation.1/record.0x"}[min(i, 1)]), forged, 0o600))
		path := filepath.Join(dir, ".volley", "generation.1/manifest.json")
		text, err := os.ReadFile(path)
		must(t, err)
		line, _, _ := strings.Cut(strings.Replace(string(text), was, is, 1), "\n")
		must(t, os.WriteFile(path, fmt.Appendf(nil, "%s\n{\"sha256\":%q}\n", line, disk.Sum([]byte(line))), 0o600))
	}
}

// TestPythonForged has records name what lies outside of a node's directory, and one node show a
// manifest of its own: docs/recover.py writes nothing, and says why.
func TestPythonForged(t *testing.T) {
	t.Parallel()
	recovery(t)
	protected := func() []string {
		dirs := trees(t, 3, 7, 1000, 9)
		must(t, os.Link(filepath.Join(dirs[0], "plain0"), filepath.Join(dirs[0], "ylink")))
		_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
		must(t, err)
		return dirs
	}
	for from, to := range map[string]string{
		`"path":"plain0"`:     `"path":"../../evil"`,
		`"path":"ylink"`:      `"path":"/dev/shm/../../evil"`,
		`"target":"plain0"`:   `"target":"../../../../../../etc/passwd"`,
		`"path":"sub/x0"`:     `"path":"link/x0"`,
		`"path":"ünïcode0"`:   `"path":".volley/x"`,
		`"path":"new\nline0"`: `"path":"a\u0000b"`,
	} {
		dirs := protected()
		forge(t, dirs, from, to)
		base := t.TempDir()
		text, failed := python(t, filepath.Join(base, "deep", "out"), []string{filepath.Join(base, "lost"), dirs[1], dirs[2]})
		if !failed || !strings.Contains(text, "not below the node's directory") {
			t.Errorf("%s: %s", to, text)
		}
		if list, err := os.ReadDir(base); err != nil || len(list) > 0 {
			t.Errorf("%s: there is %v", to, list)
		}
	}
	// With R = 2 one node of three is enough, but not against another.
	dirs := trees(t, 3, 7, 1000, 10)
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 2})
	must(t, err)
	meta := filepath.Join(dirs[1], ".volley")
	text, err := os.ReadFile(filepath.Join(meta, "generation.1/manifest.json"))
	must(t, err)
	line, _, _ := strings.Cut(strings.Replace(string(text), `"generation":1,`, `"generation":5,`, 1), "\n")
	must(t, os.Mkdir(filepath.Join(meta, "generation.5"), 0o700))
	must(t, os.WriteFile(filepath.Join(meta, "generation.5/manifest.json"), fmt.Appendf(nil, "%s\n{\"sha256\":%q}\n", line, disk.Sum([]byte(line))), 0o600))
	must(t, os.Remove(filepath.Join(meta, "generation.1/manifest.json")))
	out := filepath.Join(t.TempDir(), "out")
	if text, failed := python(t, out, []string{out + ".lost", dirs[1], dirs[2]}); !failed || !strings.Contains(text, "cannot tell which manifest counts") {
		t.Errorf("one against one: %s", text)
	}
}
