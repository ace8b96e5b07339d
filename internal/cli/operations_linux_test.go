package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"volley/internal/exit"
)

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

// An operator runs the commands of docs/operations.md at hosts.
type operator struct {
	*farm
	want map[string]string // of each host: its files as they are to be
}

var members = []string{"a", "b", "c", "d", "e"}

func newOperator(t *testing.T) *operator {
	o := &operator{newFarm(t, "1gbit", "a", "b", "c", "d", "e", "f", "g", "admin"), map[string]string{}}
	units, _ := filepath.Glob("../../deploy/systemd/volley*")
	for _, unit := range units {
		copyFile(t, unit, o.path("admin", "etc/systemd/system/"+filepath.Base(unit)), 0o644)
	}
	copyFile(t, "../../deploy/systemd/group.conf", o.path("admin", "etc/volley/group.conf"), 0o644)
	lay(t, o.path("admin", "usr/local/bin/systemctl"), []byte(systemctl), 0o755)
	for _, host := range append(members, "g") {
		for name, size := range map[string]int{"home/report.odt": 300_000, "home/empty": 0, "log/app.log": 50_000, "mail/1": 3_000, "img/disk": 2_000_000} {
			text := bytes.Repeat([]byte(fmt.Sprintf("%s of %s\n", name, host)), size/8)[:size]
			lay(t, o.path(host, "data/"+name), text, 0o640)
		}
	}
	o.keep(append(members, "g")...)
	return o
}

func (o *operator) keep(hosts ...string) {
	for _, host := range hosts {
		o.want[host] = dataOf(o.T, o.path(host, "data"))
	}
}

func (o *operator) same(hosts ...string) {
	o.Helper()
	for _, host := range hosts {
		if got := dataOf(o.T, o.path(host, "data")); got != o.want[host] {
			o.Errorf("host %s has\n%s\nwant\n%s", host, got, o.want[host])
		}
	}
}

// acts returns what happens around the commands of each section.
func (o *operator) acts() map[string]act {
	replaced := []string{"a", "f", "c", "d", "e", "g"}
	return map[string]act{
		"Prepare": {after: func(string) {
			for _, host := range members {
				if _, err := os.Stat(o.path(host, "usr/local/bin/volley")); err != nil {
					o.Error(err)
				}
			}
		}},
		"The first group": {after: func(printed string) {
			wants(o.T, printed, "\nnothing written: a dry run\n", "protected, generation 1\n", "\n2 more nodes may be lost now\n")
			o.same(members...)
		}},
		"Every night": {during: o.writes, after: o.morning},
		"Rot": {
			before: func() { vanish(o.T, o.path("c", "data/img/disk")) }, // what has rotted comes back in the same way
			after: func(printed string) {
				wants(o.T, printed, `missing: "img/disk"`, "whole: 5 nodes")
				o.same(members...)
			},
		},
		"One file back": {
			before: func() { removeAll(o.T, o.path("d", "data/home/report.odt")) },
			after:  func(string) { o.same(members...) },
		},
		"A host is lost": {
			before: func() { o.stop("b") },
			after: func(printed string) {
				wants(o.T, printed, "node 1  unreachable  root@b:/data\n", "\n1 more node may be lost now\n", "recovered node 1: ")
				o.want["f"] = o.want["b"]
				o.same(replaced[:5]...)
			},
		},
		"A host comes, a host goes": {after: func(printed string) {
			wants(o.T, printed, "whole: 5 nodes")
			o.same(replaced...)
		}},
		"The end": {after: func(string) {
			o.same(replaced...)
			for _, host := range replaced {
				if list, _ := os.ReadDir(o.path(host, "data/.volley")); list != nil {
					o.Errorf("host %s has %v", host, list)
				}
			}
		}},
	}
}

// writes appends to a log of host a while the timer's run protects.
func (o *operator) writes(command string) (end func()) {
	if !strings.HasPrefix(command, "systemctl start") {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan error)
	log, err := os.OpenFile(o.path("a", "data/log/app.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		o.Fatal(err)
	}
	go func() {
		var err error
		for n := 0; err == nil; n++ {
			select {
			case <-stop:
				done <- log.Close()
				return
			case <-time.After(time.Millisecond):
				_, err = fmt.Fprintf(log, "line %d\n", n)
			}
		}
		<-stop
		done <- err
	}()
	return func() {
		close(stop)
		if err := <-done; err != nil {
			o.Error(err)
		}
	}
}

// morning looks at what the night has protected: the log as it was at a moment, the beginning of what there is.
func (o *operator) morning(printed string) {
	if !strings.HasPrefix(printed, "node 0  ") {
		o.Errorf("the timer's run is not silent: %s", printed)
	}
	wants(o.T, printed, " may be lost now\n")
	r := o.run("volley recover --group group.yaml --file /log/ --to /tmp/old")
	log, now := readFile(o.T, o.path("a", "tmp/old/node.0/log/app.log")), readFile(o.T, o.path("a", "data/log/app.log"))
	if r.code != exit.OK || len(log) <= 50_000 || !bytes.HasPrefix(now, log) {
		o.Errorf("%+v: %d bytes of a log of %d", r, len(log), len(now))
	}
	if r := o.run("systemctl start volley-protect.service"); r != (result{}) { // the next night is quiet
		o.Errorf("%+v", r)
	}
	o.keep(members...)
}

// TestOperations runs the commands of docs/operations.md, in order and as they stand, at hosts with sshd. What the page
// tells of happens in between: programs write, a byte rots, a file is deleted, a host dies. After each section all files
// of all hosts are compared. These stand for the real thing: namespaces and trees of files for machines, memory for
// disks, a script for systemd, and keys that are there for ssh-copy-id.
func TestOperations(t *testing.T) {
	commands := operations(string(readFile(t, "../../docs/operations.md")))
	if len(commands) > 23 {
		t.Errorf("%d commands: the page promises at most 23", len(commands))
	}
	o := newOperator(t)
	acts := o.acts()
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
			c, end := commands[0], func() {}
			if act.during != nil {
				end = act.during(c.line)
			}
			r := o.run(c.line)
			end()
			t.Logf("$ %s\n%s%s", c.line, r.stdout, r.stderr)
			if printed += r.stdout + r.stderr; r.code != c.code {
				t.Fatalf("%s: exit code %d, want %d", c.line, r.code, c.code)
			}
		}
		act.after(printed)
	}
	for section := range acts {
		t.Errorf("the page has no commands in a section %q", section)
	}
}
