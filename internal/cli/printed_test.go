package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"volley/group"
	"volley/internal/exit"
)

// TestReportsPrinted tests what the verbs of groups print: a line where all is whole, what has come back at each node, and
// the first findings of many.
func TestReportsPrinted(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 30000)
	expect(t, exit.OK, "protect --tolerate 2", dirs)
	for i := range 30 {
		rewrite(t, filepath.Join(dirs[0], fmt.Sprintf("new.%02d", i)), nil)
	}
	if text := expect(t, exit.OK, "verify", dirs); text != "whole: 4 nodes, any 2 may be lost, generation 1, compared by sha256; files: 30 new\n" {
		t.Errorf("%q", text)
	}
	removeAll(t, dirs[1], filepath.Join(dirs[2], ".volley/generation.1/parity"), filepath.Join(dirs[3], ".volley/generation.1/record"))
	text := expect(t, exit.Wrong, "verify", dirs, `new: "new.19"`, "and 10 more: -v prints all", "node 1  lost",
		`missing: ".volley/generation.1/parity"`, `damaged: ".volley/generation.1/record"`)
	if strings.Contains(text, "new.20") {
		t.Errorf("more than 20 findings: %s", text)
	}
	expect(t, exit.Wrong, "verify -v", dirs, `new: "new.29"`)
	var r group.VerifyReport
	if err := json.NewDecoder(strings.NewReader(expect(t, exit.Wrong, "verify --json", dirs))).Decode(&r); err != nil || len(r.Nodes[0].Findings) != 30 {
		t.Errorf("%v: %d findings", err, len(r.Nodes[0].Findings))
	}
	expect(t, exit.OK, "recover --dry-run", dirs, "node 0  whole", "node 1  lost", "nothing written")
	text = expect(t, exit.OK, "recover", dirs, "recovered node 1: 4 files, 1 directory or link, ", " of parity, records  "+dirs[1], "recovered node 2: ", "recovered node 3: records  ")
	if strings.Contains(text, "lost") || strings.Contains(text, "0 files") || strings.Contains(text, "node 0") || strings.Contains(text, "; 0 B sent") {
		t.Error(text)
	}
	rewrite(t, filepath.Join(dirs[3], "ckpt"), []byte("mine"))
	expect(t, exit.OK, "recover", dirs, "node 3  changed", `changed: "ckpt"`, "left as it is: 1 changed file; to bring back what was protected: volley recover --revert changed ", "nothing to recover")
	expect(t, exit.OK, "recover --revert changed", dirs, "what was there is in ")
	if text := expect(t, exit.OK, "recover", dirs); !strings.HasPrefix(text, "all nodes are whole\n") {
		t.Errorf("%q", text)
	}
}

// TestVerboseVerbs tests that every verb says with -v what it does, on stderr.
func TestVerboseVerbs(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 3000)
	for _, x := range []struct {
		args  string
		wants []string
	}{
		{"protect --tolerate 1", []string{`msg=joined comm=local`, `msg="found the group" nodes=3 generation=0`, "msg=protecting files=", "not in force yet"}},
		{"verify", []string{`msg=compared node=` + dirs[2] + ` status=whole`, "msg=ended verb=verify exit_code=0"}},
		{"status", []string{`msg=compared`, "verb=status"}},
		{"recover", []string{`msg="found what is missing" blocks=0`, "verb=recover"}},
		{"encode -o " + t.TempDir(), []string{"encoding"}},
	} {
		r := volleyRun(append(strings.Fields(x.args+" -v"), dirs...)...)
		if r.code != exit.OK || strings.Contains(r.stdout, "msg=") {
			t.Fatalf("%+v", r)
		}
		wants(t, r.stderr, x.wants...)
	}
	wants(t, volleyRun("fields", "-v").stderr, "msg=ended verb=fields exit_code=0")
}
