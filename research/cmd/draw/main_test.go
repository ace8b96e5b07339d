package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/cli"
)

// planned returns a plan as volley prints it.
func planned(t *testing.T, k string) *bytes.Buffer {
	t.Helper()
	var text, stderr bytes.Buffer
	if code := cli.Main([]string{"plan", "--model", "paper", "-k", k, "--format", "json"}, &text, &stderr); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr.String())
	}
	return &text
}

// TestPicture draws the picture of the README.
func TestPicture(t *testing.T) {
	t.Setenv("VOLLEY_TUNE", "off")
	var stdout, stderr bytes.Buffer
	if code := run(nil, planned(t, "8"), &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d, %s", code, stderr.String())
	}
	want, err := os.ReadFile("../../../docs/schedule.svg")
	if err != nil || !bytes.Equal(stdout.Bytes(), want) {
		t.Errorf("docs/schedule.svg is not what draw makes of its plan: %v", err)
	}
}

// TestFile checks that the suffix of a file is the format.
func TestFile(t *testing.T) {
	t.Setenv("VOLLEY_TUNE", "off")
	for suffix, want := range map[string]string{".svg": "<svg", ".pdf": "%PDF-", ".tex": "pgfpicture"} {
		name := filepath.Join(t.TempDir(), "schedule"+suffix)
		var stdout, stderr strings.Builder
		code := run([]string{"-o", name}, planned(t, "4"), &stdout, &stderr)
		if drawn, err := os.ReadFile(name); code != 0 || stdout.Len()+stderr.Len() > 0 || err != nil || !bytes.Contains(drawn, []byte(want)) {
			t.Errorf("%s: exit %d, %s%s, %.40q, %v", suffix, code, &stdout, &stderr, drawn, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Setenv("VOLLEY_TUNE", "off")
	for _, c := range []struct {
		args []string
		plan string
		want string
	}{
		{nil, "", "draw: line 1: unexpected EOF"},
		{nil, `{"format":"volley-plan","version":7}`, "version 7"},
		{nil, planned(t, "82").String(), "want at most 81 processors"},
		{[]string{"schedule.svg"}, "", "plan.json"},
		{[]string{"-o", "schedule.eps"}, planned(t, "4").String(), ".pdf"},
	} {
		var stdout, stderr strings.Builder
		if code := run(c.args, strings.NewReader(c.plan), &stdout, &stderr); code != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v %.40s: exit %d, %s%s", c.args, c.plan, code, stdout.String(), stderr.String())
		}
	}
}
