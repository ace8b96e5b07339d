package group

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"volley/executor"
	"volley/field"
	"volley/internal/disk"
	"volley/matrix"
)

// bring runs a repair of symbols which, at the nodes here, have their places in memory.
func (s *session) bring(ctx context.Context, r *repair, bytes int64, places map[symbol][]byte) error {
	if r.plan == nil && len(r.problem.Codewords) == 0 {
		return nil
	}
	oneBlock := blocks{&Manifest{ChunkBytes: bytes, BlockBytes: bytes}, []int{0}}
	_, err := s.repair(ctx, r, oneBlock, func(x symbol) executor.Input { return executor.Input{Memory: places[x]} },
		func(x symbol) executor.Output { return executor.Output{Memory: places[x]} })
	return err
}

// A delivery brings a text from the node that has it to others. The index of a symbol is that of its text.
type delivery struct {
	from int
	to   []int
}

// deliver runs deliveries of texts of at most so many bytes, in places at the nodes here.
func (s *session) deliver(ctx context.Context, list []delivery, bytes int64, places map[symbol][]byte) error {
	f, err := field.Parse("2^8")
	if err != nil {
		return err
	}
	copies, most := &code{k: s.k, data: 1, field: f}, 1
	lacking := map[symbol]bool{}
	for i, d := range list {
		w := codeword{data: []symbol{{d.from, false, i}}}
		for _, n := range d.to {
			w.parity = append(w.parity, symbol{n, true, i})
			lacking[symbol{n, true, i}] = true
		}
		copies.words, most = append(copies.words, w), max(most, len(d.to))
	}
	copies.matrix = matrix.DenseFunc(f, 1, most, func(_, _ int) field.Element { return field.One })
	r, _, err := copies.repairing(lacking, lacking)
	if err != nil {
		return err
	}
	return s.bring(ctx, r, bytes, places)
}

// fetch gets the manifest in force, and the records of the nodes here.
func (s *session) fetch(ctx context.Context) error {
	has := func(x *state) bool { return x.of(s.current) != nil }
	for _, n := range s.nodes {
		if l := n.held[s.generation]; s.manifest == nil && has(s.states[n.index]) {
			s.manifest, s.text = l.manifest, l.text
		}
	}
	from := slices.IndexFunc(s.states, has)
	length := s.states[from].of(s.current).Bytes
	if length < 1 || length > mostManifest {
		return fmt.Errorf("%s says that its manifest has %d bytes: want 1 to %d", s.name(from), length, mostManifest)
	}
	var lacking []int // the first node of each rank at which no node has it
	for r := range s.t.Size() {
		if first, end := executor.Hosted(s.k, r, s.t.Size()); !slices.ContainsFunc(s.states[first:end], has) {
			lacking = append(lacking, first)
		}
	}
	text := make([]byte, aligned(length))
	copy(text, s.text)
	if err := s.deliver(ctx, []delivery{{from, lacking}}, aligned(length), map[symbol][]byte{{from, false, 0}: text, {s.nodes[0].index, true, 0}: text}); err != nil {
		return err
	}
	if s.manifest == nil {
		var err error
		s.text = text[:length]
		if disk.Sum(s.text) != s.root || len(s.Key) > 0 && !s.adopt && !madeWith(s.Key, s.text) {
			return fmt.Errorf("another manifest than that of generation %d arrived", s.generation)
		}
		if s.manifest, err = DecodeManifest(s.text); err != nil {
			return err
		}
	}
	return s.fetchRecords(ctx)
}

