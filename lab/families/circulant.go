package families

import "slices"

// A circulant is the graph of a broadcast in blocks from position 0 to n positions in
// which every position receives one block and sends one in every round, but for the
// beginning and the end: C1 = B - 1 + ⌈log2 n⌉ for B blocks, the fewest possible. In
// round t all send to the position skip[t mod q] further on, q = ⌈log2 n⌉.
//
// The schedule is that of J. L. Träff, "Optimal Broadcast Schedules in Logarithmic
// Time", arXiv:2407.18004; each position finds its own in about q steps.
type circulant struct {
	n    int
	skip []int // skip[q] = n, and each half the next one, rounded up
}

func newCirculant(n int) circulant {
	c := circulant{n: n}
	for ; n > 1; n = (n + 1) / 2 {
		c.skip = append(c.skip, n)
	}
	c.skip = append(c.skip, 1)
	slices.Reverse(c.skip)
	return c
}

func (c circulant) q() int { return len(c.skip) - 1 }

// base returns the block of the first q that position r > 0 receives first of all
// that come to it, and q for position 0.
func (c circulant) base(r int) int {
	for k, s := range slices.Backward(c.skip[:c.q()]) {
		if r == s {
			return k
		}
		if r > s {
			r -= s
		}
	}
	return c.q()
}

// pattern returns what position r receives in q rounds in a row: the entry for round k
// is a block less q, or the base block itself; q rounds later it is the block q on.
func (c circulant) pattern(r int) []int {
	q := c.q()
	free := make([]bool, q+1) // skips that lead to no block yet
	for e := range free {
		free[e] = true
	}
	base := c.base(r)
	free[base] = false
	blocks := make([]int, 0, q+1)
	r += c.n
	// A path of skips from 0 leads to r - skip[k], as few before it as may be. Those
	// that differ in the last skip bring different blocks.
	last := 2 * c.n
	var find func(at, e int)
	find = func(at, e int) {
		for ; e >= 0 && len(blocks) < q; e-- {
			to := at + c.skip[e]
			if !free[e] || to > r-c.skip[len(blocks)] || to >= last {
				continue
			}
			if to <= r-c.skip[len(blocks)+1] {
				find(to, e)
			}
			if len(blocks) >= q || at > r-c.skip[len(blocks)+1] {
				return
			}
			last = to
			blocks = append(blocks, e)
			free[e] = false
		}
	}
	find(0, q)
	for k := range blocks {
		if blocks[k] == q {
			blocks[k] = base
		} else {
			blocks[k] -= q
		}
	}
	return blocks
}

// arrivals returns the block that position r receives in each round of a broadcast of
// so many blocks, and -1 for none. Each block comes once.
func (c circulant) arrivals(r, blocks int) []int {
	q := c.q()
	list := make([]int, blocks-1+q)
	if r == 0 {
		for t := range list {
			list[t] = -1
		}
		return list
	}
	pattern := c.pattern(r)
	skipped := c.skipped(blocks)
	for t := range list {
		u := t + skipped
		// Only the base block is not of the q rounds before, so that the last block, or
		// what would come after it, is met once: in the last q rounds.
		list[t] = max(-1, min(pattern[u%q]+u/q*q-skipped, blocks-1))
	}
	return list
}

// skipped returns how many rounds are left out at the beginning, so that the last one
// is the last of q.
func (c circulant) skipped(blocks int) int {
	q := c.q()
	return (q - (blocks-1)%q) % q
}

// transfers is what position r sends and receives in a broadcast: in round t a block
// from position from[t], and one to position to[t]; -1 is none.
type transfers struct{ receives, from, sends, to []int }

func (c circulant) transfers(r, blocks int) transfers {
	q, skipped := c.q(), c.skipped(blocks)
	next := make([][]int, q) // what those that it sends to receive
	for k := range next {
		next[k] = c.arrivals((r+c.skip[k])%c.n, blocks)
	}
	x := transfers{receives: c.arrivals(r, blocks)}
	for t := range x.receives {
		k := (t + skipped) % q
		x.from = append(x.from, (r-c.skip[k]+c.n)%c.n)
		x.to = append(x.to, (r+c.skip[k])%c.n)
		x.sends = append(x.sends, next[k][t])
	}
	return x
}
