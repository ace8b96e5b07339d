package executor_test

import (
	"cmp"
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
	first    int // of receives, or 0
	over     []*transport.Transfer
	named    int // of over
}

func (q *gatheringQueue) Gather(receives int) {
	q.receives, q.first = receives, cmp.Or(q.first, receives)
}

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

// TestGatherBeside checks that what runs beside the packets wakes no rank earlier, comes all the same, and that
// its answer is posted.
func TestGatherBeside(t *testing.T) {
	const k, symbols = 6, 40
	f := fieldtest.Parse(t, "2^8")
	a := randomMatrix(t, f, k)
	packets := randomPackets(f, 1, equal(k, symbols)...)
	synctest.Test(t, func(t *testing.T) {
		var heard [k]int // messages that came around the ring
		first := make([]*gatheringQueue, k)
		r := &run{plan: compile(t, "exchange", a, k-1), packets: packets, bytes: symbols, segment: symbols}
		r.wrap = func(below transport.Transport) transport.Transport {
			return noting{gathering{below}, func(q *gatheringQueue) { first[below.Rank()] = q }}
		}
		r.job = func(rank int, job *executor.Job) {
			pair := func(round int) []*transport.Transfer {
				return []*transport.Transfer{
					{Rank: (rank + 1) % k, Tag: transport.Tag{Round: round}, Parts: [][]byte{make([]byte, 1)}, Receive: true},
					{Rank: (rank + k - 1) % k, Tag: transport.Tag{Round: round}, Parts: [][]byte{{byte(rank)}}},
				}
			}
			job.SideExchanges = []transport.SideExchange{func(over *transport.Transfer, err error) ([]*transport.Transfer, error) {
				switch {
				case over == nil:
					return pair(0), err
				case !over.Receive:
					return nil, err
				}
				if got := int(over.Parts[0][0]); got != (rank+1)%k {
					t.Errorf("rank %d heard %d", rank, got)
				}
				if heard[rank]++; heard[rank] == 1 {
					return pair(1), err
				}
				return nil, err
			}}
		}
		r.mustDo(t)
		r.check(t, product(a, packets, symbols))
		for rank := range k {
			if heard[rank] != 2 {
				t.Errorf("rank %d heard %d messages beside: want 2", rank, heard[rank])
			}
			if first[rank].first != k-1 {
				t.Errorf("rank %d gathers %d receives first: want %d", rank, first[rank].first, k-1)
			}
		}
	})
}

// noting tells of each queue.
type noting struct {
	transport.Transport
	note func(*gatheringQueue)
}

func (n noting) NewQueue() transport.Queue {
	q := n.Transport.NewQueue().(*gatheringQueue)
	n.note(q)
	return q
}
