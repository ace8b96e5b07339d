package group

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

func file(name string, size int64) *tree.Entry {
	return &tree.Entry{Path: tree.Name(name), Type: tree.TypeFile, Size: size}
}

// copied returns copies of entries.
func copied(list []*tree.Entry) (copies []*tree.Entry) {
	for _, e := range list {
		is := *e
		copies = append(copies, &is)
	}
	return copies
}

// offsets returns where files lie.
func offsets(list []*tree.Entry) map[tree.Name]int64 {
	of := map[tree.Name]int64{}
	for _, e := range list {
		of[e.Path] = e.Offset
	}
	return of
}

// drawFiles draws some files at no places.
func drawFiles(t *rapid.T, least int) []*tree.Entry {
	var list []*tree.Entry
	for i, size := range rapid.SliceOfN(rapid.Int64Range(0, 50), least, 20).Draw(t, "sizes") {
		list = append(list, file(fmt.Sprint("f", i), size))
	}
	return list
}

// apartAndWithin fails unless files lie apart, and before the end, where one of them ends.
func apartAndWithin(t *rapid.T, list []*tree.Entry, end int64) {
	t.Helper()
	var at int64
	for _, e := range tree.ExtentsOf(list) {
		if e.Offset < at {
			t.Fatalf("%q begins at %d, and the one before ends at %d", e.Path, e.Offset, at)
		}
		at = e.Offset + e.Size
	}
	if at != end {
		t.Fatalf("the last one ends at %d, and the data at %d", at, end)
	}
}

// bytesOf returns how many bytes files have.
func bytesOf(list []*tree.Entry) (n int64) {
	for _, e := range list {
		n += e.Size
	}
	return n
}

// TestPlace checks that files lie apart, that what has not changed stays where it is, and
// that gaps are used again.
func TestPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawFiles(t, 1)
		end := tree.Allocate(list, nil, store.MostChunk)
		apartAndWithin(t, list, end)
		if total := bytesOf(list); end != total {
			t.Fatalf("%d bytes take %d", total, end)
		}
		// The same again.
		was := copied(list)
		if again := tree.Allocate(list, was, store.MostChunk); again != end || !reflect.DeepEqual(list, was) {
			t.Fatalf("nothing has changed, and %v became %v", was, list)
		}
		// One is gone, one grows, one shrinks, one comes, one is renamed.
		i := rapid.IntRange(0, len(list)-1).Draw(t, "changes")
		changed, pushed := was[i].Path, int64(0)
		switch rapid.IntRange(0, 4).Draw(t, "how") {
		case 0:
			list = slices.Delete(copied(was), i, i+1)
		case 1:
			list[i].Size += rapid.Int64Range(1, 100).Draw(t, "more")
			pushed = list[i].Size
		case 2:
			list[i].Size /= 2
		case 3:
			list = append(list, file("new", rapid.Int64Range(51, 100).Draw(t, "new")))
		case 4:
			list[i].Path = "renamed"
			if tree.Allocate(list, was, store.MostChunk); list[i].Offset != was[i].Offset {
				t.Fatalf("renamed, and went from %d to %d", was[i].Offset, list[i].Offset)
			}
		}
		before, old := bytesOf(was), end
		end = tree.Allocate(list, was, store.MostChunk)
		apartAndWithin(t, list, end)
		total := bytesOf(list)
		if 2*end > 3*total {
			t.Fatalf("%d bytes take %d", total, end)
		}
		if pushed > 0 && 8*(before+pushed) > 10*total || pushed == 0 && 2*old > 3*total {
			return // so much has gone that it may have been laid anew
		}
		then, moved := offsets(was), int64(0)
		for _, e := range list {
			if at, known := then[e.Path]; known && e.Size > 0 && e.Offset != at {
				moved += e.Size
			}
		}
		if moved > pushed {
			t.Fatalf("%q changed, and files of %d bytes moved: %v became %v", changed, moved, was, list)
		}
	})
}

// TestRoom checks how much room a file has that grows, shrinks or stays.
func TestRoom(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, x := range []struct{ size, room, now, want int64 }{
		{20 * mib, 0, 20 * mib, 0}, {20 * mib, 0, 10 * mib, 0}, // has never grown
		{20 * mib, 0, 20*mib + 10, store.UsualBlock}, {20 * mib, 0, 20*mib + 10_000, 160_000}, {20 * mib, 0, 24 * mib, 3 * mib}, {80, 0, 88, 11}, {7, 0, 8, 1}, {6, 0, 7, 0},
		{20 * mib, mib, 20 * mib, mib}, {20 * mib, mib, 20*mib + 10, mib - 10}, {20 * mib, mib, 22 * mib, 22 * mib / 8}, {20 * mib, mib, 16 * mib, 2 * mib},
	} {
		if is := tree.Room(&tree.Entry{Size: x.now}, &tree.Entry{Size: x.size, Room: x.room}); is != x.want {
			t.Errorf("%+v: %d", x, is)
		}
	}
}

