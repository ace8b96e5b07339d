package content

import (
	"slices"
	"sync"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// What is the matter with a file of a node, or the whole of it: docs/format.md and docs/protect.md have the words.
const (
	Intact      = "whole"
	Lost        = "lost"        // a node
	Failing     = "failing"     // a node
	Unreachable = "unreachable" // a node
	Foreign     = "foreign"     // a node
	Missing     = "missing"     // a file
	Damaged     = "damaged"     // a file
	Stale       = "stale"       // a file
	Changed     = "changed"     // a file
	Moved       = "moved"       // a file, or a directory with all that was in it
	New         = "new"         // a file
	Deleted     = "deleted"     // a file, by users: the next Protect no longer protects it
	Metadata    = "metadata"    // mode, owner, attributes or, of a file, time
)

// AccidentShare is the share of a node's files above which what happened to them looks like an accident.
const AccidentShare = 0.5

// RemovalTest returns a function that tells whether somebody removed a missing entry: its parent, or the nearest ancestor
// that exists, has another time now. Else the entry is lost. If that is no directory now, nobody knows.
func RemovalTest(entries []*tree.Entry, l *tree.Listing) func(tree.Name) (taken, known bool) {
	return func(p tree.Name) (taken, known bool) {
		dir := Parent(p)
		for dir != "." && l.Find(dir) == nil {
			dir = Parent(dir)
		}
		recordedDir, listedDir := tree.Find(entries, dir), l.Find(dir)
		if recordedDir == nil || recordedDir.Type != tree.TypeDir || listedDir == nil || listedDir.Type != tree.TypeDir {
			return false, false
		}
		return !listedDir.SameTime(recordedDir), true
	}
}

// ArrivalTest returns a function that reports whether a new file has the length and time of a protected one. A known file
// is not new.
func ArrivalTest(l *tree.Listing, known func(tree.Name) bool) func(*tree.Entry) bool {
	stamps := sync.OnceValue(func() map[tree.Stamp]bool {
		stamps := map[tree.Stamp]bool{}
		for _, e := range l.Entries {
			if e.Type == tree.TypeFile && e.Size > 0 && !known(e.Path) {
				stamps[e.Stamp()] = true
			}
		}
		return stamps
	})
	return func(e *tree.Entry) bool { return stamps()[e.Stamp()] }
}

// Harmless reports whether a finding does not weaken the protection.
func Harmless(f protection.Finding) bool {
	return f.Kind == New || f.Kind == Metadata || f.Kind == Moved
}

// A Condition is what is found of a node when all of it is compared with the manifest.
type Condition struct {
	Lost        bool
	Failing     string
	Unreachable bool // it is failing as it cannot be reached
	Foreign     bool // it has files of its own, and nothing that shows whose node it is
	Findings    []protection.Finding
	Chosen      []protection.Finding `json:",omitempty"` // of the findings, if some files alone come back: those of these files
	Data        [][]int              // by chunk: the rows that differ from the record
	Parity      [][]int
	Touched     [][]int // by chunk: rows that are to come back; not those of changed files
	Holes       [][]int // by chunk: rows of zeros, which files and parity made anew have without a repair
	ParityHoles [][]int
	Redo        []int       // rows of a rebuilt node with a wrong block
	Torn        []tree.Name // see tree.Entry
	Manifest    bool        // the manifest and all records are intact

	// Of nodes here alone:
	Rots        bool                      `json:"-"` // whatever the ctime of a file says, nobody has written to it and set its time back
	Listing     *tree.Listing             `json:"-"`
	Restore     []*tree.Entry             `json:"-"` // entries that come back
	IntactNames map[tree.Name]*tree.Entry `json:"-"` // by file: an intact name, to which its other names can be linked
	Remake      bool                      `json:"-"` // parity is to be written again
	Earlier     bool                      `json:"-"` // parity exists, and may be right in part
	Part        bool                      `json:"-"` // parity that is written again is incomplete
	Hidden      []tree.Name               `json:"-"` // unreadable entries that may be intact: nothing replaces them
}

// Intact reports whether no finding weakens the protection.
func (c *Condition) Intact() bool {
	return !c.Lost && c.Failing == "" && !c.Foreign && c.Manifest && !slices.ContainsFunc(c.Findings, func(f protection.Finding) bool { return !Harmless(f) })
}

// Status returns what is the matter with the node as a whole.
func (c *Condition) Status() string {
	switch {
	case c.Unreachable:
		return Unreachable
	case c.Failing != "":
		return Failing
	case c.Lost:
		return Lost
	case c.Foreign:
		return Foreign
	case c.Intact():
		return Intact
	case slices.ContainsFunc(c.Findings, func(f protection.Finding) bool { return f.Kind == Stale }):
		return Stale
	case !c.Manifest || slices.ContainsFunc(c.Findings, func(f protection.Finding) bool { return !Harmless(f) && f.Kind != Changed && f.Kind != Deleted }):
		return Damaged
	}
	return Changed
}

func (c *Condition) Note(p tree.Name, kind string, reason error) {
	f := protection.Finding{Path: p, Kind: kind}
	if reason != nil {
		f.Reason = disk.Reason(reason)
	}
	c.Findings = append(c.Findings, f)
}

// FilesOf returns the files that entries name.
func FilesOf(x *store.Record, list []*tree.Entry) (files []*tree.Entry) {
	paths := map[tree.Name]bool{}
	for _, e := range list {
		paths[e.FileOf()] = true
	}
	for _, e := range x.Entries {
		if e.Type == tree.TypeFile && paths[e.Path] {
			files = append(files, e)
		}
	}
	return files
}

// FileBytes returns how many bytes the chosen files of a record have.
func FileBytes(x *store.Record, chosen Chosen) (bytes int64) {
	for _, e := range x.Entries {
		if e.Type == tree.TypeFile && chosen(e) {
			bytes += e.Size
		}
	}
	return bytes
}

func (c *Condition) Blocks() (n int) {
	for _, rows := range slices.Concat(c.Data, c.Parity) {
		n += len(rows)
	}
	return n
}
