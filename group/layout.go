package group

import "volley/sim"

// A Cost is what a layout takes.
type Cost struct {
	Layout      string  `json:"layout"`
	Possible    bool    `json:"possible"`
	StoredBytes int64   `json:"stored_bytes"` // of parity, at each node
	SentBytes   int64   `json:"sent_bytes"`   // by the busiest node, or received
	Messages    int     `json:"messages"`     // of that node
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"model_seconds"`
	Plan        string  `json:"plan"`
	Why         string  `json:"why,omitempty"` // it is not possible
}

// A candidate is a layout that may do.
type candidate struct {
	Cost
	code *code // nil: it does not do
}

// candidates returns all layouts, or an error where none will do, or the one asked for will
// not.
func candidates(k int, o *ProtectOptions, name string) ([]candidate, error) {
	if o.Layout != "" && o.Layout != Full && o.Layout != Striped {
		return nil, inputf("layout %q: want full or striped", o.Layout)
	}
	var list []candidate
	var why error // the last one says what is wrong with the numbers, unless it is the matrix
	possible := false
	for _, layout := range []string{Full, Striped} {
		c, err := newCode(k, o.Tolerate, layout, name)
		x := candidate{Cost: Cost{Layout: layout, Possible: err == nil}, code: c}
		if err != nil {
			x.Why = err.Error()
		}
		list = append(list, x)
		if o.Layout != "" && o.Layout != layout {
			continue
		}
		if possible = possible || err == nil; why == nil || name != FTI {
			why = err
		}
	}
	if !possible {
		return nil, &InputError{error: why}
	}
	return list, nil
}

// cost sets what candidates take for that much data at the node that has most.
func (s *session) cost(list []candidate, most int64) error {
	for i := range list {
		x := &list[i]
		if x.code == nil {
			continue
		}
		m := Manifest{DataChunks: x.code.data, ParityChunks: x.code.parity}
		m.geometry(most, nil)
		r, err := x.code.making(&s.Options, m.ChunkBytes)
		if err != nil {
			return err
		}
		p, err := r.compile(&s.Options, m.ChunkBytes)
		if err != nil {
			return err
		}
		cost := sim.Count(p)
		x.Plan, x.Rounds, x.Messages = p.Info().Algorithm, cost.C1, cost.Messages()
		x.StoredBytes = int64(x.code.parity) * m.ChunkBytes
		x.SentBytes = int64(cost.NodePackets() * float64(m.ChunkBytes))
		x.Seconds = s.model(x.code.field, m.ChunkBytes).Time(cost).Seconds()
	}
	return nil
}

// chooseLayout returns the candidate asked for, else that of before, else striped, which
// stores least, unless full is much faster by the model.
func chooseLayout(o *ProtectOptions, matrix string, list []candidate, earlier *Manifest) *candidate {
	asked := o.Layout
	switch {
	case asked != "":
	case matrix == FTI:
		asked = Full
	case earlier != nil && earlier.Tolerate == o.Tolerate:
		asked = earlier.Layout
	}
	var best *candidate
	for i := range list {
		x := &list[i]
		if x.code == nil || asked != "" && asked != x.Layout {
			continue
		}
		if best == nil || x.Layout == Striped && x.Seconds <= muchFaster*best.Seconds {
			best = x
		}
	}
	return best
}

// muchFaster is how many times as long striped may take.
const muchFaster = 2
