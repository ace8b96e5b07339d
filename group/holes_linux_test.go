package group_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"volley/group"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/transport"
)

// allocated returns what a file takes on its disk.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return disk.Allocated(info)
}

// TestHoles protects a file of 16 MiB with little in it, fills a hole, makes holes where data was, and the file longer.
// Holes are not read, sent, or stored as parity, and come back as holes.
func TestHoles(t *testing.T) {
	t.Parallel()
	const unit = 256 << 10
	dirs := trees(t, 5, 3, 25_000, 9)
	image := filepath.Join(dirs[2], "image")
	f, err := os.Create(image)
	must(t, err)
	defer func() { f.Close() }()
	must(t, f.Truncate(64*unit))
	if _, err := f.Seek(0, unix.SEEK_DATA); err == nil {
		t.Skip("no holes here")
	}
	fill := func(offset, n int) {
		t.Helper()
		_, err := f.WriteAt(bytes.Repeat([]byte("data"), n/4), int64(offset))
		must(t, err)
	}
	o := group.ProtectOptions{Tolerate: 2, Accept: protection.Edits{Deleted: true, Changed: true}}
	for i, x := range []struct {
		change       func()
		moved, taken int64 // bytes that are read at most, and what the parity of a node takes
	}{
		{func() { fill(3*unit, unit); fill(50*unit, unit) }, 5 * unit, 3 * unit},
		{func() { fill(20*unit, unit/2) }, 5 * unit, 4 * unit},
		{func() {
			must(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 49*unit, 8*unit))
		}, 4 * unit, 3 * unit},
		{func() {
			must(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 64*unit))
		}, 2 * unit, 3 * unit}, // what lies in the base, which stays
		{func() { must(t, f.Truncate(67*unit)) }, 2 * unit, 3 * unit},
	} {
		x.change()
		ranks := 1 + 4*(i%2)
		r, err := protect(ranks, dirs, o)
		must(t, err)
		if r.Read > x.moved || r.Traffic.MostSent > x.moved {
			t.Errorf("%d: %d bytes were read, and the busiest node sent %d: want %d at most", i, r.Read, r.Traffic.MostSent, x.moved)
		}
		check := func(when string) {
			t.Helper()
			whole(t, ranks, dirs)
			for _, dir := range dirs {
				n := int64(0)
				for _, name := range []string{"parity", "changes.*"} {
					files, err := filepath.Glob(filepath.Join(dir, ".volley", fmt.Sprint("generation.", r.Generation), name))
					must(t, err)
					for _, file := range files {
						n += allocated(t, file)
					}
				}
				if n > x.taken || allocated(t, image) > 4*unit {
					t.Errorf("%d, %s: parity takes %d bytes at %s, want %d at most, and the file %d", i, when, n, dir, x.taken, allocated(t, image))
				}
			}
		}
		check("protected")
		r, err = protect(ranks, dirs, o) // what has changed just before is read again
		must(t, err)
		check("kept")
		want, err := os.ReadFile(image)
		must(t, err)
		must(t, f.Close())
		lose(t, dirs, []int{i % 2, 2})
		back, err := everywhere(ranks, dirs, func(ctx context.Context, tr transport.Transport, dirs []string) (*group.RecoverReport, error) {
			return group.Join(tr, dirs, protection.Settings{}).Recover(ctx, group.RecoverOptions{})
		})
		must(t, err)
		if most := 12 * int64(unit); back.Traffic.MostSent > most {
			t.Errorf("%d: recover sent %d bytes from the busiest node: want %d at most", i, back.Traffic.MostSent, most)
		}
		check("recovered")
		if got, err := os.ReadFile(image); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: other content came back: %v", i, err)
		}
		f, err = os.OpenFile(image, os.O_RDWR, 0)
		must(t, err)
	}
}
