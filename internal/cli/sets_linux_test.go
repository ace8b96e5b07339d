package cli

import (
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
	hosts := []string{"host0:", "host1:", "host2:", "host3:", "host4:", "host5:"}
	do := func(code int, words string) result {
		t.Helper()
		var at []string
		for i, dir := range dirs {
			at = append(at, hosts[i]+dir)
		}
		file := writeGroup(t, at, []string{"A", "A", "B", "B", "C", "C"})
		r := f.run(slices.Concat(strings.Fields(words), f.flags, []string{"--group-size", "3", "--group", file})...)
		if r.code != code {
			t.Fatalf("%s: %+v", words, r)
		}
		return r
	}
	metrics := filepath.Join(t.TempDir(), "volley.prom")
	text := do(exit.OK, "protect --tolerate 1 --metrics "+metrics).stdout
	if got := metricsOf(t, metrics, "protect"); got["nodes"] != 6 || got["generation"] != 1 {
		t.Errorf("metrics of two sets: %v", got)
	}
	wants(t, text, "set 0 of 2: host0:"+dirs[0]+" (A), host2:"+dirs[2]+" (B), host4:"+dirs[4]+" (C)\n", "set 1 of 2: host1:")
	removeAll(t, dirs[2], dirs[5])
	dirs[2], dirs[5] = filepath.Join(t.TempDir(), "new.0"), filepath.Join(t.TempDir(), "new.1")
	if text := do(exit.OK, "recover").stdout; strings.Contains(text, "failure domain") {
		t.Error(text)
	}
	if list := setsOf(t, do(exit.OK, "verify --json").stdout); len(list) != 2 || len(list[0].Report) == 0 || list[1].Domains[2] != "C" {
		t.Errorf("%+v", list)
	}
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	wants(t, do(exit.Usage, "recover --to "+t.TempDir()).stderr, "--to is for one group")
	hosts[3] = "dead:"
	r := do(exit.Failed, "protect --tolerate 1")
	if strings.Count(r.stdout, "protected, generation 2") != 1 || strings.Count("\n"+r.stderr, "\nvolley: set 1: dead:") != 1 {
		t.Errorf("%+v", r)
	}
	if r := do(exit.Failed, "recover"); !strings.Contains(r.stderr, "No route to host") || strings.Contains(r.stdout, "recovered") {
		t.Errorf("%+v", r)
	}
	r = f.run(append(f.of("verify", dirs[0], dirs[1]), "host0:"+dirs[0], "--group-size", "3")...)
	if r.code != exit.Usage || !strings.Contains(r.stderr, "host0:"+dirs[0]+" is there twice") {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}
