package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"volley/algo"
	"volley/internal/cli/session"

	"volley/internal/exit"
	"volley/internal/selection"
)

// FuzzArguments checks that no command line makes a panic: it works, or exits with 2, says why on one line and prints
// nothing else. Those that would take long, or that name files elsewhere, are only parsed.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{
		"encode -o out packets", "encode --dry-run --model paper --field 257 -p 2 --matrix random:1 packets",
		"encode -o out --separate --sinks 2 --json packets", "decode out -o back",
		"plan -k 4", "plan -k 5 --why --max-memory 3", "plan -k 8 --model paper -p 3 --processor 7",
		"plan -k 3 --field 2^8:0x11b --algorithm bruck-allgather --format json",
		"matrix -k 3 --sinks 2 --matrix lagrange --omega codes --alpha powers --field 17 --format json",
		"matrix -k 4 --matrix vandermonde --field 2^8 --inverse", "matrix --matrix file:A.csv -k 2",
		"cost -k 2..5,8 -p 1,2 --rounds-over 0..1 --size 64KiB", "cost -k 4 --size 1MiB --format csv",
		"cost -k 4 --format csv",
		"algorithms --format csv", "fields", "help plan", "--version", "",
	} {
		f.Add(line)
	}
	for _, a := range algo.Parts() {
		f.Add("plan -k 6 --algorithm " + a.Name)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		if strings.ContainsAny(line, `/\`) || !quick(args) {
			return
		}
		t.Chdir(t.TempDir())
		must(t, os.Mkdir("packets", 0o777))
		write(t, filepath.Join("packets", "a"), "some bytes")
		write(t, filepath.Join("packets", "b"), "other bytes")
		write(t, filepath.Join("packets", "c"), "")
		write(t, "A.csv", "1,2\n3,5\n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, &stdout, &stderr)
		switch text := stderr.String(); {
		case code == exit.OK:
		case code != exit.Usage:
			t.Errorf("exit %d: %s", code, text)
		case !strings.HasPrefix(text, "volley: ") || strings.Count(text, "\n") != 1:
			t.Errorf("exit 2, and stderr is not one line of why: %q", text)
		case stdout.Len() > 0:
			t.Errorf("exit 2, and there is output: %.200q", stdout.String())
		}
	})
}

// quick reports whether a command line is wrong, or asks for little.
func quick(args []string) bool {
	root := newCommand(session.New())
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.ParseFlags(rest) != nil {
		return true
	}
	few := func(flag string, count, most int) bool {
		x := cmd.Flags().Lookup(flag)
		if x == nil || !x.Changed {
			return x == nil || flag != "processors" || cmd.Name() != "cost" // of which the default is long
		}
		list, err := selection.ParseNumbers(x.Value.String(), 0, selection.LargestK)
		return err != nil || len(list) <= count && list[len(list)-1] <= most
	}
	return few("processors", 3, 12) && few("sinks", 1, 12) && few("ports", 3, selection.LargestK) &&
		few("rounds-over", 3, selection.LargestK) && few("repeat", 1, 10)
}
