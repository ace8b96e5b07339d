package survey

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"volley/group/internal/content"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

func file(path string, bytes int64) *tree.Entry {
	return &tree.Entry{Path: tree.Name(path), Type: tree.TypeFile, Size: bytes}
}

// TestForeign checks when a directory in which nothing is Volley's is another node's.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		files, match int
		want         bool
	}{{0, 0, false}, {1, 0, true}, {1, 1, false}, {2, 1, false}, {3, 1, true}, {4, 2, false}, {5, 2, true}, {8, 4, false}, {9, 4, true}} {
		e := &examination{Condition: &content.Condition{Listing: &tree.Listing{}}, compared: &content.Compared{Files: map[tree.Name]bool{}}}
		e.record = &store.Record{Entries: []*tree.Entry{{Path: "a", Type: tree.TypeDir}, file("z", 3)}}
		for i := range x.files {
			listed := file(fmt.Sprint("f", i), 3)
			e.Listing.Entries = append(e.Listing.Entries, listed)
			switch {
			case i < x.match:
				e.record.Entries = append(e.record.Entries, listed)
			case i%2 == 0:
				e.record.Entries = append(e.record.Entries, file(fmt.Sprint("f", i), 4))
			}
		}
		foreign := func(st *store.State) bool {
			e.Foreign, e.state = false, st
			e.findForeign()
			return e.Foreign
		}
		if foreign(&store.State{Node: -1, Files: true}) != x.want {
			t.Errorf("%d files, %d of them the node's: foreign %v", x.files, x.match, e.Foreign)
		}
		for _, st := range []*store.State{{Node: 0, Files: true}, {Node: -1}, {Node: -1, Files: true, Held: make([]store.Held, 1)}} {
			if foreign(st) {
				t.Errorf("%+v: foreign", st)
			}
		}
		e.compared.Files["f0"] = true // what has the length and another content does not count
		if x.match > 0 && foreign(&store.State{Node: -1, Files: true}) != (2*(x.match-1) < x.files) {
			t.Errorf("%d files, %d of them the node's but for one: foreign %v", x.files, x.match, e.Foreign)
		}
	}
}

// TestEarlierMember looks for what a node had in a generation of fewer nodes: nothing.
func TestEarlierMember(t *testing.T) {
	t.Parallel()
	s := &session.Session{Manifest: &store.Manifest{Generation: 2}, Current: store.Current{Generation: 2}, States: make([]*store.State, 4)}
	s.States[3] = &store.State{Held: []store.Held{{Generation: 1, Committed: true}}}
	n := &store.Node{Index: 3, Held: map[int64]*store.Loaded{1: {Node: -1, Manifest: &store.Manifest{Generation: 1, Nodes: 3}}}}
	x := newExamination(s, n, scope{Part: scrub.EntireNode}, protection.Edits{})
	if err := x.compareEarlier(t.Context()); err != nil || x.earlier != nil || x.earlierEntries != nil {
		t.Errorf("%+v, %+v, %v", x.earlier, x.earlierEntries, err)
	}
}

// TestEvidence has an entry at a node in many ways. What is found of it comes back, stays, or is hidden.
func TestEvidence(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		kind, becomes string
		change        func(x *examination, e *tree.Entry)
	}{
		{"", "stays", func(*examination, *tree.Entry) {}},
		{content.Metadata, "stays", func(_ *examination, e *tree.Entry) { e.Mode = 0o600 }},
		{content.Changed, "stays", func(_ *examination, e *tree.Entry) { e.Type = tree.TypeDir }},
		{content.Changed, "stays", func(x *examination, e *tree.Entry) { e.Seconds++; x.compared.Files["a"] = true }},
		{content.Changed, "stays", func(x *examination, e *tree.Entry) { x.compared.Files["a"] = true }}, // doubtful
		{content.Damaged, "comes", func(x *examination, e *tree.Entry) { x.compared.Files["a"], x.Rots = true, true }},
		{content.Damaged, "comes", func(x *examination, e *tree.Entry) { x.fail(syscall.EIO) }},
		{content.Damaged, "hidden", func(x *examination, e *tree.Entry) { x.fail(fs.ErrPermission); x.Rots = true }},
		{content.Changed, "stays", func(x *examination, e *tree.Entry) { x.fail(fs.ErrPermission); e.Seconds++ }},
		{content.Missing, "comes", func(x *examination, e *tree.Entry) { x.Listing.Entries = nil }},
		{content.Deleted, "stays", func(x *examination, e *tree.Entry) {
			x.Listing.Entries, x.deleted = nil, x.compared.Files
			x.deleted["a"] = true
		}},
		{content.Damaged, "comes", func(x *examination, e *tree.Entry) {
			x.Listing = &tree.Listing{Bad: map[tree.Name]error{"a": syscall.EIO}}
		}},
		{content.Damaged, "hidden", func(x *examination, e *tree.Entry) {
			x.Listing = &tree.Listing{Bad: map[tree.Name]error{".": syscall.EIO}}
		}},
		{content.Moved, "stays", func(x *examination, e *tree.Entry) { x.moved = map[tree.Name]tree.Name{"a": "b"} }},
		{content.Stale, "comes", func(x *examination, e *tree.Entry) {
			x.compared.Files["a"] = true
			x.earlier, x.earlierEntries = &content.Compared{}, map[tree.Name]*tree.Entry{"a": file("a", 3)}
		}},
	} {
		listed := file("a", 3)
		e := &examination{Condition: &content.Condition{Listing: &tree.Listing{Entries: []*tree.Entry{listed}}}, isRead: content.AllFiles}
		e.compared = &content.Compared{Files: map[tree.Name]bool{}}
		e.record = &store.Record{Entries: []*tree.Entry{file("a", 3)}}
		x.change(e, listed)
		e.judgeEntries()
		kind, becomes := "", "stays"
		if len(e.Findings) > 0 {
			kind = e.Findings[0].Kind
		}
		switch {
		case len(e.Restore) > 0:
			becomes = "comes"
		case len(e.Hidden) > 0:
			becomes = "hidden"
		}
		if kind != x.kind || becomes != x.becomes || len(e.Findings) > 1 {
			t.Errorf("%v: %s, want %s, %s", e.Findings, becomes, x.kind, x.becomes)
		}
	}
}

// fail has the disk fail to read file a.
func (x *examination) fail(err error) {
	x.compared.Files["a"], x.compared.Failing = true, map[tree.Name]error{"a": err}
}
