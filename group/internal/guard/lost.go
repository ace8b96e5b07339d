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

// Lost returns an error that names files which are gone and which nobody has deleted: the disk has lost them, or a recovery
// could not bring them back.
func Lost(n *store.Node, l *tree.Listing, recorded []*tree.Entry) error {
	taken := content.RemovalTest(recorded, l)
	came := content.ArrivalTest(l, func(p tree.Name) bool { return tree.Find(recorded, p) != nil })
	var names []string
	for e, listed := range tree.Pairs(recorded, l.Entries) {
		if listed != nil {
			continue
		}
		if deleted, sure := taken(e.Path); sure && !deleted && !came(e) {
			names = append(names, n.Path(e.Path))
		}
	}
	if names == nil {
		return nil
	}
	return &protection.RefusedError{Option: protection.OptionForce, Err: errors.New(pass.NoteNames("recover first what nobody has deleted, as its directory has the time that it had", names)[0])}
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
func Changes(current, recorded []*tree.Entry) (n int64, list []protection.Finding) {
	missing, names, byOffset := tree.ByPath(recorded), tree.ByPath(current), map[int64]*tree.Entry{}
	for _, e := range recorded {
		if e.Type == tree.TypeFile && e.Size > 0 {
			byOffset[e.Offset] = e
		}
	}
	for _, e := range current {
		o := missing[e.Path]
		delete(missing, e.Path)
		unchanged := o != nil && o.Type == e.Type && o.Size == e.Size && o.Target == e.Target && (e.Type != tree.TypeFile || o.SameTime(e))
		switch {
		case e.Path == ".":
		case o == nil && e.Type == tree.TypeFile && e.Size > 0 && keeps(byOffset[e.Offset], e) && names[byOffset[e.Offset].Path] == nil:
			source := byOffset[e.Offset].Path
			delete(missing, source)
			list = append(list, protection.Finding{Path: source, Target: e.Path, Kind: content.Moved})
		case o == nil:
			list = append(list, protection.Finding{Path: e.Path, Kind: content.New})
		case !unchanged:
			list = append(list, protection.Finding{Path: e.Path, Kind: content.Changed})
		}
		if e.Type == tree.TypeFile && e.Size > 0 && !keeps(byOffset[e.Offset], e) {
			n += e.Size
		}
	}
	for _, e := range recorded {
		if missing[e.Path] != nil {
			list = append(list, protection.Finding{Path: e.Path, Kind: content.Deleted})
		}
	}
	return n, list
}

// keeps reports whether a file, in whose place e lies, still has its length and time there.
func keeps(o, e *tree.Entry) bool { return o != nil && o.Size == e.Size && o.SameTime(e) }
