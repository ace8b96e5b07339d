package disk_test

import (
	"context"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestPaced reads files at a pace. What is read is what is there, all files of a directory share the pace, and
// nothing waits once the context has ended.
func TestPaced(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/d/sub", 0o755)
	long := make([]byte, 3<<20)
	for i := range long {
		long[i] = byte(i >> 10)
	}
	m.WriteFile("/d/a", long, 0o644)
	m.WriteFile("/d/sub/b", long, 0o644)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		plain := openOn(t, m.Process(), "/d")
		d := disk.Paced(ctx, plain, 20<<20)
		sub, err := d.Sub("sub")
		if err != nil {
			t.Fatal(err)
		}
		// read reads a file twice, and returns how long that takes.
		read := func(d disk.Dir, name string) time.Duration {
			t.Helper()
			begun := time.Now()
			f, err := d.OpenFile(name, os.O_RDONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			is := make([]byte, len(long)+1)
			if n, err := f.ReadAt(is, 0); n != len(long) || err != io.EOF || string(is[:n]) != string(long) {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
			if all, err := io.ReadAll(f); err != nil || string(all) != string(long) {
				t.Errorf("%s: %d bytes, %v", name, len(all), err)
			}
			return time.Since(begun)
		}
		if took := read(d, "a") + read(sub, "b") + read(d, "a") + read(sub, "b"); took < time.Second || took > 1500*time.Millisecond {
			t.Errorf("24 MiB took %v: want 1.2 s, and what is asked for behind the ends", took)
		}
		cancel()
		if took := read(disk.Paced(ctx, plain, 1), "a"); took > 0 {
			t.Errorf("it waited for %v although the context had ended", took)
		}
	})
}
