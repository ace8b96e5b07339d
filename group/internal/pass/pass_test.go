package pass

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk/disktest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWork lists a node, and reads all of it, as a first pass does. After an earlier pass it has no digests yet.
func newWork(t *testing.T, m *disktest.Machine, earlier *Work, was *store.Manifest) (*Work, *store.Manifest) {
	t.Helper()
	d, err := m.Process().Open("/n")
	must(t, err)
	l, err := tree.Scan(d, true, tree.Rules{})
	must(t, err)
	var recorded []*tree.Entry
	if earlier != nil {
		recorded = earlier.Record.Entries
	}
	manifest := &store.Manifest{Nodes: 2, Tolerate: 1, DataChunks: 1, ParityChunks: 1, Digest: store.SHA256}
	n := &Work{Node: &store.Node{DirPath: "/n", DirName: "/n", Dir: d}, Listing: l, doubtful: map[tree.Name]bool{}, begun: m.Now().Add(time.Hour)}
	n.Record = store.Record{Entries: l.Entries, Bytes: tree.Allocate(l.Entries, recorded, store.MostChunk)}
	manifest.Geometry(n.Record.Bytes, nil)
	n.Data = content.NewData(d, l.Entries, false)
	n.Sums = content.NewSums(manifest, n.Data.Extents)
	if earlier != nil {
		s := &session.Session{Manifest: was, RecordOf: map[int]*store.Record{0: &earlier.Record}}
		n.earlier = earlierOf(s, n.Node)
		return n, manifest
	}
	must(t, manifest.InOrder(1, func(_, _ int, offset, length int64) error {
		block := make([]byte, length)
		_, err := n.Data.ReadAt(block, offset)
		n.Sums.Add(offset, block)
		n.Sums.Flush()
		return err
	}))
	n.Record.FileDigests = n.Sums.Digests
	n.RecordTouches()
	return n, manifest
}

// newNode is a machine with a node of three files, which lie in cells 4 to 6, 6 and 7, and 7.
func newNode() *disktest.Machine {
	m := disktest.NewMachine()
	m.MkdirAll("/n", 0o755)
	m.WriteFile("/n/a", bytes.Repeat([]byte("a"), 150_000), 0o600)
	m.WriteFile("/n/b", bytes.Repeat([]byte("b"), 70_000), 0o600)
	m.WriteFile("/n/c", []byte("c"), 0o600)
	m.SyncAll()
	m.Wait(time.Minute)
	return m
}

// rewrite writes another content of the same length, and sets the time back.
func rewrite(m *disktest.Machine, name string) {
	info, _ := m.Lstat(name)
	m.WriteFile(name, bytes.Repeat([]byte("x"), int(info.Size())), 0o600)
	m.SetTime(name, info.ModTime())
}

// TestCheckRot has files hold something else than was protected under their length and time: what nobody has written has rotted, and
// is refused. What somebody has is doubtful, and what has moved is found.
func TestCheckRot(t *testing.T) {
	t.Parallel()
	for what, x := range map[string]struct {
		do       func(m *disktest.Machine, n *Work)
		refused  string
		doubtful string
	}{
		"nothing":                {func(*disktest.Machine, *Work) {}, "", ""},
		"rot":                    {func(m *disktest.Machine, _ *Work) { m.Overwrite("/n/a", 100_000, []byte("rot"), true) }, "/n/a is damaged", ""},
		"rot that is forced":     {func(m *disktest.Machine, n *Work) { m.Overwrite("/n/a", 5, []byte("rot"), true); n.force = true }, "", ""},
		"cut":                    {func(m *disktest.Machine, _ *Work) { m.Cut("/n/a", 5) }, "/n/a is damaged: it has the time that it had when it was protected, and 5 bytes of 150000", ""},
		"written":                {func(m *disktest.Machine, _ *Work) { m.Overwrite("/n/a", 5, []byte("new"), false) }, "", ""},
		"the time is set back":   {func(m *disktest.Machine, _ *Work) { rewrite(m, "/n/a") }, "", "a"},
		"so in a snapshot":       {func(m *disktest.Machine, n *Work) { rewrite(m, "/n/a"); n.rots = true }, "/n/a is damaged", ""},
		"moved":                  {func(m *disktest.Machine, _ *Work) { m.Rename("/n/a", "/n/z") }, "", ""},
		"moved and written":      {func(m *disktest.Machine, _ *Work) { m.Rename("/n/a", "/n/z"); rewrite(m, "/n/z") }, "", "z"},
		"moved, and in a copy":   {func(m *disktest.Machine, _ *Work) { m.Rename("/n/a", "/n/y"); copied(m, "/n/y", "/n/z") }, "", ""},
		"a copy, and it is kept": {func(m *disktest.Machine, _ *Work) { copied(m, "/n/a", "/n/z") }, "", ""},
	} {
		m := newNode()
		first, was := newWork(t, m, nil, nil)
		var options Work
		x.do(m, &options)
		n, manifest := newWork(t, m, first, was)
		n.force, n.rots = options.force, options.rots
		err := n.compareMoved(t.Context(), manifest, false)
		if (err == nil) != (x.refused == "") || err != nil && !strings.Contains(err.Error(), x.refused) || (x.doubtful != "") != n.doubtful[tree.Name(x.doubtful)] || len(n.doubtful) > 1 {
			t.Errorf("%s: %v, doubtful %v: want %q, %q", what, err, n.doubtful, x.refused, x.doubtful)
		}
	}
}

