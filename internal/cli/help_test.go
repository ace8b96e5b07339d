package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// verbs returns the verbs that have help.
func verbs() []*cobra.Command {
	var list []*cobra.Command
	for _, verb := range newCommand(io.Discard).Commands() {
		if verb.Name() != "completion" && verb.Name() != "help" {
			list = append(list, verb)
		}
	}
	return list
}

// TestHelp checks that every verb has help.
func TestHelp(t *testing.T) {
	for _, verb := range verbs() {
		if help := mustRun(t, verb.Name(), "--help"); !strings.Contains(help, "Usage:") {
			t.Errorf("%s --help: %s", verb.Name(), help)
		}
	}
	if r := volleyRun(); r.code != exitOK || !strings.Contains(r.stdout, "encode") {
		t.Errorf("volley alone: exit %d, %s", r.code, r.stdout)
	}
	if r := volleyRun("--version"); r.code != exitOK || !strings.Contains(r.stdout, "volley version") {
		t.Errorf("--version: exit %d, %s", r.code, r.stdout)
	}
}

// TestExamples runs the examples of every verb, one after the other, among the files that
// they name. What mpirun starts, and a page that is served until Ctrl-C, are not run.
func TestExamples(t *testing.T) {
	packets, err := filepath.Abs("../../examples/packets")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range verbs() {
		t.Run(verb.Name(), func(t *testing.T) {
			t.Chdir(filepath.Dir(writeNodes(t, 5, 1000)[0]))
			if err := os.CopyFS("examples/packets", os.DirFS(packets)); err != nil {
				t.Fatal(err)
			}
			switch verb.Name() {
			case "decode":
				mustRun(t, "encode", "-o", "coded", "examples/packets")
			case "verify", "recover":
				mustRun(t, "protect", "--tolerate", "2", "node.0", "node.1", "node.2", "node.3", "node.4")
			}
			n := 0
			for line := range strings.Lines(verb.Example) {
				command, file, redirected := strings.Cut(strings.TrimSpace(line), " > ")
				args := strings.Fields(command)
				if args[0] == "mpirun" {
					continue
				}
				if n++; args[0] != "volley" || verb.Name() == "explore" {
					if err := verb.ParseFlags(args[2:]); err != nil {
						t.Errorf("%s: %v", line, err)
					}
					continue
				}
				for i, arg := range args {
					args[i] = strings.Trim(arg, "'")
				}
				out := mustRun(t, args[1:]...)
				if redirected {
					if err := os.WriteFile(file, []byte(out), 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n == 0 && verb.HasLocalFlags() && verb.Long != "" {
				t.Error("no example")
			}
		})
	}
}
