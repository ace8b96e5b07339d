package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/internal/grouptext"
	"volley/internal/printable"
)

// TestVerifyPart verifies a group in parts: text, JSON, metrics and exit codes.
func TestVerifyPart(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 100_000)
	verb := func(flags ...string) []string { return append(flags, dirs...) }
	mustRun(t, verb("protect", "--tolerate", "1")...)
	at := filepath.Join(t.TempDir(), "volley.prom")
	begun := time.Now().Add(-time.Second)
	for i := range 3 {
		if mustRun(t, verb("status", "--metrics", at)...); metricsOf(t, at, "status")["read_timestamp_seconds"] != 0 {
			t.Errorf("%d of 3 parts: never read: %v", i, metricsOf(t, at, "status"))
		}
		part := fmt.Sprintf("%d/3", i+1)
		if out := mustRun(t, verb("verify", "--part", part)...); !strings.Contains(out, "nothing is wrong in part "+part+" of each node, ") {
			t.Errorf("part %s: %s", part, out)
		}
	}
	mustRun(t, verb("status", "--metrics", at)...)
	if read := metricsOf(t, at, "status")["read_timestamp_seconds"]; read < float64(begun.Unix()) || read > float64(time.Now().Unix()) {
		t.Errorf("read at %v", read)
	}
	if out := mustRun(t, verb("status", "-v")...); strings.Count(out, "  all read since "+time.Now().Local().Format("2006-")) != 3 {
		t.Errorf("%s", out)
	}
	today := func() string { return fmt.Sprintf("part %d/30 of each node", time.Now().Unix()/86400%30+1) }
	before := today()
	if out := mustRun(t, verb("verify", "--part", "today/30")...); !strings.Contains(out, before) && !strings.Contains(out, today()) {
		t.Errorf("want %s: %s", before, out)
	}
	damage(t, filepath.Join(dirs[1], "sub/b"))
	text := expect(t, exit.OK, "verify --part 1/2", dirs) + expect(t, exit.OK, "verify --part 2/2", dirs)
	if strings.Count(text, `changed: "sub/b"`) != 1 || strings.Count(text, "read part ") != 1 {
		t.Error(text)
	}
	expect(t, exit.OK, "verify --part 2/5 --json", dirs, `"part": 2`, `"parts": 5`)
	for _, bad := range []string{"0", "3", "0/3", "4/3", "-1/3", "x/3", "1/x", "today", "today/0", "/", "1/2/3", "10%"} {
		expect(t, exit.Usage, "verify --part "+bad, dirs, "want one such as 3/30")
	}
	expect(t, exit.Usage, "verify --part 1/1001", dirs, "1000 at most")
}

// TestUnread names the node that was not read for longest, where that is long.
func TestUnread(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(days int) *protection.Reading {
		return &protection.Reading{Since: now.AddDate(0, 0, -days).Add(-time.Hour), Part: days, Parts: 90}
	}
	for _, c := range []struct {
		generation int64
		since      int // days
		read       []*protection.Reading
		want       string
	}{
		{1, 0, []*protection.Reading{nil, nil}, ""},
		{31, 0, []*protection.Reading{ago(1), nil}, "node 1 was never read whole"},
		{2, 31, []*protection.Reading{nil, ago(1)}, "node 0 was never read whole"},
		{90, 1, []*protection.Reading{ago(29), ago(1)}, ""},
		{90, 1, []*protection.Reading{ago(34), ago(1)}, ""},
		{90, 1, []*protection.Reading{ago(1), ago(40), ago(36)}, "part 40/90 of node 1 was last read " + printable.Time(ago(40).Since) + ", 40 days ago. next: volley verify --part 40/90"},
	} {
		r := &group.VerifyReport{Protected: true, Intact: true, Generation: c.generation, Since: now.AddDate(0, 0, -c.since)}
		for n, p := range c.read {
			r.Nodes = append(r.Nodes, group.NodeReport{Node: n, Status: group.Intact, Read: p})
		}
		r.Nodes = append(r.Nodes, group.NodeReport{Node: len(c.read), Status: group.Lost})
		var out strings.Builder
		must(t, grouptext.Status(&out, r, grouptext.Style{}))
		is := slices.Collect(strings.Lines(out.String()))
		is = slices.DeleteFunc(is, func(s string) bool { return !strings.Contains(s, "read whole") && !strings.Contains(s, "last read") })
		if c.want == "" && len(is) > 0 || c.want != "" && (len(is) != 1 || !strings.HasPrefix(is[0], c.want)) {
			t.Errorf("%+v: %q", c, is)
		}
	}
}
