package conditional

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"volley/algo"
	"volley/algo/schedule"
	"volley/internal/memo"
	"volley/sim"
)

// windowShape is the parameters of a [windows] step, which do not depend on the matrix.
//
// With a stride M, slot s is the offsets from s·M on, cyclically, -B <= s <= c. Of
// slot l >= 0 the offsets l·M + [0, m) are row l of the shoot phase, of slot -t < 0
// the offsets -t·M + t + [0, m) are window t. Behind slot s there is room for the gaps
// that min(B, c-s) windows fill, an offset each; that makes m·(1+B+c) + B·c in all. Which
// K fit, [windowShape.strides] says.
type windowShape struct {
	size   int // K
	m      int // packets that everybody has after the prepare phase
	extra  int // B, the windows: extra elements that everybody receives
	c      int // strides of the shoot phase but for the first, which is 0
	stride int // M
}

func (w windowShape) String() string {
	return fmt.Sprintf("B=%d m=%d c=%d stride=%d", w.extra, w.m, w.c, w.stride)
}

// cost is C1 = clog(m) + ⌈B/p⌉ + clog(c+1) and C2 = ⌈(m-1)/p⌉ + ⌈B/p⌉ + ⌈c/p⌉.
func (w windowShape) cost(ports int) sim.Cost {
	extra := schedule.Ceil(w.extra, ports)
	return sim.Cost{C1: schedule.Clog(w.m, ports) + extra + schedule.Clog(w.c+1, ports), C2: schedule.Ceil(w.m-1, ports) + extra + schedule.Ceil(w.c, ports)}
}

// capacity is the offsets of all rows, windows and gaps: K is at most that.
func (w windowShape) capacity() int { return w.m*(1+w.extra+w.c) + w.extra*w.c }

// offset returns place i of slot s.
func (w windowShape) offset(s, i int) int { return w.wrap(s%w.size*w.stride + i) }

