package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
	"volley/internal/groupfile"
)

// membersIn returns the directories that a group file names, in its order.
func membersIn(t *testing.T, file string) []string {
	t.Helper()
	g, err := groupfile.Read(file)
	must(t, err)
	return g.Dirs
}

// TestResize adds and removes nodes by a group file, which names those that there are at any time.
func TestResize(t *testing.T) {
	dirs := writeNodes(t, 6, 20_000)
	before := contents(t, dirs)
	file := writeGroup(t, dirs[:4], nil, "# disks of the rack", "digest: sha256")
	must(t, os.Chmod(file, 0o640))
	by := " --group " + file
	resize := func(code int, flags string, texts ...string) {
		t.Helper()
		expect(t, code, "resize"+by+flags, nil, texts...)
	}
	resize(exit.Absent, " --add "+dirs[4], "the group is not protected")
	expect(t, exit.OK, "protect --tolerate 1"+by, nil)
	old := readFile(t, file)
	resize(exit.OK, " --dry-run --add "+dirs[4], "added      "+dirs[4], "5 nodes", "nothing written")
	if string(readFile(t, file)) != string(old) {
		t.Errorf("a dry run has made %s", readFile(t, file))
	}
	t.Chdir(filepath.Dir(dirs[4]))
	resize(exit.OK, " --tolerate 2 --add "+filepath.Base(dirs[4]), "added      "+dirs[4], "5 nodes, any 2 may be lost", "protected, generation 2")
	t.Chdir(t.TempDir())
	equal(t, membersIn(t, file), dirs[:5])
	wants(t, string(readFile(t, file)), "# disks of the rack", "tolerate: 2")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	removeAll(t, dirs[0])
	resize(exit.Usage, " --remove "+dirs[0], dirs[0]+" is missing what was protected: recover it first; --force gives it up")
	resize(exit.Usage, " --remove "+dirs[1], dirs[0]+" is missing, with what was protected: recover it first, or remove the node")
	expect(t, exit.OK, "recover"+by, nil)
	resize(exit.OK, " --json --add "+dirs[5]+" --remove "+dirs[0]+" --remove 2", `"nodes_before": 5`, `"nodes": 4`, `"tolerate": 2`)
	equal(t, membersIn(t, file), []string{dirs[1], dirs[3], dirs[4], dirs[5]})
	bare(t, dirs[0], dirs[2])
	removeAll(t, dirs[3], dirs[4])
	expect(t, exit.OK, "recover"+by, nil)
	have(t, dirs, before)
	now := []string{dirs[4], dirs[1], dirs[5], dirs[3]} // by node
	expect(t, exit.Usage, "verify", dirs[:5], "the group was resized, ", "it has 4 nodes now, and 5 were given. Give those of all of them: "+strings.Join(now, ", "))
	for flags, want := range map[string]string{
		" --add " + dirs[5]:                       "--add " + dirs[5] + ": ",
		" --add " + dirs[0] + " --add " + dirs[0]: "it is named twice, or ",
		" --remove x":                             "--remove x: want a directory as ",
		" --remove 4":                             `"4" is to be removed, and is no node`,
		" --group-size 2 --add " + dirs[0]:        "name the directories of one set",
		" --accept all --add " + dirs[0]:          `--accept: "all": want changed, deleted`,
		"":                                        "0 are added and 0 removed",
	} {
		resize(exit.Usage, flags, want)
	}
	replaceIn(t, file, "members:", "step: latest\nmembers:")
	resize(exit.Usage, " --add "+dirs[0], "it is of roots of snapshots")
	replaceIn(t, file, "step: latest\nmembers:", "group-size: 3\nmembers:")
	resize(exit.Usage, " --add "+dirs[0], "resize is for one group")
}

// TestResizeRemoved removes nodes that are there or lost, by their numbers in a group file, and says what stays. The same
// command completes a run that could not write the file.
func TestResizeRemoved(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 100)
	file := writeGroup(t, dirs, nil, "tolerate: 1")
	by := " --group " + file
	expect(t, exit.OK, "protect"+by, nil)
	old := readFile(t, file)
	removeAll(t, dirs[1])
	for range 2 {
		rewrite(t, file, old)
		expect(t, exit.OK, "resize --force --remove 0 --remove 1 --json"+by, nil, `"removed"`, dirs[0], `"lost"`, dirs[1])
		equal(t, membersIn(t, file), dirs[2:])
		expect(t, exit.OK, "verify"+by, nil)
	}
	removeAll(t, dirs[2])
	expect(t, exit.OK, "resize --force --remove "+dirs[2]+by, nil, "removed    "+dirs[2]+", which is lost\n")
	expect(t, exit.OK, "resize --remove "+dirs[3]+by, nil, "removed    "+dirs[3]+", whose files stay\n")
	expect(t, exit.OK, "verify"+by, nil)
}

// TestResizeFile resizes where the group file cannot be written: the group is resized, and the error says so. A link to
// a file that lies elsewhere stays: its relative directories lie beside the link, and the file gets what has changed.
func TestResizeFile(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 100)
	domains := " --group " + writeGroup(t, dirs[:3], []string{"a", "b", "c"}, "tolerate: 1")
	expect(t, exit.OK, "protect"+domains, nil)
	expect(t, exit.Usage, "resize"+domains+" --add", dirs[3:], "its members have domains")
	base := filepath.Dir(dirs[0])
	file, link := writeGroup(t, []string{"./node.0", "./node.1", "./node.2"}, nil, "tolerate: 1"), filepath.Join(base, "link.yaml")
	must(t, os.Symlink(file, link))
	by := " --group " + link
	if os.Geteuid() != 0 { // who may write everywhere
		must(t, os.Chmod(filepath.Dir(file), 0o500))
		r := volleyRun(append(strings.Fields("resize"+by+" --add"), dirs[3])...)
		must(t, os.Chmod(filepath.Dir(file), 0o700))
		if r.code == exit.OK || !strings.Contains(r.stderr, "the group is resized, and its file is as it was") {
			t.Errorf("%+v", r)
		}
		expect(t, exit.OK, "verify", dirs)
	}
	expect(t, exit.OK, "resize"+by+" --add", dirs[3:], "all nodes are on one disk") // the same command again
	expect(t, exit.OK, "verify"+by, nil)                                            // of four members by now
	if got := string(readFile(t, file)); strings.Count(got, "dir:") != 4 {
		t.Errorf("the file is %s", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
}
