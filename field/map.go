package field

import "fmt"

// A Map is a linear map of packets, made ready by [Field.Map] to be applied many
// times. It is immutable and safe for concurrent use.
type Map interface {
	// Apply sets outputs[i] = Σ_j rows[i][j]·inputs[j], symbol by symbol, or adds that to
	// outputs[i] where add is true. All packets have one length, a multiple of
	// SymbolBytes bytes. No output overlaps an input or another output. Apply
	// allocates nothing that grows with the packets. It panics when numbers or
	// lengths disagree.
	//
	// The caller should cut packets of more than a few kilobytes, so that all inputs
	// and outputs of a piece fit in a cache.
	Apply(outputs, inputs [][]byte, add bool)
}

// A Streamer is a Map that can pass by the caches: results that nobody reads soon, and that are longer than the caches, then
// cost no read of the memory that they replace.
type Streamer interface {
	Map

	// Stream is Apply without add. It is of use where each output begins at a multiple of 64 bytes.
	Stream(outputs, inputs [][]byte)
}

// A Planar is a field with a second layout of packets, in which its maps are faster.
// Changing the layout pays where packets go through several maps.
type Planar interface {
	Field
	ToPlanes(dst, src []byte)   // sets dst to the packet src, in planes
	FromPlanes(dst, src []byte) // the inverse; neither may overlap
	PlanarMap(rows [][]Element) Map
}

// StepwiseMap is [Field].Map, or [Planar].PlanarMap where planar is true. It calls steps with the number of entries that
// it makes ready next, some rows of the map, so that steps may end it by a panic.
func StepwiseMap(f Field, rows [][]Element, planar bool, steps func(entries int)) Map {
	switch stepwise, ok := f.(interface {
		stepwiseMap(rows [][]Element, planar bool, steps func(int)) Map
	}); {
	case ok:
		return stepwise.stepwiseMap(rows, planar, steps)
	case planar:
		return f.(Planar).PlanarMap(rows)
	}
	return f.Map(rows)
}

func noSteps(int) {}

// mapShape is the numbers of outputs and inputs of a map.
type mapShape struct{ outputs, inputs int }

// shapeOf panics unless rows are those of a map.
func (c *common) shapeOf(rows [][]Element) mapShape {
	if len(rows) == 0 || len(rows[0]) == 0 {
		panic(fmt.Sprintf("field %s: Map: no rows or no columns", c.name))
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			panic(fmt.Sprintf("field %s: Map: len(rows[%d])=%d, len(rows[0])=%d", c.name, i, len(row), len(rows[0])))
		}
	}
	return mapShape{len(rows), len(rows[0])}
}

// check panics unless the arguments of Apply fit the map, and returns the length of
// a packet.
func (s mapShape) check(outputs, inputs [][]byte, symbolBytes int) int {
	if len(outputs) != s.outputs || len(inputs) != s.inputs {
		panic(fmt.Sprintf("field: Apply: %d outputs and %d inputs for a map of %d and %d", len(outputs), len(inputs), s.outputs, s.inputs))
	}
	n := len(outputs[0])
	if n%symbolBytes != 0 {
		panic(fmt.Sprintf("field: Apply: len(outputs[0])=%d is no multiple of the %d bytes of a symbol", n, symbolBytes))
	}
	for i := range outputs {
		if len(outputs[i]) != n {
			panic(fmt.Sprintf("field: Apply: len(outputs[%d])=%d, len(outputs[0])=%d", i, len(outputs[i]), n))
		}
	}
	for j := range inputs {
		if len(inputs[j]) != n {
			panic(fmt.Sprintf("field: Apply: len(inputs[%d])=%d, len(outputs[0])=%d", j, len(inputs[j]), n))
		}
	}
	return n
}