func (w windowShape) wrap(o int) int { return mod(o, w.size) }

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
func (w windowShape) strides(simple bool, yield func(windowShape) bool) bool {
	slack := w.capacity() - w.size
	if slack < 0 || w.m+w.extra > w.size {
		return true
	}
	lowest := w.extra - slack/w.c
	if simple {
		lowest = w.extra
	}
	for x := max(1, lowest); x <= w.extra+w.c && w.extra*(x-w.extra-1) <= slack; x++ {
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

func (w windowShape) rowCell(l int) int32    { return int32(1 + l) }
func (w windowShape) windowCell(t int) int32 { return int32(-t) }
func (w windowShape) gapCell(l, t int) int32 { return int32(2 + w.c + (l-1)*w.extra + t - 1) }

// gap returns the t of a gap's cell; ok is false for others.
func (w windowShape) gap(cell int32) (t int, ok bool) {
	n := int(cell) - 2 - w.c
	return n%w.extra + 1, n >= 0
}

// cells deals the offsets: to rows, then to windows, then, as gap (l, t), t = B … 1, the
// one at which the last packet of window t lies when it has gone on by l strides. It
// is nil where an offset is left over or the coding would depend on itself. The stride
// may be any.
func (w windowShape) cells() cells {
	owners := make(cells, w.size)
	for l := 0; l <= w.c; l++ {
		if l > 0 && w.offset(l, 0) == 0 {
			return nil
		}
		w.take(owners, l, 0, w.m, w.rowCell(l))
	}
	for t := 1; t <= w.extra; t++ {
		if w.offset(-t, t) == 0 {
			return nil
		}
		w.take(owners, -t, t, t+w.m, w.windowCell(t))
	}
	for t := w.extra; t >= 1; t-- {
		for l := 1; l <= w.c; l++ {
			w.take(owners, l-t, w.m+t-1, w.m+t, w.gapCell(l, t))
		}
	}
	if slices.Contains(owners, noCell) {
		return nil
	}
	// What a multiplied window spills over the rest of its m offsets must be for rows to
	// take off, or for windows and gaps of smaller t.
	for t := 1; t <= w.extra; t++ {
		for l := 1; l <= w.c; l++ {
			mine := w.gapCell(l, t)
			if owners[w.offset(l-t, w.m+t-1)] != mine {
				continue
			}
			position := w.offset(l-t, t)
			for range w.m {
				cell := owners[position]
				if position++; position == w.size {
					position = 0
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
	return owners
}

// take gives the places low … high-1 of slot s to the cell, but for those taken.
func (w windowShape) take(owners cells, s, low, high int, cell int32) {
	position := w.offset(s, low)
	for range high - low {
		if owners[position] == noCell {
			owners[position] = cell
		}
		if position++; position == w.size {
			position = 0
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
func shapes(size, ports, c1, c2 int, simple bool, yield func(windowShape) bool) {
	mostExtra := mostReckoning / size
	for extra := 1; extra < min(c1, c2) && ports*(extra-1) < mostExtra; extra++ { // rounds
		for strides := 1; strides <= c2-extra; strides++ {
			window := c2 - extra - strides
			largest := windowShape{
				size: size, m: 1 + ports*window, extra: min(ports*extra, mostExtra), c: ports * strides,
			}
			if largest.capacity() < size {
				continue
			}
			leastM, leastC := max(1, largest.m-ports+1), largest.c-ports+1
			if schedule.Clog(leastM, ports)+extra+schedule.Clog(leastC+1, ports) > c1 {
				continue
			}
			looked := 0
		triple:
			for b := ports*(extra-1) + 1; b <= largest.extra; b++ {
				for m := largest.m; m >= leastM; m-- {
					for c := largest.c; c >= leastC; c-- {
						w := windowShape{size: size, m: m, extra: b, c: c}
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

// tunedFront returns the C2 of the tuned universal step by the rounds that it may
// take above the fewest possible; more rounds than listed are of no use.
func tunedFront(size, ports int) []int {
	var front []int
	c2 := func(excess int) int { return universalC2(size, ports, algo.BoundC1(size, ports)+excess) }
	for best := c2(size); len(front) == 0 || front[len(front)-1] > best; {
		front = append(front, c2(len(front)))
	}
	return front
}

// findWindows returns the shapes that no other one, nor the tuned universal step,
// beats in C1 and C2, fewest rounds first. They have at most excess rounds more than
// the fewest possible, any number if excess is negative.
func findWindows(size, ports, excess int) []windowShape {
	tuned := tunedFront(size, ports)
	least := algo.BoundC1(size, ports)
	c1 := size // more rounds than any has
	if excess >= 0 {
		c1 = min(c1, least+excess)
	}
	var list []windowShape
	for c2 := max(2, algo.BoundC2(size, ports)); c2 < tuned[0]; c2++ {
		if i := slices.IndexFunc(tuned, func(t int) bool { return t <= c2 }); i >= 0 {
			c1 = min(c1, least+i-1) // in more rounds tuned is as good
		}
		var best *windowShape
		for found := true; found; {
			found = false
			shapes(size, ports, c1, c2, false, func(w windowShape) bool {
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
func (w windowShape) alternatives(ports int) iter.Seq[windowShape] {
	return func(yield func(windowShape) bool) {
		c := w.cost(ports)
		open := yield(w)
		for c2 := c.C2; open && c2 < universalC2(w.size, ports, c.C1); c2++ {
			shapes(w.size, ports, c.C1, c2, false, func(candidate windowShape) bool {
				if candidate != w && candidate.cells() != nil {
					open = yield(candidate)
				}
				return open
			})
		}
	}
}

// mostSimple bounds the shapes that simplest looks at.
const mostSimple = 16

// simplest returns a shape of the same cost that makes a [windows.plain] step, if one is
// found, else the shape itself.
func (w windowShape) simplest(ports int) windowShape {
	if newWindows(w, ports).plain() {
		return w
	}
	c, looked := w.cost(ports), 0
	shapes(w.size, ports, c.C1, c.C2, true, func(candidate windowShape) bool {
		looked++
		if candidate.cells() != nil && newWindows(candidate, ports).plain() {
			w = candidate
			return false
		}
		return looked < mostSimple
	})
	return w
}

// windowTables keeps what findWindows has found, so many tables.
var windowTables = memo.New(mostWindowTables)

const mostWindowTables = 256

// windowTable is findWindows, but remembers.
func windowTable(size, ports, excess int) []windowShape {
	list, _, _ := memo.Get(context.Background(), windowTables, [3]int{size, ports, max(excess, -1)}, 1, func() ([]windowShape, error) {
		return findWindows(size, ports, excess), nil
	})
	return list
}
