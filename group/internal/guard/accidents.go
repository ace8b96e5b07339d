// Package guard says what protect has to refuse or to name: what looks like an accident, what is lost, nodes in one place,
// and a lack of room.
package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"volley/group/internal/content"
	"volley/group/internal/pass"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// A Balance is what a node has now of the files that were protected.
type Balance struct {
	Files, FormerFiles int      `json:",omitempty"`
	Bytes, FormerBytes int64    `json:",omitempty"`
	Deleted, Shorter   int      `json:",omitempty"`
	First              []string `json:",omitempty"` // of what was deleted, or is shorter

	// Of files whose content is under no name of the node any more, by size and time:
	Changed      int      `json:",omitempty"` // their names have other content
	Replaced     int      `json:",omitempty"` // their names are gone, and there are as many new files
	FirstChanged []string `json:",omitempty"`
}

// Kept returns what was protected but for what a listing, or patterns, leave out now.
func Kept(recorded []*tree.Entry, l *tree.Listing, exclude tree.Excludes) []*tree.Entry {
	return slices.DeleteFunc(slices.Clone(recorded), func(e *tree.Entry) bool { return exclude.Entry(e) || l.LeftOut(e.Path) })
}

// BalanceOf compares the files of a node with those that were protected. A file that was emptied counts as deleted, and one
// that has moved does not.
func BalanceOf(recorded, current []*tree.Entry) Balance {
	var x Balance
	var missing, differing []*tree.Entry // what was protected under names that are gone, or have something else
	var emptied, shorter []*tree.Entry
	spare := map[tree.Stamp]int{} // files that are not what was protected under their names
	fresh := 0
	for o, e := range tree.Pairs(recorded, current) {
		if o != nil && o.Type != tree.TypeFile {
			o = nil
		}
		if o != nil {
			x.FormerFiles++
			x.FormerBytes += o.Size
		}
		if e == nil || e.Type != tree.TypeFile && (e.Type != tree.TypeLink || o == nil) {
			if o != nil {
				missing = append(missing, o)
			}
			continue
		}
		if o != nil && o.Size > 0 && e.Size == 0 {
			emptied = append(emptied, e)
			continue
		}
		x.Files++
		x.Bytes += e.Size
		if o != nil && e.Size < o.Size {
			shorter = append(shorter, e)
		}
		if o != nil && e.Size == o.Size && e.SameTime(o) {
			continue
		}
		if o == nil {
			fresh++
		} else {
			differing = append(differing, o)
		}
		if e.Type == tree.TypeFile {
			spare[e.Stamp()]++
		}
	}
	moved := func(o *tree.Entry) bool {
		spare[o.Stamp()]--
		return spare[o.Stamp()] >= 0
	}
	absent := len(missing)
	deleted := slices.DeleteFunc(missing, moved)
	fresh -= absent - len(deleted)
	replaced := deleted[:min(len(deleted), max(0, fresh))]
	changed := slices.DeleteFunc(differing, moved)
	x.Deleted, x.Shorter, x.Changed, x.Replaced = len(deleted)+len(emptied), len(shorter), len(changed), len(replaced)
	x.First = firstOf(deleted, emptied, shorter)
	x.FirstChanged = firstOf(changed, replaced)
	return x
}

// ofCondition returns the balance of a node in some condition.
func ofCondition(c *content.Condition, record *store.Record) Balance {
	if c.Listing == nil || !c.Manifest {
		return Balance{}
	}
	x := BalanceOf(Kept(record.Entries, c.Listing, nil), c.Listing.Entries)
	var doubtful []tree.Name
	for _, f := range c.Findings {
		e, o := c.Listing.Find(f.Path), tree.Find(record.Entries, f.Path)
		if f.Kind == content.Changed && e != nil && content.IsFile(e) && e.Size == o.Size && e.SameTime(o) && !slices.Contains(c.Torn, f.Path) {
			doubtful = append(doubtful, f.Path)
		}
	}
	x.AddChanged(doubtful)
	return x
}

// FromConditions returns the [Accidents] and [Losses] of nodes in some condition.
func FromConditions(ctx context.Context, s *session.Session, conditions []*content.Condition) (accidents, losses []protection.Accident, err error) {
	balances, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (Balance, error) {
		return ofCondition(conditions[n.Index], s.RecordOf[n.Index]), nil
	})
	if err != nil {
		return nil, nil, err
	}
	balance := func(n int) *Balance { return &balances[n] }
	return Accidents(s, balance), Losses(s, balance), nil
}

// firstOf returns the names of the first entries of each of some lists.
func firstOf(lists ...[]*tree.Entry) (first []string) {
	for _, list := range lists {
		for _, e := range list[:min(len(list), pass.MostNamed)] {
			first = append(first, string(e.Path))
		}
	}
	return first
}

// AddChanged adds files that have turned out to have other content under the length and time that they had.
func (x *Balance) AddChanged(names []tree.Name) {
	x.Changed += len(names)
	for _, name := range names[:min(len(names), pass.MostNamed)] {
		x.FirstChanged = append(x.FirstChanged, string(name))
	}
}

// Empty reports whether nothing is left of what was protected.
func (x *Balance) Empty() bool { return x.FormerFiles > 0 && x.Files == 0 }

