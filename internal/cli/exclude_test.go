package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/group"
	"volley/internal/exit"
)

// TestExclude protects some files and not others: all verbs agree on what is not protected, also later runs.
func TestExclude(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 9000)
	file := writeGroup(t, dirs, nil, "tolerate: 2", "exclude:", "- '*.tmp'", "- /cache/", "- '!keep.tmp'")
	for _, name := range []string{"a.tmp", "cache/x", "sub/b.tmp", "keep.tmp", "sub/cache/in"} {
		lay(t, filepath.Join(dirs[1], name), []byte(name), 0o644)
	}
	expect(t, exit.OK, "protect --dry-run -v --group "+file, nil, "excluded   *.tmp, /cache/, !keep.tmp",
		"of parity at each node", "nothing written: a dry run")
	mustRun(t, "protect", "--group", file)
	rewrite(t, filepath.Join(dirs[1], "c.tmp"), []byte("new"))
	removeAll(t, filepath.Join(dirs[1], "cache"))
	if text := expect(t, exit.OK, "verify", dirs); text != "whole: 4 nodes, any 2 may be lost, generation 1, compared by sha256\n" { // nobody has to give the patterns again
		t.Errorf("%q", text)
	}
	removeAll(t, filepath.Join(dirs[1], "sub"), filepath.Join(dirs[1], "keep.tmp"))
	expect(t, exit.OK, "recover", dirs, "recovered node 1: 4 files")
	for _, name := range []string{"a.tmp", "c.tmp", "sub/cache/in"} {
		readFile(t, dirs[1], name)
	}

	// What is excluded later was not deleted by accident.
	removeAll(t, filepath.Join(dirs[0], "ckpt"), filepath.Join(dirs[0], "empty"), filepath.Join(dirs[0], "sub"))
	expect(t, exit.OK, "protect --tolerate 2 --exclude ckpt --exclude sub --exclude empty", dirs)
	reported := func(flags ...string) (r group.ProtectReport) {
		text := mustRun(t, slices.Concat([]string{"protect", "--tolerate", "2", "--json"}, flags, dirs)...)
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&r); err != nil {
			t.Error(err)
		}
		return r
	}
	if r := reported(); !slices.Equal(r.Exclude, []string{"ckpt", "sub", "empty"}) || r.Files != 3 {
		t.Errorf("%+v", r)
	}
	if r := reported("--exclude", ""); r.Exclude != nil || r.Files < 15 {
		t.Errorf("%+v", r)
	}
	expect(t, exit.Usage, "protect --tolerate 2 --exclude [a", dirs, `exclude: "[a": the pattern has no end`)
}
