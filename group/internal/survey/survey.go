// Package survey compares what nodes have with what was protected, and plans the repairs that bring the rest back. Where
// no more nodes are lost than may be, it brings their blocks back while it reads the others.
package survey

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"volley/group/internal/content"
	"volley/group/internal/restore"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// A Survey is what nodes lack, and how it comes back.
type Survey struct {
	Conditions []*content.Condition
	Repairs    []*blockRepair     // to run
	Beyond     map[lostBlock]bool // blocks that repairs do not restore
	Rows       map[int]bool       // rows with restored blocks, or blocks to restore
}

// Take finds out what nodes lack. Users' edits come back as edits says. If it rebuilds and not everything can come back,
// it starts over without rebuilding: rebuild is nil where it does not.
func Take(ctx context.Context, s *session.Session, edits protection.Edits, rebuild *Rebuild) (found *Survey, err error) {
	found = &Survey{Rows: map[int]bool{}}
	if rebuild != nil {
		found.Conditions, err = rebuild.run(ctx, s, edits)
		found.addRows(rebuild.repairs)
	} else {
		found.Conditions, err = ExamineAll(ctx, s, 0, scrub.EntireNode, edits)
	}
	if err != nil {
		return nil, err
	}
	if err := Recoverable(s, found.Conditions); err != nil {
		return nil, s.SharedError(ctx, lossOf(s, found.Conditions, err))
	}
	if err := found.plan(ctx, s, true); err != nil {
		return nil, err
	}
	if rebuild != nil && len(found.Beyond) > 0 {
		restore.Discard(rebuild.Targets)
		return Take(ctx, s, edits, nil)
	}
	if err := beyondError(s, found); err != nil {
		return nil, s.SharedError(ctx, err)
	}
	found.addRows(found.Repairs)
	return found, nil
}

// plan finds the repairs. With remake, parity comes back too.
func (found *Survey) plan(ctx context.Context, s *session.Session, remake bool) (err error) {
	if found.Repairs, found.Beyond, err = PlanRepairs(ctx, s, found.Conditions, remake); err != nil {
		return s.SharedError(ctx, err)
	}
	return nil
}

func (found *Survey) addRows(list []*blockRepair) {
	for _, r := range list {
		for _, row := range r.rows {
			found.Rows[row] = true
		}
	}
}

// Recoverable returns an error if a directory is not that of its node, or if too many nodes are lost.
func Recoverable(s *session.Session, conditions []*content.Condition) error {
	few := &protection.TooManyError{Tolerate: s.Manifest.Tolerate}
	for n, c := range conditions {
		if c.Foreign {
			return store.Inputf("%s has other files than node %d of the group had, and nothing says that it is this node: give its own directory, or an empty one", s.Name(n), n)
		}
		if c.Lost || c.Failing != "" {
			few.Nodes = append(few.Nodes, s.Name(n))
		}
	}
	if len(few.Nodes) > few.Tolerate {
		return few
	}
	return Unrecorded(s)
}

// Unrecorded returns an error if no node has the record of some node: then recover brings nothing back.
func Unrecorded(s *session.Session) error {
	if s.LostRecords == nil {
		return nil
	}
	var names []string
	for _, n := range s.LostRecords {
		names = append(names, s.Name(n))
	}
	if unread := s.UnreadRecords(); unread != nil {
		return store.Inputf("no node that can be read has the record of %s, and some cannot be: %s. Make them readable, and recover again", strings.Join(names, ", "), strings.Join(unread, "; "))
	}
	return store.Inputf("too much is lost: no node has the record of %s any more", strings.Join(names, ", "))
}

// beyondError returns an error if data of a snapshot do not come back, but another snapshot may: nothing is written then.
func beyondError(s *session.Session, found *Survey) error {
	if s.Verb.Passed == nil || !slices.ContainsFunc(slices.Collect(maps.Keys(found.Beyond)), func(x lostBlock) bool { return !x.Parity }) {
		return nil
	}
	var list []string
	for n, c := range found.Conditions {
		if c.Intact() {
			continue
		}
		text := fmt.Sprintf("%s is %s", s.Name(n), c.Status())
		if i := slices.IndexFunc(c.Findings, func(f protection.Finding) bool { return f.Reason != "" }); i >= 0 {
			text += fmt.Sprintf(", %s: %s", c.Findings[i].Path, c.Findings[i].Reason)
		}
		list = append(list, text)
	}
	return lossOf(s, found.Conditions, &protection.IncompleteError{Reasons: []string{"too many nodes are lost, damaged or changed in some blocks: " + strings.Join(list, "; ")}})
}

