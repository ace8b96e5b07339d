//go:build mpi

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"volley"
	"volley/coded"
	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/transport"
	"volley/verify"
)

// library makes the library, once for all tests, and returns its folder.
var library = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "libvolley"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-tags", "mpi", "-buildmode=c-shared", "-o", dir+"/libvolley.so", ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return dir, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := library(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// build makes a C program with the library, and returns the path of it.
func build(t *testing.T, source string) string {
	t.Helper()
	dir, err := library()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program")
	command(t, nil, strings.Fields("mpicc -Wall -Werror -pthread -I . -o "+program+" "+source+" -L "+dir+" -lvolley -Wl,-rpath,"+dir)...)
	return program
}

// command runs a command with more variables, and returns what it prints.
func command(t *testing.T, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = slices.Concat(os.Environ(), []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}, env)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// mpirunArgs is the command that runs a program in n processes.
func mpirunArgs(n int) []string { return []string{"mpirun", "--oversubscribe", "-n", fmt.Sprint(n)} }

// mpirun runs a program in n processes.
func mpirun(t *testing.T, n int, args ...string) string {
	t.Helper()
	return command(t, nil, append(mpirunArgs(n), args...)...)
}

// TestCalls runs the programs of testdata, which check what the calls return, of jobs in which MPI may be called by one thread or by
// several: packets, buffers and requests, memory that processes share and encodes that run many times, groups of directories, and calls
// that MPI would end the job for or whose processes come late or never.
func TestCalls(t *testing.T) {
	for name, modes := range map[string]string{
		"calls":      "1 single, 2 multiple, 5 single, 3 multiple",
		"buffers":    "1 single, 5 single, 2 multiple, 5 multiple, 3 finalize, 3 signals, 3 memory",
		"persistent": "1 single, 2 multiple, 3 single, 4 multiple, 3 open",
		"groups":     "2 DIR, 3 DIR single, 4 DIR",
		"misuse":     "1 single, 2 multiple, 3 single, 5 multiple",
	} {
		t.Run(name, func(t *testing.T) {
			program := build(t, "testdata/"+name+".c")
			for mode := range strings.SplitSeq(modes, ", ") {
				args := strings.Fields(strings.Replace(mode, "DIR", t.TempDir(), 1))
				line := slices.Concat([]string{"mpirun", "--oversubscribe", "-n", args[0], program}, args[1:])
				out := command(t, nil, line...)
				if t.Logf("%s: %s", mode, out); !strings.Contains(out, "done") {
					t.Errorf("%s: a process has not come to the end", mode)
				}
			}
		})
	}
}

// TestComparison runs the benchmark of buffers with few bytes.
func TestComparison(t *testing.T) {
	program := build(t, "../../bench/compare/buffers.c")
	out := mpirun(t, 3, program, filepath.Join(t.TempDir(), "buffers"), "1", "2", "1")
	if !strings.Contains(out, "copy ") || !strings.Contains(out, "files ") || !strings.Contains(out, "buffers ") {
		t.Error(out)
	}
}

