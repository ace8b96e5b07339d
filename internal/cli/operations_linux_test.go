package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/internal/exit"
)

// A farm is hosts like machines of their own: each has a network namespace, an sshd, a host name, and a tree of files in
// which only the programs of this machine are shared. /data is a disk of its own, in memory. They know each other's names.
type farm struct {
	*lab
	names []string       // of the hosts; the last one is the operator's machine
	pids  map[string]int // of a process that is in all namespaces of a host
	sshd  map[string]*exec.Cmd
}

// The script that makes the tree of a host and starts its sshd: $1 is the tree, $2 the name, $3 the folder of the keys.
const hostScript = `set -e
cd "$1"
for name in bin sbin lib lib32 lib64 libx32; do
	if [ -L /$name ]; then cp -P /$name .; elif [ -d /$name ]; then mkdir $name; mount --rbind /$name $name; fi
done
mkdir -p usr dev proc sys etc var/empty var/lib/volley root/.ssh run/sshd data tmp
for name in usr dev proc sys; do mount --rbind /$name $name; done
cat /proc/sys/kernel/random/uuid >boot && mount --bind boot proc/sys/kernel/random/boot_id
mkdir -p local/bin && mount --bind local/bin usr/local/bin
mount -t tmpfs -o size=64m data data
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.* /etc/alternatives etc/
echo 'root:*:1::::::' >etc/shadow # a password that nobody has, where that of this machine may be locked
cp "$3/hosts" etc/hosts
chmod 700 root root/.ssh && cp "$3/user.pub" root/.ssh/authorized_keys
hostname "$2"
exec chroot . /usr/sbin/sshd -D -f none -h /etc/host -o 'Subsystem=sftp internal-sftp' -o UsePAM=no -o PidFile=none -o StrictModes=no`

// start gives a host its tree and its sshd.
func (f *farm) start(t *testing.T, name string) {
	t.Helper()
	base := filepath.Dir(f.volley)
	tree, k := filepath.Join(base, name), slices.Index(f.names, name)
	if err := os.MkdirAll(filepath.Join(tree, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(base, "host"), filepath.Join(tree, "etc", "host"), 0o600)
	var stderr bytes.Buffer
	c := exec.Command(f.script, "exec", fmt.Sprint(k), "unshare", "--mount", "--uts", "sh", "-c", hostScript, "sh", tree, name, base)
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	f.sshd[name], f.pids[name] = c, c.Process.Pid // ip, unshare, sh and chroot each become the next one
	up := fmt.Sprintf("until (: >/dev/tcp/10.78.0.%d/22) 2>/dev/null; do sleep 0.02; done", k+1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, f.script, "exec", fmt.Sprint(k), "bash", "-c", up).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s%s", name, err, out, stderr.String())
	}
}

// stop ends a host: nothing of it answers any more.
func (f *farm) stop(name string) {
	if c := f.sshd[name]; c != nil {
		c.Process.Kill()
		c.Wait()
		delete(f.sshd, name)
	}
}

func newFarm(t *testing.T, names ...string) *farm {
	t.Helper()
	f := &farm{lab: newNetwork(t, len(names), "1gbit", "0"), names: names, pids: map[string]int{}, sshd: map[string]*exec.Cmd{}}
	base := filepath.Dir(f.volley)
	hosts := "127.0.0.1 localhost\n"
	for k, name := range names {
		hosts += fmt.Sprintf("10.78.0.%d %s\n", k+1, name)
	}
	if err := os.WriteFile(filepath.Join(base, "hosts"), []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range names {
			f.stop(name)
		}
	})
	for _, name := range names {
		f.start(t, name)
	}
	return f
}

// path is where a file of a host lies for this process.
func (f *farm) path(host, name string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", f.pids[host]), name)
}

