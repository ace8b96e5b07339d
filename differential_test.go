package volley_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"volley"
	"volley/algo"
	"volley/field"
	_ "volley/internal/rapidseed"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

var differentialTime = flag.Duration("differential.time", 0, "how long TestDifferential goes on; 0: for as many cases as -rapid.checks says")

// TestDifferential draws a field, a matrix, processors, ports, an algorithm, options
// and packets, encodes, and compares the coded packets with x·A by an [oracle], the
// matrix with its textbook formula, and the report with the letters counted on the way
// and with the plan. What has no plan has to say so by the documented errors.
//
// A failure names the case; -rapid.seed draws it again.
func TestDifferential(t *testing.T) {
	d := &differential{file: filepath.Join(t.TempDir(), "A.csv"), seen: map[string]map[string]int{}}
	if *differentialTime == 0 {
		rapid.Check(t, d.check)
		return
	}
	set := func(name, value string) {
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { flag.Set(name, old) })
	}
	set("rapid.checks", "250")
	first := uint64(time.Now().UnixNano())
	batches := uint64(0)
	for start := time.Now(); time.Since(start) < *differentialTime; batches++ {
		set("rapid.seed", fmt.Sprint(first+batches<<32))
		t.Run("batch", rapid.MakeCheck(d.check))
	}
	t.Logf("%d cases from the seeds %d + n·2^32, n < %d, and those that follow each", d.cases, first, batches)
	d.logCoverage(t)
}

// differential is what cases share.
type differential struct {
	file  string // for matrices that are read
	cases int
	seen  map[string]map[string]int // how often, by kind of thing
}

func (d *differential) count(kind, what string) {
	if d.seen[kind] == nil {
		d.seen[kind] = map[string]int{}
	}
	d.seen[kind][what]++
}

// logCoverage shows what was drawn how often, and fails where many cases have left
// something out.
func (d *differential) logCoverage(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(d.seen)) {
		var list []string
		for _, what := range slices.Sorted(maps.Keys(d.seen[kind])) {
			list = append(list, fmt.Sprintf("%s %d", what, d.seen[kind][what]))
		}
		t.Logf("%s: %s", kind, strings.Join(list, ", "))
	}
	if d.cases < 5_000 {
		return
	}
	for _, a := range algo.Parts() {
		if d.seen["algorithm that ran"][a.Name] == 0 {
			t.Errorf("%s never ran", a.Name)
		}
	}
	for _, f := range matrices.Families() {
		if d.seen["matrix"][f.Name] == 0 {
			t.Errorf("no matrix %s was encoded", f.Name)
		}
	}
}

// A fieldChoice is a field as it is named, and what it is.
type fieldChoice struct {
	kind, name, canonical string
	p                     *big.Int
	m                     int
	polynomial            uint64 // 0: the default
}

var fieldKinds = []string{
	"p, 1 byte", "p, 2 bytes", "p, 4 bytes", "2^w, w < 8", "2^w, w > 8", "2^8", "2^8 by others", "2^16", "2^16 by others",
	"p^m", "p^m by others", "goldilocks", "babybear, koalabear", "scalars",
}

var oracles = map[string]*oracle{}

func (c fieldChoice) oracle() *oracle {
	if oracles[c.canonical] == nil {
		oracles[c.canonical] = newOracle(c.p, c.m, c.polynomial)
	}
	return oracles[c.canonical]
}

func pick[T any](t *rapid.T, label string, list ...T) T {
	return rapid.SampledFrom(list).Draw(t, label)
}

// chance is true once in n times.
func chance(t *rapid.T, label string, n int) bool {
	return rapid.IntRange(0, n-1).Draw(t, label) == n-1
}

// drawField draws a field, of characteristic 2 where a family needs one.
func drawField(t *rapid.T, binary bool) fieldChoice {
	kinds := fieldKinds
	if binary {
		kinds = fieldKinds[3:9]
	}
	c := fieldChoice{kind: pick(t, "field", kinds...), m: 1}
	power := func(p int64, m int) {
		c.p, c.m = big.NewInt(p), m
		c.name = fmt.Sprintf("%d^%d", p, m)
	}
	prime := func(list ...string) {
		c.name = pick(t, "prime", list...)
		c.p = bigInt(c.name)
	}
	others := false
	switch c.kind {
	case "p, 1 byte":
		prime("2", "3", "5", "7", "11", "13", "17", "31", "61", "97", "127", "193", "241", "251")
	case "p, 2 bytes":
		prime("257", "433", "521", "769", "7681", "12289", "40961", "65521")
	case "p, 4 bytes":
		prime("65537", "786433", "998244353", "2147483629", "2147483647")
	case "2^w, w < 8":
		power(2, pick(t, "w", 2, 3, 4, 4, 5, 6, 7))
		others = chance(t, "other", 2)
	case "2^w, w > 8":
		power(2, rapid.IntRange(9, 15).Draw(t, "w"))
		others = chance(t, "other", 2)
	case "2^8", "2^8 by others":
		power(2, 8)
	case "2^16", "2^16 by others":
		power(2, 16)
	case "p^m", "p^m by others":
		x := pick(t, "p^m", [2]int{3, 2}, [2]int{3, 4}, [2]int{5, 3}, [2]int{7, 2}, [2]int{13, 2}, [2]int{5, 2}, [2]int{3, 5},
			[2]int{11, 2}, [2]int{3, 6}, [2]int{17, 3}, [2]int{13, 4}, [2]int{7, 5}, [2]int{3, 10}, [2]int{251, 2})
		power(int64(x[0]), x[1])
	case "goldilocks":
		c.name, c.p = c.kind, bigInt("0xffffffff00000001")
	case "babybear, koalabear":
		c.name, c.p = "babybear", bigInt("0x78000001")
		if chance(t, "other", 2) {
			c.name, c.p = "koalabear", bigInt("0x7f000001")
		}
	case "scalars":
		c.name, c.p = "bls12-381", bigInt("0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001")
		if chance(t, "other", 2) {
			c.name, c.p = "bn254", bigInt("0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001")
		}
	}
	c.canonical = c.name
	q := new(big.Int).Exp(c.p, big.NewInt(int64(c.m)), nil)
	switch {
	case others || strings.HasSuffix(c.kind, "by others"):
		lead := q.Uint64()
		c.polynomial = lead + rapid.Uint64Range(0, lead-1).Draw(t, "polynomial")
		for !irreducible(c.polynomial, c.p, c.m) {
			if c.polynomial++; c.polynomial == 2*lead {
				c.polynomial = lead
			}
		}
		plain := c
		plain.polynomial = 0
		if d := plain.oracle().modulus; !slices.Equal(d, digits(c.polynomial, c.p, c.m+1)) {
			c.canonical = fmt.Sprintf("%s:%#x", c.name, c.polynomial)
		}
		c.name = fmt.Sprintf(pick(t, "radix", "%s:%#x", "%s:%d"), c.name, c.polynomial)
	case chance(t, "written out", 8):
		c.name = q.String()
	}
	return c
}

// A trial is one case.
type trial struct {
	fieldChoice
	recipe
	style string // of entries that are drawn
	views []string

	algorithm string
	ports     int
	separate  bool
	order     algo.Order
	whole     bool
	check     bool
	limits    algo.Limits
	memory    int64
	beta      time.Duration
	tau       sim.PerByte // negative: the default
	gamma     sim.PerByte
	longest   []int // symbols of the longest packet, by run
	lengths   string
	flaw      string
	call      string
	data      uint64 // seed of packets, entries and points

	o *oracle
	a matrix.Matrix
	e [][]number // its entries
}

