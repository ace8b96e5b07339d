package coded

import (
	"bytes"
	"io"
	"io/fs"

	"volley/internal/disk"
	"volley/matrix"
)

// textAtHand is the rows of coded.csv.
type textAtHand struct {
	*textPackets
	numbers []int // of the coded packets that the rows are
	j       *decodeJob
}

// openText reads coded.csv.
func (j *decodeJob) openText() (toDecode, error) {
	c := j.stored
	in, entry := c.Manifest.Inputs[0], c.Manifest.Files[0]
	if len(j.survivors) > 0 {
		return nil, inputf("survivor %s is %s, the input of all processors: there is nothing to decode", j.survivors[0], in.Name)
	}
	path := c.File(entry.Name)
	var data []byte
	var mode fs.FileMode
	f, info, err := disk.OpenInput(path)
	if err == nil {
		mode = disk.Permissions(info)
		data, err = io.ReadAll(io.LimitReader(f, entry.Bytes+1))
		f.Close()
	}
	if err == nil && disk.Sum(data) != entry.SHA256 {
		err = errDamaged
	}
	if err != nil {
		return nil, inputf("cannot decode %s: %s, which holds all coded packets: %s", c.path, path, reason(err))
	}
	rows, err := matrix.FromCSV(c.field, bytes.NewReader(data), path)
	if err != nil {
		return nil, input(err)
	}
	coded, k := c.Manifest.CodedPackets(), c.Manifest.Processors
	if n := c.Manifest.SymbolsPerPacket; rows.Rows() != coded || int64(rows.Cols()) != n {
		return nil, inputf("%s: %d rows of %d symbols: %s has %d coded packets, and %d symbols_per_packet",
			path, rows.Rows(), rows.Cols(), c.File(ManifestName), coded, n)
	}
	chosen := numbers(coded)
	if coded != k {
		a, err := c.code.matrix()
		if err != nil {
			return nil, input(err)
		}
		if chosen = independent(a, numbers(k), chosen); len(chosen) < k {
			return nil, inputf("cannot decode %s: %d coded packets tell no more than %d of %d inputs", c.path, coded, len(chosen), k)
		}
		some := matrix.NewDense(c.field, k, rows.Cols())
		for i, j := range chosen {
			copy(some.Row(i), rows.Row(j))
		}
		rows = some
	}
	return &textAtHand{&textPackets{name: in.Name, input: rows, mode: mode, sinks: k}, chosen, j}, nil
}

func (h *textAtHand) slots() []slot {
	slots := make([]slot, len(h.numbers))
	for p, c := range h.numbers {
		slots[p] = slot{input: -1, coded: c, result: p}
	}
	return slots
}

func (h *textAtHand) finish(dir *directory) error {
	output := h.j.names[0]
	_, sum, err := h.write(dir, output)
	if err == nil && sum != h.j.stored.Manifest.Inputs[0].SHA256 {
		h.j.warn("%s is not %s byte for byte: spaces, comments and leading zeros are not coded", dir.File(output), h.name)
	}
	return err
}
