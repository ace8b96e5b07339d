package runcheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"volley/collective"
	"volley/executor"
	"volley/field"
	"volley/plan"
	"volley/transport"
	"volley/verify"
)

// A FingerprintCheck is the check of a run by several ranks, each of which has packets and results of some processors.
type FingerprintCheck struct {
	checker    *Checker
	plan       plan.Plan
	t          transport.Transport
	Comm       *collective.Comm // whose rounds and bytes count
	seed       verify.Seed
	first, end int // processors here

	prints []*verify.Fingerprints // of each processor here: of its packet, if it is a source, and of its result
	block  int                    // symbols
	ends   [][][]byte             // what these are when all packets were added
	took   atomic.Int64           // ns that fingerprints took during the run, of all processors together
}

// Fingerprints returns the check of a run of p, which tells all ranks of t what is wrong by a communicator beside comm. The
// seed is the same at all ranks; fingerprints are of blocks of so many symbols.
func (c *Checker) Fingerprints(t transport.Transport, comm *collective.Comm, p plan.Plan, seed uint64, block int) *FingerprintCheck {
	x := &FingerprintCheck{checker: c, plan: p, t: t, Comm: comm.Separate()}
	x.first, x.end = executor.Hosted(c.problem.Processors(), t.Rank(), t.Size())
	binary.LittleEndian.PutUint64(x.seed[:], seed)
	x.block, x.prints = block, make([]*verify.Fingerprints, x.end-x.first)
	return x
}

// Observe is [executor.Job].Observe.
func (x *FingerprintCheck) Observe(proc int, inputs, outputs [][]byte) error {
	began := time.Now()
	for _, part := range outputs {
		if x.checker.matrix.Field().FirstInvalid(part) >= 0 { // came so over the wire; the arithmetic might not notice
			return &verify.CheckError{Proc: proc}
		}
	}
	for i := range max(len(inputs), len(outputs)) {
		var parts [][]byte
		if i < len(inputs) {
			parts = append(parts, inputs[i])
		}
		if i < len(outputs) {
			parts = append(parts, outputs[i])
		}
		print := &x.prints[proc-x.first]
		if *print == nil { // not before: thousands of ranks may wait for messages
			*print = verify.NewFingerprints(x.checker.matrix.Field(), x.seed, x.block, len(parts))
		}
		(*print).Add(parts...)
	}
	x.took.Add(int64(time.Since(began)))
	return nil
}

// mostEntries is up to how many entries of a matrix without layers every rank looks at: then it finds out by itself
// which coded packets are wrong, even if another rank has other entries.
const mostEntries = 64 * 64

// Finish waits until the coded packets of all processors are there and are right. Where there are more entries, a sum
// over all ranks tells, and no rank has to know the fingerprints of all.
func (x *FingerprintCheck) Finish(ctx context.Context) error {
	for _, p := range x.prints {
		x.ends = append(x.ends, p.Bytes())
	}
	clear(x.prints)
	fact, err := x.checker.problem.Factorisation(ctx)
	if err != nil {
		return err
	}
	everySink := fact == nil && x.checker.matrix.Rows()*x.checker.matrix.Cols() <= mostEntries
	if !everySink {
		var local []byte
		var err error
		if ended := executor.OnCore(ctx, func() { local, err = x.difference(ctx) }); ended != nil || err != nil {
			return cmp.Or(ended, err)
		}
		sum, err := x.Comm.Sum(ctx, local, func(sum, addend []byte) {
			x.checker.matrix.Field().Combine(sum, []field.Element{field.One, field.One}, [][]byte{bytes.Clone(sum), addend})
		})
		if err != nil || bytes.Count(sum, []byte{0}) == len(sum) {
			return err
		}
	}
	return x.compare(ctx, everySink)
}