// TestPlaceEdits edits the files of a node for long. What has a place keeps it, nothing overlaps, and gaps and
// room together come to half of the bytes at most. The bytes at new places are bounded by those that were written.
func TestPlaceEdits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var list []*tree.Entry
		var written, laid int64
		for step := range 300 {
			was := copied(list)
			for range 1 + rng.IntN(3) {
				name := tree.Name(fmt.Sprint("f", rng.IntN(30)))
				i := slices.IndexFunc(list, func(e *tree.Entry) bool { return e.Path == name })
				switch how := rng.IntN(6); {
				case i < 0:
					list = append(list, file(string(name), 1+rng.Int64N(4<<20)))
					written += list[len(list)-1].Size
				case how == 0:
					written += list[i].Size // it may make others move
					list = slices.Delete(list, i, i+1)
				case how == 1:
					written += list[i].Size / 2
					list[i].Size -= list[i].Size / 2
				case how == 2 && list[i].Size > 0:
					list[i].Path = tree.Name(fmt.Sprint("renamed", step))
				default:
					n := 1 + rng.Int64N(10_000)
					written += n
					list[i].Size += n
				}
			}
			var at int64
			end := tree.Allocate(list, was, store.MostChunk)
			for _, e := range tree.ExtentsOf(list) {
				if e.Offset < at || e.Room < 0 || e.Room > e.Size/8 {
					t.Fatalf("seed %d, step %d: %+v: the one before ends at %d", seed, step, e, at)
				}
				at = e.Offset + e.Size + e.Room
			}
			if 2*end > 3*bytesOf(list) {
				t.Fatalf("seed %d, step %d: %d bytes take %d", seed, step, bytesOf(list), end)
			}
			starts := map[int64]int64{}
			for _, e := range was {
				starts[e.Offset] = e.Size
			}
			for _, e := range list {
				laid += max(0, e.Size-starts[e.Offset])
			}
			again := copied(list)
			if tree.Allocate(again, list, store.MostChunk); !reflect.DeepEqual(again, list) {
				t.Fatalf("seed %d, step %d: nothing has changed, and %v became %v", seed, step, list, again)
			}
		}
		if t.Logf("seed %d: %d MiB written, %d MiB laid", seed, written>>20, laid>>20); laid > written {
			t.Errorf("seed %d: %d bytes were written or deleted, and %d laid", seed, written, laid)
		}
	}
}

// TestPlaceGaps checks which place a file gets.
func TestPlaceGaps(t *testing.T) {
	t.Parallel()
	at := func(name string, offset, size int64) *tree.Entry {
		e := file(name, size)
		e.Offset = offset
		return e
	}
	was := []*tree.Entry{at("a", 0, 10), at("b", 10, 10), at("c", 20, 10), at("d", 30, 100)}
	for _, x := range []struct {
		what string
		list []*tree.Entry
		most int64
		want []int64
		end  int64
	}{
		{"the gap that it fits", []*tree.Entry{file("a", 10), file("c", 10), file("d", 100), file("new", 10)}, store.MostChunk, []int64{0, 20, 30, 10}, 130},
		{"part of a gap, and the rest of it", []*tree.Entry{file("a", 10), file("c", 10), file("d", 100), file("x", 4), file("y", 6)}, store.MostChunk, []int64{0, 20, 30, 10, 14}, 130},
		{"no gap is long enough", []*tree.Entry{file("a", 10), file("c", 10), file("d", 100), file("new", 11)}, store.MostChunk, []int64{0, 20, 30, 130}, 141},
		{"the first gap is too short", []*tree.Entry{file("b", 10), file("d", 100), file("c", 5), file("new", 15)}, store.MostChunk, []int64{10, 30, 20, 130}, 145},
		{"it pushes the next away", []*tree.Entry{file("a", 11), file("b", 10), file("c", 10), file("d", 100)}, store.MostChunk, []int64{0, 130, 20, 30}, 140},
		{"the next is longer than it", []*tree.Entry{file("a", 10), file("b", 10), file("c", 11), file("d", 100)}, store.MostChunk, []int64{0, 10, 130, 30}, 141},
		{"renamed", []*tree.Entry{file("a", 10), file("e", 10), file("c", 10), file("f", 100)}, store.MostChunk, []int64{0, 10, 20, 30}, 130},
		{"a copy", []*tree.Entry{file("a", 10), file("b", 10), file("b2", 10), file("c", 10), file("d", 100)}, store.MostChunk, []int64{0, 10, 130, 20, 30}, 140},
		{"it grows at the end", []*tree.Entry{file("a", 10), file("b", 10), file("c", 10), file("d", 150)}, store.MostChunk, []int64{0, 10, 20, 30}, 180},
		{"it was empty", []*tree.Entry{file("a", 10), file("b", 0), file("c", 10), file("d", 100)}, store.MostChunk, []int64{0, 0, 20, 30}, 130},
		{"less than half is gaps", []*tree.Entry{file("c", 10), file("a", 10)}, store.MostChunk, []int64{20, 0}, 30},
		{"more than half would be gaps", []*tree.Entry{file("d", 20)}, store.MostChunk, []int64{0}, 20},
		{"afresh", []*tree.Entry{file("c", 10), file("d", 100)}, 0, []int64{0, 10}, 110},
	} {
		end := tree.Allocate(x.list, was, x.most)
		var is []int64
		for _, e := range x.list {
			is = append(is, e.Offset)
		}
		if end != x.end || !slices.Equal(is, x.want) {
			t.Errorf("%s: %v, end %d: want %v, %d", x.what, is, end, x.want, x.end)
		}
	}
}

