package cores

import (
	"runtime"
	"sync"
	"testing"
)

// TestShare lets two items wait for each other, which they do for good unless two goroutines
// of the pool work side by side. Of a single core one goroutine does everything, in order.
func TestShare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	pool := Pool{Cores: 2}
	defer pool.Stop()
	for range 3 {
		var both sync.WaitGroup
		both.Add(2)
		pool.Share(2, func(int, int) {
			both.Done()
			both.Wait()
		})
		if n := computing.Load(); n != 0 {
			t.Fatalf("%d goroutines compute when all is done", n)
		}
	}
	var order []int
	single := Pool{Cores: 1}
	single.Share(3, func(worker, item int) { order = append(order, worker, item) })
	if len(order) != 6 || order[0]+order[2]+order[4] != 0 || order[1] != 0 || order[3] != 1 || order[5] != 2 {
		t.Errorf("one core: workers and items %v", order)
	}
}
