package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/files"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/testprogram"
	"volley/transport/transporttest"
)

func init() { played["ssh"] = asSSH }

// Variables of the ssh for tests: the folder of who is tried, where hosts lie, and the file of what they are told.
const (
	triedVariable = "VOLLEY_TEST_TRIED"
	homeVariable  = "VOLLEY_TEST_HOME"
	toldVariable  = "VOLLEY_TEST_TOLD"
)

// asSSH is ssh for tests: every host is this machine, but for dead, which does not answer, mute, which loses the
// connection at once, hangs, which never starts what it is to, old, which has another version, deaf, which nobody can
// connect to, asks, where ssh would ask the user, and apart, whose processes do not end with the connection.
func asSSH(args []string) int {
	i := slices.Index(args, "--")
	if i < 0 { // as a user types it
		return goesOn(exec.Command("sh", "-c", strings.Join(args[3:], " ")))
	}
	host := args[i+1]
	c := exec.Command("sh", "-c", args[i+2])
	c.Stdin, c.Dir = os.Stdin, cmp.Or(os.Getenv(homeVariable), "/")
	fails := func(text string) int { fmt.Fprintln(os.Stderr, text); return 255 }
	switch {
	case host == "dead":
		return fails("ssh: connect to host dead port 22: No route to host")
	case host == "mute":
		return 0
	case host == "hangs":
		if f, err := os.OpenFile(filepath.Join(os.Getenv(triedVariable), "tried"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintln(f, host)
			f.Close()
		}
		fails(`Authenticated to hangs ([::1]:22) using "publickey".`)
		time.Sleep(time.Hour)
	case host == "old":
		fmt.Print("volley: messages follow\n{\"Hello\":{\"Version\":\"9.9.9\"}}\n")
		io.Copy(io.Discard, os.Stdin)
		return 0
	case host == "asks":
		return fails("me@asks: Permission denied (publickey,password).")
	}
	fmt.Printf("Welcome to %s\n\033[2J\n", host) // some set the title so
	told, err := os.OpenFile(os.Getenv(toldVariable), os.O_APPEND|os.O_WRONLY, 0)
	switch {
	case err == nil:
		c.Stdin = io.TeeReader(os.Stdin, told)
	case host == "apart":
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	case host == "deaf":
		c.Stdout = deafened{}
	default:
		os.Chdir(c.Dir)
		syscall.Exec(c.Path, c.Args, os.Environ())
	}
	return goesOn(c)
}

// goesOn runs a command, and returns its exit code.
func goesOn(c *exec.Cmd) int {
	if c.Stdout == nil {
		c.Stdout = os.Stdout
	}
	c.Stderr, c.WaitDelay = os.Stderr, time.Second // of what is told after its end
	c.Run()
	return c.ProcessState.ExitCode()
}

// deafened prints lines, each of which comes whole, with a port at which nobody listens.
type deafened struct{}

func (deafened) Write(text []byte) (int, error) {
	_, err := os.Stdout.Write(regexp.MustCompile(`("Listen":"[^"]*:)[0-9]*"`).ReplaceAll(text, []byte(`${1}1"`)))
	return len(text), err
}

// A fleet is hosts that a launch reaches.
type fleet struct {
	flags []string
	env   []string
	mark  string // in the environment of every process of theirs

	program string // that starts ranks here, and runs this program
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ssh")
	must(t, os.Symlink(thisProgram(t), name))
	f := &fleet{mark: newMark()}
	f.flags = []string{"--ssh", name + " -F /dev/null", "--remote-path", thisProgram(t)}
	f.env, f.program = []string{f.mark}, filepath.Join(filepath.Dir(name), "volley")
	must(t, testprogram.Write(f.program, []byte("#!/bin/sh\nexec '"+thisProgram(t)+"' \"$@\"\n")))
	return f
}

// run runs the command line, which reaches the hosts.
func (f *fleet) run(args ...string) result {
	s := starting(f.env...)
	s.Program = f.program
	return resultIn(context.Background(), s, args...)
}

// must is run, and fails the test unless the exit code is 0.
func (f *fleet) must(t *testing.T, args ...string) string {
	t.Helper()
	r := f.run(args...)
	r.is(t, exit.OK)
	return r.stdout
}

// command returns a process that reaches the hosts.
func (f *fleet) command(t *testing.T, args ...string) *program {
	t.Helper()
	p := newProgram(t, args...)
	p.Env = append(p.Env, f.env...)
	return p
}

// of returns the arguments of a verb, with a host for each directory.
func (f *fleet) of(args ...string) []string {
	list := slices.Concat(args[:1], f.flags)
	for i, arg := range args[1:] {
		if filepath.IsAbs(arg) {
			arg = fmt.Sprintf("host%d:%s", i, arg)
		}
		list = append(list, arg)
	}
	return list
}

// processes returns those of the fleet but this one.
func (f *fleet) processes() (ids []int) {
	return slices.Collect(maps.Keys(marked(f.mark)))
}

// newMark returns a variable of an environment that tells processes from others.
func newMark() string { return fmt.Sprint("VOLLEY_TEST_MARK=", os.Getpid(), "-", rand.Uint64()) }

// marked returns the environments of other processes that have that variable.
func marked(mark string) map[int]string {
	list := map[int]string{}
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range all {
		var pid int
		fmt.Sscanf(name, "/proc/%d/", &pid)
		if data, err := os.ReadFile(name); err == nil && pid != os.Getpid() && bytes.Contains(data, []byte(mark)) {
			list[pid] = string(data)
		}
	}
	return list
}

// ended waits until no process is left.
func (f *fleet) ended(t *testing.T) {
	t.Helper()
	pause := time.Millisecond
	for begun := time.Now(); ; time.Sleep(pause) {
		pause = min(2*pause, 100*time.Millisecond) // all processes of the machine are looked at
		left := f.processes()
		switch {
		case len(left) == 0:
			return
		case time.Since(begun) > transporttest.Limit:
			t.Fatalf("processes %v are left", left)
		}
	}
}

// TestLaunch protects hosts, loses two, and replaces them in another order.
func TestLaunch(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 200_000)
	if text := f.must(t, f.of("protect", "--tolerate", "2", dirs[0], dirs[1], dirs[2], dirs[3])...); strings.Count(text, "protected, generation 1") != 1 {
		t.Fatal(text)
	}
	want := dataOfAll(t, dirs)
	removeAll(t, dirs[1], dirs[2])
	again := f.of("recover", dirs[3], dirs[2], dirs[0], dirs[1])
	if text := f.must(t, again...); !strings.Contains(text, "recovered node 2: 4 files, ") || !strings.Contains(text, "  host1:"+dirs[2]) {
		t.Fatal(text)
	}
	equal(t, dataOfAll(t, dirs), want)
	again[0] = "verify"
	if r := f.run(again...); r.code != exit.OK || !strings.Contains(r.stderr, "host0: Welcome to host0\n") || strings.Contains(r.stderr, "\x1b") {
		t.Fatalf("%+v", r)
	}
	vanish(t, filepath.Join(dirs[1], "ckpt"))
	if r := f.run(again...); r.code != exit.Wrong || !strings.Contains(r.stdout, "damaged") || strings.Count("\n"+r.stderr, "\nvolley: ") != 1 {
		t.Fatalf("damage: %+v", r)
	}
	mustRun(t, append([]string{"recover"}, dirs...)...)
	mustRun(t, append([]string{"verify"}, dirs...)...) // as in one process
	f.ended(t)
}

