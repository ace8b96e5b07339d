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

// Random returns the rows×cols matrix of independent uniform entries, on demand.
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
	sampler := field.NewSampler(f)
	return &formula{shape{f, rows, cols}, fmt.Sprintf("random:%d", seed), func(i, j int) field.Element {
		var pcg rand.PCG
		pcg.Seed(seed, uint64(i)<<32|uint64(j))
		return sampler.Draw(pcg.Uint64)
	}, false}, nil
}

func parseSeed(s string) (uint64, error) {
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("matrix: random: the seed %s is not a decimal number below 2^64", quote(s))
	}
	return seed, nil
}
