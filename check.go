package volley

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"volley/collective"
	"volley/executor"
	"volley/field"
	"volley/plan"
	"volley/transport"
	"volley/verify"
)

// A check compares the coded packets of all processors with what the matrix, not the plan, makes of the
// initial packets: by fingerprints.
type check struct {
	e          *Encoder
	plan       plan.Plan
	t          transport.Transport
	comm       *collective.Comm
	seed       verify.Seed
	first, end int // processors here

	prints []*verify.Fingerprints // of each processor here: of its packet, if it is a source, and of its result
	block  int                    // symbols
	ends   [][][]byte             // what these are when all packets were added
	took   atomic.Int64           // ns that fingerprints took during the run, of all processors together
}

// newCheck returns the check of a run. The seed is the same at all ranks.
func (e *Encoder) newCheck(t transport.Transport, c *collective.Comm, p plan.Plan, seed uint64, block int) *check {
	x := &check{e: e, plan: p, t: t, comm: c.Beside()}
	x.first, x.end = executor.Hosted(e.problem.Processors(), t.Rank(), t.Size())
	binary.LittleEndian.PutUint64(x.seed[:], seed)
	x.block, x.prints = block, make([]*verify.Fingerprints, x.end-x.first)
	return x
}

// observe is [executor.Job].Observe.
func (x *check) observe(proc int, inputs, outputs [][]byte) error {
	began := time.Now()
	for _, part := range outputs {
		if x.e.matrix.Field().FirstInvalid(part) >= 0 { // came so over the wire; the arithmetic might not notice
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
			*print = verify.NewFingerprints(x.e.matrix.Field(), x.seed, x.block, len(parts))
		}
		(*print).Add(parts...)
	}
	x.took.Add(int64(time.Since(began)))
	return nil
}

// mostEntries is up to how many entries of a matrix without layers every rank looks at: then it finds out by itself
// which coded packets are wrong, even if another rank has other entries.
const mostEntries = 64 * 64

// finish waits until the coded packets of all processors are there and are right. Where there are more entries, a sum
// over all ranks tells, and no rank has to know the fingerprints of all.
func (x *check) finish(ctx context.Context) error {
	for _, p := range x.prints {
		x.ends = append(x.ends, p.Bytes())
	}
	clear(x.prints)
	fact, err := x.e.problem.FactorisationContext(ctx)
	if err != nil {
		return err
	}
	all := fact == nil && x.e.matrix.Rows()*x.e.matrix.Cols() <= mostEntries
	if !all {
		var own []byte
		var err error
		if ended := executor.OnCoreContext(ctx, func() { own, err = x.difference(ctx) }); ended != nil || err != nil {
			return cmp.Or(ended, err)
		}
		sum, err := x.comm.Sum(ctx, own, func(sum, more []byte) {
			x.e.matrix.Field().Combine(sum, []field.Element{field.One, field.One}, [][]byte{bytes.Clone(sum), more})
		})
		if err != nil || bytes.Count(sum, []byte{0}) == len(sum) {
			return err
		}
	}
	return x.compare(ctx, all)
}

// mostParts is how many packets are combined at a time.
const mostParts = 256

// combine returns Σ coef(i)·packets[i·n:(i+1)·n], of packets in one piece of memory.
func combine(f field.Field, coef func(i int) field.Element, packets []byte, n int) []byte {
	sum, count := make([]byte, n), len(packets)/n
	coefs, parts := make([]field.Element, 1, min(count, mostParts)+1), make([][]byte, 1, min(count, mostParts)+1)
	coefs[0], parts[0] = field.One, make([]byte, n)
	for i := range count {
		coefs, parts = append(coefs, coef(i)), append(parts, packets[i*n:][:n])
		if len(parts) > mostParts || i+1 == count {
			f.Combine(sum, coefs, parts)
			copy(parts[0], sum)
			coefs, parts = coefs[:1], parts[:1]
		}
	}
	return sum
}

// A drawing is what the ranks of a process share in the check of a run.
type drawing struct {
	seed     verify.Seed
	weights  []byte   // verify.Weights, of the coded packets
	asked    int      // rows of the matrix
	products [][]byte // of the rows with the weights
}

