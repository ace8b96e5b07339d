package group

import (
	"errors"
	"strings"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestDomains protects groups whose nodes share hosts and disks.
func TestDomains(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what    string
		k, r    int
		hosts   string // of ranks, by letter; "": all is in one process
		disks   []int  // nodes with a disk of their own
		notes   []string
		crowded bool
	}{
		{"a first try", 3, 1, "", nil, []string{oneDisk}, true},
		{"three on one host, and two of them on one disk", 4, 2, "aaab", []int{0}, []string{
			"nodes 0, 1 and 2 are on one host (a): losing it loses 3 nodes of R = 2. What may be lost: any 2 nodes, any 1 host but this one",
			"nodes 1 and 2 are on one disk (DISK). What may be lost: any 2 nodes, any 1 disk"}, true},
		{"all on one host", 3, 1, "aaa", []int{0, 1, 2}, nil, false},
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
		r, err := w.protectBy(w.Process(), ProtectOptions{Strict: true})
		crowded := new(StrictError)
		info, failed := w.Lstat(w.dirs[1])
		must(t, failed)
		for i := range x.notes {
			x.notes[i] = strings.ReplaceAll(x.notes[i], "DISK", disk.Device(info))
		}
		if errors.As(err, &crowded) != x.crowded || r == nil || err != nil && crowded.ExitCode() != 3 {
			t.Fatalf("%s: %v, %+v", x.what, err, r)
		}
		if x.crowded && !strings.Contains(err.Error(), x.notes[0]) {
			t.Errorf("%s: %v", x.what, err)
		}
		same(t, x.what, r.Notes, x.notes)
		must(t, w.tidy(1)) // it is in force
		if r, err = w.protectBy(w.Process(), ProtectOptions{}); err != nil {
			t.Errorf("%s, and not strict: %v", x.what, err)
		}
		same(t, x.what, r.Notes, x.notes)
	}
}

const oneDisk = "all nodes are on one disk, and lost with it: give each node a disk of its own"
