package disk_test

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestExchange swaps names in one directory and in two, and across what is mounted, on disks of both kinds.
func TestExchange(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/d", 0o755)
	for _, x := range []struct {
		disk.Disk
		at string
	}{{disk.OS, t.TempDir()}, {m.Process(), "/d"}} {
		for _, dir := range []string{"/node/sub", "/elsewhere"} {
			if _, err := disk.Make(x.Disk, x.at+dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		d := disk.Mounted(openOn(t, x.Disk, x.at+"/node"), "mounted", openOn(t, x.Disk, x.at+"/elsewhere"))
		for _, name := range []string{"a", "sub/b", "mounted/c", "mounted/d"} {
			if err := disk.WriteIn(d, name, []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, y := range []struct {
			one, other string
			err        error
		}{
			{"a", "sub/b", nil}, {"mounted/c", "mounted/d", nil}, {"a", "mounted/c", syscall.EXDEV}, {"a", "none", syscall.ENOENT}, {"sub", "a", nil}, {"a", "a/b", errors.ErrUnsupported},
		} {
			want := y.err
			if x.Disk == disk.OS && runtime.GOOS != "linux" && want != syscall.EXDEV {
				want = errors.ErrUnsupported
			}
			if err := d.Exchange(y.one, y.other); !errors.Is(err, want) {
				t.Errorf("%T: %s and %s: %v, want %v", x.Disk, y.one, y.other, err, want)
			}
		}
		if x.Disk == disk.OS && runtime.GOOS != "linux" {
			continue
		}
		for name, want := range map[string]string{"sub": "sub/b", "a/b": "a", "mounted/c": "mounted/d", "mounted/d": "mounted/c"} {
			if text, err := disk.ReadText(d, name, 100); string(text) != want || err != nil {
				t.Errorf("%T: %s is %q, %v", x.Disk, name, text, err)
			}
		}
	}
}
