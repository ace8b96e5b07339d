package executor

import "sync"

// An arena is memory for buffers. It comes with whatever was in it.
type arena struct {
	data []byte
	used int
	pool *sync.Pool
}

// These hold arenas that were freed, each of its own sizes. To make one anew costs as
// much as to add something to all its buffers, as the system has to find and clear the
// pages.
var segments, scratches sync.Pool

// apart is what buffers lie apart: packets are often as long as a power of two, and equal
// offsets in many of them would share few sets of a cache.
const apart = 192

// leastScratch is how long the scratch memory of a worker is at least: short ones next to
// each other made one of two workers a third slower than the other.
const leastScratch = 1 << 20

// newArena returns an arena for buffers of size bytes, apart included, from a pool.
func newArena(pool *sync.Pool, size int) *arena {
	a, ok := pool.Get().(*arena)
	if !ok || len(a.data) < size {
		a = &arena{data: make([]byte, size), pool: pool}
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
func (a *arena) free() { a.pool.Put(a) }
