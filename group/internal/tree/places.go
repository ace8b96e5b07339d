package tree

import (
	"cmp"
	"path"
	"slices"
	"sort"
)

// Allocate sets the places of the files of a node and returns where its data ends. Files that had a place in an earlier
// record keep it, by [placed], so that they need not be coded again, unless they would end after most. A file that has
// outgrown its place pushes the files behind it away; where these have more bytes than it had, it moves itself. Files
// without a place take the first gap that holds them. Where gaps and room come to more than half of the files' bytes,
// the last files are laid anew, and all behind the first gap if that is not enough.
func Allocate(list, earlier []*Entry, limit int64) int64 {
	var total int64
	type file struct {
		*Entry
		formerBytes int64 // bytes
	}
	var kept, unplaced []file
	earlierOf := placed(list, earlier)
	for i, e := range list {
		if e.Offset, e.Room = 0, 0; e.Type != TypeFile || e.Size == 0 {
			continue
		}
		total += e.Size
		if earlierOf[i] == nil {
			unplaced = append(unplaced, file{e, 0})
			continue
		}
		e.Offset, e.Room = earlierOf[i].Offset, Room(e, earlierOf[i])
		kept = append(kept, file{e, earlierOf[i].Size})
	}
	slices.SortStableFunc(kept, func(a, b file) int { return cmp.Compare(a.Offset, b.Offset) })
	if last := slices.IndexFunc(kept, func(e file) bool { return e.Offset+e.Size > limit }); last >= 0 {
		kept, unplaced = kept[:last], slices.Concat(kept[last:], unplaced)
	}
	type gap struct{ offset, n int64 }
	var gaps []gap
	var end, free int64 // free is behind the room of the last file
	for len(kept) > 0 {
		e, behind := kept[0], kept[1:]
		n, pushed := 0, int64(0)
		outgrown := func() bool { return n < len(behind) && behind[n].Offset < e.Offset+e.Size }
		if outgrown() {
			for ; n < len(behind) && behind[n].Offset < e.Offset+e.Size+e.Room && pushed+behind[n].Size <= e.formerBytes; n++ {
				pushed += behind[n].Size
			}
		}
		if outgrown() {
			unplaced, kept = append(unplaced, e), behind
			continue
		}
		unplaced, kept = append(unplaced, behind[:n]...), behind[n:]
		if e.Offset > free {
			gaps = append(gaps, gap{free, e.Offset - free})
		}
		if end = e.Offset + e.Size; len(kept) > 0 {
			e.Room = min(e.Room, kept[0].Offset-end)
		}
		free = end + e.Room
	}
	first := 0 // of the gaps that are not used up
	for _, e := range unplaced {
		for first < len(gaps) && gaps[first].n == 0 {
			first++
		}
		i, last := first, min(len(gaps), first+mostGaps)
		for i < last && gaps[i].n < e.Size+e.Room {
			i++
		}
		if i < last {
			e.Offset = gaps[i].offset
			gaps[i].offset, gaps[i].n = gaps[i].offset+e.Size+e.Room, gaps[i].n-e.Size-e.Room
			continue
		}
		e.Offset = free
		end = e.Offset + e.Size
		free = end + e.Room
	}
	switch {
	case limit == 0 || len(earlier) == 0 || 2*end <= 3*total:
		return end
	case limit == mostBytes:
		return Allocate(list, earlier, total)
	}
	return Allocate(list, earlier, 0)
}

// mostGaps bounds the gaps that are tried for a file: placing many files takes no time by the square of their number.
const mostGaps = 100

// placed returns for each entry the earlier one whose place it takes, or nil: the one that it was, under any name, or
// another of its length. A wrong guess costs no more than a new place.
func placed(list, earlier []*Entry) []*Entry {
	type key struct {
		path Name
		Stamp
	}
	base := func(e *Entry) Name { return Name(path.Base(string(e.Path))) }
	matched, taken, next := make([]*Entry, len(list)), make([]bool, len(earlier)), make([]int, len(earlier))
	for i, e := range list {
		if n, found := index(earlier, e.Path); found && earlier[n].Type == TypeFile && earlier[n].Stamp() == e.Stamp() {
			matched[i], taken[n] = earlier[n], true
		}
	}
	for _, keyOf := range []func(*Entry) key{ // the surest first
		func(e *Entry) key { return key{base(e), e.Stamp()} },
		func(e *Entry) key { return key{"", e.Stamp()} },
		func(e *Entry) key { return key{path: e.Path} },
		func(e *Entry) key { return key{base(e), Stamp{size: e.Size}} },
		func(e *Entry) key { return key{"", Stamp{size: e.Size}} },
	} {
		firstOf := map[key]int{} // the number behind that of the first with a key, and next that of the one after it
		for i := range slices.Backward(earlier) {
			if e := earlier[i]; !taken[i] && e.Type == TypeFile && e.Size > 0 {
				firstOf[keyOf(e)], next[i] = i+1, firstOf[keyOf(e)]
			}
		}
		for i := range list {
			if e := list[i]; matched[i] == nil && e.Type == TypeFile && e.Size > 0 && len(firstOf) > 0 {
				if n := firstOf[keyOf(e)] - 1; n >= 0 {
					matched[i], taken[n], firstOf[keyOf(e)] = earlier[n], true, next[n]
				}
			}
		}
	}
	return matched
}

// Room returns how many bytes behind a file are kept for it, which was another one before. A file that has never grown
// has none. One that grows by n bytes gets room to do so 16 times, and for a block at least, but no more than an eighth
// of its length.
func Room(e, earlier *Entry) int64 {
	n := int64(0)
	if earlier.Room > 0 {
		n = earlier.Size + earlier.Room - e.Size
	}
	if e.Size > earlier.Size {
		n = max(n, leastRoom, 16*(e.Size-earlier.Size))
	}
	return max(0, min(n, e.Size/8))
}

// Extents are files that are not empty, by where they lie in a node's data.
type Extents []*Entry

func ExtentsOf(list []*Entry) Extents {
	var x Extents
	for _, e := range list {
		if e.Type == TypeFile && e.Size > 0 {
			x = append(x, e)
		}
	}
	slices.SortStableFunc(x, func(a, b *Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	return x
}

// Beginning returns the one that begins at an offset, or nil.
func (x Extents) Beginning(offset int64) *Entry {
	if i := x.FirstAfter(offset); i < len(x) && x[i].Offset == offset {
		return x[i]
	}
	return nil
}

// FirstAfter returns the first one that ends after offset.
func (x Extents) FirstAfter(offset int64) int {
	return sort.Search(len(x), func(i int) bool { return x[i].Offset+x[i].Size > offset })
}

// Overlapping calls f for those that have some of the n bytes from offset on.
func (x Extents) Overlapping(offset, n int64, f func(i int, e *Entry, first, end int64) error) error {
	for i := x.FirstAfter(offset); i < len(x) && x[i].Offset < offset+n; i++ {
		e := x[i]
		if err := f(i, e, max(offset, e.Offset), min(offset+n, e.Offset+e.Size)); err != nil {
			return err
		}
	}
	return nil
}

// leastRoom is how many bytes at least a growing file gets: those of a usual block.
const leastRoom = 64 << 10
