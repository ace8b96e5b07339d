package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley"
	"volley/examples/internal/elements"
	"volley/field"
)

const symbols = 20

// A computation is a scheme with data, and what is to come out.
type computation struct {
	*Scheme
	data, want [][]byte
	compute    func([]byte) []byte
	rng        *rand.Rand
}

// newComputation returns a computation of a·x^d + b·x.
func newComputation(t *testing.T, shards, groups, degree int, options ...volley.Option) *computation {
	t.Helper()
	f, err := field.Parse("goldilocks")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewScheme(f, shards, groups, degree, options...)
	if err != nil {
		t.Fatal(err)
	}
	c := &computation{Scheme: s, rng: rand.New(rand.NewPCG(uint64(shards), uint64(groups)))}
	a, b := elements.Unpack(f, randomPacket(f, c.rng, symbols)), elements.Unpack(f, randomPacket(f, c.rng, symbols))
	c.compute = func(x []byte) []byte {
		y := elements.Unpack(f, x)
		for i, v := range y {
			y[i] = f.Add(f.Mul(a[i], field.Exp(f, v, uint64(degree))), f.Mul(b[i], v))
		}
		return elements.Pack(f, y)
	}
	for range shards {
		x := randomPacket(f, c.rng, symbols)
		c.data, c.want = append(c.data, x), append(c.want, c.compute(x))
	}
	return c
}

// run checks a run whose result is to be right.
func (c *computation) run(t *testing.T, late []int, liar int, lie func([]byte)) {
	t.Helper()
	lies := map[int]func([]byte){}
	if liar >= 0 {
		lies[liar] = lie
	}
	o, err := simulate(t.Context(), c.Scheme, c.data, c.compute, late, lies)
	if err != nil {
		t.Fatalf("late %v, liar %d: %v", late, liar, err)
	}
	if o.Liar != liar {
		t.Errorf("late %v: found processor %d wrong, want %d", late, o.Liar, liar)
	}
	for i := range c.want {
		if !bytes.Equal(o.Values[i], c.want[i]) {
			t.Errorf("late %v, liar %d: f of shard %d is wrong", late, liar, i)
		}
	}
}

// most returns as many processors as may be late, chosen at random but for some.
func (c *computation) most(except ...int) []int {
	order := slices.DeleteFunc(c.rng.Perm(c.Processors()), func(w int) bool { return slices.Contains(except, w) })
	return order[:c.Processors()-c.Need()]
}

// lies returns ways to be wrong.
func (c *computation) lies() map[string]func([]byte) {
	size := c.Field.SymbolBytes()
	other := randomPacket(c.Field, c.rng, symbols)
	return map[string]func([]byte){
		"a symbol": func(result []byte) {
			last := result[len(result)-size:]
			field.PutSymbol(c.Field, last, c.Field.Add(field.Symbol(c.Field, last), field.One))
		},
		"zeros":  func(result []byte) { clear(result) },
		"random": func(result []byte) { copy(result, other) },
	}
}

func TestLate(t *testing.T) {
	c := newComputation(t, 4, 4, 2) // 9 of 16 needed
	for range 5 {
		late := c.most()
		for n := range len(late) + 1 {
			c.run(t, late[:n], -1, nil)
		}
	}
	c.run(t, []int{0, 1, 2, 3}, -1, nil) // all that have data
	c.run(t, []int{9, 10, 11, 12, 13, 14, 15}, -1, nil)
}

func TestLiar(t *testing.T) {
	c := newComputation(t, 4, 4, 2)
	for name, lie := range c.lies() {
		t.Run(name, func(t *testing.T) {
			for w := range c.Processors() {
				c.run(t, nil, w, lie)
				c.run(t, c.most(w), w, lie)
				c.run(t, c.most(w)[1:], w, lie)
			}
		})
	}
}

// TestLiars has two wrong results, which are never taken for one where there are
// three more than decode, and next to never where there are two.
func TestLiars(t *testing.T) {
	c := newComputation(t, 4, 4, 2)
	lie, other := c.lies()["random"], c.lies()["random"]
	for range 20 {
		v, w := c.rng.IntN(8), 8+c.rng.IntN(8)
		late := c.most(v, w)
		for _, late := range [][]int{nil, late, late[1:]} {
			_, err := simulate(t.Context(), c.Scheme, c.data, c.compute, late, map[int]func([]byte){v: lie, w: other})
			if !errors.Is(err, ErrLiars) {
				t.Errorf("late %v, liars %d and %d: %v", late, v, w, err)
			}
		}
	}
}

func TestDemonstrate(t *testing.T) {
	var out strings.Builder
	if err := demonstrate(t.Context(), &out, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"wrong        processor 16, in symbol 149\nfound wrong  processor 16\n",
		"result       f of all 16 shards, equal to the direct computation\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}
