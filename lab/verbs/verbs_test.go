package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"volley/internal/cli"
	"volley/internal/selection"
)

// run runs a verb alone, and returns the exit code.
func run(ctx context.Context, cmd *cobra.Command, args []string, stdout, stderr io.Writer) int {
	cmd.SetArgs(append([]string{}, args...))
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, selection.Message(err))
	var own interface{ ExitCode() int }
	if errors.As(err, &own) {
		return own.ExitCode()
	}
	return 1
}

// TestHelp checks that volley-lab has the verbs of volley and its own, whose help fits a terminal, and that every
// example has flags that there are.
func TestHelp(t *testing.T) {
	var names []string
	for _, verb := range cli.Command().Commands() {
		names = append(names, verb.Name())
	}
	for _, want := range []string{"protect", "encode", "plan", "explore", "draw", "chart"} {
		if n := strings.Count(" "+strings.Join(names, " ")+" ", " "+want+" "); n != 1 {
			t.Errorf("%d verbs %s in %v", n, want, names)
		}
	}
	for _, args := range [][]string{{"--help"}, {"explore", "--help"}, {"draw", "--help"}, {"chart", "--help"}, {"plan", "--help"}} {
		var stdout, stderr strings.Builder
		code := cli.Main(args, &stdout, &stderr)
		if code != 0 || stderr.Len() > 0 || !strings.Contains(stdout.String(), "volley-lab") {
			t.Errorf("%v: exit %d, %s%s", args, code, stdout.String(), stderr.String())
		}
		for line := range strings.Lines(stdout.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
	}
	for _, verb := range []*cobra.Command{newExplore(), newDraw(), newFigure(), newChart()} {
		for line := range strings.Lines(verb.Example) {
			_, line, _ = strings.Cut(line, "volley-lab "+verb.Name())
			if err := verb.ParseFlags(strings.Fields(line)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}
