package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley"
	"volley/internal/exit"
)

// traceOf reads a trace.
func traceOf(t *testing.T, path string) (spans map[string]int, bytes map[string]float64) {
	t.Helper()
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			Pid, Tid int
			Ts, Dur  float64
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(readFile(t, path), &file); err != nil {
		t.Fatal(err)
	}
	spans, bytes = map[string]int{}, map[string]float64{}
	ends := map[int]float64{}
	for _, e := range file.TraceEvents {
		if e.Ph == "M" {
			continue
		}
		spans[e.Name]++
		n, _ := e.Args["bytes"].(float64)
		bytes[e.Name] += n
		if e.Pid != 0 || e.Ph != "X" {
			t.Errorf("%+v: want a complete span of rank 0", e)
		}
		if e.Ts < ends[e.Tid]-1e-3 {
			t.Errorf("%+v begins before the end of the span ahead of it, at %v", e, ends[e.Tid])
		}
		ends[e.Tid] = e.Ts + e.Dur
	}
	return spans, bytes
}

// TestTrace looks at the traces of an encode and of a decode in segments.
func TestTrace(t *testing.T) {
	t.Parallel()
	const k, size = 5, 100_000
	in, _ := writePackets(t, slices.Repeat([]int{size}, k)...)
	dir := t.TempDir()
	coded, back, file := filepath.Join(dir, "coded"), filepath.Join(dir, "back"), filepath.Join(dir, "trace.json")
	var report volley.Report
	out := mustRun(t, "encode", "-o", coded, "--memory", "256KiB", "--json", "--trace", file, in)
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	spans, bytes := traceOf(t, file)
	if report.Segments < 2 {
		t.Errorf("%d segments: they cover too little", report.Segments)
	}
	for name, want := range map[string]int{
		"agree": 1, "plan": 1, "compile": 1, "check": 1,
		"read": report.Segments, "code": report.Segments, "observe": report.Segments, "write": report.Segments,
	} {
		if spans[name] != want {
			t.Errorf("%d spans %s, want %d", spans[name], name, want)
		}
	}
	if bytes["read"] != k*size || bytes["write"] != k*size {
		t.Errorf("%v bytes read, %v written: want %d", bytes["read"], bytes["write"], k*size)
	}

	if err := os.Remove(filepath.Join(in, "packet.02")); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "decode", "-o", back, "--trace", file, "--force", coded, in)
	if spans, _ := traceOf(t, file); spans["code"] == 0 || spans["check"] != 1 {
		t.Errorf("decode: %v", spans)
	}
}

// TestTraceRefused checks where no trace may go, and that nothing is written then.
func TestTraceRefused(t *testing.T) {
	in, _ := writePackets(t, 10, 10)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("there", []byte("kept"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("out", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ want, args string }{
		{"--trace there: it is there already; choose another name, or --force to replace it", "--trace there"},
		{"--trace out: it is there and no regular file: choose another name", "--trace out"},
		{"--trace none/x: its directory:", "--trace none/x"},
		{"--trace out/coded.1: the result has a file of that name: choose another", "--trace out/coded.1"},
		{"--trace out/manifest.json: the result has a file of that name: choose another", "--trace out/manifest.json --force"},
		{"it is an input, and would be lost: choose another name", "--force --trace " + filepath.Join(in, "packet.00")},
		{"--trace and --dry-run: a dry run does nothing that takes time; leave one of them out", "--trace x --dry-run"},
	} {
		r := volleyRun(slices.Concat([]string{"encode", "-o", "out"}, strings.Fields(c.args), []string{in})...)
		if r.code != exit.Usage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d: %s want: %s", c.args, r.code, r.stderr, c.want)
		}
	}
	if names := listDir(t, "out"); len(names) > 0 {
		t.Errorf("files in out: %v", names)
	}
	if string(readFile(t, "there")) != "kept" || len(listDir(t, ".")) != 2 {
		t.Errorf("files: %v", listDir(t, "."))
	}
}
