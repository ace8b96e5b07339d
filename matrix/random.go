package matrix

import (
	"fmt"
	"math/rand/v2"

	"volley/field"
	"volley/internal/pointset"
)

// Random returns the rows×cols matrix of independent uniform entries, on demand.
//
// A[i][j] is a function of q, seed, i and j, never to change: what
// [field.Sampler] draws from [rand.PCG] with the seeds seed and i·2^32 + j.
//
// It is an error where rows or cols is not in [1, 2^31).
func Random(f field.Field, rows, cols int, seed uint64) (Matrix, error) {
	if err := pointset.CheckSize("rows", rows); err != nil {
		return nil, err
	}
	if err := pointset.CheckSize("cols", cols); err != nil {
		return nil, err
	}
	sampler := field.NewSampler(f)
	return &formula{shape{f, rows, cols}, fmt.Sprintf("random:%d", seed), func(i, j int) field.Element {
		var pcg rand.PCG
		pcg.Seed(seed, uint64(i)<<32|uint64(j))
		return sampler.Draw(pcg.Uint64)
	}, false}, nil
}