// TestLaunchMissing asks for the status where a host does not answer, and copies its files out to
// this machine and to a host.
func TestLaunchMissing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 100_000)
	mustRun(t, append([]string{"protect", "--tolerate", "2"}, dirs...)...)
	want, before := filesOf(t, dirs[1]), dataOfAll(t, dirs)
	args := append(f.of("status", dirs[0], dirs[2], dirs[3]), "dead:"+dirs[1])
	run := func(verb []string, code int, parts ...string) {
		t.Helper()
		r := f.run(slices.Concat(verb, args[1:])...)
		for _, part := range parts {
			if r.code != code || !strings.Contains(r.stdout+r.stderr, part) || code == exit.Failed && len(volleySays.FindAllString(r.stderr, -1)) != 1 {
				t.Fatalf("%q: %+v: want exit code %d and %q", verb, r, code, part)
			}
		}
	}
	looked := []string{"node 1  unreachable  dead:" + dirs[1], "No route to host", "give another, empty directory in its place", "next, when that is mended: volley status", "\n1 more node may be lost now\n"}
	run([]string{"status"}, exit.Wrong, append(looked, "node 3  whole  host2:")...)
	run([]string{"verify"}, exit.Wrong, append(looked, "not whole: dead:"+dirs[1]+" (unreachable)")...)
	run([]string{"protect", "--tolerate", "2"}, exit.Failed, "dead:"+dirs[1]+" cannot be reached, and all nodes are needed: no connection to dead", "since 20", "Run again when it can be", "volley resize --force --remove dead:"+dirs[1]+" ")
	run([]string{"recover"}, exit.Failed, "volley: no connection to dead", "give another, empty directory in its place")
	for _, host := range []string{"", "host5:"} {
		out := filepath.Join(t.TempDir(), "out")
		run([]string{"recover", "--file", "*", "--to", host + out}, exit.OK, "")
		equal(t, filesOf(t, filepath.Join(out, "node.1")), want)
	}
	equal(t, dataOfAll(t, dirs), before)
	run([]string{"resize", "--remove", "dead:" + dirs[1]}, exit.Usage, "--force gives it up")
	args[0] = "protect"
	f.must(t, next(t, f.run(args...).stderr)...) // the way that protect has named
	f.must(t, f.of("verify", dirs[0], dirs[2], dirs[3])...)
	f.ended(t)
}