// GiveUp removes what cannot come back from a condition, and returns a message for each.
func GiveUp(s *session.Session, n *store.Node, c *content.Condition, beyond map[lostBlock]bool) []string {
	if len(beyond) == 0 {
		return nil
	}
	m, x := s.Manifest, s.RecordOf[n.Index]
	unrecoverable := map[tree.Name]bool{}
	files := tree.ExtentsOf(x.Entries)
	for _, g := range m.FilePartsOf(files) {
		if beyond[lostBlock{content.Symbol{Node: n.Index, Index: g.Chunk}, g.Row}] {
			unrecoverable[files[g.File].Path] = true
		}
	}
	var messages []string
	for x := range beyond {
		if x.Node != n.Index || !x.Parity || !c.Remake || c.Part {
			continue
		}
		stays := ""
		if c.Part = !c.Earlier; c.Earlier { // it may be intact although the disk failed to read it
			c.Remake, stays = false, ", so it stays as it is"
		}
		messages = append(messages, fmt.Sprintf("%s: too many nodes are lost, damaged or changed to make all of it again%s: protect what has changed, or bring it back, and recover again", n.Path(tree.Name(n.Generation(s.Generation).Path(store.ParityFile))), stays))
	}
	c.Restore = slices.DeleteFunc(c.Restore, func(e *tree.Entry) bool {
		if unrecoverable[e.FileOf()] {
			messages = append(messages, fmt.Sprintf("%s: too many nodes are lost, damaged or changed in some of its blocks", n.Path(e.Path)))
		}
		return unrecoverable[e.FileOf()]
	})
	return messages
}

// NewTarget returns the target of a node of the session in some condition.
func NewTarget(s *session.Session, n *store.Node, c *content.Condition) *restore.Target {
	return restore.NewTarget(originOf(s), s.States[n.Index], s.RecordOf[n.Index], s.Records[n.Index], n, c)
}

// NewCopy returns a target in another directory, in some condition, which gets entries of a node of the session.
func NewCopy(s *session.Session, n, outNode *store.Node, c *content.Condition) *restore.Target {
	x := restore.NewTarget(originOf(s), outNode.Load(s.Key, s.K), s.RecordOf[n.Index], nil, outNode, c)
	x.RestoreEntriesOnly(n.Dir)
	return x
}

func originOf(s *session.Session) *restore.Origin {
	return &restore.Origin{Current: s.Current, Manifest: s.Manifest, Text: s.Text, Run: s.Run}
}

// lossOf returns an error for which nodes in some condition do not come back, as a [session.LostError] where that is for certain:
// more nodes are lost than may be, or everything could be read, and is not there.
func lossOf(s *session.Session, conditions []*content.Condition, err error) error {
	lost, unread := 0, false
	for n, c := range conditions {
		if c.Lost && c.Failing == "" {
			lost++
			continue
		}
		x := s.States[n]
		unread = unread || c.Foreign || c.Failing != "" || x.Holding(s.Current) == nil && x.Bad != nil // nobody knows what else the node has
		unread = unread || slices.ContainsFunc(c.Findings, func(f protection.Finding) bool { return f.Reason != "" })
	}
	if s.Verb.Passed == nil || unread && lost <= s.Manifest.Tolerate {
		return err
	}
	return &session.LostError{Step: *s.Taken, Root: s.Root, Reason: err.Error()}
}

// HiddenNotes returns a message for each file of which nobody can tell whether it is intact.
func HiddenNotes(n *store.Node, c *content.Condition, findings []protection.Finding) (list []string) {
	for _, f := range findings {
		if slices.Contains(c.Hidden, f.Path) {
			list = append(list, fmt.Sprintf("%s: %s: whether it is as it was nobody can tell, and nothing takes its place: make it readable, and recover again", n.Path(f.Path), f.Reason))
		}
	}
	return list
}

// Sweep removes what an interrupted recovery of nodes here has left beside their .volley, where that lies elsewhere.
func Sweep(s *session.Session) {
	for _, n := range s.Nodes {
		if s.States[n.Index].Interrupted() {
			restore.Sweep(n)
		}
	}
}
