package group

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// TestHere returns the error of the first node that has one.
func TestHere(t *testing.T) {
	t.Parallel()
	s := &session.Session{Nodes: make([]*store.Node, 3)}
	for range 1000 {
		if err := s.EachLocal(func(i int, _ *store.Node) error { return []error{nil, fs.ErrExist, fs.ErrClosed}[i] }); err != fs.ErrExist {
			t.Fatalf("the error is %v", err)
		}
	}
}

// A moded file is one of another mode.
type moded struct {
	fs.FileInfo
	mode fs.FileMode
}

func (i moded) Mode() fs.FileMode { return i.mode }

// TestModes writes modes as a record has them, and back.
func TestModes(t *testing.T) {
	t.Parallel()
	for mode, bits := range map[fs.FileMode]uint32{
		0: 0, 0o777: 0o777, fs.ModeSetuid | 0o755: 0o4755, fs.ModeSetgid | 0o700: 0o2700, fs.ModeSticky | 0o777: 0o1777, fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky: 0o7000,
	} {
		if tree.UnixMode(mode) != bits || tree.FileMode(bits) != mode {
			t.Errorf("%v: %#o, and %#o: %v", mode, tree.UnixMode(mode), bits, tree.FileMode(bits))
		}
	}
	for mode, kind := range map[fs.FileMode]string{fs.ModeSocket: "socket", fs.ModeNamedPipe: "named pipe", fs.ModeDevice | fs.ModeCharDevice: "device", fs.ModeIrregular: "special file"} {
		w := newWorld(2, 1)
		d, err := w.Process().Open("/n0")
		must(t, err)
		odd := &oddDir{Dir: d, mode: map[string]fs.FileMode{"plain": mode}}
		l, err := tree.Scan(odd, true, tree.Rules{})
		if must(t, err); !slices.Equal(l.Special, []string{"/n0/plain is a " + kind}) || l.Find("plain") != nil {
			t.Errorf("%v: %v", mode, l.Special)
		}
		l, err = tree.Scan(odd, false, tree.Rules{})
		must(t, err)
		if e := l.Find("plain"); e.Type != kind || len(l.Bad) != 0 {
			t.Errorf("%v: %+v, %v", mode, e, l.Bad)
		}
	}
}

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

// TestEmptyAttribute brings back an attribute without a value.
func TestEmptyAttribute(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1)
	must(t, w.protect())
	d, err := w.Process().Open("/n0")
	must(t, err)
	_, err = tree.SetMeta(d, "plain", &tree.Entry{Path: "plain", Type: tree.TypeFile, Mode: 0o600, Attributes: tree.Attributes{"user.empty": {}}})
	must(t, err)
	there, err := d.Attributes("plain")
	if _, ok := there["user.empty"]; err != nil || !ok {
		t.Errorf("%v, %v", there, err)
	}
}
