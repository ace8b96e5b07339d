package session

import (
	"context"
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

// A delivery brings a text from the node that has it to others.
type delivery struct {
	source  int
	targets []int
	bytes   int64          // of the text
	text    []byte         // if the source is here
	arrived map[int][]byte // by target here: the text
}

// deliver runs deliveries. The index of a symbol is that of its delivery.
func (s *Session) deliver(ctx context.Context, list []delivery) error {
	f, err := field.Parse("2^8")
	if err != nil {
		return err
	}
	copies, mostTargets, bytes := &erasure.Code{K: s.K, Data: 1, Field: f}, 1, int64(0)
	lacking := map[content.Symbol]bool{}
	for i, d := range list {
		w := erasure.Codeword{Data: []content.Symbol{{Node: d.source, Index: i}}}
		for _, n := range d.targets {
			symbol := content.Symbol{Node: n, Parity: true, Index: i}
			w.Parity, lacking[symbol] = append(w.Parity, symbol), true
			bytes = max(bytes, store.Aligned(d.bytes))
		}
		copies.Words, mostTargets = append(copies.Words, w), max(mostTargets, len(d.targets))
		list[i].arrived = map[int][]byte{}
	}
	copies.Matrix = matrix.DenseFunc(f, 1, mostTargets, func(_, _ int) field.Element { return field.One })
	r, _, err := copies.Repairing(ctx, lacking, lacking)
	if err != nil || len(r.Traffic.Codewords) == 0 {
		return err
	}
	_, err = r.Run(ctx, s.Setting(), bytes, func(x content.Symbol) []byte {
		memory := make([]byte, bytes)
		copy(memory, list[x.Index].text)
		if x.Parity {
			list[x.Index].arrived[x.Node] = memory[:list[x.Index].bytes]
		}
		return memory
	})
	return err
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
	list := []delivery{{source: holder, targets: lacking, bytes: length, text: s.Text}}
	if err := s.deliver(ctx, list); err != nil {
		return err
	}
	if s.Manifest == nil {
		var err error
		s.Text = list[0].arrived[s.Nodes[0].Index]
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
	files := s.Manifest.RecordFiles()
	holders, list := s.planRecords(files)
	s.RecordOf, s.Records = map[int]*store.Record{}, map[int]map[string][]byte{}
	vanished := make([]string, len(s.Nodes)) // beside another run
	for i, n := range s.Nodes {
		if err := s.readRecords(n, files[n.Index], holders, list); err != nil && n.Writer == nil {
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
	if err := s.deliver(ctx, list); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if err := s.takeRecords(n, files[n.Index], list); err != nil {
			return err
		}
	}
	return nil
}

// planRecords returns, by record, the nodes that have it, and its delivery to those that lack it. It notes the records that
// no node has.
func (s *Session) planRecords(files [][]*store.RecordFile) (holders [][]int, list []delivery) {
	holders, list = make([][]int, s.K), make([]delivery, s.K)
	for n := range s.K {
		h := s.States[n].Holding(s.Current)
		for i, f := range files[n] {
			nodes := &list[f.Owner].targets
			if h != nil && h.Node == n && slices.Contains(h.Records, i) {
				nodes = &holders[f.Owner]
			}
			*nodes = append(*nodes, n)
		}
	}
	for owner, nodes := range holders {
		if d := &list[owner]; len(nodes) > 0 {
			d.source, d.bytes = nodes[owner%len(nodes)], s.Manifest.Records[owner].Bytes
		} else {
			s.LostRecords, d.targets = append(s.LostRecords, owner), nil
		}
	}
	return holders, list
}

// readRecords reads what a node has of its own record, and of those that it sends.
func (s *Session) readRecords(n *store.Node, files []*store.RecordFile, holders [][]int, list []delivery) error {
	for _, f := range files {
		d := &list[f.Owner]
		sends := d.targets != nil && d.source == n.Index
		keeps := f.Owner == n.Index && slices.Contains(holders[f.Owner], n.Index)
		if !sends && !keeps {
			continue
		}
		record, err := n.Read(n.Held[s.Generation], f)
		if err == nil && f.Owner == n.Index {
			s.RecordOf[n.Index], err = s.Manifest.DecodeRecord(record)
		}
		if err != nil {
			return err
		}
		if sends {
			d.text = record
		}
	}
	return nil
}

// takeRecords takes the records that have come to a node.
func (s *Session) takeRecords(n *store.Node, files []*store.RecordFile, list []delivery) (err error) {
	s.Records[n.Index] = map[string][]byte{}
	for _, f := range files {
		record, arrived := list[f.Owner].arrived[n.Index]
		if !arrived {
			continue
		}
		if disk.Sum(record) != f.SHA256 {
			return fmt.Errorf("the record of %s is not what was protected: a node has changed meanwhile, or sends something else; run again", s.Name(f.Owner))
		}
		s.Records[n.Index][f.Name] = record
		if f.Owner == n.Index {
			if s.RecordOf[n.Index], err = s.Manifest.DecodeRecord(record); err != nil {
				return err
			}
		}
	}
	return nil
}

// CopyRecords notes the records in the manifest, brings what is new in them to the nodes that are to have copies, and returns
// the record files here.
func (s *Session) CopyRecords(ctx context.Context, m *store.Manifest, records [][]byte) ([][]*store.RecordFile, error) {
	inPlace := s.Manifest != nil && slices.EqualFunc(s.Manifest.Copies(), m.Copies(), slices.Equal)
	earlier := func(n *store.Node, name string, owner int) ([]byte, error) { // a record in force, which all have that it is of use to
		if !inPlace || slices.Contains(s.LostRecords, owner) {
			return nil, nil
		}
		if record := s.Records[n.Index][name]; record != nil {
			return record, nil
		}
		return n.Read(n.Held[s.Generation], &store.RecordFile{Name: name, RecordSum: s.Manifest.Records[owner]})
	}
	type change struct {
		store.RecordSum
		Sent int64 // bytes
	}
	var mine []change
	list := make([]delivery, s.K)
	for i, n := range s.Nodes {
		former, err := earlier(n, store.RecordFileName, n.Index)
		if err != nil {
			return nil, err
		}
		changed := store.ChangedRecord(records[i], former)
		list[n.Index].text = changed
		mine = append(mine, change{store.RecordSum{Bytes: int64(len(records[i])), SHA256: disk.Sum(records[i])}, int64(len(changed))})
	}
	changes, err := Exchange(ctx, s, mine)
	if err != nil {
		return nil, err
	}
	m.Records = make([]store.RecordSum, s.K)
	for n, owners := range m.Copies() {
		m.Records[n], list[n].source, list[n].bytes = changes[n].RecordSum, n, changes[n].Sent
		for _, owner := range owners {
			list[owner].targets = append(list[owner].targets, n)
		}
	}
	if err := s.deliver(ctx, list); err != nil {
		return nil, err
	}
	var files [][]*store.RecordFile
	for i, n := range s.Nodes {
		files = append(files, m.RecordFilesAt(n.Index))
		files[i][0].Content = records[i]
		for _, f := range files[i][1:] {
			former, err := earlier(n, f.Name, f.Owner)
			if err != nil {
				return nil, err
			}
			if f.Content, err = store.WholeRecord(list[f.Owner].arrived[n.Index], former); err != nil || disk.Sum(f.Content) != f.SHA256 {
				return nil, &protection.CorruptError{Reason: fmt.Sprintf("the copy of the record of node %d that arrived at %s is wrong: a machine or the network corrupts data; the earlier protection stays in force", f.Owner, n.DirName)}
			}
		}
	}
	return files, nil
}
