package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group"
	"volley/internal/exit"
	"volley/internal/gauges"
	"volley/internal/grouptext"
	"volley/internal/printable"
)

// TestVerifyShare verifies a group in shares, of which one finds what has rotted: text, JSON, metrics and exit codes.
func TestVerifyShare(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 100_000)
	verb := func(flags ...string) []string { return append(flags, dirs...) }
	mustRun(t, verb("protect", "--tolerate", "1")...)
	at := filepath.Join(t.TempDir(), "volley.prom")
	if mustRun(t, verb("status", "--metrics", at)...); metricsOf(t, at, "status")["read_timestamp_seconds"] != 0 {
		t.Errorf("never read: %v", metricsOf(t, at, "status"))
	}
	begun := time.Now().Add(-time.Second)
	for i := range 4 {
		out := mustRun(t, verb("verify", "--share", []string{"30%", "0.3"}[i%2])...)
		if !strings.Contains(out, "nothing is wrong in 30 % of each node, ") || strings.Contains(out, "first file") != (i == 0) {
			t.Errorf("share %d: %s", i, out)
		}
	}
	mustRun(t, verb("status", "--metrics", at)...)
	if read := metricsOf(t, at, "status")["read_timestamp_seconds"]; read < float64(begun.Unix()) || read > float64(time.Now().Unix()) {
		t.Errorf("read at %v", read)
	}
	if out := mustRun(t, verb("status", "-v")...); strings.Count(out, "  read whole "+time.Now().Local().Format("2006-")) != 3 {
		t.Errorf("%s", out)
	}
	path := filepath.Join(dirs[1], "sub/b")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	text[len(text)/2] ^= 1
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	os.Chtimes(path, info.ModTime(), info.ModTime())
	found := 0
	for i := range 12 {
		r := volleyRun(verb("verify", "--share", "10%", "--json", "--metrics", at)...)
		var is group.VerifyReport
		if err := json.Unmarshal([]byte(r.stdout), &is); err != nil || is.Share != 0.1 || is.ReadBytes == 0 {
			t.Fatalf("share %d: %v, %+v", i, err, r)
		}
		switch {
		case r.code == exit.Wrong && is.RiskSince != nil && is.RiskSince.What == group.Damaged && is.Nodes[1].Status == group.Damaged && metricsOf(t, at, "verify")["lost_files"] == 1:
			found++
		case r.code != exit.OK || !is.Whole || found > 0:
			t.Errorf("share %d, after %d that have found it: %+v", i, found, r)
		}
	}
	if found < 2 {
		t.Errorf("%d of 12 shares have found what has rotted", found)
	}
	r := volleyRun(verb("verify", "--share", "10%")...)
	if r.code != exit.Wrong || !strings.Contains(r.stdout, `damaged: "sub/b"`) || !strings.Contains(r.stdout, "read 10 % of each node, ") {
		t.Errorf("%+v", r)
	}
	mustRun(t, verb("recover")...)
	mustRun(t, verb("verify", "--share", "100%")...)
	for _, bad := range []string{"0", "0%", "101%", "x", "-1%", "NaN"} {
		if r := volleyRun(verb("verify", "--share", bad)...); r.code != exit.Usage || !strings.Contains(r.stderr, "want one such as 10%") {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}

// TestRiskSince says since when files would not come back.
func TestRiskSince(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 1000)
	mustRun(t, append([]string{"protect", "--tolerate", "1"}, dirs...)...)
	if err := os.WriteFile(filepath.Join(dirs[1], "ckpt"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dirs[1], "ckpt"))
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "volley.prom")
	for _, verb := range []string{"verify", "status"} {
		out := mustRun(t, append([]string{verb, "--metrics", at}, dirs...)...)
		if want := "because of what was changed since " + printable.Time(info.ModTime()) + " at " + dirs[1] + "\n"; !strings.Contains(out, want) {
			t.Errorf("%s: want %q in %s", verb, want, out)
		}
		if is := metricsOf(t, at, verb)[gauges.RiskSince]; is != float64(info.ModTime().Unix()) {
			t.Errorf("%s: %v, want %v", verb, is, info.ModTime().Unix())
		}
	}
}

// TestFoundDamaged says since when damage is known, but not of what this run has found.
func TestFoundDamaged(t *testing.T) {
	t.Parallel()
	r := &group.VerifyReport{Protected: true, Nodes: []group.NodeReport{{Status: group.Damaged, Dir: "a"}}, Risks: []group.Risk{{Dir: "b", Files: 1}}, Seconds: 60}
	for ago, want := range map[time.Duration]bool{time.Minute: false, time.Hour: true} {
		r.RiskSince = &group.Cause{Time: time.Now().Add(-ago), Dir: "a", What: group.Damaged}
		var out strings.Builder
		if err := grouptext.Verify(&out, r, false); err != nil {
			t.Fatal(err)
		}
		if is := strings.Contains(out.String(), "because of what was found damaged since "+printable.Time(r.RiskSince.Time)+" at a\n"); is != want {
			t.Errorf("%v ago: %s", ago, out.String())
		}
	}
}

// TestUnread names the node that was not read for longest, where that is long.
func TestUnread(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(days int) *group.Period {
		return &group.Period{From: now.AddDate(0, 0, -days-9), To: now.AddDate(0, 0, -days).Add(-time.Hour)}
	}
	for _, c := range []struct {
		generation int64
		since      int // days
		read       []*group.Period
		want       string
	}{
		{1, 0, []*group.Period{nil, nil}, ""},
		{31, 0, []*group.Period{ago(1), nil}, "node 1 was never read whole"},
		{2, 31, []*group.Period{nil, ago(1)}, "node 0 was never read whole"},
		{90, 1, []*group.Period{ago(29), ago(1)}, ""},
		{90, 1, []*group.Period{ago(1), ago(40), ago(35)}, "node 1 was last read whole " + printable.Time(ago(40).To) + ", 40 days ago"},
	} {
		r := &group.VerifyReport{Protected: true, Whole: true, Generation: c.generation, Since: now.AddDate(0, 0, -c.since)}
		for n, p := range c.read {
			r.Nodes = append(r.Nodes, group.NodeReport{Node: n, Status: group.Whole, Read: p})
		}
		r.Nodes = append(r.Nodes, group.NodeReport{Node: len(c.read), Status: group.Lost})
		var out strings.Builder
		if err := grouptext.Status(&out, r, false); err != nil {
			t.Fatal(err)
		}
		is := slices.Collect(strings.Lines(out.String()))
		is = slices.DeleteFunc(is, func(s string) bool { return !strings.Contains(s, "read whole") })
		if c.want == "" && len(is) > 0 || c.want != "" && (len(is) != 1 || !strings.HasPrefix(is[0], c.want)) {
			t.Errorf("%+v: %q", c, is)
		}
	}
}
