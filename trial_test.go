package volley_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"volley"
	"volley/algo"
	"volley/collective"
	"volley/executor"
	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// A failer is a test, also one of package rapid.
type failer interface {
	Context() context.Context
	Fatalf(format string, values ...any)
}

// A fieldChoice is a field as it is named, and what it is.
type fieldChoice struct {
	name, canonical string
	p               *big.Int
	m               int
	polynomial      uint64 // 0: the default
}

var namedPrimes = map[string]string{
	"goldilocks": "0xffffffff00000001", "babybear": "0x78000001", "koalabear": "0x7f000001",
	"bls12-381": "0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001",
	"bn254":     "0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001",
}

// fieldNamed returns the field of a name that is a prime, one of those, or 2^m with or without a polynomial.
func fieldNamed(name string) fieldChoice {
	plain, polynomial, other := strings.Cut(name, ":")
	c := fieldChoice{name: name, canonical: plain, m: 1}
	base, degree, power := strings.Cut(plain, "^")
	c.p = bigInt(cmp.Or(namedPrimes[base], base))
	if power {
		c.m, _ = strconv.Atoi(degree)
	}
	if other {
		usual := c.oracle().modulus
		c.polynomial = bigInt(polynomial).Uint64()
		if !slices.Equal(usual, digits(c.polynomial, c.p, c.m+1)) {
			c.canonical = fmt.Sprintf("%s:%#x", plain, c.polynomial)
		}
	}
	return c
}

var oracles = map[string]*oracle{}

func (c fieldChoice) oracle() *oracle {
	if oracles[c.canonical] == nil {
		oracles[c.canonical] = newOracle(c.p, c.m, c.polynomial)
	}
	return oracles[c.canonical]
}

// A trial encodes packets by a matrix, and compares the coded packets with x·A by an [oracle], and the report with the letters
// counted on the way and with the plan.
type trial struct {
	fieldChoice
	recipe
	style string // of entries that are drawn
	views []string

	algorithm  string
	ports      int // 0: by the model of a network
	separate   bool
	order      algo.Order
	whole      bool
	unchecked  bool
	limits     algo.Limits
	memory     int64
	beta       time.Duration
	tau, gamma sim.PerByte
	giveItself bool      // the plan, as one that is given
	given      plan.Plan // nil: none
	longest    []int     // symbols of the longest packet, by run
	lengths    string
	call       string
	ranks      int    // that have processors, and send messages; 0: each has one
	hosts      []int  // ranks of each host, which share memory; nil: none do
	data       uint64 // seed of packets, entries and points

	o *oracle
	a matrix.Matrix
	e [][]number // its entries
}

// rng returns random numbers for a purpose.
func (c *trial) rng(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(c.data, purpose)) }

