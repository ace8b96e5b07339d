package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"volley/engine"
	"volley/internal/disk/disktest"
	"volley/internal/exit"
	"volley/tune"
)

// statusFile is the variable that names a file for what Linux says of a process at its end.
const statusFile = "VOLLEY_TEST_STATUS"

// TestMain keeps what was measured on this machine out of the tests, what has launched them, and their files in memory.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		end(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Setenv(tune.Variable, "off") // also of the commands
	for _, variable := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", engine.SecretVariable} {
		os.Unsetenv(variable)
	}
	disktest.InMemory()
	flag.Parse()
	flag.Set("test.testlogfile", "") // 200 MB of names of files, which go test would look at to keep the result
	end(m.Run())
}

// end ends this process, of which the status comes to its file.
func end(code int) {
	if name := os.Getenv(statusFile); name != "" {
		status, _ := os.ReadFile("/proc/self/status")
		os.WriteFile(name, status, 0o600)
	}
	os.Exit(code)
}

// measured matches what differs from machine to machine, and from run to run.
var measured = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?m)^time=.* level=WARN msg="the model is far off .*\n`), ""}, // as in 30 ms on a busy machine
	{regexp.MustCompile(`(?m)^(measured .* on 1 host), .*$`), "$1, …"},
	{regexp.MustCompile(`(?m)^(G .*) for each byte.*\n( .*\n)*`), "$1 for each byte…\n"},
	{regexp.MustCompile(`(?m)^\d+ +\d{4,} .*\n`), ""}, // of the sizes, a slow machine has not all
	{regexp.MustCompile(`[0-9.]+(e[-+][0-9]+)?(ns|µs|ms|s)\b`), "…"},
	{regexp.MustCompile(`[-+]?[0-9.]+ %`), "… %"},
	{regexp.MustCompile(`(\S)   +`), "$1  "},
}

// TestTuneConversations is TestConversations for volley tune, with an ellipsis for
// each figure. There is one more directive:
//
//	env NAME VALUE  sets an environment variable
func TestTuneConversations(t *testing.T) {
	path, err := filepath.Abs("testdata/tune.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		name := func() string { return d.CmdArgs[0].Key }
		switch d.Cmd {
		case "volley":
			out := converse(d.Input)
			if strings.Contains(d.Input, "--help") {
				return out
			}
			for _, m := range measured {
				out = m.pattern.ReplaceAllString(out, m.with)
			}
			return out
		case "env":
			if err := os.Setenv(name(), d.CmdArgs[1].Key); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return ""
		case "file":
			write(t, name(), d.Input+"\n")
			return ""
		case "ls":
			return strings.Join(listDir(t, name()), " ") + "\n"
		case "cat":
			return string(readFile(t, name()))
		}
		d.Fatalf(t, "unknown directive %q", d.Cmd)
		return ""
	})
	if err := os.Setenv(tune.Variable, "off"); err != nil {
		t.Fatal(err)
	}
}

// TestTuneJSON checks that what --json prints is what the file holds, and that the
// flags arrive.
func TestTuneJSON(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tune.json")
	out := mustRun(t, "tune", "--json", "-o", path, "--time", "20ms", "--field", "2^16, 257,65536", "-k", "4")
	list, err := tune.Load(path)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	r := list[0]
	printed := new(tune.Result)
	if err := json.Unmarshal([]byte(out), printed); err != nil || !reflect.DeepEqual(printed, r) {
		t.Errorf("printed %s, %v\nstored %s", out, err, readFile(t, path))
	}
	if r.Platform.String() != "local, 4 ranks on 1 host" || len(r.Coding) != 2 || r.Coding[0].Field != "2^16" || r.Coding[1].Field != "257" {
		t.Errorf("%+v", r)
	}
}

func TestTuneBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for args, want := range map[string]string{
		"-k 1":                    "1 processors: say how many with -k, 2 or more",
		"-p 2":                    "-p",
		"--time 0":                "--time 0s: want more than 0",
		"--time fast":             `--time "fast": want a duration`,
		"--field 2^8,twelve":      "twelve",
		"--field ,":               "--field: field",
		"-k 4000":                 "4000 processors would take 18 MiB each to measure: want 4.0 GiB at most together",
		"-o " + dir:               "is a directory",
		"-o " + os.DevNull:        "not a regular file",
		"extra":                   "extra",
		"--field 2^8 --beta 20us": "--beta",
	} {
		r := volleyRun(append([]string{"tune", "--time", "10ms"}, strings.Fields(args)...)...)
		if r.code != exit.Usage || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%s: exit %d, %q, want %q; printed %q", args, r.code, r.stderr, want, r.stdout)
		}
	}
	if names := listDir(t, dir); len(names) > 0 {
		t.Errorf("left %v", names)
	}
}

