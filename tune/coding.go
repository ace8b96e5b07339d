package tune

import (
	"context"
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
)

// coding times the combinations of every field, until end seconds after the start.
func (m *meter) coding(ctx context.Context, fields []field.Field, end float64) ([]Coding, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	packets := make([][]byte, sources+1)
	for i := range packets {
		packets[i] = make([]byte, uncachedBytes)
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

// gamma returns the least time of a multiply-add on a byte, in seconds, for packets
// of n bytes, and how much more, relative to it, the median of the samples is. It
// takes about the time of the share.
func (m *meter) gamma(ctx context.Context, c *combiner, n int, share float64) (least, spread float64, err error) {
	end := m.elapsed + share
	meeting, err := m.together(ctx, 0, nil)
	if err != nil {
		return 0, 0, err
	}
	sample := func(times int) (float64, error) {
		seconds, err := m.together(ctx, times, func() { c.combine(n) })
		return max(0, seconds-meeting) / float64(times), err
	}
	if _, err := sample(1); err != nil { // warms up
		return 0, 0, err
	}
	once, err := sample(1)
	if err != nil {
		return 0, 0, err
	}
	samples := []float64{once}
	times := fitting(share/mostSamples, once, mostRepeats)
	if times > 1 {
		samples = nil // a single time is not known as well
	}
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
	return least / (sources * float64(n)), spread, nil
}

// together returns the seconds from when the first rank begins to do something so
// many times to when all have heard that all are through with it.
func (m *meter) together(ctx context.Context, times int, do func()) (float64, error) {
	if ctx.Err() != nil { // though no message may be late
		return 0, context.Cause(ctx)
	}
	if err := m.agree(ctx, nil); err != nil {
		return 0, err
	}
	start := time.Now()
	for range times {
		do()
	}
	if err := m.agree(ctx, nil); err != nil { // a rank that waits for a CPU begins late, and seems to be quick
		return 0, err
	}
	end := time.Now()
	values := []float64{end.Sub(start).Seconds(), end.Sub(m.start).Seconds()}
	err := m.agree(ctx, values)
	m.elapsed = values[1]
	return values[0], err
}

// combiner combines packets of a field.
type combiner struct {
	field field.Field
	coef  []field.Element
	dst   []byte
	src   [][]byte
	block [][]byte // of src
}

// newCombiner fills the packets, the last of which is for the result.
func newCombiner(f field.Field, packets [][]byte) *combiner {
	c := &combiner{field: f, dst: packets[sources], src: packets[:sources], block: make([][]byte, sources)}
	sampler, rng := field.NewSampler(f), rand.New(rand.NewPCG(1, 2))
	pattern, symbol := make([]byte, patternBytes), f.SymbolBytes()
	for k := 0; k < len(pattern); k += symbol {
		field.PutSymbol(f, pattern[k:], sampler.Draw(rng.Uint64))
	}
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

// combine combines the first n bytes of all packets, block by block.
func (c *combiner) combine(n int) {
	for from := 0; from < n; from += blockBytes {
		for i, s := range c.src {
			c.block[i] = s[from:][:blockBytes]
		}
		c.field.Combine(c.dst[from:][:blockBytes], c.coef, c.block)
	}
}
