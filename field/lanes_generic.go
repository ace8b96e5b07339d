//go:build !amd64 || purego

package field

import "math/big"

// primeLanes are for AVX-512 only.
type primeLanes struct{}

func newPrimeLanes(uint64) *primeLanes { return nil }

func (f *prime) laneMap([][]Element) Map { return nil }

func (f *prime) laneCombine([]byte, []Element, [][]byte) bool { return false }

const goldLanes = false

func (f *gold) laneMap([][]Element) Map { return nil }

func (f *gold) laneCombine([]byte, []Element, [][]byte) bool { return false }

// scalarLanes are for AVX-512 only.
type scalarLanes struct{}

func newScalarLanes(*big.Int, func(Element) Element) *scalarLanes { return nil }

func (l *scalarLanes) newMap(mapShape, [][]Element) Map { return nil }

func (l *scalarLanes) combine([]byte, []Element, [][]byte) {}
