package field_test

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"volley/field"
)

var one = big.NewInt(1)

func (s *suite) order(t *testing.T) {
	if !s.p.ProbablyPrime(20) {
		t.Errorf("the characteristic %v is no prime", s.p)
	}
	if want := new(big.Int).Exp(s.p, big.NewInt(int64(s.Degree())), nil); s.q.Cmp(want) != 0 {
		t.Errorf("the order is %v, want %v^%d = %v", s.q, s.p, s.Degree(), want)
	}
	want := 0
	for _, n := range []int{1, 2, 4, 8, 32} {
		if want == 0 && s.top.Int().BitLen() <= 8*n {
			want = n
		}
	}
	if got := s.SymbolBytes(); got != want {
		t.Errorf("a symbol has %d bytes, want %d for q = %v", got, want, s.q)
	}
	s.Order().SetInt64(0)
	s.Characteristic().SetInt64(0)
	if s.Order().Cmp(s.q) != 0 || s.Characteristic().Cmp(s.p) != 0 {
		t.Error("Order or Characteristic gives away an integer of the field's own")
	}
}

func (s *suite) name(t *testing.T) {
	g, err := field.Parse(s.Name())
	if err != nil {
		t.Fatal(err)
	}
	if g.Name() != s.Name() || g.Order().Cmp(s.q) != 0 || g.Generator() != s.Generator() {
		t.Fatalf("Parse(%q) is %q with order %v and generator %v, want order %v and generator %v",
			s.Name(), g.Name(), g.Order(), g.Generator(), s.q, s.Generator())
	}
	s.each(t, 2, func(t reporter, e []field.Element) {
		s.is(t, g.Mul(e[0], e[1]), s.Mul(e[0], e[1]), "a·b in the field parsed from the name", e...)
	})
}

func (s *suite) axioms(t *testing.T) {
	zero := field.Element{}
	s.each(t, 2, func(t reporter, e []field.Element) {
		a, b := e[0], e[1]
		s.is(t, s.Add(a, zero), a, "a+0", e...)
		s.is(t, s.Mul(a, field.One), a, "a·1", e...)
		s.is(t, s.Mul(a, zero), zero, "a·0", e...)
		s.is(t, s.Add(a, b), s.Add(b, a), "a+b", e...)
		s.is(t, s.Mul(a, b), s.Mul(b, a), "a·b", e...)
		s.is(t, s.Sub(a, a), zero, "a-a", e...)
		s.is(t, s.Add(s.Sub(a, b), b), a, "(a-b)+b", e...)
		s.is(t, s.Sub(zero, s.Sub(a, b)), s.Sub(b, a), "-(a-b)", e...)
		if !a.IsZero() {
			s.is(t, s.Mul(a, s.Inv(a)), field.One, "a·(1/a)", e...)
			s.is(t, s.Mul(s.Mul(b, a), s.Inv(a)), b, "b·a/a", e...)
		}
	})
	s.each(t, 3, func(t reporter, e []field.Element) {
		a, b, c := e[0], e[1], e[2]
		s.is(t, s.Add(s.Add(a, b), c), s.Add(a, s.Add(b, c)), "(a+b)+c", e...)
		s.is(t, s.Mul(s.Mul(a, b), c), s.Mul(a, s.Mul(b, c)), "(a·b)·c", e...)
		s.is(t, s.Mul(a, s.Add(b, c)), s.Add(s.Mul(a, b), s.Mul(a, c)), "a·(b+c)", e...)
	})
}

// codes checks that Σ c_i·X^i has the code Σ c_i·p^i: that elements are added
// digit by digit modulo p, are multiplied so by a single digit, and that
// X^i·X^j = X^(i+j) where the polynomial of the field does not matter.
func (s *suite) codes(t *testing.T) {
	s.each(t, 2, func(t reporter, e []field.Element) {
		a, b := e[0].Int(), e[1].Int()
		digit := new(big.Int).Mod(b, s.p)
		sum, product, term := new(big.Int), new(big.Int), new(big.Int)
		ai, bi := new(big.Int), new(big.Int)
		for power := big.NewInt(1); power.Cmp(s.q) < 0; power.Mul(power, s.p) {
			a.DivMod(a, s.p, ai)
			b.DivMod(b, s.p, bi)
			term.Add(ai, bi)
			sum.Add(sum, term.Mul(term.Mod(term, s.p), power))
			term.Mul(ai, digit)
			product.Add(product, term.Mul(term.Mod(term, s.p), power))
		}
		s.is(t, s.Add(e[0], e[1]), s.element(sum), "a+b", e...)
		s.is(t, s.Mul(e[0], s.element(digit)), s.element(product), "a·(b mod p)", e...)
	})
	x := func(i int) field.Element {
		return s.element(new(big.Int).Exp(s.p, big.NewInt(int64(i)), nil))
	}
	for i := range s.Degree() {
		for j := range s.Degree() - i {
			s.is(t, s.Mul(x(i), x(j)), x(i+j), "X^i·X^j")
		}
	}
}

