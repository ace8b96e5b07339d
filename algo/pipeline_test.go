package algo

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"volley/plan"
)

// TestCirculant checks the broadcasts in blocks on up to 200 positions: every position
// receives each block once, and sends only what it has.
func TestCirculant(t *testing.T) {
	for n := 2; n <= 200; n++ {
		c := newCirculant(n)
		for _, blocks := range []int{1, 2, 3, 7, 8, 9, 20} {
			if got, want := blocks-1+c.q(), blocks-1+clog(n, 1); got != want {
				t.Fatalf("n=%d, %d blocks: %d rounds, want %d", n, blocks, got, want)
			}
			all := make([]transfers, n)
			for r := range all {
				all[r] = c.transfers(r, blocks)
			}
			for r, x := range all {
				since := make([]int, blocks) // the round after which it has a block
				for block := range since {
					since[block] = len(x.receives)
					if r == 0 {
						since[block] = -1
					}
				}
				for round, block := range x.receives {
					if block < 0 {
						continue
					}
					if since[block] < len(x.receives) {
						t.Fatalf("n=%d, %d blocks: position %d receives block %d again in round %d", n, blocks, r, block, round)
					}
					since[block] = round
					if from := all[x.from[round]]; from.sends[round] != block || from.to[round] != r {
						t.Fatalf("n=%d, %d blocks: position %d receives block %d in round %d, which %d does not send", n, blocks, r, block, round, x.from[round])
					}
				}
				for round, block := range x.sends {
					if block >= 0 && since[block] >= round {
						t.Fatalf("n=%d, %d blocks: position %d sends block %d in round %d, which it has not", n, blocks, r, block, round)
					}
				}
				if slices.Contains(since, len(x.receives)) {
					t.Fatalf("n=%d, %d blocks: position %d has not all: %v", n, blocks, r, since)
				}
			}
		}
	}
}

// TestPipelineCost compares counted costs with the formulas.
func TestPipelineCost(t *testing.T) {
	f := sinksField(t, "2^16")
	everySinks(24, 3, func(k, r int, separate bool, ports int) {
		p := sinksProblem(t, randomMatrix(t, f, k, r), separate, ports)
		plans, err := pipelinePlans(p)
		if err != nil && !errors.Is(err, ErrStructure) {
			t.Fatal(err)
		}
		for _, q := range plans {
			w, pieces := q.(*groupPlan).way, q.Info().Pieces
			size := w.n
			if separate {
				size++
			}
			ports := p.Ports
			rounds := (pieces+min(ports, pieces)-1)/min(ports, pieces) - 1 + clog(size, 1)
			c := cost{w.c1 + rounds, w.c2*pieces + rounds}
			if got := costOf(q); got.c1 != c.c1 || got.c2 > c.c2 {
				t.Errorf("%s: %v, want at most %v", describe(p, q), got, c)
			}
		}
	})
	for _, c := range []struct {
		k, r  int
		ports int
		want  string // of plans, in packets
	}{
		{100, 1, 1, "8/4 10/2.5 14/1.75 22/1.375 38/1.188 70/1.094"},
		{1, 100, 1, "8/4 10/2.5 14/1.75 22/1.375 38/1.188 70/1.094"},
		{100, 1, 3, "5/3 6/2.667 7/2 8/1.333 10/0.8333 14/0.5833 22/0.4583"},
		{100, 10, 1, "8/8 9/7.5 11/6.75 15/6.375 23/6.188 39/6.094 71/6.047"},
		{3, 1, 1, "3/1.5 5/1.25 9/1.125 17/1.062 33/1.031 65/1.016"},
	} {
		p := sinksProblem(t, randomMatrix(t, f, c.k, c.r), false, c.ports)
		plans, err := pipelinePlans(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := inPacketsAll(plans); got != c.want {
			t.Errorf("K=%d R=%d p=%d: %s, want %s", c.k, c.r, c.ports, got, c.want)
		}
	}
}

// inPacketsAll lists the costs of plans.
func inPacketsAll(plans []plan.Plan) string {
	s := ""
	for i, q := range plans {
		if i > 0 {
			s += " "
		}
		c1, c2 := inPackets(q)
		s += fmt.Sprintf("%d/%.4g", c1, c2)
	}
	return s
}

// TestExchangeCost compares counted costs with the formulas: with those for sinks and
// sources that are the same, and with known ones for others.
func TestExchangeCost(t *testing.T) {
	f := sinksField(t, "2^16")
	for _, ports := range []int{1, 2, 3} {
		for _, digits := range []int{1, 2, 3} {
			m := power(ports+1, digits)
			p := sinksProblem(t, randomMatrix(t, f, m, m), false, ports)
			plans, err := exchangePlans(p)
			if err != nil {
				t.Fatal(err)
			}
			first, last := costOf(plans[0]), costOf(plans[len(plans)-1])
			if want := (cost{2 * digits, 2 * digits * m / (ports + 1)}); first != want {
				t.Errorf("K=%d p=%d: %v, want %v", m, ports, first, want)
			}
			direct := 2 * ((p.Matrix.Rows() - 1 + p.Ports - 1) / p.Ports)
			if want := (cost{direct, direct}); last != want {
				t.Errorf("K=%d p=%d: %v, want %v", m, ports, last, want)
			}
		}
	}
	for _, c := range []struct {
		k, r, ports int
		separate    bool
		want        string
	}{
		{64, 64, 1, false, "12/6 13/5.625 14/5.25 16/4.875 18/4.5 22/4.219 23/4 28/3.5 72/3.234 77/2.734 126/1.969"},
		{100, 10, 1, false, "14/5 16/4.52 18/4.26 20/4.03 22/3.8 36/3.6 107/3.25 110/2.89 198/1.98"},
		{64, 1, 1, false, "12/1.969"},
		{1, 64, 1, false, "12/1.969"},
		{12, 4, 1, true, "9/3.333 11/3.083 16/2.5 23/1.917"},
	} {
		p := sinksProblem(t, randomMatrix(t, f, c.k, c.r), c.separate, c.ports)
		plans, err := exchangePlans(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := inPacketsAll(plans); got != c.want {
			t.Errorf("K=%d R=%d separate=%t p=%d: %s, want %s", c.k, c.r, c.separate, c.ports, got, c.want)
		}
	}
}

// TestExchangeSquare checks what exchanges compute where every processor is source and
// sink.
func TestExchangeSquare(t *testing.T) {
	f := sinksField(t, "2^8")
	for k := 2; k <= 20; k++ {
		for ports := 1; ports <= 3; ports++ {
			checkSinks(t, sinksFamilies[2], sinksProblem(t, randomMatrix(t, f, k, k), false, ports))
		}
	}
}
