package group

import (
	"bytes"
	"testing"

	"volley/field"
	"volley/verify"
)

// TestCheckPieces has a check take packets in pieces, as the plans of layout full cut them, and chunks in any
// order: it sees all of them at their places, so that a wrong byte anywhere is noticed.
func TestCheckPieces(t *testing.T) {
	f, err := field.Parse("2^8")
	must(t, err)
	const length = 1 << 12
	sums := func(data []byte, cut int, symbols ...symbol) []byte {
		x := verify.NewFingerprints(f, verify.Seed{3}, 64, 2)
		var parts [][]byte
		for _, s := range symbols {
			for p := range cut {
				parts = append(parts, data[s.index*length:][p*length/cut:(p+1)*length/cut])
			}
		}
		addTo(x, symbols, parts)
		return bytes.Join(x.Bytes(), nil)
	}
	data, first, second := make([]byte, 2*length), symbol{0, false, 0}, symbol{0, false, 1}
	whole := sums(data, 1, first, second)
	for at := 100; at < len(data); at += 1 << 10 {
		data[at] = 1
		wrong := sums(data, 1, first, second)
		if pieces := sums(data, 4, second, first); bytes.Equal(wrong, whole) || !bytes.Equal(wrong, pieces) {
			t.Errorf("byte %d: noticed %v, in pieces %v", at, !bytes.Equal(wrong, whole), !bytes.Equal(pieces, whole))
		}
		data[at] = 0
	}
}
