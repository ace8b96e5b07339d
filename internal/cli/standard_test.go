package cli

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"volley/internal/cli/session"
	"volley/internal/exit"
)

// TestStandardFull prints what does not fit: every verb fails, and names standard output.
func TestStandardFull(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"plan -k 4", "plan -k 4 --json", "plan -k 4 --why", "matrix -k 4", "matrix -k 4 --json",
		"cost -k 4", "cost -k 4 --json", "algorithms", "fields --format csv", "version", "help", "plan --help", "help matrices",
	} {
		var stderr bytes.Buffer
		code := run(context.Background(), strings.Fields(args), full{}, &stderr)
		if want := "volley: cannot print to standard output: no space left on device\n"; code != exit.Failed || stderr.String() != want {
			t.Errorf("%s: exit %d, %q: want %q", args, code, stderr.String(), want)
		}
	}
}

// full is a full disk.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// TestInterruptedCompute interrupts verbs that compute and print for as long as one lets them: exit code 130.
func TestInterruptedCompute(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"matrix --matrix file:-", "plan --matrix file:-", "cost --matrix file:- -k 4", "check -",
		"matrix --field 2^16 -k 30000", "matrix --field 2^16 -k 30000 --json",
	} {
		cmd := command(t.Context(), t, strings.Fields(args)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		in, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if strings.Contains(args+" ", "- ") {
			_, err = in.Write(bytes.Repeat([]byte("#\n"), 1<<17)) // more than a pipe holds: it is being read
		} else {
			_, err = out.Read(make([]byte, 1))
		}
		if err != nil {
			t.Error(err)
		}
		cmd.Process.Signal(os.Interrupt)
		if cmd.Wait(); cmd.ProcessState.ExitCode() != exit.Interrupted || stderr.String() != "volley: interrupted\n" {
			t.Errorf("%s: %v, %s", args, cmd.ProcessState, &stderr)
		}
	}
}

// TestStandard has one stream come from standard input, and no two.
func TestStandard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	volley := func(stdin, args string) (int, string, string) {
		s := session.New()
		s.Stdin = strings.NewReader(stdin)
		r := resultIn(t.Context(), s, strings.Fields(args)...)
		return r.code, r.stdout, r.stderr
	}
	_, plan, _ := volley("", "plan -k 4 --json")
	_, csv, _ := volley("", "matrix -k 4")
	csv = csv[strings.LastIndexByte(csv, '#'):]
	csv = csv[strings.IndexByte(csv, '\n')+1:] // without points, which a file has not
	packets := filepath.Join(dir, "in")
	for _, name := range []string{"a", "b", "c", "d"} {
		lay(t, filepath.Join(packets, name), []byte("packet "+name), 0o666)
	}
	for _, c := range []struct {
		stdin, args string
		code        int
		want        string // of stdout or, of a failure, of stderr
	}{
		{plan, "check - --matrix cauchy", 0, "computes cauchy, exactly"},
		{csv, "matrix --matrix file:-", 0, csv},
		{csv, "plan --matrix file:-", 0, "K = 4"},
		{"1 2 3 4", "matrix --matrix vandermonde --points - -k 4", 0, "# alpha 1 2 3 4"},
		{"", "matrix --inverse --matrix lagrange --field 257 -k 2", 0, "# inverse of lagrange\n# omega 1 256\n# alpha 3 254\n"},
		{"", "matrix --inverse --matrix vandermonde --points powers -k 3 --json", 0, `"alpha":["1","2","4"]`},
		{plan, "encode --plan - --dry-run " + packets, 0, "nothing written"},
		{csv, "encode --matrix file:- -o " + dir + "/coded " + packets, 0, "verified"},
		{plan, "check - --matrix file:-", 2, "standard input can be read once"},
		{"1 2", "matrix --matrix cauchy --omega - --alpha - -k 2", 2, "standard input can be read once"},
		{"1,x", "matrix --matrix file:-", 2, "volley: standard input line 1: "},
		{"", "matrix --matrix file:-", 2, "volley: standard input has no values"},
		{"", "matrix --matrix vandermonde --points - -k 3", 2, "volley: standard input has no points"},
		{csv, "matrix --matrix file:- -k 3", 2, "volley: standard input is 4×4"},
		{"", "check -", 2, "the plan standard input: unexpected EOF"},
		{"{\n1", "check -", 2, "the plan standard input, line 2"},
		{csv, "cost --matrix file:- -k 4 -p 1,2", 0, "4  2"},
		{csv, "cost --matrix file:- -k 4,4", 2, "-k has 2 numbers"},
		{"1 2 3", "cost --matrix vandermonde --points - -k 2..3", 2, "-k has 2 numbers"},
	} {
		code, stdout, stderr := volley(c.stdin, c.args)
		text := stdout
		if c.code != 0 {
			text = stderr
		}
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit %d, %s%s: want %d, %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}
