package executor

import (
	"context"
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
	length := cacheBytes / max(1, b.x.Scratch)
	least := leastBlock
	if b.job.ObserveAll != nil {
		least = leastObserved
		length = min(length, observedBytes/b.x.Elements())
	}
	length = min(max(length, least), mostBlock, n)
	if share := n / b.workersFor(n); share < length && b.shared(n) {
		length = share // a block for every core
	}
	b.blockLength = max(blockUnit, (length+blockUnit-1)/blockUnit*blockUnit)
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

func (c *coder) init(s *segment) {
	c.segment = s
	c.workers = make([]worker, c.workersFor(c.blocks(c.partAt(0).element)))
	c.refused = make([]error, len(c.x.Processors))
	c.block, c.observer = c.computeBlock, c.observeOne
}

// compute computes what goes before the messages of step s, on all elements block by block.
func (c *coder) compute(s int) {
	c.operations = c.x.Steps[s].Operations
	switch {
	case len(c.operations) == 0 && c.job.ObserveAll == nil:
	case c.x.Compact:
		_ = cores.Run(context.Background(), c.computeBlocks)
	default:
		c.computeBlocks()
	}
}

// computeBlocks applies the operations to all blocks.
func (c *coder) computeBlocks() {
	blocks, workers := c.blocks(c.element), c.workers
	if !c.shared(c.element) {
		workers = workers[:1]
	}
	c.equip(workers)
	defer c.release(workers)
	if len(workers) > 1 {
		c.pool.Share(blocks, c.block)
		return
	}
	for b := range blocks {
		c.computeBlock(0, b)
	}
}

// fewPackets is up to how many a worker without scratch memory has room for between its runs, too.
const fewPackets = 64

// equip gives workers their memory.
func (c *coder) equip(workers []worker) {
	x, widest := c.x, c.x.Widest
	if c.job.ObserveAll != nil {
		widest = max(widest, x.Elements())
	}
	for i := range workers {
		w := &workers[i]
		if x.Scratch == 0 && widest <= fewPackets { // for good
			w.packets = slices.Grow(w.packets, widest)[:widest]
			continue
		}
		w.memory = scratches.take(max(x.Scratch*c.stride, min(x.Scratch, len(workers)-1, 1)*leastScratch))
		w.scratch, w.packets = w.memory.take(x.Scratch*c.stride), slices.Grow(w.memory.packets[:0], widest)[:widest]
	}
}

// release takes the memory back.
func (c *coder) release(workers []worker) {
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
func (c *coder) computeBlock(w, b int) {
	start := b * c.blockLength
	n := min(c.blockLength, c.element-start)
	mine := &c.workers[w]
	if c.job.ObserveAll != nil {
		defer c.observeBlock(mine, start, n)
	}
	locate := func(p compile.ElementOffset) []byte {
		if p < 0 {
			return mine.scratch[int(^p)*c.stride:][:n]
		}
		return c.memory[p][start:][:n]
	}
	for i := range c.operations {
		op := &c.operations[i]
		packets := mine.packets
		for k, p := range op.Outputs {
			packets[k] = locate(p)
		}
		inputs := packets[len(op.Outputs):]
		for k, p := range op.Inputs {
			inputs[k] = locate(p)
		}
		c.x.Apply(op, packets[:len(op.Outputs)], inputs[:len(op.Inputs)], c.stream)
	}
}

// observeBlock shows n bytes of all elements to ObserveAll, unless it has refused others. A single rank has a single
// step.
func (c *coder) observeBlock(mine *worker, start, n int) {
	inputs, outputs := c.x.Inputs/c.pieces, len(c.x.Outputs)/c.pieces
	packets := mine.packets[:inputs+outputs]
	for piece := range c.pieces {
		for i := range inputs {
			packets[i] = c.memory[i*c.pieces+piece][start:][:n]
		}
		for o := range outputs {
			packets[inputs+o] = c.memory[c.x.Outputs[o*c.pieces+piece].Element][start:][:n]
		}
		if c.refusal.Load() != nil {
			return
		}
		if err := c.job.ObserveAll(packets[:inputs:inputs], packets[inputs:]); err != nil {
			c.refusal.CompareAndSwap(nil, &err)
		}
	}
}

// observe shows the segment to the observer.
func (c *coder) observe() error {
	if refusal := c.refusal.Swap(nil); refusal != nil {
		return *refusal
	}
	if c.job.Observe == nil {
		return nil
	}
	c.pool.Share(len(c.refused), c.observer)
	for q, err := range c.refused {
		if err != nil {
			return inProcessor(c.x.First+q, err)
		}
	}
	return nil
}

func (c *coder) observeOne(_, q int) {
	inputs, outputs := c.x.Processors[q].Inputs, c.x.Processors[q].Outputs
	c.refused[q] = c.job.Observe(c.x.First+q, c.inputs[inputs.First:inputs.End], c.outputs[outputs.First:outputs.End])
}
