package group

import (
	"fmt"
	"testing"

	"volley/group/internal/guard"
	"volley/group/internal/tree"
)

// TestBalance checks when a node looks as if its files were gone by accident.
func TestBalance(t *testing.T) {
	t.Parallel()
	dir := &tree.Entry{Path: "d", Type: tree.TypeDir}
	for _, x := range []struct {
		what        string
		was, now    []*tree.Entry
		want        guard.Balance
		empty, less bool
	}{
		{"nothing was there", nil, nil, guard.Balance{}, false, false},
		{"all is gone", []*tree.Entry{file("a", 5), file("b", 5)}, []*tree.Entry{dir}, guard.Balance{FormerFiles: 2, FormerBytes: 10, Deleted: 2, First: []string{"a", "b"}}, true, true},
		{"half the files, and fewer bytes", []*tree.Entry{file("a", 6), file("b", 5)}, []*tree.Entry{file("b", 5)}, guard.Balance{Files: 1, FormerFiles: 2, Bytes: 5, FormerBytes: 11, Deleted: 1, First: []string{"a"}}, false, true},
		{"new ones make up for it", []*tree.Entry{file("a", 5), file("b", 5)}, []*tree.Entry{file("c", 4), file("d", 6)},
			guard.Balance{Files: 2, FormerFiles: 2, Bytes: 10, FormerBytes: 10, Deleted: 2, First: []string{"a", "b"}, Replaced: 2, FirstChanged: []string{"a", "b"}}, false, false},
		{"shorter", []*tree.Entry{file("a", 5), file("b", 5), file("c", 0)}, []*tree.Entry{file("a", 4), file("b", 6), file("c", 0)}, guard.Balance{Files: 3, FormerFiles: 3, Bytes: 10, FormerBytes: 10, Shorter: 1, First: []string{"a"}, Changed: 2, FirstChanged: []string{"a", "b"}}, false, false},
		{"one emptied, one shorter, one gone", []*tree.Entry{file("a", 5), file("b", 5), file("c", 5), file("d", 5)}, []*tree.Entry{file("a", 0), file("b", 1), file("d", 5), {Path: "e", Type: tree.TypeDir}},
			guard.Balance{Files: 2, FormerFiles: 4, Bytes: 6, FormerBytes: 20, Deleted: 2, Shorter: 1, First: []string{"c", "a", "b"}, Changed: 1, FirstChanged: []string{"b"}}, false, true},
		{"many", []*tree.Entry{file("a", 1), file("b", 1), file("c", 1), file("d", 1), file("e", 1), file("f", 1), file("g", 1)}, []*tree.Entry{file("g", 0)},
			guard.Balance{FormerFiles: 7, FormerBytes: 7, Deleted: 7, First: []string{"a", "b", "c", "d", "e", "g"}}, true, true},
	} {
		is := guard.BalanceOf(x.was, x.now)
		if fmt.Sprintf("%+v", is) != fmt.Sprintf("%+v", x.want) || is.Empty() != x.empty || is.ManyDeleted() != x.less {
			t.Errorf("%s: %+v, %v, %v: want %+v, %v, %v", x.what, is, is.Empty(), is.ManyDeleted(), x.want, x.empty, x.less)
		}
	}
}

// stamped returns a file with a time.
func stamped(name string, size, seconds int64) *tree.Entry {
	e := file(name, size)
	e.Seconds = seconds
	return e
}

// TestBalanceChanged finds files whose content is not at their node any more.
func TestBalanceChanged(t *testing.T) {
	t.Parallel()
	var was []*tree.Entry
	for i := range int64(10) {
		was = append(was, stamped(fmt.Sprint("f", i), 5, i/2)) // two have one size and time
		was[i].Nanoseconds = 7
	}
	each := func(f func(i int64, e *tree.Entry)) (now []*tree.Entry) {
		for i, e := range copied(was) {
			f(int64(i), e)
			now = append(now, e)
		}
		return now
	}
	for _, x := range []struct {
		what              string
		now               []*tree.Entry
		changed, replaced int
		is                bool
	}{
		{"written to", each(func(_ int64, e *tree.Entry) { e.Seconds += 100 }), 10, 0, true},
		{"longer, with their times", each(func(_ int64, e *tree.Entry) { e.Size++ }), 10, 0, true},
		{"written to, under new names", each(func(_ int64, e *tree.Entry) { e.Path, e.Size = e.Path+".locked", e.Size+9 }), 0, 10, true},
		{"half so, half so", each(func(i int64, e *tree.Entry) {
			if e.Seconds += 100; i%2 == 0 {
				e.Path += ".locked"
			}
		}), 5, 5, true},
		{"moved", each(func(_ int64, e *tree.Entry) { e.Path = "old." + e.Path }), 0, 0, false},
		{"rotated, as logs are", each(func(i int64, e *tree.Entry) { e.Path = tree.Name(fmt.Sprint("f", (i+1)%10)) }), 0, 0, false},
		{"gone", nil, 0, 0, false},
		{"emptied", each(func(_ int64, e *tree.Entry) { e.Size = 0 }), 0, 0, false},
		{"copied to a disk of whole seconds", each(func(_ int64, e *tree.Entry) { e.Nanoseconds = 0 }), 0, 0, false},
		{"new ones beside them", append(copied(was), stamped("g", 5, 99)), 0, 0, false},
	} {
		b := guard.BalanceOf(was, x.now)
		if b.Changed != x.changed || b.Replaced != x.replaced || b.ManyChanged() != x.is {
			t.Errorf("%s: %+v, %v", x.what, b, b.ManyChanged())
		}
	}
	if b := guard.BalanceOf(was[:7], each(func(_ int64, e *tree.Entry) { e.Seconds += 100 })[:7]); b.Changed != 7 || b.ManyChanged() {
		t.Errorf("7 files: %+v", b)
	}
}
