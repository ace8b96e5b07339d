package executor

// compute is the computing of a stage, on all elements block by block.
type compute struct {
	blockLength int
	stride      int // of blocks in scratch memory
	workers     []worker
	body        func(worker, block int)

	steps  []step // of the stage
	length int    // of an element
}

// A worker is the memory of a goroutine.
type worker struct {
	memory  *arena
	scratch []byte
	packets [][]byte // outputs and inputs of one map
}

// Bytes of scratch memory that a worker uses at a time, and bounds for a block of one
// element: steps are in an order that lets short blocks of many elements be fetched
// seldom, and a map on less than a block has more to do to begin than to do.
const (
	cacheBytes = 256 << 10
	leastBlock = 4 << 10
	mostBlock  = 32 << 10
	blockUnit  = 128
)

// prepare chooses the length of a block.
func (m *machine) prepare() {
	m.body = m.block
	n := m.element(min(m.job.Segment, m.job.Bytes))
	each := cacheBytes / max(1, m.part.scratch)
	each = min(max(each, leastBlock), mostBlock)
	if share := n / workers(n); share < each && m.part.work*n >= minShared {
		each = share // a block for every core
	}
	m.blockLength = max(blockUnit, (each+blockUnit-1)/blockUnit*blockUnit)
}

// minShared is the multiply-adds, of bytes, from which they are worth sharing.
const minShared = 256 << 10

// blocks returns the number of blocks of n bytes.
func (m *machine) blocks(n int) int { return (n + m.blockLength - 1) / m.blockLength }

// code computes stage i on n bytes of every element.
func (m *machine) code(i, n int) {
	m.steps, m.length = m.part.stages[i].steps, n
	switch blocks := m.blocks(n); {
	case len(m.steps) == 0:
	case m.part.work*n < minShared:
		for b := range blocks {
			m.block(0, b)
		}
	default:
		m.crew.share(blocks, m.body)
	}
}

// block runs the steps on block b.
func (m *machine) block(w, b int) {
	from := b * m.blockLength
	n := min(m.blockLength, m.length-from)
	mine := &m.workers[w]
	at := func(p place) []byte {
		if p < 0 {
			return mine.scratch[int(^p)*m.stride:][:n]
		}
		return m.memory[p][from:][:n]
	}
	for i := range m.steps {
		st := &m.steps[i]
		packets := mine.packets
		for k, p := range st.out {
			packets[k] = at(p)
		}
		in := packets[len(st.out):]
		for k, p := range st.in {
			in[k] = at(p)
		}
		switch {
		case st.change == copied:
			copy(packets[0], in[0])
		case st.change == toPlanes:
			m.part.planar.ToPlanes(packets[0], in[0])
		case st.change == fromPlanes:
			m.part.planar.FromPlanes(packets[0], in[0])
		case st.of == nil:
			clear(packets[0])
		default:
			st.of.Apply(packets[:len(st.out)], in[:len(st.in)], st.add)
		}
	}
}
