package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestResizeElsewhere adds a node to a group of three hosts, or ranks, removes another, and loses one of those that are
// left. They come in other orders.
func TestResizeElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for name, run := range map[string]func(verb, add string, dirs []string) result{
		"ssh": func(verb, add string, dirs []string) result {
			args := slices.Concat(strings.Fields(verb), dirs)
			if add != "" {
				args = append(args, "--add", add)
			}
			return f.run(f.of(args...)...)
		},
		"tcp": func(verb, add string, dirs []string) result { // of which one has the directory that is added
			all := slices.Clone(dirs)
			if add != "" {
				all = slices.Insert(all, 0, "--add "+add)
			}
			return newRanks(t, len(all), func(r int, c *exec.Cmd) { c.Args = append(c.Args, strings.Fields(all[r])...) }, strings.Fields(verb)...).alike()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dirs := writeNodes(t, 4, 30_000)
			before := contents(t, dirs)
			do := func(code int, verb, add string, nodes []int, texts ...string) {
				t.Helper()
				var list []string
				for _, n := range nodes {
					list = append(list, dirs[n])
				}
				run(verb, add, list).is(t, code, texts...)
			}
			do(exit.OK, "protect --tolerate 1", "", []int{0, 1, 2})
			do(exit.OK, "resize", dirs[3], []int{2, 0, 1}, "added      ", dirs[3], "4 nodes, any 1 may be lost", "protected, generation 2")
			do(exit.OK, "verify", "", []int{0, 1, 2, 3}, "whole: 4 nodes")
			do(exit.Usage, "resize --remove 7", "", []int{0, 1, 2, 3}, `"7" is to be removed, and is no node`)
			do(exit.OK, "resize --remove 0", "", []int{3, 1, 0, 2}, "removed    ", dirs[0], "3 nodes, any 1 may be lost", "protected, generation 3")
			removeAll(t, dirs[3])
			do(exit.OK, "recover", "", []int{1, 2, 3})
			do(exit.OK, "verify", "", []int{1, 2, 3}, "whole: 3 nodes")
			have(t, dirs, before)
		})
	}
	dirs := writeNodes(t, 3, 100)
	hosts := []string{"a:" + dirs[0], "b:" + dirs[1], "c:" + dirs[2]}
	f.must(t, slices.Concat([]string{"protect", "--tolerate", "1"}, f.flags, hosts)...)
	text := f.must(t, slices.Concat([]string{"resize", "--add", hosts[2]}, f.flags, hosts)...)
	wants(t, text, "note: "+hosts[2]+" is a node of the group already, and is not added")
	hosts[2] = "/none" // its host does not answer
	f.run(slices.Concat([]string{"resize", "--remove", "/none"}, f.flags, hosts)...).is(t, exit.Usage, "/none is missing what was protected: recover it first; --force gives it up")
	f.must(t, slices.Concat([]string{"resize", "--force", "--remove", "/none"}, f.flags, hosts)...)
	f.ended(t)
}
