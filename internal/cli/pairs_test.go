package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/exit"
	"volley/tune"
)

// TestRanksPairs measures pairs of processes, and then with one that others cannot reach.
func TestRanksPairs(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "tune.{RANK}.json")
	args := []string{"tune", "--time", "10ms", "--field", "2^8", "-o", at}
	codes, text := newRanks(t, 3, nil, args...).do()
	if !allAre(codes, exit.OK) || strings.Count(text, "good") != 6 || strings.Count(text, "at each host") != 1 {
		t.Fatalf("exit codes %v: %s", codes, text)
	}
	for _, rank := range []string{"0", "1", "2"} {
		list, err := tune.Load(strings.ReplaceAll(at, "{RANK}", rank))
		if err != nil || len(list) != 1 || list[0].Transport != "tcp" || list[0].Ranks != 3 {
			t.Errorf("rank %s: %v, %v", rank, list, err)
		}
	}
	far := func(r int, c *exec.Cmd) {
		if r == 1 {
			c.Args = append(c.Args, "--advertise", "127.0.0.1:1")
		}
	}
	for _, format := range []string{"text", "json"} {
		codes, text = newRanks(t, 3, far, append(args, "--json="+map[string]string{"text": "0", "json": "1"}[format])...).do()
		for part, n := range map[string]int{
			"2 of 6 connections fail": 1, "connection refused; open TCP port 1 of 127.0.0.1 for 127.0.0.1": 2, "(rank 2) cannot reach ": 1, "(rank 1) cannot": 0,
		} {
			if !allAre(codes, exit.Failed) || strings.Count(text, part) != n {
				t.Errorf("exit codes %v: %s: want %d times %q", codes, text, n, part)
			}
		}
		var got tuneText
		switch {
		case format == "text" && (strings.Count(text, "good") != 4 || strings.Count(text, "fails") != 2):
			t.Errorf("%s", text)
		case format == "json":
			text, _, _ = strings.Cut(text, "\nvolley:")
			if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Pairs) != 6 || got.Pairs[0].Error == "" || got.Pairs[0].Rate > 0 || got.Pairs[1].Rate == 0 || got.Pairs[1].Delay == 0 {
				t.Errorf("%v: %+v", err, got)
			}
		}
	}
}
