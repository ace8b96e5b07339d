package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"volley"
	"volley/field"
)

func goldilocks(t *testing.T) field.Field {
	t.Helper()
	f, err := field.Parse("goldilocks")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestDecoder has any number of wrong values, also more than can be corrected.
func TestDecoder(t *testing.T) {
	f := goldilocks(t)
	rng := rand.New(rand.NewPCG(1, 2))
	sampler := field.NewSampler(f)
	for _, shape := range [][2]int{{1, 1}, {2, 1}, {8, 3}, {15, 7}, {16, 7}, {16, 16}} {
		n, terms := shape[0], shape[1]
		points := make([]field.Element, n)
		for i := range points {
			points[i] = field.Code(uint64(i * i))
		}
		d := NewDecoder(f, points)
		for errs := 0; errs <= n-terms; errs++ {
			p := make(polynomial, rng.IntN(terms+1)) // of fewer terms, too
			for i := range p {
				p[i] = sampler.Draw(rng.Uint64)
			}
			values := make([]field.Element, n)
			for i, x := range points {
				values[i] = p.at(f, x)
			}
			wrong := rng.Perm(n)[:errs]
			slices.Sort(wrong)
			for _, i := range wrong {
				values[i] = f.Add(values[i], field.Code(1+rng.Uint64N(1<<60)))
			}
			got, found, err := d.Decode(values, terms)
			if errs > d.Corrects(terms) {
				if !errors.Is(err, ErrWrong) {
					t.Errorf("%v, %d wrong values: %v", shape, errs, err)
				}
				continue
			}
			if err != nil || !slices.Equal(got, p.trim()) || !slices.Equal(found, wrong) {
				t.Errorf("%v, %d wrong values: %v, found %v, want %v", shape, errs, err, found, wrong)
			}
		}
	}
}

// TestVerify has blocks that are wrong in one way each, of which all else is right.
func TestVerify(t *testing.T) {
	f := goldilocks(t)
	s, err := NewScheme(f, 2, 8, 3)
	if err != nil {
		t.Fatal(err)
	}
	balances, state, rho := []int64{5, 0, 100}, coins([]int64{5, 0, 100}), field.Code(987654321987)
	pay := func(pays, receives []int64) []field.Element { return Block{pays, receives}.symbols(f, balances) }
	valid := pay([]int64{5, 0, 60}, []int64{0, 64, 1})
	if v := s.verify(state, valid, rho); !v.IsZero() {
		t.Errorf("a valid block: %v", v)
	}
	digit := slices.Clone(valid)
	digit[0], digit[2] = field.Code(5), field.Code(0) // 5 in place of 1 + 4
	for name, block := range map[string][]field.Element{
		"pays more than it has": pay([]int64{6, 0, 0}, []int64{0, 6, 0}),
		"creates coins":         pay([]int64{0, 0, 1}, []int64{1, 1, 0}),
		"destroys coins":        pay([]int64{0, 0, 1}, []int64{0, 0, 0}),
		"receives less than 0":  pay([]int64{0, 0, 0}, []int64{-1, 1, 0}),
		"a digit of 5":          digit,
		"keeps what it pays":    slices.Concat(valid[:6*Bits], pay(make([]int64, 3), make([]int64, 3))[6*Bits:]),
	} {
		if v := s.verify(state, block, rho); v.IsZero() {
			t.Errorf("%s: the verdict is valid", name)
		}
	}
}

// small returns a scheme that tolerates four wrong nodes of 16, and rounds with invalid blocks.
func small(t *testing.T, liars ...int) (*Scheme, []Round, Ledger) {
	t.Helper()
	f := goldilocks(t)
	s, err := NewScheme(f, 4, 16, 2)
	if err != nil {
		t.Fatal(err)
	}
	rounds, after := play(f, rand.New(rand.NewPCG(3, 4)), s.Shards, s.Accounts, 3, liars)
	if s.Tolerates() != 4 || len(rounds[1].Invalid) != 2 {
		t.Fatalf("tolerates %d, invalid %v", s.Tolerates(), rounds[1].Invalid)
	}
	return s, rounds, after
}

// TestByzantine has any number of nodes that may be wrong, and compares the ledgers.
func TestByzantine(t *testing.T) {
	for n := range 5 {
		rng := rand.New(rand.NewPCG(5, uint64(n)))
		liars := rng.Perm(16)[:n]
		slices.Sort(liars)
		s, rounds, after := small(t, liars...)
		verdicts, states, err := simulate(t.Context(), s, rounds, collude(s, rounds, liars, rng))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range verdicts {
			if !slices.Equal(v.Liars, liars) || !slices.Equal(v.Rejected, rounds[i].Rejected) {
				t.Errorf("liars %v, round %d: found %v, rejected %v, want %v", liars, i+1, v.Liars, v.Rejected, rounds[i].Rejected)
			}
		}
		for _, w := range rng.Perm(s.Nodes)[:6] { // (16-4)/2 may be wrong
			states[w] = make([]field.Element, s.Accounts)
		}
		balances, wrong, err := s.Audit(states)
		if err != nil || len(wrong) != 6 {
			t.Fatalf("audit: %v, %d are wrong", err, len(wrong))
		}
		for i, b := range balances {
			if !slices.Equal(b, coins(after[i])) {
				t.Errorf("liars %v: shard %d has %v coins, want %v", liars, i, b, after[i])
			}
		}
	}
}

// TestSteps has nodes that lie in one step alone, each in all its symbols or in one of them.
func TestSteps(t *testing.T) {
	for step, symbols := range map[Step]int{SayVerdict: 1, SendChange: 2, SayChecks: 2} {
		for symbol := range symbols {
			honest, before, _ := small(t)
			valid := slices.DeleteFunc([]int{0, 1, 2, 3}, func(i int) bool { return slices.Contains(before[1].Invalid, i) })
			var proposers []int // that lie about a valid block, which is then rejected
			if step == SendChange {
				proposers = valid[1:]
			}
			s, rounds, after := small(t, proposers...)
			liars := append(slices.Clone(valid[1:]), 7, 15)
			verdicts, states, err := simulate(t.Context(), s, rounds, func(round, node int) Lie {
				if round != 1 || !slices.Contains(liars, node) {
					return nil
				}
				return func(at Step, truth []field.Element) []field.Element {
					said := slices.Clone(truth)
					if at == step {
						said[symbol] = s.Field.Add(said[symbol], field.One)
					}
					return said
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if step == SendChange { // the others have proposed nothing
				liars = proposers
			}
			if v := verdicts[1]; !slices.Equal(v.Liars, liars) || !slices.Equal(v.Rejected, rounds[1].Rejected) {
				t.Errorf("step %d, symbol %d: found %v, want %v; rejected %v, want %v", step, symbol, v.Liars, liars, v.Rejected, rounds[1].Rejected)
			}
			balances, wrong, err := honest.Audit(states)
			if err != nil || len(wrong) > 0 {
				t.Fatalf("step %d: audit: %v, %v are wrong", step, err, wrong)
			}
			for i, b := range balances {
				if !slices.Equal(b, coins(after[i])) {
					t.Errorf("step %d, symbol %d: shard %d has %v coins, want %v", step, symbol, i, b, after[i])
				}
			}
		}
	}
}

// TestTooMany has one wrong node more than is tolerated, and then so many that they decide.
func TestTooMany(t *testing.T) {
	s, rounds, _ := small(t)
	rng := rand.New(rand.NewPCG(7, 8))
	liars := rng.Perm(s.Nodes)
	_, _, err := simulate(t.Context(), s, rounds, collude(s, rounds, liars[:s.Tolerates()+1], rng))
	if !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "round 1: verdicts: ") {
		t.Errorf("%d wrong: %v", s.Tolerates()+1, err)
	}

	// Twelve that agree make the four others look wrong, and the invalid blocks valid.
	honest := slices.Sorted(slices.Values(liars[12:]))
	lie := collude(s, rounds, liars[:12], rng)
	verdicts, _, err := simulate(t.Context(), s, rounds, func(round, node int) Lie {
		if round == 1 {
			return lie(round, node)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := verdicts[1]; len(v.Rejected) > 0 || !slices.Equal(v.Liars, honest) {
		t.Errorf("12 wrong of 16: rejected %v, found %v, want none and %v", v.Rejected, v.Liars, honest)
	}
}

// TestStructured encodes by the structure of the points, as pays on slow links.
func TestStructured(t *testing.T) {
	s, err := NewScheme(goldilocks(t), 32, 128, 1, volley.WithAlgorithm("sinks-structured"), volley.WithPaperModel(1, volley.DefaultBeta, volley.DefaultTau))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.encoder.Estimate(t.Context(), nil, 1); err != nil || r.C1 != 8 || r.C2 != 10 {
		t.Errorf("%+v, %v: want 8 rounds, 10 packets", r, err)
	}
}

func TestErrors(t *testing.T) {
	f := goldilocks(t)
	for want, shape := range map[string][3]int{"want an account and 7 nodes": {4, 6, 1}, "4 shards of 0 accounts": {4, 16, 0}} {
		if _, err := NewScheme(f, shape[0], shape[1], shape[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", shape, err, want)
		}
	}
}

// TestPage compares the output with that in README.md.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := demonstrate(t.Context(), &out, 1); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, fmt.Appendf(nil, "```text\n%s```\n", out.String())) {
		t.Errorf("README.md has another output than this:\n%s", out.String())
	}
}
