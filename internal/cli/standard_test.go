package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMatrixInverse prints the points of the matrix that is inverted.
func TestMatrixInverse(t *testing.T) {
	for args, want := range map[string]string{
		"--matrix vandermonde --points powers -k 3":        "# inverse of vandermonde\n# alpha 1 2 4\n",
		"--matrix lagrange --field 257 -k 2":               "# inverse of lagrange\n# omega 1 256\n# alpha 3 254\n",
		"--matrix dft --order reversed --field 257 -k 4":   "# inverse of dft\n# order reversed\n",
		"--matrix vandermonde --points powers -k 3 --json": `"alpha":["1","2","4"]`,
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), strings.Fields("matrix --inverse "+args), &stdout, &stderr)
		if code != 0 || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: exit %d, %s%s: want %q", args, code, stdout.String(), stderr.String(), want)
		}
	}
}

// TestStandard has one stream come from standard input, and no two.
func TestStandard(t *testing.T) {
	t.Setenv("VOLLEY_TUNE", "off")
	dir := t.TempDir()
	volley := func(stdin, args string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := runSession(context.Background(), &session{stdin: strings.NewReader(stdin)}, strings.Fields(args), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	_, plan, _ := volley("", "plan -k 4 --json")
	_, csv, _ := volley("", "matrix -k 4")
	csv = csv[strings.LastIndexByte(csv, '#'):]
	csv = csv[strings.IndexByte(csv, '\n')+1:] // without points, which a file has not
	packets := filepath.Join(dir, "in")
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := os.MkdirAll(packets, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(packets, name), []byte("packet "+name), 0o666); err != nil {
			t.Fatal(err)
		}
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
		{plan, "encode --plan - --dry-run " + packets, 0, "nothing written"},
		{csv, "encode --matrix file:- -o " + dir + "/coded " + packets, 0, "verified"},
		{plan, "check - --matrix file:-", 2, "standard input can be read once"},
		{"1 2", "matrix --matrix cauchy --omega - --alpha - -k 2", 2, "standard input can be read once"},
		{"1,x", "matrix --matrix file:-", 2, "line 1"},
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
	job := &session{stdin: strings.NewReader(csv), party: &party{part: func(ending, *session) int { return 0 }}}
	if _, err := job.openInput("-"); err == nil || !strings.Contains(err.Error(), "name a file") {
		t.Errorf("one of several processes: %v", err)
	}
}
