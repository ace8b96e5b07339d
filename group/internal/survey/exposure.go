package survey

import (
	"context"
	"slices"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// MostRisks is how many names a risk has.
const MostRisks = 10_000

// Expose returns how many more nodes may be lost, whichever they are, before data are lost. It also returns the files
// that one more loss would take, and since when; nil if that is unknown. It counts by codeword: each lost, damaged or
// changed block is one erasure.
func Expose(ctx context.Context, s *session.Session, conditions []*content.Condition) (mayLose int, risks []protection.Risk, since *protection.Cause, err error) {
	m := s.Manifest
	c, err := erasure.CodeOf(m)
	if err != nil {
		return 0, nil, nil, err
	}
	word := map[content.Symbol]int{}
	for i, w := range c.Words {
		for _, x := range slices.Concat(w.Data, w.Parity) {
			word[x] = i
		}
	}
	bad := []int(nil) // erasures by row and codeword; nil: none
	limit := m.Tolerate
	for n, x := range conditions {
		if x.Lost || x.Failing != "" || x.Foreign {
			limit--
		}
		for _, erased := range []struct {
			content.Symbol
			chunks [][]int
		}{{content.Symbol{Node: n}, x.Data}, {content.Symbol{Node: n, Parity: true}, x.Parity}} {
			for chunk, rows := range erased.chunks {
				erased.Index = chunk
				w := word[erased.Symbol]
				if bad == nil && len(rows) > 0 {
					bad = make([]int, m.Rows()*len(c.Words))
				}
				for _, row := range rows {
					bad[row*len(c.Words)+w]++
				}
			}
		}
	}
	for _, count := range holders(s) {
		limit = min(limit, count-1)
	}
	mayLose = limit
	if bad != nil {
		mayLose = min(limit, m.Tolerate-slices.Max(bad))
	}
	mayLose = max(0, mayLose)
	if mayLose >= limit {
		return mayLose, nil, nil, nil
	}
	isEndangered := func(row int) bool { // whether losing mayLose+1 nodes loses blocks of the row
		return slices.ContainsFunc(bad[row*len(c.Words):][:len(c.Words)], func(n int) bool { return n > 0 && m.Tolerate-n <= mayLose })
	}
	type nodeRisk struct {
		protection.Risk
		Cause *protection.Cause
	}
	nodeRisks, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (r nodeRisk, _ error) {
		x, condition := s.RecordOf[n.Index], conditions[n.Index]
		r.Risk = protection.Risk{Node: n.Index, Dir: n.DirName}
		if x == nil || condition.Lost || condition.Failing != "" {
			return r, nil
		}
		r.Cause = firstCause(s, n, x, condition, isEndangered)
		files := tree.ExtentsOf(x.Entries)
		endangered := map[int]bool{}
		for _, g := range m.FilePartsOf(files) {
			w := word[content.Symbol{Node: n.Index, Index: g.Chunk}]
			otherErasures := bad[g.Row*len(c.Words)+w]
			if g.Chunk < len(condition.Data) {
				if _, isErased := slices.BinarySearch(condition.Data[g.Chunk], g.Row); isErased {
					otherErasures--
				}
			}
			if m.Tolerate-otherErasures <= mayLose {
				endangered[g.File] = true
			}
		}
		for i, e := range files {
			if !endangered[i] {
				continue
			}
			if r.Files++; r.Files <= MostRisks {
				r.Names = append(r.Names, e.Path)
			}
			r.Bytes += e.Size
		}
		slices.Sort(r.Names)
		return r, nil
	})
	for _, x := range nodeRisks {
		if x.Files > 0 {
			risks = append(risks, x.Risk)
		}
		if x.Cause != nil && (since == nil || x.Cause.Time.Before(since.Time)) {
			since = x.Cause
		}
	}
	return mayLose, risks, since, err
}

// firstCause returns what first took protection from the chosen rows of a node here: the oldest of the changed files, and
// of the directories from which files were deleted. No cause is older than the protection itself, whatever its time says.
func firstCause(s *session.Session, n *store.Node, x *store.Record, condition *content.Condition, chosen func(row int) bool) (first *protection.Cause) {
	m := s.Manifest
	files := tree.ExtentsOf(x.Entries)
	touches := map[tree.Name]bool{}
	for _, g := range m.FilePartsOf(files) {
		if !touches[files[g.File].Path] && chosen(g.Row) {
			touches[files[g.File].Path] = true
		}
	}
	protectedAt := time.Time{}
	for _, st := range s.States {
		if h := st.Holding(s.Current); h != nil && (protectedAt.IsZero() || h.Since.Before(protectedAt)) {
			protectedAt = h.Since
		}
	}
	add := func(changedAt time.Time, kind string) {
		if changedAt.Before(protectedAt) {
			changedAt = protectedAt
		}
		if first == nil || changedAt.Before(first.Time) {
			first = &protection.Cause{Time: changedAt, Node: n.Index, Dir: n.DirName, Kind: kind}
		}
	}
	kinds := content.FindingKinds(condition.Findings)
	for _, e := range x.Entries {
		if !touches[e.FileOf()] {
			continue
		}
		switch kinds[e.Path] {
		case content.Changed:
			if listed := condition.Listing.Find(e.Path); listed != nil {
				add(listed.Time(), content.Changed)
			}
		case content.Deleted:
			for dir := content.Parent(e.Path); ; dir = content.Parent(dir) {
				if listed := condition.Listing.Find(dir); listed != nil {
					add(listed.Time(), content.Deleted)
					break
				}
				if dir == "." {
					break
				}
			}
		}
	}
	return first
}

// holders returns, by record, how many nodes have it.
func holders(s *session.Session) []int {
	list := make([]int, s.K)
	for n, files := range s.Manifest.RecordFiles() {
		h := s.States[n].Holding(s.Current)
		for i, f := range files {
			if h != nil && h.Node == n && slices.Contains(h.Records, i) {
				list[f.Owner]++
			}
		}
	}
	return list
}
