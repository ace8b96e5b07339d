package field

import (
	"sync"

	"github.com/klauspost/reedsolomon"
)

// tileSide is how many inputs and outputs an encoder takes: with more than 256
// together the library would work in another field.
const tileSide = 128

// minEncoder is how many coefficients an encoder pays from: below, what Encode does
// before its kernels takes longer than one kernel for each coefficient.
const minEncoder = 8

// encoderMap is a map over F_{2^8} by 0x11d by encoders of klauspost/reedsolomon with
// matrices of their own. It is for processors without kernels here: on arm64 the
// library has some. On amd64 ours are faster, as they keep the sums of all inputs in
// registers, also of more than ten, and prepare the matrix once. Encode allocates a
// slice header for every ten by ten packets.
type encoderMap struct {
	mapShape
	tiles []tile
	pool  sync.Pool // of *encoderScratch
}

// A tile is the part of a map with so many outputs and inputs from some on.
type tile struct {
	mapShape
	output, input int
	encoder       reedsolomon.Encoder
}

type encoderScratch struct {
	packets [][]byte
	sums    []byte
}

func newEncoderMap(shape mapShape, rows [][]Element) *encoderMap {
	m := &encoderMap{mapShape: shape}
	m.pool.New = func() any { return new(encoderScratch) }
	for i := 0; i < shape.outputs; i += tileSide {
		for j := 0; j < shape.inputs; j += tileSide {
			t := tile{mapShape{min(tileSide, shape.outputs-i), min(tileSide, shape.inputs-j)}, i, j, nil}
			matrix := make([][]byte, t.outputs)
			for k := range matrix {
				for _, c := range rows[i+k][j : j+t.inputs] {
					matrix[k] = append(matrix[k], byte(c[0]))
				}
			}
			var err error
			t.encoder, err = reedsolomon.New(t.inputs, t.outputs, reedsolomon.WithCustomMatrix(matrix),
				reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
			if err != nil {
				panic(err) // no more than 256 packets
			}
			m.tiles = append(m.tiles, t)
		}
	}
	return m
}

func (m *encoderMap) Apply(out, in [][]byte, add bool) {
	n := m.check(out, in, 1)
	if n == 0 {
		return
	}
	scratch := m.pool.Get().(*encoderScratch)
	for _, t := range m.tiles {
		outputs := out[t.output:][:t.outputs]
		packets := append(scratch.packets[:0], in[t.input:][:t.inputs]...)
		adds := add || t.input > 0
		if !adds {
			packets = append(packets, outputs...)
		} else {
			if cap(scratch.sums) < n*t.outputs {
				scratch.sums = make([]byte, n*t.outputs)
			}
			for k := range t.outputs {
				packets = append(packets, scratch.sums[n*k:][:n:n])
			}
		}
		if err := t.encoder.Encode(packets); err != nil {
			panic(err) // all packets are equally long, and not empty
		}
		if adds {
			for k, sum := range packets[t.inputs:] {
				xor(outputs[k], sum)
			}
		}
		clear(packets)
		scratch.packets = packets
	}
	m.pool.Put(scratch)
}
