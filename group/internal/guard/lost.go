package guard

import (
	"errors"
	"os"

	"volley/group/internal/content"
	"volley/group/internal/pass"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// Lost returns an error that names what is gone, and was not taken by anybody: the disk has lost it, or a recovery could not
// bring it back.
func Lost(n *store.Node, l *tree.Listing, were []*tree.Entry) error {
	taken := content.RemovalTest(were, l)
	known := tree.ByPath(were)
	came := content.ArrivalTest(l, func(p tree.Name) bool { return known[p] != nil })
	var names []string
	for _, e := range were {
		if by, sure := taken(e.Path); l.Find(e.Path) == nil && sure && !by && !came(e) {
			names = append(names, n.Path(e.Path))
		}
	}
	if names == nil {
		return nil
	}
	return &protection.RefusedError{Way: protection.WayForce, Err: errors.New(pass.NoteNames("recover first what nobody has deleted, as its directory has the time that it had", names)[0])}
}

// HidingData returns an error that names a file which has data, and a length of 0.
func HidingData(n *store.Node, l *tree.Listing) error {
	for _, e := range l.Entries {
		if e.Type != tree.TypeFile || e.Size > 0 {
			continue
		}
		f, err := n.Dir.OpenFile(string(e.Path), os.O_RDONLY, 0)
		if err != nil {
			continue // it is empty for all that anybody knows
		}
		got, _ := f.Read(make([]byte, 1))
		info, err := f.Stat()
		f.Close()
		if got > 0 && err == nil && info.Size() == 0 {
			return store.Inputf("%s has data, and says that its length is 0, as files in /proc do: move it away", n.Path(e.Path))
		}
	}
	return nil
}

// Changes returns bytes of files that have changed or moved, and what differs.
func Changes(now, was []*tree.Entry) (n int64, list []protection.Finding) {
	then, names, at := tree.ByPath(was), tree.ByPath(now), map[int64]*tree.Entry{}
	for _, e := range was {
		if e.Type == tree.TypeFile && e.Size > 0 {
			at[e.Offset] = e
		}
	}
	for _, e := range now {
		o := then[e.Path]
		delete(then, e.Path)
		same := o != nil && o.Type == e.Type && o.Size == e.Size && o.Target == e.Target && (e.Type != tree.TypeFile || o.SameTime(e))
		switch {
		case e.Path == ".":
		case o == nil && e.Type == tree.TypeFile && e.Size > 0 && keeps(at[e.Offset], e) && names[at[e.Offset].Path] == nil:
			from := at[e.Offset].Path
			delete(then, from)
			list = append(list, protection.Finding{Path: from, To: e.Path, What: content.Moved})
		case o == nil:
			list = append(list, protection.Finding{Path: e.Path, What: content.New})
		case !same:
			list = append(list, protection.Finding{Path: e.Path, What: content.Changed})
		}
		if e.Type == tree.TypeFile && e.Size > 0 && !keeps(at[e.Offset], e) {
			n += e.Size
		}
	}
	for _, e := range was {
		if then[e.Path] != nil {
			list = append(list, protection.Finding{Path: e.Path, What: content.Deleted})
		}
	}
	return n, list
}

// keeps reports whether a file, in whose place e lies, still has its length and time there.
func keeps(o, e *tree.Entry) bool { return o != nil && o.Size == e.Size && o.SameTime(e) }
