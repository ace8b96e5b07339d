package group

import (
	"encoding/base64"
	"fmt"
	"strings"
	"volley/internal/disk"
)

// A recordFile is a file of a node, in base64: its record, or a copy of that of another node.
type recordFile struct {
	name    string // in the directory of the generation
	of      int    // the node whose record it is
	bytes   int64
	sha256  string // of the file
	content []byte // of the file, once it is made
}

func (f *recordFile) stored() int64 { return int64(base64.StdEncoding.EncodedLen(int(f.bytes))) }

// copies returns, by node, whose records it has copies of. Those of a record are at the nodes that come after its own,
// of other machines before others. One more is lost than nodes may be, so that a copy which has rotted does not stand in
// the way.
func (m *Manifest) copies() [][]int {
	hosts := m.hosts()
	list := make([][]int, m.Nodes)
	for of := range m.Nodes {
		left := min(m.Tolerate+1, m.Nodes-1)
		for _, beside := range []bool{false, true} {
			for i := 1; i < m.Nodes && left > 0; i++ {
				if n := (of + i) % m.Nodes; (hosts[n] != "" && hosts[n] == hosts[of]) == beside {
					list[n], left = append(list[n], of), left-1
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

// recordFiles returns those of all nodes, that of its own record first.
func (m *Manifest) recordFiles() [][]*recordFile {
	copies := m.copies()
	files := make([][]*recordFile, m.Nodes)
	for n := range files {
		files[n] = m.recordFilesOf(n, copies[n])
	}
	return files
}

func (m *Manifest) recordFilesAt(n int) []*recordFile { return m.recordFilesOf(n, m.copies()[n]) }

func (m *Manifest) recordFilesOf(n int, copies []int) []*recordFile {
	list := []*recordFile{{name: recordFileName, of: n, bytes: m.Records[n].Bytes, sha256: m.Records[n].SHA256}}
	for _, of := range copies {
		list = append(list, &recordFile{name: fmt.Sprint(recordFileName, ".", of), of: of, bytes: m.Records[of].Bytes, sha256: m.Records[of].SHA256})
	}
	return list
}

// read returns what lies in a record file of a generation at the node: the file, and the record.
func (n *node) read(l *loaded, f *recordFile) (text, record []byte, err error) {
	if text = n.stored[f.name]; text == nil {
		text, err = disk.ReadText(n.dir, l.path(f.name), f.stored())
	}
	if err == nil {
		record, err = f.decode(text)
	}
	return text, record, err
}

// decode returns the record in the text of its file.
func (f *recordFile) decode(text []byte) ([]byte, error) {
	if disk.Sum(text) != f.sha256 {
		return nil, fmt.Errorf("%s: is not what was protected", f.name)
	}
	record, err := base64.StdEncoding.AppendDecode(nil, text)
	if err == nil && int64(len(record)) != f.bytes {
		err = fmt.Errorf("%s: has %d bytes: want %d", f.name, len(record), f.bytes)
	}
	return record, err
}
