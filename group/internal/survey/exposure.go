package survey

import (
	"context"
	"slices"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/judge"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// MostRisks is how many names a risk has.
const MostRisks = 10_000

// Expose returns how many more nodes may be lost, whichever they are, before data are lost. It also returns the files
// that one more loss would take, and since when; nil if that is unknown.
func Expose(ctx context.Context, s *session.Session, conditions []*content.Condition) (mayLose int, risks []protection.Risk, since *protection.Cause, err error) {
	exposure := judge.ExposureOf(s.Manifest, conditions, copiesOf(s))
	if !exposure.Uneven {
		return exposure.MayLose, nil, nil, nil
	}
	type nodeRisk struct {
		protection.Risk
		Cause *protection.Cause
	}
	nodeRisks, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (r nodeRisk, _ error) {
		if c := conditions[n.Index]; s.RecordOf[n.Index] != nil && !c.Lost && c.Failing == "" {
			r.Risk, r.Cause = riskOf(s, n, c, exposure)
		}
		return r, nil
	})
	causes := 0
	for _, x := range nodeRisks {
		if x.Files > 0 {
			risks = append(risks, x.Risk)
		}
		if x.Cause == nil {
			continue
		}
		if causes++; since == nil || x.Cause.Time.Before(since.Time) {
			since = x.Cause
		}
	}
	if since != nil {
		since.Nodes = causes
	}
	return exposure.MayLose, risks, since, err
}

// riskOf returns the files of a node here that one more loss would take, and what first took protection from any.
func riskOf(s *session.Session, n *store.Node, c *content.Condition, exposure *judge.Exposure) (protection.Risk, *protection.Cause) {
	r := protection.Risk{Node: n.Index, Dir: n.DirName}
	files := tree.ExtentsOf(s.RecordOf[n.Index].Entries)
	endangered, weakens := map[int]bool{}, map[tree.Name]bool{} // files
	for _, g := range s.Manifest.FilePartsOf(files) {
		_, erased := slices.BinarySearch(c.Data[g.Chunk], g.Row)
		endangered[g.File] = endangered[g.File] || exposure.Takes(content.Symbol{Node: n.Index, Index: g.Chunk}, g.Row, erased)
		weakens[files[g.File].Path] = weakens[files[g.File].Path] || exposure.TakesSome(g.Row)
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
	return r, firstCause(s, n, c, weakens)
}

// firstCause returns the oldest change of files: of a changed one, or of the directory from which one was deleted. It is
// no older than the protection itself, whatever its time says.
func firstCause(s *session.Session, n *store.Node, c *content.Condition, files map[tree.Name]bool) (first *protection.Cause) {
	protectedAt := time.Time{}
	for _, st := range s.States {
		if h := st.Holding(s.Current); h != nil && (protectedAt.IsZero() || h.Since.Before(protectedAt)) {
			protectedAt = h.Since
		}
	}
	kinds := content.FindingKinds(c.Findings)
	for _, e := range s.RecordOf[n.Index].Entries {
		kind, p := kinds[e.Path], e.Path
		for kind == content.Deleted && p != "." && c.Listing.Find(p) == nil {
			p = content.Parent(p)
		}
		listed := c.Listing.Find(p)
		if !files[e.FileOf()] || listed == nil || kind != content.Changed && kind != content.Deleted {
			continue
		}
		changedAt := listed.Time()
		if changedAt.Before(protectedAt) {
			changedAt = protectedAt
		}
		if first == nil || changedAt.Before(first.Time) {
			first = &protection.Cause{Time: changedAt, Node: n.Index, Dir: n.DirName, Kind: kind}
		}
	}
	return first
}

// copiesOf returns, by record, how many nodes have it.
func copiesOf(s *session.Session) []int {
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