// draw returns the weights of a run. Where this process asks for so many rows of the matrix that layers take less, it
// also returns the products of all rows with the weights, and how many of the rows that are asked for are to be looked
// at all the same: structure that was found might be wrong.
func (e *Encoder) draw(ctx context.Context, seed verify.Seed, rows int) (weights []byte, products [][]byte, look int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &e.drawn
	if d.weights == nil || d.seed != seed {
		*d = drawing{seed: seed, weights: verify.Weights(e.matrix.Field(), seed, e.matrix.Cols())}
	}
	if d.asked == 0 {
		look = min(1, rows)
	}
	d.asked += rows
	fact, err := e.problem.FactorisationContext(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if fact == nil || d.asked <= fact.Work() {
		return d.weights, nil, rows, nil
	}
	if d.products == nil {
		columns := slices.Chunk(d.weights, len(d.weights)/e.matrix.Cols())
		if d.products, err = fact.Transposed().Times(ctx, slices.Collect(columns)); err != nil {
			return nil, nil, 0, err
		}
	}
	return d.weights, d.products, look, nil
}

// difference returns what the packets here add to the sum: the weighted fingerprints that all coded packets are to have
// by the initial packets here, less those that the coded packets here have.
func (x *check) difference(ctx context.Context) ([]byte, error) {
	f := x.e.matrix.Field()
	a, err := x.e.entries(ctx)
	if err != nil {
		return nil, err
	}
	type source struct {
		row   int
		print []byte
	}
	var sources []source
	for i, ends := range x.ends {
		if row, ok := x.e.problem.Source(x.first + i); ok {
			sources = append(sources, source{row, ends[0]})
		}
	}
	weights, products, look, err := x.e.draw(ctx, x.seed, len(sources))
	if err != nil {
		return nil, err
	}
	n := len(weights) / a.Cols()
	sum := make([]byte, n)
	weigh := func(print, weights []byte, sign field.Element) {
		for at := 0; at < n; at += f.SymbolBytes() {
			product := f.Mul(sign, f.Mul(field.Symbol(f, print[at:]), field.Symbol(f, weights[at:])))
			field.PutSymbol(f, sum[at:], f.Add(field.Symbol(f, sum[at:]), product))
		}
	}
	for i, ends := range x.ends {
		if _, ok := x.e.problem.Sink(x.first + i); ok {
			weigh(ends[len(ends)-1], weights[columnOf(x.plan, x.first+i)*n:], f.Sub(field.Element{}, field.One))
		}
	}
	rand.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
	for _, s := range sources[look:] {
		weigh(s.print, products[s.row], field.One)
	}
	looked := make([][]byte, look)
	err = share(ctx, look, x.e.problem.Processors(), func(i int) {
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

// share does something, until the context ends, for all i below n, each of which takes so many entries, on all cores where
// that pays.
func share(ctx context.Context, n, entries int, do func(i int)) error {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	if n*entries <= mostEntries {
		work()
	} else {
		var workers sync.WaitGroup
		for range min(n, runtime.GOMAXPROCS(0)) {
			workers.Go(work)
		}
		workers.Wait()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// columnOf returns the column of the matrix that a sink gets.
func columnOf(p plan.Plan, proc int) int { return p.Column(proc, 0) / p.Info().PieceCount() }

// compare tells all ranks the fingerprints of the packets of all, and compares those of the coded packets here, or of all,
// with what the initial packets make them. It returns nil where they are right.
func (x *check) compare(ctx context.Context, all bool) error {
	n, k := len(x.ends[0][0]), x.e.problem.Processors()
	record := make([]byte, (k+x.t.Size()-1)/x.t.Size()*2*n) // as long at all ranks
	for i, ends := range x.ends {                           // of a source or a sink alone, one, which is both
		copy(record[2*i*n:], ends[0])
		copy(record[(2*i+1)*n:], ends[len(ends)-1])
	}
	records, err := x.comm.Allgather(ctx, record)
	if err != nil {
		return err
	}
	a, err := x.e.entries(ctx)
	if err != nil {
		return err
	}
	initial, coded := make([]byte, a.Rows()*n), make([][]byte, k)
	for rank, record := range records {
		first, end := executor.Hosted(k, rank, x.t.Size())
		for proc := first; proc < end; proc++ {
			both := record[2*(proc-first)*n:]
			coded[proc] = both[n:][:n]
			if row, source := x.e.problem.Source(proc); source {
				copy(initial[row*n:][:n], both)
			}
		}
	}
	first, end := x.first, x.end
	if all {
		first, end = 0, k
	}
	wrong := make([]bool, end-first)
	err = share(ctx, len(wrong), k, func(i int) {
		if _, sink := x.e.problem.Sink(first + i); sink {
			column := columnOf(x.plan, first+i)
			want := combine(a.Field(), func(row int) field.Element { return a.At(row, column) }, initial, n)
			wrong[i] = !bytes.Equal(want, coded[first+i])
		}
	})
	if err != nil {
		return err
	}
	for i, is := range wrong {
		if is && x.first <= first+i && first+i < x.end {
			return &verify.CheckError{Proc: first + i}
		}
	}
	if i := slices.Index(wrong, true); i >= 0 { // which its own rank says to all, too
		return &transport.AbortError{Rank: executor.RankOf(i, k, x.t.Size()), Cause: &verify.CheckError{Proc: i}}
	}
	if all {
		return nil
	}
	return x.comm.Barrier(ctx) // who failed has aborted instead
}

// observed returns how long fingerprints have taken during the run, on as many cores as there are.
func (x *check) observed() time.Duration {
	return time.Duration(x.took.Load()) / time.Duration(min(len(x.prints), runtime.GOMAXPROCS(0)))
}
