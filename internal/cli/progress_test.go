package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
)

// progressOf returns the bytes done and in all of each line of progress, which have that beginning.
func progressOf(t *testing.T, stderr, begin string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), begin); ok {
			lines = append(lines, rest)
		} else {
			t.Errorf("%q does not begin with %q", line, begin)
		}
	}
	return lines
}

// TestProgress reads the lines of progress of verbs in one process, as text and as records.
func TestProgress(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 300_000)
	packets := []string{filepath.Join(dirs[0], "ckpt"), filepath.Join(dirs[1], "sub", "b")}
	out, back := t.TempDir(), t.TempDir()
	often := []string{"--progress", "1ns"}
	for _, args := range [][]string{
		append([]string{"protect", "--tolerate", "1"}, dirs...),
		append([]string{"verify"}, dirs...),
		append([]string{"encode", "-o", out}, packets...),
		{"decode", "-o", back, out},
	} {
		r := volleyRun(append(args, often...)...)
		lines := progressOf(t, r.stderr, "volley: "+args[0]+": ")
		if r.code != exit.OK || len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], " 100 %") {
			t.Errorf("%s: %+v", args, r)
		}
		if r := volleyRun(args...); strings.Contains(r.stderr, "%") {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if err := os.RemoveAll(dirs[2]); err != nil {
		t.Fatal(err)
	}
	r := volleyRun(append([]string{"recover", "--log-format", "json", "--progress", "1ns"}, dirs...)...)
	var last struct {
		Msg, Verb   string
		Rank        *int
		Done, Total int64
	}
	for line := range strings.Lines(r.stderr) {
		before := last.Done
		if err := json.Unmarshal([]byte(line), &last); err != nil || last.Msg != "progress" || last.Verb != "recover" || last.Rank == nil || last.Done < before {
			t.Errorf("%s: %v", line, err)
		}
	}
	if r.code != exit.OK || last.Done != last.Total || last.Total < 1_000_000 {
		t.Errorf("%+v after %+v", last, r)
	}
}

// TestQuiet has verbs print errors alone, and what is asked for as JSON.
func TestQuiet(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 100_000)
	with := func(args ...string) result { return volleyRun(append(args, dirs...)...) }
	for _, args := range [][]string{
		{"protect", "-q", "--tolerate", "1", "--progress", "1ns"}, {"verify", "--quiet"}, {"status", "-q"},
		{"protect", "-q", "--tolerate", "1", "--group-size", "4"}, {"verify", "-q", "--group-size", "4"},
	} {
		if r := with(args...); r != (result{}) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := with("verify", "-q", "--json"); r.code != exit.OK || r.stderr != "" || !json.Valid([]byte(r.stdout)) {
		t.Errorf("%+v", r)
	}
	if err := os.RemoveAll(dirs[1]); err != nil {
		t.Fatal(err)
	}
	if r := with("verify", "-q"); r.code != exit.Wrong || r.stdout != "" || !strings.Contains(r.stderr, dirs[1]) {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"verify", "--progress", "-1s"}, {"verify", "--progress", "x"}} {
		if r := with(args...); r.code != exit.Usage || !strings.Contains(r.stderr, "--progress") {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// TestProgressRanks has processes tell of their own nodes, and nobody if not asked: the run is too short.
func TestProgressRanks(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 300_000)
	pattern := strings.TrimSuffix(dirs[0], "0") + "{RANK}"
	codes, text := newRankProcesses(t, 3, nil, "protect", "--tolerate", "1", "--log-format", "json", "--progress", "1ns", "--limit-rate", "10MB", pattern).do()
	for rank := range 3 {
		if !allAre(codes, exit.OK) || !strings.Contains(text, fmt.Sprintf(`"rank":%d,"done":`, rank)) {
			t.Fatalf("%v: %s", codes, text)
		}
	}
	if codes, text := newRanks(t, 3, nil, "verify", "--quiet", "--progress", "1ns", pattern).do(); !allAre(codes, exit.OK) || text != "" {
		t.Errorf("%v: %s", codes, text)
	}
}

// TestLimits takes flags that lower what a run may take, and refuses some.
func TestLimits(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 1000)
	for flags, want := range map[string]string{
		"--limit-rate 100MB": "--limit-rate: all is in this process",
		"--limit-rate 1kB":   "1MiB or more",
		"--limit-rate x":     `--limit-rate "x"`,
		"--limit-read 1kB":   "1MiB or more",
		"--limit-read x":     `--limit-read "x"`,
	} {
		if r := volleyRun(append(append([]string{"verify"}, strings.Fields(flags)...), dirs...)...); r.code != exit.Usage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %+v", flags, r)
		}
	}
	mustRun(t, append([]string{"protect", "--tolerate", "1", "--limit-read", "20M"}, dirs...)...)
}
