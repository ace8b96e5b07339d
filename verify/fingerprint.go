package verify

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"

	"volley/field"
)

// Seed selects the random combinations of a fingerprint, for all processors of a run, which draws it afresh.
type Seed [32]byte

// Fingerprints are short linear functions of packets, drawn at random. A packet is cut into blocks of B symbols, the
// last one padded with zeros, and these into batches of 32. Of them e sums Σ_g s_{c,g}·Σ_b r_{c,b}·block_{g,b} are
// taken, for c = 1 … e, with r and s drawn from the seed. The sums together are cut into blocks of 32 bytes, and of
// these m such sums are taken. Of each of the m one symbol is left: the sum of its symbols with random coefficients.
//
// It is linear. If y = Σ_i a_i·x_i then the fingerprint of y is Σ_i a_i times that of x_i, for the same seed. If y is
// any other packet over the field, the difference is not zero at some position of some block. Whatever it is elsewhere,
// r and s cancel it in a sum only where each has one of its q values: with probability at most 2/q in each of the e
// sums, and at most 3/q in each of the m symbols. So a wrong y has the right fingerprint with probability at most
// (2/q)^e + (3/q)^m, and (2/q)^e + (4/q)^m where it is one of several whose differences are added up with [Weights].
// Exactly it is 1-(1-1/q)^2 and 1-(1-1/q)^4, and e and m are the least with which each power is at most 2^-33: a wrong
// y passes with probability 2^-32 at most. This takes a y that does not depend on the seed. So a run
// is checked by comparing its outputs' fingerprints, 6 bytes over 2^8, with the combinations of its inputs'.
//
// Packets of one length are added side by side: random numbers are drawn once for all of them.
type Fingerprints struct {
	field field.Field
	seed  Seed
	rng   func() uint64
	draw  field.Sampler
	block int // bytes

	inner    [][]field.Element // r_{c,b} of a batch, by sum
	batchMap field.Map         // the same, once all are drawn
	sums     [][][]byte        // of each packet: of the batches that are complete
	batch    [][][]byte        // the same of the one that is not, without its outer coefficients
	number   int               // of blocks so far

	next    []byte // scratch, a block
	tail    []byte // the last block, padded
	blocks  [][]byte
	pair    [2]field.Element // 1, and a coefficient
	drawn   []field.Element
	symbols []byte
}

// batch is how many blocks are combined by the same coefficients. A map of so many reads each block once.
const batch = 32

// symbols returns the least number of symbols that are all zero with a probability of at most 2^-33, where
// each is unless so many random elements are all other than one of q.
func symbols(f field.Field, elements float64) int {
	q, _ := new(big.Float).SetInt(f.Order()).Float64()
	zero := -math.Expm1(elements * math.Log1p(-1/q)) // exact for large q, too
	return int(math.Ceil(-33 / math.Log2(zero)))
}

// BlockSymbols returns B for packets of the given number of symbols, W: the power of two next to √W, but 64 to 2048,
// and no more than hold a packet. Longer blocks need fewer random numbers, shorter ones less work on the sums. Packets
// in pieces are cut where blocks end: the blocks are short enough to lengthen a piece by 1/32 at most.
func BlockSymbols(symbols int64, pieces int) int {
	power := max(6, min(11, bits.Len64(uint64(symbols))/2))
	block := int64(1) << min(power, bits.Len64(uint64(max(1, symbols)-1)))
	piece := (symbols + int64(pieces) - 1) / int64(pieces)
	for pieces > 1 && block > 1 && 32*((piece+block-1)/block*block) > 33*piece {
		block /= 2
	}
	return int(block)
}

// Weights returns random numbers for so many fingerprints, as many for each as it has symbols. Each symbol of a
// fingerprint is multiplied by its own. Where one of the fingerprints is not zero, a symbol of the sum of all is zero
// only if that of this fingerprint is, or if its weight is one of its q values.
func Weights(f field.Field, seed Seed, count int) []byte {
	return weights(f, seed, 2, count*symbols(f, 4))
}

// weights returns so many random elements, other ones for each use, and than those of fingerprints.
func weights(f field.Field, seed Seed, use byte, count int) []byte {
	seed[len(seed)-1] ^= use
	list, draw := make([]byte, count*f.SymbolBytes()), field.NewSampler(f)
	draw.Fill(list, rand.NewChaCha8(seed).Uint64)
	return list
}

// NewFingerprints returns the fingerprints of so many empty packets in blocks of that many symbols, see [BlockSymbols].
func NewFingerprints(f field.Field, seed Seed, blockSymbols, packets int) *Fingerprints {
	return newFingerprints(f, seed, blockSymbols, packets, symbols(f, 2))
}

