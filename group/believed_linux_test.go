package group_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"volley/group"
)

// TestUnseenWrites has programs write so that the length and the time of a file stay, on a disk and in memory: they set the
// time back, or write on to a mapping that they wrote to before. The next protect takes the change in, so that a lost node
// comes back, and the file stays as the program left it.
func TestUnseenWrites(t *testing.T) {
	t.Parallel()
	onDisk, err := os.MkdirTemp("/var/tmp", "volley-test.")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(onDisk) })
	for _, base := range []string{onDisk, t.TempDir()} {
		var dirs []string
		for n := range 3 {
			dirs = append(dirs, filepath.Join(base, fmt.Sprint("n", n)))
			must(t, os.Mkdir(dirs[n], 0o755))
			for i, name := range []string{"back", "mapped", "c", "d"} {
				must(t, os.WriteFile(filepath.Join(dirs[n], name), bytes.Repeat([]byte{byte(1 + 4*n + i)}, 200_000), 0o644))
			}
		}
		f, err := os.OpenFile(filepath.Join(dirs[0], "mapped"), os.O_RDWR, 0)
		must(t, err)
		memory, err := syscall.Mmap(int(f.Fd()), 0, 200_000, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		must(t, err)
		must(t, f.Close())
		copy(memory[1000:], "before")
		_, err = protect(1, dirs, group.ProtectOptions{Tolerate: 1})
		must(t, err)
		copy(memory[1000:], "behind")
		must(t, syscall.Munmap(memory))
		back := filepath.Join(dirs[0], "back")
		info, err := os.Stat(back)
		must(t, err)
		time.Sleep(20 * time.Millisecond) // a tick of the clock
		must(t, os.WriteFile(back, bytes.Repeat([]byte("#"), 200_000), 0o644))
		must(t, os.Chtimes(back, info.ModTime(), info.ModTime()))
		r, err := verify(1, dirs)
		must(t, err)
		if r.Nodes[0].Status != group.Changed {
			t.Errorf("%s: verify: %+v", base, r.Nodes[0])
		}
		_, err = protect(1, dirs, group.ProtectOptions{Tolerate: 1})
		must(t, err)
		want := filesOf(t, dirs)
		lose(t, dirs, []int{1})
		_, err = recoverAll(1, dirs)
		must(t, err)
		compare(t, base, want, filesOf(t, dirs))
		whole(t, 1, dirs)
	}
}
