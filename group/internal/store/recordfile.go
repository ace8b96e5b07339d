package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"volley/internal/disk"
)

// A RecordFile is a file of a node: its record, or a copy of that of another node.
type RecordFile struct {
	Name  string // in the directory of the generation
	Owner int    // the node whose record it is
	RecordSum
	Content []byte // the record, once it is made
}

// Copies returns, by node, whose records it has copies of. Those of a record are at the nodes that come after its own,
// of other machines before others. One more is lost than nodes may be, so that a copy which has rotted does not stand in
// the way.
func (m *Manifest) Copies() [][]int {
	hosts := m.hosts()
	list := make([][]int, m.Nodes)
	for owner := range m.Nodes {
		remaining := min(m.Tolerate+1, m.Nodes-1)
		for _, sameHost := range []bool{false, true} {
			for i := 1; i < m.Nodes && remaining > 0; i++ {
				if n := (owner + i) % m.Nodes; (hosts[n] != "" && hosts[n] == hosts[owner]) == sameHost {
					list[n], remaining = append(list[n], owner), remaining-1
				}
			}
		}
	}
	return list
}

// hosts returns the machines of names like HOST:DIR, by node; "": not known.
func (m *Manifest) hosts() []string {
	hosts := make([]string, m.Nodes)
	for n, name := range m.Names {
		if host, _, found := strings.Cut(string(name), ":"); found && !strings.Contains(host, "/") {
			hosts[n] = host
		}
	}
	return hosts
}

// RecordFiles returns those of all nodes, that of its own record first.
func (m *Manifest) RecordFiles() [][]*RecordFile {
	files := make([][]*RecordFile, m.Nodes)
	for n, owners := range m.Copies() {
		files[n] = []*RecordFile{{Name: RecordFileName, Owner: n, RecordSum: m.Records[n]}}
		for _, owner := range owners {
			files[n] = append(files[n], &RecordFile{Name: fmt.Sprint(RecordFileName, ".", owner), Owner: owner, RecordSum: m.Records[owner]})
		}
	}
	return files
}

// RecordFilesAt returns those of one node.
func (m *Manifest) RecordFilesAt(n int) []*RecordFile { return m.RecordFiles()[n] }

// Read returns the record that a record file of a generation at the node is.
func (n *Node) Read(l *Loaded, f *RecordFile) (record []byte, err error) {
	if record = n.Stored[f.Name]; record == nil {
		record, _, err = readRecord(n.Dir, l.dir, f.Name, f.Bytes)
	}
	if err == nil && (int64(len(record)) != f.Bytes || disk.Sum(record) != f.SHA256) {
		err = fmt.Errorf("%s: is not what was protected", f.Name)
	}
	return record, err
}

// mostStored is how long a record file, and all files that it has spans of, are together.
func mostStored(record int64) int64 { return record + record/4 }

// earlierRecord returns the name of what was a record file in an earlier generation; 0: it is one of this generation.
func earlierRecord(name string, g int64) string {
	if g == 0 {
		return name
	}
	return fmt.Sprint(name, "@", g)
}

// readRecord returns the record of so many bytes that a file in the directory of a generation is, and where its spans lie.
func readRecord(d disk.Dir, dir, name string, length int64) ([]byte, []span, error) {
	remaining := mostStored(length) // bytes of all files together
	read := func(g int64) ([]byte, error) {
		text, err := disk.ReadText(d, MetaPath(dir, earlierRecord(name, g)), remaining)
		remaining -= int64(len(text))
		return text, err
	}
	file, err := read(0)
	if err != nil {
		return nil, nil, err
	}
	record, places, err := lay(file, read)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return record, places, err
}

// A span is bytes of a record that lie together in the file that a generation had; 0: in that of this generation.
type span struct{ generation, offset, bytes int64 }

