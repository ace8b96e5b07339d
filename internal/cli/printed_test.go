package cli

import (
	"encoding/json"
	"fmt"
	"os"
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
	do := func(code int, args ...string) string {
		t.Helper()
		r := volleyRun(append(args, dirs...)...)
		if r.code != code {
			t.Fatalf("volley %v: %+v", args, r)
		}
		return r.stdout
	}
	do(exit.OK, "protect", "--tolerate", "2")
	const line = "whole: 4 nodes, any 2 may be lost, generation 1, compared by sha256"
	if text := do(exit.OK, "verify"); text != line+"\n" {
		t.Errorf("%q", text)
	}
	for i := range 30 {
		if err := os.WriteFile(filepath.Join(dirs[0], fmt.Sprintf("new.%02d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text := do(exit.OK, "verify"); text != line+"; files: 30 new\n" {
		t.Errorf("%q", text)
	}
	removeAll(t, dirs[1], filepath.Join(dirs[2], ".volley/generation.1/parity"), filepath.Join(dirs[3], ".volley/generation.1/record"))
	text := do(exit.Wrong, "verify")
	wants(t, text, `new: "new.19"`, "and 10 more: -v prints all", "node 1  lost", `missing: ".volley/generation.1/parity"`, `damaged: ".volley/generation.1/record"`)
	if strings.Contains(text, "new.20") {
		t.Errorf("more than 20 findings: %s", text)
	}
	wants(t, do(exit.Wrong, "verify", "-v"), `new: "new.29"`)
	var r group.VerifyReport
	if err := json.Unmarshal([]byte(do(exit.Wrong, "verify", "--json")), &r); err != nil || len(r.Nodes[0].Findings) != 30 {
		t.Errorf("%v: %d findings", err, len(r.Nodes[0].Findings))
	}
	wants(t, do(exit.OK, "recover", "--dry-run"), "node 0  whole", "node 1  lost", "nothing written")
	text = do(exit.OK, "recover")
	wants(t, text, "recovered node 1: 4 files, 1 directory or link, ", " of parity, records  "+dirs[1], "recovered node 2: ", "recovered node 3: records  ")
	if strings.Contains(text, "lost") || strings.Contains(text, "0 files") || strings.Contains(text, "node 0") {
		t.Error(text)
	}
	if text := do(exit.OK, "recover"); !strings.HasPrefix(text, "all nodes are whole\n") {
		t.Errorf("%q", text)
	}
	if err := os.WriteFile(filepath.Join(dirs[3], "ckpt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, do(exit.OK, "recover"), "node 3  changed", `changed: "ckpt"`, "left as it is: 1 changed file; recover --revert changed ", "nothing to recover")
}

// TestVerboseVerbs tests that every verb says with -v what it does.
func TestVerboseVerbs(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 3000)
	for _, x := range []struct {
		args  []string
		wants []string
	}{
		{[]string{"protect", "--tolerate", "1"}, []string{`msg=joined comm=local`, `msg="found the group" nodes=3 generation=0`, "msg=protecting files=", "not in force yet"}},
		{[]string{"verify"}, []string{`msg=compared node=` + dirs[2] + ` status=whole`, "msg=ended verb=verify exit_code=0"}},
		{[]string{"status"}, []string{`msg=compared`, "verb=status"}},
		{[]string{"recover"}, []string{`msg="found what is missing" blocks=0`, "verb=recover"}},
	} {
		r := volleyRun(append(append(x.args, "-v"), dirs...)...)
		if r.code != exit.OK {
			t.Fatalf("%+v", r)
		}
		wants(t, r.stderr, x.wants...)
	}
	if r := volleyRun("fields", "-v"); !strings.Contains(r.stderr, "msg=ended verb=fields exit_code=0") {
		t.Errorf("%+v", r)
	}
}
