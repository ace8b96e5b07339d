package survey

import (
	"context"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// A Risk is what would not come back at a node where it and as many others are lost as are one more than may be.
type Risk struct {
	Node  int         `json:"node"`
	Dir   string      `json:"dir"`
	Files int         `json:"files"`
	Bytes int64       `json:"bytes"` // of these
	Names []tree.Name `json:"names"` // of the first of them: MostRisks at most
}

// MostRisks is how many names a risk has.
const MostRisks = 10_000

// Expose returns how many more nodes may be lost, whichever they are, so that everything of theirs comes back, and what
// would not where one more is. It counts by codeword: what is lost, damaged or changed is an erasure in its own.
func Expose(ctx context.Context, s *session.Session, conditions []*content.Condition) (mayLose int, risks []Risk, err error) {
	m := s.Manifest
	c, err := erasure.CodeOf(m)
	if err != nil {
		return 0, nil, err
	}
	word := map[content.Symbol]int{}
	for i, w := range c.Words {
		for _, x := range slices.Concat(w.Data, w.Parity) {
			word[x] = i
		}
	}
	parity := len(c.Words[0].Parity)
	each := (len(c.Words[0].Data) + parity) / s.K // symbols of a node in a codeword
	bad := []int(nil)                             // by row and codeword; nil: nothing is
	limit := m.Tolerate
	for n, x := range conditions {
		if x.Lost || x.Failing != "" || x.Foreign {
			limit--
		}
		for _, of := range []struct {
			content.Symbol
			chunks [][]int
		}{{content.Symbol{Node: n}, x.Data}, {content.Symbol{Node: n, Parity: true}, x.Parity}} {
			for chunk, rows := range of.chunks {
				of.Index = chunk
				w := word[of.Symbol]
				if bad == nil && len(rows) > 0 {
					bad = make([]int, m.Rows()*len(c.Words))
				}
				for _, row := range rows {
					bad[row*len(c.Words)+w]++
				}
			}
		}
	}
	for _, has := range holders(s) {
		limit = min(limit, has-1)
	}
	mayLose = limit
	if bad != nil {
		mayLose = min(limit, (parity-slices.Max(bad))/each)
	}
	mayLose = max(0, mayLose)
	if mayLose >= limit {
		return mayLose, nil, nil
	}
	all, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (r Risk, _ error) {
		x, is := s.Members[n.Index], conditions[n.Index]
		r = Risk{Node: n.Index, Dir: n.Given}
		if x == nil || is.Lost || is.Failing != "" {
			return r, nil
		}
		own := func(lists [][]int, chunk, row int) int {
			if chunk < len(lists) {
				if _, bad := slices.BinarySearch(lists[chunk], row); bad {
					return 1
				}
			}
			return 0
		}
		files := tree.ExtentsOf(x.Entries)
		gone := map[int]bool{}
		for _, g := range m.SegmentsOf(files) {
			w := word[content.Symbol{Node: n.Index, Index: g.Chunk}]
			others := bad[g.Row*len(c.Words)+w] - own(is.Data, g.Chunk, g.Row)
			if each > 1 {
				others -= own(is.Parity, 0, g.Row)
			}
			if (parity-others)/each <= mayLose {
				gone[g.File] = true
			}
		}
		for i, e := range files {
			if !gone[i] {
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
	return mayLose, slices.DeleteFunc(all, func(r Risk) bool { return r.Files == 0 }), err
}

// holders returns, by record, how many nodes have it.
func holders(s *session.Session) []int {
	list := make([]int, s.K)
	for n, files := range s.Manifest.RecordFiles() {
		h := s.States[n].Of(s.Current)
		for i, f := range files {
			if h != nil && h.Node == n && slices.Contains(h.Records, i) {
				list[f.Of]++
			}
		}
	}
	return list
}
