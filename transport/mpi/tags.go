package mpi

import (
	"fmt"
	"math/bits"

	"volley/transport"
)

// Messages have tags of MPI: controlTag is that of control messages. That of another message has one more than the number
// of its stream, bits that depend on the lengths of its parts, and a bit that says whether more fragments follow. So a
// message of other lengths than were asked for is never put into memory that is too short.
const (
	controlTag = 0
	moreBit    = 1
)

// Streams are numbered: many rounds of up to fewPorts ports, and after those fewer rounds of more.
const (
	fewPorts   = 64
	manyPorts  = 1 << 10
	manyRounds = 1 << 13
	streams    = 2 * fewPorts * manyRounds
)

// mostHashBits is how many bits of a tag depend on lengths if the library has room.
const mostHashBits = 10

// numbering says which tags of MPI streams have.
type numbering struct {
	streamShift int // the place of a stream's number
	count       int // streams that have one
}

// numberingOf returns the numbering for a library whose largest tag is largest: MPI_TAG_UB.
func numberingOf(largest int) numbering {
	shift := 1 + max(1, min(mostHashBits, bits.Len(uint(largest))-bits.Len(streams)-1))
	return numbering{shift, min(streams, (largest-1<<shift+1)>>shift)}
}

// limits says for which tags there is room: where the largest tag is 2^23-1 or more for 8,192 rounds of 64 ports, and 512
// of 1,024.
func (n numbering) limits() transport.Limits {
	return transport.Limits{
		{Rounds: min(manyRounds, n.count/fewPorts), Ports: fewPorts},
		{Rounds: max(0, n.count-streams/2) / manyPorts, Ports: manyPorts},
	}
}

// tagOf returns the tag of MPI for messages of that length.
func (n numbering) tagOf(t transport.Tag, parts [][]byte) (int, error) {
	limits := n.limits()
	number, block := t.Round*fewPorts+t.Port, limits[0]
	if t.Port >= fewPorts {
		number, block = streams/2+t.Round*manyPorts+t.Port, limits[1]
	}
	if t.Port < 0 || t.Port >= block.Ports || t.Round < 0 || t.Round >= block.Rounds {
		return 0, fmt.Errorf("mpi: %v: there is room for %d rounds of %d ports and %d rounds of %d",
			t, limits[0].Rounds, limits[0].Ports, limits[1].Rounds, limits[1].Ports)
	}
	return (1+number)<<n.streamShift | lengthHash(parts, n.streamShift-1)<<1, nil
}

// lengthHash depends on the lengths of parts.
func lengthHash(parts [][]byte, bits int) int {
	h := uint64(0)
	for _, part := range parts {
		h = (h + uint64(len(part)) + 1) * 0x9e3779b97f4a7c15
	}
	return int(h >> (64 - bits))
}
