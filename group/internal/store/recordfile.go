package store

import (
	"encoding/base64"
	"fmt"
	"strings"

	"volley/internal/disk"
)

// A RecordFile is a file of a node, in base64: its record, or a copy of that of another node.
type RecordFile struct {
	Name    string // in the directory of the generation
	Owner   int    // the node whose record it is
	Bytes   int64
	SHA256  string // of the file
	Content []byte // of the file, once it is made
}

// Stored returns the bytes of the file.
func (f *RecordFile) Stored() int64 { return int64(base64.StdEncoding.EncodedLen(int(f.Bytes))) }

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
	copies := m.Copies()
	files := make([][]*RecordFile, m.Nodes)
	for n := range files {
		files[n] = m.recordFilesOf(n, copies[n])
	}
	return files
}

// RecordFilesAt returns those of one node.
func (m *Manifest) RecordFilesAt(n int) []*RecordFile { return m.recordFilesOf(n, m.Copies()[n]) }

func (m *Manifest) recordFilesOf(n int, copies []int) []*RecordFile {
	list := []*RecordFile{{Name: RecordFileName, Owner: n, Bytes: m.Records[n].Bytes, SHA256: m.Records[n].SHA256}}
	for _, owner := range copies {
		list = append(list, &RecordFile{Name: fmt.Sprint(RecordFileName, ".", owner), Owner: owner, Bytes: m.Records[owner].Bytes, SHA256: m.Records[owner].SHA256})
	}
	return list
}

// Read returns what lies in a record file of a generation at the node: the file, and the record.
func (n *Node) Read(l *Loaded, f *RecordFile) (text, record []byte, err error) {
	if text = n.Stored[f.Name]; text == nil {
		text, err = disk.ReadText(n.Dir, l.Path(f.Name), f.Stored())
	}
	if err == nil {
		record, err = f.decode(text)
	}
	return text, record, err
}

// decode returns the record in the text of its file.
func (f *RecordFile) decode(text []byte) ([]byte, error) {
	if disk.Sum(text) != f.SHA256 {
		return nil, fmt.Errorf("%s: is not what was protected", f.Name)
	}
	record, err := base64.StdEncoding.AppendDecode(nil, text)
	if err == nil && int64(len(record)) != f.Bytes {
		err = fmt.Errorf("%s: has %d bytes: want %d", f.Name, len(record), f.Bytes)
	}
	return record, err
}
