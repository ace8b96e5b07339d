package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// TestRun runs some ranks twice, and sinks that are not sources.
func TestRun(t *testing.T) {
	for _, args := range []string{"-k 100 --field 2^16 --size 64B -n 2", "-k 20 --sinks 7 --separate --size 10B -n 2"} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out); err != nil {
			t.Fatal(err)
		}
		want := `^run 1: \d+ ranks, \S+ .*, C1 \d+, C2 [\d.]+, C3 \d+, .* MiB .*\nrun 2: .*\n$`
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("%s: got %q", args, out.String())
		}
	}
	for args, want := range map[string]string{
		"-k 0": "processors", "x": "flags only", "-k 4 --size x": "size", "--none": "unknown flag", "-k 4 --field 2^2 --matrix dft": "",
	} {
		if err := run(t.Context(), strings.Fields(args), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v", args, err)
		}
	}
	var help bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &help); err != nil || !strings.Contains(help.String(), "--processors") {
		t.Errorf("help: %v", err)
	}
}