// copied copies a file with its time.
func copied(m *disktest.Machine, from, to string) {
	text, _ := m.ReadFile(from)
	info, _ := m.Lstat(from)
	m.WriteFile(to, text, 0o600)
	m.SetTime(to, info.ModTime())
}

// TestRescan changes files after they were read. What still begins with what was read stays, and all else is read again, or
// leaves the record. What was read again and has changed once more is torn.
func TestRescan(t *testing.T) {
	t.Parallel()
	for what, x := range map[string]struct {
		do       func(m *disktest.Machine)
		again    []int // cells of the node
		vanished []tree.Name
		check    func(e *tree.Entry) bool // of file a
	}{
		"nothing":          {func(*disktest.Machine) {}, nil, nil, func(e *tree.Entry) bool { return e.Size == 150_000 && !e.Grown }},
		"another mode":     {func(m *disktest.Machine) { m.Chmod("/n/a", 0o644) }, nil, nil, func(e *tree.Entry) bool { return e.Mode == 0o644 }},
		"longer":           {func(m *disktest.Machine) { m.AppendFile("/n/a", []byte("more")) }, nil, nil, func(e *tree.Entry) bool { return e.Size == 150_000 && e.Grown }},
		"written":          {func(m *disktest.Machine) { m.Overwrite("/n/a", 5, []byte("new"), false) }, []int{4, 5, 6}, nil, func(e *tree.Entry) bool { return e.Size == 150_000 }},
		"shorter":          {func(m *disktest.Machine) { m.WriteFile("/n/a", []byte("short"), 0o600) }, []int{4, 5, 6}, nil, func(e *tree.Entry) bool { return e.Size == 5 }},
		"another is there": {func(m *disktest.Machine) { m.Remove("/n/a"); m.WriteFile("/n/a", []byte("other"), 0o600) }, []int{4, 5, 6}, nil, func(e *tree.Entry) bool { return e.Size == 5 }},
		"gone":             {func(m *disktest.Machine) { m.Remove("/n/a") }, []int{4, 5, 6}, []tree.Name{"a"}, func(e *tree.Entry) bool { return !e.Torn }},
		"a directory":      {func(m *disktest.Machine) { m.Remove("/n/a"); m.MkdirAll("/n/a", 0o700) }, []int{4, 5, 6}, []tree.Name{"a"}, func(e *tree.Entry) bool { return !e.Torn }},
	} {
		m := newNode()
		n, manifest := newWork(t, m, nil, nil)
		x.do(m)
		again, err := n.Rescan(t.Context(), manifest, nil, nil)
		if err != nil || !slices.Equal(again, x.again) || !slices.Equal(n.vanished, x.vanished) || !x.check(n.Listing.Find("a")) {
			t.Errorf("%s: %v, %v, vanished %q, %+v", what, again, err, n.vanished, n.Listing.Find("a"))
		}
		if n.dropVanished(manifest); !slices.Equal(n.dropped, x.vanished) || (n.Listing.Find("a") == nil) != (x.vanished != nil) {
			t.Errorf("%s: dropped %q", what, n.dropped)
		}
		m = newNode()
		n, manifest = newWork(t, m, nil, nil)
		x.do(m)
		_, err = n.Rescan(t.Context(), manifest, []int{5}, nil)
		if e := n.Listing.Find("a"); err != nil || e.Torn != (x.again != nil) || n.vanished != nil {
			t.Errorf("%s, after it was read again: %+v, %v", what, e, err)
		}
	}
}

// TestChangedCells says which cells are read, and which change for certain.
func TestChangedCells(t *testing.T) {
	t.Parallel()
	for what, x := range map[string]struct {
		do            func(m *disktest.Machine)
		read, changed []int
	}{
		"nothing":      {func(*disktest.Machine) {}, nil, nil},
		"written":      {func(m *disktest.Machine) { m.Overwrite("/n/a", 5, []byte("new"), false) }, []int{4, 5, 6}, nil},
		"another mode": {func(m *disktest.Machine) { m.Chmod("/n/b", 0o644) }, []int{6, 7}, nil},
		"gone": {func(m *disktest.Machine) {
			m.Remove("/n/a")
			m.WriteFile("/n/d", bytes.Repeat([]byte("d"), 150_000), 0o600)
		}, []int{4, 5, 6}, nil},
		"shorter": {func(m *disktest.Machine) {
			m.Cut("/n/a", 70_000)
			m.WriteFile("/n/d", bytes.Repeat([]byte("d"), 80_000), 0o600)
		}, []int{4, 5, 6}, []int{5, 6}},
	} {
		m := newNode()
		first, was := newWork(t, m, nil, nil)
		x.do(m)
		n, manifest := newWork(t, m, first, was)
		n.kept = &content.Parity{}
		read, changed := n.changedCells(manifest)
		read = slices.Compact(slices.Sorted(slices.Values(read)))
		if changed = slices.Compact(slices.Sorted(slices.Values(changed))); !slices.Equal(read, x.read) || !slices.Equal(changed, x.changed) {
			t.Errorf("%s: read %v, changed %v: want %v, %v", what, read, changed, x.read, x.changed)
		}
	}
}

