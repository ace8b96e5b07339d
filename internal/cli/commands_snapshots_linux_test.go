package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/cli/session"
	"volley/internal/exit"
)

// snapshotScript returns what deploy has for pre and post.
func snapshotScript(t *testing.T) string {
	t.Helper()
	name, err := filepath.Abs("../../deploy/snapshots/volley-snapshot")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// standIns makes programs in place of those that need a kernel's help: what they take as a snapshot is a copy.
const standIns = `cd "$1"
cat >btrfs <<'E'
#!/bin/sh
case "$1 $2" in
"subvolume snapshot") [ "$3" = -r ] && cp -a "$4" "$5" ;;
"subvolume delete") rm -rf "$3" ;;
*) exit 2 ;;
esac
E
cat >lvcreate <<'E'
#!/bin/sh
[ "$1 $2 $3 $4 $5" = "--quiet --snapshot --extents 20%ORIGIN --name" ] || exit 2
mkdir -p "$STANDIN/lv" && cp -a "$STANDIN/$7" "$STANDIN/lv/$6"
E
cat >mount <<'E'
#!/bin/sh
[ "$1 $2" = "-o ro,nouuid" ] || exit 2
cp -a "$STANDIN/lv/${3##*/}/." "$4" && touch "$STANDIN/lv/${3##*/}.mounted"
E
cat >mountpoint <<'E'
#!/bin/sh
[ -e "$STANDIN/lv/${2##*/}.mounted" ]
E
cat >umount <<'E'
#!/bin/sh
find "$1" -mindepth 1 -delete && rm "$STANDIN/lv/${1##*/}.mounted"
E
cat >zfs <<'E'
#!/bin/sh
at=$STANDIN/${2%@*} name=${2#*@}
case $1 in
snapshot) mkdir -p "$at/.zfs/snapshot/$name" && find "$at" -mindepth 1 -maxdepth 1 ! -name .zfs -exec cp -a '{}' "$at/.zfs/snapshot/$name" ';' && touch -r "$at" "$at/.zfs/snapshot/$name" ;;
destroy) rm -r "$at/.zfs/snapshot/$name" ;;
get) [ "$*" = "get -H -o value mountpoint $6" ] && echo "$STANDIN/$6" ;;
*) exit 2 ;;
esac
E
chmod +x *
`

// A snapshotCase is nodes whose snapshots are protected.
type snapshotCase struct {
	kind     string
	flags    string // of the script, behind the source
	base     string
	env      []string
	source   func(n int) string // the directory with the files of a node
	argument func(n int) string // what the script calls that
	dir      func(n int) string // the member's
}

// test protects snapshots, which rotate, and looks that every verb reads the one that is protected.
func (c *snapshotCase) test(t *testing.T) {
	const nodes, files = 3, 20
	text := fmt.Sprintf("tolerate: 1\nmeta: %s/meta\nmembers:\n", c.base)
	var dirs []string
	for n := range nodes {
		command := fmt.Sprintf("%s %s '%s' %s", snapshotScript(t), c.kind, c.argument(n), c.flags)
		dirs = append(dirs, c.dir(n))
		text += fmt.Sprintf("  - dir: %s\n    pre: |-\n      %s\n    post: |-\n      %s\n", c.dir(n), command, command)
		for i := range files {
			rewrite(t, filepath.Join(c.source(n), fmt.Sprint("f", i)), bytes.Repeat([]byte{byte(n), byte(i)}, 500))
		}
	}
	group := filepath.Join(c.base, "group.yaml")
	rewrite(t, group, []byte(text))
	run := func(code int, verb ...string) result {
		t.Helper()
		s := session.New()
		s.Environ = append(s.Environ, c.env...)
		r := resultIn(t.Context(), s, append(verb, "--group", group)...)
		if r.code != code {
			t.Fatalf("%q: %+v: want exit code %d", verb, r, code)
		}
		return r
	}
	rotated := func(what string) {
		t.Helper()
		for n := range nodes {
			list, err := filepath.Glob(c.dir(n) + ".snapshots/*")
			if err != nil || len(list) != 1 {
				t.Fatalf("%s: node %d has %v, %v: want one snapshot", what, n, list, err)
			}
			if now, err := os.Readlink(c.dir(n)); err != nil || now != list[0] {
				t.Fatalf("%s: node %d is %s, %v: want %s", what, n, now, err, list[0])
			}
		}
	}
	whole := func(what string) {
		t.Helper()
		if r := run(exit.OK, "verify"); strings.Contains(r.stdout, "changed") {
			t.Errorf("%s: %+v", what, r)
		}
		run(exit.OK, "status")
		if r := run(exit.OK, "recover"); !strings.Contains(r.stdout, "all nodes are whole") {
			t.Errorf("%s: %+v", what, r)
		}
	}
	run(exit.OK, "protect")
	rotated("protected")
	rewrite(t, filepath.Join(c.source(1), "f0"), []byte("new"))
	whole("with newer files in the source")
	run(exit.OK, "protect")
	rotated("protected again")
	whole("protected again")
	if text := string(readFile(t, filepath.Join(dirs[1], "f0"))); text != "new" {
		t.Errorf("f0 has %q", text)
	}

	// Protect refuses: the snapshot that is protected comes back.
	shell(t, `mkdir "$2" && cp -a "$1"/f* "$2" && rm "$1"/f*`, c.source(2), c.base+"/aside")
	run(exit.Usage, "protect")
	rotated("refused")
	whole("refused")
	shell(t, `cp -a "$2"/* "$1"`, c.source(2), c.base+"/aside")

	// A run that ends without post, and one that does not know: both snapshots stay until the next one is protected.
	for _, result := range []string{"", "unknown"} {
		line := []string{c.kind, c.argument(0)}
		x := exec.Command(snapshotScript(t), append(line, strings.Fields(c.flags)...)...)
		x.Env = append(append(os.Environ(), c.env...), "VOLLEY_DIR="+dirs[0], "VOLLEY_COMMAND=pre")
		if result != "" {
			x.Env = append(x.Env, "VOLLEY_COMMAND=post", "VOLLEY_RESULT="+result)
		}
		if out, err := x.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if list, _ := filepath.Glob(dirs[0] + ".snapshots/volley-*"); len(list) != 2 {
			t.Fatalf("%v: want two", list)
		}
	}
	run(exit.OK, "protect")
	rotated("protected after a run without end")

	// A node is lost: its files come back into its directory, and from there to where they were.
	now, err := filepath.EvalSymlinks(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, []string{now})
	removeAll(t, dirs[1])
	run(exit.OK, "recover")
	if got := contents(t, dirs[1:2]); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("recovered %q, want %q", got, want)
	}
	if r := run(exit.Failed, "protect"); !strings.Contains(r.stderr, "is no symbolic link: move it away") {
		t.Errorf("%+v", r)
	}
	removeAll(t, dirs[1])
	run(exit.OK, "protect")
	rotated("protected after a loss")
	whole("protected after a loss")
}

