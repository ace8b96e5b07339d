package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestResize adds and removes nodes by a group file, which names those that there are at any time.
func TestResize(t *testing.T) {
	dirs := writeNodes(t, 6, 20_000)
	before := contents(t, dirs)
	file := filepath.Join(t.TempDir(), "group.yaml")
	text := "# disks of the rack\ndigest: sha256\nmembers:\n"
	for _, dir := range dirs[:4] {
		text += "  - dir: " + dir + " # a disk\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	do := func(code int, args ...string) string {
		t.Helper()
		r := volleyRun(append(args, "--group", file)...)
		if r.code != code {
			t.Fatalf("volley %v: %+v", args, r)
		}
		return r.stdout + r.stderr
	}
	lines := func() (list []string) {
		for line := range strings.Lines(string(readFile(t, file))) {
			if _, dir, ok := strings.Cut(line, "dir: "); ok {
				dir, _, _ = strings.Cut(strings.TrimSpace(dir), " ")
				list = append(list, dir)
			}
		}
		return list
	}
	wants(t, do(exit.Absent, "resize", "--add", dirs[4]), "the group is not protected")
	do(exit.OK, "protect", "--tolerate", "1")
	old := readFile(t, file)
	wants(t, do(exit.OK, "resize", "--dry-run", "--add", dirs[4]), "added      "+dirs[4], "5 nodes", "nothing written")
	if string(readFile(t, file)) != string(old) {
		t.Errorf("a dry run has made %s", readFile(t, file))
	}
	t.Chdir(filepath.Dir(dirs[4]))
	wants(t, do(exit.OK, "resize", "--add", filepath.Base(dirs[4]), "--tolerate", "2"), "added      "+dirs[4], "5 nodes, any 2 may be lost", "protected, generation 2")
	t.Chdir(t.TempDir())
	if got := lines(); !slices.Equal(got, dirs[:5]) {
		t.Errorf("%s: %q", readFile(t, file), got)
	}
	wants(t, string(readFile(t, file)), "# disks of the rack", "tolerate: 2", "# a disk")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	wants(t, do(exit.OK, "verify"), "whole: 5 nodes, any 2 may be lost, generation 2")
	removeAll(t, dirs[0])
	wants(t, do(exit.Usage, "resize", "--remove", dirs[0]), dirs[0]+" is missing what was protected: recover it first; --force gives it up")
	wants(t, do(exit.Usage, "resize", "--remove", dirs[1]), dirs[0]+" is missing, with what was protected: recover it first, or remove the node")
	if err := os.Mkdir(dirs[0], 0o700); err != nil {
		t.Fatal(err)
	}
	wants(t, do(exit.Usage, "resize", "--remove", dirs[1]), dirs[0]+" is missing what was protected: recover it first; --force protects")
	removeAll(t, dirs[4])
	do(exit.OK, "recover")
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	wants(t, do(exit.OK, "resize", "--add", dirs[5], "--remove", dirs[0], "--remove", dirs[2], "--json"), `"nodes_before": 5`, `"nodes": 4`, `"tolerate": 2`)
	if got, want := lines(), []string{dirs[1], dirs[3], dirs[4], dirs[5]}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, dir := range []string{dirs[0], dirs[2]} {
		if _, err := os.Lstat(filepath.Join(dir, ".volley")); err == nil {
			t.Errorf("%s has a .volley", dir)
		}
	}
	wants(t, do(exit.OK, "verify"), "whole: 4 nodes")
	removeAll(t, dirs[3], dirs[4])
	do(exit.OK, "recover")
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	r := volleyRun(append([]string{"verify"}, dirs[:5]...)...)
	if r.code != exit.Usage {
		t.Errorf("%+v", r)
	}
	now := []string{dirs[4], dirs[1], dirs[5], dirs[3]} // by node
	wants(t, r.stderr, "the group was resized, ", "it has 4 nodes now, and 5 were given. Give those of all of them: "+strings.Join(now, ", "))
	for _, x := range [][]string{
		{"--add " + dirs[5] + ": ", "--add", dirs[5]},
		{"it is named twice, or ", "--add", dirs[0], "--add", dirs[0]},
		{"--remove x: want a directory as ", "--remove", "x"},
		{"name the directories of one set", "--add", dirs[0], "--group-size", "2"},
		{"0 are added and 0 removed"},
	} {
		wants(t, do(exit.Usage, append([]string{"resize"}, x[1:]...)...), x[0])
	}
	replaceIn(t, file, "members:", "step: latest\nmembers:")
	wants(t, do(exit.Usage, "resize", "--add", dirs[0]), "it is of roots of snapshots")
	replaceIn(t, file, "step: latest\nmembers:", "group-size: 3\nmembers:")
	wants(t, do(exit.Usage, "resize", "--add", dirs[0]), "resize is for one group")
}

