package mpi

import (
	"testing"

	"volley/transport"
)

// TestTags checks that no two streams have the same tags, that the tag shows other lengths, and what there is no room
// for: libraries have tags for all streams, for those of few ports, and for what the standard asks of them.
func TestTags(t *testing.T) {
	for _, x := range []struct {
		most   int
		limits transport.Limits
	}{
		{1<<31 - 1, transport.Limits{{Rounds: 8192, Ports: 64}, {Rounds: 512, Ports: 1024}}}, // Open MPI
		{1<<28 - 1, transport.Limits{{Rounds: 8192, Ports: 64}, {Rounds: 512, Ports: 1024}}}, // MPICH
		{1<<23 - 1, transport.Limits{{Rounds: 8192, Ports: 64}, {Rounds: 512, Ports: 1024}}},
		{1<<22 - 1, transport.Limits{{Rounds: 8192, Ports: 64}, {Rounds: 511, Ports: 1024}}},
		{1<<20 - 1, transport.Limits{{Rounds: 4095, Ports: 64}, {Rounds: 0, Ports: 1024}}},
		{1<<20 - 3, transport.Limits{{Rounds: 4095, Ports: 64}, {Rounds: 0, Ports: 1024}}},
		{32767, transport.Limits{{Rounds: 127, Ports: 64}, {Rounds: 0, Ports: 1024}}}, // the standard
	} {
		if got := numberingOf(x.most).limits(); got != x.limits {
			t.Errorf("largest tag %d: %v, want %v", x.most, got, x.limits)
		}
		n := numberingOf(x.most)
		seen := make([]bool, 1+streams)
		for round := range manyRounds + 1 {
			for port := range manyPorts + 1 {
				tag := transport.Tag{Round: round, Port: port}
				fits := port < fewPorts && round < x.limits[0].Rounds || port >= fewPorts && port < manyPorts && round < x.limits[1].Rounds
				number, err := n.tagOf(tag, [][]byte{{1}})
				if fits != (err == nil) {
					t.Fatalf("largest tag %d: %v: error %v", x.most, tag, err)
				}
				if err != nil && (round > x.limits[0].Rounds || port > fewPorts && round > x.limits[1].Rounds) {
					break // and so it is for more ports
				} else if err != nil {
					continue
				}
				stream := number >> n.streamShift
				if stream == controlTag || seen[stream] || number|moreBit > x.most || number&moreBit != 0 {
					t.Fatalf("largest tag %d: %v has MPI's tag %d", x.most, tag, number)
				}
				seen[stream] = true
			}
		}
		one, _ := n.tagOf(transport.Tag{}, [][]byte{{1}})
		two, _ := n.tagOf(transport.Tag{}, [][]byte{{1, 2}})
		if one == two {
			t.Errorf("largest tag %d: messages of 1 and 2 bytes have the same tag", x.most)
		}
		for _, tag := range []transport.Tag{{Round: -1}, {Port: -1}} {
			if _, err := n.tagOf(tag, nil); err == nil {
				t.Errorf("largest tag %d: %v: no error", x.most, tag)
			}
		}
	}
}