// TestLaunchFiles encodes a file at each host and decodes, once a host is another one without its files.
func TestLaunchFiles(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"a", "b/two words $x", "c'"} {
		lay(t, at(name), bytes.Repeat([]byte(name), 5000), 0o644)
	}
	line := func(verb string, rest ...string) []string { return slices.Concat([]string{verb}, f.flags, rest) }
	r := f.run(line("encode", "-o", "{host}:"+at("coded"), "host0:"+at("a"), "me@host1:"+at("b/two words $x"), at("c'"))...)
	if r.code != exit.OK || strings.Count(r.stdout, "verified by") != 1 {
		t.Fatalf("%+v", r)
	}
	r = f.run(line("decode", "-o", "{host}:"+at("back"), "{host}:"+at("coded"), "host9:"+at("none"), "host1:"+at("b/two words $x"), at("c'"))...)
	r.is(t, exit.OK)
	if got, err := os.ReadFile(at("back/a")); err != nil || !bytes.Equal(got, bytes.Repeat([]byte("a"), 5000)) {
		t.Errorf("%v, %d bytes", err, len(got))
	}
	f.ended(t)
}

// volleySays matches errors of volley, here or at a host.
var volleySays = regexp.MustCompile(`(?m)^([a-z0-9 ]+: )?volley: `)

