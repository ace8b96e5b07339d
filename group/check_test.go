package group

import (
	"bytes"
	"testing"

	"volley/transport"
	"volley/transport/local"
)

// TestCheckPieces has a check take packets in pieces, as the plans of layout full cut them: it sees
// all of them, so that a wrong byte anywhere is noticed.
func TestCheckPieces(t *testing.T) {
	c, err := newCode(4, 1, Full, Cauchy)
	must(t, err)
	s := &session{t: transport.Transport(local.New(1)[0]), k: 4}
	for n := range s.k {
		s.nodes = append(s.nodes, &node{index: n})
	}
	const length = 1 << 12
	sums := func(seed *check, data []byte, cut int) []byte {
		x, err := s.newCheck(t.Context(), c, length)
		must(t, err)
		x.seed = seed.seed
		x.begin(0)
		var parts [][]byte
		for i := range 2 * cut {
			parts = append(parts, data[i*len(data)/(2*cut):(i+1)*len(data)/(2*cut)])
		}
		x.add([]symbol{{0, false, 0}, {3, true, 0}}, parts)
		x.end()
		return bytes.Join(append(x.sums[0], x.sums[3]...), nil)
	}
	seed, err := s.newCheck(t.Context(), c, length)
	must(t, err)
	data := make([]byte, 2*length)
	whole := sums(seed, data, 1)
	for at := 100; at < len(data); at += 1 << 10 {
		data[at] = 1
		wrong := sums(seed, data, 1)
		if pieces := sums(seed, data, 4); bytes.Equal(wrong, whole) || !bytes.Equal(wrong, pieces) {
			t.Errorf("byte %d: noticed %v, in pieces %v", at, !bytes.Equal(wrong, whole), !bytes.Equal(pieces, whole))
		}
		data[at] = 0
	}
}
