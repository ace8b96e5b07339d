package windows

import (
	"fmt"
	"iter"
	"slices"

	"volley/algo/internal/universal"
	"volley/algo/schedule"
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
// false, and reports whether it never did.
//
// On the circle of offsets y = R-x of the R = 1+B+c slots are followed, after a offsets,
// by the one x further on, and x of them, the ends of chains, after b offsets by the one y
// before: K = y·a + x·b, where x and y have no common divisor, a <= m + min(x, B) and
// 0 <= b <= m + min(0, x-1-B). B = 1 reaches all K from (m+1)·(c+1) to the capacity; the
// capacity itself is reached where B and c+1, or B+1 and c, have no common divisor
// (TestWindowCapacity).
func (w shape) strides(yield func(shape) bool) bool {
	slack := w.capacity() - w.size
	if slack < 0 || w.m+w.extra > w.size {
		return true
	}
	for x := max(1, w.extra-slack/w.c); x <= w.extra+w.c && w.extra*(x-w.extra-1) <= slack; x++ {
		y := 1 + w.extra + w.c - x
		g, u, v := bezout(x, y)
		if g != 1 {
			continue
		}
		mostA, mostB := w.m+min(x, w.extra), w.m+min(0, x-1-w.extra)
		for a := mostA; a >= 1 && w.size-y*a <= x*mostB; a-- {
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
			offset := w.offset(l-t, t)
			for range w.m {
				cell := owners[offset]
				if offset++; offset == w.size {
					offset = 0
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

// take gives the places start … end-1 of slot s to the cell, but for those taken.
func (w shape) take(owners cells, s, start, end int, cell int32) {
	offset := w.offset(s, start)
	for range end - start {
		if owners[offset] == noCell {
			owners[offset] = cell
		}
		if offset++; offset == w.size {
			offset = 0
		}
	}
}

// mostFewer bounds how much smaller than its rounds allow each parameter is tried: K below the capacity may need that, and
// 8 ports or fewer have no more to try.
const mostFewer = 8

// shapes calls yield with the shapes of exactly this C2 and at most c1 rounds, those
// with the fewest rounds of windows first, until yield returns false.
func shapes(size, ports, c1, c2 int, yield func(shape) bool) {
	fewer := min(ports, mostFewer)
	for extra := 1; extra < min(c1, c2); extra++ { // rounds
		for strides := 1; strides <= c2-extra; strides++ {
			largest := shape{size: size, m: 1 + ports*(c2-extra-strides), extra: ports * extra, c: ports * strides}
			if largest.capacity() < size {
				continue
			}
			for b := largest.extra - fewer + 1; b <= largest.extra; b++ {
				for m := largest.m; m > max(0, largest.m-fewer); m-- {
					for c := largest.c; c > largest.c-fewer; c-- {
						w := shape{size: size, m: m, extra: b, c: c}
						if w.capacity() < size {
							break
						}
						if w.cost(ports).C1 <= c1 && !w.strides(yield) {
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
	c2 := func(excess int) int {
		m, n := universal.Tune(size, ports, excess)
		return universal.Cost(m, n, ports).C2
	}
	best, list := c2(size), []int{c2(0)}
	for list[len(list)-1] > best {
		list = append(list, c2(len(list)))
	}
	return list
}

// front returns the shapes that no other one, nor the tuned universal step,
// beats in C1 and C2, fewest rounds first. They have at most excess rounds more than
// the fewest possible, any number if over is negative.
func front(size, ports, excess int) []shape {
	tuned := tunedFront(size, ports)
	least := schedule.Clog(size, ports)
	c1 := size // more rounds than any has
	if excess >= 0 {
		c1 = min(c1, least+excess)
	}
	var list []shape
	for c2 := 2; c2 < tuned[0]; c2++ {
		if i := slices.IndexFunc(tuned, func(t int) bool { return t <= c2 }); i >= 0 {
			c1 = min(c1, least+i-1) // in more rounds tuned is as good
		}
		var best *shape
		for found := true; found; {
			found = false
			shapes(size, ports, c1, c2, func(w shape) bool {
				if w.cells() == nil {
					return true
				}
				best, c1, found = &w, w.cost(ports).C1-1, true
				return false
			})
		}
		if best != nil {
			list = append(list, *best)
		}
	}
	slices.Reverse(list)
	return list
}

// alternatives yields the shape, then others with at most as many rounds, the fewest
// packets first, that beat the tuned universal step.
func (w shape) alternatives(ports int) iter.Seq[shape] {
	return func(yield func(shape) bool) {
		c, tuned := w.cost(ports), tunedFront(w.size, ports)
		universal := tuned[min(c.C1-schedule.Clog(w.size, ports), len(tuned)-1)]
		wanted := yield(w)
		for c2 := c.C2; wanted && c2 < universal; c2++ {
			shapes(w.size, ports, c.C1, c2, func(candidate shape) bool {
				if candidate != w && candidate.cells() != nil {
					wanted = yield(candidate)
				}
				return wanted
			})
		}
	}
}