// String is what it takes to do it again.
func (c *trial) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "field %s, matrix %s", c.name, c.family)
	for _, x := range []struct{ name, value string }{
		{"seed", fmt.Sprint(c.seed)}, {"entries", c.style}, {"points", c.points}, {"omega", c.omega}, {"alpha", c.alpha},
	} {
		if x.value != "" && x.value != "0" {
			fmt.Fprintf(&s, " %s %s", x.name, x.value)
		}
	}
	for _, list := range c.lists {
		if list != nil {
			fmt.Fprintf(&s, " [")
			for _, z := range list {
				fmt.Fprintf(&s, " %v", c.o.codeOf(z))
			}
			fmt.Fprintf(&s, " ]")
		}
	}
	if c.reversed {
		s.WriteString(" reversed")
	}
	if c.inverse {
		s.WriteString(" inverse")
	}
	fmt.Fprintf(&s, " of %d rows and %d columns, data %d", c.k, c.r, c.data)
	if len(c.views) > 0 {
		fmt.Fprintf(&s, ", then %s", strings.Join(c.views, ", "))
	}
	if c.algorithm == "" { // not drawn yet
		return s.String()
	}
	fmt.Fprintf(&s, "\nK = %d, R = %d, separate %v, p = %d, algorithm %s, order %v, whole %v, check %v, limits %+v, memory %d, β %v, τ %v, γ %v",
		c.a.Rows(), c.a.Cols(), c.separate, c.ports, c.algorithm, c.order, c.whole, c.check, c.limits, c.memory, c.beta, c.tau, c.gamma)
	fmt.Fprintf(&s, "\nlongest packets of %v symbols, lengths %s, flaw %q, by %s", c.longest, c.lengths, c.flaw, c.call)
	return s.String()
}

// rng returns random numbers for a purpose.
func (c *trial) rng(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(c.data, purpose)) }

// pointKinds are those of [oracle.pool].
var pointKinds = []string{"any", "subspaces", "cosets", "subspaces", "cosets", "cubics"}

