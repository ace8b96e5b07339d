package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"volley/internal/cli/groups"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
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
		"lies elsewhere":               {Verb: "protect", Paths: []string{out}, Dir: in},
		"lies elsewhere ":              {Verb: "status", Paths: []string{in}, Dir: out},
		"lies elsewhere   ":            verb("recover", "--to="+out+"/x"),
		"leads to " + out:              verb("protect", "--meta="+in+"/../"+filepath.Base(out)),
		"lies elsewhere     ":          verb("protect", "--key="+out+"/ckpt"),
		"does not permit --metrics":    verb("protect", "--metrics="+out+"/m"),
		"does not permit --group":      verb("protect", "--group="+out+"/g"),
		"does not permit --ssh":        verb("protect", "--ssh=touch "+out+"/x"),
		"does not run the verb encode": verb("encode", "--output="+out+"/x"),
		"does not run the verb rank":   verb("rank"),
		"does not permit --bogus":      verb("protect", "--bogus", "--metrics="+out+"/m"),
	} {
		_, err := key.Admit(sent)
		if err == nil || exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%+v: %v: want %s", sent, err, name)
		}
	}
	have(t, dirs, before)

	// Every flag of a verb is known to be harmless, is a path, or is refused. What a launch sends is not refused.
	for _, cmd := range groups.Verbs(session.New()) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			kept := append([]string{"comm", "group", "metrics", "remote-path", "ssh"}, ranks.FlagNames...)
			if !slices.Contains(slices.Concat(key.Flags, key.Paths, kept), f.Name) {
				t.Errorf("%s --%s is refused", cmd.Name(), f.Name)
			}
		})
	}
	want := verb("recover", "--json=true", "--key=none", "--file=-x", "--file=--to="+out, "--to="+in+"/new")
	if got, err := key.Admit(want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v: want %+v", got, err, want)
	}
}

// TestForcedCommand reaches a host by a key that may do little there, by sshd and authorized_keys: what it permits works
// as ever, and a launch that asks for more gets nothing.
func TestForcedCommand(t *testing.T) {
	f := newFarm(t, "1gbit", "a", "admin")
	copyFile(t, filepath.Join(f.base, "volley"), f.path("a", "usr/local/bin/volley"), 0o755)
	permit := func(flags string) {
		line := fmt.Sprintf(`restrict,command="/usr/local/bin/volley rank %s" %s`, flags, readFile(t, f.base, "user.pub"))
		lay(t, f.path("a", "root/.ssh/authorized_keys"), []byte(line), 0o600)
	}
	permit("--only /data/0,/data/1,/data/2")
	var dirs []string
	names := ""
	for n, dir := range []string{"0", "1", "2"} {
		dirs = append(dirs, f.path("a", "data/"+dir))
		lay(t, filepath.Join(dirs[n], "ckpt"), bytes.Repeat([]byte(dir), 20_000), 0o644)
		names += " a:/data/" + dir
	}
	others := f.path("a", "data/others")
	lay(t, filepath.Join(others, "ckpt"), []byte("others'"), 0o644)
	want, before := contents(t, dirs), dataOf(t, others)
	for _, verb := range []string{"protect --tolerate 1", "verify", "status", "recover"} {
		if verb == "recover" {
			removeAll(t, dirs[1])
		}
		f.run("volley "+verb+names).is(t, exit.OK)
	}
	have(t, dirs, want)
	sent, _ := json.Marshal(launch.Start{Verb: "protect", Flags: []launch.Flag{{Name: "ssh", Value: "touch /data/others/x"}}, Paths: []string{"a:/data/0"}, Dir: "/data/0"})
	lay(t, f.path("admin", "etc/volley/sent"), append(sent, '\n'), 0o600)
	for line, want := range map[string]string{
		"volley protect --tolerate 1 a:/data/0 a:/data/1 a:/data/others":     "a: this key permits ",
		"volley recover --file ckpt --to a:/data/others" + names:             "lies elsewhere",
		"volley encode -o {host}:/data/others a:/data/0/ckpt a:/data/1/ckpt": "does not run the verb encode",
		"ssh a volley rank <sent; false":                                     `"End":{"Text":"this key`, // somebody else has written the launch
		"ssh a touch /data/others/x":                                         "this key starts volley for ranks alone",
	} {
		if r := f.run(line); r.code == exit.OK || !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("%s: %+v: want %q", line, r, want)
		}
	}
	equal(t, dataOf(t, others), before)
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
	must(t, os.Symlink(thisProgram(t), f.flags[3]))
	line := func(args ...string) []string {
		return slices.Concat(args, f.flags, []string{"host0:" + dirs[0], "host1:" + dirs[1], "dead:" + dirs[2]})
	}
	f.run(line("status")...).is(t, exit.Wrong, "unreachable  dead:", "no more nodes may be lost now")
	f.must(t, line("recover", "--file", "*", "--to", "host0:"+out)...)
	equal(t, filesOf(t, filepath.Join(out, "node.2")), filesOf(t, dirs[2]))
	if r := f.run(line("recover", "--file", "*", "--to", "host0:"+base)...); r.code == exit.OK || !strings.Contains(r.stdout+r.stderr, "lies elsewhere") {
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
