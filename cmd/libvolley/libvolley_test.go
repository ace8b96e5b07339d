//go:build mpi

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"volley"
	"volley/field"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// build makes the library and a C program with it, and returns the path of that.
func build(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for _, line := range []string{
		"go build -tags mpi -buildmode=c-shared -o " + dir + "/libvolley.so .",
		"mpicc -Wall -Werror -I . -o " + dir + "/program " + source + " -L " + dir + " -lvolley -Wl,-rpath," + dir,
	} {
		args := strings.Fields(line)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	return filepath.Join(dir, "program")
}

// mpirun runs a program in n processes.
func mpirun(t *testing.T, n int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mpirun", append([]string{"--oversubscribe", "-n", fmt.Sprint(n)}, args...)...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("mpirun -n %d %v: %v\n%s", n, args, err, out)
	}
	return string(out)
}

// TestCalls runs testdata/calls.c, which checks what the calls return.
func TestCalls(t *testing.T) {
	program := build(t, "testdata/calls.c")
	for _, n := range []int{1, 2, 5} {
		for _, mode := range []string{"single", "multiple"} {
			if out := mpirun(t, n, program, mode); !strings.Contains(out, "done") {
				t.Errorf("%d processes, %s: %s", n, mode, out)
			}
		}
	}
}

// TestExample compares the example with the library in one process.
func TestExample(t *testing.T) {
	const n = 4
	program, dir := build(t, "../../examples/mpi-c/checkpoint.c"), t.TempDir()
	random := rand.NewChaCha8([32]byte{2})
	packets := make([][]byte, n)
	for k := range packets {
		packets[k] = make([]byte, 10_000+k)
		random.Read(packets[k])
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("ckpt.", k)), packets[k], 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mpirun(t, n, program, filepath.Join(dir, "ckpt"), filepath.Join(dir, "coded"))
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	a, err := matrix.Spec{Family: "cauchy"}.Build(f, n, n)
	if err != nil {
		t.Fatal(err)
	}
	err = local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
		want, _, err := volley.Encode(ctx, tr, a, packets[tr.Rank()])
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("coded.", tr.Rank())))
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("coded.%d is another packet", tr.Rank())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
