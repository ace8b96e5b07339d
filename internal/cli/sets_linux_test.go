package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestSetsLaunch protects the directories of six hosts in two sets, loses one of each set, and replaces both. A host
// that does not answer holds up its set only.
func TestSetsLaunch(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 6, 20_000)
	before := contents(t, dirs)
	with := func(verb string, args ...string) []string {
		var at []string
		for i, dir := range dirs {
			at = append(at, fmt.Sprintf("host%d:%s", i, dir))
		}
		file := writeGroup(t, at, []string{"A", "A", "B", "B", "C", "C"})
		return slices.Concat([]string{verb}, f.flags, args, []string{"--group-size", "3", "--group", file})
	}
	at := filepath.Join(t.TempDir(), "volley.prom")
	text := f.must(t, with("protect", "--tolerate", "1", "--metrics", at)...)
	if got := metricsOf(t, at, "protect"); got["nodes"] != 6 || got["generation"] != 1 {
		t.Errorf("metrics of two sets: %v", got)
	}
	wants(t, text, "set 0 of 2: host0:"+dirs[0]+" (A), host2:"+dirs[2]+" (B), host4:"+dirs[4]+" (C)\n", "set 1 of 2: host1:")
	if strings.Count(text, "protected, generation 1") != 2 {
		t.Fatal(text)
	}
	removeAll(t, dirs[2], dirs[5])
	dirs[2], dirs[5] = filepath.Join(t.TempDir(), "new.0"), filepath.Join(t.TempDir(), "new.1")
	if text = f.must(t, with("recover")...); strings.Contains(text, "failure domain") {
		t.Error(text)
	}
	if list := setsOf(t, f.must(t, with("verify", "--json")...)); len(list) != 2 || len(list[0].Report) == 0 || list[1].Domains[2] != "C" {
		t.Errorf("%+v", list)
	}
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	if r := f.run(append(f.of("verify", dirs[0], dirs[1]), "host0:"+dirs[0], "--group-size", "3")...); r.code != exit.Usage || !strings.Contains(r.stderr, "host0:"+dirs[0]+" is there twice") {
		t.Errorf("%+v", r)
	}
	args := with("protect", "--tolerate", "1")
	file := args[len(args)-1]
	replaceIn(t, file, "host3:", "dead:")
	r := f.run(args...)
	if r.code == exit.OK || strings.Count(r.stdout, "protected, generation 2") != 1 || strings.Count("\n"+r.stderr, "\nvolley: set 1: dead:") != 1 {
		t.Errorf("%+v", r)
	}
	args[0] = "recover"
	if r := f.run(slices.DeleteFunc(args, func(a string) bool { return a == "--tolerate" || a == "1" })...); r.code == exit.OK || !strings.Contains(r.stderr, "No route to host") || strings.Contains(r.stdout, "recovered") {
		t.Errorf("%+v", r)
	}
	if r := f.run(append(with("recover"), "--to", fmt.Sprint(t.TempDir()))...); r.code != exit.Usage || !strings.Contains(r.stderr, "--to is for one group") {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}
