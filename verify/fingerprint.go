package verify

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"

	"volley/field"
)

// Seed selects the random combinations of a fingerprint. All processors of a run
// use the same one, drawn afresh for the run.
type Seed [32]byte

// A Fingerprint is e random combinations of the blocks of a packet: the packet
// is cut into blocks of B symbols, the last one padded with zeros, and the
// fingerprint is Σ_b r_{c,b}·block_b for c = 1 … e, with the r_{c,b} drawn from
// the seed.
//
// It is linear. If y = Σ_i a_i·x_i then the fingerprint of y is Σ_i a_i times that
// of x_i, for the same seed; and if y is any other packet over the field, that
// holds with probability at most q^-e, which is 2^-32 or less: the difference
// is not zero at some position of some block, and whatever it is elsewhere, each
// r_{c,b} of that block cancels it for one of its q values at most. This takes a
// y that does not depend on the seed. So a run is checked by encoding its
// inputs' fingerprints, a few kilobytes, and comparing.
type Fingerprint struct {
	field field.Field
	rng   *rand.ChaCha8
	draw  field.Sampler
	block int      // bytes
	sums  [][]byte // the fingerprint so far, e blocks
	next  []byte   // scratch, the size of a sum
	tail  []byte   // the last block, padded

	// A sum so far and the blocks of a batch that are to be added to it, with
	// their coefficients by sum: the kernel is worth calling for many blocks at
	// a time.
	sources [][]byte
	coefs   [][]field.Element
}

// batch is how many blocks are combined in one call of the kernel.
const batch = 32

// combinations returns e, the least number with q^e >= 2^32.
func combinations(f field.Field) int {
	want := new(big.Int).Lsh(big.NewInt(1), 32)
	e, power := 1, f.Order()
	for power.Cmp(want) < 0 {
		power.Mul(power, f.Order())
		e++
	}
	return e
}

// BlockSymbols returns B for packets of the given number of symbols, W, of K
// processors: the power of two next to √(64·W/K), but 64 to 4096, and no more than
// hold a packet. Longer blocks suit the kernels, shorter ones the gathering of K
// fingerprints. Packets in pieces are cut where blocks end: the blocks are short enough to
// lengthen a piece by 1/32 at most.
func BlockSymbols(symbols int64, processors, pieces int) int {
	power := max(6, min(12, (6+bits.Len64(uint64(symbols)/uint64(processors)))/2))
	block := int64(1) << min(power, bits.Len64(uint64(max(1, symbols)-1)))
	piece := (symbols + int64(pieces) - 1) / int64(pieces)
	for pieces > 1 && block > 1 && 32*((piece+block-1)/block*block) > 33*piece {
		block /= 2
	}
	return int(block)
}

// NewFingerprint returns the fingerprint of an empty packet, to be cut into blocks
// of blockSymbols symbols, see [BlockSymbols], to which [Fingerprint.Add] adds.
func NewFingerprint(f field.Field, seed Seed, blockSymbols int) *Fingerprint {
	p := &Fingerprint{
		field: f,
		rng:   rand.NewChaCha8(seed),
		draw:  field.NewSampler(f),
		block: blockSymbols * f.SymbolBytes(),
	}
	for range combinations(f) {
		p.sums = append(p.sums, make([]byte, p.block))
		p.coefs = append(p.coefs, append(make([]field.Element, 0, 1+batch), field.One))
	}
	p.next = make([]byte, p.block)
	p.sources = append(make([][]byte, 0, 1+batch), nil)
	return p
}

// Add adds the next bytes of the packet. Their number is a multiple of the block
// size in bytes, except at the end of the packet, and their symbols belong to
// the field. It does not keep data.
func (p *Fingerprint) Add(data []byte) {
	for len(data) > 0 {
		n := min(len(data), p.block)
		block := data[:n]
		if n < p.block {
			p.tail = append(append(p.tail[:0], block...), make([]byte, p.block-n)...)
			block = p.tail
		}
		data = data[n:]
		p.sources = append(p.sources, block)
		for c := range p.coefs {
			p.coefs[c] = append(p.coefs[c], p.draw.Draw(p.rng.Uint64))
		}
		if len(p.sources) == 1+batch {
			p.flush()
		}
	}
	p.flush()
}

// flush adds the batch to the sums.
func (p *Fingerprint) flush() {
	if len(p.sources) == 1 {
		return
	}
	for c, sum := range p.sums {
		p.sources[0] = sum
		p.field.Combine(p.next, p.coefs[c], p.sources)
		p.sums[c], p.next = p.next, sum
		p.coefs[c] = p.coefs[c][:1]
	}
	clear(p.sources)
	p.sources = p.sources[:1]
}

// Bytes returns the fingerprint as a packet of e·B symbols.
func (p *Fingerprint) Bytes() []byte {
	var packet []byte
	for _, sum := range p.sums {
		packet = append(packet, sum...)
	}
	return packet
}

// A CheckError says that a finished run failed the check at a processor.
type CheckError struct{ Proc int }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *CheckError) ExitCode() int { return 3 }

func (e *CheckError) Error() string {
	return fmt.Sprintf("verify: the coded packet of processor %d is not the combination of the initial packets that the matrix asks for", e.Proc)
}