// lay returns the record that a file is, and its spans: its lines, and what lines like "=generation offset bytes" name. It
// takes no byte twice.
func lay(file []byte, earlier func(g int64) ([]byte, error)) (record []byte, list []span, err error) {
	files, ends, offset := map[int64][]byte{}, map[int64]int64{}, int64(0)
	for line := range bytes.Lines(file) {
		p := span{0, offset, int64(len(line))}
		offset += p.bytes
		if line[0] == '=' {
			_, err := fmt.Sscanf(string(line), "=%d %d %d\n", &p.generation, &p.offset, &p.bytes)
			text, known := files[p.generation]
			if err != nil || p.generation < 1 || !known && len(files) == mostFiles {
				return nil, nil, fmt.Errorf("%.60q: want =, one of %d generations, an offset and bytes", line, mostFiles)
			}
			if !known {
				if text, err = earlier(p.generation); err != nil {
					return nil, nil, err
				}
				files[p.generation] = text
			}
			if p.offset < ends[p.generation] || p.bytes < 1 || p.bytes > int64(len(text))-p.offset {
				return nil, nil, fmt.Errorf("%.60q: want bytes from %d to %d", line, ends[p.generation], len(text))
			}
			line, ends[p.generation] = text[p.offset:][:p.bytes], p.offset+p.bytes
		}
		record, list = append(record, line...), append(list, p)
	}
	return record, list, nil
}

// shorten returns a record file with the lines that an earlier record lacks, and with spans of that, which lies in places.
// It goes through both once. Those spans are returned, too; 0: of the record.
func shorten(record, earlier []byte, places []span) (file []byte, list []span) {
	type place struct {
		span
		position int64 // in the earlier record
	}
	lines, position := map[string]place{}, int64(0)
	for _, p := range places {
		for line := range bytes.Lines(earlier[position:][:p.bytes]) {
			p.bytes = int64(len(line))
			if _, repeated := lines[string(line)]; !repeated {
				lines[string(line)] = place{p, position}
			}
			p.offset, position = p.offset+p.bytes, position+p.bytes
		}
	}
	offset, passed := int64(0), int64(0) // in the record, and in the earlier one
	for line := range bytes.Lines(record) {
		n := int64(len(line))
		p, found := lines[string(line)]
		if found && p.position >= passed {
			passed = p.position + n
		} else {
			p.span = span{0, offset, n}
		}
		offset += n
		if i := len(list) - 1; i >= 0 && list[i].generation == p.generation && list[i].offset+list[i].bytes == p.offset {
			list[i].bytes += n
		} else {
			list = append(list, p.span)
		}
	}
	for _, p := range list {
		if p.generation == 0 {
			file = append(file, record[p.offset:][:p.bytes]...)
		} else {
			file = fmt.Appendf(file, "=%d %d %d\n", p.generation, p.offset, p.bytes)
		}
	}
	return file, list
}

// ChangedRecord returns a record as what is new, and where the rest lies in an earlier one. WholeRecord undoes that.
func ChangedRecord(record, earlier []byte) []byte {
	file, _ := shorten(record, earlier, []span{{1, 0, int64(len(earlier))}})
	return file
}

// WholeRecord returns the record of which ChangedRecord made changed.
func WholeRecord(changed, earlier []byte) ([]byte, error) {
	record, _, err := lay(changed, func(int64) ([]byte, error) { return earlier, nil })
	return record, err
}

// leastSpanned is how many bytes a record has at least that has spans of earlier files.
const leastSpanned = 32 << 10

var errWhole = errors.New("is written whole")

// keepSpans returns a record file of a generation that is made after another one, with spans of files that this has, which
// get a second name. After an error it is to be whole: a short record, and one whose files would take a quarter more, too.
func (n *Node) keepSpans(g int64, dir string, f *RecordFile) ([]byte, error) {
	if f.Bytes < leastSpanned {
		return nil, errWhole
	}
	l := n.Generation(g)
	earlier, places, err := readRecord(n.Dir, l.dir, f.Name, MostRecord)
	if err != nil {
		return nil, err
	}
	names := map[int64]string{} // where files are, by generation
	for i, p := range places {
		places[i].generation = cmp.Or(p.generation, g)
		names[places[i].generation] = l.Path(earlierRecord(f.Name, p.generation))
	}
	file, list := shorten(f.Content, earlier, places)
	kept, stored := []int64{}, int64(len(file))
	for _, p := range list {
		if p.generation == 0 || slices.Contains(kept, p.generation) {
			continue
		}
		info, err := n.Dir.Lstat(names[p.generation])
		if err != nil {
			return nil, err
		}
		kept, stored = append(kept, p.generation), stored+info.Size()
	}
	if stored > mostStored(f.Bytes) || len(kept) > mostFiles {
		return nil, errWhole
	}
	for _, g := range kept {
		if err := n.Dir.Link(names[g], MetaPath(dir, earlierRecord(f.Name, g))); err != nil {
			return nil, err
		}
	}
	return file, nil
}