// drawMatrix draws what matrix it is and how large.
func (c *trial) drawMatrix(t *rapid.T) {
	families := []string{"dense", "dense"}
	for _, f := range slices.Backward(matrices.Families()) {
		families = append(families, f.Name)
	}
	c.family = pick(t, "family", families...)
	c.fieldChoice = drawField(t, c.family == "lch")
	c.o = c.oracle()
	c.data = rapid.Uint64().Draw(t, "data")

	most := pick(t, "most", 4, 6, 8, 8, 12, 12, 16, 16, 20, 24, 30, 40, 130)
	c.k = rapid.IntRange(1, most).Draw(t, "K")
	if chance(t, "round K", 3) {
		c.k = pick(t, "K", 7, 8, 12, 16, 16, 18, 24, 24, 24, 27, 32, 32, 36, 48, 60, 64, 75, 81, 96, 112, 128)
	}
	c.r = c.k
	switch pick(t, "shape", "square", "square", "square", "square", "fewer", "more", "divisor", "multiple", "blocks", "blocks", "few") {
	case "fewer":
		c.r = rapid.IntRange(1, c.k).Draw(t, "R")
	case "more":
		c.r = rapid.IntRange(c.k, max(c.k, min(130, 3*c.k))).Draw(t, "R")
	case "divisor":
		for d := pick(t, "divisor", 2, 3, 4, 5, 6, 8); d > 1; d-- {
			if c.k%d == 0 {
				c.r = c.k / d
				break
			}
		}
	case "multiple":
		c.r = c.k * pick(t, "multiple", 2, 3, 4)
		if c.r > 130 {
			c.r = c.k
		}
	case "blocks": // large enough for structure
		c.k = pick(t, "block", 8, 12, 16, 16, 18, 24, 27, 32, 32)
		if c.r = c.k * pick(t, "blocks", 2, 2, 3); chance(t, "of rows", 2) {
			c.k, c.r = c.r, c.k
		}
	case "few":
		c.r = min(c.k, rapid.IntRange(1, 3).Draw(t, "few"))
	}
	if c.family == "dft" || c.family == "fti" {
		c.r = c.k
	}
	if c.k == c.r && c.family != "dense" {
		c.inverse = chance(t, "inverse", 4)
	}

	words := []string{"", "coset", "powers", "codes", "list", "list"}
	switch c.family {
	case "cauchy", "lagrange":
		c.omega, c.alpha = pick(t, "omega", words...), ""
		if c.alpha = c.omega; chance(t, "mixed", 4) {
			c.alpha = pick(t, "alpha", words[:4]...)
		}
	case "vandermonde":
		c.points = pick(t, "points", words...)
	case "dft":
		c.reversed = chance(t, "reversed", 3)
	case "random":
		c.seed = rapid.Uint64().Draw(t, "seed")
	case "file", "dense":
		c.style = pick(t, "entries", "any", "any", "bits", "sparse", "permutation", "rank one", "triangular", "identity", "zero", "blocks")
	}
	if !chance(t, "as it comes", 20) { // no matrix: an error
		c.shrink()
	}
	if c.omega == "list" || c.points == "list" {
		kind := pick(t, "kind of points", pointKinds...)
		fibre := pick(t, "fibre", 2, 3, 4, 6, 8, 16)
		if chance(t, "whole fibres", 2) {
			for gcd(c.k, c.r)%fibre != 0 {
				fibre--
			}
		}
		n := c.r
		if c.points != "list" {
			n += c.k
		}
		rng := c.rng(1)
		pool := c.o.pool(rng, kind, n, fibre)
		if pool == nil { // fewer elements than points
			c.omega, c.alpha, c.points = "", "", ""
			return
		}
		shuffle := func(list []number) {
			rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		if c.points == "list" {
			c.lists[1] = pool
		} else if c.lists[0] = slices.Clone(pool[:c.k]); c.alpha == "list" {
			c.lists[1] = slices.Clone(pool[c.k:])
			if c.family == "lagrange" && chance(t, "common points", 3) {
				c.lists[1] = slices.Clone(pool[:c.r])
			}
		}
		if chance(t, "shuffled", 2) {
			shuffle(c.lists[0])
			shuffle(c.lists[1])
		}
	}
}

// shrink makes K and R smaller until there is such a matrix.
func (c *trial) shrink() {
	for !c.o.fits(c.recipe) && c.k+c.r > 2 {
		switch {
		case c.k == c.r:
			c.k, c.r = c.k-1, c.r-1
		case c.k > c.r:
			c.k--
		default:
			c.r--
		}
	}
}

// listed returns the points of a list.
func (c *trial) listed(t *rapid.T, f field.Field, list []number) matrix.Points {
	var text strings.Builder
	for _, z := range list {
		fmt.Fprintln(&text, c.o.codeOf(z))
	}
	p, err := matrices.ReadPoints(f, strings.NewReader(text.String()), "list")
	if err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	return p
}

// drawn returns entry (i, j) of a matrix whose entries are drawn.
func (c *trial) drawn() func(i, j int) number {
	rng := c.rng(2)
	zero, one := c.o.code(0), c.o.one()
	rows := make([][]number, c.k)
	order := rng.Perm(max(c.k, c.r))
	var left, right []number
	for range order {
		left, right = append(left, c.o.draw(rng)), append(right, c.o.draw(rng))
	}
	for i := range rows {
		for j := range c.r {
			v := zero
			keep := false
			switch c.style {
			case "any":
				keep = true
			case "bits":
				if rng.IntN(2) == 0 {
					v = one
				}
			case "sparse":
				keep = rng.IntN(4) == 0
			case "permutation":
				keep = order[i] == j
			case "rank one":
				v = c.o.mul(left[i], right[j])
			case "triangular":
				keep = i <= j
			case "identity":
				if i == j {
					v = one
				}
			case "blocks":
				keep = i/4 == j/4
			}
			if keep {
				v = c.o.draw(rng)
			}
			rows[i] = append(rows[i], v)
		}
	}
	return func(i, j int) number { return rows[i][j] }
}

// build makes the matrix and compares it with the textbook; false says that there is
// none, as there should not be.
func (c *trial) build(t *rapid.T, f field.Field, file string) bool {
	o := c.o
	var a matrix.Matrix
	var err error
	spec := matrices.Spec{Family: c.family, Points: c.points, Omega: c.omega, Alpha: c.alpha, Inverse: c.inverse}
	if c.reversed {
		spec.Order = "reversed"
	}
	var l law
	there := o.fits(c.recipe)
	switch {
	case c.family == "file" || c.family == "dense":
		at := c.drawn()
		l, there = law{right: at}, true
		if c.inverse {
			l = law{at, o.kronecker}
		}
		if c.family == "dense" {
			d := matrix.NewDense(f, c.k, c.r)
			for i := range c.k {
				for j := range c.r {
					e, err := field.FromInt(o.codeOf(at(i, j)))
					if err != nil {
						t.Fatalf("%v\n%v", c, err)
					}
					d.Set(i, j, e)
				}
			}
			a = d
			break
		}
		var text bytes.Buffer
		fmt.Fprintf(&text, "# %d×%d\n\n", c.k, c.r)
		for i := range c.k {
			for j := range c.r {
				if j > 0 {
					text.WriteString(", ")
				}
				fmt.Fprint(&text, o.codeOf(at(i, j)))
			}
			text.WriteString("\n")
		}
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		spec.Argument = file
		a, err = spec.Build(f, c.k, c.r)
	case c.omega == "list" || c.points == "list":
		if !there {
			return false // alpha's word does not fit, which is for recipes without lists
		}
		l, there = o.textbook(c.recipe)
		names := [2]string{"omega", "alpha"}
		if c.family == "cauchy" {
			names = [2]string{"x", "y"}
		}
		lists := c.lists
		if lists[1] == nil {
			usual := map[string]string{"cauchy": "codes", "lagrange": "coset"}[c.family]
			lists[1] = o.word(orElse(c.alpha, usual), c.r, c.k, o.unitGCD(gcd(c.k, c.r)))
		}
		var sets []matrix.PointSet
		for s, list := range lists {
			if list != nil {
				sets = append(sets, matrix.PointSet{Name: names[s], Points: c.listed(t, f, list)})
			}
		}
		a, err = spec.BuildFrom(f, c.k, c.r, sets, nil)
	default:
		if there {
			l, there = o.textbook(c.recipe)
		}
		if c.family == "random" {
			spec.Argument = fmt.Sprint(c.seed)
		}
		a, err = spec.Build(f, c.k, c.r)
	}
	if errors.Is(err, matrix.ErrSingular) && there && c.inverse {
		if c.k <= 40 && !o.singular(c.k, l.left) {
			t.Fatalf("%v\nsaid to be singular, and it is not: %v", c, err)
		}
		return false
	}
	if (err == nil) != there {
		t.Fatalf("%v\nby the documentation there is such a matrix: %v; got error %v", c, there, err)
	}
	if err != nil {
		return false
	}
	if a.Rows() != c.k || a.Cols() != c.r || a.Field().Name() != c.canonical {
		t.Fatalf("%v\nbuilt a %d×%d matrix over %s", c, a.Rows(), a.Cols(), a.Field().Name())
	}
	c.a, c.e = a, o.entries(a)
	c.compare(t, l)
	c.view(t)
	return true
}

func (o *oracle) kronecker(i, j int) number {
	if i == j {
		return o.one()
	}
	return o.code(0)
}

func (o *oracle) entries(a matrix.Matrix) [][]number {
	e := make([][]number, a.Rows())
	for i := range e {
		for j := range a.Cols() {
			e[i] = append(e[i], o.element(a.At(i, j).Int()))
		}
	}
	return e
}

// compare compares the entries, some of them where there are many, with a law.
func (c *trial) compare(t *rapid.T, l law) {
	o, rng := c.o, c.rng(3)
	indices := func(n, most int) []int { return rng.Perm(n)[:min(n, most)] }
	if l.left == nil {
		for _, i := range indices(c.k, 16) {
			for _, j := range indices(c.r, 16) {
				if want := l.right(i, j); !o.equal(c.e[i][j], want) {
					t.Fatalf("%v\nA[%d][%d] = %v, by the textbook %v", c, i, j, o.codeOf(c.e[i][j]), o.codeOf(want))
				}
			}
		}
		return
	}
	for _, i := range indices(c.k, 4) {
		row := make([]number, c.k)
		for n := range row {
			row[n] = l.left(i, n)
		}
		for _, j := range indices(c.r, 16) {
			column := make([]number, c.k)
			for n := range column {
				column[n] = c.e[n][j]
			}
			if got, want := o.dot(row, column), l.right(i, j); !o.equal(got, want) {
				t.Fatalf("%v\n(left·A)[%d][%d] = %v, by the textbook %v", c, i, j, o.codeOf(got), o.codeOf(want))
			}
		}
	}
}

// view draws views of the matrix.
func (c *trial) view(t *rapid.T) {
	for n := pick(t, "views", 0, 0, 0, 0, 0, 0, 1, 2); n > 0; n-- {
		old := c.e
		k, r := c.a.Rows(), c.a.Cols()
		var e [][]number
		switch view := pick(t, "view", "transpose", "columns", "block", "dense"); view {
		case "transpose":
			c.views, c.a = append(c.views, view), matrix.Transpose(c.a)
			for j := range r {
				var row []number
				for i := range k {
					row = append(row, old[i][j])
				}
				e = append(e, row)
			}
		case "columns":
			if k != r {
				continue
			}
			order := c.rng(4).Perm(k)
			a, err := matrix.Columns(c.a, order)
			if err != nil {
				t.Fatalf("%v\n%v", c, err)
			}
			c.views, c.a = append(c.views, fmt.Sprint("columns ", order)), a
			for i := range k {
				var row []number
				for _, j := range order {
					row = append(row, old[i][j])
				}
				e = append(e, row)
			}
		case "block":
			rows := rapid.IntRange(1, k).Draw(t, "rows")
			first := rapid.IntRange(0, k-rows).Draw(t, "first")
			if chance(t, "aligned", 2) {
				for k%rows != 0 {
					rows--
				}
				first = first / rows * rows
			}
			c.views, c.a = append(c.views, fmt.Sprintf("%d rows from %d", rows, first)), matrix.Block(c.a, first, rows)
			e = old[first : first+rows]
		case "dense":
			c.views, c.a = append(c.views, view), matrix.DenseOf(c.a)
			e = old
		}
		c.e = e
		for i, row := range c.o.entries(c.a) {
			for j, got := range row {
				if !c.o.equal(got, e[i][j]) {
					t.Fatalf("%v\nA[%d][%d] = %v, want %v", c, i, j, c.o.codeOf(got), c.o.codeOf(e[i][j]))
				}
			}
		}
	}
}

// suited lists algorithms that may have a plan for the matrix.
func (c *trial) suited() []string {
	if !c.square() {
		list := []string{"sinks", "helpers", "exchange"}
		if few, many := min(c.a.Rows(), c.a.Cols()), max(c.a.Rows(), c.a.Cols()); many%few == 0 && few > 7 && c.style == "" {
			list = append(list, slices.Repeat([]string{"sinks-structured"}, 4)...)
		}
		return list
	}
	list := []string{"universal", "exchange", "prepare-and-shoot", "windows"}
	of := map[string][]string{
		"dft": {"dft", "dft"}, "vandermonde": {"draw-and-loose", "draw-and-loose"}, "rs:par1": {"draw-and-loose"}, "rs:par2": {"draw-and-loose"},
		"lagrange": {"lagrange", "folded-lagrange"}, "rs:vandermonde": {"lagrange", "folded-lagrange"},
		"cauchy": {"cauchy"}, "rs:cauchy": {"cauchy"}, "fti": {"cauchy"},
		"lch": {"additive-fft", "additive-fft"},
	}
	return append(list, slices.Repeat(of[c.family], 3)...)
}

func (c *trial) square() bool { return !c.separate && c.a.Rows() == c.a.Cols() }

func (c *trial) processors() int {
	if c.separate {
		return c.a.Rows() + c.a.Cols()
	}
	return max(c.a.Rows(), c.a.Cols())
}

// drawRun draws everything but the matrix.
func (c *trial) drawRun(t *rapid.T) {
	k, r := c.a.Rows(), c.a.Cols()
	c.separate = chance(t, "separate", 3)
	if k == r && c.separate {
		c.separate = chance(t, "apart though square", 3)
	}
	c.separate = c.separate && k+r <= 160
	var names []string
	for _, a := range append(algo.Algorithms(), algo.Parts()...) {
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	switch pick(t, "which", "auto", "auto", "suited", "suited", "suited", "suited", "any") {
	case "auto":
		c.algorithm = algo.Auto
	case "suited":
		c.algorithm = pick(t, "algorithm", c.suited()...)
	default:
		c.algorithm = pick(t, "algorithm", names...)
	}
	c.ports = rapid.IntRange(1, 6).Draw(t, "p")
	switch {
	case chance(t, "network", 3):
		c.ports = 0
	case chance(t, "one port", 2):
		c.ports = 1
	}
	c.order = pick(t, "order", algo.Natural, algo.AnyOrder)
	c.whole, c.check = chance(t, "whole", 4), rapid.Bool().Draw(t, "check")
	c.limits = algo.Limits{}
	if chance(t, "rounds over", 6) {
		c.limits.Rounds = algo.FewestPlus(rapid.IntRange(0, 4).Draw(t, "over"))
	}
	if chance(t, "memory limit", 8) {
		c.limits.Memory = rapid.IntRange(1, 3*c.processors()).Draw(t, "packets")
	}
	if chance(t, "compute limit", 8) {
		c.limits.Compute = rapid.IntRange(1, 2*k+2).Draw(t, "multiply-adds")
	}
	c.beta = pick(t, "beta", volley.DefaultBeta, 0, time.Millisecond, time.Second)
	c.tau = pick[sim.PerByte](t, "tau", -1, 0, 1e-9, 1e-3)
	c.gamma = pick[sim.PerByte](t, "gamma", 0, 0, 1e-9, 1e-4)
	c.memory = pick(t, "memory", int64(volley.DefaultMemory), 1, 1<<10, 8<<10, 64<<10, 1<<20)
	c.call = pick(t, "call", "Encoder.Run", "Encoder.Encode", "Encode")
	if c.processors() > 24 && c.call == "Encode" {
		c.call = "Encoder.Encode" // it would look for a plan at every processor
	}
	c.lengths = pick(t, "lengths", "equal", "any", "ascending", "one", "few")
	for range pick(t, "runs", 1, 1, 1, 2) {
		var fit []int
		for _, n := range []int{0, 1, 2, 3, 5, 8, 13, 31, 63, 64, 65, 100, 127, 128, 129, 200, 256, 257, 511, 513, 1000, 1025, 4095, 4097, 10_001, 33_000, 70_001, 300_000} {
			if n <= 8 || n*k*c.o.symbolBytes <= 300_000 && n*k*r <= 150_000 || n*k*c.o.symbolBytes < 1_000_000 && k <= 4 {
				fit = append(fit, n)
			}
		}
		c.longest = append(c.longest, pick(t, "longest", fit...))
	}
	if chance(t, "flaw", 25) {
		var flaws []string
		if c.o.symbolBytes > 1 {
			flaws = append(flaws, "odd")
		}
		if c.o.q.Cmp(new(big.Int).Lsh(big.NewInt(1), uint(8*c.o.symbolBytes))) != 0 {
			flaws = append(flaws, "outside")
		}
		if c.processors() > k {
			flaws = append(flaws, "no source")
		}
		if len(flaws) > 0 {
			c.flaw = pick(t, "flaw", flaws...)
			c.longest = []int{max(1, c.longest[0])}
		}
	}
}

func (c *trial) options() []volley.Option {
	list := []volley.Option{
		volley.WithAlgorithm(c.algorithm), volley.WithOrder(c.order), volley.WithCheck(c.check),
		volley.WithLimits(c.limits), volley.WithMemory(c.memory), volley.WithGamma(c.gamma),
		volley.WithTimeout(3 * time.Minute), // for a run that hangs, not for one of many processors on a busy machine
	}
	if m := c.model(0); c.ports > 0 {
		list = append(list, volley.WithPaperModel(c.ports, m.Beta, m.Tau))
	} else {
		list = append(list, volley.WithNetwork(m.Network))
	}
	if c.separate {
		list = append(list, volley.WithSeparateSinks())
	}
	if c.whole {
		list = append(list, volley.WithWholePackets())
	}
	return list
}

func (c *trial) model(symbols int) sim.Model {
	m := sim.Model{Beta: c.beta, Tau: c.tau, Gamma: c.gamma, Bytes: int64(symbols * c.o.symbolBytes), SymbolBytes: c.o.symbolBytes}
	if c.tau < 0 {
		m.Tau = volley.DefaultTau
	}
	if c.ports == 0 {
		m.Network = sim.Network{Latency: m.Beta + 1, Overhead: m.Beta / 10, Gap: m.Tau} // all 0 would be the model of the paper
		m.Beta, m.Tau = 0, 0
	}
	return m
}

// packets returns the packets of all processors for a run.
func (c *trial) packets(run int) [][]byte {
	rng, longest := c.rng(uint64(10+run)), c.longest[run]
	list := make([][]byte, c.processors())
	k := c.a.Rows()
	for i := range k {
		n := longest
		switch c.lengths {
		case "any":
			n = rng.IntN(longest + 1)
		case "ascending":
			n = longest * i / max(1, k-1)
		case "one":
			if i != k/2 {
				n = 0
			}
		case "few":
			n = min(n, rng.IntN(3)*longest)
		}
		list[i] = make([]byte, n*c.o.symbolBytes)
		if n > 2000 { // of short elements, which are quick to draw
			small := c.o.draw(rng)
			for s := range n {
				if s%61 == 0 {
					small = c.o.draw(rng)
				}
				c.o.put(list[i][s*c.o.symbolBytes:], small)
			}
			continue
		}
		for s := range n {
			c.o.put(list[i][s*c.o.symbolBytes:], c.o.draw(rng))
		}
	}
	return list
}

// mayHave says what the documentation says of an algorithm's plans for the problem
// without limits: there are, there are none, or it depends.
func (c *trial) mayHave() (there, none bool) {
	k, r := c.a.Rows(), c.a.Cols()
	plain := !slices.ContainsFunc(c.views, func(v string) bool { return v == "dense" || strings.Contains(v, "rows") })
	switch c.algorithm {
	case algo.Auto:
		return true, false
	case "universal", "prepare-and-shoot", "bruck-allgather":
		return c.square(), !c.square()
	case "exchange":
		n, most := max(k, r), 256
		if c.square() {
			most = 512
		}
		return n > 1 && n <= most, n == 1 || n > most
	case "sinks":
		return !c.square(), c.square()
	case "sinks-structured", "helpers":
		return false, c.square()
	case "relay": // for traffic, and not for a matrix
		return false, true
	case "dft":
		return plain && c.square() && c.family == "dft", !c.square() || c.family != "dft"
	case "draw-and-loose":
		return false, !c.square() || c.family != "vandermonde" && c.family != "rs:par1" && c.family != "rs:par2"
	case "lagrange", "folded-lagrange":
		return plain && c.square() && c.family == "rs:vandermonde" && c.p.Int64() == 2 && k%2 == 0,
			!c.square() || c.family != "rs:vandermonde" && c.family != "lagrange"
	case "cauchy":
		return plain && c.square() && c.family != "lagrange" && c.omega+c.alpha == "" && c.p.Int64() == 2 && k%2 == 0 &&
			(c.family == "cauchy" || c.family == "rs:cauchy" || c.family == "fti"), !c.square()
	case "additive-fft":
		return plain && c.square() && c.family == "lch" && k%2 == 0, !c.square() || c.family != "lch"
	}
	return false, false
}

// check draws a case and does it.
func (d *differential) check(t *rapid.T) {
	c := &trial{}
	c.drawMatrix(t)
	f, err := field.Parse(c.name)
	if err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	o := c.o
	if f.Name() != c.canonical || f.Order().Cmp(o.q) != 0 || f.Characteristic().Cmp(o.p) != 0 || f.Degree() != o.m ||
		f.SymbolBytes() != o.symbolBytes || f.Generator().Int().Cmp(o.codeOf(o.generator)) != 0 {
		t.Fatalf("%v\ngot the field %s of %v = %v^%d elements in %d bytes, generator %v; want %s of %v = %v^%d in %d bytes, generator %v", c,
			f.Name(), f.Order(), f.Characteristic(), f.Degree(), f.SymbolBytes(), f.Generator(),
			c.canonical, o.q, o.p, o.m, o.symbolBytes, o.codeOf(o.generator))
	}
	d.cases++
	d.count("field", c.kind)
	if !c.build(t, f, d.file) {
		d.count("outcome", "no such matrix")
		return
	}
	c.drawRun(t)
	d.count("matrix", c.family)
	d.count("points", c.points+c.omega)
	d.count("inverse, views", fmt.Sprint(c.inverse, ", ", len(c.views)))
	d.count("shape", fmt.Sprintf("square %v, separate %v", c.a.Rows() == c.a.Cols(), c.separate))
	d.count("algorithm asked for", c.algorithm)
	p := c.plan(t, d)
	if p == nil {
		return
	}
	d.count("algorithm that ran", p.Info().Algorithm)
	d.count("ports", fmt.Sprint(c.ports))
	size := "1"
	for _, n := range []int{2, 10, 100} {
		if c.processors() >= n {
			size = fmt.Sprintf("%d or more", n)
		}
	}
	d.count("processors", size)
	c.run(t, d)
}

// plan returns the plan of the first run, and nil where there is none; then the limit
// or the structure is to blame, and processors say so.
func (c *trial) plan(t *rapid.T, d *differential) plan.Plan {
	encoder, err := volley.NewEncoder(t.Context(), c.a, c.options()...)
	if err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	p, err := encoder.Plan(t.Context(), nil, int64(c.longest[0]))
	there, none := c.mayHave()
	limit := (*algo.LimitError)(nil)
	switch {
	case err == nil && none:
		t.Fatalf("%v\na plan of %s, which by the documentation has none", c, c.algorithm)
	case err == nil:
		c.keeps(t, p)
		return p
	case errors.As(err, &limit):
		if c.limits == (algo.Limits{}) && !(limit.WholePackets && c.whole) {
			t.Fatalf("%v\nwithout limits: %v", c, err)
		}
		c.loosen(t, limit)
		d.count("outcome", "no plan keeps the limits")
	case !errors.Is(err, algo.ErrStructure):
		t.Fatalf("%v\nneither a structure that is missing nor a limit: %v", c, err)
	case there && c.limits == (algo.Limits{}):
		t.Fatalf("%v\nby the documentation there is a plan: %v", c, err)
	default:
		d.count("outcome", "no such structure")
	}
	if c.processors() > 12 {
		return nil
	}
	c.flaw = ""
	for k, r := range c.encode(t, nil) {
		if e := r[0].err; !errors.Is(e, algo.ErrStructure) && !errors.As(e, &limit) {
			t.Fatalf("%v\nprocessor %d: %v, want %v", c, k, e, err)
		}
	}
	return nil
}

// keeps checks that a plan keeps the limits and, of the cheapest one, that it is not
// dearer than that of another algorithm.
func (c *trial) keeps(t *rapid.T, p plan.Plan) {
	cost, model := sim.Count(p), c.model(c.longest[0])
	problem := c.problem(t)
	fewest := problem.MostRounds() - c.limits.Rounds.Excess()
	held := (plan.MemorySlots(p) + cost.Pieces - 1) / cost.Pieces
	switch l := c.limits; {
	case l.Rounds.Excess() >= 0 && cost.C1 > fewest+l.Rounds.Excess():
		t.Fatalf("%v\n%d rounds, the fewest possible are %d", c, cost.C1, fewest)
	case l.Memory > 0 && held > l.Memory:
		t.Fatalf("%v\n%d packets held", c, held)
	case l.Compute > 0 && cost.PacketC3() > l.Compute:
		t.Fatalf("%v\n%d multiply-adds", c, cost.PacketC3())
	case problem.WholePackets && cost.Pieces > 1:
		t.Fatalf("%v\n%d pieces", c, cost.Pieces)
	}
	if c.processors() <= 24 {
		if err := plan.Validate(t.Context(), p); err != nil {
			t.Fatalf("%v\n%v", c, err)
		}
	}
	if c.algorithm != algo.Auto {
		return
	}
	other := pick(t, "another", c.suited()...)
	q, err := algo.Choose(other, problem, model)
	if err != nil {
		return
	}
	if theirs := sim.Count(q); model.Time(theirs) < model.Time(cost) {
		t.Fatalf("%v\nauto takes %s %s, %v; %s %s would take %v", c, p.Info().Algorithm, p.Info().Parameters, model.Time(cost),
			other, q.Info().Parameters, model.Time(theirs))
	}
}

func (c *trial) problem(t *rapid.T) *algo.Problem {
	p := &algo.Problem{Matrix: c.a, Separate: c.separate, Ports: c.ports, Order: c.order, Limits: c.limits}
	p.WholePackets = c.whole || c.ports > 0 && c.square() && c.algorithm == algo.Auto
	if err := p.Prepare(); err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	return p
}

// loosen checks what a LimitError says: each of its limits would do, and no less.
func (c *trial) loosen(t *rapid.T, e *algo.LimitError) {
	for _, x := range []struct {
		name      string
		now, want int
		set       func(*algo.Limits, int)
		least     int
	}{
		{"rounds", c.limits.Rounds.Excess(), e.RoundsOver, func(l *algo.Limits, n int) { l.Rounds = algo.FewestPlus(n) }, 0},
		{"memory", c.limits.Memory, e.Memory, func(l *algo.Limits, n int) { l.Memory = n }, 1},
		{"compute", c.limits.Compute, e.Compute, func(l *algo.Limits, n int) { l.Compute = n }, 1},
	} {
		if x.now < x.least || x.want < 0 { // no limit, or none that would do
			continue
		}
		for _, n := range []int{x.want, x.want - 1} {
			problem := c.problem(t)
			x.set(&problem.Limits, n)
			if n < x.least {
				continue
			}
			if _, err := algo.Choose(c.algorithm, problem, c.model(c.longest[0])); (err == nil) != (n == x.want) {
				t.Fatalf("%v\nby the error %d %s would do, and no less; with %d got error %v", c, x.want, x.name, n, err)
			}
		}
	}
}

// A letter is what a processor sent or asked for, as the transport sees it.
type letter struct {
	queue transport.Queue
	sent  bool
	tag   transport.Tag
	peer  int
	parts []int // bytes
}

// A counted transport notes letters.
type counted struct {
	transport.Transport
	mu      sync.Mutex // guards letters, in which lanes write
	letters []letter
}

func (c *counted) note(l letter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.letters = append(c.letters, l)
}

type countedQueue struct {
	transport.Queue
	of *counted
}

func (c *counted) NewQueue() transport.Queue { return countedQueue{c.Transport.NewQueue(), c} }

func (q countedQueue) Post(transfers ...*transport.Transfer) {
	for _, t := range transfers {
		q.of.note(letter{q.Queue, !t.Receive, t.Tag, t.Rank, t.Lengths()})
	}
	q.Queue.Post(transfers...)
}

// An outcome is what a processor has of a run.
type outcome struct {
	coded   []byte
	report  *volley.Report
	err     error
	letters []letter
}

// ascending takes a coded packet, and notes where it is not written from 0 on.
type ascending struct {
	data []byte
	gap  bool
}

func (w *ascending) WriteAt(p []byte, offset int64) (int, error) {
	w.gap = w.gap || offset != int64(len(w.data))
	w.data = append(w.data, p...)
	return len(p), nil
}

// encode does all runs at all processors, on the packets given by run, else on drawn
// ones. A panic is an error.
func (c *trial) encode(t *rapid.T, packets [][][]byte) [][]outcome {
	if packets == nil {
		packets = append(packets, c.packets(0))
	}
	shared, err := volley.NewEncoder(t.Context(), c.a, c.options()...)
	if err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	all := make([][]outcome, c.processors())
	var wg sync.WaitGroup
	for k, end := range local.New(len(all)) {
		wg.Go(func() {
			all[k] = make([]outcome, len(packets))
			tr := &counted{Transport: end}
			r := &all[k][0]
			defer func() {
				if x := recover(); x != nil {
					r.err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
					end.Abort(r.err)
				}
			}()
			for n, list := range packets {
				r = &all[k][n]
				first := len(tr.letters)
				ctx := context.Background()
				switch c.call {
				case "Encode":
					r.coded, r.report, r.err = volley.Encode(ctx, tr, c.a, list[k], c.options()...)
				case "Encoder.Encode":
					r.coded, r.report, r.err = shared.Encode(ctx, tr, list[k])
				default:
					var out ascending
					r.report, r.err = shared.Run(ctx, tr, volley.Packet{Source: bytes.NewReader(list[k]), Size: int64(len(list[k])), Coded: &out})
					if r.coded = out.data; out.gap && r.err == nil {
						r.err = errors.New("not written in ascending order")
					}
				}
				if r.letters = slices.Concat(jobs(tr.letters[first:])...); r.err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return all
}

// run encodes and compares.
func (c *trial) run(t *rapid.T, d *differential) {
	var packets [][][]byte
	for run := range c.longest {
		packets = append(packets, c.packets(run))
	}
	victim, text := c.spoil(packets[0])
	all := c.encode(t, packets)
	for tries := 0; ; tries++ {
		low := c.tooLow(all)
		if low == nil {
			break
		}
		d.count("outcome", "too little memory")
		if low.Least <= c.memory || low.Memory != c.memory || tries == len(packets) {
			t.Fatalf("%v\n%+v", c, low)
		}
		c.memory = low.Least // which should do for this run
		all = c.encode(t, packets)
	}
	if c.flaw != "" {
		d.count("outcome", "flaw: "+c.flaw)
		c.spoilt(t, all, victim, text)
		return
	}
	for run := range packets {
		var reports []*volley.Report
		for k := range all {
			if err := all[k][run].err; err != nil {
				t.Fatalf("%v\nrun %d, processor %d: %v", c, run, k, err)
			}
			reports = append(reports, all[k][run].report)
		}
		c.compareCoded(t, run, packets[run], all)
		c.compareReports(t, run, packets[run], reports, all)
	}
	d.count("outcome", "encoded")
	if reports := all[0][0].report; reports.Segments > 1 {
		d.count("outcome", "encoded in segments")
	}
	if all[0][0].report.Pieces > 1 {
		d.count("outcome", "encoded in pieces")
	}
	if len(all[0][0].report.Columns) > 0 {
		d.count("outcome", "encoded, relabelled")
	}
}

// tooLow returns the error of the first run that had too little memory.
func (c *trial) tooLow(all [][]outcome) *volley.MemoryError {
	for run := range c.longest {
		if low := (*volley.MemoryError)(nil); errors.As(all[0][run].err, &low) {
			return low
		}
	}
	return nil
}

// spoil makes the packets of a run wrong, and returns whose, and what that processor is
// to say.
func (c *trial) spoil(packets [][]byte) (victim int, text string) {
	rng := c.rng(20)
	victim = rng.IntN(c.a.Rows())
	size := c.o.symbolBytes
	switch c.flaw {
	case "odd":
		packets[victim] = append(packets[victim], 1)
		text = fmt.Sprintf("a packet of %d bytes: symbols of %s have %d bytes", len(packets[victim]), c.canonical, size)
	case "outside":
		at := len(packets[victim])
		if n := at / size; n > 0 {
			at = rng.IntN(n) * size
		} else {
			packets[victim] = make([]byte, size)
		}
		for i := range size {
			packets[victim][at+i] = 0xff
		}
		text = fmt.Sprintf("at byte %d is outside the field %s", at, c.canonical)
	case "no source":
		victim = c.a.Rows() + rng.IntN(c.processors()-c.a.Rows())
		packets[victim] = make([]byte, size)
		text = "it is no source"
	}
	return victim, text
}

// spoilt checks what all say then.
func (c *trial) spoilt(t *rapid.T, all [][]outcome, victim int, text string) {
	for k := range all {
		err := all[k][0].err
		aborted := (*transport.AbortError)(nil)
		switch isAbort := errors.As(err, &aborted); {
		case k == victim && (isAbort || err == nil || !strings.Contains(err.Error(), text)):
			t.Fatalf("%v\nprocessor %d: got error %v, want one that says %q", c, k, err, text)
		case k != victim && err == nil && (c.check || c.flaw != "outside"):
			t.Fatalf("%v\nprocessor %d: no error, though processor %d has one", c, k, victim)
		case k != victim && err != nil && (!isAbort || aborted.Rank != victim || !strings.Contains(err.Error(), text)):
			t.Fatalf("%v\nprocessor %d: got error %v, want that of processor %d", c, k, err, victim)
		}
	}
}

// compareCoded compares the coded packets with x·A: some symbols, where there are many.
func (c *trial) compareCoded(t *rapid.T, run int, packets [][]byte, all [][]outcome) {
	o, size := c.o, c.o.symbolBytes
	k, longest := c.a.Rows(), 0
	for _, x := range packets {
		longest = max(longest, len(x))
	}
	symbols := longest / size
	places := c.rng(30).Perm(symbols)
	if most := max(20, 60_000/(k*c.a.Cols())); symbols > most {
		places = append(places[:most], 0, symbols-1)
	}
	x := make([][]number, len(places))
	for i, s := range places {
		for _, packet := range packets[:k] {
			v := o.code(0)
			if s*size < len(packet) {
				v = o.symbol(packet[s*size:])
			}
			x[i] = append(x[i], v)
		}
	}
	for proc := range all {
		coded, sink := all[proc][run].coded, proc
		if c.separate {
			sink -= k
		}
		if sink < 0 || sink >= c.a.Cols() {
			if len(coded) > 0 {
				t.Fatalf("%v\nrun %d: processor %d is no sink and has %d bytes", c, run, proc, len(coded))
			}
			continue
		}
		if len(coded) != longest {
			t.Fatalf("%v\nrun %d: processor %d has %d bytes, want %d", c, run, proc, len(coded), longest)
		}
		if columns := all[proc][run].report.Columns; len(columns) > 0 {
			sink = columns[proc]
		}
		column := make([]number, k)
		for i := range column {
			column[i] = c.e[i][sink]
		}
		want := make([]byte, size)
		for i, s := range places {
			o.put(want, o.dot(x[i], column))
			if got := coded[s*size : (s+1)*size]; !bytes.Equal(got, want) {
				t.Fatalf("%v\nrun %d, by %s %s: symbol %d of processor %d is %x, want %x", c, run,
					all[proc][run].report.Algorithm, all[proc][run].report.Parameters, s, proc, got, want)
			}
		}
	}
}

// named says whether a run may report an algorithm of that name: the one asked for, or a part of it.
func (c *trial) named(ran string) bool {
	if c.algorithm == algo.Auto || ran == c.algorithm {
		return true
	}
	a, err := algo.Lookup(c.algorithm)
	return err == nil && slices.ContainsFunc(a.Parts, func(x algo.Part) bool { return x.Name == ran })
}

// compareReports compares the reports with the letters, and with the plan.
func (c *trial) compareReports(t *rapid.T, run int, packets [][]byte, reports []*volley.Report, all [][]outcome) {
	longest := 0
	for _, x := range packets {
		longest = max(longest, len(x))
	}
	n := c.processors()
	r := volley.Merge(reports)
	encoder, err := volley.NewEncoder(t.Context(), c.a, c.options()...)
	if err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	p, err := encoder.Plan(t.Context(), nil, int64(longest/c.o.symbolBytes))
	if err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	info := p.Info()
	if r.Algorithm != info.Algorithm || r.Parameters != info.Parameters || !c.named(r.Algorithm) {
		t.Fatalf("%v\nrun %d: ran %s %s, the plan is %s %s", c, run, r.Algorithm, r.Parameters, info.Algorithm, info.Parameters)
	}
	sinks := c.a.Cols()
	if c.square() {
		sinks = 0
	}
	if r.Field != c.canonical || r.Matrix != c.a.ID() || r.K != c.a.Rows() || r.Sinks != sinks || r.Processors != n || r.Ports != info.Ports || c.ports > 0 && r.Ports != max(1, min(c.ports, n-1)) ||
		r.PacketBytes != int64(longest) || r.SymbolsPerPacket != int64(longest/c.o.symbolBytes) || r.Verified != c.check || len(r.PlanHash) != 64 {
		t.Fatalf("%v\nrun %d: report %+v", c, run, r)
	}
	seen := map[int]bool{}
	for _, column := range r.Columns {
		seen[column] = true
	}
	if len(r.Columns) > 0 && (len(seen) != n || c.order != algo.AnyOrder || r.Order != "relabelled") {
		t.Fatalf("%v\nrun %d: order %s, columns %v", c, run, r.Order, r.Columns)
	}
	estimate, err := encoder.Estimate(t.Context(), nil, int64(longest/c.o.symbolBytes))
	if err != nil {
		t.Fatalf("%v\n%v", c, err)
	}
	cost := sim.Count(p)
	terms := 0 // of all programs that an estimate looks at; of more than 2^17 it takes all for nonzero
	for _, class := range p.Classes() {
		terms += p.Schedule(class.Representative).Terms
	}
	for _, x := range []struct {
		what      string
		got, want any
	}{
		{"C1 of the plan", r.C1, cost.C1}, {"C2 of the plan", r.C2, cost.C2}, {"C1 of the estimate", r.C1, estimate.C1},
		{"C2 of the estimate", r.C2, estimate.C2}, {"rounds of the estimate", fmt.Sprint(r.Rounds), fmt.Sprint(estimate.Rounds)},
		{"bounds of the estimate", [2]int{r.BoundC1, r.BoundC2}, [2]int{estimate.BoundC1, estimate.BoundC2}},
		{"pieces of the estimate", [2]any{r.Pieces, r.C2Packets}, [2]any{estimate.Pieces, estimate.C2Packets}},
		{"order of the estimate", fmt.Sprint(r.Order, r.Columns), fmt.Sprint(estimate.Order, estimate.Columns)},
		{"C3 at least that of the estimate", r.C3 >= estimate.C3 || terms > 1<<17, true}, {"C3 at most that of the plan", r.C3 <= cost.PacketC3(), true},
	} {
		if x.got != x.want {
			t.Fatalf("%v\nrun %d, by %s %s: %s: %v, want %v; report %+v", c, run, r.Algorithm, r.Parameters, x.what, x.got, x.want, r)
		}
	}
	if algorithm, err := algo.Lookup(r.Algorithm); err != nil || !algorithm.Structured && (r.C1 < r.BoundC1 || r.C2 < r.BoundC2) {
		t.Fatalf("%v\nrun %d: %v, cost below the bound of any such algorithm: %+v", c, run, err, r)
	}
	if c1, c2, ok := formulaOf(r.Algorithm, n, r.Ports); ok && (r.C1 != c1 || r.C2 != c2) {
		t.Fatalf("%v\nrun %d: %s took %d/%d, by its formula %d/%d", c, run, r.Algorithm, r.C1, r.C2, c1, c2)
	}
	c.compareLetters(t, run, r, all)
}

// clog returns the least t with (p+1)^t >= n.
func clog(n, p int) int {
	t := 0
	for have := 1; have < n; have *= p + 1 {
		t++
	}
	return t
}

// formulaOf returns C1 and C2 of the algorithms whose formulas say it all.
func formulaOf(algorithm string, k, p int) (c1, c2 int, ok bool) {
	each := (k - 1 + p - 1) / p
	switch algorithm {
	case "bruck-allgather":
		return clog(k, p), each, true
	case "prepare-and-shoot":
		if k == 1 {
			return 0, 0, true
		}
		l := clog(k, p) - 1 // the largest with (p+1)^l < K
		m, n := 1, 1
		for t := range l + 1 {
			if t%2 == 0 {
				m *= p + 1
			} else {
				n *= p + 1
			}
		}
		return clog(k, p), (m-1)/p + (n-1)/p, true
	}
	return 0, 0, false
}

// lanes puts the letters of a processor about segments in the order of these: those of
// every other segment may have tags of rounds after the plan's, and be written in between.
func lanes(letters []letter, rounds int) (data [][]letter) {
	var list [2][]letter
	for _, l := range letters {
		lane := 0
		if l.tag.Round >= rounds {
			lane, l.tag.Round = 1, l.tag.Round-rounds
		}
		list[lane] = append(list[lane], l)
	}
	first, second := jobs(list[0]), jobs(list[1])
	for i, job := range first {
		data = append(data, job)
		if i < len(second) {
			data = append(data, second[i])
		}
	}
	return data
}

// jobs splits the letters of one processor into segments, and what is said before and after
// them: each queue has letters of its own, and a segment has one for each message. A job's letters
// are put in the order of its rounds, in each of which a processor first asks for what it receives.
func jobs(letters []letter) (list [][]letter) {
	type message struct {
		queue transport.Queue
		sent  bool
		tag   transport.Tag
		peer  int
	}
	current, seen := map[transport.Queue]int{}, map[message]int{} // jobs
	var order []transport.Queue
	var of []transport.Queue // by job
	for _, l := range letters {
		m := message{l.queue, l.sent, l.tag, l.peer}
		job, ok := current[l.queue]
		if !ok {
			order = append(order, l.queue)
		}
		if last, again := seen[m]; !ok || again && last == job {
			job = len(list)
			list, of = append(list, nil), append(of, l.queue)
			current[l.queue] = job
		}
		seen[m] = job
		list[job] = append(list[job], l)
	}
	var sorted [][]letter
	for _, q := range order {
		for job, letters := range list {
			if of[job] == q {
				slices.SortStableFunc(letters, func(a, b letter) int {
					way := 0
					if a.sent != b.sent {
						if way = -1; a.sent {
							way = 1
						}
					}
					return cmp.Or(a.tag.Round-b.tag.Round, way, a.tag.Port-b.tag.Port)
				})
				sorted = append(sorted, letters)
			}
		}
	}
	return sorted
}

func total(parts []int) (n int64) {
	for _, x := range parts {
		n += int64(x)
	}
	return n
}

// compareLetters counts rounds, elements and bytes from the letters alone. It knows how many collectives a run has: of up
// to 8 times more ranks a round, the greeting is one and the check another.
func (c *trial) compareLetters(t *rapid.T, run int, r *volley.Report, all [][]outcome) {
	n := c.processors()
	if n == 1 {
		return
	}
	rounds := make([]plan.RoundTraffic, len(r.Rounds))
	var bytesMax, controlMax int64
	elements := map[int]int64{} // bytes of an element, by segment
	once := 0                   // rounds of a collective
	for reach := 1; reach < n; reach *= 8 {
		once++
	}
	least, most := once, once // rounds of control
	if c.check {
		least, most = 2*once, 2*once
		if n > 64 { // where nobody looks at all of a large matrix
			most += once
		}
	}
	controlRounds := 0
	for proc := range all {
		var control, rest []letter
		begun := 0
		for _, l := range all[proc][run].letters {
			if l.tag.Round < transport.ControlRounds {
				control = append(control, l)
				if l.sent && l.tag.Port == 0 { // one in each round
					begun++
				}
			} else {
				l.tag.Round -= transport.ControlRounds
				rest = append(rest, l)
			}
		}
		controlRounds = max(controlRounds, begun)
		data := lanes(rest, len(rounds))
		if len(data) > 0 && len(data) != r.Segments {
			t.Fatalf("%v\nrun %d, by %s %s, processor %d: letters of %d segments, or two on one port; reported are %d: %+v", c, run, r.Algorithm, r.Parameters, proc, len(data), r.Segments, data)
		}
		var sent, said int64
		for _, l := range control {
			if l.sent {
				said += total(l.parts)
			}
		}
		met := map[[2]int]bool{} // partners, by direction
		for s, job := range data {
			for i, l := range job {
				if l.tag.Port < 0 || l.tag.Port >= r.Ports || l.tag.Round >= len(rounds) || l.peer == proc || l.peer < 0 || l.peer >= n {
					t.Fatalf("%v\nrun %d, processor %d: letter %+v", c, run, proc, l)
				}
				parts := l.parts
				way := [2]int{l.peer, 0}
				if l.sent {
					way[1] = 1
				}
				if !met[way] { // with the hash of the plan in front
					met[way] = true
					if len(parts) < 2 || parts[0] != 32 {
						t.Fatalf("%v\nrun %d, processor %d: no header in %+v", c, run, proc, l)
					}
					if l.sent {
						said += 32
					}
					parts = parts[1:]
				}
				if s > 0 {
					if first := data[0][min(i, len(data[0])-1)]; len(job) != len(data[0]) || first.sent != l.sent || first.tag != l.tag || first.peer != l.peer {
						t.Fatalf("%v\nrun %d, processor %d: segment %d is not as segment 0", c, run, proc, s)
					}
				}
				for _, size := range parts {
					if element, ok := elements[s]; ok && int64(size) != element || len(parts) == 0 {
						t.Fatalf("%v\nrun %d, processor %d, segment %d: an element of %d bytes, another has %d", c, run, proc, s, size, element)
					}
					elements[s] = int64(size)
				}
				if !l.sent {
					continue
				}
				sent += total(parts)
				if s == 0 {
					x := &rounds[l.tag.Round]
					x.Messages++
					x.Largest = max(x.Largest, len(parts))
				}
			}
		}
		bytesMax, controlMax = max(bytesMax, sent), max(controlMax, said)
	}
	c1, c2 := 0, 0
	for _, x := range rounds {
		if x.Messages > 0 {
			c1++
			c2 += x.Largest
		}
	}
	if !slices.Equal(rounds, r.Rounds) || c1 != r.C1 || c2 != r.C2 || bytesMax != r.BytesSentMax || controlMax != r.ControlBytes || controlRounds != r.ControlRounds {
		t.Fatalf("%v\nrun %d: counted %d/%d, %v, %d bytes, %d bytes in %d rounds of control; reported %+v", c, run, c1, c2, rounds, bytesMax, controlMax, controlRounds, r)
	}
	if controlRounds < least || controlRounds > most || controlRounds%once != 0 {
		t.Fatalf("%v\nrun %d: %d rounds of control, want from %d to %d, in collectives of %d each", c, run, controlRounds, least, most, once)
	}
	var whole int64
	for _, size := range elements {
		whole += size * int64(max(1, r.Pieces))
	}
	if len(elements) > 0 && (whole < r.PacketBytes || r.Pieces < 2 && whole != r.PacketBytes) {
		t.Fatalf("%v\nrun %d: elements of %v bytes make %d, packets have %d", c, run, elements, whole, r.PacketBytes)
	}
}
