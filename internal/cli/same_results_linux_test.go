package cli

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"volley/internal/cli/ranks"
	"volley/internal/exit"
)

// Ways are those to run a verb on nodes or files, with one process each but for local. They return the exit code and
// what was printed. A build with MPI has one more.
var ways = map[string]func(t *testing.T, verb []string, at []string) (int, string){
	"local": func(_ *testing.T, verb []string, at []string) (int, string) {
		r := volleyRun(append(verb, at...)...)
		return r.code, r.stdout + r.stderr
	},
	"tcp": func(t *testing.T, verb []string, at []string) (int, string) {
		codes, text := newRanks(t, len(at), func(r int, c *exec.Cmd) { c.Args = append(c.Args, at[r]) }, verb...).do()
		return slices.Max(codes), text
	},
	"ssh": func(t *testing.T, verb []string, at []string) (int, string) {
		verb = slices.Clone(verb)
		if i := slices.Index(verb, "-o"); i > 0 {
			verb[i+1] = ranks.HostWord + ":" + verb[i+1]
		}
		f := newFleet(t)
		line := append(f.flags, verb[1:]...)
		for i, name := range at {
			line = append(line, fmt.Sprintf("host%d:%s", i, name))
		}
		r := f.run(append(verb[:1], line...)...)
		f.ended(t)
		return r.code, r.stdout + welcomed.ReplaceAllString(r.stderr, "")
	},
}

// welcomed are the lines that fakeSSH says at login.
var welcomed = regexp.MustCompile(`(?m)^host\d: (Welcome.*|\\x1b\[2J)\n`)

// reported are what reports say of times, hosts and the transport: how long something took, when, which
// host has a directory, and what the ranks told each other before the first packet, which one process needs not. The
// records of nodes have the time of the run, compressed: their length may be another by some bytes. c1 of a group counts
// the rounds of all windows, and one process with all nodes takes smaller windows. The next command is as the run was given.
var reported = regexp.MustCompile(`"(\w*seconds|since|from|to|time|control_rounds|control_bytes|record_bytes)": [^,\n]+|\bhost\d:|(?m)^    "c1": .*$|next: volley .*$`)

// TestSameResults compares what verbs make and say in one process, by flags, by ssh and by MPI, to the byte.
func TestSameResults(t *testing.T) {
	t.Parallel()
	base := filepath.Dir(writeNodes(t, 4, 300_000)[0])
	saved := base + ".saved"
	must(t, os.Rename(base, saved))
	var dirs, files []string
	for k := range 4 {
		dirs = append(dirs, filepath.Join(base, fmt.Sprintf("node.%d", k)))
		files = append(files, filepath.Join(dirs[k], "ckpt"))
	}
	coded := filepath.Join(base, "coded")
	outcome := func(way string) (reports []string, made map[string]string) {
		os.RemoveAll(base)
		copyTree(t, saved, base)
		time.Sleep(50 * time.Millisecond) // or protect reads again what has changed in the same tick of the clock
		do := func(want int, at []string, verb ...string) {
			t.Helper()
			code, text := ways[way](t, append(verb, "--json"), at)
			if code != want {
				t.Fatalf("%s: %s: exit code %d, want %d: %s", way, verb, code, want, text)
			}
			reports = append(reports, reported.ReplaceAllString(text, "$1"))
		}
		do(exit.OK, dirs, "protect", "--tolerate", "2")
		rewrite(t, files[0], []byte("other content"))
		do(exit.OK, dirs, "protect", "--tolerate", "2")
		must(t, os.RemoveAll(dirs[1]))
		vanish(t, files[2])
		do(exit.Wrong, dirs, "verify")
		do(exit.OK, dirs, "recover")
		do(exit.OK, dirs, "verify")
		do(exit.OK, files, "encode", "-o", coded, "--algorithm", "exchange", "--network", "10gbit/20us") // or ranks of one host send no messages, and one process takes another plan
		made = filesOf(t, base)
		for _, dir := range dirs {
			parity, err := os.ReadFile(filepath.Join(dir, ".volley/generation.2/parity"))
			must(t, err)
			made[dir+" parity"] = string(parity)
		}
		return reports, made
	}
	reports, made := outcome("local")
	for way := range ways {
		if way == "local" {
			continue
		}
		t.Run(way, func(t *testing.T) {
			r, m := outcome(way)
			for i, want := range reports {
				if r[i] != want {
					t.Errorf("report %d:\n%s\nin one process\n%s", i, r[i], want)
				}
			}
			if !maps.Equal(m, made) {
				t.Errorf("files %v, in one process %v", slices.Sorted(maps.Keys(m)), slices.Sorted(maps.Keys(made)))
			}
		})
	}
}
