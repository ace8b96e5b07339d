package group

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
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

// TestReadsChanged changes files of a group of many: protect reads what shares cells with these, and nothing else.
func TestReadsChanged(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		what string
		do   func(w *world)
		of   []string // what has changed, at node 1
		full bool
	}{
		{"nothing", func(*world) {}, nil, false},
		{"one file", func(w *world) { w.Overwrite("/n1/f30", 5, []byte("new"), false) }, []string{"f30"}, false},
		{"appended", func(w *world) { w.AppendFile("/n1/f59", []byte("more")) }, []string{"f59"}, false},
		{"new", func(w *world) { w.WriteFile("/n1/new", make([]byte, 1000), 0o600) }, []string{"new"}, false},
		{"deleted", func(w *world) { w.Remove("/n1/f10") }, []string{"f10"}, false},
		{"renamed", func(w *world) { w.Rename("/n1/f10", "/n1/other") }, []string{"f10"}, false},
		{"in a directory with another name", func(w *world) { w.Rename("/n1/in", "/n1/out") }, nil, false},
		{"another mode", func(w *world) { w.Chmod("/n1/f10", 0o600) }, []string{"f10"}, false},
		{"another link", func(w *world) { w.Link("/n1/f10", "/link") }, []string{"f10"}, false},
		{"a time set back", func(w *world) { w.setBack("/n1/f10", 5, []byte("new")) }, []string{"f10"}, false},
		{"another inode", func(w *world) { w.CopyTree("/n1/f10", "/n1/g"); w.Rename("/n1/g", "/n1/f10") }, []string{"f10"}, false},
		{"full", func(w *world) { w.Overwrite("/n1/f30", 5, []byte("new"), false) }, nil, true},
	} {
		w := many()
		must(t, w.protect())
		before, was := w.record(t, 1)
		x.do(w)
		w.Wait(time.Hour)
		read := int64(0)
		r, err := w.protectBy(counting(w.Process(), &read), ProtectOptions{Full: x.full})
		must(t, err)
		must(t, w.whole())
		m, is := w.record(t, 1)
		cells := map[int]bool{}
		cellOf := func(n int, g store.FilePart) int { return content.Symbol{Node: n, Index: g.Chunk}.Cell(m, g.Row) }
		for _, of := range []struct {
			*store.Manifest
			*store.Record
		}{{before, was}, {m, is}} {
			for _, g := range of.FilePartsOf(tree.ExtentsOf(of.Entries)) {
				if slices.Contains(x.of, string(tree.ExtentsOf(of.Entries)[g.File].Path)) {
					cells[cellOf(1, g)] = true
				}
			}
		}
		if m.ChunkBytes != before.ChunkBytes { // then the last rows are cut in another way
			for row := int(min(m.ChunkBytes, before.ChunkBytes) / m.BlockBytes); row < m.Rows(); row++ {
				for codeword := range w.dirs {
					cells[codeword*m.Rows()+row] = true
				}
			}
		}
		var want, parity, all int64
		for n := range w.dirs {
			_, y := w.record(t, n)
			for _, g := range m.FilePartsOf(tree.ExtentsOf(y.Entries)) {
				if all += g.N; cells[cellOf(n, g)] {
					want += g.N
				}
			}
		}
		for cell := range cells { // of which the parity is read where it stays
			_, n := m.Block(cell % m.Rows())
			parity += n * int64(m.ParityChunks)
		}
		if x.full {
			want = all
		}
		t.Logf("%s: %d of %d bytes read, %d reported, %d in cells that have changed, %d cells of %d coded", x.what, read, all, r.Read, want, r.Coded, r.Blocks)
		if r.Read != want || r.Coded > len(cells) && !x.full {
			t.Errorf("%s: %d bytes read, and %d cells coded: want %d, and %d", x.what, r.Read, r.Coded, want, len(cells))
		}
		if !x.full && read > (want+parity)*12/10 || x.full && read < all {
			t.Errorf("%s: the disk has read %d bytes: want %d", x.what, read, want)
		}
		trees := w.trees()
		w.lose(1, 1, 2)
		must(t, w.recover())
		for n := range trees {
			must(t, diff(x.what, trees[n], w.tree(n)))
		}
	}
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

