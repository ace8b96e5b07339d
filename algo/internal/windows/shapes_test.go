package windows

import (
	"fmt"
	"math"
	"testing"

	"volley/algo/schedule"
)

// windowC2 is the best C2 within so many rounds above the fewest, universal included.
func windowC2(k, ports, over int) int {
	c2 := universalC2(k, ports, over)
	if table := front(k, ports, over); len(table) > 0 {
		c2 = min(c2, table[len(table)-1].cost(ports).C2)
	}
	return c2
}

// TestWindowsKnown checks known costs.
func TestWindowsKnown(t *testing.T) {
	for _, want := range []struct{ k, ports, over, C1, C2 int }{
		{7, 1, 0, 3, 3}, {10, 1, 0, 4, 4}, {14, 1, 1, 5, 5}, {18, 1, 0, 5, 6}, {23, 1, 0, 5, 7}, {28, 1, 1, 6, 8},
		{70, 1, 0, 7, 14}, {79, 1, 0, 7, 15}, {24, 1, 1, 6, 7}, {64, 1, 2, 8, 13}, {128, 1, 2, 9, 20}, {128, 1, 3, 10, 19},
		{48, 4, 0, 3, 3}, {128, 4, 0, 4, 5}, {600, 1, -1, 20, 41}, {600, 2, -1, 12, 21}, {600, 4, 2, 6, 11},
	} {
		table := front(want.k, want.ports, want.over)
		if len(table) == 0 {
			t.Errorf("K=%d p=%d: none, want %d/%d", want.k, want.ports, want.C1, want.C2)
			continue
		}
		if got := table[len(table)-1].cost(want.ports); got.C1 > want.C1 || got.C2 > want.C2 {
			t.Errorf("K=%d p=%d: %d/%d, want %d/%d", want.k, want.ports, got.C1, got.C2, want.C1, want.C2)
		}
	}
}

// TestWindowTable checks the means of C2 over its lower bound for K = 8 … 600, by the rounds
// above the fewest.
func TestWindowTable(t *testing.T) {
	overs := []int{0, 1, 2, 3, 4, 6, -1}
	for ports, most := range map[int][]float64{
		1: {1.352, 1.302, 1.270, 1.244, 1.225, 1.201, 1.182},
		2: {1.321, 1.246, 1.206, 1.183, 1.172, 1.164, 1.163},
		4: {1.265, 1.165, 1.137, 1.132, 1.132, 1.132, 1.132},
	} {
		t.Run(fmt.Sprint("p=", ports), func(t *testing.T) {
			t.Parallel()
			var fewer [601]int // by K, with the rounds before
			for i, over := range overs {
				sum, n := 0.0, 0
				for k := 8; k <= 600; k++ {
					c2 := windowC2(k, ports, over)
					if i > 0 && c2 > fewer[k] {
						t.Fatalf("K=%d p=%d: C2 = %d with %d rounds more, fewer with %d", k, ports, c2, over, overs[i-1])
					}
					fewer[k] = c2
					sum += float64(c2) / float64(boundC2(k, ports))
					n++
				}
				if mean := math.Round(1000*sum/float64(n)) / 1000; mean > most[i] {
					t.Errorf("p=%d, %d rounds more: mean of C2 over its bound %.3f, want %.3f", ports, over, mean, most[i])
				}
			}
		})
	}
}

// TestWindowShapes checks that a table has shapes that work, in order, and that for small K
// and one port no stride whatever does better.
func TestWindowShapes(t *testing.T) {
	for ports := 1; ports <= 5; ports++ {
		for k := ports + 1; k <= 300; k++ {
			for _, over := range []int{0, 2, -1} {
				last := pair{0, math.MaxInt}
				for _, w := range front(k, ports, over) {
					c := w.cost(ports)
					if w.cells() == nil || c.C1 <= last.C1 || c.C2 >= last.C2 || over >= 0 && c.C1 > schedule.Clog(k, ports)+over || c.C2 >= universalC2(k, ports, c.C1-schedule.Clog(k, ports)) {
						t.Errorf("K=%d p=%d: %v, %d/%d after %d/%d", k, ports, w, c.C1, c.C2, last.C1, last.C2)
					}
					last = pairOf(c)
				}
			}
		}
	}
	for k := 8; k <= 100; k++ {
		for _, over := range []int{0, 2, -1} {
			c1 := k
			if over >= 0 {
				c1 = schedule.Clog(k, 1) + over
			}
			best := windowC2(k, 1, over)
			for c2 := boundC2(k, 1); c2 < best; c2++ {
				for extra := 1; extra < c2; extra++ {
					for c := 1; c <= c2-extra; c++ {
						w := shape{size: k, m: 1 + c2 - extra - c, extra: extra, c: c}
						if w.capacity() < k || w.cost(1).C1 > c1 || w.m+w.extra > k {
							continue
						}
						for w.stride = 1; w.stride < k; w.stride++ {
							if w.cells() != nil {
								t.Errorf("K=%d: %v has C2 = %d, found was %d", k, w, c2, best)
							}
						}
					}
				}
			}
		}
	}
}

// TestWindowCapacity checks which shapes reach their capacity, and the K below it that one
// window reaches.
func TestWindowCapacity(t *testing.T) {
	reached := func(w shape) bool {
		found := false
		w.strides(func(w shape) bool {
			found = w.cells() != nil
			return !found
		})
		return found
	}
	gcd := func(a, b int) int { g, _, _ := bezout(a, b); return g }
	for extra := 1; extra <= 6; extra++ {
		for m := extra; m < 24; m++ {
			for c := 1; c < 24; c++ {
				w := shape{m: m, extra: extra, c: c}
				w.size = w.capacity()
				if got, want := reached(w), gcd(extra, c+1) == 1 || gcd(extra+1, c) == 1; got != want {
					t.Errorf("%v: capacity %d reached: %v, want %v", w, w.size, got, want)
				}
				if extra > 1 {
					continue
				}
				for w.size = (m + 1) * (c + 1); w.size < w.capacity(); w.size++ {
					if !reached(w) {
						t.Errorf("%v: K=%d not reached", w, w.size)
					}
				}
			}
		}
	}
}
