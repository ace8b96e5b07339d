package store

import (
	"fmt"
	"slices"
	"testing"
	"volley/group/internal/tree"

	"pgregory.net/rapid"

	_ "volley/internal/rapidseed"
)

// drawManifest draws one with sizes only.
func drawManifest(t *rapid.T) *Manifest {
	m := &Manifest{Digest: rapid.SampledFrom([]string{SHA256, BLAKE3, XXH3}).Draw(t, "digest"), DataChunks: rapid.IntRange(1, 5).Draw(t, "data"), ParityChunks: rapid.IntRange(1, 3).Draw(t, "parity")}
	m.BlockBytes = Align * rapid.Int64Range(1, 6).Draw(t, "block")
	m.ChunkBytes = Align * rapid.Int64Range(1, 30).Draw(t, "chunk")
	return m
}

// TestBlocks checks that blocks follow each other, that each byte is in the block that has
// it, and that these are the parts into which files are cut.
func TestBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawManifest(t)
		for _, chunks := range []int{m.DataChunks, m.ParityChunks} {
			var end int64
			number := 0
			err := m.InOrder(chunks, func(row, chunk int, at, n int64) error {
				_, length := m.Block(row)
				if at != end || n != length || n <= 0 || m.OffsetOf(row, chunk, chunks) != at || m.Number(row, chunk, chunks) != number {
					t.Fatalf("row %d, chunk %d: at %d, %d bytes, number %d: want at %d, number %d", row, chunk, at, n, m.Number(row, chunk, chunks), end, number)
				}
				if chunks == m.DataChunks {
					for _, x := range []int64{at, at + n - 1} {
						if r, c, stop := m.BlockAt(x, m.DataChunks); r != row || c != chunk || stop != at+n {
							t.Fatalf("byte %d is in row %d, chunk %d, to %d: want %d, %d, to %d", x, r, c, stop, row, chunk, at+n)
						}
					}
				}
				end += n
				number++
				return nil
			})
			if err != nil || end != int64(chunks)*m.ChunkBytes || number != m.Rows()*chunks {
				t.Fatalf("%d blocks, %d bytes, %v", number, end, err)
			}
		}
		var list []*tree.Entry
		for i, size := range rapid.SliceOfN(rapid.Int64Range(0, 50), 0, 20).Draw(t, "sizes") {
			list = append(list, &tree.Entry{Path: tree.Name(fmt.Sprint("f", i)), Type: tree.TypeFile, Size: size})
		}
		tree.Allocate(list, nil, MostChunk)
		list = slices.DeleteFunc(list, func(e *tree.Entry) bool { return e.Offset+e.Size > int64(m.DataChunks)*m.ChunkBytes })
		files := tree.ExtentsOf(list)
		covered := make([]int64, len(files))
		for i, g := range m.FilePartsOf(files) {
			row, chunk, stop := m.BlockAt(g.Offset, m.DataChunks)
			f := files[g.File]
			if g.N <= 0 || row != g.Row || chunk != g.Chunk || g.Offset+g.N > stop || g.Offset != f.Offset+covered[g.File] || g.Offset+g.N != min(stop, f.Offset+f.Size) {
				t.Fatalf("part %d: %+v of %+v, in a block that ends at %d", i, g, f, stop)
			}
			covered[g.File] += g.N
		}
		for i, n := range covered {
			if n != files[i].Size {
				t.Fatalf("%+v: %d bytes are in parts", files[i], n)
			}
		}
	})
}

// TestSizes checks the lengths of chunks and blocks at their bounds.
func TestSizes(t *testing.T) {
	t.Parallel()
	const kib, gib = 1 << 10, 1 << 30
	for _, x := range []struct {
		d, p         int
		most         int64
		earlier      int64 // block; 0: there is none
		chunk, block int64
	}{
		{1, 1, 0, 0, 0, 64 * kib}, {1, 1, 1, 0, 8, 64 * kib}, {1, 1, 8, 0, 8, 64 * kib}, {2, 1, 17, 0, 16, 64 * kib}, {2, 1, 128 * kib, 0, 64 * kib, 64 * kib}, {2, 1, 128*kib + 1, 0, 64*kib + 8, 64 * kib},
		{3, 1, 3*64*kib*5 + 25, 0, 5*64*kib + 16, 64 * kib},
		// Blocks are shorter where there are many of them in a row, and longer where there are many rows.
		{128, 2, 8, 0, 8, 64 * kib}, {129, 2, 8, 0, 8, 32 * kib}, {1023, 1, 8, 0, 8, 8 * kib},
		{1, 1, 2 * gib, 0, 2 * gib, 64 * kib}, {1, 1, 2*gib + 1, 0, 2*gib + 8, 128 * kib}, {1, 1, 32 * 1024 * gib, 0, 32 * 1024 * gib, LongBlock}, {1, 1, 64 * 1024 * gib, 0, 64 * 1024 * gib, LongBlock},
		// They stay as they were, unless that makes far too many, or far too long ones.
		{1, 1, 8 * gib, 64 * kib, 8 * gib, 64 * kib}, {1, 1, 8*gib + 1, 64 * kib, 8*gib + 8, 512 * kib}, {1, 1, 1, 256 * kib, 8, 256 * kib}, {1, 1, 1, 320 * kib, 8, 64 * kib},
		{1, 1, 1, 8 * kib, 8, 8 * kib},
	} {
		m := &Manifest{Version: Version, DataChunks: x.d, ParityChunks: x.p}
		var earlier *Manifest
		if x.earlier > 0 {
			earlier = &Manifest{Version: Version, BlockBytes: x.earlier}
		}
		if m.Geometry(x.most, earlier); m.ChunkBytes != x.chunk || m.BlockBytes != x.block {
			t.Errorf("%+v: chunks of %d, blocks of %d", x, m.ChunkBytes, m.BlockBytes)
		}
	}
	like := Manifest{Version: Version, Nodes: 3, Tolerate: 1}
	for i, change := range []func(*Manifest){
		func(*Manifest) {}, func(m *Manifest) { m.Digest = XXH3 },
		func(m *Manifest) { m.Nodes = 4 }, func(m *Manifest) { m.Tolerate = 2 },
	} {
		m := like
		change(&m)
		if m.Follows(&like) != (i == 0) || like.Follows(&m) != (i == 0) || m.Follows(nil) {
			t.Errorf("%+v follows: %v", m, i > 0)
		}
	}
}
