package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestResize adds and removes nodes by a group file, which its owner changes likewise.
func TestResize(t *testing.T) {
	dirs := writeNodes(t, 6, 20_000)
	before := contents(t, dirs)
	file := writeGroup(t, dirs[:4], []string{"a", "a", "b", "b"}, "digest: sha256")
	by := " --group " + file
	resize := func(code int, flags string, texts ...string) {
		t.Helper()
		expect(t, code, "resize"+by+flags, nil, texts...)
	}
	resize(exit.Absent, " --add "+dirs[4], "the group is not protected")
	expect(t, exit.OK, "protect --tolerate 1"+by, nil)
	resize(exit.OK, " --dry-run --add "+dirs[4], "added      "+dirs[4], "5 nodes", "nothing written")
	t.Chdir(filepath.Dir(dirs[4]))
	resize(exit.OK, " --tolerate 2 --add "+filepath.Base(dirs[4]), "added      "+dirs[4], "5 nodes, any 2 may be lost", "protected, generation 2", "next: name the nodes that there are now")
	t.Chdir(t.TempDir())
	expect(t, exit.Usage, "verify"+by, nil, "the group was resized, ")
	name := func(nodes ...string) { rewrite(t, file, readFile(t, writeGroup(t, nodes, nil))) }
	name(dirs[:5]...)
	removeAll(t, dirs[0])
	resize(exit.Usage, " --remove "+dirs[0], dirs[0]+" is missing what was protected: recover it first; --force gives it up")
	resize(exit.Usage, " --remove "+dirs[1], dirs[0]+" is missing, with what was protected: recover it first, or remove the node")
	expect(t, exit.OK, "recover"+by, nil)
	resize(exit.OK, " --json --add "+dirs[5]+" --remove "+dirs[0]+" --remove 2", `"nodes_before": 5`, `"nodes": 4`, `"tolerate": 2`)
	name(dirs[1], dirs[3], dirs[4], dirs[5])
	bare(t, dirs[0], dirs[2])
	removeAll(t, dirs[3], dirs[4])
	expect(t, exit.OK, "recover"+by, nil)
	have(t, dirs, before)
	now := []string{dirs[4], dirs[1], dirs[5], dirs[3]} // by node
	expect(t, exit.Usage, "verify", dirs[:5], "the group was resized, ", "it has 4 nodes now, and 5 were given. Give those of all of them: "+strings.Join(now, ", "))
	for flags, want := range map[string]string{
		" --remove x":                      "--remove x: want a directory as ",
		" --remove 4":                      `"4" is to be removed, and is no node`,
		" --group-size 2 --add " + dirs[0]: "name the directories of one set",
		" --accept all --add " + dirs[0]:   `--accept: "all": want changed, deleted`,
		"":                                 "0 are added and 0 removed",
	} {
		resize(exit.Usage, flags, want)
	}
	replaceIn(t, file, "members:", "step: latest\nmembers:")
	resize(exit.Usage, " --add "+dirs[0], "it is of roots of snapshots")
	replaceIn(t, file, "step: latest\nmembers:", "group-size: 3\nmembers:")
	resize(exit.Usage, " --add "+dirs[0], "resize is for one group")
}

// TestResizeRemoved removes nodes that are there or lost, by their numbers in a group file, and says what stays. The same
// command again finds that it has nothing to do.
func TestResizeRemoved(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 100)
	file := writeGroup(t, dirs, nil, "tolerate: 1")
	by := " --group " + file
	expect(t, exit.OK, "protect"+by, nil)
	removeAll(t, dirs[1])
	for range 2 {
		expect(t, exit.OK, "resize --force --remove 0 --remove 1 --json"+by, nil, `"removed"`, dirs[0], `"lost"`, dirs[1])
		expect(t, exit.OK, "verify", dirs[2:])
	}
	by = " --group " + writeGroup(t, dirs[2:], nil)
	removeAll(t, dirs[2])
	expect(t, exit.OK, "resize --force --remove "+dirs[2]+by, nil, "removed    "+dirs[2]+", which is lost\n")
	by = " --group " + writeGroup(t, dirs[3:], nil)
	expect(t, exit.OK, "resize --remove "+dirs[3]+by, nil, "removed    "+dirs[3]+", whose files stay\n")
	expect(t, exit.OK, "verify", dirs[4:])
}
