package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"volley"
	"volley/files"
	"volley/internal/disk"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/testprogram"
	"volley/transport/transporttest"
)

// fakeSSH is ssh for tests: every host is this machine, but for dead, which does not answer, mute, which loses the
// connection at once, hangs, which never starts what it is to, old, which has another version, deaf, which nobody can
// connect to, and apart, whose processes do not end with the connection. For hosts asks… ssh asks the user, who is asked
// one thing at a time.
const fakeSSH = `#!/bin/sh
case " $* " in
*" -- "*) ;;
*) shift 3; exec sh -c "$*" ;; # as a user types it
esac
asks=yes
while [ "$1" != -- ]; do [ "$1" != -oBatchMode=yes ] || asks=; shift; done
case $2 in
hangs) [ -z "$VOLLEY_TEST_ASKS" ] || echo "$2" >>"$VOLLEY_TEST_ASKS/asked"
  echo 'Authenticated to hangs ([::1]:22) using "publickey".' >&2; exec sleep 1000 ;;
asks*)
  [ "$asks" ] || { echo "me@$2: Permission denied (publickey,password)." >&2; exit 255; }
  mkdir "$VOLLEY_TEST_ASKS/now" || { echo "two are asked at once" >&2; exit 255; }
  echo "$2" >>"$VOLLEY_TEST_ASKS/asked"; sleep 0.2; rmdir "$VOLLEY_TEST_ASKS/now" ;;
dead) echo "ssh: connect to host dead port 22: No route to host" >&2; exit 255 ;;
mute) exit 0 ;;
old) printf 'volley: messages follow\n{"Hello":{"Version":"9.9.9"}}\n'; exec cat >/dev/null ;;
deaf) sh -c "$3" | sed -u 's/"Listen":"\([^"]*\):[0-9]*"/"Listen":"\1:1"/'; exit ;;
apart) setsid -w sh -c "$3"; exit ;;
esac
printf 'Welcome to %s\n\033[2J' "$2" # some set the title so
[ -z "$VOLLEY_TEST_TEE" ] || exec tee -a "$VOLLEY_TEST_TEE" | sh -c "$3"
cd / && exec sh -c "$3"
`

// A fleet is hosts that a launch reaches.
type fleet struct {
	flags []string
	env   []string
	mark  string // in the environment of every process of theirs

	program string // that starts ranks here, and is copied: a short one, which runs this program
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ssh")
	if err := testprogram.Write(name, []byte(fakeSSH)); err != nil {
		t.Fatal(err)
	}
	f := &fleet{mark: fmt.Sprint("VOLLEY_TEST_FLEET=", os.Getpid(), "-", rand.Uint64())}
	f.flags = []string{"--ssh", name + " -F /dev/null", "--remote-path", thisProgram(t)}
	f.env, f.program = []string{f.mark}, filepath.Join(filepath.Dir(name), "volley")
	if err := testprogram.Write(f.program, []byte("#!/bin/sh\nexec '"+thisProgram(t)+"' \"$@\"\n")); err != nil {
		t.Fatal(err)
	}
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
	if r.code != exit.OK {
		t.Fatalf("volley %s: %+v", strings.Join(args, " "), r)
	}
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
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range all {
		var pid int
		fmt.Sscanf(name, "/proc/%d/", &pid)
		if data, err := os.ReadFile(name); err == nil && pid != os.Getpid() && bytes.Contains(data, []byte(f.mark)) {
			ids = append(ids, pid)
		}
	}
	return ids
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

// TestLaunchOrder loses two hosts and names them in another order, as one group and as a set: each gets its own files back.
func TestLaunchOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 20_000)
	for _, flags := range [][]string{{"--tolerate", "2"}, {"--tolerate", "2", "--group-size", "4"}} {
		at := func(verb string, order ...int) []string {
			list := slices.Concat([]string{verb}, f.flags, flags)
			if verb == "recover" {
				list = slices.Concat([]string{verb}, f.flags, flags[2:])
			}
			for _, n := range order {
				list = append(list, fmt.Sprintf("host%d:%s", n, dirs[n]))
			}
			return list
		}
		if r := f.run(at("protect", 0, 1, 2, 3)...); r.code != exit.OK {
			t.Fatalf("%+v", r)
		}
		want := contents(t, dirs)
		removeAll(t, dirs[1], dirs[2])
		if r := f.run(at("recover", 0, 2, 1, 3)...); r.code != exit.OK {
			t.Fatalf("%+v", r)
		}
		if got := contents(t, dirs); !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", flags, got, want)
		}
		for _, dir := range dirs {
			removeAll(t, filepath.Join(dir, ".volley"))
		}
	}
}

