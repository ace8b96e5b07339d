package windows

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"volley/algo/internal/universal"
	"volley/algo/schedule"
	"volley/internal/memo"
	"volley/sim"
)

// shape is the parameters of a [Step], which do not depend on the matrix.
//
// With a stride M, slot s is the offsets from s·M on, cyclically, -B <= s <= c. Of
// slot l >= 0 the offsets l·M + [0, m) are row l of the shoot phase, of slot -t < 0
// the offsets -t·M + t + [0, m) are window t. Behind slot s there is room for the gaps
// that min(B, c-s) windows fill, an offset each; that makes m·(1+B+c) + B·c in all. Which
// K fit, [shape.strides] says.
type shape struct {
	size   int // K
	m      int // packets that everybody has after the prepare phase
	extra  int // B, the windows: extra elements that everybody receives
	c      int // strides of the shoot phase but for the first, which is 0
	stride int // M
}

func (w shape) String() string {
	return fmt.Sprintf("B=%d m=%d c=%d stride=%d", w.extra, w.m, w.c, w.stride)
}

// cost is C1 = clog(m) + ⌈B/p⌉ + clog(c+1) and C2 = ⌈(m-1)/p⌉ + ⌈B/p⌉ + ⌈c/p⌉.
func (w shape) cost(ports int) sim.Cost {
	extra := schedule.Ceil(w.extra, ports)
	return sim.Cost{C1: schedule.Clog(w.m, ports) + extra + schedule.Clog(w.c+1, ports), C2: schedule.Ceil(w.m-1, ports) + extra + schedule.Ceil(w.c, ports)}
}

// capacity is the offsets of all rows, windows and gaps: K is at most that.
func (w shape) capacity() int { return w.m*(1+w.extra+w.c) + w.extra*w.c }

// offset returns place i of slot s.
func (w shape) offset(s, i int) int { return w.wrap(s%w.size*w.stride + i) }

func (w shape) wrap(o int) int { return (o%w.size + w.size) % w.size }

// strides calls yield with the shape for every stride that suits it, until yield returns
// false, and reports whether it never did. With simple only those count whose slots
// follow one another m+B apart, but for the ends of chains.
//
// On the circle of offsets y = R-x of the R = 1+B+c slots are followed, after a offsets,
// by the one x further on, and x of them, the ends of chains, after b offsets by the one y
// before: K = y·a + x·b, where x and y have no common divisor, a <= m + min(x, B) and
// 0 <= b <= m + min(0, x-1-B). B = 1 reaches all K from (m+1)·(c+1) to the capacity; the
// capacity itself is reached where B and c+1, or B+1 and c, have no common divisor
// (TestWindowCapacity).
func (w shape) strides(simple bool, yield func(shape) bool) bool {
	slack := w.capacity() - w.size
	if slack < 0 || w.m+w.extra > w.size {
		return true
	}
	from := w.extra - slack/w.c
	if simple {
		from = w.extra
	}
	for x := max(1, from); x <= w.extra+w.c && w.extra*(x-w.extra-1) <= slack; x++ {
		y := 1 + w.extra + w.c - x
		g, u, v := bezout(x, y)
		if g != 1 {
			continue
		}
		mostA, mostB := w.m+min(x, w.extra), w.m+min(0, x-1-w.extra)
		for a := mostA; a >= 1 && w.size-y*a <= x*mostB; a-- {
			if simple && a < w.m+w.extra {
				break
			}
			if rest := w.size - y*a; rest >= 0 && rest%x == 0 {
				w.stride = w.wrap(u*a%w.size - v*(rest/x)%w.size) // x·M = a, -y·M = b
				if !yield(w) {
					return false
				}
			}
		}
	}
	return true
}

// bezout returns the greatest common divisor g = u·a + v·b.
func bezout(a, b int) (g, u, v int) {
	if b == 0 {
		return a, 1, 0
	}
	g, u, v = bezout(b, a%b)
	return g, v, u - a/b*v
}

// cells says for each offset what brings the packet there to its result, as rowCell,
// windowCell and gapCell code it.
type cells []int32

const noCell = 0

func (w shape) rowCell(l int) int32    { return int32(1 + l) }
func (w shape) windowCell(t int) int32 { return int32(-t) }
func (w shape) gapCell(l, t int) int32 { return int32(2 + w.c + (l-1)*w.extra + t - 1) }

// gap returns the t of a gap's cell; ok is false for others.
func (w shape) gap(cell int32) (t int, ok bool) {
	n := int(cell) - 2 - w.c
	return n%w.extra + 1, n >= 0
}

// cells deals the offsets: to rows, then to windows, then, as gap (l, t), t = B … 1, the
// one at which the last packet of window t lies when it has gone on by l strides. It
// is nil where an offset is left over or the coding would depend on itself. The stride
// may be any.
func (w shape) cells() cells {
	own := make(cells, w.size)
	for l := 0; l <= w.c; l++ {
		if l > 0 && w.offset(l, 0) == 0 {
			return nil
		}
		w.take(own, l, 0, w.m, w.rowCell(l))
	}
	for t := 1; t <= w.extra; t++ {
		if w.offset(-t, t) == 0 {
			return nil
		}
		w.take(own, -t, t, t+w.m, w.windowCell(t))
	}
	for t := w.extra; t >= 1; t-- {
		for l := 1; l <= w.c; l++ {
			w.take(own, l-t, w.m+t-1, w.m+t, w.gapCell(l, t))
		}
	}
	if slices.Contains(own, noCell) {
		return nil
	}
	// What a multiplied window spills over the rest of its m offsets must be for rows to
	// take off, or for windows and gaps of smaller t.
	for t := 1; t <= w.extra; t++ {
		for l := 1; l <= w.c; l++ {
			mine := w.gapCell(l, t)
			if own[w.offset(l-t, w.m+t-1)] != mine {
				continue
			}
			at := w.offset(l-t, t)
			for range w.m {
				cell := own[at]
				if at++; at == w.size {
					at = 0
				}
				if cell < 0 && int(-cell) >= t {
					return nil
				}
				if u, ok := w.gap(cell); ok && (u > t || u == t && cell != mine) {
					return nil
				}
			}
		}
	}
	return own
}