// TestUnreadRot has a file rot where nothing has changed: protect does not read it, unless it is asked to, and the digests
// stay what they were. Where it shares a cell with what has changed, it is refused.
func TestUnreadRot(t *testing.T) {
	t.Parallel()
	for _, near := range []bool{false, true} {
		w := many()
		must(t, w.protect())
		was := w.tree(1)
		w.Overwrite("/n1/f10", 5, []byte("rot"), true)
		change := "/n2/f59"
		if near {
			change = "/n0/f07"
		}
		w.Overwrite(change, 5, []byte("new"), false)
		_, err := w.protectBy(w.Process(), ProtectOptions{})
		if refused := err != nil && strings.Contains(err.Error(), "/n1/f10 is damaged"); refused != near || err != nil && !near {
			t.Errorf("near %v: %v", near, err)
		}
		if _, err := w.protectBy(w.Process(), ProtectOptions{Full: true}); !IsInputError(err) || !strings.Contains(err.Error(), "/n1/f10 is damaged") {
			t.Errorf("full: %v", err)
		}
		if w.whole() == nil {
			t.Errorf("verify finds nothing")
		}
		must(t, w.recover())
		must(t, diff("node 1", was, w.tree(1)))
		_, err = w.protectBy(w.Process(), ProtectOptions{})
		must(t, err)
		must(t, w.whole())
		// By force it is protected as it is.
		w.Overwrite("/n1/f10", 5, []byte("rot"), true)
		_, err = w.protectBy(w.Process(), ProtectOptions{Force: true})
		must(t, err)
		must(t, w.whole())
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

// TestUnreadParity has the disk not give parity that is copied, as there are no links, or have too little of it: it is
// made anew. Where there is no room for it, the run says so.
func TestUnreadParity(t *testing.T) {
	t.Parallel()
	for _, err := range []error{syscall.EIO, syscall.ENOSPC, nil} {
		w := many()
		w.Remount("/", func(o *disktest.Mount) { o.Links = 1 })
		must(t, w.protect())
		w.Overwrite("/n2/f59", 5, []byte("new"), false)
		p := w.Process()
		if p.Hook = func(c disktest.Call) error {
			if c.Op == "read" && c.Path == "/n1/.volley/generation.1/parity" && err == syscall.EIO || c.Op == "write" && c.Path == "/n1/.volley/pending.2/parity" && err == syscall.ENOSPC {
				return err
			}
			return nil
		}; err == nil {
			parity := contentOf(w, "/n1/.volley/generation.1/parity")
			w.WriteFile("/n1/.volley/generation.1/parity", []byte(parity[:len(parity)/2]), 0o600)
		}
		_, is := w.protectBy(p, ProtectOptions{})
		if err == syscall.ENOSPC {
			if is == nil || !strings.Contains(is.Error(), "no space") {
				t.Errorf("%v", is)
			}
			continue
		}
		must(t, is)
		must(t, w.whole())
	}
}

// TestSameTick changes a file once more in the tick of the clock in which it was listed: the next run reads it.
func TestSameTick(t *testing.T) {
	t.Parallel()
	w := many()
	_, err := w.protectBy(once(w.Process(), "listxattr", "/n1", func() { w.AppendFile("/n1/f10", []byte("more")) }), ProtectOptions{})
	must(t, err)
	if _, x := w.record(t, 1); x.Entries[11].Path != "f10" || x.Entries[11].Changed != 0 || x.Entries[12].Changed == 0 {
		t.Errorf("%+v", x.Entries[11:13])
	}
	w.Overwrite("/n1/f10", 5, []byte("new"), true)
	if r, err := w.protectBy(w.Process(), ProtectOptions{}); err != nil || !slices.Equal(r.Doubtful, []string{"/n1/f10"}) {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, w.whole())
}

// TestCrashUnread interrupts a run that keeps parity unread: what is in force then is whole, and the next run completes it.
func TestCrashUnread(t *testing.T) {
	t.Parallel()
	before := many().ordered()
	must(t, before.protect())
	before.Overwrite("/n2/f59", 5, []byte("new"), false)
	before.SyncAll()
	(&disktest.Sweep{
		Machine: before.Machine,
		Run:     before.protectAgain,
		Check: func(x *disktest.Interrupted) error {
			w := *before
			w.Machine = x.Machine
			r, err := w.verifyBy(w.Process())
			if err != nil || r.Generation == 2 && !r.Intact || r.Nodes[1].Status != Intact && x.Err == nil {
				return fmt.Errorf("verify: %v, %+v", err, r)
			}
			c := w.clone()
			lost := []int{0, 3}[:r.Generation] // what has changed since counts as lost, too
			c.lose(1, lost...)
			if err := c.recover(); err != nil {
				return fmt.Errorf("recover: %w", err)
			}
			for _, n := range lost {
				if err := diff("recovered", before.tree(n), c.tree(n)); err != nil {
					return err
				}
			}
			if err := w.protect(); err != nil {
				return err
			}
			return w.whole()
		},
		Tries: *mostCalls,
	}).Test(t)
}
