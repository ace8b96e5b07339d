package mpi

import (
	"slices"
	"sync"
)

// A bufferPool keeps the buffers of released messages for the next ones. Together with those
// in use they never take more than the most that was in use at a time: a run counts what it
// has received towards its bound on memory, so that idle buffers stay within it as well.
type bufferPool struct {
	mu        sync.Mutex
	idle      [][]byte // oldest first
	idleBytes int
	inUse     int // bytes
	most      int // of inUse
}

// mostIdle is how many buffers are kept.
const mostIdle = 64

// headerRoom is by how much more than an eighth a buffer may be too long: the first message of
// two ranks has a header.
const headerRoom = 512

// get returns a buffer of n bytes.
func (p *bufferPool) get(n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(b []byte) bool { return n <= cap(b) && cap(b) <= n+n/8+headerRoom })
	if i >= 0 {
		b := p.take(i)
		p.use(cap(b))
		return b[:n]
	}
	p.use(n)
	return make([]byte, n)
}

// put gives a buffer back.
func (p *bufferPool) put(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, b)
	p.idleBytes += cap(b)
	p.use(-cap(b))
}

// take takes a buffer out of the idle ones.
func (p *bufferPool) take(i int) []byte {
	b := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	p.idleBytes -= cap(b)
	return b
}

// use counts n bytes more in use, and drops the oldest idle buffers where that is too much.
func (p *bufferPool) use(n int) {
	p.inUse += n
	p.most = max(p.most, p.inUse)
	for len(p.idle) > mostIdle || len(p.idle) > 0 && p.inUse+p.idleBytes > p.most {
		p.take(0)
	}
}
