package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"volley/engine"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/testprogram"
)

// TestConfined has a launch ask a rank for what its key does not permit: nothing is done.
func TestConfined(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 2, 100)
	in, out := dirs[0], dirs[1]
	before := contents(t, dirs)
	verb := func(name string, flags ...string) launch.Start {
		x := launch.Start{Verb: name, Paths: []string{in}, Dir: in, Name: "n"}
		for _, flag := range flags {
			name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
			x.Flags = append(x.Flags, launch.Flag{Name: name, Value: value})
		}
		return x
	}
	key := confined
	key.Permitted = []string{in}
	for name, sent := range map[string]launch.Start{
		"lies elsewhere":                   {Verb: "protect", Paths: []string{out}, Dir: in},
		"lies elsewhere ":                  {Verb: "status", Paths: []string{in}, Dir: out},
		"lies elsewhere   ":                verb("recover", "--to="+out+"/x"),
		"leads to " + out:                  verb("protect", "--meta="+in+"/../"+filepath.Base(out)),
		"lies elsewhere     ":              verb("protect", "--key="+out+"/ckpt"),
		"does not permit --metrics":        verb("protect", "--metrics="+out+"/m"),
		"does not permit --group":          verb("protect", "--group="+out+"/g"),
		"does not permit --ssh":            verb("protect", "--ssh=touch "+out+"/x"),
		"does not run the verb encode":     verb("encode", "--output="+out+"/x"),
		"does not run the verb rank":       verb("rank"),
		"does not run the verb group init": verb("group init", "--output="+out+"/x"),
		"does not permit --bogus":          verb("protect", "--bogus", "--metrics="+out+"/m"),
		"does not tell what SHELL is":      {Verb: "status", Paths: []string{in}, Dir: in, Variable: "SHELL"},
		"does not run pre and post":        {Verb: "protect", Paths: []string{in}, Dir: in, Commanded: true},
	} {
		_, err := key.Admit(sent)
		if err == nil || exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%+v: %v: want %s", sent, err, name)
		}
	}
	if err := key.Terms(engine.Run{Key: out + "/ckpt"}); err == nil {
		t.Error("a key of TLS elsewhere is read")
	}
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}

	// Every flag of a verb is known to be harmless, is a path, or is refused.
	want := verb("recover", "--json=true", "--key=none", "--file=-x", "--file=--to="+out, "--to="+in+"/new")
	if got, err := key.Admit(want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v: want %+v", got, err, want)
	}
}

// A keyed host is this machine, by an sshd and a key that has a line of its own in authorized_keys.
type keyedHost struct {
	base string
	port int
}

