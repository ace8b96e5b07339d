package volley_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
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
)

var differentialTime = flag.Duration("differential.time", 0, "how long TestDifferential goes on; 0: for as many cases as -rapid.checks says")

// TestDifferential draws a field, a matrix, processors, ports, an algorithm, options, where packets lie, and packets, and
// does the [trial]. What has no plan has to say so by the documented errors. A failure lists what was drawn; -rapid.seed
// draws it again.
func TestDifferential(t *testing.T) {
	d := differential{}
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
	t.Logf("from the seeds %d + n·2^32, n < %d, and those that follow each", first, batches)
	for _, what := range slices.Sorted(maps.Keys(d)) {
		t.Logf("%s: %d", what, d[what])
	}
	if batches < 20 {
		return
	}
	for _, a := range algo.Parts() {
		if d["ran "+a.Name] == 0 {
			t.Errorf("%s never ran", a.Name)
		}
	}
	for _, f := range matrices.Families() {
		if f.Name != "file" && d["matrix "+f.Name] == 0 {
			t.Errorf("no matrix %s was encoded", f.Name)
		}
	}
}

// differential counts what cases were about.
type differential map[string]int

// check draws a case and does it.
func (d differential) check(t *rapid.T) {
	c := &trial{}
	c.drawMatrix(t)
	for !c.build(t) {
		if c.shrink(); c.lists[1] != nil || c.k == 0 || c.r == 0 {
			d["no such matrix"]++
			return
		}
	}
	c.drawViews(t)
	c.drawRun(t)
	d["matrix "+c.family]++
	p := c.plan(t)
	if p == nil {
		d["no such plan"]++
		return
	}
	d["ran "+p.Info().Algorithm]++
	r := c.run(t)
	for label, happened := range map[string]bool{
		"in segments": r.Segments > 1, "in pieces": r.Pieces > 1, "relabelled": len(r.Columns) > 0,
		"several at a rank": c.ranks > 0, "shared memory": c.hosts != nil, "given": c.given != nil, "by " + c.call: true,
	} {
		if happened {
			d[label]++
		}
	}
}

func pick[T any](t *rapid.T, label string, list ...T) T {
	return rapid.SampledFrom(list).Draw(t, label)
}

// chance is true once in n times.
func chance(t *rapid.T, label string, n int) bool {
	return rapid.IntRange(0, n-1).Draw(t, label) == n-1
}

// fieldNames are fields, by kind. Those of characteristic 2 and a degree come in the midst.
var fieldNames = []string{
	"2 3 5 7 11 13 17 31 61 97 127 193 241 251", "257 433 521 769 7681 12289 40961 65521", "65537 786433 998244353 2147483629 2147483647",
	"2^2 2^3 2^4 2^4 2^5 2^6 2^7", "2^9 2^10 2^11 2^12 2^13 2^14 2^15", "2^8", "2^16",
	"goldilocks", "babybear koalabear", "bls12-381 bn254",
}

// drawField draws a field, of characteristic 2 where a family needs one.
func drawField(t *rapid.T, binary bool) fieldChoice {
	kinds := fieldNames
	if binary {
		kinds = fieldNames[3:7]
	}
	name := pick(t, "field", strings.Fields(pick(t, "kind of field", kinds...))...)
	c := fieldNamed(name)
	q := new(big.Int).Exp(c.p, big.NewInt(int64(c.m)), nil)
	switch {
	case c.m > 1 && chance(t, "other", 2):
		lead := q.Uint64()
		polynomial := lead + rapid.Uint64Range(0, lead-1).Draw(t, "polynomial")
		for !irreducible(polynomial, c.p, c.m) {
			if polynomial++; polynomial == 2*lead {
				polynomial = lead
			}
		}
		c = fieldNamed(fmt.Sprintf(pick(t, "radix", "%s:%#x", "%s:%d"), name, polynomial))
	case chance(t, "written out", 8):
		c.name = q.String()
	}
	return c
}

