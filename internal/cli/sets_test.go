package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/disk"
	"volley/internal/exit"
)

// setsOf decodes the reports of sets.
func setsOf(t *testing.T, text string) (list []setText) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var r setText
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		list = append(list, r)
	}
	return list
}

// removeAll removes directories.
func removeAll(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// contents returns what directories hold, sorted: lost ones may come back in each other's place.
func contents(t *testing.T, dirs []string) (list []string) {
	t.Helper()
	for _, dir := range dirs {
		list = append(list, dataOf(t, dir))
	}
	slices.Sort(list)
	return list
}

// TestSets protects ten directories in sets, loses one of each set, and brings them back in any order. A set that has
// lost too much holds up no other.
func TestSets(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 10, 20_000)
	with := func(verb string, args ...string) []string {
		return slices.Concat([]string{verb, "--group-size", "4", "--json"}, args, dirs)
	}
	before := contents(t, dirs)
	list := setsOf(t, mustRun(t, with("protect", "--tolerate", "1", "--dry-run")...))
	if len(list) != 3 || len(list[0].Dirs) != 3 || len(list[2].Dirs) != 4 || !strings.Contains(string(list[2].Report), `"places"`) {
		t.Fatalf("%+v", list)
	}
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(dir, ".volley")); err == nil {
			t.Fatal("a dry run has written")
		}
	}
	for n, r := range setsOf(t, mustRun(t, with("protect", "--tolerate", "1")...)) {
		if !slices.Equal(r.Dirs, list[n].Dirs) {
			t.Errorf("set %d is %v, and was to be %v", n, r.Dirs, list[n].Dirs)
		}
	}
	wants(t, mustRun(t, slices.Concat([]string{"verify", "--group-size", "4"}, dirs)...), "set 0 of 3: "+list[0].Dirs[0]+", ", "\nwhole: 3 nodes")
	if r := volleyRun(append([]string{"verify"}, dirs...)...); r.code != exit.Usage || !strings.Contains(r.stderr, "of 3 groups: give those of one; --group-size N") {
		t.Errorf("%+v", r)
	}
	was := dataOf(t, dirs[7])
	removeAll(t, dirs[2], dirs[3], dirs[7])
	if r := volleyRun(with("status")...); r.code != exit.Wrong || strings.Count(r.stderr, "volley: set ") != 3 {
		t.Errorf("%+v", r)
	}
	mustRun(t, with("recover")...)
	if got := dataOf(t, dirs[7]); got != was {
		t.Errorf("%s is %s, was %s", dirs[7], got, was)
	}
	removeAll(t, dirs[2], dirs[3], dirs[7])
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains([]string{dirs[2], dirs[3], dirs[7]}, dir) })
	slices.Reverse(dirs)
	for i := range 3 {
		dirs = append(dirs, filepath.Join(t.TempDir(), fmt.Sprint("new.", i)))
	}
	mustRun(t, with("recover")...)
	mustRun(t, with("verify")...)
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	mustRun(t, with("protect", "--tolerate", "1")...) // a generation more, in the same sets
	all := setsOf(t, mustRun(t, with("verify")...))
	removeAll(t, all[0].Dirs[0], all[1].Dirs[0], all[1].Dirs[1], all[2].Dirs[0])
	r := volleyRun(with("recover")...)
	if r.code != exit.Usage || strings.Count("\n"+r.stderr, "\nvolley: ") != 1 {
		t.Fatalf("%+v", r)
	}
	wants(t, r.stderr, "volley: set ", "2 nodes are lost, and the group tolerates the loss of 1")
	if r := volleyRun(with("verify")...); r.code != exit.Wrong || strings.Count(r.stderr, "volley: set ") != 1 {
		t.Fatalf("%+v", r)
	}
}

// TestSetsMany loses as many of each of eight sets as may be lost.
func TestSetsMany(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 128, 1000)
	before := contents(t, dirs)
	verb := func(args ...string) []string { return slices.Concat(args, []string{"--group-size", "16"}, dirs) }
	mustRun(t, verb("protect", "--tolerate", "2")...)
	for i := 0; i < len(dirs); i += 16 {
		removeAll(t, dirs[i+3], dirs[i+9])
	}
	mustRun(t, verb("recover")...)
	mustRun(t, verb("verify")...)
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Error("not what was protected")
	}
}

