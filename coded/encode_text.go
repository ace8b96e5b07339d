package coded

import (
	"bytes"
	"cmp"
	"io/fs"

	"volley"
	"volley/field"
	"volley/internal/disk"
	"volley/matrix"
)

// textPackets are the rows of a text file of symbols.
type textPackets struct {
	name  string
	input *matrix.Dense // row k is packet k
	bytes int64
	sum   string
	mode  fs.FileMode // of the file
	sinks int
	coded []memory
}

// mostPiped is the bytes of text that are taken from what is no file and may never end.
const mostPiped = 64 << 20

func openText(f field.Field, name string, sinks int) (toEncode, error) {
	data, mode, err := disk.ReadInput(name, mostPiped)
	if err != nil {
		return nil, input(err)
	}
	rows, err := matrix.FromCSV(f, bytes.NewReader(data), name)
	if err != nil {
		return nil, input(err)
	}
	return &textPackets{name: name, input: rows, bytes: int64(len(data)), sum: disk.Sum(data), mode: mode, sinks: cmp.Or(sinks, rows.Rows())}, nil
}

func (p *textPackets) count() int                      { return p.input.Rows() }
func (p *textPackets) symbols() int64                  { return int64(p.input.Cols()) }
func (p *textPackets) source(k int, to *volley.Packet) { to.Data = p.input.Row(k) }
func (p *textPackets) sink(s int, to *volley.Packet)   { to.Coded = p.coded[s] }
func (p *textPackets) perm() fs.FileMode               { return p.mode }
func (p *textPackets) sources() []string               { return []string{p.name} }
func (p *textPackets) targets() []string               { return []string{TextName} }
func (p *textPackets) close()                          {}

func (p *textPackets) create(*directory) error {
	for range p.sinks {
		p.coded = append(p.coded, make(memory, len(p.input.Row(0))))
	}
	return nil
}

func (p *textPackets) finish(dir *directory, m *Manifest) error {
	size, sum, err := p.write(dir, TextName)
	if err != nil {
		return err
	}
	m.Files = []Entry{{Name: TextName, Processor: -1, Bytes: size, SHA256: sum}}
	m.Inputs = []Entry{{Name: p.name, Processor: -1, Bytes: p.bytes, SHA256: p.sum}}
	return nil
}

// write writes the coded packets as text. It returns the length of that and its
// SHA-256, in hexadecimal.
func (p *textPackets) write(dir *directory, name string) (int64, string, error) {
	f := p.input.Field()
	coded := matrix.NewDense(f, p.sinks, p.input.Cols())
	for k, packet := range p.coded {
		for j := range coded.Cols() {
			coded.Set(k, j, field.Symbol(f, packet[j*f.SymbolBytes():]))
		}
	}
	out, err := dir.Create(name)
	if err != nil {
		return 0, "", err
	}
	if err := matrix.WriteCSV(out, coded); err != nil {
		return 0, "", err
	}
	size, sum := out.Sum()
	return size, sum, nil
}
