package session

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"volley/executor"
	"volley/field"
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/matrix"
)

// runRepair runs a repair of symbols, each of which has its memory at the nodes here.
func (s *Session) runRepair(ctx context.Context, r *erasure.Repair, bytes int64, memory map[content.Symbol][]byte) error {
	if r.Plan == nil && len(r.Traffic.Codewords) == 0 {
		return nil
	}
	oneBlock := content.Blocks{M: &store.Manifest{ChunkBytes: bytes, BlockBytes: bytes}, Rows: []int{0}}
	_, err := r.Run(ctx, s.Setting(), oneBlock, func(x content.Symbol) executor.Input { return executor.Input{Memory: memory[x]} },
		func(x content.Symbol) executor.Output { return executor.Output{Memory: memory[x]} })
	return err
}

// A delivery brings a text from the node that has it to others. The index of a symbol is that of its text.
type delivery struct {
	source  int
	targets []int
}

// deliver runs deliveries of texts of at most so many bytes, in the memory of the nodes here.
func (s *Session) deliver(ctx context.Context, list []delivery, bytes int64, memory map[content.Symbol][]byte) error {
	f, err := field.Parse("2^8")
	if err != nil {
		return err
	}
	copies, mostTargets := &erasure.Code{K: s.K, Data: 1, Field: f}, 1
	lacking := map[content.Symbol]bool{}
	for i, d := range list {
		w := erasure.Codeword{Data: []content.Symbol{{Node: d.source, Parity: false, Index: i}}}
		for _, n := range d.targets {
			w.Parity = append(w.Parity, content.Symbol{Node: n, Parity: true, Index: i})
			lacking[content.Symbol{Node: n, Parity: true, Index: i}] = true
		}
		copies.Words, mostTargets = append(copies.Words, w), max(mostTargets, len(d.targets))
	}
	copies.Matrix = matrix.DenseFunc(f, 1, mostTargets, func(_, _ int) field.Element { return field.One })
	r, _, err := copies.Repairing(ctx, lacking, lacking)
	if err != nil {
		return err
	}
	return s.runRepair(ctx, r, bytes, memory)
}

// Fetch gets the manifest in force, and the records of the nodes here.
func (s *Session) Fetch(ctx context.Context) error {
	holds := func(x *store.State) bool { return x.Holding(s.Current) != nil }
	for _, n := range s.Nodes {
		if l := n.Held[s.Generation]; s.Manifest == nil && holds(s.States[n.Index]) {
			s.Manifest, s.Text = l.Manifest, l.Text
		}
	}
	holder := slices.IndexFunc(s.States, holds)
	length := s.States[holder].Holding(s.Current).Bytes
	if length < 1 || length > store.MostManifest {
		return fmt.Errorf("%s says that its manifest has %d bytes: want 1 to %d", s.Name(holder), length, store.MostManifest)
	}
	var lacking []int // the first node of each rank at which no node has it
	for r := range s.T.Size() {
		if first, end := executor.Hosted(s.K, r, s.T.Size()); !slices.ContainsFunc(s.States[first:end], holds) {
			lacking = append(lacking, first)
		}
	}
	text := make([]byte, store.Aligned(length))
	copy(text, s.Text)
	if err := s.deliver(ctx, []delivery{{holder, lacking}}, store.Aligned(length), map[content.Symbol][]byte{{Node: holder, Parity: false, Index: 0}: text, {Node: s.Nodes[0].Index, Parity: true, Index: 0}: text}); err != nil {
		return err
	}
	if s.Manifest == nil {
		var err error
		s.Text = text[:length]
		if disk.Sum(s.Text) != s.Root || len(s.Key) > 0 && !s.adopt && !store.MadeWith(s.Key, s.Text) {
			return fmt.Errorf("another manifest than that of generation %d arrived", s.Generation)
		}
		if s.Manifest, err = store.DecodeManifest(s.Text); err != nil {
			return err
		}
	}
	return s.fetchRecords(ctx)
}

