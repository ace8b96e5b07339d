package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/engine"
	"volley/internal/exit"
	"volley/internal/testprogram"
)

// fakeSrun is srun -nN for tests: it starts N processes here with the variables of a step, passes on a SIGTERM, and
// ends with their largest exit code. A bash that waits may not survive a second SIGTERM, which the kernel sends where the
// threads of a parent are killed one by one: so the processes have one of their own when it ends.
const fakeSrun = `#!/bin/bash
n=${1#-n}; shift
export SLURM_STEP_NUM_TASKS=$n SLURM_STEP_NODELIST=localhost SLURM_JOB_ID=%d
trap 'n=0; kill -TERM $(jobs -p)' TERM # before there are any, on a busy machine too
for ((i = 0; i < n; i++)); do SLURM_PROCID=$i setpriv --pdeathsig TERM "${@//RANK/$i}" & pids+=($!); done
most=0
for p in "${pids[@]}"; do
	while :; do wait "$p"; code=$?; kill -0 "$p" 2>/dev/null || break; done
	((code > most)) && most=$code
done
exit $most
`

// newSrun returns the fake srun.
func newSrun(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "srun")
	if err := testprogram.Write(name, fmt.Appendf(nil, fakeSrun, os.Getpid())); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestStep has a step of several processes protect, recover and verify, with metrics.
func TestStep(t *testing.T) {
	t.Parallel()
	f := newFleet(t) // its mark finds the processes
	srun, self := newSrun(t), thisProgram(t)
	dirs := writeNodes(t, 3, 100_000)
	pattern := strings.TrimSuffix(dirs[0], "0") + "RANK"
	at := filepath.Join(t.TempDir(), "volley.prom")
	want := fmt.Sprint(filesOf(t, dirs[1]))
	run := func(verb string, flags ...string) result {
		secret, _ := engine.NewSecret().MarshalText()
		p := f.command(t, slices.Concat([]string{verb, "--port", "7200-7263"}, flags, []string{pattern})...)
		p.Path, p.Args = srun, slices.Concat([]string{srun, "-n3", self}, p.Args[1:])
		p.Env = append(p.Env, engine.SecretVariable+"="+string(secret))
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		return p.end(t)
	}
	if r := run("protect", "--tolerate", "1", "--metrics", at); r.code != exit.OK || strings.Count(r.stdout, "protected, generation 1") != 1 {
		t.Fatalf("%+v", r)
	}
	if got := metricsOf(t, at, "protect"); got["success"] != 1 || got["nodes"] != 3 {
		t.Errorf("%v", got)
	}
	if err := os.RemoveAll(dirs[1]); err != nil {
		t.Fatal(err)
	}
	if r := run("verify"); r.code != exit.Wrong || strings.Count(r.stderr, "volley: ") != 1 {
		t.Errorf("%+v", r)
	}
	if r := run("recover"); r.code != exit.OK || fmt.Sprint(filesOf(t, dirs[1])) != want {
		t.Errorf("%+v", r)
	}
	if r := run("verify", "--log-format", "json", "--json=x"); r.code != exit.Usage || !strings.Contains(r.stderr, "--json") {
		t.Errorf("%+v", r)
	}
	f.ended(t)
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
		{append([]string{"verify", "--log-format", "json"}, dirs...), map[string]any{"verb": "verify", "host": host, "rank": 0.0, "msg": "the group is not protected; next: volley protect"}, ""},
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
	if r := f.run("verify", "--log-format", "xml", dirs[0], dirs[1]); r.code != exit.Usage || !strings.Contains(r.stderr, "want text or json") {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}