func (s *suite) powers(t *testing.T) {
	// p·1 = 0, adding up by the bits of p.
	multiple := field.Element{}
	for i := s.p.BitLen() - 1; i >= 0; i-- {
		multiple = s.Add(multiple, multiple)
		if s.p.Bit(i) == 1 {
			multiple = s.Add(multiple, field.One)
		}
	}
	s.is(t, multiple, field.Element{}, "p·1")

	s.each(t, 2, func(t reporter, e []field.Element) {
		a, b := e[0], e[1]
		s.is(t, field.ExpInt(s, s.Add(a, b), s.p), s.Add(field.ExpInt(s, a, s.p), field.ExpInt(s, b, s.p)), "(a+b)^p", e...)
		s.is(t, field.ExpInt(s, s.Mul(a, b), s.p), s.Mul(field.ExpInt(s, a, s.p), field.ExpInt(s, b, s.p)), "(a·b)^p", e...)
	})
	s.each(t, 1, func(t reporter, e []field.Element) {
		a := e[0]
		s.is(t, field.ExpInt(s, a, s.q), a, "a^q", e...)
		if !a.IsZero() {
			s.is(t, field.ExpInt(s, a, s.top.Int()), field.One, "a^(q-1)", e...)
			s.is(t, field.ExpInt(s, a, new(big.Int).Sub(s.top.Int(), one)), s.Mul(field.ExpInt(s, a, s.top.Int()), s.Inv(a)), "a^(q-2)", e...)
		}
		power := field.One
		for n := range uint64(10) {
			s.is(t, field.Exp(s, a, n), power, "a^n", e...)
			power = s.Mul(power, a)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, n := s.random.Draw(t, "a"), rapid.Uint64().Draw(t, "n")
		s.is(t, field.Exp(s, a, n), field.ExpInt(s, a, new(big.Int).SetUint64(n)), "a^n", a)
	})
}

// generator checks that no power g^((q-1)/r), r prime, is 1, and that no smaller
// code would do. Of a large q-1 it knows the prime factors below 2^20 and what
// is left if that is prime; where that is not all, the check is weaker.
func (s *suite) generator(t *testing.T) {
	primes, complete := factors(s.top.Int())
	if complete {
		s.isLeastPrimitive(t, primes)
	} else if g := s.Generator(); g.IsZero() || !s.contains(g) || !s.primitive(g, primes) {
		t.Fatalf("the generator %v is not primitive", g)
	}
}

// primitive reports whether no power g^((q-1)/r) is 1, for the primes r that divide q-1.
func (s *suite) primitive(g field.Element, primes []*big.Int) bool {
	return !slices.ContainsFunc(primes, func(r *big.Int) bool {
		return field.ExpInt(s, g, new(big.Int).Div(s.top.Int(), r)) == field.One
	})
}

// isLeastPrimitive checks the generator, given all primes that divide q-1.
func (s *suite) isLeastPrimitive(t *testing.T, primes []*big.Int) {
	c := uint64(1)
	for !s.primitive(field.Code(c), primes) {
		c++
	}
	if g := s.Generator(); g != field.Code(c) {
		t.Fatalf("the generator is %v, want the least primitive element %d", g, c)
	}
}

// factors returns the prime factors of n that it finds, and whether these are
// all.
func factors(n *big.Int) (primes []*big.Int, complete bool) {
	n = new(big.Int).Set(n)
	d, rest := new(big.Int), new(big.Int)
	for i := int64(2); i < 1<<20 && n.Cmp(one) > 0; i++ {
		if n.IsInt64() && i*i > n.Int64() {
			break
		}
		d.SetInt64(i)
		if rest.Mod(n, d).Sign() != 0 {
			continue
		}
		primes = append(primes, big.NewInt(i))
		for rest.Mod(n, d).Sign() == 0 {
			n.Div(n, d)
		}
	}
	if n.Cmp(one) == 0 {
		return primes, true
	}
	if n.ProbablyPrime(20) {
		return append(primes, n), true
	}
	return primes, false
}

func (s *suite) symbols(t *testing.T) {
	s.each(t, 1, func(t reporter, e []field.Element) {
		want := e[0].Int().FillBytes(make([]byte, s.SymbolBytes()))
		slices.Reverse(want)
		want = append(want, guard)
		got := bytes.Repeat([]byte{guard}, len(want))
		field.PutSymbol(s, got, e[0])
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: PutSymbol(%v) left % x, want % x", s.Name(), e[0], got, want)
		}
		s.is(t, field.Symbol(s, got), e[0], "the symbol stored and read", e...)
	})
}