// difference returns what the packets here add to the sum: the weighted fingerprints that all coded packets are to have
// by the initial packets here, less those that the coded packets here have.
func (x *FingerprintCheck) difference(ctx context.Context) ([]byte, error) {
	f := x.checker.matrix.Field()
	a, err := x.checker.entries(ctx)
	if err != nil {
		return nil, err
	}
	type source struct {
		row   int
		print []byte
	}
	var sources []source
	for i, ends := range x.ends {
		if row, ok := x.checker.problem.Source(x.first + i); ok {
			sources = append(sources, source{row, ends[0]})
		}
	}
	weights, products, look, err := x.checker.draw(ctx, x.seed, len(sources))
	if err != nil {
		return nil, err
	}
	n := len(weights) / a.Cols()
	sum := make([]byte, n)
	weigh := func(print, weights []byte, sign field.Element) {
		for offset := 0; offset < n; offset += f.SymbolBytes() {
			product := f.Mul(sign, f.Mul(field.Symbol(f, print[offset:]), field.Symbol(f, weights[offset:])))
			field.PutSymbol(f, sum[offset:], f.Add(field.Symbol(f, sum[offset:]), product))
		}
	}
	for i, ends := range x.ends {
		if _, ok := x.checker.problem.Sink(x.first + i); ok {
			weigh(ends[len(ends)-1], weights[columnOf(x.plan, x.first+i)*n:], f.Sub(field.Element{}, field.One))
		}
	}
	rand.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
	for _, s := range sources[look:] {
		weigh(s.print, products[s.row], field.One)
	}
	looked := make([][]byte, look)
	err = share(ctx, look, x.checker.problem.Processors(), func(i int) {
		looked[i] = combine(f, func(column int) field.Element { return a.At(sources[i].row, column) }, weights, n)
	})
	if err != nil {
		return nil, err
	}
	for i, product := range looked {
		weigh(sources[i].print, product, field.One)
	}
	return sum, nil
}

// compare tells all ranks the fingerprints of all packets. Then it compares those of coded packets with what the initial
// packets make them: of every sink, or, where the sum over all ranks is wrong, of those of this rank.
func (x *FingerprintCheck) compare(ctx context.Context, everySink bool) error {
	n, k := len(x.ends[0][0]), x.checker.problem.Processors()
	mine := make([]byte, (k+x.t.Size()-1)/x.t.Size()*2*n) // as long at all ranks
	for i, ends := range x.ends {                         // one of a processor that is only source, or only sink: it stands in both places
		copy(mine[2*i*n:], ends[0])
		copy(mine[(2*i+1)*n:], ends[len(ends)-1])
	}
	gathered, err := x.Comm.Allgather(ctx, mine)
	if err != nil {
		return err
	}
	a, err := x.checker.entries(ctx)
	if err != nil {
		return err
	}
	initial, coded := make([]byte, a.Rows()*n), make([][]byte, k)
	for rank, theirs := range gathered {
		first, end := executor.Hosted(k, rank, x.t.Size())
		for proc := first; proc < end; proc++ {
			both := theirs[2*(proc-first)*n:]
			coded[proc] = both[n:][:n]
			if row, source := x.checker.problem.Source(proc); source {
				copy(initial[row*n:][:n], both)
			}
		}
	}
	first, end := x.first, x.end
	if everySink {
		first, end = 0, k
	}
	wrong := make([]bool, end-first)
	err = share(ctx, len(wrong), k, func(i int) {
		if _, sink := x.checker.problem.Sink(first + i); sink {
			column := columnOf(x.plan, first+i)
			want := combine(a.Field(), func(row int) field.Element { return a.At(row, column) }, initial, n)
			wrong[i] = !bytes.Equal(want, coded[first+i])
		}
	})
	if err != nil {
		return err
	}
	for i, bad := range wrong {
		if bad && x.first <= first+i && first+i < x.end {
			return &verify.CheckError{Proc: first + i}
		}
	}
	if i := slices.Index(wrong, true); i >= 0 { // its own rank finds the same, and aborts
		return &transport.AbortError{Rank: executor.RankOf(i, k, x.t.Size()), Cause: &verify.CheckError{Proc: i}}
	}
	if everySink {
		return nil
	}
	return cmp.Or(x.Comm.Barrier(ctx), errEntries) // a rank with a wrong packet does not come here: it aborts
}

// Took returns how long fingerprints have taken during the run, on as many cores as there are.
func (x *FingerprintCheck) Took() time.Duration {
	return time.Duration(x.took.Load()) / time.Duration(min(len(x.prints), runtime.GOMAXPROCS(0)))
}
