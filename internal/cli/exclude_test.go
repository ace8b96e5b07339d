package cli

import (
	"encoding/json"
	"os"
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
	put := func(names ...string) {
		for _, name := range names {
			at := filepath.Join(dirs[1], name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("a.tmp", "cache/x", "cache/y/z", "sub/b.tmp", "keep.tmp", "sub/cache/in")
	do := func(code int, args ...string) string {
		t.Helper()
		r := volleyRun(append(args, dirs...)...)
		if r.code != code {
			t.Fatalf("volley %v: %+v", args, r)
		}
		return r.stdout + r.stderr
	}
	plan := mustRun(t, "protect", "--group", file, "--dry-run", "-v")
	wants(t, plan, "excluded   *.tmp, /cache/, !keep.tmp", "node 1  18 KiB in 6 files, 18 KiB to code: 8 new  "+dirs[1], `new: "keep.tmp"`, `new: "sub/cache/in"`, "of parity at each node", "nothing written: a dry run")
	mustRun(t, "protect", "--group", file)
	const whole = "whole: 4 nodes, any 2 may be lost, generation 1, compared by sha256\n"
	if text := do(exit.OK, "verify"); text != whole { // nobody has to give the patterns again
		t.Errorf("%q", text)
	}
	put("a.tmp", "cache/more", "c.tmp")
	if text := do(exit.OK, "verify"); text != whole {
		t.Errorf("%q", text)
	}
	removeAll(t, filepath.Join(dirs[1], "cache"), filepath.Join(dirs[1], "sub"), filepath.Join(dirs[1], "keep.tmp"))
	wants(t, do(exit.OK, "recover"), "recovered node 1: 4 files")
	if got := read1(t, filepath.Join(dirs[1], "sub/cache/in")); got != "sub/cache/in" {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"a.tmp", "c.tmp"} {
		read1(t, filepath.Join(dirs[1], name)) // stays
	}

	// A file that is excluded later is none that was deleted by accident.
	if err := os.WriteFile(filepath.Join(dirs[0], "ckpt"), []byte("more"), 0o644); err != nil {
		t.Fatal(err)
	}
	removeAll(t, filepath.Join(dirs[0], "empty"))
	wants(t, do(exit.OK, "protect", "--tolerate", "2", "--dry-run", "-v"), `deleted: "empty"`, `changed: "ckpt"`, "1 changed, 1 deleted")
	do(exit.OK, "recover")
	do(exit.OK, "protect", "--tolerate", "2", "--exclude", "ckpt", "--exclude", "sub", "--exclude", "empty")
	var r group.ProtectReport
	if err := json.Unmarshal([]byte(do(exit.OK, "protect", "--tolerate", "2", "--json")), &r); err != nil || !slices.Equal(r.Exclude, []string{"ckpt", "sub", "empty"}) || r.Files != 3 {
		t.Errorf("%v: %+v", err, r)
	}
	if text := do(exit.OK, "protect", "--tolerate", "2", "--exclude", "", "--dry-run"); strings.Contains(text, "excluded") {
		t.Errorf("%q", text)
	}
	r = group.ProtectReport{}
	if err := json.Unmarshal([]byte(do(exit.OK, "protect", "--tolerate", "2", "--exclude", "", "--json")), &r); err != nil || r.Exclude != nil || r.Files < 16 {
		t.Errorf("%v: %+v", err, r)
	}
	wants(t, do(exit.Usage, "protect", "--tolerate", "2", "--exclude", "[a"), `exclude: "[a": the pattern has no end`)
}

func read1(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