// TestTuneNowhere checks that it is said before anything is measured when there is
// no place for the result, and that -o or a dry run need none.
func TestTuneNowhere(t *testing.T) {
	t.Parallel()
	nowhere := func(args ...string) (int, string) {
		c := command(t.Context(), t, args...)
		for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", "AppData", tune.Variable} {
			c.Env = append(c.Env, variable+"=")
		}
		text, _ := c.CombinedOutput()
		return c.ProcessState.ExitCode(), string(text)
	}
	if code, text := nowhere("tune"); code != exit.Usage || !strings.Contains(text, "say where with -o FILE") {
		t.Errorf("exit %d, %q", code, text)
	}
	for _, to := range [][]string{{"--dry-run"}, {"-o", filepath.Join(t.TempDir(), "tune.json")}} {
		if code, text := nowhere(append([]string{"tune", "--time", "10ms", "--field", "2^8"}, to...)...); code != exit.OK {
			t.Errorf("%s: exit %d, %q", to, code, text)
		}
	}
}

func TestTuneCannotPrint(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"tune --dry-run --time 10ms --field 2^8", "tune --dry-run --time 10ms --field 2^8 --json"} {
		var stderr strings.Builder
		if code := run(context.Background(), strings.Fields(args), fullDisk{}, &stderr); code != exit.Failed || !strings.Contains(stderr.String(), errFull.Error()) {
			t.Errorf("%s: exit %d, %q", args, code, stderr.String())
		}
	}
}

// TestTuneInterrupted checks that nothing is stored.
func TestTuneInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	dir := t.TempDir()
	var stdout, stderr shared
	measures := writerFunc(func(p []byte) { cancel(exit.ErrInterrupted); stderr.Write(p) }) // it tells of its progress
	code := run(ctx, []string{"tune", "--time", "1h", "--progress", "1ns", "-o", filepath.Join(dir, "tune.json")}, &stdout, measures)
	if said := stderr.String(); code != exit.Interrupted || !strings.HasPrefix(said, "volley: tune: ") || !strings.HasSuffix(said, "\nvolley: interrupted\n") || stdout.String() != "" {
		t.Errorf("exit %d, %q, %q", code, said, &stdout)
	}
	if names := listDir(t, dir); len(names) > 0 {
		t.Errorf("left %v", names)
	}
	if !errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
		t.Error("it was over before the interrupt")
	}
}

// TestAssumed checks that reports say which measured network a plan was chosen for, and only
// where it was.
func TestAssumed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(tune.Variable, filepath.Join(dir, "tune.json"))
	mustRun(t, "tune", "-o", os.Getenv(tune.Variable), "--time", "20ms", "--field", "2^8")
	list, err := tune.Load(os.Getenv(tune.Variable))
	if err != nil {
		t.Fatal(err)
	}
	by := "that volley tune measured on " + list[0].Date.Format(time.DateOnly) + ": local, 2 ranks on 1 host"
	var args []string
	for _, name := range []string{"a", "b", "c"} {
		node := filepath.Join(dir, name)
		if err := os.Mkdir(node, 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(node, "data"), "data of "+name)
		args = append(args, node)
	}
	plan := filepath.Join(dir, "plan.json")
	write(t, plan, mustRun(t, "plan", "-k", "3", "--format", "json"))
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		verb     string
		measured bool
	}{
		{"encode --dry-run", true},
		{"encode --dry-run --json", true},
		{"encode -o " + out, true},
		{"encode --dry-run --plan " + plan, false},
		{"protect --tolerate 1 --dry-run --json", true},
		{"protect --tolerate 1 --json", true},
	} {
		got := mustRun(t, append(strings.Fields(c.verb), args...)...)
		want := "chosen for one process, in which messages cost next to nothing, with the γ " + by
		if strings.HasPrefix(c.verb, "protect") {
			want = "chosen for the network " + by
		}
		if strings.Contains(got, want) != c.measured || !c.measured && strings.Contains(got, "volley tune") {
			t.Errorf("%s: %s\nwant %q: %v", c.verb, got, want, c.measured)
		}
	}
	for what, path := range map[string]string{"a directory": dir, "not JSON": filepath.Join(args[0], "data"), "missing": filepath.Join(dir, "none")} {
		os.Setenv(tune.Variable, path)
		for _, verb := range []string{"verify", "status", "protect --tolerate 1", "recover", "encode --dry-run"} {
			if r := volleyRun(append(strings.Fields(verb), args...)...); r.code != exit.OK || !strings.Contains(r.stderr, path) {
				t.Errorf("%s, the file of tune is %s: %+v", verb, what, r)
			}
		}
		if r := volleyRun("plan", "-k", "3"); r.code == exit.OK || !strings.Contains(r.stderr, path) || !strings.Contains(r.stderr, tune.Variable) {
			t.Errorf("plan, the file of tune is %s: %+v", what, r)
		}
	}
	os.Setenv(tune.Variable, "off")
	if got := mustRun(t, append([]string{"encode", "--dry-run"}, args...)...); strings.Contains(got, "volley tune") {
		t.Errorf("with nothing measured: %s", got)
	}
}