// ManyDeleted reports whether most of the files are gone, or of their bytes.
func (x *Balance) ManyDeleted() bool {
	const leastShare = 1 - content.AccidentShare
	return float64(x.Files) < leastShare*float64(x.FormerFiles) || float64(x.Bytes) < leastShare*float64(x.FormerBytes)
}

// SomeDeleted reports whether a tenth of the files is gone, or more, and not most of them.
func (x *Balance) SomeDeleted() bool {
	return x.FormerFiles >= fewFiles && 10*x.Deleted >= x.FormerFiles && !x.ManyDeleted()
}

// fewFiles are so few that a user changes most of them in a day.
const fewFiles = 8

// ManyChanged reports whether most of the files have other content.
func (x *Balance) ManyChanged() bool {
	return x.FormerFiles >= fewFiles && float64(x.Changed+x.Replaced) > content.AccidentShare*float64(x.FormerFiles)
}

// namesAnd names the first of all files, and says how many more there are.
func namesAnd(first []string, count int) string {
	var list []string
	for _, name := range first {
		list = append(list, fmt.Sprintf("%q", name))
	}
	return pass.JoinFirst(list, ", ", count)
}

// A guard finds at nodes what somebody has to look at.
type guard struct {
	kind       string              // of edits
	unlessMany func(*Balance) bool // unless it is so at many nodes
	always     func(*Balance) bool // at any number of nodes; nil: never
	text       func(*Balance) string
}

var (
	deletion = guard{content.Deleted, (*Balance).ManyDeleted, (*Balance).Empty, func(x *Balance) string {
		return fmt.Sprintf("%d of %d files and %s of %s left (gone or shorter: %s)", x.Files, x.FormerFiles, humanize.IBytes(uint64(x.Bytes)), humanize.IBytes(uint64(x.FormerBytes)), namesAnd(x.First, x.Deleted+x.Shorter))
	}}
	loss = guard{content.Deleted, (*Balance).SomeDeleted, nil, func(x *Balance) string {
		return fmt.Sprintf("lost %d of %d files (gone or shorter: %s)", x.Deleted, x.FormerFiles, namesAnd(x.First, x.Deleted+x.Shorter))
	}}
	change = guard{content.Changed, (*Balance).ManyChanged, nil, func(x *Balance) string {
		return fmt.Sprintf("other content in %d of %d files (%s)", x.Changed+x.Replaced, x.FormerFiles, namesAnd(x.FirstChanged, x.Changed+x.Replaced))
	}}
)

// find returns what has happened, node by node. What has happened at half of the nodes or more was meant. One node is no
// half: it is one accident, also where there are only two.
func (g guard) find(s *session.Session, balance func(n int) *Balance) (list []protection.Accident) {
	nodes := 0
	for n := range s.K {
		if g.unlessMany(balance(n)) {
			nodes++
		}
	}
	meant := nodes >= max(2, (s.K+1)/2)
	for n := range s.K {
		x := balance(n)
		if !meant && g.unlessMany(x) || g.always != nil && g.always(x) {
			list = append(list, protection.Accident{Node: n, Dir: s.Name(n), Kind: g.kind, Text: g.text(x)})
		}
	}
	return list
}

// Accidents returns what looks like an accident at nodes, which protect refuses to make permanent: most files are gone or
// changed. Deletions come first.
func Accidents(s *session.Session, balance func(n int) *Balance) []protection.Accident {
	return slices.Concat(deletion.find(s, balance), change.find(s, balance))
}

// Losses returns where fewer files are gone, and still so many that somebody has to know: protect makes it permanent.
func Losses(s *session.Session, balance func(n int) *Balance) []protection.Accident {
	return loss.find(s, balance)
}

// CheckAccidents returns an error where there are accidents that nobody accepts: protecting the rest would make them final.
// Force gives up nodes that are lost.
func CheckAccidents(ctx context.Context, s *session.Session, balance func(n int) *Balance, accept protection.Edits, force bool) error {
	refused := slices.DeleteFunc(Accidents(s, balance), func(x protection.Accident) bool {
		return force && s.States[x.Node].Holding(s.Current) == nil || x.Kind == content.Deleted && accept.Deleted || x.Kind == content.Changed && accept.Changed
	})
	if len(refused) == 0 {
		return nil
	}
	option := protection.OptionAcceptChanged
	if refused[0].Kind == content.Deleted {
		option = protection.OptionAcceptDeleted
		refused = slices.DeleteFunc(refused, func(x protection.Accident) bool { return x.Kind != content.Deleted })
	}
	return s.SharedError(ctx, &protection.RefusedError{Option: option, Err: fmt.Errorf("%s. If it is one, recover what was there first", protection.AccidentsText(refused))})
}

// CheckDigest returns an error where there is no such digest, or it is of no use with a key.
func CheckDigest(name string, key []byte) error {
	switch {
	case store.DigestBytes[name] == 0:
		return store.Inputf("digest %q: want %s", name, strings.Join(slices.Sorted(maps.Keys(store.DigestBytes)), ", "))
	case name == store.XXH3 && len(key) > 0:
		return store.Inputf("digest xxh3 finds accidents, and a key is against people, who can make up data for it: with a key take sha256 or blake3")
	}
	return nil
}

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
