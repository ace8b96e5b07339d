package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/group/site"
	"volley/internal/disk"
	"volley/internal/exit"
)

// checkGroup runs volley group check --json.
func (f *fleet) checkGroup(t *testing.T, args ...string) (checkText, result) {
	t.Helper()
	r := f.run(slices.Concat([]string{"group", "check", "--json"}, f.flags, args)...)
	var got checkText
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if want := map[bool]int{true: exit.OK, false: exit.Wrong}[got.Well]; r.code != want || got.Well != (got.Wrong == nil) {
		t.Errorf("well: %v, %+v", got.Well, r)
	}
	return got, r
}

// state returns what files there are below directories, and when they and their directories were written.
func state(t *testing.T, dirs []string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
			if err == nil {
				fmt.Fprintln(&b, name, info.Mode(), info.Size(), disk.Changed(info))
			}
			return nil
		})
	}
	return b.String()
}

// TestGroupCheck checks hosts that can work, by a group file and by their directories, before and after they are
// protected. Nothing changes at them.
func TestGroupCheck(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 3, 20_000)
	file := writeGroup(t, []string{"host0:" + dirs[0], "host1:" + dirs[1], "host1:" + dirs[2]}, nil, "tolerate: 1", "port: 7000-7999")
	for range 2 {
		before := state(t, dirs)
		got, r := f.checkGroup(t, "--group", file)
		if !got.Well || len(got.Hosts) != 2 || len(got.Hosts[1].Nodes) != 2 || len(got.Pairs) != 6 || got.Parity < 10_000 || got.Recovery < 30_000 || len(got.Roomy) != 3 {
			t.Fatalf("%+v, %+v", got, r)
		}
		for _, p := range got.Pairs {
			if p.Error != "" || p.Handshake <= 0 || !strings.Contains(p.Address, ":7") {
				t.Errorf("%+v", p)
			}
		}
		for _, h := range got.Hosts {
			if h.Version == "" || h.SSH == nil || *h.SSH <= 0 || h.Clock == nil || *h.Clock > 60 || *h.Clock < -60 || h.State != nil {
				t.Errorf("%+v", h)
			}
		}
		for _, want := range []string{"host0, host1 are one machine", "all nodes are on one disk"} {
			if !strings.Contains(strings.Join(got.Notes, "\n"), want) {
				t.Errorf("no %q in %q", want, got.Notes)
			}
		}
		if after := state(t, dirs); after != before {
			t.Errorf("the nodes have changed:\n%s\nwere\n%s", after, before)
		}
		r = f.run(slices.Concat([]string{"group", "check"}, f.flags, []string{"--group", file})...)
		if r.code != exit.OK || !strings.HasSuffix(r.stdout, "\nall is well\n") || strings.Count(r.stdout, "\nhost") != 2 || !strings.Contains(r.stdout, "pairs      6 of 6 connect\n") {
			t.Errorf("%+v", r)
		}
		f.must(t, slices.Concat([]string{"protect"}, f.flags, []string{"--group", file})...)
	}
	if r := volleyRun("group", "check", dirs[0], dirs[1], dirs[2]); r.code != exit.OK || !strings.Contains(r.stdout, "this machine") || !strings.HasSuffix(r.stdout, "\nall is well\n") {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}

// TestGroupCheckWrong checks hosts of which one has a fault, which is named with the next command; the others are
// looked at nevertheless.
func TestGroupCheckWrong(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 3, 20_000)
	large := filepath.Join(t.TempDir(), "large")
	if err := os.Mkdir(large, 0o755); err != nil {
		t.Fatal(err)
	}
	sparse, err := os.Create(filepath.Join(large, "sparse"))
	if err == nil {
		err = sparse.Truncate(8 << 40)
		sparse.Close()
	}
	for _, c := range []struct {
		name, node string
		flags      []string
		kind       string
		wants      []string
		pairs      int
		skip       bool
	}{
		{name: "no ssh", node: "dead:/x", kind: "no ssh", wants: []string{"No route to host", "/ssh -F /dev/null dead true"}, pairs: 6},
		{name: "a host that hangs", node: "hangs:/x", flags: []string{"--timeout", "10s"}, kind: "no ssh", wants: []string{"has let ssh in", "/ssh -F /dev/null hangs true"}, pairs: 6},
		{name: "a host that does not say what it has", node: "blank:/x", kind: "no ssh", wants: []string{"blank does not say what it has"}, pairs: 6},
		{name: "another version", node: "old:/x", kind: "other version", wants: []string{"old runs volley 9.9.9", "--remote-path copy", ": scp " + f.program + " old:" + thisProgram(t)}, pairs: 6},
		{name: "no directory", node: "host3:/none/of it", kind: "no directory", wants: []string{"host3:/none/of it", "/ssh -F /dev/null host3 mkdir -p '/none/of it'"}, pairs: 12},
		{name: "no permission", node: "host3:/proc/sys/kernel", kind: "no permission", wants: []string{"may not read and write /proc/sys/kernel", "/ssh -F /dev/null host3 ls -la /proc/sys/kernel"}, pairs: 12}, // root may not, either
		{name: "no room", node: "host3:" + large, kind: "no room", wants: []string{"are free, and ", "TiB", "/ssh -F /dev/null host3 df -h "}, pairs: 12, skip: err != nil},
		{name: "no directory but a file", node: "host3:" + filepath.Join(dirs[0], "ckpt"), kind: "cannot be read", wants: []string{"not a directory"}, pairs: 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.skip {
				t.Skip(err)
			}
			before := state(t, dirs)
			args := append(slices.Concat([]string{"--tolerate", "1"}, c.flags), c.node)
			for i, dir := range dirs {
				args = append(args, fmt.Sprintf("host%d:%s", i, dir))
			}
			got, r := f.checkGroup(t, args...)
			if got.Well || string(got.Wrong[0].Kind) != c.kind || len(got.Pairs) != c.pairs {
				t.Fatalf("%+v", r)
			}
			for _, want := range c.wants {
				if !strings.Contains(got.Wrong[0].At+": "+got.Wrong[0].Text+": "+got.Wrong[0].Next, want) {
					t.Errorf("no %q in %+v", want, got.Wrong[0])
				}
			}
			for _, x := range got.Wrong { // which all may lack
				if string(x.Kind) != c.kind && x.Kind != site.NoRoom {
					t.Errorf("%+v", x)
				}
			}
			r = f.run(slices.Concat([]string{"group", "check"}, f.flags, args)...)
			lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
			if last := lines[len(lines)-1]; r.code != exit.Wrong || !strings.HasSuffix(last, " wrong; next: "+got.Wrong[0].Next) || !strings.Contains(r.stdout, c.kind) {
				t.Errorf("%+v", r)
			}
			if after := state(t, dirs); after != before {
				t.Errorf("the nodes have changed:\n%s\nwere\n%s", after, before)
			}
		})
	}
	f.ended(t)
}