// run runs a command of the operator's, as root in /etc/volley.
func (f *farm) run(t *testing.T, command string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pid := fmt.Sprint(f.pids[f.names[len(f.names)-1]])
	c := exec.CommandContext(ctx, "nsenter", "--target", pid, "--mount", "--uts", "--net", "--root", "--wd=/proc/"+pid+"/root/etc/volley", "bash", "-c", command)
	c.Env = append(os.Environ(), "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("%s: %v", command, err)
	}
	f.ended(t)
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// digests returns what lies below /data of a host, but for Volley's own: of each file the digest of mode, time and bytes.
func (f *farm) digests(t *testing.T, host string) map[string]string {
	t.Helper()
	root, all := f.path(host, "data"), map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".volley" {
				return fs.SkipDir
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name, _ = filepath.Rel(root, name)
		all[name] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime().UnixNano(), sha256.Sum256(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lay writes a file, and makes the folders in which it lies.
func lay(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, text, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	lay(t, to, text, mode)
}

// What stands for systemctl: "enable" looks whether the units are there, and "start" runs one as systemd does, but as root.
const systemctl = `#!/bin/bash
set -eu
cd /etc/systemd/system
case $1 in
enable) ls "${@:3}" >/dev/null ;;
start)
	while IFS= read -r line; do export "$line"; done < <(grep '^[A-Z]*=' /etc/volley/group.conf)
	exec sh -c "$(sed -n 's/^ExecStart=//p' "$2")"
	;;
*) exit 1 ;;
esac
`

// An act is what happens before the commands of a section, and what has to be so afterwards.
type act struct {
	before func()
	during func(command string) (end func()) // of a command
	after  func(printed string)              // by all commands
}

// An operation is a command of the page, as it stands there.
type operation struct {
	section, line string
	code          int
}

var exitComment = regexp.MustCompile(`\s+# exit code (\d)$`)

// operations returns the commands in the sh blocks of a page.
func operations(page string) (all []operation) {
	section, on := "", false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			section = line[3:]
		case strings.HasPrefix(line, "```"):
			on = line == "```sh"
		case on && line != "":
			o := operation{section: section, line: line}
			if m := exitComment.FindStringSubmatch(line); m != nil {
				fmt.Sscan(m[1], &o.code)
			}
			all = append(all, o)
		}
	}
	return all
}

// TestOperations runs the commands of docs/operations.md, in order and as they stand, at hosts with sshd. What the page
// tells of happens in between: programs write, a byte rots, a file is deleted, a host dies. After each section all files
// of all hosts are compared. These stand for the real thing: namespaces and trees of files for machines, memory for
// disks, a script for systemd, and keys that are there for ssh-copy-id.
func TestOperations(t *testing.T) {
	if !*hosts {
		t.Skip("without -hosts")
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := operations(string(page))
	if len(commands) > 23 {
		t.Errorf("%d commands: the page promises at most 23", len(commands))
	}
	f := newFarm(t, "a", "b", "c", "d", "e", "f", "g", "admin")
	units, _ := filepath.Glob("../../deploy/systemd/volley*")
	for _, unit := range units {
		copyFile(t, unit, f.path("admin", "etc/systemd/system/"+filepath.Base(unit)), 0o644)
	}
	copyFile(t, "../../deploy/systemd/group.conf", f.path("admin", "etc/volley/group.conf"), 0o644)
	copyFile(t, f.volley, f.path("admin", "usr/local/bin/volley"), 0o755)
	copyFile(t, filepath.Join(filepath.Dir(f.volley), "user"), f.path("admin", "root/.ssh/id_ed25519"), 0o600)
	lay(t, f.path("admin", "root/.ssh/config"), []byte("Host *\n\tStrictHostKeyChecking accept-new\n\tLogLevel ERROR\n"), 0o600)
	lay(t, f.path("admin", "usr/local/bin/systemctl"), []byte(systemctl), 0o755)

	group := []string{"a", "b", "c", "d", "e"}
	for _, host := range append(group, "g") {
		for name, size := range map[string]int{"home/report.odt": 300_000, "home/empty": 0, "log/app.log": 50_000, "mail/1": 3_000, "mail/2": 4_000, "img/disk": 2_000_000} {
			text := bytes.Repeat([]byte(fmt.Sprintf("%s of %s\n", name, host)), size/8)[:size]
			lay(t, f.path(host, "data/"+name), text, 0o640)
		}
	}
	want := map[string]map[string]string{} // of each host: its files as they are to be
	keep := func(hosts ...string) {
		for _, host := range hosts {
			want[host] = f.digests(t, host)
		}
	}
	same := func(hosts ...string) {
		t.Helper()
		for _, host := range hosts {
			if got := f.digests(t, host); !maps.Equal(got, want[host]) {
				t.Errorf("host %s has %v, want %v", host, got, want[host])
			}
		}
	}
	keep("a", "b", "c", "d", "e", "g")
	says := func(printed string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(printed, part) {
				t.Errorf("nobody says %q:\n%s", part, printed)
			}
		}
	}
	acts := map[string]act{
		"Prepare": {after: func(string) {
			for _, host := range group {
				if _, err := os.Stat(f.path(host, "usr/local/bin/volley")); err != nil {
					t.Error(err)
				}
			}
		}},
		"The first group": {after: func(printed string) {
			says(printed, "\nnothing written: a dry run\n", "protected, generation 1\n", "\n2 more nodes may be lost now\n")
			same(group...)
		}},
		"Every night": {
			during: func(command string) func() {
				if !strings.HasPrefix(command, "systemctl start") {
					return nil
				}
				return f.writers(t)
			},
			after: func(printed string) {
				if !strings.HasPrefix(printed, "node 0  ") {
					t.Errorf("the timer's run is not silent: %s", printed)
				}
				says(printed, " may be lost now\n")
				// What the run met, it has protected as it was at a moment: the beginning of what there is.
				r := f.run(t, "volley recover --group group.yaml --file /log/ --file /mail/ --to /tmp/old")
				log, err := os.ReadFile(f.path("a", "tmp/old/node.0/log/app.log"))
				now, err2 := os.ReadFile(f.path("a", "data/log/app.log"))
				if r.code != exit.OK || errors.Join(err, err2) != nil || len(log) <= 50_000 || !bytes.HasPrefix(now, log) {
					t.Errorf("%+v, %v, %v: %d bytes of a log of %d", r, err, err2, len(log), len(now))
				}
				mail, _ := filepath.Glob(f.path("b", "tmp/old/node.1/mail/new.*"))
				for _, name := range mail {
					if text, err := os.ReadFile(name); err != nil || !bytes.HasPrefix(delivered, text) {
						t.Errorf("%s: %q, %v", name, text, err)
					}
				}
				t.Logf("protected: %d bytes of the log, which now has %d, and %d mails that came meanwhile", len(log), len(now), len(mail))
				// The next night is quiet.
				if r := f.run(t, "systemctl start volley-protect.service"); r != (result{}) {
					t.Errorf("%+v", r)
				}
				keep(group...)
			},
		},
		"Rot": {
			before: func() { vanish(t, f.path("c", "data/img/disk")) }, // what has rotted comes back in the same way
			after: func(printed string) {
				says(printed, `missing: "img/disk"`, "whole: 5 nodes")
				same(group...)
			},
		},
		"One file back": {
			before: func() { removeAll(t, f.path("d", "data/home/report.odt")) },
			after:  func(string) { same(group...) },
		},
		"A host is lost": {
			before: func() { f.stop("b") },
			after: func(printed string) {
				says(printed, "node 1  unreachable  root@b:/data\n", "\n1 more node may be lost now\n", "recovered node 1: ")
				want["f"] = want["b"]
				same("a", "f", "c", "d", "e")
			},
		},
		"A host comes, a host goes": {after: func(printed string) {
			says(printed, "whole: 5 nodes")
			same("a", "f", "c", "d", "e", "g")
		}},
		"The end": {after: func(printed string) {
			same("a", "f", "c", "d", "e", "g")
			for _, host := range []string{"a", "f", "c", "d", "e", "g"} {
				if list, _ := os.ReadDir(f.path(host, "data/.volley")); list != nil {
					t.Errorf("host %s has %v", host, list)
				}
			}
		}},
	}

	for len(commands) > 0 {
		section, printed := commands[0].section, ""
		act, ok := acts[section]
		if !ok {
			t.Fatalf("no act for the section %q", section)
		}
		delete(acts, section)
		if act.before != nil {
			act.before()
		}
		for ; len(commands) > 0 && commands[0].section == section; commands = commands[1:] {
			o := commands[0]
			var end func()
			if act.during != nil {
				end = act.during(o.line)
			}
			r := f.run(t, o.line)
			if end != nil {
				end()
			}
			t.Logf("$ %s\n%s%s", o.line, r.stdout, r.stderr)
			if printed += r.stdout + r.stderr; r.code != o.code {
				t.Fatalf("%s: exit code %d, want %d", o.line, r.code, o.code)
			}
		}
		act.after(printed)
	}
	for section := range acts {
		t.Errorf("the page has no commands in a section %q", section)
	}
}

// delivered is the beginning of which every new mail has a part.
var delivered = bytes.Repeat([]byte("mail"), 5000)

// writers append to a log of host a, and deliver and remove mail at host b, until they are ended.
func (f *farm) writers(t *testing.T) (end func()) {
	stop, done := make(chan struct{}), make(chan error, 2)
	write := func(each func(n int) error) {
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			case <-time.After(time.Millisecond):
				if err := each(n); err != nil {
					done <- err
					return
				}
			}
		}
	}
	log, mail := f.path("a", "data/log/app.log"), f.path("b", "data/mail")
	go write(func(n int) error {
		file, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			fmt.Fprintf(file, "line %d\n", n)
			err = file.Close()
		}
		return err
	})
	go write(func(n int) error {
		if n%4 == 0 { // so that less than half goes however long the run takes: more would be an accident
			os.Remove(filepath.Join(mail, fmt.Sprint("new.", n-400)))
		}
		if n >= 8000 {
			return nil
		}
		return os.WriteFile(filepath.Join(mail, fmt.Sprint("new.", n)), delivered[:n%len(delivered)], 0o600)
	})
	return func() {
		t.Helper()
		close(stop)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}
