package survey

import (
	"fmt"
	"testing"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
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