// TestGroupCheckPairs has a host that nobody can connect to, and that connects to the others.
func TestGroupCheckPairs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 1000)
	args := []string{"--tolerate", "1", "--port", "7000-7999", "host0:" + dirs[0], "deaf:" + dirs[1], "deaf:" + dirs[2], "host1:" + dirs[3]}
	got, r := f.checkGroup(t, args...)
	failed := 0
	for _, p := range got.Pairs {
		if bad := strings.HasPrefix(p.TargetHost, "deaf:"); bad != (p.Error != "") {
			t.Errorf("%+v", p)
		}
		if p.Error != "" {
			failed++
		}
	}
	if len(got.Pairs) != 12 || failed != 6 || len(got.Wrong) != 3 {
		t.Fatalf("%+v", r)
	}
	for _, h := range got.Hosts {
		if bad := h.Host == "deaf"; bad != slices.Contains(h.State, "no connection") {
			t.Errorf("%+v", h)
		}
	}
	for i, from := range []string{"host0:" + dirs[0], "deaf:" + dirs[1], "host1:" + dirs[3]} {
		x := got.Wrong[i]
		if x.Kind != "no connection" || !strings.HasPrefix(x.At, from+" to deaf:") || !strings.Contains(x.Text, "127.0.0.1:1: ") || !strings.Contains(x.Text, "refused") || x.Next != "open TCP ports 7000-7999 of 127.0.0.1 for 127.0.0.1" {
			t.Errorf("%+v", x)
		}
	}
	r = f.run(slices.Concat([]string{"group", "check"}, f.flags, args)...)
	if r.code != exit.Wrong || !strings.Contains(r.stdout, "pairs      6 of 12 connect\n") || !strings.HasSuffix(r.stdout, "3 things are wrong; next: open TCP ports 7000-7999 of 127.0.0.1 for 127.0.0.1\n") || volleySays.MatchString(r.stderr) {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}

// TestGroupCheckNotes has a host whose clock is behind, and whose volley is another build of the same version: it works.
func TestGroupCheckNotes(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 2, 1000)
	got, r := f.checkGroup(t, "--tolerate", "1", "late:"+dirs[0], "host1:"+dirs[1])
	notes := strings.Join(got.Notes, "\n")
	if !got.Well || *got.Hosts[0].Clock > -1e8 || !strings.Contains(notes, "the clock of late is ") || !strings.Contains(notes, " behind: ") || !strings.Contains(notes, "late runs another build of volley ") || strings.Contains(notes, "host1 runs") || strings.Contains(notes, "of host1 is") {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}

// TestGroupCheckPorts has no port free at which ranks could listen.
func TestGroupCheckPorts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 2, 1000)
	got, r := f.checkGroup(t, "--tolerate", "1", "--bind", "192.0.2.1", "host0:"+dirs[0], "host1:"+dirs[1])
	if len(got.Wrong) != 1 || got.Wrong[0].Kind != "no connection" || !strings.Contains(got.Wrong[0].Text, "192.0.2.1") || got.Hosts[1].State != nil {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}

// TestGroupCheckMissing has hosts without volley, and no host that answers.
func TestGroupCheckMissing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	got, r := f.checkGroup(t, "--remote-path", "/no volley", "host0:/x", "host1:/x")
	if len(got.Wrong) != 2 || got.Wrong[0].Kind != "no volley" || got.Wrong[0].Next != "scp "+f.program+" 'host0:/no volley'" || got.Pairs != nil {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}

// TestGroupCheckUsage gives check what no group can be.
func TestGroupCheckUsage(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 100)
	for _, c := range []struct {
		args []string
		want string
	}{
		{dirs[:1], "at least 2 directories, got 1"},
		{append([]string{"--tolerate", "9"}, dirs...), "loss of 9 of 3 nodes"},
		{append([]string{"--exclude", "{"}, dirs...), ""},
		{append([]string{"--exclude", "[a"}, dirs...), "the pattern has no end"},
		{append([]string{"--port", "7000"}, dirs...), ""}, // as a group file may have it
		{append([]string{"--rank", "0"}, dirs...), "--rank: check reaches hosts by ssh"},
		{append([]string{"--timeout", "-1s"}, dirs...), "want a duration such as 30s, 0 or more"},
	} {
		r := volleyRun(append([]string{"group", "check"}, c.args...)...)
		if want := map[bool]int{true: exit.OK, false: exit.Usage}[c.want == ""]; r.code != want || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}