// newKeyedHost starts an sshd for each connection.
func newKeyedHost(t *testing.T) *keyedHost {
	t.Helper()
	if !*hosts {
		t.Skip("without -hosts")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/tmp", "keyed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	h := &keyedHost{base: base}
	for _, key := range []string{"host", "user"} {
		shell(t, `ssh-keygen -q -t ed25519 -N "" -f "$1"`, filepath.Join(base, key))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.port = l.Addr().(*net.TCPAddr).Port
	var connections sync.WaitGroup
	t.Cleanup(connections.Wait)
	t.Cleanup(func() { l.Close() })
	connections.Go(func() { // sshd would bind a port that is another one's by then
		for {
			x, err := l.Accept()
			if err != nil {
				return
			}
			socket, err := x.(*net.TCPConn).File()
			x.Close()
			if err != nil {
				t.Error(err)
				return
			}
			c := exec.Command("/usr/sbin/sshd", "-i", "-e", "-f", "/dev/null", "-h", filepath.Join(base, "host"),
				"-o", "AuthorizedKeysFile="+filepath.Join(base, "authorized_keys"), "-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "LogLevel=ERROR", "-o", "SetEnv=SHLVL=2 "+asCommand+"=1")
			c.Stdin, c.Stdout, c.Stderr = socket, socket, os.Stderr
			err = c.Start()
			socket.Close()
			if err != nil {
				t.Error(err)
				return
			}
			connections.Go(func() { c.Wait() })
		}
	})
	return h
}

// permit writes the line of the key.
func (h *keyedHost) permit(t *testing.T, options string) {
	t.Helper()
	key := strings.TrimSpace(string(readFile(t, filepath.Join(h.base, "user.pub"))))
	rewrite(t, filepath.Join(h.base, "authorized_keys"), []byte(options+" "+key+"\n"))
}

func (h *keyedHost) ssh() string {
	return fmt.Sprintf("ssh -F none -p %d -i %s -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=%s", h.port, filepath.Join(h.base, "user"), filepath.Join(h.base, "known"))
}

// TestForcedCommand reaches a host by a key that may do little there, by sshd and authorized_keys: what it permits works
// as ever, and a launch that asks for more gets nothing.
func TestForcedCommand(t *testing.T) {
	h := newKeyedHost(t)
	dirs := writeNodes(t, 4, 20_000)
	others := filepath.Dir(dirs[0]) + "/others"
	if err := os.Rename(dirs[3], others); err != nil {
		t.Fatal(err)
	}
	dirs = dirs[:3]
	forced := func(flags string) string {
		return fmt.Sprintf(`restrict,command="%s rank %s"`, thisProgram(t), flags)
	}
	marked := func(s *session.Invocation) *session.Invocation { s.Program = thisProgram(t); return s }
	at := func(dir string) string { return "127.0.0.1:" + dir }
	run := func(args ...string) result {
		return resultIn(t.Context(), marked(starting()), append(args, "--ssh", h.ssh())...)
	}
	names := []string{at(dirs[0]), at(dirs[1]), at(dirs[2])}
	h.permit(t, forced("--only "+strings.Join(dirs, ",")))
	for _, verb := range [][]string{{"protect", "--tolerate", "1"}, {"verify"}, {"status"}} {
		if r := run(append(verb, names...)...); r.code != exit.OK {
			t.Fatalf("%q: %+v", verb, r)
		}
	}
	want := contents(t, dirs)
	removeAll(t, dirs[1])
	if r := run(append([]string{"recover"}, names...)...); r.code != exit.OK {
		t.Fatalf("%+v", r)
	}
	if got := contents(t, dirs); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	before := contents(t, []string{others})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"protect", "--tolerate", "1", names[0], names[1], at(others)}, "127.0.0.1: this key permits "},
		{[]string{"protect", "--tolerate", "1", names[0], names[1], at(dirs[2] + "/../others")}, "lies elsewhere"},
		{append([]string{"recover", "--file", "ckpt", "--to", at(others)}, names...), "lies elsewhere"},
		{append([]string{"protect", "--tolerate", "1", "--meta", others}, names...), "lies elsewhere"},
		{append([]string{"verify", "--remote-path", "copy"}, names...), "leave --remote-path copy out"},
		{[]string{"encode", "-o", "{host}:" + others, at(dirs[0] + "/ckpt"), at(dirs[1] + "/ckpt")}, "does not run the verb encode"},
	} {
		if r := run(c.args...); r.code == exit.OK || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("%q: %+v: want %q", c.args, r, c.want)
		}
	}
	out, err := exec.Command("sh", "-c", h.ssh()+" 127.0.0.1 'touch "+others+"/x'").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "this key starts volley for ranks alone") {
		t.Errorf("%v: %s", err, out)
	}

	// A launch that somebody else has written.
	for _, sent := range []launch.Start{
		{Verb: "protect", Paths: []string{others}, Dir: dirs[0]},
		{Verb: "protect", Flags: []launch.Flag{{Name: "ssh", Value: "touch " + others + "/x"}}, Paths: []string{"a:" + dirs[0]}, Dir: dirs[0]},
		{Verb: "plan", Flags: []launch.Flag{{Name: "output", Value: others + "/x"}}},
		{Verb: "protect", Paths: []string{dirs[0]}, Dir: dirs[0], Commanded: true},
	} {
		words := strings.Fields(h.ssh())
		c := exec.Command(words[0], append(words[1:], "127.0.0.1", "volley rank")...)
		in, _ := c.StdinPipe()
		stdout, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(sent)
		order, _ := json.Marshal(launch.NodeCommands{Commands: launch.Commands{Pre: "touch " + others + "/x", Limit: time.Minute}})
		fmt.Fprintf(in, "%s\n%s\n", text, order)
		said, _ := bufio.NewReader(stdout).ReadString('}')
		in.Close()
		rest, _ := io.ReadAll(stdout)
		said += string(rest)
		c.Wait()
		if !strings.Contains(said, `"End":{"Text":"this key`) {
			t.Errorf("%+v: %s", sent, said)
		}
	}
	if got := contents(t, []string{others}); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}

	// Commands run where the key permits them alone.
	g := &commandedGroup{dirs: dirs, log: t.TempDir(), at: func(int) string { return "127.0.0.1:" }}
	file := g.file(t, nothing, nothing)
	if r := run("protect", "--group", file); r.code != exit.Usage || !strings.Contains(r.stderr, "does not run pre and post") || fmt.Sprint(g.logs(t)) != "[  ]" {
		t.Errorf("%+v", r)
	}
	h.permit(t, forced("--only "+filepath.Dir(dirs[0])+" --allow-commands"))
	if r := run("protect", "--group", file); r.code != exit.OK || strings.Count(fmt.Sprint(g.logs(t)), "post protect ok") != 3 {
		t.Errorf("%+v", r)
	}
}

