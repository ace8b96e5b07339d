package verify

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"

	"volley/field"
)

// Seed selects the random combinations of a fingerprint. All processors of a run
// use the same one, drawn afresh for the run.
type Seed [32]byte

// A Fingerprint is a short linear function of a packet, drawn at random. The packet is cut into
// blocks of B symbols, the last one padded with zeros, and e sums Σ_b r_{c,b}·block_b are taken
// for c = 1 … e, with the r_{c,b} drawn from the seed. These sums are then cut into blocks of 16
// bytes, or of one symbol where that is longer, and summed in m ways.
//
// It is linear. If y = Σ_i a_i·x_i then the fingerprint of y is Σ_i a_i times that of x_i, for
// the same seed. If y is any other packet over the field, that holds with probability at most
// q^-e + q^-m: the difference is not zero at some position of some block, and whatever it is
// elsewhere, each r_{c,b} of that block cancels it for one of its q values at most; so it is
// with the sums. e and m are such that q^-e <= 2^-32 and q^-m <= 2^-40. This takes a y that
// does not depend on the seed. So a run is checked by comparing its outputs' fingerprints, of
// some 80 bytes, with the combinations of its inputs'.
type Fingerprint struct {
	field field.Field
	seed  Seed
	rng   *rand.ChaCha8
	draw  field.Sampler
	block int      // bytes
	sums  [][]byte // so far, e blocks
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

// combinations returns the least number e with q^e >= 2^bits.
func combinations(f field.Field, bits uint) int {
	want := new(big.Int).Lsh(big.NewInt(1), bits)
	e, power := 1, f.Order()
	for power.Cmp(want) < 0 {
		power.Mul(power, f.Order())
		e++
	}
	return e
}

// BlockSymbols returns B for packets of the given number of symbols, W: the power of two next
// to 2·√W, but 64 to 4096, and no more than hold a packet. Longer blocks need fewer random
// numbers, shorter ones less work on the sums.
func BlockSymbols(symbols int64) int {
	block := max(6, min(12, (2+bits.Len64(uint64(symbols)))/2))
	return 1 << min(block, bits.Len64(uint64(max(1, symbols)-1)))
}

// NewFingerprint returns the fingerprint of an empty packet, to be cut into blocks
// of blockSymbols symbols, see [BlockSymbols], to which [Fingerprint.Add] adds.
func NewFingerprint(f field.Field, seed Seed, blockSymbols int) *Fingerprint {
	p := newFingerprint(f, seed, blockSymbols, 32)
	p.seed = seed
	return p
}

func newFingerprint(f field.Field, seed Seed, blockSymbols int, bits uint) *Fingerprint {
	p := &Fingerprint{
		field: f,
		rng:   rand.NewChaCha8(seed),
		draw:  field.NewSampler(f),
		block: blockSymbols * f.SymbolBytes(),
	}
	for range combinations(f, bits) {
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

// Bytes returns the fingerprint as a packet, as long as that of any other packet over the field.
func (p *Fingerprint) Bytes() []byte {
	seed := p.seed
	seed[len(seed)-1] ^= 1 // other numbers than those of the blocks
	short := newFingerprint(p.field, seed, max(1, 16/p.field.SymbolBytes()), 40)
	for _, sum := range p.sums {
		short.Add(sum)
	}
	return slices.Concat(short.sums...)
}

// A CheckError says that a finished run failed the check at a processor.
type CheckError struct{ Proc int }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *CheckError) ExitCode() int { return 3 }

func (e *CheckError) Error() string {
	return fmt.Sprintf("verify: the coded packet of processor %d is not the combination of the initial packets that the matrix asks for", e.Proc)
}