// listed returns the points of a list.
func (c *trial) listed(t failer, f field.Field, list []number) matrix.Points {
	var text strings.Builder
	for _, z := range list {
		fmt.Fprintln(&text, c.o.codeOf(z))
	}
	p, err := matrices.ReadPoints(f, strings.NewReader(text.String()), "list")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// drawn returns the entries of a matrix whose entries are drawn.
func (c *trial) drawn() func(i, j int) number {
	rng := c.rng(2)
	zero, one := c.o.code(0), c.o.one()
	order := rng.Perm(max(c.k, c.r))
	var left, right []number
	for range order {
		left, right = append(left, c.o.draw(rng)), append(right, c.o.draw(rng))
	}
	entry := func(i, j int) number {
		keep := false
		switch c.style {
		case "any":
			keep = true
		case "bits":
			keep = false
			if rng.IntN(2) == 0 {
				return one
			}
		case "sparse":
			keep = rng.IntN(4) == 0
		case "permutation":
			keep = order[i] == j
		case "rank one":
			return c.o.mul(left[i], right[j])
		case "triangular":
			keep = i <= j
		case "identity":
			if i == j {
				return one
			}
		case "blocks":
			keep = i/4 == j/4
		}
		if keep {
			return c.o.draw(rng)
		}
		return zero
	}
	rows := make([][]number, c.k)
	for i := range rows {
		for j := range c.r {
			rows[i] = append(rows[i], entry(i, j))
		}
	}
	return func(i, j int) number { return rows[i][j] }
}

// build makes the matrix; false says that there is none.
func (c *trial) build(t failer) bool {
	f := c.field(t)
	spec := matrices.Spec{Family: c.family, Points: c.points, Omega: c.omega, Alpha: c.alpha, Inverse: c.inverse}
	if c.reversed {
		spec.Order = "reversed"
	}
	if c.family == "random" {
		spec.Argument = fmt.Sprint(c.seed)
	}
	var err error
	switch {
	case c.family == "dense":
		c.a = c.dense(t, f, c.drawn())
	case c.lists[1] != nil:
		c.a, err = spec.BuildFrom(f, c.k, c.r, c.pointSets(t, f), nil)
	default:
		c.a, err = spec.Build(f, c.k, c.r)
	}
	if err != nil {
		return false
	}
	if c.a.Rows() != c.k || c.a.Cols() != c.r || c.a.Field().Name() != c.canonical {
		t.Fatalf("built a %d×%d matrix over %s", c.a.Rows(), c.a.Cols(), c.a.Field().Name())
	}
	c.e = c.o.entries(c.a)
	return true
}

func (c *trial) dense(t failer, f field.Field, entry func(i, j int) number) matrix.Matrix {
	d := matrix.NewDense(f, c.k, c.r)
	for i := range c.k {
		for j := range c.r {
			e, err := field.FromInt(c.o.codeOf(entry(i, j)))
			if err != nil {
				t.Fatalf("%v", err)
			}
			d.Set(i, j, e)
		}
	}
	return d
}

// pointSets returns the points of a matrix on lists.
func (c *trial) pointSets(t failer, f field.Field) (sets []matrix.PointSet) {
	names := [2]string{"omega", "alpha"}
	if c.family == "cauchy" {
		names = [2]string{"x", "y"}
	}
	for s, list := range c.lists {
		if list != nil {
			sets = append(sets, matrix.PointSet{Name: names[s], Points: c.listed(t, f, list)})
		}
	}
	return sets
}

func (c *trial) square() bool { return !c.separate && c.a.Rows() == c.a.Cols() }

func (c *trial) processors() int {
	if c.separate {
		return c.a.Rows() + c.a.Cols()
	}
	return max(c.a.Rows(), c.a.Cols())
}

func (c *trial) options() []volley.Option {
	list := []volley.Option{
		volley.WithAlgorithm(c.algorithm), volley.WithOrder(c.order), volley.WithCheck(!c.unchecked),
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
	if c.given != nil {
		list = append(list, volley.WithPlan(c.given))
	}
	return list
}

func (c *trial) encoder(t failer) *volley.Encoder {
	e, err := volley.NewEncoder(t.Context(), c.a, c.options()...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return e
}

func (c *trial) model(symbols int) sim.Model {
	m := sim.Model{Beta: c.beta, Tau: c.tau, Gamma: c.gamma, Bytes: int64(symbols * c.o.symbolBytes), SymbolBytes: c.o.symbolBytes}
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
		symbol := c.o.draw(rng)
		for s := range n {
			if n <= 2000 || s%61 == 0 { // to draw takes long
				symbol = c.o.draw(rng)
			}
			c.o.put(list[i][s*c.o.symbolBytes:], symbol)
		}
	}
	return list
}

// An outcome is what a processor has of a run.
type outcome struct {
	coded   []byte
	report  *volley.Report // nil where the first processor of its rank has it
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

// ends returns the transports of all ranks.
func (c *trial) ends() (list []transport.Transport) {
	for _, end := range local.NewHosts(c.hosts...) {
		list = append(list, end)
	}
	if c.hosts == nil {
		for _, end := range local.New(cmp.Or(c.ranks, c.processors())) {
			list = append(list, &counted{Transport: end})
		}
	}
	return list
}

// encode does all runs at all ranks, on the packets given by run. A panic is an error.
func (c *trial) encode(t failer, packets [][][]byte) [][]outcome {
	shared := c.encoder(t)
	all := make([][]outcome, c.processors())
	for k := range all {
		all[k] = make([]outcome, len(packets))
	}
	ends := c.ends()
	var ranks sync.WaitGroup
	for _, end := range ends {
		ranks.Go(func() {
			first, last := executor.Hosted(len(all), end.Rank(), len(ends))
			run := 0
			failed := func(err error) {
				for _, mine := range all[first:last] {
					mine[run].err = err
				}
			}
			defer func() {
				if x := recover(); x != nil {
					failed(fmt.Errorf("panic: %v\n%s", x, debug.Stack()))
					end.Abort(errors.New("panic"))
				}
			}()
			for ; run < len(packets); run++ {
				mine := make([]*outcome, 0, last-first)
				for _, runs := range all[first:last] {
					mine = append(mine, &runs[run])
				}
				w := worker{c, shared, end, first, packets[run][first:last], mine}
				if err := w.work(); err != nil {
					failed(err)
					return
				}
			}
		})
	}
	ranks.Wait()
	for _, end := range ends {
		if end, ok := end.(*local.Endpoint); ok {
			end.Close()
		}
	}
	return all
}

// A worker does a run at a rank.
type worker struct {
	*trial
	shared  *volley.Encoder
	t       transport.Transport
	first   int
	packets [][]byte // of its processors
	mine    []*outcome
}

func (w *worker) work() (err error) {
	ctx, x := context.Background(), w.mine[0]
	counted, _ := w.t.(*counted)
	if counted != nil {
		counted.letters = nil
		defer func() { x.letters = counted.letters }()
	}
	switch w.call {
	case "Encode":
		x.coded, x.report, err = volley.Encode(ctx, w.t, w.a, w.packets[0], w.options()...)
	case "Encoder.Encode":
		x.coded, x.report, err = w.shared.Encode(ctx, w.t, w.packets[0])
	case "Bind", "window":
		err = w.bind(ctx)
	default:
		written := make([]ascending, len(w.mine))
		var list []volley.Packet
		for i, packet := range w.packets {
			more := append(bytes.Clone(packet), "not of the packet"...)
			list = append(list, volley.Packet{Source: bytes.NewReader(more), Size: int64(len(packet)), Coded: &written[i]})
		}
		x.report, err = w.shared.Run(ctx, w.t, list...)
		for i := range written {
			if w.mine[i].coded = written[i].data; err == nil && written[i].gap {
				err = errors.New("not written in ascending order")
			}
		}
	}
	return err
}

// bind runs the packets twice where they lie in memory, or in a window if ranks share one.
func (w *worker) bind(ctx context.Context) error {
	room := func(n int) []byte { return make([]byte, n) }
	var windows []*transport.Window
	if w.call == "window" {
		each := slices.Max(w.longest) * w.o.symbolBytes
		window, err := volley.Share(ctx, w.t, 2*each*len(w.e)*2, time.Minute)
		switch {
		case err == nil:
			defer window.Close()
			rest := window.Parts[transport.OnHost(w.t).Rank()]
			room = func(n int) []byte { b := rest[:n:n]; rest = rest[n:]; return b }
			windows = append(windows, window)
		case len(w.hosts) == 1 || !errors.Is(err, collective.ErrApart):
			return err
		}
	}
	var list []volley.Packet
	for i, packet := range w.packets {
		p := volley.Packet{}
		if _, source := w.shared.Problem().Source(w.first + i); source {
			p.Data = room(len(packet))
			copy(p.Data, packet)
		}
		if _, sink := w.shared.Problem().Sink(w.first + i); sink {
			w.mine[i].coded = room(slices.Max(w.longest) * w.o.symbolBytes)
			p.Result = &w.mine[i].coded
		}
		list = append(list, p)
	}
	b, err := w.shared.Bind(ctx, w.t, list, windows...)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Run(); err != nil {
		return err
	}
	for _, x := range w.mine {
		clear(x.coded)
	}
	if err := collective.Barrier(ctx, w.t, 0); err != nil {
		return err
	}
	if err := b.Run(); err != nil {
		return err
	}
	w.mine[0].report = b.Report()
	if windows != nil {
		for _, x := range w.mine {
			x.coded = bytes.Clone(x.coded)
		}
	}
	return collective.Barrier(ctx, w.t, 0) // all have what they need of the window
}

// run encodes and compares. It returns the report of the last run.
func (c *trial) run(t failer) *volley.Report {
	if c.giveItself {
		p, err := c.encoder(t).Plan(t.Context(), nil, int64(c.longest[0]))
		if err == nil {
			c.given, err = plan.Materialize(p)
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	var packets [][][]byte
	for run := range c.longest {
		packets = append(packets, c.packets(run))
	}
	all := c.encode(t, packets)
	for tries := 0; ; tries++ {
		low := c.tooLow(all)
		if low == nil {
			break
		}
		if low.Least <= c.memory || low.Memory != c.memory || tries == len(packets) {
			t.Fatalf("%+v", low)
		}
		c.memory = low.Least // which should do for this run
		all = c.encode(t, packets)
	}
	var merged *volley.Report
	for run := range packets {
		var reports []*volley.Report
		for k := range all {
			if err := all[k][run].err; err != nil {
				t.Fatalf("run %d, processor %d: %v", run, k, err)
			}
			if r := all[k][run].report; r != nil {
				reports = append(reports, r)
			}
		}
		merged = volley.Merge(reports)
		c.compareCoded(t, run, packets[run], merged, all)
		c.compareReports(t, run, merged, all)
	}
	return merged
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

// size returns how many symbols the coded packets of a run have.
func (c *trial) size(packets [][]byte) (symbols int) {
	for _, x := range packets {
		symbols = max(symbols, len(x)/c.o.symbolBytes)
	}
	return symbols
}

// compareCoded compares the coded packets with x·A: some symbols, where there are many.
func (c *trial) compareCoded(t failer, run int, packets [][]byte, r *volley.Report, all [][]outcome) {
	o, size := c.o, c.o.symbolBytes
	k, symbols := c.a.Rows(), c.size(packets)
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
				t.Fatalf("run %d: processor %d is no sink and has %d bytes", run, proc, len(coded))
			}
			continue
		}
		if len(coded) != symbols*size {
			t.Fatalf("run %d: processor %d has %d bytes, want %d", run, proc, len(coded), symbols*size)
		}
		if len(r.Columns) > 0 {
			sink = r.Columns[proc]
		}
		column := make([]number, k)
		for i := range column {
			column[i] = c.e[i][sink]
		}
		want := make([]byte, size)
		for i, s := range places {
			o.put(want, o.dot(x[i], column))
			if got := coded[s*size : (s+1)*size]; !bytes.Equal(got, want) {
				t.Fatalf("run %d, by %s %s: symbol %d of processor %d is %x, want %x", run, r.Algorithm, r.Parameters, s, proc, got, want)
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

// compareReports compares the report of a run with the letters, and with the plan.
func (c *trial) compareReports(t failer, run int, r *volley.Report, all [][]outcome) {
	n, symbols := c.processors(), c.size(c.packets(run))
	if r.Field != c.canonical || r.Matrix != c.a.ID() || r.K != c.a.Rows() || (r.Sinks == 0) != c.square() || r.Sinks != 0 && r.Sinks != c.a.Cols() ||
		r.Processors != n || r.PacketBytes != int64(symbols*c.o.symbolBytes) || r.SymbolsPerPacket != int64(symbols) || r.Verified == c.unchecked ||
		len(r.PlanHash) != 64 || r.Seconds <= 0 {
		t.Fatalf("run %d: report %+v", run, r)
	}
	if c.hosts != nil { // by a plan for messages, or by one for the memory of a host
		return
	}
	encoder := c.encoder(t)
	p, err := encoder.Plan(t.Context(), nil, int64(symbols))
	if err != nil {
		t.Fatalf("%v", err)
	}
	info := p.Info()
	if r.Algorithm != info.Algorithm || r.Parameters != info.Parameters || !c.named(r.Algorithm) || r.Ports != info.Ports ||
		c.ports > 0 && r.Ports != max(1, min(c.ports, n-1)) {
		t.Fatalf("run %d: the plan is %s %s: report %+v", run, info.Algorithm, info.Parameters, r)
	}
	if len(r.Columns) > 0 {
		columns := slices.Sorted(slices.Values(r.Columns))
		if len(slices.Compact(columns)) != n || c.order != algo.AnyOrder || r.Order != "relabelled" {
			t.Fatalf("run %d: order %s, columns %v", run, r.Order, r.Columns)
		}
	}
	estimate, err := encoder.Estimate(t.Context(), nil, int64(symbols))
	if err != nil {
		t.Fatalf("%v", err)
	}
	cost := sim.Count(p)
	terms := 0 // of all programs that an estimate looks at; of more than 2^17 it takes all for nonzero
	for _, class := range p.Classes() {
		terms += p.Schedule(class.Representative).Terms
	}
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"C1 of the plan", r.C1, cost.C1}, {"C2 of the plan", r.C2, cost.C2}, {"C1 of the estimate", r.C1, estimate.C1},
		{"C2 of the estimate", r.C2, estimate.C2}, {"rounds of the estimate", fmt.Sprint(r.Rounds), fmt.Sprint(estimate.Rounds)},
		{"pieces of the estimate", [2]any{r.Pieces, r.C2Packets}, [2]any{estimate.Pieces, estimate.C2Packets}},
		{"order of the estimate", fmt.Sprint(r.Order, r.Columns), fmt.Sprint(estimate.Order, estimate.Columns)},
		{"C3 at least that of the estimate", r.C3 >= estimate.C3 || terms > 1<<17, true}, {"C3 at most that of the plan", r.C3 <= cost.PacketC3(), true},
	} {
		if x.got != x.want {
			t.Fatalf("run %d, by %s %s: %s: %v, want %v; report %+v", run, r.Algorithm, r.Parameters, x.name, x.got, x.want, r)
		}
	}
	if bound := encoder.Problem().Bound(r.Ports, max(1, r.Pieces)); r.C1 < bound.C1 || r.C2 < bound.C2 {
		t.Fatalf("run %d: the cost is below the bound %v: %+v", run, bound, r)
	}
	if n > 1 && c.ranks == 0 && c.call != "Bind" {
		c.compareLetters(t, run, r, all)
	}
}