// TestConfinedStandIn has a rank that may do little stand for a node whose host does not answer, and copy its files out.
func TestConfinedStandIn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 3, 20_000)
	f.must(t, f.of("protect", "--tolerate", "1", dirs[0], dirs[1], dirs[2])...)
	base, out := t.TempDir(), t.TempDir()
	f.env = append(f.env, "ONLY="+dirs[0]+","+dirs[1]+","+out)
	few := filepath.Join(base, "volley")
	if err := testprogram.Write(few, []byte("#!/bin/sh\nexec "+thisProgram(t)+" rank --only \"$ONLY\"\n")); err != nil {
		t.Fatal(err)
	}
	names := []string{"host0:" + dirs[0], "host1:" + dirs[1], "dead:" + dirs[2]}
	f.flags[3] = few
	r := f.run(append(append([]string{"status"}, f.flags...), names...)...)
	if r.code != exit.Wrong || !strings.Contains(r.stdout, "unreachable  dead:") || !strings.Contains(r.stdout, "no more nodes may be lost now") {
		t.Errorf("%+v", r)
	}
	f.must(t, append(append([]string{"recover", "--to", "host0:" + out}, f.flags...), names...)...)
	if got, want := fmt.Sprint(filesOf(t, filepath.Join(out, "node.2"))), fmt.Sprint(filesOf(t, dirs[2])); got != want {
		t.Errorf("copied out %s, want %s", got, want)
	}
	r = f.run(append(append([]string{"recover", "--to", "host0:" + base}, f.flags...), names...)...)
	if r.code == exit.OK || !strings.Contains(r.stdout+r.stderr, "lies elsewhere") {
		t.Errorf("%+v", r)
	}
}

// TestColonInPath has a host whose directories look to its rank as if they were at other hosts: it reaches none.
func TestColonInPath(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	base := t.TempDir()
	name := filepath.Join(base, "ssh")
	script := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\ncd '" + base + "' && exec sh -c \"$3\"\n"
	if err := testprogram.Write(name, []byte(script)); err != nil {
		t.Fatal(err)
	}
	shell(t, `cd "$1"; for d in a:1 a:2 a:3; do mkdir "$d"; echo "$d" >"$d/file"; done`, base)
	f.must(t, "protect", "--tolerate", "1", "--ssh", name, "--remote-path", thisProgram(t), "host:a:1", "host:a:2", "host:a:3")
	if _, err := os.Stat(filepath.Join(base, "a:3", ".volley")); err != nil {
		t.Error(err)
	}
}
