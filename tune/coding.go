package tune

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"volley/field"
)

const (
	sources       = 8        // packets in a combination
	blockBytes    = 32 << 10 // that are combined at a time, as in a run
	uncachedBytes = 2 << 20  // of a packet of which nine do not fit in the cache of a processor
	patternBytes  = 64 << 10 // of random symbols that packets repeat

	leastSamples = 3
	mostSamples  = 25
	mostRepeats  = 1 << 10 // of a sample
	meetings     = 5       // with nothing to do
	clearly      = 8       // times as long as a meeting a sample is to be, as no two meetings take as long
)

// coding times the combinations of every field, until end seconds after the start.
func (m *meter) coding(ctx context.Context, fields []field.Field, end float64) ([]Coding, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	packets := make([][]byte, sources+1)
	for i := range packets {
		packets[i] = m.memory[i*uncachedBytes:][:uncachedBytes]
	}
	list := make([]Coding, len(fields))
	for i, f := range fields {
		c := newCombiner(f, packets)
		share := max(0, end-m.elapsed) / float64(2*(len(fields)-i)) // for each of two
		cached, spread, err := m.gamma(ctx, c, blockBytes, share)
		if err != nil {
			return nil, err
		}
		uncached, _, err := m.gamma(ctx, c, uncachedBytes, share)
		if err != nil {
			return nil, err
		}
		list[i] = Coding{
			Field: f.Name(), SymbolBytes: f.SymbolBytes(), Sources: sources,
			Cached: rounded(cached), Uncached: rounded(uncached), Spread: rounded(spread),
		}
	}
	return list, nil
}

// gamma returns the least time of a multiply-add on a byte, in seconds, and by which share the median is more.
func (m *meter) gamma(ctx context.Context, c *combiner, n int, share float64) (least, spread float64, err error) {
	end := m.elapsed + share
	meeting := math.Inf(1) // least seconds until all have heard that all are through with nothing
	for range meetings {
		_, elapsed, err := m.timeAll(ctx, 0, nil)
		if err != nil {
			return 0, 0, err
		}
		meeting = min(meeting, elapsed)
	}
	sample := func(times int) (float64, error) {
		slowest, elapsed, err := m.timeAll(ctx, times, func() { c.combine(n) })
		return max(slowest, elapsed-meeting) / float64(times), err
	}
	var single float64
	for range 2 { // the first warms up
		if single, _, err = m.timeAll(ctx, 1, func() { c.combine(n) }); err != nil {
			return 0, 0, err
		}
	}
	times := fitting(max(share/mostSamples, clearly*meeting), single, mostRepeats)
	var samples []float64
	for len(samples) < leastSamples || len(samples) < mostSamples && m.elapsed < end {
		seconds, err := sample(times)
		if err != nil {
			return 0, 0, err
		}
		samples = append(samples, seconds)
	}
	slices.Sort(samples)
	if least = samples[0]; least > 0 {
		spread = median(samples)/least - 1
	}
	return least / (sources * blockBytes), spread, nil
}

// timeAll has all ranks do something so many times, and returns the seconds that the slowest takes for itself, and
// those from when the first begins to when all have heard that all are through. A rank that waits for a CPU begins
// late, so for itself it may be quick.
func (m *meter) timeAll(ctx context.Context, times int, work func()) (slowest, elapsed float64, err error) {
	if ctx.Err() != nil { // though no message may be late
		return 0, 0, context.Cause(ctx)
	}
	if err := m.agree(ctx, nil); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	for range times {
		work()
	}
	computed := time.Now()
	if err := m.agree(ctx, nil); err != nil {
		return 0, 0, err
	}
	end := time.Now()
	values := []float64{computed.Sub(start).Seconds(), end.Sub(start).Seconds(), end.Sub(m.start).Seconds()}
	err = m.agree(ctx, values)
	m.reach(values[2])
	return values[0], values[1], err
}

// fitting returns how many times, from 1 to limit, what takes that many seconds once can be done in the share.
func fitting(share, single float64, limit int) int {
	if single*float64(limit) <= share {
		return limit
	}
	return max(1, int(share/single))
}

// combiner combines packets of a field.
type combiner struct {
	field field.Field
	coef  []field.Element
	dst   []byte
	src   [][]byte
	block [][]byte // of src
	next  int      // byte of the next block
}

// newCombiner fills the packets, the last of which is for the result.
func newCombiner(f field.Field, packets [][]byte) *combiner {
	c := &combiner{field: f, dst: packets[sources], src: packets[:sources], block: make([][]byte, sources)}
	pattern := make([]byte, patternBytes)
	field.FillRandom(f, pattern, rand.NewPCG(1, 2).Uint64)
	for i, packet := range c.src {
		n := copy(packet, pattern[i*patternBytes/sources:]) // so that no two begin alike
		for n < len(packet) {
			n += copy(packet[n:], pattern)
		}
		e := f.Generator() // neither 0 nor 1, where there is another
		for range i {
			e = f.Mul(e, f.Generator())
		}
		c.coef = append(c.coef, e)
	}
	return c
}

// combine combines the next block of packets of n bytes, after the last one the first again.
func (c *combiner) combine(n int) {
	if c.next >= n {
		c.next = 0
	}
	for i, s := range c.src {
		c.block[i] = s[c.next:][:blockBytes]
	}
	c.field.Combine(c.dst[c.next:][:blockBytes], c.coef, c.block)
	c.next += blockBytes
}