// TestSetsCutOff has a first protect of sets end in the middle: the next one makes the sets that are missing.
func TestSetsCutOff(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 9, 20_000)
	verb := func(args ...string) []string { return slices.Concat(args, []string{"--group-size", "3"}, dirs) }
	mustRun(t, verb("protect", "--tolerate", "1")...)
	for n, dir := range dirs[3:] { // nothing of set 2; of set 1 one node has said who it is
		if n != 1 {
			removeAll(t, filepath.Join(dir, ".volley"))
			continue
		}
		shell(t, `cd "$1/.volley"; mv generation.1 pending.1; rm pending.1/manifest.json`, dir)
	}
	slices.Reverse(dirs)
	mustRun(t, verb("protect", "--tolerate", "1")...)
	list := setsOf(t, mustRun(t, verb("verify", "--json")...))
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	removeAll(t, list[0].Dirs[1], list[1].Dirs[0], list[2].Dirs[2])
	mustRun(t, verb("recover")...)
	mustRun(t, verb("verify")...)
}

// TestSetsCutOffTwice has two protects of a set end when each has told a node of its own who it is.
func TestSetsCutOffTwice(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 1000)
	protect := slices.Concat([]string{"protect", "--tolerate", "1", "--group-size", "3"}, dirs)
	mustRun(t, protect...)
	for n, dir := range dirs[3:] {
		removeAll(t, filepath.Join(dir, ".volley"))
		text := fmt.Sprintf(`{"format":"volley-group","group":"of protect %d","node":%d,"nodes":3}`, n, n)
		if n < 2 {
			pending := filepath.Join(dir, ".volley/pending.1")
			if err := errors.Join(os.MkdirAll(pending, 0o700), os.WriteFile(filepath.Join(pending, "node.json"), disk.Seal([]byte(text)), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustRun(t, protect...)
	if list := setsOf(t, mustRun(t, slices.Concat([]string{"verify", "--json", "--group-size", "3"}, dirs)...)); len(list) != 2 {
		t.Errorf("%+v", list)
	}
}

// TestSetsApart names a directory twice, by another name, and one within another: no set begins.
func TestSetsApart(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 100)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dirs[0], link); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{dirs[0], link, filepath.Join(dirs[0], "sub")} {
		if r := volleyRun("protect", "--tolerate", "1", "--group-size", "2", dirs[0], dirs[1], other, dirs[2]); r.code != exit.Usage || !strings.Contains(r.stderr, "give ") {
			t.Errorf("%+v", r)
		}
	}
	if list, err := filepath.Glob(filepath.Join(filepath.Dir(dirs[0]), "*", ".volley")); err != nil || list != nil {
		t.Errorf("%v was written: %v", list, err)
	}
}

// TestSetsDomains has a group file with domains, and what is wrong with flags.
func TestSetsDomains(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 1000)
	file := ""
	write := func(racks string) {
		var list []string
		for _, rack := range racks {
			list = append(list, "rack"+string(rack))
		}
		file = writeGroup(t, dirs, list)
	}
	protect := func(args ...string) result {
		if !slices.Contains(args, "--group") {
			args = append(args, dirs...)
		}
		return volleyRun(slices.Concat([]string{"protect", "--tolerate", "1", "--dry-run"}, args)...)
	}
	write("AABBCC")
	r := protect("--group-size", "3", "--group", file)
	if r.code != exit.OK {
		t.Fatalf("%+v", r)
	}
	wants(t, r.stdout, "set 0 of 2: "+dirs[0]+" (rackA), "+dirs[2]+" (rackB), "+dirs[4]+" (rackC)\n")
	write("AAABBC")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--group-size", "3", "--group", file}, "failure domain rackA has 3 directories without a set, and there are 2 new sets: two of them would be in one set, and be lost together; sets of at most 2 keep them apart"},
		{[]string{"--group-size", "3", "--group", "none"}, "none: no such file"},
		{[]string{"--group-size", "3", "--domain", "none"}, "want env:NAME, or a group file"},
		{[]string{"--group-size", "3", "--domain", "env:RACK"}, "--domain env:RACK: it is for ranks, each of which has a variable, and these directories are all of this process"},
		{[]string{"--domain", "env:RACK"}, "--group-size N says how large"},
		{[]string{"--group-size", "-3"}, "want 2 or more"},
		{[]string{"--group-size", "3", "--believe", "0"}, "--believe is for one group"},
	} {
		if r := protect(c.args...); r.code != exit.Usage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
	if r := protect("--group-size", "3", "--tolerate", "3"); r.code != exit.Usage || strings.Count(r.stderr, "volley: set ") != 2 {
		t.Errorf("as many as a set has: %+v", r)
	}
}

