package executor

import (
	"sync"
	"sync/atomic"

	"volley/internal/hugepage"
)

// An arena is memory for buffers. It comes with whatever was in it.
type arena struct {
	data []byte
	used int

	packets [][]byte // room for those of a worker
	owner   *arenas
}

// arenas hold arenas that were freed. To make one anew costs as much as to add something to
// all its buffers, as the system has to find and clear the pages. A pool forgets what two garbage
// collections find in it, and has an arena for each core that a run was on, so one stays for good.
type arenas struct {
	last atomic.Pointer[arena]
	pool sync.Pool
}

// mostKept bounds the arena that stays.
const mostKept = 64 << 20

// These are for each of its own sizes.
var segments, scratches arenas

// apart is what buffers lie apart: packets are often as long as a power of two, and equal
// offsets in many of them would share few sets of a cache.
const apart = 192

// spacing returns how far apart buffers of n bytes lie: short ones do not, of which many thousand ranks of a process
// have hundreds each.
func spacing(n int) int {
	if n < 8*apart {
		return 0
	}
	return apart
}

// leastScratch is how long the scratch memory of one of several workers is at least: short ones next to
// each other made one of two workers a third slower than the other.
const leastScratch = 1 << 20

// take returns an arena for buffers of size bytes, apart included.
func (s *arenas) take(size int) *arena {
	a := s.last.Swap(nil)
	if a == nil {
		a, _ = s.pool.Get().(*arena)
	}
	if a == nil || len(a.data) < size {
		a = &arena{data: hugepage.Make(size), owner: s}
	}
	a.used = 0
	return a
}

// take returns n bytes.
func (a *arena) take(n int) []byte {
	b := a.data[a.used:][:n:n]
	a.used += n + spacing(n)
	return b
}

// free gives the buffers back. Nobody may use them any more.
func (a *arena) free() {
	if len(a.data) > mostKept || !a.owner.last.CompareAndSwap(nil, a) {
		a.owner.pool.Put(a)
	}
}
