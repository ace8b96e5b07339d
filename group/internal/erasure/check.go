package erasure

import (
	"crypto/subtle"
	"fmt"
	mathrand "math/rand/v2"
	"slices"

	"volley/field"
	"volley/group/internal/content"
	"volley/group/protection"
	"volley/verify"
)

// A Check compares random combinations of all chunks, which obey the code as the chunks do.
type Check struct {
	code         *Code
	seed         verify.Seed
	first        int                    // node here
	Data, Parity []*verify.Fingerprints // of the chunks of each node here
}

// chunk returns the number of a symbol among the chunks of its node, data first.
func (c *Code) chunk(s content.Symbol) int {
	if s.Parity {
		return c.Data + s.Index
	}
	return s.Index
}

// NewCheck returns a check of chunks of so many bytes, of so many nodes at this rank from the first one on.
func NewCheck(c *Code, seed verify.Seed, first, nodes int, n int64) *Check {
	symbol := int64(c.Field.SymbolBytes())
	block := max(1, verify.BlockSymbols(n/symbol, 1)/int(symbol)) // 64 KiB have whole batches
	x := &Check{code: c, seed: seed, first: first}
	for range nodes {
		x.Data = append(x.Data, verify.NewFingerprints(c.Field, seed, block, c.Data))
		x.Parity = append(x.Parity, verify.NewFingerprints(c.Field, seed, block, c.Parity))
	}
	return x
}

// Folds returns for each node here a random combination of its fingerprints, as long as one: those of all nodes
// add up to zero where all codewords obey the code. If one does not, they do with a probability of 2^-32 at most, as
// each symbol of a fingerprint has random numbers of its own.
func (x *Check) Folds() [][]byte {
	f, seed := x.code.Field, x.seed
	seed[0] ^= 1 // other numbers than those of the fingerprints
	rng, draw := mathrand.NewChaCha8(seed), field.NewSampler(f)
	var folds [][]byte
	var prints [][][]byte
	for i := range x.Data {
		prints = append(prints, append(x.Data[i].Bytes(), x.Parity[i].Bytes()...))
		folds = append(folds, make([]byte, len(prints[i][0])))
	}
	part := f.SymbolBytes()
	for offset := 0; offset < len(folds[0]); offset += part {
		coefficients, sources := make([][]field.Element, len(folds)), make([][][]byte, len(folds))
		add := func(s content.Symbol, c func() field.Element) {
			if i := s.Node - x.first; i >= 0 && i < len(folds) {
				coefficients[i], sources[i] = append(coefficients[i], c()), append(sources[i], prints[i][x.code.chunk(s)][offset:][:part])
			}
		}
		for _, w := range x.code.Words {
			random := make([]field.Element, len(w.Parity))
			for j, s := range w.Parity {
				random[j] = draw.Draw(rng.Uint64)
				add(s, func() field.Element { return random[j] })
			}
			for i, s := range w.Data {
				add(s, func() (sum field.Element) {
					for j, r := range random {
						sum = f.Add(sum, f.Mul(r, x.code.Matrix.At(i, j)))
					}
					return sum
				})
			}
		}
		for i := range folds {
			f.Combine(folds[i][offset:][:part], coefficients[i], sources[i])
		}
	}
	return folds
}

// Verify returns a [*protection.CorruptError] unless all codewords obey the code, by the folds of all nodes.
func (x *Check) Verify(folds [][]byte, name func(node int) string) error {
	sum := make([]byte, len(folds[x.first]))
	for n, fold := range folds {
		if len(fold) != len(sum) {
			return fmt.Errorf("%s has a fold of %d bytes: want %d", name(n), len(fold), len(sum))
		}
		subtle.XORBytes(sum, sum, fold)
	}
	if slices.ContainsFunc(sum, func(b byte) bool { return b != 0 }) {
		return &protection.CorruptError{Reason: "the parity that was made does not fit the data: a machine computes or sends what is wrong, and the earlier protection stays in force; run again, and test the memory of the machines if that fails too"}
	}
	return nil
}
