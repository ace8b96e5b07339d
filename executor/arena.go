package executor

import "sync"

// An arena is memory for buffers. It comes with whatever was in it.
type arena struct {
	data []byte
	used int
}

// arenas holds those freed. To make one anew costs as much as to add something to
// all its buffers, as the system has to find and clear the pages.
var arenas sync.Pool

// apart is what buffers lie apart: packets are often as long as a power of two, and equal
// offsets in many of them would share few sets of a cache.
const apart = 192

// newArena returns an arena for buffers of size bytes, apart included.
func newArena(size int) *arena {
	a, ok := arenas.Get().(*arena)
	if !ok || len(a.data) < size {
		a = &arena{data: make([]byte, size)}
	}
	a.used = 0
	return a
}

// take returns n bytes.
func (a *arena) take(n int) []byte {
	b := a.data[a.used:][:n:n]
	a.used += n + apart
	return b
}

// free gives the buffers back. Nobody may use them any more.
func (a *arena) free() { arenas.Put(a) }
