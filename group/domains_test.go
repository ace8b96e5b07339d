package group

import (
	"strings"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestDomains protects groups whose nodes share hosts and disks.
func TestDomains(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what  string
		k, r  int
		hosts string // of ranks, by letter; "": all is in one process
		disks []int  // nodes with a disk of their own
		notes []string
	}{
		{"a first try", 3, 1, "", nil, []string{oneDisk}},
		{"three on one host, and two of them on one disk", 4, 2, "aaab", []int{0}, []string{
			"nodes 0, 1 and 2 are on one host (a), and more than may be lost",
			"nodes 1 and 2 are on one disk (DISK)"}},
		{"all on one host", 3, 1, "aaa", []int{0, 1, 2}, nil},
	} {
		w := newWorld(x.k, x.r)
		for _, n := range x.disks {
			w.RemoveAll(w.dirs[n])
			w.MkdirAll(w.dirs[n], 0o755)
			w.Mount(w.dirs[n], disktest.Mount{})
			w.WriteFile(w.dirs[n]+"/file", []byte("text"), 0o644)
		}
		if x.hosts != "" {
			w.ranks, w.hosts = x.k, strings.Split(x.hosts, "")
		}
		r, err := w.protectBy(w.Process(), ProtectOptions{})
		must(t, err)
		info, err := w.Lstat(w.dirs[1])
		must(t, err)
		for i := range x.notes {
			x.notes[i] = strings.ReplaceAll(x.notes[i], "DISK", disk.Device(info))
		}
		same(t, x.what, r.Notes, x.notes)
	}
}

const oneDisk = "all nodes are on one disk, and lost with it: give each node a disk of its own"
