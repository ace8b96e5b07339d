package group

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"volley/executor"
	"volley/field"
	"volley/internal/disk"
)

// A recordFile is a file of a node, in base64: its record, or its parity of records.
type recordFile struct {
	path    string
	bytes   int64
	sha256  string   // of the file
	symbols []symbol // that lie in it, one after the other, and then zeros
	chunks  []byte   // these
	content []byte   // of the file, once it is made
	comes   bool     // the node lacks it
}

func (f *recordFile) stored() int64 { return int64(base64.StdEncoding.EncodedLen(int(f.bytes))) }

// recordChunks returns how many chunks of data and parity records have: one node more may be lost than of data.
func (m *Manifest) recordChunks() (data, parity int) {
	most := m.Tolerate
	if m.Layout == Full {
		most = m.Nodes / 2 // as [RecoverOptions.Beyond] has it
	}
	parity = min(most+1, m.Nodes-1)
	return m.Nodes - parity, parity
}

func (m *Manifest) recordCode() (*code, error) {
	_, parity := m.recordChunks()
	return newCode(m.Nodes, parity, Striped, Cauchy)
}

// recordChunk returns the length of the chunks of records, which is that of the longest.
func (m *Manifest) recordChunk() int64 {
	most := int64(1)
	for _, r := range m.Records {
		most = max(most, r.Bytes)
	}
	data, _ := m.recordChunks()
	return aligned((most + int64(data) - 1) / int64(data))
}

// recordFiles returns those of a node, that of its own record first.
func (m *Manifest) recordFiles(n int) []*recordFile {
	chunks := func(parity bool, count int) (list []symbol) {
		for i := range count {
			list = append(list, symbol{n, parity, i})
		}
		return list
	}
	data, parity := m.recordChunks()
	own := &m.Records[n]
	return []*recordFile{
		{path: recordPath(m.Generation), bytes: own.Bytes, sha256: own.SHA256, symbols: chunks(false, data)},
		{path: recordParityPath(m.Generation), bytes: int64(parity) * m.recordChunk(), sha256: own.Parity, symbols: chunks(true, parity)},
	}
}

// read returns what lies in a record file of the node.
func (n *node) read(f *recordFile) (text []byte, err error) {
	if text = n.stored[f.path]; text == nil {
		text, err = disk.ReadText(n.dir, f.path, f.stored())
	}
	if err == nil && disk.Sum(text) != f.sha256 {
		err = fmt.Errorf("%s: is not what was protected", f.path)
	}
	if err == nil {
		text, err = base64.StdEncoding.AppendDecode(nil, text)
	}
	if err == nil && int64(len(text)) != f.bytes {
		err = fmt.Errorf("%s: has %d bytes: want %d", f.path, len(text), f.bytes)
	}
	return text, err
}

func (f *recordFile) text() []byte { return base64.StdEncoding.AppendEncode(nil, f.chunks[:f.bytes]) }

