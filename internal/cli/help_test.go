package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"volley"
	"volley/field"
	"volley/internal/cli/session"
	"volley/internal/exit"
)

// verbs returns the verbs that have help.
func verbs() []*cobra.Command {
	var list []*cobra.Command
	for _, verb := range newCommand(session.New()).Commands() {
		if verb.Runnable() && verb.Name() != "completion" && verb.Name() != "help" {
			list = append(list, verb)
		}
	}
	return list
}

// TestHelp checks that every verb has help, which begins with what operators do and has tuning in a topic.
func TestHelp(t *testing.T) {
	t.Parallel()
	tuning, main := mustRun(t, "help", "tuning"), mustRun(t, "--help")
	end := 0
	for _, verb := range []string{"protect", "recover", "encode", "decode", "plan", "cost"} {
		i := strings.Index(main, "\n  "+verb+" ")
		if i <= end {
			t.Errorf("%s comes at %d, and what it follows at %d", verb, i, end)
		}
		end = i
	}
	for _, verb := range verbs() {
		help := mustRun(t, verb.Name(), "--help")
		if !strings.Contains(help, "Usage:") {
			t.Errorf("%s --help: %s", verb.Name(), help)
		}
		checkWidth(t, verb.Name(), help)
		for _, name := range []string{"beta", "tau", "gamma", "rounds-over", "max-memory", "max-compute"} {
			there, operators := verb.Flags().Lookup(name) != nil, strings.Contains(help, "volley help tuning") // who read of it there only
			if strings.Contains(help, "--"+name+" ") != (there && !operators) || !strings.Contains(tuning, "--"+name) {
				t.Errorf("%s --help: --%s is there %v: %s", verb.Name(), name, there, help)
			}
		}
		for _, name := range []string{"timeout", "progress"} {
			if verb.Flags().Lookup(name) != nil {
				expect(t, exit.Usage, verb.Name()+" --"+name+" -1ns", nil, "want a duration such as 30s, 0 or more")
			}
		}
		if paragraphs := strings.Count(verb.Long, "\n\n"); verb.Long != "" && paragraphs != 1 {
			t.Errorf("%s: %d paragraphs after the line of purpose, want one", verb.Name(), paragraphs)
		}
	}
	for _, topic := range newCommand(session.New()).Commands() {
		if topic.Runnable() {
			continue
		}
		for _, args := range [][]string{{"help", topic.Name()}, {topic.Name(), "--help"}} {
			help := mustRun(t, args...)
			if topic.Long == "" || !strings.HasPrefix(help, topic.Long) {
				t.Errorf("%v: %s", args, help)
			}
			checkWidth(t, topic.Name(), help)
		}
	}
	checkWidth(t, "volley", main)
	headings := regexp.MustCompile(`(?m)^(\w+ )?[Ff]lags:.*`).FindAllString(mustRun(t, "encode", "--help"), -1)
	if got, want := strings.Join(headings, " "), "Flags: Override flags: Matrix flags: Plan flags: Run flags: More flags: volley help tuning, volley help ranks Global Flags:"; got != want {
		t.Errorf("the flags of encode are in groups %s, want %s", got, want)
	}
	wants(t, mustRun(t), "encode")
	wants(t, mustRun(t, "--version"), "volley version")
}

// TestArguments runs TestHelp by a process with arguments of its own, as debuggers start tests: a session has only its
// own ones, also where it has none.
func TestArguments(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), thisProgram(t), "-test.run", "^TestHelp$", "more").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// checkWidth checks that a help text fits a terminal, and that its first line is one of purpose.
func checkWidth(t *testing.T, name, help string) {
	t.Helper()
	for line := range strings.Lines(help) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth {
			t.Errorf("%s: %d columns: %s", name, n, line)
		}
	}
	if first, rest, _ := strings.Cut(help, "\n"); !strings.HasPrefix(rest, "\n") || len(first) < 20 {
		t.Errorf("%s: the first line is no line of purpose: %s", name, first)
	}
}

// TestExamples runs the examples of every verb, one after the other, among the files that
// they name. What mpirun starts, and a page that is served until Ctrl-C, are not run.
func TestExamples(t *testing.T) {
	packets, err := filepath.Abs("../../examples/packets")
	must(t, err)
	for _, verb := range verbs() {
		t.Run(verb.Name(), func(t *testing.T) {
			t.Chdir(filepath.Dir(writeNodes(t, 5, 1000)[0]))
			must(t, os.CopyFS("examples/packets", os.DirFS(packets)))
			switch verb.Name() {
			case "decode":
				mustRun(t, "encode", "-o", "encoded", "examples/packets")
			case "verify", "recover", "status":
				mustRun(t, "protect", "--tolerate", "2", "node.0", "node.1", "node.2", "node.3", "node.4")
			}
			n := 0
			for line := range strings.Lines(verb.Example) {
				command, file, redirected := strings.Cut(strings.TrimSpace(line), " > ")
				args := strings.Fields(command)
				if args[0] == "mpirun" {
					continue
				}
				hosts := strings.Contains(command, ":/") || strings.HasSuffix(command, ":")
				if n++; args[0] != "volley" || hosts {
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
					write(t, file, out)
				}
			}
			if n == 0 && verb.Long != "" {
				t.Error("no example")
			}
		})
	}
}

// TestVersion looks for what a report of an error needs.
func TestVersion(t *testing.T) {
	t.Parallel()
	wants(t, mustRun(t, "version"), "volley "+volley.Version, "commit ", runtime.Version(), "kernels  "+field.Kernels(), "local, tcp")
}
