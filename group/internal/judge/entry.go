package judge

import (
	"volley/group/internal/content"
	"volley/group/protection"
)

// Evidence is what is known of an entry of a node.
type Evidence struct {
	New       bool // it was not protected
	Moved     bool // what was protected lies under another name
	Absent    bool // nothing has its name, as far as anybody can tell
	Removed   bool // a user has removed it
	Intact    bool // it holds what was protected, or has its length and time where nobody reads it
	Parted    bool // it was another name of a file that is there, and is a file of its own
	OtherMeta bool // mode, owner, attributes or mtime
	Failing   bool // the disk fails to read it
	Earlier   bool // it is what an earlier generation has, at which the node is
	Written   bool // its type, target or mtime is another one, or it was torn
	Forbidden bool // the user of this run may not read it
	Untouched bool // both of its times are as they were, or nobody can have changed them
}

// A Fate is what becomes of an entry.
type Fate struct {
	Kind   string // of the finding; "": there is none
	Return Return
	Reason string // beyond that of the disk
}

// A Return says whether recover brings back what was protected, as docs/protect.md does.
type Return string

const (
	Stays     Return = "no"
	Hidden    Return = "no: it may be whole"
	Always    Return = "yes"
	IfChanged Return = "`--revert changed`"
	IfDeleted Return = "`--revert deleted`"
)

// Brings reports whether it comes back where the edits of users that are named do.
func (r Return) Brings(edits protection.Edits) bool {
	return r == Always || r == IfChanged && edits.Changed || r == IfDeleted && edits.Deleted
}

// FateOf returns what becomes of an entry.
func FateOf(x Evidence) Fate { return rowOf(fates, x).verdict }

var fates = []row[Evidence, Fate]{
	{"new", func(x Evidence) bool { return x.New }, Fate{content.New, Stays, ""},
		"new since"},
	{"moved", func(x Evidence) bool { return x.Moved }, Fate{content.Moved, IfChanged, ""},
		"under another name"},
	{"removed", func(x Evidence) bool { return x.Removed }, Fate{content.Deleted, IfDeleted, ""},
		"gone, and its directory has another mtime"},
	{"absent", func(x Evidence) bool { return x.Absent }, Fate{content.Missing, Always, ""},
		"gone"},
	{"parted", func(x Evidence) bool { return x.Intact && x.Parted }, Fate{content.Metadata, Stays, ""},
		"the same, and no hard link any more"},
	{"other metadata", func(x Evidence) bool { return x.Intact && x.OtherMeta }, Fate{content.Metadata, Stays, ""},
		"the same, with another mode, owner, attribute or mtime"},
	{"intact", func(x Evidence) bool { return x.Intact }, Fate{"", Stays, ""},
		"the same"},
	{"failing", func(x Evidence) bool { return x.Failing }, Fate{content.Damaged, Always, ""},
		"its disk fails"},
	{"earlier", func(x Evidence) bool { return x.Earlier }, Fate{content.Stale, Always, ""},
		"as in the generation at which the node is"},
	{"written", func(x Evidence) bool { return x.Written }, Fate{content.Changed, IfChanged, ""},
		"another type, target or mtime, or torn"},
	{"forbidden", func(x Evidence) bool { return x.Untouched && x.Forbidden }, Fate{content.Damaged, Hidden, ""},
		"both times as before, unreadable to you"},
	{"rotten", func(x Evidence) bool { return x.Untouched }, Fate{content.Damaged, Always, ""},
		"both times as before: rotten"},
	{"doubtful", nil, Fate{content.Changed, IfChanged, "somebody has set its time back, or it has rotted"},
		"another ctime alone: its mtime was set back, or it has rotted"},
}
