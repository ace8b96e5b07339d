package executor

import "slices"

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

	// What ObserveAll sees is in the second cache: so much of all inputs and outputs, while blocks are no shorter than this.
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
func (r *run) shared(n int) bool {
	work := r.x.work
	if r.ObserveAll != nil {
		work += observed * r.x.elements()
	}
	if r.x.binary {
		return work*n >= minSharedBinary
	}
	return work*n >= minShared
}

// observed is how many multiply-adds ObserveAll takes about for each byte that it sees.
const observed = 4

// elements returns how many inputs and outputs there are.
func (x *Executable) elements() int { return x.inputs + len(x.outputs) }

// chooseBlocks chooses the length of a block, for elements of n bytes.
func (r *run) chooseBlocks(n int) {
	each := cacheBytes / max(1, r.x.scratch)
	least := leastBlock
	if r.ObserveAll != nil {
		least = leastObserved
		each = min(each, observedBytes/r.x.elements())
	}
	each = min(max(each, least), mostBlock, n)
	if share := n / r.workersFor(n); share < each && r.shared(n) {
		each = share // a block for every core
	}
	r.blockLength = max(blockUnit, (each+blockUnit-1)/blockUnit*blockUnit)
	r.stride = r.blockLength + apart
}

// blocks returns the number of blocks of n bytes.
func (r *run) blocks(n int) int { return (n + r.blockLength - 1) / r.blockLength }

// workersFor returns how many goroutines work on that many items at most.
func (r *run) workersFor(items int) int { return max(1, min(items, r.cores)) }

// compute computes what goes before the messages of step s, on all elements block by block.
func (l *lane) compute(s int) {
	began := l.Trace.Now()
	l.operations = l.x.steps[s].operations
	switch {
	case len(l.operations) == 0 && l.ObserveAll == nil:
	case l.x.compact:
		OnCore(l.computeBlocks)
	default:
		l.computeBlocks()
	}
	l.computed(s, began)
}

// computeBlocks applies the operations to all blocks.
func (l *lane) computeBlocks() {
	blocks, workers := l.blocks(l.element), l.workers
	if !l.shared(l.element) {
		workers = workers[:1]
	}
	l.equip(workers)
	defer l.release(workers)
	if len(workers) > 1 {
		l.pool.share(blocks, l.block)
		return
	}
	for b := range blocks {
		l.computeBlock(0, b)
	}
}

// fewPackets is up to how many a worker without scratch memory has room for between its runs, too.
const fewPackets = 64

// equip gives workers their memory.
func (l *lane) equip(workers []worker) {
	x, widest := l.x, l.x.widest
	if l.ObserveAll != nil {
		widest = max(widest, x.elements())
	}
	for i := range workers {
		w := &workers[i]
		if x.scratch == 0 && widest <= fewPackets { // for good
			w.packets = slices.Grow(w.packets, widest)[:widest]
			continue
		}
		w.memory = scratches.take(max(x.scratch*l.stride, min(x.scratch, len(workers)-1, 1)*leastScratch))
		w.scratch, w.packets = w.memory.take(x.scratch*l.stride), slices.Grow(w.memory.packets[:0], widest)[:widest]
	}
}

// release takes the memory back.
func (l *lane) release(workers []worker) {
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
func (l *lane) computeBlock(w, b int) {
	from := b * l.blockLength
	n := min(l.blockLength, l.element-from)
	mine := &l.workers[w]
	if l.ObserveAll != nil {
		defer l.observeBlock(mine, from, n)
	}
	at := func(p location) []byte {
		if p < 0 {
			return mine.scratch[int(^p)*l.stride:][:n]
		}
		return l.memory[p][from:][:n]
	}
	for i := range l.operations {
		op := &l.operations[i]
		packets := mine.packets
		for k, p := range op.out {
			packets[k] = at(p)
		}
		in := packets[len(op.out):]
		for k, p := range op.in {
			in[k] = at(p)
		}
		switch {
		case op.convert == copied:
			copy(packets[0], in[0])
		case op.convert == toPlanes:
			l.x.planar.ToPlanes(packets[0], in[0])
		case op.convert == fromPlanes:
			l.x.planar.FromPlanes(packets[0], in[0])
		case op.of == nil:
			clear(packets[0])
		default:
			op.of.Apply(packets[:len(op.out)], in[:len(op.in)], op.add)
		}
	}
}

// observeBlock shows n bytes of all elements to ObserveAll, unless it has refused others. A single rank has a single step.
func (l *lane) observeBlock(mine *worker, from, n int) {
	in, out := l.x.inputs/l.pieces, len(l.x.outputs)/l.pieces
	packets := mine.packets[:in+out]
	for piece := range l.pieces {
		for i := range in {
			packets[i] = l.memory[i*l.pieces+piece][from:][:n]
		}
		for o := range out {
			packets[in+o] = l.memory[l.x.outputs[o*l.pieces+piece].at][from:][:n]
		}
		if l.refusal.Load() != nil {
			return
		}
		if err := l.ObserveAll(packets[:in:in], packets[in:]); err != nil {
			l.refusal.CompareAndSwap(nil, &err)
		}
	}
}
