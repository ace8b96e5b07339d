package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
		must(t, os.RemoveAll(dir))
	}
}

// contents returns what directories hold, sorted: lost ones may come back in each other's place.
func contents(t *testing.T, dirs []string) []string {
	t.Helper()
	return slices.Sorted(slices.Values(dataOfAll(t, dirs)))
}

// have fails the test unless directories hold that.
func have(t *testing.T, dirs, want []string) {
	t.Helper()
	equal(t, contents(t, dirs), want)
}

// bare fails the test where directories have something of Volley's.
func bare(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(dir, ".volley")); err == nil {
			t.Errorf("%s has a .volley", dir)
		}
	}
}

// hasOne fails unless a text says something of one set, which begins so.
func hasOne(t *testing.T, text, begin string) {
	t.Helper()
	if strings.Count("\n"+text, "\nvolley: ") != 1 || !strings.Contains("\n"+text, "\nvolley: "+begin) {
		t.Errorf("%s: want %s once", text, begin)
	}
}

// TestSets protects ten directories in sets, loses one of each set, and brings them back in any order. TestSetsElsewhere
// loses more.
func TestSets(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 10, 20_000)
	before, first, was := contents(t, dirs), dirs, dataOf(t, dirs[7])
	const size = " --group-size 4"
	list := setsOf(t, expect(t, exit.OK, "protect --json --tolerate 1 --dry-run"+size, dirs))
	if len(list) != 3 || len(list[0].Dirs) != 3 || len(list[2].Dirs) != 4 || !strings.Contains(string(list[2].Report), `"places"`) {
		t.Fatalf("%+v", list)
	}
	if there, err := filepath.Glob(filepath.Join(filepath.Dir(dirs[0]), "*", ".volley")); err != nil || there != nil {
		t.Errorf("a dry run has written %v: %v", there, err)
	}
	for n, r := range setsOf(t, expect(t, exit.OK, "protect --json --tolerate 1"+size, dirs)) {
		if !slices.Equal(r.Dirs, list[n].Dirs) {
			t.Errorf("set %d is %v, and was to be %v", n, r.Dirs, list[n].Dirs)
		}
	}
	expect(t, exit.OK, "verify"+size, dirs, "set 0 of 3: "+list[0].Dirs[0]+", ", "\nwhole: 3 nodes")
	expect(t, exit.Usage, "verify", dirs, "of 3 groups: give those of one; --group-size N")
	removeAll(t, dirs[2], dirs[3], dirs[7])
	if text := expect(t, exit.Wrong, "status"+size, dirs); strings.Count(text, "volley: set ") != 3 {
		t.Error(text)
	}
	expect(t, exit.OK, "recover"+size, dirs)
	equal(t, dataOf(t, dirs[7]), was)
	removeAll(t, dirs[2], dirs[3], dirs[7])
	base := t.TempDir()
	dirs = []string{first[9], first[8], first[6], first[5], first[4], first[1], first[0], filepath.Join(base, "0"), filepath.Join(base, "1"), filepath.Join(base, "2")}
	expect(t, exit.OK, "recover"+size, dirs)
	have(t, dirs, before)
}

// TestSetsCutOff has a first protect of sets end in the middle, also twice, when each has told a node of its own who it
// is: the next one makes the sets that are missing.
func TestSetsCutOff(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 2} { // who are of other runs
		dirs := writeNodes(t, 9, 1000)
		expect(t, exit.OK, "protect --tolerate 1 --group-size 3", dirs)
		for n, dir := range dirs[3:] { // nothing of set 2
			meta := filepath.Join(dir, ".volley")
			pending := filepath.Join(meta, "pending.1")
			if others == 0 && n == 1 { // of set 1 one node has said who it is
				must(t, errors.Join(os.Rename(filepath.Join(meta, "generation.1"), pending), os.Remove(filepath.Join(pending, "manifest.json"))))
				continue
			}
			removeAll(t, meta)
			if n < others {
				text := fmt.Sprintf(`{"format":"volley-group","group":"of protect %d","node":%d,"nodes":3}`, n, n)
				must(t, errors.Join(os.MkdirAll(pending, 0o700), os.WriteFile(filepath.Join(pending, "node.json"), disk.Seal([]byte(text)), 0o600)))
			}
		}
		slices.Reverse(dirs)
		expect(t, exit.OK, "protect --tolerate 1 --group-size 3", dirs)
		list := setsOf(t, expect(t, exit.OK, "verify --json --group-size 3", dirs))
		if len(list) != 3 {
			t.Fatalf("%+v", list)
		}
		removeAll(t, list[0].Dirs[1], list[1].Dirs[0], list[2].Dirs[2])
		expect(t, exit.OK, "recover --group-size 3", dirs)
		expect(t, exit.OK, "verify --group-size 3", dirs)
	}
}