// TestLaunchErrors gives launches what cannot be run.
func TestLaunchErrors(t *testing.T) {
	f := newFleet(t)
	dirs := writeNodes(t, 3, 1000)
	t.Chdir(t.TempDir())
	rewrite(t, "here:1", nil)
	all := f.of("protect", dirs[0], dirs[1], dirs[2])
	with := func(args ...string) []string { return append(slices.Clone(all), args...) }
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{with("--tolerate", "1", "dead:/x", t.TempDir()), exit.Failed, "no connection to dead"},
		{with("--tolerate", "1", "mute:/x"), exit.Failed, "the connection to mute has ended"},
		{with("--tolerate", "1", "-x:/x"), exit.Usage, "unknown shorthand flag"},
		{with("--tolerate", "1", "--", "-x:/x"), exit.Usage, `"-x" is no host`},
		{with("--tolerate", "1", "host7:"), exit.Usage, "no path after the host"},
		{with("--tolerate", "1", "here:1"), exit.Usage, "here:1 is a file here, and may be 1 at host here: write ./here:1, or USER@here:1"},
		{with("--tolerate", "1", "--comm", "local"), exit.Usage, "--comm: host"},
		{with("--tolerate", "1", "--rank", "1"), exit.Usage, "--rank: host"},
		{with("--tolerate", "1", "--port", "x"), exit.Usage, "--port: ports \"x\""},
		{with("--tolerate", "9"), exit.Usage, "loss of 9 of 3 nodes"},
		{with(), exit.Usage, "--tolerate R"},
		{with("--tolerate", "1", "--ssh", "ssh 'x"), exit.Usage, `--ssh "ssh 'x": want a command`},
		{with("--tolerate", "1", "--ssh", "/none/ssh"), exit.Failed, "/none/ssh"},
		{[]string{"encode", "-o", "coded", "a:/x"}, exit.Usage, "-o {host}:DIR"},
		{[]string{"encode", "-o", "{host}:/coded", dirs[0]}, exit.Usage, "name the packets as HOST:FILE"},
		{[]string{"encode", "-o", "{host}:/coded", "{host}:/x"}, exit.Usage, "name the hosts"},
		{[]string{"recover", "--to", "{host}:/x", "a:/x", "b:/x"}, exit.Usage, "--to {host}:/x"},
	} {
		r := f.run(c.args...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || len(volleySays.FindAllString(r.stderr, -1)) != 1 {
			t.Errorf("volley %s: %+v: want exit %d and one error, %q", strings.Join(c.args, " "), r, c.code, c.want)
		}
	}
	f.ended(t)
}

// TestLaunchFit has hosts that no run fits, or that share what is lost: protect and its dry run name them, and what to do.
func TestLaunchFit(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	own, _ := os.Hostname()
	for name, c := range map[string]struct {
		node  string
		flags []string
		code  int
		wants []string
	}{
		"no ssh":        {node: "dead:/x", code: exit.Failed, wants: []string{"dead:/x cannot be reached, and all nodes are needed: no connection to dead: ssh: connect to host dead port 22: No route to host. Run again when it can be"}},
		"a password":    {node: "asks:/x", code: exit.Failed, wants: []string{"no connection to asks: me@asks: Permission denied (publickey,password).; ssh may not ask here: it needs a key without a passphrase, or one in ssh-agent, and the host in known_hosts; try: "}},
		"no volley":     {node: "host3:/x", flags: []string{"--remote-path", "/no volley"}, code: exit.Failed, wants: []string{"cannot start volley at host", "--remote-path says where volley is there"}},
		"other version": {node: "old:/x", code: exit.Failed, wants: []string{"old runs volley 9.9.9, and this machine, " + own + ", runs volley ", "install the same version at both"}},
		"no directory":  {node: "host3:/none/of it", code: exit.Usage, wants: []string{"(host3): host3:/none/of it: no such directory: mount it, or mend the name"}},
		"a firewall":    {node: "deaf:" + t.TempDir(), flags: []string{"--port", "7000-7999"}, code: exit.Failed, wants: []string{"(deaf), at 127.0.0.1:1, is gone or cannot be reached from rank ", "; if it runs, open TCP port 1 of 127.0.0.1 for 127.0.0.1, and 7000-7999 for other runs"}},
		"one machine":   {node: "host3:" + t.TempDir(), wants: []string{"all nodes are on one disk, and lost with it: give each node a disk of its own"}},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := writeNodes(t, 2, 1000)
			for _, dry := range []string{"--dry-run", "--dry-run=false"} {
				r := f.run(slices.Concat([]string{"protect", dry, "--tolerate", "1"}, f.flags, c.flags, []string{"host0:" + dirs[0], "host1:" + dirs[1], c.node})...)
				for _, want := range c.wants {
					if r.code != c.code || !strings.Contains(r.stdout+r.stderr, want) {
						t.Errorf("%s: %+v: want exit %d and %q", dry, r, c.code, want)
					}
				}
			}
		})
	}
	f.ended(t)
}