// TestPlacePushes checks which files one that grows pushes away.
func TestPlacePushes(t *testing.T) {
	t.Parallel()
	was := []*tree.Entry{file("a", 100), file("b", 5), file("c", 10), file("d", 300)}
	tree.Allocate(was, nil, store.MostChunk)
	for grown, want := range map[int64][]int64{ // places, and the room of a
		104: {0, 415, 420, 115, 11}, // room as far as the next that is long
		115: {0, 415, 420, 115, 0},
		116: {415, 100, 105, 115, 14},
	} {
		list := copied(was)
		list[0].Size = grown
		tree.Allocate(list, was, store.MostChunk)
		if is := []int64{list[0].Offset, list[1].Offset, list[2].Offset, list[3].Offset, list[0].Room}; !slices.Equal(is, want) {
			t.Errorf("%d bytes: %v: want %v", grown, is, want)
		}
	}
}

// drawManifest draws one with sizes only.
func drawManifest(t *rapid.T) *store.Manifest {
	m := &store.Manifest{Digest: rapid.SampledFrom([]string{SHA256, BLAKE3, XXH3}).Draw(t, "digest"), DataChunks: rapid.IntRange(1, 5).Draw(t, "data"), ParityChunks: rapid.IntRange(1, 3).Draw(t, "parity")}
	m.BlockBytes = store.Align * rapid.Int64Range(1, 6).Draw(t, "block")
	m.ChunkBytes = store.Align * rapid.Int64Range(1, 30).Draw(t, "chunk")
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
		list := drawFiles(t, 0)
		tree.Allocate(list, nil, store.MostChunk)
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

// TestGeometry checks that chunks hold the data, and that more of it leaves whole rows where
// they were.
func TestGeometry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, 1<<40)).Draw(t, "most")
		more := most + rapid.Int64Range(0, 1<<16).Draw(t, "more")
		k := rapid.IntRange(2, 20).Draw(t, "K")
		r := rapid.IntRange(1, k-1).Draw(t, "R")
		make := func(most int64, earlier *store.Manifest) *store.Manifest {
			m := &store.Manifest{Version: store.Version, Nodes: k, Tolerate: r, DataChunks: k - r, ParityChunks: r}
			m.Geometry(most, earlier)
			d := int64(m.DataChunks)
			switch {
			case m.ChunkBytes*d < most || m.ChunkBytes%store.Align != 0 || m.BlockBytes%store.Align != 0 || m.BlockBytes < store.Align || m.BlockBytes > store.LongBlock:
				t.Fatalf("%d bytes: %+v", most, m)
			case m.ChunkBytes*d >= most+2*d*store.Align && m.ChunkBytes*d >= most+d*m.BlockBytes:
				t.Fatalf("%d bytes, and room for %d", most, m.ChunkBytes*d)
			case int64(m.Rows())*(d+int64(r)) > 4*store.MostBlocks+int64(k) && m.BlockBytes < store.LongBlock:
				t.Fatalf("%d bytes: %d rows: %+v", most, m.Rows(), m)
			}
			return m
		}
		a := make(most, nil)
		b := make(more, a)
		if b.BlockBytes != a.BlockBytes {
			t.Fatalf("blocks of %d became such of %d", a.BlockBytes, b.BlockBytes)
		}
		whole := int(most / (int64(a.DataChunks) * a.BlockBytes)) // rows
		for _, row := range []int{0, whole / 2, whole - 1} {
			if row < 0 || row >= whole {
				continue
			}
			at, n := a.Block(row)
			at2, n2 := b.Block(row)
			if n != a.BlockBytes || at != at2 || n != n2 || a.OffsetOf(row, 1%a.DataChunks, a.DataChunks) != b.OffsetOf(row, 1%a.DataChunks, a.DataChunks) {
				t.Fatalf("row %d of %d moved", row, whole)
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
		{1, 1, 2 * gib, 0, 2 * gib, 64 * kib}, {1, 1, 2*gib + 1, 0, 2*gib + 8, 128 * kib}, {1, 1, 32 * 1024 * gib, 0, 32 * 1024 * gib, store.LongBlock}, {1, 1, 64 * 1024 * gib, 0, 64 * 1024 * gib, store.LongBlock},
		// They stay as they were, unless that makes far too many, or far too long ones.
		{1, 1, 8 * gib, 64 * kib, 8 * gib, 64 * kib}, {1, 1, 8*gib + 1, 64 * kib, 8*gib + 8, 512 * kib}, {1, 1, 1, 256 * kib, 8, 256 * kib}, {1, 1, 1, 320 * kib, 8, 64 * kib},
		{1, 1, 1, 8 * kib, 8, 8 * kib},
	} {
		m := &store.Manifest{Version: store.Version, DataChunks: x.d, ParityChunks: x.p}
		var earlier *store.Manifest
		if x.earlier > 0 {
			earlier = &store.Manifest{Version: store.Version, BlockBytes: x.earlier}
		}
		if m.Geometry(x.most, earlier); m.ChunkBytes != x.chunk || m.BlockBytes != x.block {
			t.Errorf("%+v: chunks of %d, blocks of %d", x, m.ChunkBytes, m.BlockBytes)
		}
	}
	like := store.Manifest{Version: store.Version, Nodes: 3, Tolerate: 1}
	for i, change := range []func(*store.Manifest){
		func(*store.Manifest) {}, func(m *store.Manifest) { m.Digest = XXH3 },
		func(m *store.Manifest) { m.Nodes = 4 }, func(m *store.Manifest) { m.Tolerate = 2 },
	} {
		m := like
		change(&m)
		if m.Follows(&like) != (i == 0) || like.Follows(&m) != (i == 0) || m.Follows(nil) {
			t.Errorf("%+v follows: %v", m, i > 0)
		}
	}
}