// TestResizeRemoved removes nodes that are there or lost, by their numbers in a group file, and says what stays. The same
// command completes a run that could not write the file.
func TestResizeRemoved(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 100)
	file := writeGroup(t, dirs, nil, "tolerate: 1")
	mustRun(t, "protect", "--group", file)
	old := readFile(t, file)
	removeAll(t, dirs[1])
	do := func(code int, args ...string) string {
		t.Helper()
		r := volleyRun(append(append([]string{"resize"}, args...), "--group", file)...)
		if r.code != code {
			t.Fatalf("%v: %+v", args, r)
		}
		return r.stdout + r.stderr
	}
	wants(t, do(exit.Usage, "--remove", "6"), `"6" is to be removed, and is no node`)
	wants(t, do(exit.Usage, "--remove", "none"), "--remove none: want a directory as ", "or the number of a node")
	for range 2 {
		rewrite(t, file, old)
		wants(t, do(exit.OK, "--force", "--remove", "0", "--remove", "1", "--json"), `"removed"`, dirs[0], `"lost"`, dirs[1])
		text := string(readFile(t, file))
		for n, dir := range dirs {
			if strings.Contains(text, dir) != (n > 1) {
				t.Fatalf("%s", text)
			}
		}
		mustRun(t, "verify", "--group", file)
	}
	removeAll(t, dirs[2])
	wants(t, do(exit.OK, "--force", "--remove", dirs[2]), "removed    "+dirs[2]+", which is lost\n")
	wants(t, do(exit.OK, "--remove", dirs[3]), "removed    "+dirs[3]+", whose files stay\n")
	mustRun(t, "verify", "--group", file)
}

// TestResizeFile resizes where the group file cannot be written: the group is resized, and the error says so.
func TestResizeFile(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 100)
	file := writeGroup(t, dirs[:3], []string{"a", "b", "c"}, "tolerate: 1")
	mustRun(t, "protect", "--group", file)
	if r := volleyRun("resize", "--add", dirs[3], "--group", file); r.code != exit.Usage || !strings.Contains(r.stderr, "its members have domains") {
		t.Errorf("%+v", r)
	}
	more := writeNodes(t, 4, 100)
	file = writeGroup(t, more[:3], nil, "tolerate: 1")
	mustRun(t, "protect", "--group", file)
	if r := volleyRun("resize", "--add", more[3], "--group", file, "--strict"); r.code != exit.Wrong || !strings.Contains(r.stderr, "all nodes are on one disk") {
		t.Errorf("%+v", r)
	}
	mustRun(t, "verify", "--group", file) // which has four members by now
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "dir:") != 4 {
		t.Errorf("%v: %s", err, text)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	file = writeGroup(t, dirs[:3], nil, "tolerate: 1")
	if err := os.Chmod(filepath.Dir(file), 0o500); err != nil {
		t.Fatal(err)
	}
	r := volleyRun("resize", "--add", dirs[3], "--group", file)
	if err := os.Chmod(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if r.code == exit.OK || !strings.Contains(r.stderr, "the group is resized, and its file is as it was") {
		t.Errorf("%+v", r)
	}
	mustRun(t, append([]string{"verify"}, dirs...)...)
	mustRun(t, "resize", "--add", dirs[3], "--group", file) // the same command again
	mustRun(t, "verify", "--group", file)
}

// TestResizeFileLink resizes by a link to a group file that lies elsewhere: its relative directories lie beside the
// link, and the file itself gets what has changed.
func TestResizeFileLink(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 100)
	base := filepath.Dir(dirs[0])
	file, link := filepath.Join(t.TempDir(), "group.yaml"), filepath.Join(base, "link.yaml")
	text := "tolerate: 1\nmembers:\n"
	for _, dir := range dirs {
		text += "    - dir: ./" + filepath.Base(dir) + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "protect", "--group", link)
	mustRun(t, "resize", "--remove", dirs[3], "--group", link)
	if got := string(readFile(t, file)); strings.Contains(got, filepath.Base(dirs[3])) || !strings.Contains(got, filepath.Base(dirs[2])) {
		t.Errorf("the file is %s", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	mustRun(t, "verify", "--group", link)
}

// TestRanksResize has a process for each node: one more, and then one fewer, in other orders.
func TestRanksResize(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 5, 30_000)
	before := contents(t, dirs)
	do := func(code int, last []string, args ...string) string {
		t.Helper()
		codes, text := newRanks(t, len(last), func(r int, c *exec.Cmd) { c.Args = append(c.Args, strings.Fields(last[r])...) }, args...).do()
		if !allAre(codes, code) {
			t.Fatalf("%v: exit codes %v: %s", args, codes, text)
		}
		return text
	}
	do(exit.OK, dirs[:4], "protect", "--tolerate", "1")
	wants(t, do(exit.OK, []string{"--add " + dirs[4], dirs[2], dirs[0], dirs[3], dirs[1]}, "resize"), "5 nodes, any 1 ", "protected, generation 2")
	do(exit.OK, dirs, "verify")
	wants(t, do(exit.Usage, dirs, "resize", "--remove", "7"), `"7" is to be removed, and is no node`)
	wants(t, do(exit.OK, []string{dirs[4], dirs[2], dirs[0], dirs[3], dirs[1]}, "resize", "--remove", "1"), "removed    "+dirs[1], "4 nodes, any 1 ", "protected, generation 3")
	left := []string{dirs[0], dirs[2], dirs[3], dirs[4]}
	removeAll(t, dirs[4])
	do(exit.OK, left, "recover")
	do(exit.OK, left, "verify")
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
}