// TestSnapshotCommands protects snapshots by what deploy has for pre and post, with copies in place of snapshots.
func TestSnapshotCommands(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"copy", "dump", "btrfs", "lvm", "zfs"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			shell(t, `chmod 700 "$1" && mkdir -p "$1/programs" "$1"/source/0 "$1"/source/1 "$1"/source/2`, base)
			shell(t, standIns, base+"/programs")
			c := &snapshotCase{kind: kind, base: base, env: []string{"PATH=" + base + "/programs:" + os.Getenv("PATH"), "STANDIN=" + base}}
			c.source = func(n int) string { return filepath.Join(base, "source", fmt.Sprint(n)) }
			c.dir = func(n int) string { return filepath.Join(base, fmt.Sprint("node.", n)) }
			switch c.argument = c.source; kind {
			case "lvm":
				c.flags = "nouuid"
				fallthrough
			case "zfs":
				c.argument = func(n int) string { return fmt.Sprint("source/", n) }
			case "dump":
				c.argument = func(n int) string { return "cp -a " + c.source(n) + "/. ." }
			}
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
			c := &snapshotCase{kind: kind, base: base + "/at", dir: func(n int) string { return fmt.Sprintf("%s/at/node.%d", base, n) }}
			shell(t, `mkdir "$1/at"; chmod 700 "$1"`, base)
			switch kind {
			case "btrfs":
				may("a file system of btrfs", `mkfs.btrfs -q "$1"; mount "$1" "$2/at"`, device, base)
				t.Cleanup(func() { shell(t, `umount "$1/at"`, base) })
				shell(t, `chmod 700 "$1/at"; for n in 0 1 2; do btrfs -q subvolume create "$1/at/s$n"; done`, base)
				c.source = func(n int) string { return fmt.Sprintf("%s/at/s%d", base, n) }
				c.argument = c.source
			case "lvm":
				group := fmt.Sprint("volleytest", os.Getpid())
				may("the device mapper", `dmsetup version; vgcreate -q "$2" "$1"; for n in 0 1 2; do lvcreate -q -L 64M -n "s$n" "$2"; mkfs.ext4 -q "/dev/$2/s$n"; mkdir "$3/s$n"; mount "/dev/$2/s$n" "$3/s$n"; done`, device, group, base)
				t.Cleanup(func() {
					shell(t, `for x in "$2"/at/*.snapshots/* "$2"/s?; do umount "$x"; done; vgremove -q -f "$1"`, group, base)
				})
				c.source = func(n int) string { return fmt.Sprintf("%s/s%d", base, n) }
				c.argument = func(n int) string { return fmt.Sprintf("%s/s%d", group, n) }
			}
			c.test(t)
		})
	}
}
