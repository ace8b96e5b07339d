package cli

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"volley/internal/exit"
	"volley/internal/race"
	"volley/internal/verifyall"
)

// mostExtra is what a protection or a recovery may take at a node beside parity, in memory and in .volley.
const mostExtra = 64 << 20

// statusBytes returns a number of bytes that a process has left in its [statusFile].
func statusBytes(t *testing.T, file, name string) int64 {
	t.Helper()
	said, err := os.ReadFile(file)
	must(t, err)
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(said)
	if found == nil {
		t.Fatalf("no %s in %s", name, said)
	}
	x, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return x << 10
}

// TestMemory measures the peak of four processes that protect directories in memory over TCP, and recover one. Pages of
// the program do not count: they are the same for all.
func TestMemory(t *testing.T) {
	t.Parallel()
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	const nodes = 4
	base, size := t.TempDir(), int64(verifyall.Pick(128, 512))<<20
	dir := func(n int) string { return filepath.Join(base, fmt.Sprint("n", n)) }
	zeros := make([]byte, 1<<20)
	for n := range nodes {
		must(t, os.Mkdir(dir(n), 0o700))
		f, err := os.Create(filepath.Join(dir(n), "checkpoint"))
		must(t, err)
		for i := range size >> 20 {
			copy(zeros, fmt.Sprint(n, i)) // no two blocks are the same
			f.Write(zeros)
		}
		must(t, f.Close())
	}
	measure := func(args ...string) {
		status := filepath.Join(t.TempDir(), "status")
		newRankProcesses(t, nodes, func(rank int, c *exec.Cmd) {
			c.Env = append(c.Env, fmt.Sprint(statusFile, "=", status, rank))
		}, append(args, filepath.Join(base, "n{RANK}"))...).alike().is(t, exit.OK)
		for n := range nodes {
			kept := fmt.Sprint(status, n)
			extra := statusBytes(t, kept, "VmHWM") - statusBytes(t, kept, "RssFile") - statusBytes(t, kept, "RssShmem")
			anonymous := extra
			if err := filepath.WalkDir(filepath.Join(dir(n), ".volley"), func(_ string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					info, _ := d.Info()
					extra += info.Size()
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: node %d: %d MiB of memory, %d MiB beside parity", args[0], n, anonymous>>20, (extra-size/(nodes-1))>>20)
			if extra -= size / (nodes - 1); extra > mostExtra || anonymous <= 0 {
				t.Errorf("%s: node %d: %d bytes beside parity, want %d or less", args[0], n, extra, mostExtra)
			}
		}
	}
	measure("protect", "--tolerate", "1")
	must(t, os.RemoveAll(dir(2)))
	measure("recover")
}