func (s *suite) firstInvalid(t *testing.T) {
	const symbols = 37
	n := s.SymbolBytes()
	valid := s.fill(make([]byte, symbols*n), func(int) field.Element { return s.top })
	for _, b := range [][]byte{nil, valid[:n], valid} {
		if i := s.FirstInvalid(b); i != -1 {
			t.Errorf("FirstInvalid of %d symbols q-1 is %d, want -1", len(b)/n, i)
		}
	}
	if s.q.BitLen() > 8*n {
		return // every symbol is an element
	}
	ones := bytes.Repeat([]byte{0xff}, n)
	order := s.q.FillBytes(make([]byte, n))
	slices.Reverse(order)
	for _, bad := range [][]byte{order, ones} {
		for want := range symbols {
			b := slices.Clone(valid)
			copy(b[want*n:], bad)
			copy(b[(symbols-1)*n:], bad)
			if i := s.FirstInvalid(b); i != want {
				t.Fatalf("FirstInvalid is %d with the symbol % x at %d", i, bad, want)
			}
		}
	}
}

func (s *suite) panics(t *testing.T) {
	n := s.SymbolBytes()
	packets := func(symbols ...int) (list [][]byte) {
		for _, k := range symbols {
			list = append(list, make([]byte, k*n))
		}
		return list
	}
	combine := func(length, coefs int, src ...int) func() {
		return func() { s.Combine(make([]byte, length), make([]field.Element, coefs), packets(src...)) }
	}
	m := s.Map([][]field.Element{{field.One, field.One}})
	for want, call := range map[string]func(){
		"inverse of zero": func() { s.Inv(field.Element{}) },
		fmt.Sprintf("Combine: len(src[0])=%d, len(dst)=%d", n, 2*n):         combine(2*n, 1, 1),
		fmt.Sprintf("Combine: len(src[1])=%d, len(dst)=%d", 2*n, n):         combine(n, 2, 1, 2),
		"Combine: len(coef)=0, len(src)=1":                                  combine(n, 0, 1),
		"Combine: len(coef)=1, len(src)=0":                                  combine(n, 1),
		"Map: no rows or no columns":                                        func() { s.Map(nil) },
		"Map: len(rows[1])=2, len(rows[0])=1":                               func() { s.Map([][]field.Element{{field.One}, {field.One, field.One}}) },
		"Apply: 2 outputs and 2 inputs for a map of 1 and 2":                func() { m.Apply(packets(1, 1), packets(1, 1), false) },
		fmt.Sprintf("Apply: len(inputs[1])=%d, len(outputs[0])=%d", 2*n, n): func() { m.Apply(packets(1), packets(1, 2), false) },
	} {
		wantPanic(t, want, call)
	}
	if n > 1 {
		part := fmt.Sprintf("=%d is no multiple of the %d bytes of a symbol", n+1, n)
		wantPanic(t, "Combine: len(dst)"+part, combine(n+1, 0))
		wantPanic(t, "Apply: len(outputs[0])"+part, func() { m.Apply([][]byte{make([]byte, n+1)}, packets(1, 1), false) })
	}
}

// wantPanic fails the test unless the call panics with a text that ends so.
func wantPanic(t *testing.T, want string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.HasSuffix(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	call()
}
