package executor

import (
	"slices"
	"sync/atomic"

	"volley/executor/internal/compile"
	"volley/executor/internal/cores"
)

// A worker is the memory of a goroutine while it computes: of many ranks in a process few do at a time.
type worker struct {
	memory  *arena
	scratch []byte
	packets [][]byte // outputs and inputs of one operation
}

// Bytes of scratch memory that a worker uses at a time, and bounds for a block of one
// element: operations are in an order that lets short blocks of many elements be fetched
// seldom, and a map on less than a block has more to do to begin than to do.
const (
	cacheBytes = 256 << 10
	leastBlock = 4 << 10
	mostBlock  = 32 << 10
	blockUnit  = 128

	// What ObserveAll sees is in the second cache: so much of all inputs and outputs, while blocks are no shorter than
	// this.
	observedBytes = 512 << 10
	leastObserved = 2 << 10
)

// From so many multiply-adds, of bytes, they are worth sharing: a core takes some 10 µs to wake up, or a
// time slice where others keep it busy.
const (
	minShared       = 256 << 10
	minSharedBinary = 2 << 20 // of characteristic 2, whose kernels do as many in some 50 µs
)

// shared reports whether what is computed of elements of n bytes is worth sharing.
func (b *Bound) shared(n int) bool {
	work := b.x.Work
	if b.job.ObserveAll != nil {
		work += observed * b.x.Elements()
	}
	if b.x.Binary {
		return work*n >= minSharedBinary
	}
	return work*n >= minShared
}

// observed is how many multiply-adds ObserveAll takes about for each byte that it sees.
const observed = 4

// streamBytes is from how many bytes of results of a run on they pass by the caches, unless somebody looks at them. With
// 32 MiB of last cache that took 0.4 to 0.9 of the time (2, 4 and 8 packets, 2 cores).
const streamBytes = 16 << 20

// chooseBlocks chooses the length of a block, for elements of n bytes.
func (b *Bound) chooseBlocks(n int) {
	each := cacheBytes / max(1, b.x.Scratch)
	least := leastBlock
	if b.job.ObserveAll != nil {
		least = leastObserved
		each = min(each, observedBytes/b.x.Elements())
	}
	each = min(max(each, least), mostBlock, n)
	if share := n / b.workersFor(n); share < each && b.shared(n) {
		each = share // a block for every core
	}
	b.blockLength = max(blockUnit, (each+blockUnit-1)/blockUnit*blockUnit)
	b.stride = b.blockLength + apart
}

// blocks returns the number of blocks of n bytes.
func (b *Bound) blocks(n int) int { return (n + b.blockLength - 1) / b.blockLength }

// workersFor returns how many goroutines work on that many items at most.
func (b *Bound) workersFor(items int) int { return max(1, min(items, b.cores)) }

// A coder computes what steps take, on all cores, and shows it to observers.
type coder struct {
	*segment
	workers    []worker
	operations []compile.Operation // of the step that is computed
	block      func(worker, block int)
	observer   func(worker, processor int)
	refused    []error               // what Observe said, by processor
	refusal    atomic.Pointer[error] // what ObserveAll said first
}

func (l *coder) init(s *segment) {
	l.segment = s
	l.workers = make([]worker, l.workersFor(l.blocks(l.at(0).element)))
	l.refused = make([]error, len(l.x.Processors))
	l.block, l.observer = l.computeBlock, l.observeOne
}

// compute computes what goes before the messages of step s, on all elements block by block.
func (l *coder) compute(s int) {
	began := l.job.Trace.Now()
	l.operations = l.x.Steps[s].Operations
	switch {
	case len(l.operations) == 0 && l.job.ObserveAll == nil:
	case l.x.Compact:
		cores.On(l.computeBlocks)
	default:
		l.computeBlocks()
	}
	l.computed(s, began)
}

// computeBlocks applies the operations to all blocks.
func (l *coder) computeBlocks() {
	blocks, workers := l.blocks(l.element), l.workers
	if !l.shared(l.element) {
		workers = workers[:1]
	}
	l.equip(workers)
	defer l.release(workers)
	if len(workers) > 1 {
		l.pool.Share(blocks, l.block)
		return
	}
	for b := range blocks {
		l.computeBlock(0, b)
	}
}

// fewPackets is up to how many a worker without scratch memory has room for between its runs, too.
const fewPackets = 64

// equip gives workers their memory.
func (l *coder) equip(workers []worker) {
	x, widest := l.x, l.x.Widest
	if l.job.ObserveAll != nil {
		widest = max(widest, x.Elements())
	}
	for i := range workers {
		w := &workers[i]
		if x.Scratch == 0 && widest <= fewPackets { // for good
			w.packets = slices.Grow(w.packets, widest)[:widest]
			continue
		}
		w.memory = scratches.take(max(x.Scratch*l.stride, min(x.Scratch, len(workers)-1, 1)*leastScratch))
		w.scratch, w.packets = w.memory.take(x.Scratch*l.stride), slices.Grow(w.memory.packets[:0], widest)[:widest]
	}
}

// release takes the memory back.
func (l *coder) release(workers []worker) {
	for i := range workers {
		w := &workers[i]
		if w.memory == nil {
			continue
		}
		clear(w.packets)
		w.memory.packets = w.packets
		w.memory.free()
		*w = worker{}
	}
}

// computeBlock applies the operations to block b, and shows it to ObserveAll.
func (l *coder) computeBlock(w, b int) {
	from := b * l.blockLength
	n := min(l.blockLength, l.element-from)
	mine := &l.workers[w]
	if l.job.ObserveAll != nil {
		defer l.observeBlock(mine, from, n)
	}
	at := func(p compile.Location) []byte {
		if p < 0 {
			return mine.scratch[int(^p)*l.stride:][:n]
		}
		return l.memory[p][from:][:n]
	}
	for i := range l.operations {
		op := &l.operations[i]
		packets := mine.packets
		for k, p := range op.Out {
			packets[k] = at(p)
		}
		in := packets[len(op.Out):]
		for k, p := range op.In {
			in[k] = at(p)
		}
		l.x.Apply(op, packets[:len(op.Out)], in[:len(op.In)], l.stream)
	}
}

// observeBlock shows n bytes of all elements to ObserveAll, unless it has refused others. A single rank has a single
// step.
func (l *coder) observeBlock(mine *worker, from, n int) {
	in, out := l.x.Inputs/l.pieces, len(l.x.Outputs)/l.pieces
	packets := mine.packets[:in+out]
	for piece := range l.pieces {
		for i := range in {
			packets[i] = l.memory[i*l.pieces+piece][from:][:n]
		}
		for o := range out {
			packets[in+o] = l.memory[l.x.Outputs[o*l.pieces+piece].At][from:][:n]
		}
		if l.refusal.Load() != nil {
			return
		}
		if err := l.job.ObserveAll(packets[:in:in], packets[in:]); err != nil {
			l.refusal.CompareAndSwap(nil, &err)
		}
	}
}

// observe shows the segment to the observer.
func (l *coder) observe() error {
	if refusal := l.refusal.Swap(nil); refusal != nil {
		return *refusal
	}
	if l.job.Observe == nil {
		return nil
	}
	l.pool.Share(len(l.refused), l.observer)
	for q, err := range l.refused {
		if err != nil {
			return of(l.x.First+q, err)
		}
	}
	return nil
}

func (l *coder) observeOne(_, q int) {
	in, out := l.x.Processors[q].Inputs, l.x.Processors[q].Outputs
	l.refused[q] = l.job.Observe(l.x.First+q, l.inputs[in.First:in.End], l.outputs[out.First:out.End])
}