// fetchRecords reads the records of the nodes here. Record files that these lack come in memory from nodes that have
// them.
func (s *Session) fetchRecords(ctx context.Context) error {
	m := s.Manifest
	holders := make([][]int, s.K) // by record: nodes
	lacks := make([][]int, s.K)
	files := m.RecordFiles()
	for n := range s.K {
		h := s.States[n].Holding(s.Current)
		for i, f := range files[n] {
			list := &lacks[f.Owner]
			if h != nil && h.Node == n && slices.Contains(h.Records, i) {
				list = &holders[f.Owner]
			}
			*list = append(*list, n)
		}
	}
	var list []delivery
	index := map[int]int{} // of a delivery, by record
	for owner := range s.K {
		switch {
		case len(holders[owner]) == 0:
			s.LostRecords = append(s.LostRecords, owner)
		case len(lacks[owner]) > 0:
			index[owner] = len(list)
			list = append(list, delivery{holders[owner][owner%len(holders[owner])], lacks[owner]})
		}
	}
	bytes := int64(0)
	for owner := range index {
		bytes = max(bytes, store.Aligned(m.Records[owner].Bytes))
	}
	s.RecordOf, s.Records = map[int]*store.Record{}, map[int]map[string][]byte{}
	memory := map[content.Symbol][]byte{}
	buffer := func(n, owner int, sink bool) []byte {
		symbol := content.Symbol{Node: n, Parity: sink, Index: index[owner]}
		if memory[symbol] == nil {
			memory[symbol] = make([]byte, bytes)
		}
		return memory[symbol]
	}
	read := func(n *store.Node) error {
		for _, f := range files[n.Index] {
			i, moves := index[f.Owner]
			switch {
			case !slices.Contains(holders[f.Owner], n.Index):
				if moves {
					buffer(n.Index, f.Owner, true)
				}
				continue
			case f.Owner != n.Index && !(moves && list[i].source == n.Index):
				continue
			}
			_, record, err := n.Read(n.Held[s.Generation], f)
			if err != nil {
				return err
			}
			if moves && list[i].source == n.Index {
				copy(buffer(n.Index, f.Owner, false), record)
			}
			if f.Owner == n.Index {
				if s.RecordOf[n.Index], err = m.DecodeRecord(record); err != nil {
					return err
				}
			}
		}
		return nil
	}
	vanished := make([]string, len(s.Nodes)) // beside another run
	for i, n := range s.Nodes {
		if err := read(n); err != nil && n.Writer == nil {
			return err
		} else if err != nil {
			vanished[i] = err.Error()
		}
	}
	if slices.ContainsFunc(s.States, func(x *store.State) bool { return x.Writer != nil }) {
		failures, err := Exchange(ctx, s, vanished)
		if i := slices.IndexFunc(failures, func(failure string) bool { return failure != "" }); err == nil && i >= 0 {
			err = s.SharedError(ctx, fmt.Errorf("%s has changed while it was read: %s", s.Name(i), failures[i]))
		}
		if err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return nil
	}
	if err := s.deliver(ctx, list, bytes, memory); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		for _, f := range files[n.Index] {
			_, moves := index[f.Owner]
			if !moves || slices.Contains(holders[f.Owner], n.Index) {
				continue
			}
			record := buffer(n.Index, f.Owner, true)[:f.Bytes]
			text := base64.StdEncoding.AppendEncode(nil, record)
			if disk.Sum(text) != f.SHA256 {
				return fmt.Errorf("the record of %s is not what was protected: a node has changed meanwhile, or sends something else; run again", s.Name(f.Owner))
			}
			if s.Records[n.Index] == nil {
				s.Records[n.Index] = map[string][]byte{}
			}
			s.Records[n.Index][f.Name] = text
			if f.Owner == n.Index {
				var err error
				if s.RecordOf[n.Index], err = m.DecodeRecord(record); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// CopyRecords notes the records in the manifest, brings copies to the nodes that are to have them, and returns the
// record files here.
func (s *Session) CopyRecords(ctx context.Context, m *store.Manifest, records [][]byte) ([][]*store.RecordFile, error) {
	var mine []store.RecordSum
	texts := make([][]byte, len(records))
	for i, record := range records {
		texts[i] = base64.StdEncoding.AppendEncode(nil, record)
		mine = append(mine, store.RecordSum{Bytes: int64(len(record)), SHA256: disk.Sum(texts[i])})
	}
	sums, err := Exchange(ctx, s, mine)
	if err != nil {
		return nil, err
	}
	m.Records = sums
	list := make([]delivery, s.K)
	bytes := int64(0)
	table := m.RecordFiles()
	for n, r := range sums {
		list[n].source, bytes = n, max(bytes, store.Aligned(r.Bytes))
		for _, f := range table[n][1:] {
			list[f.Owner].targets = append(list[f.Owner].targets, n)
		}
	}
	memory := map[content.Symbol][]byte{}
	var files [][]*store.RecordFile
	for i, n := range s.Nodes {
		files = append(files, table[n.Index])
		for _, f := range files[i] {
			buffer := make([]byte, bytes)
			if memory[content.Symbol{Node: n.Index, Parity: f.Owner != n.Index, Index: f.Owner}] = buffer; f.Owner == n.Index {
				copy(buffer, records[i])
			}
		}
	}
	if err := s.deliver(ctx, list, bytes, memory); err != nil {
		return nil, err
	}
	for i, n := range s.Nodes {
		for _, f := range files[i] {
			if f.Owner == n.Index {
				f.Content = texts[i]
				continue
			}
			f.Content = base64.StdEncoding.AppendEncode(nil, memory[content.Symbol{Node: n.Index, Parity: true, Index: f.Owner}][:f.Bytes])
			if disk.Sum(f.Content) != f.SHA256 {
				return nil, &protection.CorruptError{Reason: fmt.Sprintf("the copy of the record of node %d that arrived at %s is wrong: a machine or the network corrupts data; the earlier protection stays in force", f.Owner, n.DirName)}
			}
		}
	}
	return files, nil
}
