package content

import (
	"slices"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// What is the matter with a file of a node, or the whole of it: docs/format.md and docs/protect.md have the words.
const (
	Whole       = "whole"
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

// TakenFrom returns a function that tells whether what was protected, and is gone, was taken by somebody: the directory that
// it lay in, or the nearest that is left, has another time now. Else it is lost. Of what is no directory now nobody knows.
func TakenFrom(entries []*tree.Entry, l *tree.Listing) func(tree.Name) (taken, known bool) {
	were := tree.ByPath(entries)
	return func(p tree.Name) (taken, known bool) {
		dir := Above(p)
		for dir != "." && l.Find(dir) == nil {
			dir = Above(dir)
		}
		was, is := were[dir], l.Find(dir)
		if was == nil || was.Type != tree.TypeDir || is == nil || is.Type != tree.TypeDir {
			return false, false
		}
		return !is.SameTime(was), true
	}
}

// Came returns a function that reports whether a file has come that has the length and time of one that was protected. What
// is known has not come.
func Came(l *tree.Listing, known func(tree.Name) bool) func(*tree.Entry) bool {
	came := map[tree.Stamp]bool{}
	for _, e := range l.Entries {
		if e.Type == tree.TypeFile && e.Size > 0 && !known(e.Path) {
			came[e.Stamp()] = true
		}
	}
	return func(e *tree.Entry) bool { return came[e.Stamp()] }
}

// WhatOf returns what is the matter with files, by their paths.
func WhatOf(findings []protection.Finding) map[tree.Name]string {
	what := map[tree.Name]string{}
	for _, f := range findings {
		what[f.Path] = f.Kind
	}
	return what
}

// Harmless reports whether a finding takes nothing from the protection.
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
	Data        [][]int // by chunk: the rows that are not as they were
	Parity      [][]int
	Touched     [][]int     // by chunk: rows that are to come back; not those of changed files
	Redo        []int       // rows of a node that was rebuilt in which something came out wrong
	Torn        []tree.Name // see tree.Entry
	Manifest    bool        // and all records are there, and right

	// Of nodes here alone:
	Listing *tree.Listing             `json:"-"`
	Restore []*tree.Entry             `json:"-"` // that are to come back
	Like    map[tree.Name]*tree.Entry `json:"-"` // by file of several names: one that is there as it was, which others can be names of again
	Remake  bool                      `json:"-"` // is to be written anew
	Earlier bool                      `json:"-"` // there is some, which may be right in part
	Part    bool                      `json:"-"` // not all of what is written anew comes back
	Hidden  []tree.Name               `json:"-"` // that cannot be read, and may be as it was: nothing takes its place
}

// Whole reports whether nothing is the matter that takes anything from the protection.
func (c *Condition) Whole() bool {
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
	case c.Whole():
		return Whole
	case slices.ContainsFunc(c.Findings, func(f protection.Finding) bool { return f.Kind == Stale }):
		return Stale
	case !c.Manifest || slices.ContainsFunc(c.Findings, func(f protection.Finding) bool { return !Harmless(f) && f.Kind != Changed && f.Kind != Deleted }):
		return Damaged
	}
	return Changed
}

func (c *Condition) Note(p tree.Name, what string, why error) {
	f := protection.Finding{Path: p, Kind: what}
	if why != nil {
		f.Reason = disk.Reason(why)
	}
	c.Findings = append(c.Findings, f)
}

// Differing returns the entries of a record that are not as they were, and not only elsewhere.
func (c *Condition) Differing(x *store.Record) (list []*tree.Entry) {
	differs := map[tree.Name]bool{}
	for _, f := range c.Findings {
		differs[f.Path] = !Harmless(f)
	}
	for _, e := range x.Entries {
		if differs[e.Path] {
			list = append(list, e)
		}
	}
	return list
}

// Rotten returns the files that have the length and time that were protected, and hold something else where they were read.
func (c *Condition) Rotten(is *Compared) map[tree.Name]bool {
	files := map[tree.Name]bool{}
	for _, f := range c.Findings {
		if f.Kind == Damaged && is.Files[f.Path] && is.Failing[f.Path] == nil {
			files[f.Path] = true
		}
	}
	return files
}

// FilesOf returns the files of which entries are names.
func FilesOf(x *store.Record, list []*tree.Entry) (files []*tree.Entry) {
	are := map[tree.Name]bool{}
	for _, e := range list {
		are[e.FileOf()] = true
	}
	for _, e := range x.Entries {
		if e.Type == tree.TypeFile && are[e.Path] {
			files = append(files, e)
		}
	}
	return files
}

func (c *Condition) Blocks() (n int) {
	for _, rows := range slices.Concat(c.Data, c.Parity) {
		n += len(rows)
	}
	return n
}