// TestLaunchHangs has a host hang that has several nodes: it is tried once, and the others are looked at.
func TestLaunchHangs(t *testing.T) {
	t.Parallel()
	f, tried := newFleet(t), t.TempDir()
	f.env = append(f.env, triedVariable+"="+tried)
	args := slices.Concat([]string{"status", "--timeout", "10s"}, f.flags)
	for i, dir := range writeNodes(t, 5, 1000) {
		args = append(args, fmt.Sprintf("%s:%s", []string{"hangs", "host"}[i/4], dir))
	}
	r := f.run(args...)
	list, err := os.ReadFile(filepath.Join(tried, "tried"))
	if err != nil || string(list) != "hangs\n" || !strings.Contains(r.stdout+r.stderr, "hangs has let ssh in, and has not started volley within 10s: a profile or a file system there may hang; try: ") {
		t.Errorf("%v, tried %q: %+v", err, list, r)
	}
	f.ended(t)
}

// TestLaunchStopped stops a rank while it has its lock. The launch says which process holds the lock, and how to end it.
// While it is so, status answers, verify and protect are refused, and all say who it is. What the launch has said ends it.
func TestLaunchStopped(t *testing.T) {
	t.Parallel()
	f, dirs := newFleet(t), writeNodes(t, 3, 1000)
	of := func(verb ...string) []string {
		args := slices.Concat(verb, f.flags)
		for i, dir := range dirs {
			args = append(args, fmt.Sprintf("%s:%s", []string{"one", "apart", "two"}[i], dir))
		}
		return args
	}
	f.must(t, of("protect", "--tolerate", "1")...)
	pid, lock := 0, filepath.Join(dirs[1], ".volley/lock")
	for try := 0; pid == 0; try++ {
		if try == 20 {
			t.Fatal("protect always ends before it is stopped")
		}
		must(t, os.WriteFile(filepath.Join(dirs[0], "more"), make([]byte, 30<<20), 0o600))
		s := starting(f.env...)
		s.Program, s.Limits.End = f.program, 3*time.Second
		done := make(chan result, 1)
		go func() {
			done <- resultIn(context.Background(), s, of("protect", "--tolerate", "1", "--timeout", "10s", "--accept", "changed", "--full")...)
		}()
		var r result
		for ended := false; !ended; {
			select {
			case r = <-done:
				ended = true
			default:
			}
			h := files.Holder{}
			if text, _ := os.ReadFile(lock); pid == 0 && json.Unmarshal(text, &h) == nil && h.Verb == "protect" {
				pid = h.PID
				syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if r.code == exit.OK {
			syscall.Kill(pid, syscall.SIGCONT)
			pid = 0
			continue
		}
		r.is(t, exit.Failed)
		end := regexp.MustCompile(fmt.Sprintf(`volley at apart does not end: process %d there holds the lock of apart:%s .*To end it: (.* apart kill -KILL %d)`, pid, regexp.QuoteMeta(dirs[1]), pid)).FindStringSubmatch(r.stderr)
		if end == nil {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("%+v", r)
		}
		host, _ := os.Hostname()
		says := regexp.MustCompile(fmt.Sprintf(`volley protect has used it since [0-9: -]+ \S+ \(process %d on %s, user [^,]+, stopped\)`, pid, regexp.QuoteMeta(host)))
		if r := f.run(of("status")...); !says.MatchString(r.stdout) || !strings.Contains(r.stdout, "apart:"+dirs[1]+" was read beside another run") {
			t.Errorf("%+v: no %v", r, says)
		}
		for _, verb := range [][]string{{"verify"}, {"protect", "--tolerate", "1"}} {
			if r := f.run(of(verb...)...); r.code != exit.Failed || !says.MatchString(r.stderr) || !strings.Contains(r.stderr, fmt.Sprintf("kill -KILL %d ends it", pid)) {
				t.Errorf("%v: %+v", verb, r)
			}
		}
		if out, err := exec.Command("sh", "-c", end[1]).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", end[1], err, out)
		}
	}
	f.ended(t)
	f.must(t, of("protect", "--tolerate", "1", "--accept", "changed")...)
	f.must(t, of("verify")...)
}

// TestLaunchKilled kills at random moments a rank of a launch, its ssh or the launch itself, or interrupts
// it: nothing is left running, and the group is as testKilled wants it.
func TestLaunchKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	testKilled(t, *groupKills, 60_000, func(t *testing.T, rng *rand.Rand, limit time.Duration, args []string) bool {
		if limit == 0 && *groupKills == 1 && rng.IntN(3) > 0 {
			t.Skip("launches take long: some verbs, unless -group.kills asks for more")
		}
		p := f.command(t, f.of(args...)...)
		p.WaitDelay = time.Minute
		must(t, p.Start())
		if limit > 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(limit))))
			switch ids := f.processes(); {
			case len(ids) == 0:
			case rng.IntN(4) == 0:
				p.Process.Signal([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}[rng.IntN(3)])
			default: // the launch, a rank, or what stands for ssh
				syscall.Kill(ids[rng.IntN(len(ids))], syscall.SIGKILL)
			}
		}
		r := p.end(t)
		f.ended(t)
		if limit == 0 && r.code != exit.OK {
			t.Fatalf("%s: %+v", args, r)
		}
		if r.code > 0 && r.code != exit.Interrupted && r.stderr == "" {
			t.Errorf("exit %d without a word", r.code)
		}
		return r.code != exit.OK
	})
}

