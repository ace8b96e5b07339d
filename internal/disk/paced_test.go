package disk_test

import (
	"context"
	"io"
	"os"
	"testing"
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
	ctx, cancel := context.WithCancel(t.Context())
	plain, err := m.Process().Open("/d")
	if err != nil {
		t.Fatal(err)
	}
	d := disk.Paced(ctx, plain, 20<<20)
	sub, err := d.Sub("sub")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	read := func(d disk.Dir, name string) {
		t.Helper()
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
	}
	read(d, "a")
	read(sub, "b")
	read(d, "a")
	read(sub, "b")
	if least := 1 * time.Second; time.Since(begun) < least { // 24 MiB, less the first and the last read
		t.Errorf("it took %v: want %v or more", time.Since(begun), least)
	}
	cancel()
	begun = time.Now()
	slow := disk.Paced(ctx, plain, 1)
	read(slow, "a")
	if time.Since(begun) > time.Minute {
		t.Error("it waited although the context had ended")
	}
}