// TestSetsLost loses a set as a whole, of which no directory is named: every verb says so, with the number that protect
// gave it, and does its work with the others.
func TestSetsLost(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 8, 5000)
	with := func(verb string, args ...string) []string {
		return slices.Concat([]string{verb, "--group-size", "2"}, args, dirs)
	}
	sets := setsOf(t, mustRun(t, with("protect", "--tolerate", "1", "--json")...))
	lost := sets[2].Dirs
	removeAll(t, lost...)
	removeAll(t, sets[3].Dirs[1])
	for _, args := range [][]string{{"verify"}, {"protect", "--tolerate", "1"}} { // also if empty ones are in its place
		if r := volleyRun(with(args[0], args[1:]...)...); r.code != exit.Wrong || !strings.Contains(r.stderr, "volley: set 2: none of its directories") {
			t.Errorf("named: %s: %+v", args, r)
		}
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains(lost, dir) })
	slices.Reverse(dirs)
	const missing = "volley: set 2: none of its directories is named, "
	for _, args := range [][]string{{"recover"}, {"verify"}, {"status"}, {"protect", "--tolerate", "1"}, {"verify"}} {
		r := volleyRun(with(args[0], args[1:]...)...)
		if r.code != exit.Wrong || strings.Count(r.stderr, "volley: ") != 1 || !strings.HasPrefix(r.stderr, missing) || !strings.Contains(r.stdout, "set 3 of 4: "+sets[3].Dirs[0]) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	mustRun(t, append([]string{"protect", "--tolerate", "1"}, sets[3].Dirs...)...) // by itself: it stays the same set
	list := setsOf(t, volleyRun(with("verify", "--json")...).stdout)
	if len(list) != 4 || list[2].Error == "" || list[2].Dirs == nil || len(list[2].Dirs) != 0 || !slices.Equal(list[3].Dirs, sets[3].Dirs) {
		t.Errorf("%+v", list)
	}
	mustRun(t, with("protect", "--tolerate", "1", "--force")...)
	if list := setsOf(t, mustRun(t, with("verify", "--json")...)); len(list) != 3 {
		t.Errorf("%+v", list)
	}
}

// TestSetsRanks has a process for each node, which find their sets by a variable of their environment. A set that
// fails holds up no other, and all processes end alike.
func TestSetsRanks(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 7, 50_000)
	before := contents(t, dirs)
	order := []int{0, 1, 2, 3, 4, 5, 6}
	ranks := func(args ...string) ([]int, string) {
		t.Helper()
		return newRanks(t, len(order), func(r int, c *exec.Cmd) {
			c.Args = append(c.Args, dirs[order[r]])
			c.Env = append(c.Env, fmt.Sprint("RACK=rack", order[r]%4))
		}, slices.Concat(args[:1], []string{"--group-size", "4", "--domain", "env:RACK"}, args[1:])...).do()
	}
	at := filepath.Join(t.TempDir(), "volley.prom")
	codes, text := ranks("protect", "--tolerate", "1", "--metrics", at)
	if !allAre(codes, exit.OK) || strings.Count(text, "protected, generation 1") != 2 || strings.Count(text, "set 1 of 2: ") != 1 {
		t.Fatalf("%v: %s", codes, text)
	}
	if got := metricsOf(t, at, "protect"); got["nodes"] != 7 || got["generation"] != 1 {
		t.Errorf("metrics of two sets: %v", got)
	}
	var sets [2][]string // the directories of each
	for line := range strings.Lines(text) {
		var n int
		if _, err := fmt.Sscanf(line, "set %d of 2:", &n); err == nil {
			for _, dir := range dirs {
				if strings.Contains(line, dir+" ") {
					sets[n] = append(sets[n], dir)
				}
			}
		}
	}
	if len(sets[0])+len(sets[1]) != 7 {
		t.Fatal(text)
	}
	removeAll(t, sets[0][1], sets[1][2])
	order = []int{3, 6, 1, 0, 5, 4, 2}
	if codes, text = ranks("recover"); !allAre(codes, exit.OK) {
		t.Fatalf("%v: %s", codes, text)
	}
	if codes, text = ranks("verify"); !allAre(codes, exit.OK) {
		t.Fatalf("%v: %s", codes, text)
	}
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	seven := dirs
	dirs, order = sets[1], []int{0, 1, 2, 3}[:len(sets[1])]
	if codes, text = ranks("verify"); !allAre(codes, exit.Wrong) || strings.Count(text, "volley: ") != 1 || !strings.Contains(text, "volley: set 0: none of its directories is named, ") {
		t.Errorf("%v: %s", codes, text)
	}
	dirs, order = seven, []int{3, 6, 1, 0, 5, 4, 2}
	removeAll(t, sets[0][0], sets[0][1], sets[1][0])
	codes, text = ranks("recover")
	if !allAre(codes, exit.Usage) || strings.Count(text, "volley: ") != 1 || !strings.Contains(text, ": 2 nodes are lost") {
		t.Fatalf("%v: %s", codes, text)
	}
	if codes, text = ranks("status"); !allAre(codes, exit.Wrong) || strings.Count(text, "volley: set ") != 1 {
		t.Fatalf("%v: %s", codes, text)
	}
}

// lose removes a file as a disk that loses it: its directory keeps its time.
func lose(t *testing.T, path string) {
	t.Helper()
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err == nil {
		removeAll(t, path)
		err = os.Chtimes(dir, info.ModTime(), info.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
}
