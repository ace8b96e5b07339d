package main

import (
	"math/rand/v2"
	"sync"

	"volley/field"
	"volley/matrix"
)

// period is after how many symbols packets repeat: a prime, so that no block of a packet
// is like its neighbour.
const period = 16381

// packet sets b to the packet of a rank, which every other rank can make as well.
func packet(f field.Field, rank int, b []byte) {
	source := rand.NewChaCha8([32]byte{byte(rank), byte(rank >> 8)})
	n := min(len(b), period*f.SymbolBytes())
	field.FillRandom(f, b[:n], source.Uint64)
	for ; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// directSum returns the coded packet of a rank, packet by packet from the entries of the
// matrix: it shares no schedule with what is measured.
func directSum(a matrix.Matrix, rank, size int) []byte {
	f := a.Field()
	out, x, scaled := make([]byte, size), make([]byte, size), make([]byte, size)
	for i := range a.Rows() {
		packet(f, i, x)
		f.Combine(scaled, []field.Element{field.One, a.At(i, rank)}, [][]byte{out, x})
		out, scaled = scaled, out
	}
	return out
}

// cached is how much memory a core goes through at a time, in bytes.
const cached = 256 << 10

// apply applies a map block by block, of packets of symbols of unit bytes.
func apply(m field.Map, unit, threads int, out, in [][]byte, add bool) {
	size := len(in[0])
	block := max(unit, cached/(len(in)+len(out))/64*64)
	blocks := (size + block - 1) / block
	parts := func(list [][]byte, at int) [][]byte {
		some := make([][]byte, len(list))
		for i := range some {
			some[i] = list[i][at:min(size, at+block)]
		}
		return some
	}
	work := func(from, to int) {
		for b := from; b < to; b++ {
			m.Apply(parts(out, b*block), parts(in, b*block), add)
		}
	}
	threads = min(threads, blocks)
	var others sync.WaitGroup
	for t := 1; t < threads; t++ {
		others.Go(func() { work(t*blocks/threads, (t+1)*blocks/threads) })
	}
	work(0, blocks/threads)
	others.Wait()
}
