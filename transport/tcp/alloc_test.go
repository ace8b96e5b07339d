package tcp

import (
	"testing"

	"volley/internal/race"
	"volley/transport"
)

// TestAllocations sends a message forth and back, to receives that are posted: neither rank takes memory for it.
func TestAllocations(t *testing.T) {
	run := newRun(t, 2, Patience{})
	for _, size := range []int{100, 3 * frameBytes} {
		var transfers [2][2]*transport.Transfer
		var queues [2]transport.Queue
		for r, e := range run {
			queues[r] = e.NewQueue()
			for i := range 2 {
				transfers[r][i] = &transport.Transfer{Rank: 1 - r, Receive: i == 0, Parts: [][]byte{make([]byte, size)}}
			}
		}
		exchange := func() {
			for i := range 2 {
				for r, q := range queues {
					q.Post(transfers[r][i : i+1]...)
				}
			}
			for _, q := range queues {
				for range 2 {
					if _, err := q.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if got := testing.AllocsPerRun(200, exchange); got >= 1 && !race.Enabled { // which keeps no pool
			t.Errorf("%d bytes: %v objects for two messages", size, got)
		}
	}
}