// fewBytes is the length of packets from which on few bytes are worth more than few messages.
const fewBytes = 1 << 20

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
	var lacking []symbol // the first node of each rank at which no node has it
	for r := range s.t.Size() {
		if first, end := executor.Hosted(s.k, r, s.t.Size()); !slices.ContainsFunc(s.states[first:end], has) {
			lacking = append(lacking, symbol{first, true, 0})
		}
	}
	bytes, err := field.Parse("2^8")
	if err != nil {
		return err
	}
	one := func(_, _ int) field.Element { return field.One }
	copies := &code{k: s.k, data: 1, field: bytes, words: []codeword{{[]symbol{{from, false, 0}}, lacking, one}}}
	r, _, err := copies.repairing(setOf(lacking), setOf(lacking))
	if err != nil {
		return err
	}
	text := make([]byte, aligned(length))
	copy(text, s.text)
	if err := s.bring(ctx, r, aligned(length), map[symbol][]byte{{from, false, 0}: text, {s.nodes[0].index, true, 0}: text}); err != nil {
		return err
	}
	if s.manifest == nil {
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

// fetchRecords reads the records of the nodes here. Record files that these lack come back in memory.
func (s *session) fetchRecords(ctx context.Context) error {
	m := s.manifest
	c, err := m.recordCode()
	if err != nil {
		return err
	}
	has := func(n, file int) bool {
		h := s.states[n].of(s.current)
		return h != nil && slices.Contains(h.Records, file)
	}
	bad := map[symbol]bool{}
	for n := range s.k {
		for i, f := range m.recordFiles(n) {
			for _, x := range f.symbols {
				if !has(n, i) {
					bad[x] = true
				}
			}
		}
	}
	r, lost, err := c.repairing(bad, bad)
	if err != nil {
		return err
	}
	for _, x := range lost {
		if !x.parity && !slices.Contains(s.gone, x.node) {
			s.gone = append(s.gone, x.node)
		}
	}
	slices.Sort(s.gone)
	// If a record is gone nothing comes back: nothing that is there need be as long as the manifest says of it.
	comes := len(bad) > 0 && s.gone == nil
	chunk := m.recordChunk()
	var files []*recordFile // of the nodes here that are read or come back
	places := map[symbol][]byte{}
	for _, n := range s.nodes {
		for i, f := range m.recordFiles(n.index) {
			there := has(n.index, i)
			if !comes && (i > 0 || !there) {
				continue
			}
			if there {
				if f.chunks, err = n.read(f); err != nil {
					return err
				}
			}
			if comes {
				f.comes = !there
				f.chunks = append(f.chunks, make([]byte, int64(len(f.symbols))*chunk-int64(len(f.chunks)))...)
				for at, x := range f.symbols {
					places[x] = f.chunks[int64(at)*chunk:][:chunk]
				}
			}
			files = append(files, f)
		}
	}
	if comes {
		if err := s.bring(ctx, r, chunk, places); err != nil {
			return err
		}
	}
	s.members, s.records = map[int]*Member{}, map[int]map[string][]byte{}
	for _, f := range files {
		n, text := f.symbols[0].node, f.text()
		if disk.Sum(text) != f.sha256 {
			return fmt.Errorf("%s of %s is not what was protected: a node has changed meanwhile, or sends something else; run again", f.path, s.name(n))
		}
		if f.comes {
			if s.records[n] == nil {
				s.records[n] = map[string][]byte{}
			}
			s.records[n][f.path] = text
		}
		if !f.symbols[0].parity {
			if s.members[n], err = m.decodeMember(f.chunks[:f.bytes]); err != nil {
				return err
			}
		}
	}
	return nil
}

// codeRecords makes the parity of records, notes the digests in the manifest, and returns the record files here.
func (s *session) codeRecords(ctx context.Context, m *Manifest, records [][]byte) ([][]*recordFile, error) {
	c, err := m.recordCode()
	if err != nil {
		return nil, err
	}
	chunk, places := m.recordChunk(), map[symbol][]byte{}
	var files [][]*recordFile
	for i, n := range s.nodes {
		list := m.recordFiles(n.index)
		for _, f := range list {
			f.chunks = make([]byte, int64(len(f.symbols))*chunk)
			for at, x := range f.symbols {
				places[x] = f.chunks[int64(at)*chunk:][:chunk]
			}
		}
		copy(list[0].chunks, records[i])
		files = append(files, list)
	}
	r, err := c.making(ctx, &s.Options, max(chunk, fewBytes)) // the plan that sends least
	if err != nil {
		return nil, err
	}
	if err := s.bring(ctx, r, chunk, places); err != nil {
		return nil, err
	}
	type coded struct {
		Record
		Fold []byte
	}
	check := s.newCheck(c, chunk)
	for i, list := range files {
		check.data[i].Add(slices.Collect(slices.Chunk(list[0].chunks, int(chunk)))...)
		check.parity[i].Add(slices.Collect(slices.Chunk(list[1].chunks, int(chunk)))...)
	}
	folds := check.folds()
	var mine []coded
	for i, list := range files {
		for _, f := range list {
			f.content = f.text()
		}
		mine = append(mine, coded{Record{list[0].bytes, disk.Sum(list[0].content), disk.Sum(list[1].content)}, folds[i]})
	}
	all, err := exchange(ctx, s, mine)
	if err != nil {
		return nil, err
	}
	folds = nil
	for n, x := range all {
		m.Records[n] = x.Record
		folds = append(folds, x.Fold)
	}
	return files, check.verify(s, folds)
}