func newFingerprints(f field.Field, seed Seed, blockSymbols, packets, sums int) *Fingerprints {
	p := &Fingerprints{
		field: f, seed: seed, rng: rand.NewChaCha8(seed).Uint64, draw: field.NewSampler(f), block: blockSymbols * f.SymbolBytes(),
		inner: make([][]field.Element, sums), blocks: make([][]byte, 0, batch), pair: [2]field.Element{field.One},
	}
	rows, memory := make([]field.Element, sums*batch), make([]byte, (2*packets*sums+1)*p.block)
	for c := range sums {
		p.inner[c] = rows[c*batch:][:0:batch]
	}
	take := func() [][]byte {
		blocks := memory[:sums*p.block]
		memory = memory[sums*p.block:]
		return slices.AppendSeq(make([][]byte, 0, sums), slices.Chunk(blocks, p.block))
	}
	for range packets {
		p.sums, p.batch = append(p.sums, take()), append(p.batch, take())
	}
	p.next = memory
	return p
}

// elements draws so many elements, which are there until the next call.
func (p *Fingerprints) elements(n int) []field.Element {
	symbol := p.field.SymbolBytes()
	p.drawn, p.symbols = slices.Grow(p.drawn[:0], n)[:n], slices.Grow(p.symbols[:0], n*symbol)[:n*symbol]
	p.draw.Fill(p.symbols, p.rng)
	for i := range p.drawn {
		p.drawn[i] = field.Symbol(p.field, p.symbols[i*symbol:])
	}
	return p.drawn
}

// Add adds the next bytes of every packet, of all as many. Symbols belong to the field. Add keeps none of them. Where
// it adds no whole blocks, zeros follow them: then all packets that are compared are to be added in the same parts.
func (p *Fingerprints) Add(parts ...[]byte) {
	for offset := 0; offset < len(parts[0]); {
		first := p.number % batch
		n := min(len(parts[0])-offset, (batch-first)*p.block)
		blocks := (n + p.block - 1) / p.block
		sumMap := p.coefficients(first, blocks)
		for i, part := range parts {
			p.blocks = p.blocks[:0]
			for block := range slices.Chunk(part[offset:offset+n], p.block) {
				if len(block) < p.block {
					p.tail = append(append(p.tail[:0], block...), make([]byte, p.block-len(block))...)
					block = p.tail
				}
				p.blocks = append(p.blocks, block)
			}
			sumMap.Apply(p.batch[i], p.blocks, first > 0)
		}
		offset += n
		if p.number += blocks; p.number%batch == 0 {
			p.complete()
		}
	}
	clear(p.blocks[:cap(p.blocks)])
}

// coefficients returns the map of so many of the blocks of a batch.
func (p *Fingerprints) coefficients(first, blocks int) field.Map {
	for range min(batch, p.number+blocks) - len(p.inner[0]) {
		for c, e := range p.elements(len(p.inner)) {
			p.inner[c] = append(p.inner[c], e)
		}
	}
	if blocks == batch && p.batchMap != nil {
		return p.batchMap
	}
	rows := make([][]field.Element, len(p.inner))
	for c, row := range p.inner {
		rows[c] = row[first:][:blocks]
	}
	sumMap := p.field.Map(rows)
	if blocks == batch {
		p.batchMap = sumMap
	}
	return sumMap
}

// complete adds the batches to the sums.
func (p *Fingerprints) complete() {
	for c, outer := range p.elements(len(p.inner)) {
		p.pair[1] = outer
		for i, sums := range p.sums {
			p.blocks = append(p.blocks[:0], sums[c], p.batch[i][c])
			p.field.Combine(p.next, p.pair[:], p.blocks)
			sums[c], p.next = p.next, sums[c]
		}
	}
}

// end returns the sums of every packet, as if zeros filled the batch.
func (p *Fingerprints) end() [][][]byte {
	if partial := p.number % batch; partial > 0 {
		p.complete()
		p.number += batch - partial
	}
	return p.sums
}

// Bytes returns the fingerprint of every packet.
func (p *Fingerprints) Bytes() [][]byte {
	f, n := p.field, p.field.SymbolBytes()
	seed := p.seed
	seed[len(seed)-1] ^= 1 // other numbers than those of the blocks
	short := newFingerprints(f, seed, max(1, shortBytes/n), len(p.sums), symbols(f, 4))
	fingerprints := make([][]byte, len(p.sums))
	for i, sums := range p.end() {
		fingerprints[i] = slices.Concat(sums...)
	}
	short.Add(fingerprints...)
	sums, total := short.end(), make([]byte, len(fingerprints)*n)
	clear(fingerprints)
	for c := range short.inner {
		weights := short.elements(short.block / n)
		p.tail = p.tail[:0] // a symbol of each packet, then the next
		for s := range weights {
			for _, packetSums := range sums {
				p.tail = append(p.tail, packetSums[c][s*n:][:n]...)
			}
		}
		p.blocks = slices.AppendSeq(p.blocks[:0], slices.Chunk(p.tail, len(total)))
		f.Combine(total, weights, p.blocks)
		for i := range fingerprints {
			fingerprints[i] = append(fingerprints[i], total[i*n:][:n]...)
		}
	}
	return fingerprints
}

// shortBytes is how long the sums of sums are, by measurement.
const shortBytes = 32

// A CheckError says that a finished run failed the check at a processor.
type CheckError struct{ Proc int }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *CheckError) ExitCode() int { return 3 }

func (e *CheckError) Error() string {
	return fmt.Sprintf("verify: the coded packet of processor %d is not the combination of the initial packets that the matrix asks for", e.Proc)
}