// take gives the places from … to-1 of slot s to the cell, but for those taken.
func (w shape) take(own cells, s, from, to int, cell int32) {
	at := w.offset(s, from)
	for range to - from {
		if own[at] == noCell {
			own[at] = cell
		}
		if at++; at == w.size {
			at = 0
		}
	}
}

// Bounds of the search.
const (
	mostReckoning = 1 << 22 // K·B: the time to check a shape; no bound for K up to 30,000
	mostShapes    = 1 << 12 // for one way to split C2 into three phases: many ports have more
)

// shapes calls yield with the shapes of exactly this C2 and at most c1 rounds, those
// with the fewest rounds of windows first, until yield returns false; simple is as
// for strides.
func shapes(size, ports, c1, c2 int, simple bool, yield func(shape) bool) {
	mostExtra := mostReckoning / size
	for extra := 1; extra < min(c1, c2) && ports*(extra-1) < mostExtra; extra++ { // rounds
		for strides := 1; strides <= c2-extra; strides++ {
			window := c2 - extra - strides
			most := shape{
				size: size, m: 1 + ports*window, extra: min(ports*extra, mostExtra), c: ports * strides,
			}
			if most.capacity() < size {
				continue
			}
			leastM, leastC := max(1, most.m-ports+1), most.c-ports+1
			if schedule.Clog(leastM, ports)+extra+schedule.Clog(leastC+1, ports) > c1 {
				continue
			}
			looked := 0
		triple:
			for b := ports*(extra-1) + 1; b <= most.extra; b++ {
				for m := most.m; m >= leastM; m-- {
					for c := most.c; c >= leastC; c-- {
						w := shape{size: size, m: m, extra: b, c: c}
						if w.capacity() < size {
							break
						}
						if looked++; looked > mostShapes {
							break triple
						}
						if w.cost(ports).C1 <= c1 && !w.strides(simple, yield) {
							return
						}
					}
				}
			}
		}
	}
}

// universalC2 is the C2 of the tuned universal step in at most so many rounds, no fewer than the fewest.
func universalC2(size, ports, rounds int) int {
	m, n := universal.Tune(size, ports, rounds-schedule.Clog(size, ports))
	return universal.Cost(m, n, ports).C2
}

// tunedFront returns the C2 of the tuned universal step by the rounds that it may
// take above the fewest possible; more rounds than listed are of no use.
func tunedFront(size, ports int) []int {
	var front []int
	c2 := func(over int) int { return universalC2(size, ports, schedule.Clog(size, ports)+over) }
	for best := c2(size); len(front) == 0 || front[len(front)-1] > best; {
		front = append(front, c2(len(front)))
	}
	return front
}

// findFront returns the shapes that no other one, nor the tuned universal step,
// beats in C1 and C2, fewest rounds first. They have at most over rounds more than
// the fewest possible, any number if over is negative.
func findFront(size, ports, over int) []shape {
	tuned := tunedFront(size, ports)
	least := schedule.Clog(size, ports)
	c1 := size // more rounds than any has
	if over >= 0 {
		c1 = min(c1, least+over)
	}
	var list []shape
	for c2 := 2; c2 < tuned[0]; c2++ {
		if i := slices.IndexFunc(tuned, func(t int) bool { return t <= c2 }); i >= 0 {
			c1 = min(c1, least+i-1) // in more rounds tuned is as good
		}
		var best *shape
		for found := true; found; {
			found = false
			shapes(size, ports, c1, c2, false, func(w shape) bool {
				if w.cells() == nil {
					return true
				}
				best, c1, found = &w, w.cost(ports).C1-1, true
				return false
			})
		}
		if best != nil {
			list = append(list, best.simplest(ports))
		}
	}
	slices.Reverse(list)
	return list
}

// alternatives yields the shape, then others with at most as many rounds, the fewest
// packets first, that beat the tuned universal step.
func (w shape) alternatives(ports int) iter.Seq[shape] {
	return func(yield func(shape) bool) {
		c := w.cost(ports)
		more := yield(w)
		for c2 := c.C2; more && c2 < universalC2(w.size, ports, c.C1); c2++ {
			shapes(w.size, ports, c.C1, c2, false, func(other shape) bool {
				if other != w && other.cells() != nil {
					more = yield(other)
				}
				return more
			})
		}
	}
}

// mostSimple bounds the shapes that simplest looks at.
const mostSimple = 16

// simplest returns a shape of the same cost that makes a [Step.plain] step, if one is
// found, else the shape itself.
func (w shape) simplest(ports int) shape {
	if newStep(w, ports).plain() {
		return w
	}
	c, looked := w.cost(ports), 0
	shapes(w.size, ports, c.C1, c.C2, true, func(other shape) bool {
		looked++
		if other.cells() != nil && newStep(other, ports).plain() {
			w = other
			return false
		}
		return looked < mostSimple
	})
	return w
}

// fronts keeps what findFront has found, so many times.
var fronts = memo.New(mostFronts)

const mostFronts = 256

// front is findFront, but remembers.
func front(size, ports, over int) []shape {
	list, _, _ := memo.Get(context.Background(), fronts, [3]int{size, ports, max(over, -1)}, 1, func() ([]shape, error) {
		return findFront(size, ports, over), nil
	})
	return list
}
