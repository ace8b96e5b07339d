package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"volley/internal/exit"
	"volley/internal/gauges"
)

// metricsOf returns the values in a file of metrics, and checks the form of all lines.
func metricsOf(t *testing.T, path, verb string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	all := map[string]float64{}
	lines := strings.Split(string(text), "\n")
	for i := 0; i+2 < len(lines); i += 3 {
		if lines[i] == "# EOF" {
			break
		}
		var name, label string
		var v float64
		name = strings.Fields(lines[i])[2]
		if n, err := fmt.Sscanf(lines[i+2], name+"{verb=%q} %g", &label, &v); n != 2 || label != verb || !strings.HasPrefix(lines[i], "# HELP volley_") || lines[i+1] != "# TYPE "+name+" gauge" {
			t.Fatalf("%q: %v", lines[i:i+3], err)
		}
		all[strings.TrimPrefix(name, "volley_")] = v
	}
	if !strings.HasSuffix(string(text), "\n# EOF\n") || len(all) < 4 {
		t.Fatalf("%s", text)
	}
	for name := range all {
		if gauges.Help[name] == "" {
			t.Errorf("%s has no help", name)
		}
	}
	return all
}

// TestMetrics runs the verbs on a group that loses a node and then a second file.
func TestMetrics(t *testing.T) {
	t.Parallel()
	begun := float64(time.Now().Unix())
	at := filepath.Join(t.TempDir(), "volley.prom")
	dirs := writeNodes(t, 4, 1000)
	check := func(verb string, code int, want map[string]float64, flags ...string) {
		t.Helper()
		r := volleyRun(append(append([]string{verb, "--metrics", at}, flags...), dirs...)...)
		r.is(t, code)
		got := metricsOf(t, at, verb)
		want["exit_code"] = float64(code)
		want["success"] = 0
		if code == exit.OK {
			want["success"] = 1
			if got[gauges.LastSuccess] < begun {
				t.Errorf("%s: %v", verb, got)
			}
		}
		for name, v := range want {
			if x, ok := got[name]; !ok || x != v {
				t.Errorf("%s: %s is %v, want %v: %v", verb, name, x, v, got)
			}
		}
		if got["last_run_timestamp_seconds"] < begun || got["duration_seconds"] <= 0 {
			t.Errorf("%s: %v", verb, got)
		}
	}
	check("protect", exit.OK, map[string]float64{"generation": 1, "nodes": 4, "tolerated_nodes": 2}, "--tolerate", "2")
	if got := metricsOf(t, at, "protect"); got["data_bytes"] == 0 || got["parity_bytes"] == 0 || got["sent_bytes"] == 0 {
		t.Errorf("%v", got)
	}
	success := metricsOf(t, at, "protect")[gauges.LastSuccess]
	must(t, os.RemoveAll(dirs[1]))
	vanish(t, filepath.Join(dirs[2], "ckpt"))
	check("protect", exit.Usage, map[string]float64{gauges.LastSuccess: success}, "--tolerate", "2") // it failed, and says when it did not
	check("protect", exit.Usage, map[string]float64{gauges.LastSuccess: success}, "--tolerant")
	check("status", exit.Wrong, map[string]float64{"lost_nodes": 1, "may_lose_nodes": 0, "generation": 1})
	check("verify", exit.Wrong, map[string]float64{"lost_nodes": 1, "damaged_nodes": 1, "may_lose_nodes": 0, "nodes": 4})
	if got := metricsOf(t, at, "verify"); got[gauges.LastSuccess] != 0 {
		t.Errorf("success of another verb: %v", got)
	}
	check("recover", exit.OK, map[string]float64{"lost_nodes": 1, "damaged_nodes": 1})
	check("verify", exit.OK, map[string]float64{"lost_nodes": 0, "damaged_nodes": 0, "may_lose_nodes": 2, "tolerated_nodes": 2})
	rewrite(t, filepath.Join(dirs[1], "ckpt"), []byte("other"))
	check("verify", exit.OK, map[string]float64{"at_risk_files": 2})
	check("status", exit.OK, map[string]float64{"at_risk_files": 2})
	for _, bad := range []string{t.TempDir(), filepath.Join(at, "x"), filepath.Join(t.TempDir(), "none", "x")} {
		if r := volleyRun(append([]string{"status", "--metrics", bad}, dirs...)...); r.code != exit.Usage || strings.Count(r.stderr, "--metrics") != 1 {
			t.Errorf("%s: %+v", bad, r)
		}
	}
	volleyRun(append([]string{"protect", "--tolerate=2", "--dry-run", "--metrics", at}, dirs...)...).is(t, exit.Usage, "a dry run has no metrics")
	metricsOf(t, at, "status") // as before
	if _, err := os.Stat("/proc"); err != nil {
		t.Log("no /proc, in which nobody can make a file")
	} else if r := volleyRun(append([]string{"status", "--metrics", "/proc/x.prom"}, dirs...)...); r.code != exit.Failed || !strings.Contains(r.stderr, "--metrics /proc/x.prom: not written: ") || !strings.Contains(r.stdout, "4 nodes") {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(at), "*")); len(left) != 1 {
		t.Errorf("%v", left)
	}
}