// secretOf matches the secret in what a rank is told.
var secretOf = regexp.MustCompile(`"Secret":"([0-9a-f]{64})"`)

// lists looks at the arguments of the fleet's processes, and at their environments, until it is ended.
func (f *fleet) lists(of ...string) (end func() string) {
	stop, seen := make(chan struct{}), make(chan string)
	go func() {
		lists := map[string]bool{}
		for {
			select {
			case <-stop:
				seen <- fmt.Sprint(lists)
				return
			case <-time.After(time.Millisecond):
			}
			for _, pid := range f.processes() {
				for _, name := range of {
					text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
					lists[string(text)] = true
				}
			}
		}
	}()
	return func() string { close(stop); return <-seen }
}

// TestSecretShown looks for the secret of a run in all arguments and in what -v prints, by each engine, and over ssh in
// the environments, too.
func TestSecretShown(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 3, 1_000_000)
	told := filepath.Join(t.TempDir(), "told")
	f.env = append(f.env, toldVariable+"="+told)
	for _, way := range []string{"ssh", "flags"} {
		for begun, looked := time.Now(), false; !looked && time.Since(begun) < transporttest.Limit; { // all may have ended before one is seen
			rewrite(t, told, nil)
			looks := []string{"cmdline", "environ"}
			if way == "flags" {
				looks = looks[:1]
			}
			end := f.lists(looks...)
			var r result
			if way == "ssh" {
				r = f.run(f.of("protect", "-v", "--log-format", "json", "--tolerate", "1", dirs[0], dirs[1], dirs[2])...)
			} else {
				codes, text := newRankProcesses(t, 3, func(_ int, c *exec.Cmd) {
					_, secret, _ := strings.Cut(c.Env[len(c.Env)-1], "=")
					c.Env = append(c.Env, f.env...)
					rewrite(t, told, []byte(`"Secret":"`+secret+`"`))
				}, "protect", "-v", "--tolerate", "1", strings.TrimSuffix(dirs[0], "0")+"{rank}").do()
				r = result{code: slices.Max(codes), stderr: text}
			}
			lists, text := end(), readFile(t, told)
			m := secretOf.FindSubmatch(text)
			if r.code != exit.OK || m == nil || !strings.Contains(r.stderr, "listens") {
				t.Fatalf("%s: %+v: told %q", way, r, text)
			}
			if secret := string(m[1]); strings.Contains(lists+r.stdout+r.stderr, secret) {
				t.Errorf("%s: the secret %s is in\n%q\n%+v", way, secret, lists, r)
			}
			looked = strings.Contains(lists, "protect") || strings.Contains(lists, launch.Verb+"\x00")
		}
	}
}
