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

	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/testprogram"
)

// snapshotRecipe is the script of docs/operations.md that protects snapshots.
func snapshotRecipe(t *testing.T) string {
	t.Helper()
	_, text, _ := strings.Cut(string(readFile(t, "../../docs/operations.md")), "## Snapshots and dumps")
	_, text, _ = strings.Cut(text, "```text\n")
	text, _, _ = strings.Cut(text, "```")
	return text
}

// standIn is the variable with the folder of what stands in for snapshots of the kernel: each is a copy.
const standIn = "VOLLEY_TEST_STANDIN"

func init() {
	for _, name := range []string{"btrfs", "lvcreate", "mount", "mountpoint", "umount", "zfs"} {
		played[name] = func(args []string) int { return standsIn(name, args) }
	}
}

// standsIn plays a program that needs a kernel's help, of which it knows the calls that volley-snapshot makes.
func standsIn(name string, args []string) int {
	in := func(parts ...string) string { return filepath.Join(append([]string{os.Getenv(standIn)}, parts...)...) }
	does := func(script string, parts ...string) int {
		return goesOn(exec.Command("sh", append([]string{"-euc", script, "sh"}, parts...)...))
	}
	line, last := strings.Join(args, " "), args[len(args)-1]
	mounted := in("lv", filepath.Base(last)+".mounted")
	switch {
	case name == "btrfs" && strings.HasPrefix(line, "subvolume snapshot -r "):
		return does(`cp -a "$1" "$2"`, args[3], last)
	case name == "btrfs" && strings.HasPrefix(line, "subvolume delete "):
		return does(`rm -rf "$1"`, last)
	case name == "lvcreate" && strings.HasPrefix(line, "--quiet --snapshot --extents 20%ORIGIN --name "):
		return does(`mkdir -p "$1" && cp -a "$2" "$1/$3"`, in("lv"), in(last), args[5])
	case name == "mount" && strings.HasPrefix(line, "-o ro,nouuid "):
		from := in("lv", filepath.Base(args[2]))
		return does(`cp -a "$1/." "$2" && touch "$1.mounted"`, from, last)
	case name == "mountpoint":
		return does(`[ -e "$1" ]`, mounted)
	case name == "umount":
		return does(`find "$1" -mindepth 1 -delete && rm "$2"`, last, mounted)
	case name == "zfs" && args[0] == "get" && strings.HasPrefix(line, "get -H -o value mountpoint "):
		return does(`echo "$1"`, in(last))
	}
	of, snapshot, _ := strings.Cut(last, "@")
	volume := in(of, ".zfs/snapshot", snapshot)
	switch {
	case name == "zfs" && args[0] == "snapshot":
		return does(`mkdir -p "$2" && find "$1" -mindepth 1 -maxdepth 1 ! -name .zfs -exec cp -a '{}' "$2" ';' && touch -r "$1" "$2"`, in(of), volume)
	case name == "zfs" && args[0] == "destroy":
		return does(`rm -r "$1"`, volume)
	}
	return 2
}

// A snapshotCase is nodes whose snapshots are protected: the hosts of the recipe are folders of base, 0, 1 and 2.
type snapshotCase struct {
	kind   string // as the script takes it, with the source of root@HOST
	base   string
	group  string // file
	recipe string // file
	env    []string
	source func(n int) string // the directory with the files of a node
	dir    func(n int) string // the member's
}