// TestRecordTouches leaves out files that were touched just before the run began, or are not as they were read.
func TestRecordTouches(t *testing.T) {
	t.Parallel()
	m := newNode()
	n, _ := newWork(t, m, nil, nil)
	for name, do := range map[tree.Name]func(e *tree.Entry){
		"a": func(e *tree.Entry) { e.Torn = true }, "b": func(e *tree.Entry) { e.Grown = true }, "c": func(*tree.Entry) {},
	} {
		e := n.Listing.Find(name)
		for _, after := range []time.Duration{0, time.Hour} {
			e.Changed, e.Torn, e.Grown = 0, false, false
			n.begun = m.Now().Add(after - time.Minute - time.Millisecond)
			if after == 0 {
				n.begun = e.Time().Add(shortTick - 1)
			} else {
				do(e)
			}
			if n.RecordTouches(); (e.Changed != 0) != (name == "c" && after > 0) {
				t.Errorf("%s, %v later: %d", name, after, e.Changed)
			}
		}
	}
}

// TestWindow lays cells of both codewords of a node into memory, and takes some of them out.
func TestWindow(t *testing.T) {
	t.Parallel()
	m := &store.Manifest{Nodes: 3, Tolerate: 1, DataChunks: 2, ParityChunks: 1, BlockBytes: 16, ChunkBytes: 16*4 + 8}
	rows := []int{1, 2, 4} // the last one is short
	w := &Window{M: m, Node: 1}
	w.lay(byCodeword(m, CellsOf(m, rows)))
	if !slices.Equal(w.Rows(), rows) || w.Span != 40 || len(w.cellList()) != 9 {
		t.Errorf("rows %v, span %d, cells %v", w.Rows(), w.Span, w.cellList())
	}
	count := 0
	for _, parity := range []bool{false, true} {
		for blocks, padded := range w.Positions(parity) {
			for _, b := range blocks {
				if count++; len(b.Bytes) != map[bool]int{true: 8, false: 16}[b.Row == 4] || b.Symbol.Cell(m, b.Row) != b.Cell || b.Parity != parity {
					t.Errorf("%+v", b)
				}
				copy(b.Bytes, fmt.Sprint(b.Index, parity, b.Row))
			}
			if len(padded) != map[bool]int{true: 1, false: 2}[parity] {
				t.Errorf("%d chunks", len(padded))
			}
		}
	}
	some := slices.DeleteFunc(w.cellList(), func(cell int) bool { return cell%m.Rows() == 2 })
	part := w.part(some)
	for blocks := range part.Positions(false) {
		for _, b := range blocks {
			if count++; !bytes.HasPrefix(b.Bytes, fmt.Append(nil, b.Index, false)) || b.Row == 2 || &w.find(b)[0] == &b.Bytes[0] {
				t.Errorf("%+v: %q", b, b.Bytes)
			}
		}
	}
	if count != 9+4 || w.part(w.cellList()) != w {
		t.Errorf("%d blocks", count)
	}
	if is := ParityIn(m, 1, CellsOf(m, []int{0, 3})); !slices.Equal(is, []int{0, 3}) {
		t.Errorf("parity %v", is)
	}
}

// TestStretches joins numbers, and refuses cells that there are not.
func TestStretches(t *testing.T) {
	t.Parallel()
	if is := stretches([]int{5, 1, 2, 2, 4, 9}); !slices.Equal(is, []stretch{{1, 3}, {4, 6}, {9, 10}}) {
		t.Errorf("%v", is)
	}
	p := &Pass{M: &store.Manifest{Nodes: 2, DataChunks: 1, BlockBytes: 8, ChunkBytes: 40}}
	if is, err := p.union([][]stretch{{{1, 3}, {8, 10}}, {{2, 4}}, nil}, nil); err != nil || !slices.Equal(is, []int{1, 2, 3, 8, 9}) {
		t.Errorf("%v, %v", is, err)
	}
	for _, x := range []stretch{{-1, 2}, {9, 11}} {
		if _, err := p.union([][]stretch{{x}}, nil); err == nil {
			t.Errorf("%v is taken", x)
		}
	}
	if is := subtract([]int{1, 2, 3, 8}, []int{2, 8}); !slices.Equal(is, []int{1, 3}) {
		t.Errorf("%v", is)
	}
	if is := NoteNames("torn", []string{"a", "b", "c", "d", "e", "f", "g"}); !slices.Equal(is, []string{"torn: a, b, c, d, e and 2 more"}) || NoteNames("torn", nil) != nil {
		t.Errorf("%q", is)
	}
}
