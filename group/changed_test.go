package group

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/internal/disk/disktest"
)

// many returns a protected group whose nodes have many files, changed long before.
func many() *world {
	w := &world{Machine: disktest.NewMachine(), r: 2, ranks: 1}
	rng := rand.New(rand.NewPCG(7, 7))
	for n := range 4 {
		dir := fmt.Sprintf("/n%d", n)
		w.dirs = append(w.dirs, dir)
		w.MkdirAll(dir, 0o755)
		for i := range 60 {
			w.WriteFile(fmt.Sprintf("%s/f%02d", dir, i), random(rng, 20_000+100*i+n), 0o644)
		}
		w.MkdirAll(dir+"/in", 0o755)
		w.WriteFile(dir+"/in/g", random(rng, 100), 0o644)
	}
	w.Wait(time.Hour)
	return w
}

// setBack writes into a file, and sets the time of its last change back.
func (w *world) setBack(name string, offset int64, data []byte) {
	info, err := w.Lstat(name)
	if err != nil {
		panic(err)
	}
	w.Overwrite(name, offset, data, false)
	w.SetTime(name, info.ModTime())
}

// record returns the manifest in force, and a node's record.
func (w *world) record(t *testing.T, n int) (*store.Manifest, *store.Record) {
	t.Helper()
	p := w.clone().Process()
	d, err := p.Open(w.dirs[n])
	must(t, err)
	at := &store.Node{Index: n, DirName: w.dirs[n], Dir: d}
	s := at.Load(nil, len(w.dirs))
	l := at.Held[s.Held[len(s.Held)-1].Generation]
	text, err := at.Read(l, l.Manifest.RecordFilesAt(n)[0])
	must(t, err)
	x, err := l.Manifest.DecodeRecord(text)
	must(t, err)
	return l.Manifest, x
}

// counting counts the bytes that a process reads of data and parity.
func counting(p *disktest.Process, n *int64) *disktest.Process {
	p.Hook = func(c disktest.Call) error {
		if c.Op == "read" && (!strings.Contains(c.Path, "/.volley/") || strings.HasSuffix(c.Path, "/parity")) {
			*n += int64(c.Bytes)
		}
		return nil
	}
	return p
}