// fetchRecords reads the records of the nodes here. Record files that these lack come in memory from nodes that have
// them.
func (s *session) fetchRecords(ctx context.Context) error {
	m := s.manifest
	has := make([][]int, s.k) // by record: nodes
	lacks := make([][]int, s.k)
	files := m.recordFiles()
	for n := range s.k {
		h := s.states[n].of(s.current)
		for i, f := range files[n] {
			list := &lacks[f.of]
			if h != nil && h.Node == n && slices.Contains(h.Records, i) {
				list = &has[f.of]
			}
			*list = append(*list, n)
		}
	}
	var list []delivery
	index := map[int]int{} // of a delivery, by record
	for of := range s.k {
		switch {
		case len(has[of]) == 0:
			s.gone = append(s.gone, of)
		case len(lacks[of]) > 0:
			index[of] = len(list)
			list = append(list, delivery{has[of][of%len(has[of])], lacks[of]})
		}
	}
	bytes := int64(0)
	for _, d := range slices.Collect(maps.Keys(index)) {
		bytes = max(bytes, aligned(m.Records[d].Bytes))
	}
	s.members, s.records = map[int]*Member{}, map[int]map[string][]byte{}
	places := map[symbol][]byte{}
	place := func(n, of int, sink bool) []byte {
		at := symbol{n, sink, index[of]}
		if places[at] == nil {
			places[at] = make([]byte, bytes)
		}
		return places[at]
	}
	for _, n := range s.nodes {
		for _, f := range files[n.index] {
			i, moves := index[f.of]
			switch {
			case !slices.Contains(has[f.of], n.index):
				if moves {
					place(n.index, f.of, true)
				}
				continue
			case f.of != n.index && !(moves && list[i].from == n.index):
				continue
			}
			_, record, err := n.read(n.held[s.generation], f)
			if err != nil {
				return err
			}
			if moves && list[i].from == n.index {
				copy(place(n.index, f.of, false), record)
			}
			if f.of == n.index {
				if s.members[n.index], err = m.decodeMember(record); err != nil {
					return err
				}
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	if err := s.deliver(ctx, list, bytes, places); err != nil {
		return err
	}
	for _, n := range s.nodes {
		for _, f := range files[n.index] {
			_, moves := index[f.of]
			if !moves || slices.Contains(has[f.of], n.index) {
				continue
			}
			record := place(n.index, f.of, true)[:f.bytes]
			text := base64.StdEncoding.AppendEncode(nil, record)
			if disk.Sum(text) != f.sha256 {
				return fmt.Errorf("the record of %s is not what was protected: a node has changed meanwhile, or sends something else; run again", s.name(f.of))
			}
			if s.records[n.index] == nil {
				s.records[n.index] = map[string][]byte{}
			}
			s.records[n.index][f.name] = text
			if f.of == n.index {
				var err error
				if s.members[n.index], err = m.decodeMember(record); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copyRecords notes the records in the manifest, brings copies to the nodes that are to have them, and returns the
// record files here.
func (s *session) copyRecords(ctx context.Context, m *Manifest, records [][]byte) ([][]*recordFile, error) {
	var mine []Record
	texts := make([][]byte, len(records))
	for i, record := range records {
		texts[i] = base64.StdEncoding.AppendEncode(nil, record)
		mine = append(mine, Record{Bytes: int64(len(record)), SHA256: disk.Sum(texts[i])})
	}
	all, err := exchange(ctx, s, mine)
	if err != nil {
		return nil, err
	}
	m.Records = all
	list := make([]delivery, s.k)
	bytes := int64(0)
	table := m.recordFiles()
	for n, r := range all {
		list[n].from, bytes = n, max(bytes, aligned(r.Bytes))
		for _, f := range table[n][1:] {
			list[f.of].to = append(list[f.of].to, n)
		}
	}
	places := map[symbol][]byte{}
	var files [][]*recordFile
	for i, n := range s.nodes {
		files = append(files, table[n.index])
		for _, f := range files[i] {
			place := make([]byte, bytes)
			if places[symbol{n.index, f.of != n.index, f.of}] = place; f.of == n.index {
				copy(place, records[i])
			}
		}
	}
	if err := s.deliver(ctx, list, bytes, places); err != nil {
		return nil, err
	}
	for i, n := range s.nodes {
		for _, f := range files[i] {
			if f.of == n.index {
				f.content = texts[i]
				continue
			}
			f.content = base64.StdEncoding.AppendEncode(nil, places[symbol{n.index, true, f.of}][:f.bytes])
			if disk.Sum(f.content) != f.sha256 {
				return nil, &WrongError{What: fmt.Sprintf("the copy of the record of node %d that arrived at %s is wrong: a machine or the network corrupts data; the earlier protection stays in force", f.of, n.given)}
			}
		}
	}
	return files, nil
}
