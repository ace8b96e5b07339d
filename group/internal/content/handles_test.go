package content

import (
	"errors"
	"testing"

	"volley/internal/disk"
)

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
