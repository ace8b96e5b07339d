//go:build !amd64 || purego

package field

import "math/big"

// laneKernels are for AVX-512 only.
type laneKernels struct{}

func newPrimeLanes(*prime) *laneKernels { return nil }

func newGoldLanes() *laneKernels { return nil }

func newScalarLanes(*big.Int, func(Element) Element) *laneKernels { return nil }

func (l *laneKernels) newMap(mapShape, [][]Element, func(int)) Map { return nil }

func (l *laneKernels) combine([]byte, []Element, [][]byte) {}
