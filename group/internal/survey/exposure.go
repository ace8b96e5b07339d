package survey

import (
	"context"
	"slices"

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
// that one more loss would take.
func Expose(ctx context.Context, s *session.Session, conditions []*content.Condition) (mayLose int, risks []protection.Risk, err error) {
	exposure := judge.ExposureOf(s.Manifest, conditions, copiesOf(s))
	if !exposure.Uneven {
		return exposure.MayLose, nil, nil
	}
	nodeRisks, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (r protection.Risk, _ error) {
		if c := conditions[n.Index]; s.RecordOf[n.Index] != nil && !c.Lost && c.Failing == "" {
			r = riskOf(s, n, c, exposure)
		}
		return r, nil
	})
	return exposure.MayLose, slices.DeleteFunc(nodeRisks, func(r protection.Risk) bool { return r.Files == 0 }), err
}

// riskOf returns the files of a node here that one more loss would take.
func riskOf(s *session.Session, n *store.Node, c *content.Condition, exposure *judge.Exposure) protection.Risk {
	r := protection.Risk{Node: n.Index, Dir: n.DirName}
	files := tree.ExtentsOf(s.RecordOf[n.Index].Entries)
	endangered := map[int]bool{} // files
	for _, g := range s.Manifest.FilePartsOf(files) {
		_, erased := slices.BinarySearch(c.Data[g.Chunk], g.Row)
		endangered[g.File] = endangered[g.File] || exposure.Takes(content.Symbol{Node: n.Index, Index: g.Chunk}, g.Row, erased)
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
	return r
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