// test protects snapshots, which rotate, and looks that every verb reads the one that is protected.
func (c *snapshotCase) test(t *testing.T) {
	text := fmt.Sprintf("tolerate: 1\nmeta: %s/meta\nmembers:\n", c.base)
	for n := range 3 {
		text += fmt.Sprintf("  - dir: %s\n", c.dir(n))
		for i := range 20 {
			rewrite(t, filepath.Join(c.source(n), fmt.Sprint("f", i)), bytes.Repeat([]byte{byte(n), byte(i)}, 500))
		}
	}
	c.group = filepath.Join(c.base, "group.yaml")
	rewrite(t, c.group, []byte(text))
	c.recipe = filepath.Join(c.base, "recipe")
	rewrite(t, c.recipe, []byte(strings.NewReplacer("root@a root@b root@c", "0 1 2", "/etc/volley/group.yaml", c.group,
		"/srv/volley/data", c.base+"/node.$host", "btrfs /srv/data", c.kind).Replace(snapshotRecipe(t))))
	c.protect(t, exit.OK, "")
	c.rotated(t)
	rewrite(t, filepath.Join(c.source(1), "f0"), []byte("new"))
	c.whole(t)
	c.protect(t, exit.OK, "")
	c.whole(t)
	if text := string(readFile(t, c.dir(1), "f0")); text != "new" {
		t.Errorf("f0 has %q", text)
	}

	// Protect refuses: the snapshot that is protected comes back.
	shell(t, `mkdir "$2" && cp -a "$1"/f* "$2" && rm "$1"/f*`, c.source(2), c.base+"/aside")
	c.protect(t, exit.Failed, "looks like an accident")
	c.verbs(t)
	shell(t, `cp -a "$2"/* "$1"`, c.source(2), c.base+"/aside")

	// Two runs that ended after their snapshots: what is protected stays until the next one is.
	protected, err := os.Readlink(c.dir(0))
	must(t, err)
	step := func(name string) {
		c.script(t, exit.OK, "", "-c", fmt.Sprintf("host=0; volley-snapshot %s %s %s", name, c.dir(0), c.kind))
	}
	for range 2 {
		step("take")
	}
	if now, err := os.Readlink(c.dir(0)); err != nil || now == protected {
		t.Fatalf("%s, %v: want a new snapshot", now, err)
	}
	step("back")
	if now, err := os.Readlink(c.dir(0)); err != nil || now != protected {
		t.Fatalf("%s, %v: want %s", now, err, protected)
	}
	c.verbs(t)
	c.protect(t, exit.OK, "")
	c.whole(t)

	// A node is lost: its files come back into its directory, and from there to where they were.
	now, err := filepath.EvalSymlinks(c.dir(1))
	must(t, err)
	want := dataOf(t, now)
	removeAll(t, c.dir(1))
	c.run(t, exit.OK, "", "recover")
	equal(t, dataOf(t, c.dir(1)), want)
	c.protect(t, exit.Failed, "is no symbolic link: move it away")
	removeAll(t, c.dir(1))
	c.protect(t, exit.OK, "")
	c.whole(t)
}

// protect runs the recipe.
func (c *snapshotCase) protect(t *testing.T, code int, want string) {
	t.Helper()
	c.script(t, code, want, c.recipe)
}

// script runs sh.
func (c *snapshotCase) script(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	x := exec.Command("sh", args...)
	x.Env = forCommands(c.env...)
	out, err := x.CombinedOutput()
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) || x.ProcessState.ExitCode() != code || !strings.Contains(string(out), want) {
		t.Fatalf("%v, %s: want exit code %d and %q", err, out, code, want)
	}
}

func (c *snapshotCase) run(t *testing.T, code int, want string, verb ...string) {
	t.Helper()
	s := session.New()
	s.Environ = append(s.Environ, c.env...)
	r := resultIn(t.Context(), s, append(verb, "--group", c.group)...)
	if r.code != code || !strings.Contains(r.stdout+r.stderr, want) || strings.Contains(r.stdout, "changed") && verb[0] == "verify" {
		t.Fatalf("%q: %+v: want exit code %d and %q", verb, r, code, want)
	}
}

// rotated looks that each node is one snapshot.
func (c *snapshotCase) rotated(t *testing.T) {
	t.Helper()
	for n := range 3 {
		list, err := filepath.Glob(c.dir(n) + ".snapshots/*")
		if now, err2 := os.Readlink(c.dir(n)); err != nil || err2 != nil || len(list) != 1 || now != list[0] {
			t.Fatalf("node %d is %s of %v, %v, %v: want one snapshot", n, now, list, err, err2)
		}
	}
}

func (c *snapshotCase) whole(t *testing.T) {
	t.Helper()
	c.rotated(t)
	c.verbs(t)
}

// verbs has all verbs find the nodes whole.
func (c *snapshotCase) verbs(t *testing.T) {
	t.Helper()
	c.run(t, exit.OK, "", "verify")
	c.run(t, exit.OK, "", "status")
	c.run(t, exit.OK, "all nodes are whole", "recover")
}

// snapshotPrograms fills the folder of the programs that the recipe runs, and returns the environment that has them.
func snapshotPrograms(t *testing.T, base string) []string {
	t.Helper()
	scripts, err := filepath.Abs("../../deploy/snapshots")
	must(t, err)
	must(t, os.Mkdir(filepath.Join(base, "programs"), 0o755))
	must(t, testprogram.Write(filepath.Join(base, "programs/ssh"), []byte("#!/bin/sh\nexec sh -c \"$3\"\n")))
	must(t, testprogram.Write(filepath.Join(base, "programs/volley"), []byte("#!/bin/sh\nexec '"+thisProgram(t)+"' \"$@\"\n")))
	return []string{"PATH=" + base + "/programs:" + scripts + ":" + os.Getenv("PATH"), standIn + "=" + base}
}