// TestBlockPackets reads and writes blocks of a chunk as packets, in parts of any length.
func TestBlockPackets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawManifest(t)
		chunk := rapid.IntRange(0, m.DataChunks-1).Draw(t, "of")
		whole := make([]byte, int64(m.DataChunks)*m.ChunkBytes)
		for i := range whole {
			whole[i] = byte(i*7 + i>>8)
		}
		b := content.Blocks{M: m}
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
		r := &content.BlockReader{Blocks: b, Source: bytes.NewReader(whole), Chunk: chunk, Chunks: m.DataChunks}
		var rows []int
		back := make([]byte, len(whole))
		w := &content.BlockWriter{Blocks: b, Take: func(row int, block []byte) error {
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
	var h content.Handles[int]
	files := map[int][]*counted{}
	get := func(key int) *counted {
		f, err := h.Get(key, func() (disk.File, error) {
			c := &counted{}
			files[key] = append(files[key], c)
			return c, nil
		})
		must(t, err)
		return f.(*counted)
	}
	for i := range content.MostOpen {
		get(i)
	}
	if a, b := get(3), get(3); a != b || len(files[3]) != 1 {
		t.Error("a file that is open was opened again")
	}
	get(content.MostOpen)
	if files[0][0].closed != 1 || files[1][0].closed != 0 || len(h.Open) != content.MostOpen {
		t.Errorf("%d files are open; the first was closed %d times, the next %d", len(h.Open), files[0][0].closed, files[1][0].closed)
	}
	if get(0); len(files[0]) != 2 || len(h.Open) != content.MostOpen {
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
