package pass

import (
	"context"
	"errors"
	"slices"
	"sync"

	"volley/collective"
	"volley/executor"
	"volley/group/internal/content"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/internal/hugepage"
	"volley/transport"
)

// A RowWindow is some rows of a node, in memory.
type RowWindow struct {
	M            *store.Manifest
	rows         []int  // ascending
	First, End   int    // the first of the rows, and behind the last
	memory       []byte // of the longest window until now
	Data, Parity []byte // chunk by chunk
	changed      []int  // rows that have changed since they were protected
}

func (w *RowWindow) span() int64 {
	_, last := w.M.Block(w.End - 1)
	return int64(len(w.rows)-1)*w.M.BlockBytes + last
}

// indexOf returns the position of a row among the rows of the window.
func (w *RowWindow) indexOf(row int) int {
	i, _ := slices.BinarySearch(w.rows, row)
	return i
}

func (w *RowWindow) Block(chunks []byte, row, chunk int) []byte {
	_, n := w.M.Block(row)
	return chunks[int64(chunk)*w.span()+int64(w.indexOf(row))*w.M.BlockBytes:][:n]
}

func (w *RowWindow) row(buffer []byte, row, chunks int) (blocks [][]byte) {
	for chunk := range chunks {
		blocks = append(blocks, w.Block(buffer, row, chunk))
	}
	return blocks
}

// contiguous returns the blocks of a chunk in the rows of b if they are adjacent, else nil.
func (w *RowWindow) contiguous(chunks []byte, chunk int, b content.Blocks) []byte {
	first, last := w.indexOf(b.Rows[0]), w.indexOf(b.Rows[len(b.Rows)-1])
	if last-first+1 > len(b.Rows) {
		return nil
	}
	return chunks[int64(chunk)*w.span()+int64(first)*w.M.BlockBytes:][:b.Bytes()]
}

// Input returns the blocks of a chunk in some of the rows, one after the other.
func (w *RowWindow) Input(chunks []byte, chunk int, b content.Blocks) executor.Input {
	if memory := w.contiguous(chunks, chunk, b); memory != nil {
		return executor.Input{Memory: memory}
	}
	var packet []byte
	for _, row := range b.Rows {
		packet = append(packet, w.Block(chunks, row, chunk)...)
	}
	return executor.Input{Memory: packet}
}

// output takes the blocks of a chunk of parity in some of the rows.
func (w *RowWindow) output(chunk int, b content.Blocks) executor.Output {
	if memory := w.contiguous(w.Parity, chunk, b); memory != nil {
		return executor.Output{Memory: memory}
	}
	return executor.Output{Writer: &content.BlockWriter{Blocks: b, Take: func(row int, block []byte) error {
		copy(w.Block(w.Parity, row, chunk), block)
		return nil
	}}}
}

// mostWindow is how many bytes of data and parity a window of all nodes in a process has, unless a row is longer:
// two of them stay in a cache while they are hashed, coded and checked. Between machines, wireWindow, it is the bytes
// of some hundred latencies: links are idle between windows.
const (
	mostWindow = 4 << 20
	wireWindow = 16 << 20
)

// EachWindow reads the chosen rows of the nodes here, which have so many bytes, by windows. While it reads the next
// window, it uses the last. All ranks give the same rows, and have the same windows.
func EachWindow(ctx context.Context, s *session.Session, m *store.Manifest, chosen []int, bytes int64, read func(ctx context.Context, i int, w *RowWindow) error, use func(context.Context, []*RowWindow) error) error {
	hosted := (s.K + s.T.Size() - 1) / s.T.Size()
	limit := int64(mostWindow / hosted)
	if s.T.Size() > 1 && transport.Overlaps(s.T) {
		limit = int64(wireWindow / hosted)
	}
	limit = min(limit, s.Memory/4)
	rows := int(max(1, limit/(int64(m.DataChunks+m.ParityChunks)*m.BlockBytes)))
	bytesBefore := func(n int) int64 {
		return int64(float64(bytes) * (float64(min(n, len(chosen))) / float64(len(chosen))))
	}
	s.Tell(0, bytes)
	var sets [2][]*RowWindow
	for i := range sets {
		for range s.Nodes {
			sets[i] = append(sets[i], &RowWindow{M: m})
		}
	}
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx) // what is read ahead ends before the run does
	defer reading.Wait()
	defer cancel(nil)
	readComm := collective.New(s.T, s.Timeout).Separate() // apart from messages of the previous window
	begin := func(number int) <-chan error {
		result := make(chan error, 1)
		first := number * rows
		if first >= len(chosen) {
			close(result)
			return result
		}
		reading.Go(func() {
			result <- readComm.Steady(ctx, func(ctx context.Context) error {
				return s.EachLocal(func(i int, _ *store.Node) error {
					w := sets[number%2][i]
					w.rows = chosen[first:min(first+rows, len(chosen))]
					w.First, w.End = w.rows[0], w.rows[len(w.rows)-1]+1
					data, parity := int(w.span())*m.DataChunks, int(w.span())*m.ParityChunks
					if len(w.memory) < data+parity {
						w.memory = hugepage.Make(data + parity)
					}
					w.Data, w.Parity = w.memory[:data], w.memory[data:][:parity]
					return read(ctx, i, w)
				})
			})
		})
		if s.InTurn {
			reading.Wait()
		}
		return result
	}
	result := begin(0)
	for number := 0; number*rows < len(chosen); number++ {
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
		s.Tell(bytesBefore((number+1)*rows)-bytesBefore(number*rows), 0)
	}
	return nil
}