// TestReadsCells changes blocks of K nodes: protect reads K-R blocks of each cell that has one, and parity only where it
// stays. The parity is what protect makes of everything.
func TestReadsCells(t *testing.T) {
	t.Parallel()
	const block, last, nodes = store.UsualBlock, 800, 5
	for _, x := range []struct {
		what    string
		changed []string // each a block; that of last is three, of the last row
		more    func(w *world)
		read    int64
		beside  int64 // bytes that the disk reads beside
		coded   int
	}{
		{"a block", []string{"/n1/f04"}, nil, 3 * block, 0, 1},
		{"a block of each node", []string{"/n0/f00", "/n1/f04", "/n2/f08", "/n3/f09", "/n4/f01"}, nil, 15 * block, 0, 5},
		{"three of a cell", []string{"/n0/f05", "/n3/f03", "/n4/f04"}, nil, 3 * block, 0, 1},
		{"the last row", []string{"/n1/last"}, nil, 9 * last, 0, 3},
		{"more of a codeword than of others", []string{"/n1/f00", "/n1/f03", "/n1/f06", "/n1/f09", "/n1/last", "/n2/f11"}, nil, 15*block + 9*last, 0, 8},
		{"three that are as they were", []string{"/n1/f00", "/n1/f03", "/n1/f06", "/n1/f09"}, func(w *world) {
			w.CopyTree("/n1/last", "/n1/copy")
			w.Rename("/n1/copy", "/n1/last")
		}, 12*block + 9*last, 3 * 2 * last, 4}, // their parity
		{"another name", nil, func(w *world) { w.Rename("/n1/f04", "/n1/z") }, 3 * block, 2 * block, 0},
		{"another cut", []string{"/n1/f04"}, func(w *world) { w.AppendFile("/n2/last", make([]byte, 600)) },
			3*block + 15*last + 600, 4 * 3 * last, 6}, // the last row of the others, as it was cut
	} {
		for _, ranks := range []int{1, nodes} {
			w := &world{Machine: disktest.NewMachine(), r: 2, ranks: ranks}
			rng := rand.New(rand.NewPCG(7, 7))
			for n := range nodes {
				dir := fmt.Sprintf("/n%d", n)
				w.dirs = append(w.dirs, dir)
				w.MkdirAll(dir, 0o755)
				for i := range 60 { // parity of these is kept where little has changed
					w.WriteFile(fmt.Sprintf("%s/f%02d", dir, i), random(rng, block), 0o644)
				}
				w.WriteFile(dir+"/last", random(rng, 3*last), 0o644)
			}
			w.Wait(time.Hour)
			must(t, w.protect())
			for _, path := range x.changed {
				content := []byte(contentOf(w, path))
				for i := range content {
					content[i] ^= 1
				}
				w.Overwrite(path, 0, content, false)
			}
			if x.more != nil {
				x.more(w)
			}
			w.Wait(time.Hour)
			all, read := w.clone(), int64(0)
			r, err := w.protectBy(counting(w.Process(), &read), ProtectOptions{})
			must(t, err)
			if r.Read != x.read || r.Coded != x.coded || read != x.read+x.beside {
				t.Errorf("%s, %d ranks: %d bytes read, %d by the disk, and %d cells coded: want %d, %d and %d", x.what, ranks, r.Read, read, r.Coded, x.read, x.read+x.beside, x.coded)
			}
			_, err = all.protectBy(all.Process(), ProtectOptions{Full: true})
			must(t, err)
			for n := range w.dirs {
				_, changed := w.record(t, n)
				if _, full := all.record(t, n); !bytes.Equal(changed.Parity, full.Parity) {
					t.Errorf("%s, %d ranks: the parity of node %d is not that of all data", x.what, ranks, n)
				}
			}
			must(t, w.whole())
		}
	}
}

// TestRotAtTheEnd has a byte of a file change while another file, of its node or another one, comes or goes: chunks are
// longer or shorter then, and their last blocks are other ones. The run refuses a file that has rotted, and names one whose
// time was set back.
func TestRotAtTheEnd(t *testing.T) {
	t.Parallel()
	const n = 300_000 // bytes
	for _, at := range []int64{0, 250_000, n - 1} {
		for _, grown := range []int{0, 2} { // nodes
			for _, size := range []int{n + 1, n / 30, n * 3} { // of other files, which had n/10 bytes
				rng := rand.New(rand.NewPCG(3, 3))
				w := &world{Machine: disktest.NewMachine(), r: 1, ranks: 1}
				for i := range 4 {
					dir := fmt.Sprint("/n", i)
					w.dirs = append(w.dirs, dir)
					w.MkdirAll(dir, 0o755)
					w.WriteFile(dir+"/f", random(rng, n), 0o644)
					w.WriteFile(dir+"/g", random(rng, n/10), 0o644)
				}
				w.Wait(time.Hour)
				must(t, w.protect())
				rotten := []byte{contentOf(w, "/n0/f")[at] + 1}
				for _, dir := range w.dirs[grown:] { // the node with most data says how long chunks are
					w.WriteFile(dir+"/g", random(rng, size), 0o644)
				}
				c := w.clone()
				w.Overwrite("/n0/f", at, rotten, true)
				if _, err := w.protectBy(w.Process(), ProtectOptions{Full: true}); err == nil || !strings.Contains(err.Error(), "f is damaged") {
					t.Errorf("byte %d, file of %d bytes from node %d on: %v", at, size, grown, err)
				}
				c.setBack("/n0/f", at, rotten)
				if r, err := c.protectBy(c.Process(), ProtectOptions{}); err != nil || !slices.Equal(r.Doubtful, []string{"/n0/f"}) {
					t.Errorf("set back: byte %d, file of %d bytes from node %d on: %+v, %v", at, size, grown, r, err)
				}
				must(t, c.whole())
			}
		}
	}
}
