package tune

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"volley/transport"
)

// sizes are those of the messages, in bytes.
var sizes = []int{0, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}

const (
	leastSizes = 3    // however slow the network is
	leastTurns = 3    // of all sizes
	usualTurns = 10   // that the time is divided for
	mostTurns  = 50   // however fast it is
	mostRounds = 1000 // of a sample
)

// meter is one rank that measures.
//
// Whatever decides how it goes on is the greatest value of all ranks, which all
// know; so all decide alike.
type meter struct {
	t     transport.Transport
	ports int
	start time.Time

	elapsed float64 // seconds since the start, of the slowest rank
	read    byte    // of messages, so that they are read
}

// Rounds of tags: of the messages that are timed, and of those that agree.
const (
	timedRound = iota
	agreeRound
)

// agree sets every value to the greatest of all ranks. All ranks return at about
// the same time: none before the last has called it.
func (m *meter) agree(ctx context.Context, values []float64) error {
	rank, n := m.t.Rank(), m.t.Size()
	for step, distance := 0, 1; distance < n; step, distance = step+1, 2*distance {
		record := make([]byte, 0, 8*len(values))
		for _, v := range values {
			record = binary.LittleEndian.AppendUint64(record, math.Float64bits(v))
		}
		theirs := make([]byte, len(record))
		tag := transport.Tag{Round: agreeRound + step}
		if err := m.trade(ctx,
			&transport.Transfer{Rank: (rank + n - distance) % n, Tag: tag, Parts: [][]byte{theirs}, Receive: true},
			&transport.Transfer{Rank: (rank + distance) % n, Tag: tag, Parts: [][]byte{record}}); err != nil {
			return err
		}
		for i := range values {
			values[i] = max(values[i], math.Float64frombits(binary.LittleEndian.Uint64(theirs[8*i:])))
		}
	}
	return nil
}

// trade posts transfers and waits for all of them.
func (m *meter) trade(ctx context.Context, transfers ...*transport.Transfer) error {
	q := m.t.NewQueue()
	q.Post(transfers...)
	for range transfers {
		if _, err := q.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// line is the bytes of a cache line, or fewer.
const line = 64

// round sends and receives a message of size bytes on every port.
func (m *meter) round(ctx context.Context, lanes []*transport.Transfer, size int) error {
	for _, l := range lanes {
		l.Parts[0] = l.Parts[0][:size]
		for k := 0; k < size && !l.Receive; k += line {
			l.Parts[0][k]++
		}
	}
	if err := m.trade(ctx, lanes...); err != nil {
		return err
	}
	for _, l := range lanes {
		for k := 0; k < size && l.Receive; k += line {
			m.read += l.Parts[0][k]
		}
	}
	return nil
}

// sample returns the seconds that a round takes, as the mean of so many at the
// slowest rank.
func (m *meter) sample(ctx context.Context, lanes []*transport.Transfer, size, rounds int) (float64, error) {
	if err := m.agree(ctx, nil); err != nil { // to start together
		return 0, err
	}
	start := time.Now()
	for range rounds {
		if err := m.round(ctx, lanes, size); err != nil {
			return 0, fmt.Errorf("messages of %d bytes: %w", size, err)
		}
	}
	end := time.Now()
	values := []float64{end.Sub(start).Seconds() / float64(rounds), end.Sub(m.start).Seconds()}
	err := m.agree(ctx, values)
	m.elapsed = values[1]
	return values[0], err
}

// fitting returns how many times, from 1 to most, something that takes that many
// seconds once can be done in the share of time.
func fitting(share, once float64, most int) int {
	if once*float64(most) <= share {
		return most
	}
	return max(1, int(share/once))
}

// messages times messages of all sizes, as far as they can be sent in that time.
func (m *meter) messages(ctx context.Context, d time.Duration) ([]Point, error) {
	rank, n := m.t.Rank(), m.t.Size()
	var lanes []*transport.Transfer // receives first
	for i := range m.ports {
		lanes = append(lanes, &transport.Transfer{Rank: (rank + n - 1 - i) % n, Tag: transport.Tag{Round: timedRound, Port: i}, Receive: true})
	}
	for i := range m.ports {
		lanes = append(lanes, &transport.Transfer{Rank: (rank + 1 + i) % n, Tag: transport.Tag{Round: timedRound, Port: i}})
	}
	for _, l := range lanes {
		l.Parts = [][]byte{make([]byte, sizes[len(sizes)-1])}
	}
	budget := d.Seconds()
	var points []Point
	samples := make([][]float64, len(sizes))
	once := 0.0 // the time of a round of the last size
	for i, size := range sizes {
		if i >= leastSizes { // if it takes longer than the last one, then not more than in proportion
			longest := once * float64(size) / float64(sizes[i-1])
			if (leastTurns+2)*longest > (budget-m.elapsed)/2 {
				break
			}
		}
		for range 2 { // the first one warms up
			var err error
			if once, err = m.sample(ctx, lanes, size, 1); err != nil {
				return nil, err
			}
		}
		rounds := fitting(budget/float64(usualTurns*len(sizes)), once, mostRounds)
		points = append(points, Point{Bytes: size, Rounds: rounds})
	}
	for turn := 0; turn < leastTurns || turn < mostTurns && m.elapsed < budget; turn++ {
		for i, p := range points {
			seconds, err := m.sample(ctx, lanes, p.Bytes, p.Rounds)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], seconds)
		}
	}
	for i := range points {
		p, s := &points[i], samples[i]
		slices.Sort(s)
		p.Seconds, p.Least, p.Most, p.Samples = rounded(median(s)), rounded(s[0]), rounded(s[len(s)-1]), len(s)
	}
	return points, nil
}

// median returns the median of a sorted list.
func median(s []float64) float64 {
	n := len(s)
	return (s[n/2] + s[(n-1)/2]) / 2
}

// Memory returns about how many bytes a rank takes to measure with so many ports.
func Memory(ports int) int64 {
	return 2*int64(ports)*int64(sizes[len(sizes)-1]) + (sources+1)*uncachedBytes
}
