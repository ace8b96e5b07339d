package executor

import "sync"

// An arena is memory for equally long buffers. It comes with whatever was in it.
type arena struct {
	data []byte
	size int // of a buffer
}

// arenas holds those freed. To make one anew costs as much as to add something to
// all its buffers, as the system has to find and clear the pages.
var arenas sync.Pool

// newArena returns count buffers of size bytes.
func newArena(count, size int) *arena {
	a, ok := arenas.Get().(*arena)
	if !ok || len(a.data) < count*size {
		a = &arena{data: make([]byte, count*size)}
	}
	a.size = size
	return a
}

// buffer returns the first n bytes of buffer i.
func (a *arena) buffer(i, n int) []byte { return a.data[i*a.size:][:n:n] }

// free gives the buffers back. Nobody may use them any more.
func (a *arena) free() { arenas.Put(a) }