// TestSetsDomains has a group file with domains, and what is wrong with flags and directories: no set begins.
func TestSetsDomains(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 1000)
	good := " --group " + writeGroup(t, dirs, []string{"A", "A", "B", "B", "C", "C"})
	full := " --group " + writeGroup(t, dirs, []string{"A", "A", "A", "B", "B", "C"})
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dirs[0], link))
	const protect = "protect --tolerate 1 --dry-run --group-size 3"
	expect(t, exit.OK, protect+good, nil, "set 0 of 2: "+dirs[0]+" (A), "+dirs[2]+" (B), "+dirs[4]+" (C)\n")
	for _, c := range []struct {
		words string
		dirs  []string
		want  string
	}{
		{protect + full, nil, "failure domain A has 3 directories without a set, and there are 2 new sets: two of them would be in one set, and be lost together; sets of at most 2 keep them apart"},
		{protect + " --group none", nil, "none: no such file"},
		{"protect --tolerate 1 --group-size -3", dirs, "want 2 or more"},
		{protect + " --believe 0", dirs, "--believe is for one group"},
		{protect + " --tolerate 3", dirs, "volley: set 1: "},
		{"protect --tolerate 1 --group-size 2", []string{dirs[0], dirs[1], dirs[0], dirs[2]}, "give "},
		{"protect --tolerate 1 --group-size 2", []string{dirs[0], dirs[1], link, dirs[2]}, "give "},
		{"protect --tolerate 1 --group-size 2", []string{dirs[0], dirs[1], filepath.Join(dirs[0], "sub"), dirs[2]}, "give "},
	} {
		expect(t, exit.Usage, c.words, c.dirs, c.want)
	}
	if list, err := filepath.Glob(filepath.Join(filepath.Dir(dirs[0]), "*", ".volley")); err != nil || list != nil {
		t.Errorf("%v was written: %v", list, err)
	}
}

// TestSetsLost loses a set as a whole, of which no directory is named: every verb says so, with the number that protect
// gave it, and does its work with the others.
func TestSetsLost(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 8, 5000)
	const size = " --group-size 2"
	sets := setsOf(t, expect(t, exit.OK, "protect --tolerate 1 --json"+size, dirs))
	lost := sets[2].Dirs
	removeAll(t, lost...)
	removeAll(t, sets[3].Dirs[1])
	for _, verb := range []string{"verify", "protect --tolerate 1"} { // also if empty ones are in its place
		expect(t, exit.Wrong, verb+size, dirs, "volley: set 2: none of its directories")
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains(lost, dir) })
	slices.Reverse(dirs)
	for _, verb := range []string{"recover", "verify", "status", "protect --tolerate 1", "verify"} {
		r := volleyRun(append(strings.Fields(verb+size), dirs...)...)
		r.is(t, exit.Wrong, "set 3 of 4: "+sets[3].Dirs[0])
		hasOne(t, r.stderr, "set 2: none of its directories is named, ")
	}
	expect(t, exit.OK, "protect --tolerate 1", sets[3].Dirs) // by itself: it stays the same set
	list := setsOf(t, volleyRun(append(strings.Fields("verify --json"+size), dirs...)...).stdout)
	if len(list) != 4 || list[2].Error == "" || list[2].Dirs == nil || len(list[2].Dirs) != 0 || !slices.Equal(list[3].Dirs, sets[3].Dirs) {
		t.Errorf("%+v", list)
	}
	expect(t, exit.OK, "protect --tolerate 1 --force"+size, dirs)
	if list := setsOf(t, expect(t, exit.OK, "verify --json"+size, dirs)); len(list) != 3 {
		t.Errorf("%+v", list)
	}
}
