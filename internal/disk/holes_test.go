package disk_test

import (
	"os"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestHole looks for holes on disks of both kinds: a stretch with a byte of data in it is none, and behind the end all is.
func TestHole(t *testing.T) {
	t.Parallel()
	const block = 64 << 10
	m := disktest.NewMachine()
	m.MkdirAll("/d", 0o755)
	for path, d := range map[string]disk.Disk{t.TempDir(): disk.OS, "/d": m.Process()} {
		f, err := openOn(t, d, path).OpenFile("f", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(8 * block); err != nil {
			t.Fatal(err)
		}
		if !f.Hole(0, block) {
			t.Logf("%s: no holes are known", path)
			continue
		}
		for _, offset := range []int64{2 * block, 5*block - 1} {
			if _, err := f.WriteAt([]byte{1}, offset); err != nil {
				t.Fatal(err)
			}
		}
		for first := range int64(10) {
			for end := first + 1; end <= 10; end++ {
				want := (first > 2 || end <= 2) && (first > 4 || end <= 4)
				if f.Hole(first*block, (end-first)*block) != want {
					t.Errorf("%s: blocks %d to %d: a hole: %v, want %v", path, first, end, !want, want)
				}
			}
		}
	}
}