// drawMatrix draws what matrix it is and how large.
func (c *trial) drawMatrix(t *rapid.T) {
	families := []string{"dense", "dense"}
	for _, f := range slices.Backward(matrices.Families()) {
		if f.Name != "file" { // which are dense
			families = append(families, f.Name)
		}
	}
	c.family = pick(t, "family", families...)
	c.fieldChoice = drawField(t, c.family == "lch")
	c.o = c.oracle()
	c.data = rapid.Uint64().Draw(t, "data")
	c.drawShape(t)
	if c.k == c.r && c.family != "dense" {
		c.inverse = chance(t, "inverse", 4)
	}
	words := []string{"", "coset", "powers", "codes", "list", "list"}
	switch c.family {
	case "cauchy", "lagrange":
		c.omega = pick(t, "omega", words...)
		if c.alpha = c.omega; chance(t, "mixed", 4) {
			c.alpha = pick(t, "alpha", words[:4]...)
		}
	case "vandermonde":
		c.points = pick(t, "points", words...)
	case "dft":
		c.reversed = chance(t, "reversed", 3)
	case "random":
		c.seed = rapid.Uint64().Draw(t, "seed")
	case "dense":
		c.style = pick(t, "entries", "any", "any", "bits", "sparse", "permutation", "rank one", "triangular", "identity", "zero", "blocks")
	}
	if c.omega == "list" || c.points == "list" {
		c.drawPoints(t)
	}
}

func (c *trial) drawShape(t *rapid.T) {
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
}

// shrink makes K or R smaller, or both where they are equal.
func (c *trial) shrink() {
	k, r := c.k, c.r
	if k >= r {
		c.k--
	}
	if r >= k {
		c.r--
	}
}

