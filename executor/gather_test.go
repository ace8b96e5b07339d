package executor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"volley/algo"
	"volley/executor"
	"volley/field/fieldtest"
	"volley/transport"
)

// gathering is a transport whose waits always wait for as many receives as they may.
type gathering struct{ transport.Transport }

func (g gathering) NewQueue() transport.Queue { return &gatheringQueue{Queue: g.Transport.NewQueue()} }

type gatheringQueue struct {
	transport.Queue
	receives int
	over     []*transport.Transfer
	named    int // of over
}

func (q *gatheringQueue) Gather(receives int) { q.receives = receives }

func (q *gatheringQueue) Wait(ctx context.Context) (*transport.Transfer, error) {
	for gathered := q.named < len(q.over); !gathered; gathered = q.receives <= 0 {
		t, err := q.Queue.Wait(ctx)
		if err != nil {
			return t, err
		}
		if q.over = append(q.over, t); t.Receive {
			q.receives--
		}
	}
	q.named++
	return q.over[q.named-1], nil
}

// TestGather lets receives gather for as long as the executor allows: no rank may then wait for
// what another one sends only after it has heard more from it.
func TestGather(t *testing.T) {
	const symbols = 40
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{2, 3, 5, 16, 20} {
		a := randomMatrix(t, f, k)
		packets := randomPackets(f, 1, equal(k, symbols)...)
		want := product(a, packets, symbols)
		for _, algorithm := range algo.Algorithms() {
			for _, ports := range []int{1, 3} {
				if algorithm.Structured || ports >= k {
					continue
				}
				t.Run(fmt.Sprintf("%s/K=%d/p=%d", algorithm.Name, k, ports), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := &run{plan: compile(t, algorithm.Name, a, ports), packets: packets, bytes: symbols, segment: 15}
						r.wrap = func(below transport.Transport) transport.Transport { return gathering{below} }
						for _, ahead := range []bool{false, true} {
							r.job = func(_ int, job *executor.Job) { job.Ahead = ahead }
							r.mustDo(t)
							r.check(t, want)
						}
					})
				})
			}
		}
	}
}
