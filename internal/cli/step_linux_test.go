package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestStep has the places of processes in the variables of a Slurm step: they protect, recover and verify, with metrics.
func TestStep(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 3, 100_000)
	metrics := filepath.Join(t.TempDir(), "volley.prom")
	want := contents(t, dirs)
	run := func(code int, said string, args ...string) {
		t.Helper()
		r := newRankProcesses(t, 3, func(r int, c *exec.Cmd) {
			c.Args = slices.Concat(c.Args[:2], args[1:], []string{dirs[r]})
			c.Env = append(c.Env, "SLURM_STEP_NUM_TASKS=3", fmt.Sprint("SLURM_PROCID=", r), "SLURM_STEP_NODELIST=localhost", fmt.Sprint("SLURM_JOB_ID=", os.Getpid()))
		}, args...).alike()
		if r.code != code || strings.Count(r.stdout, said) != 1 {
			t.Fatalf("%q: %+v", args, r)
		}
	}
	run(exit.OK, "protected, generation 1", "protect", "--port", "7200-7263", "--tolerate", "1", "--metrics", metrics)
	if got := metricsOf(t, metrics, "protect"); got["success"] != 1 || got["nodes"] != 3 {
		t.Errorf("%v", got)
	}
	removeAll(t, dirs[1])
	run(exit.Wrong, "volley: ", "verify")
	run(exit.OK, "recovered ", "recover")
	have(t, dirs, want)
}

// TestLogJSON reads the log of launches and ranks as records.
func TestLogJSON(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dirs := writeNodes(t, 3, 1000)
	records := func(stderr string) (list []map[string]any) {
		for line := range strings.Lines(stderr) {
			var x map[string]any
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			list = append(list, x)
		}
		return list
	}
	host, _ := os.Hostname()
	for _, c := range []struct {
		args []string
		want map[string]any // of the last record
		more string         // in an earlier one
	}{
		{append([]string{"verify", "--log-format", "json"}, dirs...), map[string]any{"verb": "verify", "host": host, "rank": 0.0, "msg": "the group is not protected; next: volley protect --tolerate R " + strings.Join(dirs, " ")}, ""},
		{append(f.of("protect", "--tolerate", "1", dirs[0], dirs[1], dirs[2]), "--log-format=json", "-v"), nil, `"msg":"listens"`},
		{append(f.of("protect", "--tolerate", "1", dirs[0], "/dev/null", dirs[2]), "--log-format=json"), map[string]any{"verb": "protect", "host": "host3", "rank": 1.0, "level": "ERROR"}, "Welcome"},
		{append(f.of("protect", "--tolerate", "1", dirs[0]), "dead:/x", "--log-format=json"), map[string]any{"verb": "protect", "host": host}, "No route"},
		{[]string{"verify", "--log-format=json", "--quikc", dirs[0]}, map[string]any{"verb": "verify", "level": "ERROR", "msg": "unknown flag: --quikc: see volley verify --help"}, ""},
		{[]string{"verify", "--timeout", "x", "--log-format", "json"}, map[string]any{"verb": "verify", "level": "ERROR"}, "want a duration"},
		{[]string{"--log-format=json", "none"}, map[string]any{"verb": "volley", "level": "ERROR"}, "unknown verb"},
	} {
		r := f.run(c.args...)
		list := records(r.stderr)
		if c.want == nil == (r.code != exit.OK) || len(list) == 0 || !strings.Contains(r.stderr, c.more) {
			t.Fatalf("%s: %+v", c.args, r)
		}
		for key, v := range c.want {
			if got := list[len(list)-1][key]; got != v {
				t.Errorf("%s: %s is %v, want %v: %s", c.args, key, got, v, r.stderr)
			}
		}
	}
	f.run("verify", "--log-format", "xml", dirs[0], dirs[1]).is(t, exit.Usage, "want text or json")
	f.ended(t)
}
