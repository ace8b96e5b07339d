package verbs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/cli"
)

// printedBy returns the JSON that a verb prints.
func printedBy(t *testing.T, args string) *bytes.Buffer {
	t.Helper()
	var text, stderr bytes.Buffer
	if code := cli.Main(append(strings.Fields(args), "--json"), &text, &stderr); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr.String())
	}
	return &text
}

func planned(t *testing.T, k string) *bytes.Buffer {
	t.Helper()
	return printedBy(t, "plan --model paper -k "+k)
}

// drawn runs the verb.
func drawn(t *testing.T, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newDraw()
	cmd.SetIn(stdin)
	return run(t.Context(), cmd, args, stdout, stderr)
}

// TestPicture draws the picture of the README.
func TestPicture(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := drawn(t, []string{"-"}, planned(t, "8"), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d, %s", code, stderr.String())
	}
	want, err := os.ReadFile("../../docs/schedule.svg")
	if err != nil || !bytes.Equal(stdout.Bytes(), want) {
		t.Errorf("docs/schedule.svg is not what draw makes of its plan: %v", err)
	}
}

// TestFigure checks that the verb writes the figure of its number, and names what is no figure.
func TestFigure(t *testing.T) {
	for _, n := range []string{"1", "2", "3", "4"} {
		name := filepath.Join(t.TempDir(), "figure.tex")
		var stdout, stderr strings.Builder
		code := run(t.Context(), newFigure(), []string{n, "-o", name}, &stdout, &stderr)
		want, err := os.ReadFile("../web/public/figures/figure-" + n + ".tex")
		if got, _ := os.ReadFile(name); code != 0 || err != nil || !bytes.Equal(got, want) {
			t.Errorf("figure %s: exit %d, %s%s, %v", n, code, &stdout, &stderr, err)
		}
	}
	for _, args := range [][]string{{"0"}, {"5"}, {"01"}, {}, {"1", "2"}, {"1", "-o", "a.eps"}} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), newFigure(), args, &stdout, &stderr); code != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "want") {
			t.Errorf("%v: exit %d, %s%s", args, code, &stdout, &stderr)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		plan string
		want string
	}{
		{[]string{"-"}, "", "standard input: unexpected EOF"},
		{[]string{"-"}, `{"format":"volley-plan","version":7}`, "version 7"},
		{[]string{"-"}, planned(t, "82").String(), "want at most 81 processors"},
		{nil, "", "want one file"},
		{[]string{"none.json"}, "", "none.json"},
		{[]string{"-", "-o", "schedule.eps"}, planned(t, "4").String(), ".pdf"},
	} {
		var stdout, stderr strings.Builder
		if code := drawn(t, c.args, strings.NewReader(c.plan), &stdout, &stderr); code != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v %.40s: exit %d, %s%s", c.args, c.plan, code, stdout.String(), stderr.String())
		}
	}
}

// TestMatrix draws matrices as volley prints them, and refuses what is too large or none.
func TestMatrix(t *testing.T) {
	for args, want := range map[string]string{
		"matrix --field 257 --matrix dft -k 8 --order reversed": "dft, order reversed: 8 × 8, field 257",
		"matrix -k 5 --sinks 2":                                 "5 × 2",
		"matrix --matrix lch -k 60 --inverse":                   "inverse of lch: 60 × 60",
	} {
		var stdout, stderr strings.Builder
		if code := drawn(t, []string{"-"}, printedBy(t, args), &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: exit %d, %s: no %q", args, code, stderr.String(), want)
		}
	}
	for text, want := range map[string]string{
		printedBy(t, "matrix --field 2^16 -k 257 --sinks 10").String(): "257 × 10 entries are too many to draw: want at most 256 × 256",
		`{"field":"6","entries":[["1"]]}`:                              `field "6"`,
		`{"field":"7","entries":[]}`:                                   "entries",
		`{"field":"7","entries":[["9"]]}`:                              "entries",
	} {
		var stdout, stderr strings.Builder
		if code := drawn(t, []string{"-"}, strings.NewReader(text), &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
			t.Errorf("%.40s: exit %d, %s: no %q", text, code, stderr.String(), want)
		}
	}
}
