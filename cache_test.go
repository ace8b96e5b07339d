package volley

import (
	"bytes"
	"fmt"
	"testing"

	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/transport/local"
)

// TestCacheShares makes encoders for equal problems, which share one plan, and for others, which do not. Without a cache they do not
// either, and an encoder goes on with what it has.
func TestCacheShares(t *testing.T) {
	defer SetCacheBytes(DefaultCacheBytes)
	slow, err := sim.ParseNetwork("wan")
	if err != nil {
		t.Fatal(err)
	}
	planOf := func(e *Encoder) plan.Plan {
		t.Helper()
		p, err := e.Plan(t.Context(), nil, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	seen := map[plan.Plan]string{}
	for _, c := range []struct {
		field, matrix string
		k, r          int
		options       []Option
	}{
		{"2^8", "cauchy", 16, 16, nil},
		{"2^16", "cauchy", 16, 16, nil},
		{"2^8", "cauchy", 17, 17, nil},
		{"2^8", "cauchy", 16, 4, nil},
		{"2^8", "cauchy", 16, 4, []Option{WithSeparateSinks()}},
		{"2^8", "random:1", 16, 16, nil},
		{"2^8", "random:2", 16, 16, nil},
		{"2^8", "cauchy", 16, 16, []Option{WithAlgorithm("universal")}},
		{"2^8", "cauchy", 16, 16, []Option{WithNetwork(slow)}},
		{"2^8", "cauchy", 16, 16, []Option{WithPaperModel(1, DefaultBeta, DefaultTau)}},
		{"2^8", "cauchy", 16, 16, []Option{WithPaperModel(2, DefaultBeta, DefaultTau)}},
		{"2^8", "cauchy", 16, 16, []Option{WithWholePackets()}},
		{"2^8", "cauchy", 16, 16, []Option{WithOrder(algo.AnyOrder)}},
		{"2^8", "cauchy", 16, 16, []Option{WithLimits(algo.Limits{Memory: 100})}},
		{"2^8", "cauchy", 16, 16, []Option{WithGamma(1e-9)}},
		{"257", "dft", 16, 16, nil},
		{"2^8", "lagrange", 16, 16, nil},
	} {
		SetCacheBytes(DefaultCacheBytes)
		name := fmt.Sprintf("%s over %s, %d×%d, %d options", c.matrix, c.field, c.k, c.r, len(c.options))
		first := newEncoder(t, mustBuild(t, c.field, c.matrix, c.k, c.r), c.options...)
		p := planOf(first)
		if other, ok := seen[p]; ok {
			t.Errorf("%s has the plan of %s", name, other)
		}
		seen[p] = name
		if planOf(newEncoder(t, mustBuild(t, c.field, c.matrix, c.k, c.r), c.options...)) != p {
			t.Errorf("%s: a second encoder has another plan", name)
		}
		SetCacheBytes(0)
		if planOf(first) != p || planOf(newEncoder(t, mustBuild(t, c.field, c.matrix, c.k, c.r), c.options...)) == p {
			t.Errorf("%s: without a cache the encoder forgets its plan, or another one has it", name)
		}
	}
}

// A pretender is a caller's own matrix: it has the ID and the shape of another.
type pretender struct{ matrix.Matrix }

func (m pretender) At(i, j int) field.Element {
	return m.Matrix.Field().Add(m.Matrix.At(i, j), field.One)
}

// pretended points are a caller's own.
type pretended struct{ matrix.Points }

func (p pretended) At(k int) field.Element { return p.Points.At((k + 1) % p.Len()) }

// TestCacheKeepsNothingUncertain encodes by matrices with the ID of one that was planned for, or whose entries have
// changed since: none gets what was made for the other.
func TestCacheKeepsNothingUncertain(t *testing.T) {
	const k, size = 8, 64
	in := make([]byte, k*size)
	for i := range in {
		in[i] = byte(7*i + i/size)
	}
	check := func(a matrix.Matrix) {
		t.Helper()
		packets, out, src := make([]Packet, k), make([][]byte, k), make([][]byte, k)
		for i := range packets {
			src[i] = in[i*size:][:size]
			packets[i] = Packet{Data: src[i], Result: &out[i]}
		}
		if _, err := newEncoder(t, a, WithCheck(false)).Run(t.Context(), local.New(1)[0], packets...); err != nil {
			t.Fatal(err)
		}
		want, column := make([]byte, size), make([]field.Element, k)
		for j := range out {
			for i := range column {
				column[i] = a.At(i, j)
			}
			if a.Field().Combine(want, column, src); !bytes.Equal(out[j], want) {
				t.Errorf("%s: coded packet %d is wrong", a.ID(), j)
			}
		}
	}
	known := mustBuild(t, "2^8", "cauchy", k, k)
	check(known)
	check(pretender{known})
	dense := matrix.DenseOf(known)
	check(dense)
	same := matrix.DenseOf(known)
	dense.Set(1, 2, field.Code(99))
	check(dense)
	check(same)

	sets := matrix.StructureOf(known).Points
	own, err := matrix.CauchyOn(pretended{sets[0].Points}, sets[1].Points)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := matrix.CauchyOn(sets[0].Points, sets[1].Points)
	if err != nil {
		t.Fatal(err)
	}
	if own.ID() != theirs.ID() {
		t.Fatalf("IDs %s and %s", own.ID(), theirs.ID())
	}
	check(theirs)
	check(own)
	for _, a := range []matrix.Matrix{pretender{known}, dense, own, matrix.Transpose(own), matrix.Transpose(dense)} {
		if matrix.StructureOf(a).Fixed() {
			t.Errorf("%s of type %T is said to be fixed", a.ID(), a)
		}
	}
}
