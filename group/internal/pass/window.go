package pass

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"

	"volley/collective"
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/hugepage"
	"volley/transport"
)

// A Window is some cells of a node, in memory. At each position of a chunk lies a cell of the chunk's codeword: the first
// of the codeword's cells at the first position, and so on. Where a codeword has fewer bytes than others, zeros follow.
type Window struct {
	M       *store.Manifest
	Node    int
	Span    int64   // bytes of each chunk
	cells   [][]int // by codeword, ascending
	memory  []byte  // of the longest window until now: chunks of data, then of parity
	changed []int   // cells that have changed since they were protected
	stage   *stage  // nil: only the nodes here have their windows at this rank
	region  int     // of the stage
}

func newWindow(m *store.Manifest, node int, g *stage, region int) *Window {
	w := &Window{M: m, Node: node, stage: g, region: region}
	if g != nil {
		w.memory = g.memory(node, region)
	}
	return w
}

// A Block is the block of a node in a cell.
type Block struct {
	content.Symbol
	Row, Cell int
	Bytes     []byte
}

// lay makes room for cells.
func (w *Window) lay(cells [][]int) {
	w.cells, w.Span = cells, 0
	shortest := int64(math.MaxInt64)
	for _, list := range cells {
		span := int64(0)
		if len(list) > 0 {
			_, last := w.M.Block(list[len(list)-1] % w.M.Rows())
			span = int64(len(list)-1)*w.M.BlockBytes + last
		}
		w.Span, shortest = max(w.Span, span), min(shortest, span)
	}
	n := int(w.Span) * (w.M.DataChunks + w.M.ParityChunks)
	if len(w.memory) < n {
		w.memory = hugepage.Make(n)
	}
	if shortest < w.Span {
		clear(w.memory[:n])
	}
}

// chunk returns the blocks of a chunk, with the zeros that follow: of another node where that is on the stage.
func (w *Window) chunk(x content.Symbol) []byte {
	i, memory := x.Index, w.memory
	if x.Parity {
		i += w.M.DataChunks
	}
	if x.Node != w.Node {
		memory = w.stage.memory(x.Node, w.region)
	}
	return memory[int64(i)*w.Span:][:w.Span]
}

// Positions returns the blocks of data, or of parity, position by position, and what every chunk has there.
func (w *Window) Positions(parity bool) iter.Seq2[[]Block, [][]byte] {
	m, chunks := w.M, w.M.DataChunks
	if parity {
		chunks = m.ParityChunks
	}
	return func(yield func([]Block, [][]byte) bool) {
		for first := int64(0); first < w.Span; first += m.BlockBytes {
			var blocks []Block
			var padded [][]byte
			for i := range chunks {
				x := content.Symbol{Node: w.Node, Parity: parity, Index: i}
				memory := w.chunk(x)[first:min(first+m.BlockBytes, w.Span)]
				padded = append(padded, memory)
				if cells, position := w.cells[x.Codeword(m)], int(first/m.BlockBytes); position < len(cells) {
					row := cells[position] % m.Rows()
					_, n := m.Block(row)
					blocks = append(blocks, Block{x, row, cells[position], memory[:n]})
				}
			}
			if !yield(blocks, padded) {
				return
			}
		}
	}
}

// Blocks returns the blocks of some symbols of the node.
func (w *Window) Blocks(symbols []content.Symbol) iter.Seq[Block] {
	return func(yield func(Block) bool) {
		for _, parity := range []bool{false, true} {
			for blocks := range w.Positions(parity) {
				for _, b := range blocks {
					if slices.Contains(symbols, b.Symbol) && !yield(b) {
						return
					}
				}
			}
		}
	}
}

// part returns a window with some of the cells, and their blocks.
func (w *Window) part(cells []int) *Window {
	if len(cells) == len(w.cellList()) {
		return w
	}
	part := newWindow(w.M, w.Node, w.stage, partRegion)
	part.lay(byCodeword(w.M, cells))
	for _, parity := range []bool{false, true} {
		for blocks := range part.Positions(parity) {
			for _, b := range blocks {
				copy(b.Bytes, w.find(b))
			}
		}
	}
	return part
}

// find returns the block that a part of the window has a copy of.
func (w *Window) find(b Block) []byte {
	i, _ := slices.BinarySearch(w.cells[b.Codeword(w.M)], b.Cell)
	return w.chunk(b.Symbol)[int64(i)*w.M.BlockBytes:][:len(b.Bytes)]
}

// cellList returns the cells of the window, ascending.
func (w *Window) cellList() []int { return slices.Concat(w.cells...) }

