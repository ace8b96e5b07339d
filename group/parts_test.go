package group

import (
	"bytes"
	"fmt"
	"testing"

	"volley/group/internal/store"
)

// TestWindows protects files of five rows with memory for two of them, and changes a cell or
// its parity: it alone is coded, and the others keep what they have.
func TestWindows(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	rows := 5
	row := 2 * store.UsualBlock
	for n, dir := range w.dirs {
		w.RemoveAll(dir)
		w.MkdirAll(dir, 0o755)
		w.WriteFile(dir+"/big", bytes.Repeat([]byte{byte(n), 1, 2, byte(n * n), 4, 5, 6}, rows*row/7), 0o600)
	}
	protect := func(what string, coded int) {
		t.Helper()
		r, err := w.protectBy(w.Process(), ProtectOptions{})
		if err != nil || r.Coded != coded || r.Blocks != rows*len(w.dirs) {
			t.Errorf("%s: %+v, %v: want %d blocks coded", what, r, err, coded)
		}
		must(t, w.whole())
	}
	protect("first", rows*len(w.dirs))
	protect("again", 0)
	for i := range rows {
		w.Overwrite("/n1/big", int64(i*row+9), []byte("changed"), false)
		protect(fmt.Sprint("row ", i), 1)
		g := int64(3 + 2*i)
		w.Overwrite("/n2/"+parityPath(g), int64(i*row+9), []byte("rot"), true)
		protect(fmt.Sprint("parity of row ", i), 1)
	}
	was := w.trees()
	w.lose(0, 1, 2)
	must(t, w.recover())
	for n := range was {
		must(t, diff(fmt.Sprint("node ", n), was[n], w.tree(n)))
	}
}
