package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"volley/engine"
	"volley/internal/exit"
	"volley/internal/launch"
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

// newKeyedHost starts an sshd for each connection, as sshd itself would bind a port that is another one's by then.
func newKeyedHost(t *testing.T) *keyedHost {
	t.Helper()
	if !*hosts {
		t.Skip("without -hosts")
	}
	base, err := os.MkdirTemp("/tmp", "keyed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	shell(t, `mkdir -p /run/sshd; for key in host user; do ssh-keygen -q -t ed25519 -N "" -f "$1/$key"; done`, base)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			x, err := l.Accept()
			if err != nil {
				return
			}
			socket, _ := x.(*net.TCPConn).File()
			x.Close()
			c := exec.Command("/usr/sbin/sshd", "-i", "-e", "-f", "/dev/null", "-h", filepath.Join(base, "host"),
				"-o", "AuthorizedKeysFile="+filepath.Join(base, "authorized_keys"), "-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "LogLevel=ERROR", "-o", "SetEnv=SHLVL=2 "+asCommand+"=1")
			c.Stdin, c.Stdout, c.Stderr = socket, socket, os.Stderr
			if err := c.Start(); err != nil {
				t.Error(err)
			}
			socket.Close()
			go c.Wait()
		}
	}()
	return &keyedHost{base, l.Addr().(*net.TCPAddr).Port}
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
	others, dirs := filepath.Join(filepath.Dir(dirs[0]), "others"), dirs[:3]
	if err := os.Rename(dirs[0][:len(dirs[0])-1]+"3", others); err != nil {
		t.Fatal(err)
	}
	forced := func(flags string) string {
		return fmt.Sprintf(`restrict,command="%s rank %s"`, thisProgram(t), flags)
	}
	at := func(dir string) string { return "127.0.0.1:" + dir }
	run := func(args ...string) result {
		s := starting()
		s.Program = thisProgram(t)
		return resultIn(t.Context(), s, append(args, "--ssh", h.ssh())...)
	}
	names := []string{at(dirs[0]), at(dirs[1]), at(dirs[2])}
	h.permit(t, forced("--only "+strings.Join(dirs, ",")))
	want, before := contents(t, dirs), contents(t, []string{others})
	for _, verb := range [][]string{{"protect", "--tolerate", "1"}, {"verify"}, {"status"}, {"recover"}} {
		if verb[0] == "recover" {
			removeAll(t, dirs[1])
		}
		if r := run(append(verb, names...)...); r.code != exit.OK {
			t.Fatalf("%q: %+v", verb, r)
		}
	}
	if got := contents(t, dirs); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"protect", "--tolerate", "1", names[0], names[1], at(others)}, "127.0.0.1: this key permits "},
		{append([]string{"recover", "--file", "ckpt", "--to", at(others)}, names...), "lies elsewhere"},
		{append([]string{"verify", "--remote-path", "copy"}, names...), "leave --remote-path copy out"},
		{[]string{"encode", "-o", "{host}:" + others, at(dirs[0] + "/ckpt"), at(dirs[1] + "/ckpt")}, "does not run the verb encode"},
	} {
		if r := run(c.args...); r.code == exit.OK || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("%q: %+v: want %q", c.args, r, c.want)
		}
	}
	// Somebody else has written the launch, or types a command.
	sent, _ := json.Marshal(launch.Start{Verb: "protect", Flags: []launch.Flag{{Name: "ssh", Value: "touch " + others + "/x"}}, Paths: []string{"a:" + dirs[0]}, Dir: dirs[0]})
	for command, want := range map[string]string{"volley rank": `"End":{"Text":"this key`, "touch " + others + "/x": "this key starts volley for ranks alone"} {
		c := exec.Command("sh", "-c", h.ssh()+" 127.0.0.1 '"+command+"'")
		c.Stdin = bytes.NewReader(append(sent, '\n'))
		if said, _ := c.CombinedOutput(); !strings.Contains(string(said), want) {
			t.Errorf("%s: %s", command, said)
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

// onlyVariable has the directories of the only rank that the program of TestConfinedStandIn starts.
const onlyVariable = "VOLLEY_TEST_ONLY"

func init() {
	played["only"] = func([]string) int {
		return Main([]string{"rank", "--only", os.Getenv(onlyVariable)}, os.Stdout, os.Stderr)
	}
}

// TestConfinedStandIn has a rank that may do little stand for a node whose host does not answer, and copy its files out.
func TestConfinedStandIn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 3, 20_000)
	f.must(t, f.of("protect", "--tolerate", "1", dirs[0], dirs[1], dirs[2])...)
	base, out := t.TempDir(), t.TempDir()
	f.env = append(f.env, onlyVariable+"="+dirs[0]+","+dirs[1]+","+out)
	f.flags[3] = filepath.Join(base, "only")
	if err := os.Symlink(thisProgram(t), f.flags[3]); err != nil {
		t.Fatal(err)
	}
	line := func(args ...string) []string {
		return slices.Concat(args, f.flags, []string{"host0:" + dirs[0], "host1:" + dirs[1], "dead:" + dirs[2]})
	}
	if r := f.run(line("status")...); r.code != exit.Wrong || !strings.Contains(r.stdout, "unreachable  dead:") || !strings.Contains(r.stdout, "no more nodes may be lost now") {
		t.Errorf("%+v", r)
	}
	f.must(t, line("recover", "--to", "host0:"+out)...)
	if got, want := filesOf(t, filepath.Join(out, "node.2")), filesOf(t, dirs[2]); !maps.Equal(got, want) {
		t.Errorf("copied out %s, want %s", got, want)
	}
	if r := f.run(line("recover", "--to", "host0:"+base)...); r.code == exit.OK || !strings.Contains(r.stdout+r.stderr, "lies elsewhere") {
		t.Errorf("%+v", r)
	}
}

// TestColonInPath has a host whose directories look to its rank as if they were at other hosts: it reaches none.
func TestColonInPath(t *testing.T) {
	t.Parallel()
	f, base := newFleet(t), t.TempDir()
	f.env = append(f.env, homeVariable+"="+base)
	args := slices.Concat([]string{"protect", "--tolerate", "1"}, f.flags)
	for _, name := range []string{"a:1", "a:2", "a:3"} {
		lay(t, filepath.Join(base, name, "file"), []byte(name), 0o644)
		args = append(args, "host:"+name)
	}
	f.must(t, args...)
	if _, err := os.Stat(filepath.Join(base, "a:3", ".volley")); err != nil {
		t.Error(err)
	}
}
