package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestProgress reads the lines of progress of verbs in one process, as text and as records.
func TestProgress(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 300_000)
	coded := t.TempDir()
	for _, args := range [][]string{
		append([]string{"protect", "--tolerate", "1"}, dirs...),
		append([]string{"verify"}, dirs...),
		{"encode", "-o", coded, filepath.Join(dirs[0], "ckpt"), filepath.Join(dirs[1], "sub", "b")},
		{"decode", "-o", t.TempDir(), coded},
	} {
		r := volleyRun(append(args, "--progress", "1ns")...)
		if r.code != exit.OK || !strings.HasSuffix(r.stderr, " 100 %\n") {
			t.Errorf("%s: %+v", args, r)
		}
		for line := range strings.Lines(r.stderr) {
			if !strings.HasPrefix(line, "volley: "+args[0]+": ") {
				t.Errorf("%s: %q", args, line)
			}
		}
		if r := volleyRun(args...); strings.Contains(r.stderr, "%") {
			t.Errorf("%s: %+v", args, r)
		}
	}
	removeAll(t, dirs[2])
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
	for _, args := range []string{
		"protect -q --tolerate 1 --progress 1ns", "verify --quiet", "status -q", "protect -q --tolerate 1 --group-size 4", "verify -q --group-size 4",
	} {
		if text := expect(t, exit.OK, args, dirs); text != "" {
			t.Errorf("%s: %s", args, text)
		}
	}
	if text := expect(t, exit.OK, "verify -q --json", dirs); !json.Valid([]byte(text)) {
		t.Error(text)
	}
	removeAll(t, dirs[1])
	if r := volleyRun(append([]string{"verify", "-q"}, dirs...)...); r.code != exit.Wrong || r.stdout != "" || !strings.Contains(r.stderr, dirs[1]) {
		t.Errorf("%+v", r)
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
