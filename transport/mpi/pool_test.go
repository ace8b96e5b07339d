package mpi

import (
	"math/rand/v2"
	"testing"
)

// TestPoolBound takes and gives back buffers of changing lengths: with the idle ones they
// never take more than the most that was in use at a time, which is what a run may hold.
func TestPoolBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var p bufferPool
	var used [][]byte
	most := 0
	for range 10_000 {
		if len(used) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(used))
			p.put(used[i])
			used[i] = used[len(used)-1]
			used = used[:len(used)-1]
		} else if len(used) < 100 {
			used = append(used, p.get(1+rng.IntN(1<<rng.IntN(20))))
		}
		inUse, idle := 0, 0
		for _, b := range used {
			inUse += cap(b)
		}
		for _, b := range p.idle {
			idle += cap(b)
		}
		most = max(most, inUse)
		if inUse+idle > most || inUse != p.inUse || idle != p.idleBytes || len(p.idle) > mostIdle {
			t.Fatalf("%d bytes in use and %d in %d idle buffers: want at most %d together (counted: %d and %d)", inUse, idle, len(p.idle), most, p.inUse, p.idleBytes)
		}
	}
}

// TestPoolReuse runs rounds of the same lengths, the first with a header: nothing is allocated
// from the second on.
func TestPoolReuse(t *testing.T) {
	var p bufferPool
	round := func(header int) {
		var used [][]byte
		for i := range 4 {
			used = append(used, p.get(1<<20+header*(i%2)))
		}
		for _, b := range used {
			p.put(b)
		}
	}
	round(200)
	if n := testing.AllocsPerRun(10, func() { p.put(p.get(1 << 20)) }); n != 0 {
		t.Errorf("%v allocations for a buffer that was released", n)
	}
	before := len(p.idle)
	if round(0); len(p.idle) != before || before != 4 {
		t.Errorf("%d and then %d idle buffers, want 4", before, len(p.idle))
	}
}