// drawPoints draws lists of points, in the kinds of [oracle.pool].
func (c *trial) drawPoints(t *rapid.T) {
	kind := pick(t, "kind of points", "any", "subspaces", "cosets", "subspaces", "cosets", "cubics")
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
	if c.points == "list" {
		c.lists[1] = pool
	} else {
		c.omega, c.alpha = "list", "list"
		c.lists[0], c.lists[1] = slices.Clone(pool[:c.k]), slices.Clone(pool[c.k:])
		if c.family == "lagrange" && chance(t, "common points", 3) {
			c.lists[1] = slices.Clone(pool[:c.r])
		}
	}
	if chance(t, "shuffled", 2) {
		for _, list := range c.lists {
			rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
	}
}

// drawViews draws views of the matrix.
func (c *trial) drawViews(t *rapid.T) {
	for n := pick(t, "views", 0, 0, 0, 0, 0, 0, 1, 2); n > 0; n-- {
		k := c.a.Rows()
		view := pick(t, "view", "transpose", "columns", "block", "dense")
		switch view {
		case "transpose":
			c.a = matrix.Transpose(c.a)
		case "columns":
			if k == c.a.Cols() {
				c.a, _ = matrix.Columns(c.a, c.rng(4).Perm(k))
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
			c.a = matrix.Block(c.a, first, rows)
		case "dense":
			c.a = matrix.DenseOf(c.a)
		}
		c.views = append(c.views, view)
		c.e = c.o.entries(c.a)
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

// drawRun draws everything but the matrix.
func (c *trial) drawRun(t *rapid.T) {
	k, r := c.a.Rows(), c.a.Cols()
	c.separate = chance(t, "separate", 3)
	if k == r && c.separate {
		c.separate = chance(t, "apart though square", 3)
	}
	c.separate = c.separate && k+r <= 160
	c.drawOptions(t)
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
	c.drawPlaces(t)
}

func (c *trial) drawOptions(t *rapid.T) {
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
	c.whole, c.unchecked = chance(t, "whole", 4), rapid.Bool().Draw(t, "unchecked")
	if chance(t, "rounds over", 6) {
		c.limits.Rounds = algo.FewestPlus(rapid.IntRange(0, 4).Draw(t, "over"))
	}
	if chance(t, "memory limit", 8) {
		c.limits.Memory = rapid.IntRange(1, 3*c.processors()).Draw(t, "packets")
	}
	if chance(t, "compute limit", 8) {
		c.limits.Compute = rapid.IntRange(1, 2*c.a.Rows()+2).Draw(t, "multiply-adds")
	}
	c.beta = pick(t, "beta", volley.DefaultBeta, 0, time.Millisecond, time.Second)
	c.tau = pick[sim.PerByte](t, "tau", volley.DefaultTau, 0, 1e-9, 1e-3)
	c.gamma = pick[sim.PerByte](t, "gamma", 0, 0, 1e-9, 1e-4)
	c.memory = pick(t, "memory", int64(volley.DefaultMemory), 1, 1<<10, 8<<10, 64<<10, 1<<20)
}

// drawPlaces draws at how many ranks of which hosts the processors are, where packets lie, and who calls what.
func (c *trial) drawPlaces(t *rapid.T) {
	n := c.processors()
	c.call = pick(t, "call", "Run", "Encoder.Encode", "Encode", "Bind")
	if n > 24 && c.call == "Encode" {
		c.call = "Encoder.Encode" // it would look for a plan at every processor
	}
	switch {
	case chance(t, "several at a rank", 6):
		c.ranks = rapid.IntRange(1, n).Draw(t, "ranks")
	case chance(t, "shared memory", 4):
		hosts := rapid.IntRange(1, min(3, n)).Draw(t, "hosts")
		c.hosts = slices.Repeat([]int{rapid.IntRange(1, n/hosts).Draw(t, "ranks of each")}, hosts)
		c.call = pick(t, "call", "Run", "Bind", "window")
		if chance(t, "not named", 2) { // else packets go by messages of a plan
			c.algorithm, c.ports, c.whole, c.order, c.limits = algo.Auto, 0, false, algo.Natural, algo.Limits{}
		}
	}
	if c.ranks > 0 {
		c.call = pick(t, "call", "Run", "Bind")
	}
	if chance(t, "given", 8) && c.ranks == 0 && c.hosts == nil {
		c.giveItself = true
	}
}

// mayHave says what the documentation says of an algorithm's plans for the problem
// without limits: there are, there are none, or it depends.
func (c *trial) mayHave() (there, none bool) {
	k, r := c.a.Rows(), c.a.Cols()
	plain := !slices.Contains(c.views, "dense") && !slices.Contains(c.views, "block")
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
	case "additive-fft":
		return plain && c.square() && c.family == "lch" && k%2 == 0, !c.square() || c.family != "lch"
	case "draw-and-loose", "lagrange", "folded-lagrange", "cauchy":
		return false, !c.square()
	}
	return false, false
}

// plan returns the plan of the first run, and nil where there is none; then the limit
// or the structure is to blame, and processors say so.
func (c *trial) plan(t *rapid.T) plan.Plan {
	p, err := c.encoder(t).Plan(t.Context(), nil, int64(c.longest[0]))
	there, none := c.mayHave()
	limit := (*algo.LimitError)(nil)
	switch {
	case err == nil && none:
		t.Fatalf("a plan of %s, which by the documentation has none", c.algorithm)
	case err == nil:
		return p
	case errors.As(err, &limit):
		if c.limits == (algo.Limits{}) && !(limit.WholePackets && c.whole) {
			t.Fatalf("without limits: %v", err)
		}
	case !errors.Is(err, algo.ErrStructure):
		t.Fatalf("neither a structure that is missing nor a limit: %v", err)
	case there && c.limits == (algo.Limits{}):
		t.Fatalf("by the documentation there is a plan: %v", err)
	}
	if c.processors() > 12 {
		return nil
	}
	for k, r := range c.encode(t, [][][]byte{c.packets(0)}) {
		if e := r[0].err; !errors.Is(e, algo.ErrStructure) && !errors.As(e, &limit) {
			t.Fatalf("processor %d: %v, want %v", k, e, err)
		}
	}
	return nil
}

// field checks that a field of this name is what the oracle has.
func (c *trial) field(t failer) field.Field {
	f, err := field.Parse(c.name)
	if err != nil {
		t.Fatalf("%v", err)
	}
	o := c.o
	if f.Name() != c.canonical || f.Order().Cmp(o.q) != 0 || f.Characteristic().Cmp(o.p) != 0 || f.Degree() != o.m ||
		f.SymbolBytes() != o.symbolBytes || f.Generator().Int().Cmp(o.codeOf(o.generator)) != 0 {
		t.Fatalf("got the field %s of %v = %v^%d elements in %d bytes, generator %v; want %s of %v = %v^%d in %d bytes, generator %v",
			f.Name(), f.Order(), f.Characteristic(), f.Degree(), f.SymbolBytes(), f.Generator(),
			c.canonical, o.q, o.p, o.m, o.symbolBytes, o.codeOf(o.generator))
	}
	return f
}