// TestInstall builds a C and a Fortran program with what make install has put into place, as their authors would.
func TestInstall(t *testing.T) {
	stage, prefix := t.TempDir(), filepath.Join(t.TempDir(), "volley")
	command(t, nil, "make", "-s", "-C", "../..", "install", "PREFIX="+prefix, "DESTDIR="+stage)
	if err := os.Rename(filepath.Join(stage, prefix), prefix); err != nil { // what a package manager does
		t.Fatal(err)
	}
	env := []string{"PKG_CONFIG_PATH=" + prefix + "/lib/pkgconfig", "LD_LIBRARY_PATH=" + prefix + "/lib"}
	if out := command(t, env, prefix+"/bin/volley", "--version"); !strings.Contains(out, volley.Version) {
		t.Errorf("the binary says %q", out)
	}
	if out := command(t, env, "pkg-config", "--modversion", "volley"); strings.TrimSpace(out) != volley.Version {
		t.Errorf("volley.pc says version %q", out)
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/ckpt.0", []byte("packet"), 0o666); err != nil {
		t.Fatal(err)
	}
	command(t, env, "sh", "-c", "cc -Wall -Werror -o "+dir+"/c ../../examples/mpi-c/checkpoint.c $(pkg-config --cflags --libs volley)")
	command(t, env, append(mpirunArgs(1), dir+"/c", dir+"/ckpt", dir+"/coded")...)

	command(t, env, "sh", "-c", "mpif90 -std=f2018 -Wall -Werror -ffree-line-length-none -J "+dir+" -o "+dir+"/fortran testdata/calls.f90 $(pkg-config --cflags --libs volley-fortran)")
	for _, n := range []int{1, 4} {
		if out := command(t, env, append(mpirunArgs(n), dir+"/fortran")...); !strings.Contains(out, "done with volley "+volley.Version) {
			t.Errorf("%d processes: %s", n, out)
		}
	}
	command(t, env, "sh", "-c", "mpif90 -Wall -Werror -o "+dir+"/buffers ../../examples/mpi-fortran/buffers.f90 $(pkg-config --cflags --libs volley-fortran)")
	if out := command(t, env, append(mpirunArgs(4), dir+"/buffers")...); !strings.Contains(out, "the field is back") {
		t.Error(out)
	}
	command(t, env, append(mpirunArgs(4), dir+"/fortran", "snapshots", dir)...)
	const n = 3
	for k := range n {
		if err := os.Mkdir(fmt.Sprint(dir, "/node.", k), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	command(t, env, append(mpirunArgs(n), dir+"/fortran", "protect", dir)...)
	if err := os.RemoveAll(dir + "/node.1"); err != nil {
		t.Fatal(err)
	}
	command(t, env, append(mpirunArgs(n), dir+"/fortran", "recover", dir)...)

	stage = t.TempDir()
	if out := command(t, nil, "make", "-s", "-C", "../..", "install", "DESTDIR="+stage, "MPI=none"); !strings.Contains(out, "libvolley was left out") {
		t.Error(out)
	}
	if got, err := filepath.Glob(stage + "/usr/local/*/*"); err != nil || fmt.Sprint(got) != "["+stage+"/usr/local/bin/volley]" {
		t.Errorf("without MPI it installs %v, %v", got, err)
	}
}

// TestMPICH installs the library for Open MPI and then for MPICH, each of which is linked with its own only, and runs
// programs with MPICH. None has a request open in MPI_Finalize, where MPICH lets threads in at once.
func TestMPICH(t *testing.T) {
	for _, line := range []string{"pkg-config --exists mpich", "mpicc.mpich -v", "mpirun.mpich --version", "readelf --version"} {
		if args := strings.Fields(line); exec.Command(args[0], args[1:]...).Run() != nil {
			t.Skipf("%s: MPICH is not here", line)
		}
	}
	prefix := ""
	for _, mpi := range []string{"mpi", "mpich"} {
		prefix = filepath.Join(t.TempDir(), mpi)
		command(t, nil, "make", "-s", "-C", "../..", "install", "PREFIX="+prefix, "MPI="+mpi)
		for _, file := range []string{"/bin/volley", "/lib/libvolley.so"} {
			out := command(t, nil, "readelf", "-d", prefix+file)
			if strings.Count(out, "[libmpi") != 1 || !strings.Contains(out, "[lib"+mpi+".so") {
				t.Errorf("MPI=%s: %s is linked with\n%s", mpi, file, out)
			}
		}
	}
	env := []string{"PKG_CONFIG_PATH=" + prefix + "/lib/pkgconfig", "LD_LIBRARY_PATH=" + prefix + "/lib"}
	for _, c := range []struct {
		program, mode string
		n             int
	}{{"calls", "single", 3}, {"buffers", "multiple", 3}, {"misuse", "multiple", 3}, {"persistent", "multiple", 3}, {"persistent", "open", 2}} {
		program := filepath.Join(t.TempDir(), c.program)
		command(t, env, "sh", "-c", "mpicc.mpich -Wall -pthread -o "+program+" testdata/"+c.program+".c $(pkg-config --cflags --libs volley)")
		if out := command(t, env, "mpirun.mpich", "-n", fmt.Sprint(c.n), program, c.mode); !strings.Contains(out, "done") {
			t.Errorf("%s %s: %s", c.program, c.mode, out)
		}
	}
}

// TestResult compares the numbers of errors with volley.h.
func TestResult(t *testing.T) {
	full := errors.New("a disk is full")
	for want, errs := range [][]error{
		{nil},
		{full, &transport.AbortError{Rank: 1, Cause: full}, &transport.AbortError{Rank: 1, Cause: numbered(full)}},
		{
			exit.Usagef("path"), &transport.AbortError{Rank: 1, Cause: numbered(exit.Usagef("path"))}, &volley.DisagreementError{},
			&protection.TooManyError{Tolerate: 1}, &coded.InputError{Err: errors.New("too few")},
		},
		{&group.BrokenError{}, &verify.CheckError{}, new(protection.CorruptError)},
		{errCancelled},
	} {
		for _, err := range errs {
			if got := int(result(err)); got != want {
				t.Errorf("%v: %d, want %d", err, got, want)
			}
			if wrapped := fmt.Errorf("in a run: %w", err); err != nil && int(result(wrapped)) != want {
				t.Errorf("%v: %d, want %d", wrapped, result(wrapped), want)
			}
		}
	}
}

// TestSCR stops examples/scr between two checkpoints, loses a node and the files of the newest checkpoint at another, and
// goes on: the result is that of a run that was not stopped.
func TestSCR(t *testing.T) {
	const n = 4
	program, dir := build(t, "../../examples/scr/scr.c"), t.TempDir()
	run := func(root, last string) string { return mpirun(t, n, program, filepath.Join(dir, root), last) }
	_, want, _ := strings.Cut(run("whole", "60"), "step 60: ")
	if want == "" {
		t.Fatal("a run that is not stopped says nothing of its end")
	}
	run("stopped", "35")
	if err := os.RemoveAll(filepath.Join(dir, "stopped/node.2")); err != nil {
		t.Fatal(err)
	}
	if out := run("stopped", "47"); !strings.Contains(out, "restart from step 30") {
		t.Error(out)
	}
	for _, node := range []string{"0", "1"} { // more than may be lost of the newest checkpoint
		if err := os.RemoveAll(filepath.Join(dir, "stopped/node."+node, "step-40")); err != nil {
			t.Fatal(err)
		}
	}
	if out := run("stopped", "60"); !strings.Contains(out, "restart from step 30") || !strings.Contains(out, "step 60: "+want) {
		t.Errorf("%s; want the end %s", out, want)
	}
}

// TestExample encodes with the example, loses packets, and decodes with it.
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
	for _, name := range []string{"ckpt.1", "coded.1", "ckpt.2"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	mpirun(t, n, program, filepath.Join(dir, "ckpt"), filepath.Join(dir, "coded"), filepath.Join(dir, "back"))
	for k, packet := range packets {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("back.", k)))
		if err != nil || !bytes.Equal(got[:len(packet)], packet) || len(bytes.Trim(got[len(packet):], "\x00")) > 0 {
			t.Errorf("back.%d is another packet: %v", k, err)
		}
	}
}
