package content

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"volley/group/internal/store"
	"volley/internal/disk"

	"pgregory.net/rapid"

	_ "volley/internal/rapidseed"
)

// TestBlockPackets reads and writes blocks of a chunk as packets, in parts of any length.
func TestBlockPackets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &store.Manifest{DataChunks: rapid.IntRange(1, 5).Draw(t, "data"), ParityChunks: 1}
		m.BlockBytes = store.Align * rapid.Int64Range(1, 6).Draw(t, "block")
		m.ChunkBytes = store.Align * rapid.Int64Range(1, 30).Draw(t, "chunk")
		chunk := rapid.IntRange(0, m.DataChunks-1).Draw(t, "of")
		whole := make([]byte, int64(m.DataChunks)*m.ChunkBytes)
		for i := range whole {
			whole[i] = byte(i*7 + i>>8)
		}
		b := Blocks{M: m}
		var want []byte
		for row := range m.Rows() {
			if rapid.Bool().Draw(t, "row") {
				b.Rows = append(b.Rows, row)
				_, n := m.Block(row)
				want = append(want, whole[m.OffsetOf(row, chunk, m.DataChunks):][:n]...)
			}
		}
		if b.Bytes() != int64(len(want)) {
			t.Fatalf("%d bytes: want %d", b.Bytes(), len(want))
		}
		r := &BlockReader{Blocks: b, Source: bytes.NewReader(whole), Chunk: chunk, Chunks: m.DataChunks}
		var rows []int
		back := make([]byte, len(whole))
		w := &BlockWriter{Blocks: b, Take: func(row int, block []byte) error {
			rows = append(rows, row)
			copy(back[m.OffsetOf(row, chunk, m.DataChunks):], block)
			return nil
		}}
		for at := 0; at < len(want); {
			n := min(rapid.IntRange(1, 100).Draw(t, "part"), len(want)-at)
			part := make([]byte, n)
			if got, err := r.ReadAt(part, int64(at)); got != n || err != nil || !bytes.Equal(part, want[at:at+n]) {
				t.Fatalf("read %d at %d: %d, %v", n, at, got, err)
			}
			if got, err := w.WriteAt(part, int64(at)); got != n || err != nil {
				t.Fatalf("wrote %d at %d: %d, %v", n, at, got, err)
			}
			at += n
		}
		if !slices.Equal(rows, b.Rows) {
			t.Fatalf("rows %v were written: want %v", rows, b.Rows)
		}
		for _, row := range b.Rows {
			at := m.OffsetOf(row, chunk, m.DataChunks)
			_, n := m.Block(row)
			if !bytes.Equal(back[at:at+n], whole[at:at+n]) {
				t.Fatalf("row %d came back otherwise", row)
			}
		}
		if _, err := r.ReadAt(make([]byte, 1), int64(len(want))); err == nil {
			t.Fatal("there is something after the end")
		}
	})
}

// TestHandles checks that no more files are open than may be, the last ones used.
func TestHandles(t *testing.T) {
	t.Parallel()
	var h Handles[int]
	files := map[int][]*counted{}
	get := func(key int) *counted {
		f, err := h.Get(key, func() (disk.File, error) {
			c := &counted{}
			files[key] = append(files[key], c)
			return c, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return f.(*counted)
	}
	for i := range MostOpen {
		get(i)
	}
	if a, b := get(3), get(3); a != b || len(files[3]) != 1 {
		t.Error("a file that is open was opened again")
	}
	get(MostOpen)
	if files[0][0].closed != 1 || files[1][0].closed != 0 || len(h.Open) != MostOpen {
		t.Errorf("%d files are open; the first was closed %d times, the next %d", len(h.Open), files[0][0].closed, files[1][0].closed)
	}
	if get(0); len(files[0]) != 2 || len(h.Open) != MostOpen {
		t.Errorf("a file that was closed was opened %d times, and %d files are open", len(files[0]), len(h.Open))
	}
	broken := errors.New("no")
	if _, err := h.Get(-1, func() (disk.File, error) { return nil, broken }); err != broken {
		t.Errorf("%v: want %v", err, broken)
	}
	h.Close()
	for key, list := range files {
		for _, f := range list {
			if f.closed != 1 {
				t.Errorf("file %d was closed %d times", key, f.closed)
			}
		}
	}
	if len(h.Open) != 0 || len(h.Order) != 0 {
		t.Error("files are open that were closed")
	}
}

// A counted file counts how often it was closed.
type counted struct {
	disk.File
	closed int
}

func (c *counted) Close() error { c.closed++; return nil }