// TestLaunch protects hosts, loses one, and replaces it in another order.
func TestLaunch(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	copies := t.TempDir()
	f.env = append(f.env, "TMPDIR="+copies)
	dirs := writeNodes(t, 4, 200_000)
	for _, flags := range [][]string{nil, {"--remote-path", "copy"}} {
		f.flags = append(f.flags, flags...)
		r := f.run(f.of("protect", "--tolerate", "1", dirs[0], dirs[1], dirs[2], dirs[3])...)
		if r.code != exit.OK || strings.Count(r.stdout, "protected, generation 1") != 1 {
			t.Fatalf("%+v", r)
		}
		want := strings.Join(dataOfAll(t, dirs), "\n")
		if err := os.RemoveAll(dirs[2]); err != nil {
			t.Fatal(err)
		}
		again := f.of("recover", dirs[3], dirs[2], dirs[0], dirs[1])
		if r := f.run(again...); r.code != exit.OK || !strings.Contains(r.stdout, "recovered node 2: 4 files, ") || !strings.Contains(r.stdout, "  host1:"+dirs[2]) {
			t.Fatalf("%+v", r)
		}
		if got := strings.Join(dataOfAll(t, dirs), "\n"); got != want {
			t.Fatalf("recovered\n%s\nwant\n%s", got, want)
		}
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
		for _, dir := range dirs {
			if err := os.RemoveAll(filepath.Join(dir, ".volley")); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.ended(t)
	if left, err := os.ReadDir(copies); err != nil || len(left) > 0 {
		t.Errorf("copies are left: %v, %v", left, err)
	}
}

func dataOfAll(t *testing.T, dirs []string) (list []string) {
	for _, dir := range dirs {
		list = append(list, dataOf(t, dir))
	}
	return list
}

// TestLaunchMissing asks for the status where a host does not answer, and copies its files out to
// this machine and to a host.
func TestLaunchMissing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 4, 100_000)
	mustRun(t, append([]string{"protect", "--tolerate", "2"}, dirs...)...)
	want := filesOf(t, dirs[1])
	before := dataOfAll(t, dirs)
	args := f.of("status", dirs[0], dirs[2], dirs[3])
	args = append(args, "dead:"+dirs[1])
	r := f.run(args...)
	for _, part := range []string{"node 1  unreachable  dead:" + dirs[1], "No route to host", "\n1 more node may be lost now\n", "node 3  whole  host2:"} {
		if r.code != exit.Wrong || !strings.Contains(r.stdout, part) {
			t.Fatalf("%+v: want %q", r, part)
		}
	}
	args[0] = "verify"
	r = f.run(args...)
	for _, part := range []string{"node 1  unreachable  dead:" + dirs[1], "No route to host", "\n1 more node may be lost now\n", "not whole: dead:" + dirs[1] + " (unreachable)"} {
		if r.code != exit.Wrong || !strings.Contains(r.stdout+r.stderr, part) {
			t.Fatalf("%+v: want %q", r, part)
		}
	}
	r = f.run(slices.Concat([]string{"protect", "--tolerate", "2"}, args[1:])...)
	for _, part := range []string{"dead:" + dirs[1] + " cannot be reached, and all nodes are needed: no connection to dead", "since 20", "Run again when it can be", "volley resize --remove dead:" + dirs[1] + " --force"} {
		if r.code != exit.Failed || !strings.Contains(r.stderr, part) || len(volleySays.FindAllString(r.stderr, -1)) != 1 {
			t.Fatalf("%+v: want %q", r, part)
		}
	}
	args[0] = "recover"
	if r := f.run(args...); r.code != exit.Failed || !strings.Contains(r.stderr, "volley: no connection to dead") || !strings.Contains(r.stderr, "give another, empty directory in its place") {
		t.Fatalf("recover without it: %+v", r)
	}
	for _, host := range []string{"", "host5:"} {
		out := filepath.Join(t.TempDir(), "out")
		if r := f.run(append(args, "--to", host+out)...); r.code != exit.OK {
			t.Fatalf("%+v", r)
		}
		if got := filesOf(t, filepath.Join(out, "node.1")); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if after := dataOfAll(t, dirs); !slices.Equal(after, before) {
		t.Errorf("%s, and was %s", after, before)
	}
	for _, force := range []string{"--force=false", "--force"} { // the way that protect has named
		r := f.run(slices.Concat([]string{"resize", force, "--remove", "dead:" + dirs[1]}, args[1:])...)
		switch {
		case force == "--force" && r.code != exit.OK:
			t.Errorf("%+v", r)
		case force != "--force" && (r.code != exit.Usage || !strings.Contains(r.stderr, "--force gives it up")):
			t.Errorf("%+v", r)
		}
	}
	f.must(t, f.of("verify", dirs[0], dirs[2], dirs[3])...)
	f.ended(t)
}

// TestLaunchFiles encodes a file at each host and decodes, once a host is another one without its files.
func TestLaunchFiles(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	if err := os.MkdirAll(at("b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b/two words $x", "c'"} {
		rewrite(t, at(name), bytes.Repeat([]byte(name), 5000))
	}
	line := func(verb string, rest ...string) []string { return slices.Concat([]string{verb}, f.flags, rest) }
	r := f.run(line("encode", "-o", "{host}:"+at("coded"), "host0:"+at("a"), "ssh://me@host1:22"+at("b/two words $x"), at("c'"))...)
	if r.code != exit.OK || strings.Count(r.stdout, "verified by") != 1 {
		t.Fatalf("%+v", r)
	}
	r = f.run(line("decode", "-o", "{host}:"+at("back"), "{host}:"+at("coded"), "host9:"+at("none"), "host1:"+at("b/two words $x"), at("c'"))...)
	if r.code != exit.OK {
		t.Fatalf("%+v", r)
	}
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
	lock, err := disk.OS.Open(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.Mkdir(filepath.Join(dirs[1], ".volley"), 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock.Lock(".volley/lock", false, disk.HolderOf("verify", "another"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(true)
	own, _ := os.Hostname()
	other := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{with("--tolerate", "1"), exit.Failed, fmt.Sprintf("rank 1 (host1): %s is busy: volley verify has used it since", dirs[1])},
		{with("--tolerate", "1", "dead:/x"), exit.Failed, "no connection to dead: ssh: connect to host dead port 22: No route to host"},
		{with("--tolerate", "1", "dead:/x", other), exit.Failed, "no connection to dead"},
		{with("--tolerate", "1", "mute:/x"), exit.Failed, "the connection to mute has ended"},
		{with("--tolerate", "1", "--timeout", "10s", "hangs:/x"), exit.Failed, "hangs has let ssh in, and has not started volley within 10s: a profile or a file system there may hang; try: "},
		{with("--tolerate", "1", "old:/x"), exit.Failed, "old runs volley 9.9.9, and this machine, " + own + ", runs volley " + volley.Version + ": install the same version at both"},
		{with("--tolerate", "1", "-x:/x"), exit.Usage, "unknown shorthand flag"},
		{with("--tolerate", "1", "--", "-x:/x"), exit.Usage, `"-x" is no host`},
		{with("--tolerate", "1", "host7:"), exit.Usage, "no path after the host"},
		{with("--tolerate", "1", "here:1"), exit.Usage, "here:1 is a file here, and may be 1 at host here: write ./here:1"},
		{with("--tolerate", "1", "--remote-path", "/no volley"), exit.Failed, "--remote-path says where volley is there"},
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
		if strings.Contains(c.want, "busy") {
			unlock(true)
		}
	}
	f.ended(t)
}

// TestLaunchAsks reaches hosts whose ssh asks the user: one after the other, or none where there is no user.
func TestLaunchAsks(t *testing.T) {
	t.Parallel()
	f, asks := newFleet(t), t.TempDir()
	f.env = append(f.env, "VOLLEY_TEST_ASKS="+asks)
	args := slices.Concat([]string{"protect"}, f.flags, []string{"--tolerate", "1"})
	for i, dir := range writeNodes(t, 4, 1000) {
		args = append(args, fmt.Sprintf("%s%d:%s", []string{"asks", "host"}[i/3], i, dir))
	}
	if s := starting(); !s.Askable() {
		if r := f.run(args...); r.code != exit.Failed || !strings.Contains(r.stderr, "nobody can answer ssh here") {
			t.Errorf("%+v", r)
		}
	}
	f.env = append(f.env, "SSH_ASKPASS=/bin/false")
	r := f.run(args...)
	asked, _ := os.ReadFile(filepath.Join(asks, "asked"))
	if r.code != exit.OK || strings.Contains(r.stderr, "denied") || len(strings.Fields(string(asked))) != 3 {
		t.Errorf("%+v, asked %s", r, asked)
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
		"no volley":     {node: "host3:/x", flags: []string{"--remote-path", "/no volley"}, code: exit.Failed, wants: []string{"cannot start volley at host", "--remote-path says where volley is there"}},
		"other version": {node: "old:/x", code: exit.Failed, wants: []string{"old runs volley 9.9.9, and this machine, " + own + ", runs volley ", "install the same version at both, or --remote-path copy"}},
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
	f.env = append(f.env, "VOLLEY_TEST_ASKS="+tried)
	args := slices.Concat([]string{"status", "--timeout", "10s"}, f.flags)
	for i, dir := range writeNodes(t, 5, 1000) {
		args = append(args, fmt.Sprintf("%s:%s", []string{"hangs", "host"}[i/4], dir))
	}
	r := f.run(args...)
	list, err := os.ReadFile(filepath.Join(tried, "asked"))
	if err != nil || string(list) != "hangs\n" || !strings.Contains(r.stdout+r.stderr, "hangs has let ssh in") {
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
		if err := os.WriteFile(filepath.Join(dirs[0], "more"), make([]byte, 30<<20), 0o600); err != nil {
			t.Fatal(err)
		}
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
		if r.code != exit.Failed {
			t.Fatalf("%+v", r)
		}
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

// TestLaunchUnasked has a host tell how far it is, and nobody has asked.
func TestLaunchUnasked(t *testing.T) {
	t.Parallel()
	f, dirs := newFleet(t), writeNodes(t, 3, 1000)
	f.must(t, f.of(append([]string{"protect", "--tolerate", "1", "--accept", "changed"}, dirs...)...)...)
	eager := filepath.Join(t.TempDir(), "volley")
	script := "#!/bin/sh\n'" + thisProgram(t) + `' "$@" | sed -u '/"Hello"/a {"Done":1,"More":1}'` + "\n"
	if err := testprogram.Write(eager, []byte(script)); err != nil {
		t.Fatal(err)
	}
	f.flags[3] = eager
	if text := f.must(t, f.of(append([]string{"verify"}, dirs...)...)...); !strings.Contains(text, "whole") {
		t.Error(text)
	}
	f.ended(t)
}

// TestLaunchKilled kills at random moments a rank of a launch, its ssh or the launch itself, or interrupts
// it: nothing is left running, and the group is as testKilled wants it.
func TestLaunchKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	testKilled(t, *groupKills, 60_000, func(t *testing.T, rng *rand.Rand, limit time.Duration, args []string) bool {
		p := f.command(t, f.of(args...)...)
		p.WaitDelay = time.Minute
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
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

// TestLaunchGone starts a rank by hand: it ends when its standard input does, whatever it does.
func TestLaunchGone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, said := range []string{"", "{}\n", `{"Args":["verify","/none"]}` + "\n" + `{"Rank":0,"Size":2,"Bind":"127.0.0.1","Advertise":"127.0.0.1"}` + "\n" + `["127.0.0.1:1","127.0.0.1:2"]` + "\n", "[\n", strings.Repeat("x", 2<<20)} {
		p := f.command(t, launch.Verb)
		in, err := p.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		in.Write([]byte(said))
		time.Sleep(20 * time.Millisecond)
		if err := in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
		if r := p.end(t); r.code == -1 || strings.Contains(r.stderr, "goroutine") {
			t.Errorf("%.40q: %+v", said, r)
		}
	}
	f.ended(t)
}

// secretOf matches the secret in what a rank is told.
var secretOf = regexp.MustCompile(`"Secret":"([0-9a-f]{64})"`)

// TestSecretShown looks for the secret of a run in all arguments and in what -v prints, by each engine, and over ssh in
// the environments, too.
func TestSecretShown(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 3, 1_000_000)
	pattern := strings.TrimSuffix(dirs[0], "0") + "{rank}"
	told := filepath.Join(t.TempDir(), "told")
	f.env = append(f.env, "VOLLEY_TEST_TEE="+told)
	for name, run := range map[string]func(flags ...string) result{
		"ssh": func(flags ...string) result {
			return f.run(append(f.of("protect", "--tolerate", "1", dirs[0], dirs[1], dirs[2]), flags...)...)
		},
		"flags": func(flags ...string) result {
			codes, text := newRankProcesses(t, 3, func(_ int, c *exec.Cmd) {
				_, secret, _ := strings.Cut(c.Env[len(c.Env)-1], "=")
				c.Env = append(c.Env, f.env...)
				rewrite(t, told, []byte(`"Secret":"`+secret+`"`))
			}, append([]string{"protect", "--tolerate", "1", pattern}, flags...)...).do()
			return result{code: slices.Max(codes), stderr: text}
		},
	} {
		// A run whose processes have ended before one was seen is done again.
		begun := time.Now()
		for list := [][]string{{"-v"}, {"-v", "--log-format", "json"}}; len(list) > 0; {
			flags := list[0]
			end, seen := make(chan struct{}), make(chan string)
			go func() {
				lists := map[string]bool{}
				for {
					select {
					case <-end:
						seen <- fmt.Sprint(lists)
						return
					case <-time.After(time.Millisecond):
					}
					for _, pid := range f.processes() {
						for _, what := range []string{"cmdline", "environ"} {
							text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, what))
							if what == "cmdline" || name == "ssh" {
								lists[string(text)] = true
							}
						}
					}
				}
			}()
			rewrite(t, told, nil)
			r := run(flags...)
			close(end)
			lists := <-seen
			text, err := os.ReadFile(told)
			m := secretOf.FindSubmatch(text)
			looked := strings.Contains(lists, "protect") || strings.Contains(lists, launch.Verb+"\x00")
			if !looked && r.code == exit.OK && time.Since(begun) < transporttest.Limit {
				continue
			}
			if err != nil || r.code != exit.OK || m == nil || !looked || !strings.Contains(r.stderr, "listens") {
				t.Fatalf("%s: %v: %+v: told %q; processes %q", name, err, r, text, lists)
			}
			if secret := string(m[1]); strings.Contains(lists+r.stdout+r.stderr, secret) {
				t.Errorf("%s: the secret %s is in\n%q\n%+v", name, secret, lists, r)
			}
			list = list[1:]
		}
	}
}
