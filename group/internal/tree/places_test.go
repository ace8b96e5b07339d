package tree

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "volley/internal/rapidseed"
)

const mostData = 1 << 60

func file(name string, size int64) *Entry {
	return &Entry{Path: Name(name), Type: TypeFile, Size: size}
}

// copied returns copies of entries.
func copied(list []*Entry) (copies []*Entry) {
	for _, e := range list {
		is := *e
		copies = append(copies, &is)
	}
	return copies
}

// bytesOf returns how many bytes files have.
func bytesOf(list []*Entry) (n int64) {
	for _, e := range list {
		n += e.Size
	}
	return n
}

// TestAllocate lays files, and lays them again when one has gone, grown, shrunk, come or got another name: they lie apart,
// what has not changed stays where it is, and gaps are used again.
func TestAllocate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []*Entry
		for i, size := range rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 20).Draw(t, "sizes") {
			list = append(list, file(fmt.Sprint("f", i), size))
		}
		apart := func(end int64) {
			last := int64(0)
			for _, e := range ExtentsOf(list) {
				if e.Offset < last {
					t.Fatalf("%q begins at %d, and the one before ends at %d", e.Path, e.Offset, last)
				}
				last = e.Offset + e.Size
			}
			if last != end {
				t.Fatalf("the last one ends at %d, and the data at %d", last, end)
			}
		}
		end := Allocate(list, nil, mostData)
		if apart(end); end != bytesOf(list) {
			t.Fatalf("%d bytes take %d", bytesOf(list), end)
		}
		was := copied(list)
		if again := Allocate(list, was, mostData); again != end || !reflect.DeepEqual(list, was) {
			t.Fatalf("nothing has changed, and %v became %v", was, list)
		}
		i := rapid.IntRange(0, len(list)-1).Draw(t, "changes")
		pushed := int64(0)
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
			if Allocate(list, was, mostData); list[i].Offset != was[i].Offset {
				t.Fatalf("renamed, and went from %d to %d", was[i].Offset, list[i].Offset)
			}
		}
		before, old := bytesOf(was), end
		end = Allocate(list, was, mostData)
		apart(end)
		total := bytesOf(list)
		if 2*end > 3*total {
			t.Fatalf("%d bytes take %d", total, end)
		}
		if pushed > 0 && 8*(before+pushed) > 10*total || pushed == 0 && 2*old > 3*total {
			return // so much has gone that it may have been laid anew
		}
		places, moved := ByPath(was), int64(0)
		for _, e := range list {
			if then := places[e.Path]; then != nil && e.Size > 0 && e.Offset != then.Offset {
				moved += e.Size
			}
		}
		if moved > pushed {
			t.Fatalf("files of %d bytes moved: %v became %v", moved, was, list)
		}
	})
}

// TestRoom checks how much room a file has that grows, shrinks or stays.
func TestRoom(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, x := range []struct{ size, room, now, want int64 }{
		{20 * mib, 0, 20 * mib, 0}, {20 * mib, 0, 10 * mib, 0}, // has never grown
		{20 * mib, 0, 20*mib + 10, 1 << 16}, {20 * mib, 0, 20*mib + 10_000, 160_000}, {20 * mib, 0, 24 * mib, 3 * mib}, {80, 0, 88, 11}, {7, 0, 8, 1}, {6, 0, 7, 0},
		{20 * mib, mib, 20 * mib, mib}, {20 * mib, mib, 20*mib + 10, mib - 10}, {20 * mib, mib, 22 * mib, 22 * mib / 8}, {20 * mib, mib, 16 * mib, 2 * mib},
	} {
		if is := Room(&Entry{Size: x.now}, &Entry{Size: x.size, Room: x.room}); is != x.want {
			t.Errorf("%+v: %d", x, is)
		}
	}
}

// TestAllocateGaps checks which place a file gets.
func TestAllocateGaps(t *testing.T) {
	t.Parallel()
	a, b, c, d := file("a", 10), file("b", 10), file("c", 10), file("d", 100)
	was := []*Entry{a, b, c, d}
	short := []*Entry{file("a", 100), file("b", 5), file("c", 10), file("d", 300)}
	Allocate(was, nil, mostData)
	Allocate(short, nil, mostData)
	for _, x := range []struct {
		what string
		was  []*Entry
		list []*Entry
		most int64
		want []int64
		end  int64
	}{
		{"the gap that it fits", was, []*Entry{a, c, d, file("new", 10)}, mostData, []int64{0, 20, 30, 10}, 130},
		{"part of a gap, and the rest of it", was, []*Entry{a, c, d, file("x", 4), file("y", 6)}, mostData, []int64{0, 20, 30, 10, 14}, 130},
		{"no gap is long enough", was, []*Entry{a, c, d, file("new", 11)}, mostData, []int64{0, 20, 30, 130}, 141},
		{"the first gap is too short", was, []*Entry{b, d, file("c", 5), file("new", 15)}, mostData, []int64{10, 30, 20, 130}, 145},
		{"it pushes the next away", was, []*Entry{file("a", 11), b, c, d}, mostData, []int64{0, 130, 20, 30}, 140},
		{"the next is longer than it", was, []*Entry{a, b, file("c", 11), d}, mostData, []int64{0, 10, 130, 30}, 141},
		{"it pushes no long one away, and several short ones", short, []*Entry{file("a", 115), short[1], short[2], short[3]}, mostData, []int64{0, 415, 420, 115}, 430},
		{"it would push a long one away", short, []*Entry{file("a", 116), short[1], short[2], short[3]}, mostData, []int64{415, 100, 105, 115}, 531},
		{"renamed", was, []*Entry{a, file("e", 10), c, file("f", 100)}, mostData, []int64{0, 10, 20, 30}, 130},
		{"a copy", was, []*Entry{a, b, file("b2", 10), c, d}, mostData, []int64{0, 10, 130, 20, 30}, 140},
		{"it grows at the end", was, []*Entry{a, b, c, file("d", 150)}, mostData, []int64{0, 10, 20, 30}, 180},
		{"it was empty", was, []*Entry{a, file("b", 0), c, d}, mostData, []int64{0, 0, 20, 30}, 130},
		{"less than half is gaps", was, []*Entry{c, a}, mostData, []int64{20, 0}, 30},
		{"more than half would be gaps", was, []*Entry{file("d", 20)}, mostData, []int64{0}, 20},
		{"afresh", was, []*Entry{c, d}, 0, []int64{0, 10}, 110},
	} {
		list := copied(x.list)
		for _, e := range list {
			e.Offset = 0
		}
		end := Allocate(list, x.was, x.most)
		var is []int64
		for _, e := range list {
			is = append(is, e.Offset)
		}
		if end != x.end || !slices.Equal(is, x.want) {
			t.Errorf("%s: %v, end %d: want %v, %d", x.what, is, end, x.want, x.end)
		}
	}
}
