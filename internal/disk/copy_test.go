package disk_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestCopyRange copies a part of a file to the same place of another, on disks of both kinds and between them.
func TestCopyRange(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/d", 0o755)
	disks := []struct {
		disk.Disk
		at string
	}{{disk.OS, t.TempDir()}, {m.Process(), "/d"}}
	text := bytes.Repeat([]byte("0123456789"), 200_000)
	for i, from := range disks {
		for j, to := range disks {
			open := func(d disk.Disk, at, name string) disk.File {
				dir, err := d.Open(at)
				if err != nil {
					t.Fatal(err)
				}
				f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			a, b := open(from.Disk, from.at, "from"), open(to.Disk, to.at, "to")
			if _, err := a.Write(text); err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct {
				at, n int64
				err   error
			}{{0, 0, nil}, {5, 1_500_000, nil}, {1_999_990, 10, nil}, {1_999_990, 11, io.ErrUnexpectedEOF}, {3_000_000, 1, io.ErrUnexpectedEOF}} {
				if err := b.Truncate(0); err != nil {
					t.Fatal(err)
				}
				if err := b.CopyRange(a, x.at, x.n); !errors.Is(err, x.err) {
					t.Errorf("%d to %d, %d bytes at %d: %v, want %v", i, j, x.n, x.at, err, x.err)
				}
				if x.err != nil || x.n == 0 {
					continue
				}
				is := make([]byte, x.n)
				if _, err := b.ReadAt(is, x.at); err != nil || !bytes.Equal(is, text[x.at:][:x.n]) {
					t.Errorf("%d to %d: %d bytes at %d are others: %v", i, j, x.n, x.at, err)
				}
			}
		}
	}
}
