package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestSetsElsewhere protects the directories of six hosts, or of ranks, in two sets by their racks, loses one of each set,
// and gives them in another order. A set that fails, or has a host that does not answer, holds up no other, and all
// processes end alike.
func TestSetsElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for name, run := range map[string]func(words, dirs, racks []string) result{
		"ssh": func(words, dirs, racks []string) result {
			var list []string
			for i, dir := range dirs {
				list = append(list, "host"+filepath.Ext(dirs[i])+":"+dir)
			}
			return f.run(slices.Concat(words, f.flags, []string{"--group", writeGroup(t, list, racks)})...)
		},
		"tcp": func(words, dirs, racks []string) result {
			return newRanks(t, len(dirs), nil, append(words, "--group", writeGroup(t, dirs, racks))...).alike()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := writeNodes(t, 6, 20_000)
			before := contents(t, dirs)
			do := func(code int, words string, nodes ...int) result {
				t.Helper()
				var list, racks []string
				for _, n := range nodes {
					list, racks = append(list, dirs[n]), append(racks, string("AABBCC"[n]))
				}
				r := run(append(strings.Fields(words), "--group-size", "3"), list, racks)
				r.is(t, code)
				return r
			}
			metrics := filepath.Join(t.TempDir(), "volley.prom")
			text := do(exit.OK, "protect --tolerate 1 --metrics "+metrics, 0, 1, 2, 3, 4, 5).stdout
			if strings.Count(text, "protected, generation 1") != 2 || strings.Count(text, "set 0 of 2: ") != 1 || strings.Count(text, "set 1 of 2: ") != 1 {
				t.Fatal(text)
			}
			wants(t, text, dirs[0]+" (A), ", dirs[2]+" (B), ", dirs[4]+" (C)\n")
			if got := metricsOf(t, metrics, "protect"); got["nodes"] != 6 || got["generation"] != 1 {
				t.Errorf("metrics of two sets: %v", got)
			}
			removeAll(t, dirs[2], dirs[5])
			do(exit.OK, "recover", 3, 1, 0, 5, 4, 2)
			if list := setsOf(t, do(exit.OK, "verify --json", 0, 1, 2, 3, 4, 5).stdout); len(list) != 2 || len(list[0].Report) == 0 || list[1].Domains[2] != "C" {
				t.Errorf("%+v", list)
			}
			have(t, dirs, before)
			hasOne(t, do(exit.Wrong, "verify", 3, 5, 1).stderr, "set 0: none of its directories is named, ")
			removeAll(t, dirs[0], dirs[2], dirs[1])
			r := do(exit.Usage, "recover", 3, 1, 0, 5, 4, 2)
			hasOne(t, r.stderr, "set 0: ")
			wants(t, r.stderr, ": 2 nodes are lost")
			hasOne(t, do(exit.Wrong, "status", 0, 1, 2, 3, 4, 5).stderr, "set ")
		})
	}
	dirs := writeNodes(t, 4, 1000)
	file := writeGroup(t, []string{"a:" + dirs[0], "b:" + dirs[1], "c:" + dirs[2], "dead:" + dirs[3]}, []string{"A", "A", "B", "B"})
	r := f.run(slices.Concat([]string{"protect", "--tolerate", "1", "--group-size", "2", "--group", file}, f.flags)...)
	if r.code != exit.Failed || strings.Count(r.stdout, "protected, generation 1") != 1 || strings.Count("\n"+r.stderr, "\nvolley: set 1: dead:") != 1 {
		t.Errorf("%+v", r)
	}
	f.run(slices.Concat([]string{"recover", "--group-size", "2", "--group", file, "--to", t.TempDir()}, f.flags)...).is(t, exit.Usage, "--to is for one group")
	f.ended(t)
}
