package cli

import (
	"fmt"
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
//	volley      runs the command lines below it; prints stdout, stderr, and the exit code unless it is 0
//	file NAME   makes a file of the text below it
//	files       makes a file of each line below it: a name, and the text
//	rm NAME     removes a file
//	ls DIR      lists a directory
//	cat NAME    prints a file
//
// Each file of testdata/conversations has a directory of its own.
func TestConversations(t *testing.T) {
	datadriven.Walk(t, "testdata/conversations", func(t *testing.T, path string) {
		path, err := filepath.Abs(path)
		must(t, err)
		t.Chdir(t.TempDir())
		put := func(name, text string) { lay(t, name, []byte(text+"\n"), 0o666) }
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) (text string) {
			name := func() string { return d.CmdArgs[0].Key }
			switch d.Cmd {
			case "volley":
				for line := range strings.Lines(d.Input) {
					text += converse(line)
				}
			case "file":
				put(name(), d.Input)
			case "files":
				for line := range strings.SplitSeq(d.Input, "\n") {
					name, text, _ := strings.Cut(line, " ")
					put(name, text)
				}
			case "rm":
				remove(t, name())
			case "ls":
				text = strings.Join(listDir(t, name()), " ") + "\n"
			case "cat":
				text = string(readFile(t, name()))
			default:
				d.Fatalf(t, "unknown directive %q", d.Cmd)
			}
			return text
		})
	})
}

// changing matches what differs from run to run, or with what processors say to each other before and after one.
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
