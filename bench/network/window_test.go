//go:build mpi && linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"volley/field"
	"volley/matrix/matrices"
	"volley/transport/mpi"
)

// inJob is set in the environment of the ranks of TestWindow.
const inJob = "NETWORK_TEST_WINDOW"

// TestWindow runs jobs of this program, with as many ranks as cores and more, whose ranks are TestWindowRank.
func TestWindow(t *testing.T) {
	self := must(os.Executable())(t)
	job := func(k int, before ...string) {
		args := append([]string{"--oversubscribe", "--bind-to", "none", "-n", fmt.Sprint(k)}, before...)
		c := exec.Command("mpirun", append(args, self, "-test.run", "^TestWindowRank$")...)
		c.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", inJob+"=yes")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%d ranks %v: %v\n%s", k, before, err, out)
		}
	}
	for _, k := range []int{2, 3, 4, 8} {
		job(k)
	}
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		t.Fatal(err)
	}
	first := 0
	for !cores.IsSet(first) {
		first++
	}
	job(3, "taskset", "-c", fmt.Sprint(first))
}

// TestWindowRank finds the results of every way and kernel right, run after run with other packets, whatever their
// length.
func TestWindowRank(t *testing.T) {
	if os.Getenv(inJob) == "" {
		t.Skip("no rank of TestWindow")
	}
	e := must(mpi.Init())(t)
	f := must(field.Parse("2^8"))(t)
	k := e.Size()
	a := must(matrices.Spec{Family: "random", Argument: "3"}.Build(f, k, k))(t)
	coefficients := must(products(a))(t)
	var column []field.Element
	for i := range k {
		column = append(column, a.At(i, e.Rank()))
	}
	sizes := []int{1, 63, 64*k + 1, 4099, 512<<10 + 1, 8<<20/k + 4097} // the last ones are cut, and pass by the caches
	for kernel := range kernels {
		for _, size := range sizes {
			packets := make([][]byte, k)
			for i := range packets {
				packets[i] = make([]byte, size)
			}
			var w *mpiWindow
			var err error
			e.Exclusive(func() { w, err = newWindow(coefficients, packets[e.Rank()], kernel) })
			if err != nil {
				t.Fatal(err)
			}
			if w.kernel() != kernels[kernel] {
				t.Logf("%s in place of %s", w.kernel(), kernels[kernel])
			}
			want, y := make([]byte, size), make([]byte, size)
			for run := range 2 {
				for _, name := range windows {
					for i, x := range packets {
						packet(f, i+k*run, x)
					}
					f.Combine(want, column, packets)
					clear(y)
					w.clear()
					copy(w.inside, packets[e.Rank()])
					e.Exclusive(func() { w.encode(name, packets[e.Rank()], y) })
					// What others still read, or copy out, is overwritten.
					clear(packets[e.Rank()])
					clear(w.inside)
					if inWindow(name) {
						w.result(y)
					}
					if !bytes.Equal(y, want) {
						t.Errorf("rank %d of %d, %s, %s, %d bytes, run %d: the result is wrong", e.Rank(), k, name, w.kernel(), size, run)
					}
				}
			}
			e.Exclusive(w.close)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := mpi.Finalize(); err != nil {
		t.Error(err)
	}
}
