//go:build mpi && linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestJob measures in a job of 3 ranks: every way under MPI and the raw exchange give the
// right results. Bad flags end it with exit code 2.
func TestJob(t *testing.T) {
	dir := t.TempDir()
	program, output := filepath.Join(dir, "network"), filepath.Join(dir, "cells")
	if out, err := exec.Command("go", "build", "-tags", "mpi", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	job := func(args ...string) (code int, out string) {
		c := exec.Command("mpirun", append([]string{"--oversubscribe", "-n", "3", program, "measure"}, args...)...)
		c.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		b, err := c.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(b)
	}
	names := slices.Concat(peers, windows, uncoded, later, []string{codingAlone})
	code, out := job("--sizes", "768,300KiB", "--runs", "2", "--pauses", "0,1ms", "--raw", "127.0.0.0/8",
		"--plans", "auto exchange", "--peers", strings.Join(names, ","), "--json", output)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	data := must(os.ReadFile(output))(t)
	cells, err := readCells(data)
	if err != nil || len(cells) != 4 {
		t.Fatalf("%d cells, %v; want 4", len(cells), err)
	}
	for _, c := range cells {
		for _, name := range append(names, bare, bare+"-exchange", asDefault, raw) {
			if w, ok := c.way(name); !ok || w.Wrong > 0 || w.Seconds <= 0 || w.CPU <= 0 {
				t.Errorf("%d bytes, %s: %+v", c.Size, name, w)
			}
		}
		if !strings.Contains(c.MPI, "MPI") {
			t.Errorf("the MPI library is %q", c.MPI)
		}
	}
	for _, args := range []string{"--sizes 1KiB", "--peers gather"} { // 1 KiB has no 3 slices
		if code, out := job(strings.Fields(args)...); code != 2 || !strings.Contains(out, fmt.Sprint("network: ", errUsage)) {
			t.Errorf("%s: exit code %d\n%s", args, code, out)
		}
	}
}
