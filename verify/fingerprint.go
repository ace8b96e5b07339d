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
type Fingerprint struct{ Fingerprints }

// Fingerprints are those of packets of one length, which are added side by side: random numbers are drawn once for
// all of them.
type Fingerprints struct {
	field field.Field
	seed  Seed
	rng   *rand.ChaCha8
	draw  field.Sampler
	block int        // bytes
	sums  [][][]byte // so far, e blocks of each packet
	rows  [][]field.Element
	in    [][]byte // scratch
	tail  []byte   // the last block, padded
}

// batch is how many blocks of a packet are added in one call of the kernel: some 64 KiB. By measurement; blocks
// of a power of two bytes compete for the same lines of the first cache.
func (p *Fingerprints) batch() int { return max(16, min(64, 64<<10/p.block)) }

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
// numbers, shorter ones less work on the sums. Packets in pieces are cut where blocks end: the
// blocks are short enough to lengthen a piece by 1/32 at most.
func BlockSymbols(symbols int64, pieces int) int {
	power := max(6, min(12, (2+bits.Len64(uint64(symbols)))/2))
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
	return &Fingerprint{*NewFingerprints(f, seed, blockSymbols, 1)}
}

// NewFingerprints returns those of so many empty packets. Each is what [NewFingerprint] makes of its packet.
func NewFingerprints(f field.Field, seed Seed, blockSymbols, packets int) *Fingerprints {
	return newFingerprints(f, seed, blockSymbols, packets, 32)
}

func newFingerprints(f field.Field, seed Seed, blockSymbols, packets int, bits uint) *Fingerprints {
	p := &Fingerprints{
		field: f,
		seed:  seed,
		rng:   rand.NewChaCha8(seed),
		draw:  field.NewSampler(f),
		block: blockSymbols * f.SymbolBytes(),
		rows:  make([][]field.Element, combinations(f, bits)),
	}
	for range packets {
		sums := make([][]byte, len(p.rows))
		for c := range sums {
			sums[c] = make([]byte, p.block)
		}
		p.sums = append(p.sums, sums)
	}
	return p
}

// Add adds the next bytes of the packet. Their number is a multiple of the block
// size in bytes, except at the end of the packet, and their symbols belong to
// the field. It does not keep data.
func (p *Fingerprint) Add(data []byte) { p.Fingerprints.Add(data) }

// Bytes returns the fingerprint as a packet, as long as that of any other packet over the field.
func (p *Fingerprint) Bytes() []byte { return p.Fingerprints.Bytes()[0] }

// Add adds the next bytes of every packet, of all as many, as [Fingerprint.Add] does. Where it adds no whole blocks,
// zeros follow them: then all packets that are compared are to be added in the same parts.
func (p *Fingerprints) Add(parts ...[]byte) {
	for at := 0; at < len(parts[0]); at += p.batch() * p.block {
		n := min(len(parts[0])-at, p.batch()*p.block)
		blocks := (n + p.block - 1) / p.block
		for c := range p.rows {
			p.rows[c] = slices.Grow(p.rows[c][:0], blocks)[:blocks]
		}
		for b := range blocks {
			for _, row := range p.rows {
				row[b] = p.draw.Draw(p.rng.Uint64)
			}
		}
		combine := p.field.Map(p.rows)
		for i, part := range parts {
			p.in = p.in[:0]
			for block := range slices.Chunk(part[at:at+n], p.block) {
				if len(block) < p.block {
					p.tail = append(append(p.tail[:0], block...), make([]byte, p.block-len(block))...)
					block = p.tail
				}
				p.in = append(p.in, block)
			}
			combine.Apply(p.sums[i], p.in, true)
		}
	}
	clear(p.in[:cap(p.in)])
}

// Bytes returns the fingerprint of every packet.
func (p *Fingerprints) Bytes() [][]byte {
	seed := p.seed
	seed[len(seed)-1] ^= 1 // other numbers than those of the blocks
	short := newFingerprints(p.field, seed, max(1, 16/p.field.SymbolBytes()), len(p.sums), 40)
	for c := range p.rows {
		var sums [][]byte
		for _, of := range p.sums {
			sums = append(sums, of[c])
		}
		short.Add(sums...)
	}
	var all [][]byte
	for _, sums := range short.sums {
		all = append(all, slices.Concat(sums...))
	}
	return all
}

// A CheckError says that a finished run failed the check at a processor.
type CheckError struct{ Proc int }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *CheckError) ExitCode() int { return 3 }

func (e *CheckError) Error() string {
	return fmt.Sprintf("verify: the coded packet of processor %d is not the combination of the initial packets that the matrix asks for", e.Proc)
}
