package tune

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"volley/collective"
	"volley/transport"
)

// totals are the bytes that a rank sends in a round, in all its messages together.
var totals = []int{1, 4 << 10, 64 << 10, 1 << 20}

const (
	leastTotals = 3 // however slow the network is
	patience    = 4 // times the budget that the least samples of a larger total may take
	leastTurns  = 3
	mostTurns   = 1000 // however fast the network is
	perBlock    = 3    // samples of which the least counts

	// In a plan rounds follow each other without a barrier, which not all ranks leave at once.
	roundsPerSample = 2
)

// counts returns the numbers of messages of a round that are measured among k ranks: 1, 3, √k and k−1. There are two or
// more, as else nothing tells L from o: 3 messages between 2 ranks have the same receiver.
func counts(k int) []int {
	list := []int{1, 3, int(math.Round(math.Sqrt(float64(k)))), k - 1}
	slices.Sort(list)
	return slices.Compact(list)
}

// meter is one rank that measures.
//
// Whatever decides how it goes on is the greatest value of all ranks, which all know; so all decide alike.
type meter struct {
	t     transport.Transport
	start time.Time

	progress func(elapsed, remaining time.Duration)
	elapsed  float64 // seconds since the start, of the slowest rank
	memory   []byte  // more than fits in the cache of a processor
	outgoing []byte
	incoming []byte
	next     int // of both, what a round takes that is not in the cache
}

// mostCached is how many bytes a round takes from the cache, where what was just computed is; more is in memory.
const mostCached = 64 << 10

// offset returns where in outgoing and incoming so many bytes of a round are.
func (m *meter) offset(n int) int {
	if n <= mostCached {
		return 0
	}
	if m.next+n > len(m.outgoing) {
		m.next = 0
	}
	m.next += n
	return m.next - n
}

// reach notes that so many seconds have passed.
func (m *meter) reach(elapsed float64) {
	m.progress(duration(elapsed-m.elapsed), 0)
	m.elapsed = elapsed
}

// agree sets every value to the greatest of all ranks. No rank returns before the last has called it.
func (m *meter) agree(ctx context.Context, values []float64) error {
	var mine []byte
	for _, v := range values {
		mine = binary.LittleEndian.AppendUint64(mine, math.Float64bits(v))
	}
	reported, err := collective.New(m.t, 0).Allgather(ctx, mine)
	for _, theirs := range reported {
		for i := range values {
			values[i] = max(values[i], math.Float64frombits(binary.LittleEndian.Uint64(theirs[8*i:])))
		}
	}
	return err
}

// round sends so many messages of size bytes to the ranks that follow, and receives as many from those before.
func (m *meter) round(ctx context.Context, messages, size int) error {
	rank, k, offset := m.t.Rank(), m.t.Size(), m.offset(messages*size)
	tag := transport.Tag{Round: transport.ControlRounds} // after those of agree
	var transfers []*transport.Transfer
	for i := range messages {
		transfers = append(transfers, &transport.Transfer{
			Rank: (rank + k - 1 - i%(k-1)) % k, Tag: tag, Parts: [][]byte{m.incoming[offset+i*size:][:size]}, Receive: true,
		})
	}
	for i := range messages {
		transfers = append(transfers, &transport.Transfer{
			Rank: (rank + 1 + i%(k-1)) % k, Tag: tag, Parts: [][]byte{m.outgoing[offset+i*size:][:size]},
		})
	}
	q, receives := m.t.NewQueue(), messages
	q.Post(transfers...)
	for range transfers {
		transport.Gather(q, receives)
		t, err := q.Wait(ctx)
		if err != nil {
			return err
		}
		if t.Receive {
			receives--
		}
	}
	return nil
}

// sample returns the seconds that a round takes at the slowest rank, as the mean of a few after a barrier.
func (m *meter) sample(ctx context.Context, p Point) (float64, error) {
	if err := m.agree(ctx, nil); err != nil {
		return 0, err
	}
	start := time.Now()
	for range roundsPerSample {
		if err := m.round(ctx, p.Messages, p.Bytes/p.Messages); err != nil {
			return 0, fmt.Errorf("%d messages of %d bytes: %w", p.Messages, p.Bytes/p.Messages, err)
		}
	}
	end := time.Now()
	values := []float64{end.Sub(start).Seconds() / roundsPerSample, end.Sub(m.start).Seconds()}
	err := m.agree(ctx, values)
	m.reach(values[1])
	return values[0], err
}

// network times rounds of all counts and totals for so many seconds, the largest unless they are too long for that.
func (m *meter) network(ctx context.Context, budget float64) ([]Point, error) {
	end := m.elapsed + budget
	numbers := counts(m.t.Size())
	m.outgoing, m.incoming = m.memory[:len(m.memory)/2], m.memory[len(m.memory)/2:]
	var points []Point
	longest := 0.0 // of the last total
	for i, total := range totals {
		if i >= leastTotals { // at most in proportion to the last one
			longest *= float64(total) / float64(totals[i-1])
			if float64(len(numbers)*(1+leastTurns)*roundsPerSample)*longest > patience*budget {
				break
			}
		}
		longest = 0
		for _, n := range numbers {
			p := Point{Messages: n, Bytes: max(1, total/n) * n}
			var err error
			if p.Seconds, err = m.sample(ctx, p); err != nil { // warms up
				return nil, err
			}
			points, longest = append(points, p), max(longest, p.Seconds)
		}
	}
	samples := make([][]float64, len(points))
	rng := rand.New(rand.NewPCG(1, 2)) // the same at all ranks
	for turn := 0; turn < leastTurns || turn < mostTurns && m.elapsed < end; turn++ {
		for _, i := range rng.Perm(len(points)) {
			seconds, err := m.sample(ctx, points[i])
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], seconds)
		}
	}
	for i := range points {
		p, s := &points[i], samples[i]
		p.Seconds = rounded(typical(s))
		p.Least, p.Greatest, p.Samples = rounded(slices.Min(s)), rounded(slices.Max(s)), len(s)
	}
	return points, nil
}

// typical returns the median of blocks of samples, of each of which the least counts: other work only makes it longer.
func typical(samples []float64) float64 {
	var least []float64
	for block := range slices.Chunk(samples, max(1, min(perBlock, len(samples)/perBlock))) {
		least = append(least, slices.Min(block))
	}
	slices.Sort(least)
	return median(least)
}

// median returns the median of a sorted list.
func median(s []float64) float64 {
	n := len(s)
	return (s[n/2] + s[(n-1)/2]) / 2
}

// Memory is about how many bytes a rank takes to measure.
const Memory = (sources + 1) * uncachedBytes