// Code runs a repair on some cells of the windows of the nodes here, and returns windows that have just these.
func Code(ctx context.Context, s *session.Session, windows []*Window, cells []int, r *erasure.Repair) (parts []*Window, _ *protection.PlanTraffic, err error) {
	for _, w := range windows {
		parts = append(parts, w.part(cells))
	}
	first, set := parts[0], s.Setting()
	if first.stage != nil {
		set.Window = first.stage.window
	}
	traffic, err := r.Run(ctx, set, first.Span, func(x content.Symbol) []byte {
		if i := x.Node - first.Node; 0 <= i && i < len(parts) {
			return parts[i].chunk(x)
		}
		return first.chunk(x)
	})
	return parts, traffic, err
}

// Rows returns the rows of a window that has all cells of its rows.
func (w *Window) Rows() []int { return w.cells[0] } // those of codeword 0 have the numbers of their rows

// CellsOf returns the cells in rows, all ascending.
func CellsOf(m *store.Manifest, rows []int) (cells []int) {
	for codeword := range m.Nodes {
		for _, row := range rows {
			cells = append(cells, codeword*m.Rows()+row)
		}
	}
	return cells
}

// byCodeword deals ascending cells to their codewords.
func byCodeword(m *store.Manifest, cells []int) (lists [][]int) {
	for codeword := range m.Nodes {
		n, _ := slices.BinarySearch(cells, (codeword+1)*m.Rows())
		lists, cells = append(lists, cells[:n]), cells[n:]
	}
	return lists
}

// mostWindow is how many bytes of data and parity a window of all nodes in a memory has, unless a row is longer:
// two of them stay in a cache while they are hashed, coded and checked. Between machines, wireWindow, it is the bytes
// of some hundred latencies: links are idle between windows.
const (
	mostWindow = 4 << 20
	wireWindow = 16 << 20
)

// EachWindow reads the chosen cells at the nodes here, which have so many bytes, by windows. While it reads the next
// window, it uses the last. All ranks give the same cells, and have the same windows.
func EachWindow(ctx context.Context, s *session.Session, m *store.Manifest, chosen []int, bytes int64, read func(ctx context.Context, i int, w *Window) error, use func(context.Context, []*Window) error) error {
	hosted := (s.K + s.T.Size() - 1) / s.T.Size()
	limit := int64(mostWindow / hosted)
	if s.T.Size() > 1 && transport.Overlaps(s.T) {
		limit = int64(wireWindow / hosted)
	}
	cells := byCodeword(m, chosen)
	longest := len(slices.MaxFunc(cells, func(a, b []int) int { return len(a) - len(b) }))
	if longest == 0 {
		return nil
	}
	position := int64(m.DataChunks+m.ParityChunks) * m.BlockBytes // bytes
	positions := int(max(1, min(mostWindow/int64(s.K), s.Memory/4)/position))
	g, err := newStage(ctx, s, int64(min(positions, longest))*position)
	if err != nil {
		return err
	}
	if g == nil {
		positions = int(max(1, min(limit, s.Memory/4)/position))
	}
	bytesBefore := func(n int) int64 {
		return int64(float64(bytes) * (float64(min(n, longest)) / float64(longest)))
	}
	s.Tell(0, bytes)
	var sets [2][]*Window
	for i := range sets {
		for _, n := range s.Nodes {
			sets[i] = append(sets[i], newWindow(m, n.Index, g, i))
		}
	}
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx) // what is read ahead ends before the run does
	defer reading.Wait()
	defer cancel(nil)
	steady := collective.New(s.T, s.Timeout).Separate().Steady // apart from messages of the previous window
	if g != nil {
		steady = g.steady
		reading.Go(func() { collective.New(s.T, s.Timeout).Live(ctx, cancel, g.window, &g.busy) })
	}
	begin := func(number int) <-chan error {
		result := make(chan error, 1)
		first := number * positions
		if first >= longest {
			close(result)
			return result
		}
		var chosen [][]int
		for _, list := range cells {
			chosen = append(chosen, list[min(first, len(list)):min(first+positions, len(list))])
		}
		reading.Go(func() {
			result <- steady(ctx, func(ctx context.Context) error {
				return s.EachLocal(func(i int, _ *store.Node) error {
					w := sets[number%2][i]
					w.lay(chosen)
					return read(ctx, i, w)
				})
			})
		})
		if s.InTurn { // nothing is read ahead
			err := <-result
			result <- err
		}
		return result
	}
	result := begin(0)
	for number := 0; number*positions < longest; number++ {
		if err := <-result; err != nil {
			return err
		}
		result = begin(number + 1)
		if err := use(ctx, sets[number%2]); err != nil {
			cancel(err)
			if ahead := <-result; ahead != nil && !errors.As(ahead, new(*transport.AbortError)) {
				return ahead // it may have caused err
			}
			return err
		}
		s.Tell(bytesBefore((number+1)*positions)-bytesBefore(number*positions), 0)
	}
	return nil
}
