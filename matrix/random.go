package matrix

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"volley/field"
)

var randomFamily = Family{
	Name:     "random",
	Argument: "SEED",
	Formula:  "A[i][j] uniform in F_q, a function of SEED, i and j",
	Doc:      "may be singular; SEED is a decimal number below 2^64",
	check: func(argument string) error {
		_, err := parseSeed(argument)
		return err
	},
	build: func(b *builder) (Matrix, error) {
		seed, err := parseSeed(b.Argument)
		if err != nil {
			return nil, err
		}
		return Random(b.f, b.k, b.r, seed)
	},
}

// Random returns the rows×cols matrix of independent uniform entries, on
// demand.
//
// A[i][j] is a function of q, seed, i and j, never to change: what
// [field.Sampler] draws from [rand.PCG] with the seeds seed and i·2^32 + j.
//
// It is an error where rows or cols is not in [1, 2^31).
func Random(f field.Field, rows, cols int, seed uint64) (Matrix, error) {
	if err := checkSize("rows", rows); err != nil {
		return nil, err
	}
	if err := checkSize("cols", cols); err != nil {
		return nil, err
	}
	return &random{f: f, rows: rows, cols: cols, seed: seed, sampler: field.NewSampler(f)}, nil
}

type random struct {
	f          field.Field
	rows, cols int
	seed       uint64
	sampler    field.Sampler
}

func (m *random) Field() field.Field { return m.f }
func (m *random) Rows() int          { return m.rows }
func (m *random) Cols() int          { return m.cols }
func (m *random) ID() string         { return fmt.Sprintf("random:%d", m.seed) }

func (m *random) At(i, j int) field.Element {
	checkEntry(i, j, m.rows, m.cols)
	var pcg rand.PCG
	pcg.Seed(m.seed, uint64(i)<<32|uint64(j))
	return m.sampler.Draw(pcg.Uint64)
}

func parseSeed(s string) (uint64, error) {
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("matrix: random: the seed %s is not a decimal number below 2^64", quote(s))
	}
	return seed, nil
}
