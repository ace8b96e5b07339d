package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/engine"
	"volley/internal/exit"
	"volley/internal/testprogram"
	"volley/transport/transporttest"
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
		return f.run(append(append([]string{verb, "--launch", srun + " -n3", "--remote-path", self, "--port", "7200-7263"}, flags...), pattern)...)
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
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--launch", "'x"}, exit.Usage, "--launch"},
		{[]string{"--launch", "/none/srun -n3"}, exit.Failed, "--launch: /none/srun"},
		{[]string{"--launch", "false"}, exit.Failed, "--launch: false: exit status 1"},
		{[]string{"--launch", "sh -c 'kill -9 $$'"}, exit.Failed, "--launch: sh -c kill -9 $$: signal: killed"},
		{[]string{"--launch", srun, "--secret", "x"}, exit.Usage, "--secret: --launch starts"},
		{[]string{"--launch", srun, "--rank", "1"}, exit.Usage, "--rank: --launch starts"},
		{[]string{"--launch", srun, "a:/x"}, exit.Usage, "a:/x is reached by ssh"},
	} {
		if r := f.run(append([]string{"verify"}, c.args...)...); r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: %+v", c.args, r)
		}
	}
	f.ended(t)
}

// TestStepIgnored interrupts a launcher that ignores it, and one that does not tell its processes; another one ends
// before them. Nothing is left.
func TestStepIgnored(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for script, want := range map[string]result{
		"trap '' TERM; sleep 300 & echo; wait; wait": {code: exit.Interrupted, stderr: "interrupted"},
		"sleep 300 & echo; exec sleep 300":           {code: exit.Interrupted, stderr: "interrupted"},
		"sleep 300 &":                                {code: exit.Failed, stderr: "it has ended before the processes"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := starting(f.env...)
		s.Limits.End = 50 * time.Millisecond
		var stderr bytes.Buffer
		begun := writerFunc(func([]byte) { cancel(exit.ErrInterrupted) })
		if got := execute(ctx, s, []string{"verify", "--launch", `bash -c "` + script + `"`, "/none"}, begun, &stderr); got != want.code || !strings.Contains(stderr.String(), want.stderr) {
			t.Errorf("%s: exit code %d: %s", script, got, &stderr)
		}
		cancel(nil)
		f.ended(t)
	}
}

// running returns how many processes run a program that the launch itself does not: what a shell has forked is none yet.
func (f *fleet) running(program string) (n int) {
	for _, pid := range f.processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(string(line), program+"\x00") && !strings.Contains(string(line), "\x00--launch") {
			n++
		}
	}
	return n
}

// TestStepEnded interrupts a step, and kills what started it: nothing is left, and the secret was in no argument.
func TestStepEnded(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	srun, self := newSrun(t), thisProgram(t)
	dirs := writeNodes(t, 2, 1000)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, os.Kill} {
		// A step of three, of which one waits for nobody: the others wait for it.
		waits := filepath.Join(t.TempDir(), "volley")
		if err := testprogram.Write(waits, []byte("#!/bin/sh\n[ $SLURM_PROCID = 2 ] && exec sleep 300\nexec "+self+" \"$@\"\n")); err != nil {
			t.Fatal(err)
		}
		p := f.command(t, "protect", "--tolerate", "1", "--launch", srun+" -n3", "--remote-path", waits, "--port", "7300-7363", "--timeout", "2m", strings.TrimSuffix(dirs[0], "0")+"RANK")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); f.running("sleep") < 1 || f.running(self) < 2; time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > transporttest.Limit {
				t.Fatalf("only %v run", f.processes())
			}
		}
		for _, pid := range f.processes() {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if _, secret, ok := strings.Cut(string(environment), engine.SecretVariable+"="); ok && strings.Contains(string(line), secret[:64]) {
				t.Errorf("%q has the secret", line)
			}
		}
		p.Process.Signal(s)
		r := p.end(t)
		if s != os.Kill && r.code != exit.Interrupted {
			t.Errorf("%v: %+v", s, r)
		}
		f.ended(t)
	}
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
		{[]string{"verify", "--launch", "sh -c 'echo 7 >&2; exit 1'", "--log-format=json"}, map[string]any{"host": host}, ""},
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
	if r := f.run("verify", "--log-format", "xml", dirs[0], dirs[1]); r.code != exit.Usage || !strings.Contains(r.stderr, "want one of text, json") {
		t.Errorf("%+v", r)
	}
	f.ended(t)
}
