package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"volley/internal/exit"
)

// TestConversations shows what users type and what they read. Rewrite the files
// with -rewrite only when that is meant to change, and read the difference.
//
//	volley      runs the command line below it; prints stdout, stderr, and the exit code unless it is 0
//	file NAME   makes a file of the text below it
//	rm NAME     removes a file
//	ls DIR      lists a directory
//	cat NAME    prints a file
//
// Each file of testdata/conversations has a directory of its own.
func TestConversations(t *testing.T) {
	datadriven.Walk(t, "testdata/conversations", func(t *testing.T, path string) {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(t.TempDir())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			name := func() string { return d.CmdArgs[0].Key }
			switch d.Cmd {
			case "volley":
				return converse(d.Input)
			case "file":
				err := os.MkdirAll(filepath.Dir(name()), 0o777)
				if err == nil {
					err = os.WriteFile(name(), []byte(d.Input+"\n"), 0o666)
				}
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "rm":
				if err := os.Remove(name()); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "ls":
				return strings.Join(listDir(t, name()), " ") + "\n"
			case "cat":
				return string(readFile(t, name()))
			}
			d.Fatalf(t, "unknown directive %q", d.Cmd)
			return ""
		})
	})
}

// changing matches what differs from run to run, or with what processors say to
// each other before and after one.
var changing = regexp.MustCompile(`(?m)(^time {7} *|^  "(?:\w*seconds|plan_hash|control_bytes)": |^traffic .* and ).*$`)

// converse runs a command line and returns all that comes back.
func converse(line string) string {
	r := volleyRun(strings.Fields(line)...)
	out := changing.ReplaceAllString(r.stdout, "$1…")
	var lines strings.Builder
	for l := range strings.Lines(out) {
		lines.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	lines.WriteString(r.stderr)
	if r.code != exit.OK {
		fmt.Fprintf(&lines, "exit %d\n", r.code)
	}
	return lines.String()
}