// TestSnapshotCommands protects snapshots by the recipe, with copies in place of snapshots.
func TestSnapshotCommands(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"copy", "dump", "btrfs", "lvm", "zfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			c := &snapshotCase{base: base, env: snapshotPrograms(t, base)}
			shell(t, `chmod 700 "$1" && mkdir -p "$1"/source/0 "$1"/source/1 "$1"/source/2`, base)
			for _, name := range []string{"btrfs", "lvcreate", "mount", "mountpoint", "umount", "zfs"} {
				must(t, os.Symlink(thisProgram(t), filepath.Join(base, "programs", name)))
			}
			c.source = func(n int) string { return filepath.Join(base, "source", fmt.Sprint(n)) }
			c.dir = func(n int) string { return filepath.Join(base, fmt.Sprint("node.", n)) }
			c.kind = map[string]string{"copy": "copy " + base + "/source/$host", "dump": "dump 'cp -a " + base + "/source/$host/. .'",
				"btrfs": "btrfs " + base + "/source/$host", "lvm": "lvm source/$host nouuid", "zfs": "zfs source/$host"}[kind]
			c.test(t)
		})
	}
}

// TestSnapshotDisks is TestSnapshotCommands with snapshots of btrfs and LVM on loop devices.
func TestSnapshotDisks(t *testing.T) {
	if !*hosts {
		t.Skip("without -hosts")
	}
	for _, kind := range []string{"btrfs", "lvm"} {
		t.Run(kind, func(t *testing.T) {
			programs := map[string][]string{"btrfs": {"mkfs.btrfs", "btrfs"}, "lvm": {"mkfs.ext4", "lvcreate"}}[kind]
			for _, name := range append(programs, "losetup") {
				if _, err := exec.LookPath(name); err != nil {
					t.Skip(err)
				}
			}
			base := t.TempDir()
			may := func(what, script string, args ...string) string {
				t.Helper()
				out, err := exec.Command("bash", append([]string{"-c", "set -eu; " + script, "bash"}, args...)...).CombinedOutput()
				if err != nil {
					t.Skipf("%s is not permitted here: %v: %s", what, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			device := may("a loop device", `truncate -s 512M "$1/disk"; losetup -f --show "$1/disk"`, base)
			t.Cleanup(func() { exec.Command("losetup", "-d", device).Run() })
			c := &snapshotCase{base: base + "/at", env: snapshotPrograms(t, base), dir: func(n int) string { return fmt.Sprintf("%s/at/node.%d", base, n) }}
			shell(t, `mkdir "$1/at"; chmod 700 "$1"`, base)
			switch kind {
			case "btrfs":
				may("a file system of btrfs", `mkfs.btrfs -q "$1"; mount "$1" "$2/at"`, device, base)
				t.Cleanup(func() { shell(t, `umount "$1/at"`, base) })
				shell(t, `chmod 700 "$1/at"; for n in 0 1 2; do btrfs -q subvolume create "$1/at/s$n"; done`, base)
				c.source = func(n int) string { return fmt.Sprintf("%s/at/s%d", base, n) }
				c.kind = "btrfs " + base + "/at/s$host"
			case "lvm":
				group := fmt.Sprint("volleytest", os.Getpid())
				may("the device mapper", `dmsetup version; vgcreate -q "$2" "$1"; for n in 0 1 2; do lvcreate -q -L 64M -n "s$n" "$2"; mkfs.ext4 -q "/dev/$2/s$n"; mkdir "$3/s$n"; mount "/dev/$2/s$n" "$3/s$n"; done`, device, group, base)
				t.Cleanup(func() {
					shell(t, `for x in "$2"/at/*.snapshots/* "$2"/s?; do umount "$x"; done; vgremove -q -f "$1"`, group, base)
				})
				c.source = func(n int) string { return fmt.Sprintf("%s/s%d", base, n) }
				c.kind = "lvm " + group + "/s$host"
			}
			c.test(t)
		})
	}
}

// TestSnapshotKeepsAll has a node whose link is gone after its snapshot was taken: keep removes none.
func TestSnapshotKeepsAll(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	lay(t, filepath.Join(base, "source/file"), []byte("text"), 0o644)
	shell(t, `s=../../deploy/snapshots/volley-snapshot; "$s" take "$1/n" copy "$1/source"; rm "$1/n"; ! "$s" keep "$1/n" copy "$1/source"`, base)
	if kept, _ := filepath.Glob(filepath.Join(base, "n.snapshots/volley-*/file")); len(kept) != 1 {
		t.Errorf("kept %q", kept)
	}
}
