package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"volley/internal/exit"
)

// A memoryFile is a file that stands for the memory of a rank.
type memoryFile struct{ *os.File }

func newMemoryFile(t *testing.T, content []byte) memoryFile {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "memory")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return memoryFile{f}
}

func (f memoryFile) fd() int { return int(f.Fd()) }

func (f memoryFile) content(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// onBuffers runs the verb at ranks that have these lists, with more flags of one rank.
func onBuffers(t *testing.T, lists []any, flags map[int][]string, args ...string) (codes []int, text string) {
	t.Helper()
	return newRanks(t, len(lists), func(r int, c *exec.Cmd) {
		line, err := json.Marshal(lists[r])
		if err != nil {
			t.Fatal(err)
		}
		list := newMemoryFile(t, line)
		c.Args = append(c.Args, append([]string{"--list", fmt.Sprint(list.fd())}, flags[r]...)...)
	}, append([]string{"buffers"}, args...)...).do()
}

// TestBuffers protects memory of which a part lies at odd places of a file, loses that of two ranks, and recovers.
func TestBuffers(t *testing.T) {
	t.Parallel()
	rng := rand.NewChaCha8([32]byte{3})
	var data, parity []memoryFile
	var was [][]byte
	var lists []any
	for r := range 4 {
		content := make([]byte, 50_000+r)
		rng.Read(content)
		data, parity, was = append(data, newMemoryFile(t, content)), append(parity, newMemoryFile(t, nil)), append(was, content)
		fd := data[r].fd()
		spans := []memoryPart{{fd, 4097, 30_000}, {fd, 0, 0}, {fd, 40_001, 7 + int64(r)}}
		lists = append(lists, &memoryList{spans, &memoryPart{FD: parity[r].fd()}, true})
	}
	codes, text := onBuffers(t, lists, nil, "protect", "--tolerate", "2")
	if !allAre(codes, exit.OK) {
		t.Fatal(codes, text)
	}
	n := int64(len(parity[0].content(t)))
	wants(t, text, fmt.Sprintf(`"parity_bytes": %d`, n))
	if codes, text := onBuffers(t, lists, nil, "parity-bytes", "--tolerate", "2"); !allAre(codes, exit.Usage) { // it has no room to make
		t.Fatal(codes, text)
	}
	lost := map[int][]string{1: {"--lost"}, 2: {"--lost"}}
	var had [][]byte
	for r := range lists {
		m := lists[r].(*memoryList)
		m.Room, m.Parity.Bytes = false, n
		had = append(had, parity[r].content(t))
	}
	if codes, text := onBuffers(t, lists, nil, "parity-bytes", "--tolerate", "2"); !allAre(codes, exit.OK) || !bytes.Contains([]byte(text), []byte(fmt.Sprint(n))) {
		t.Fatal(codes, text)
	}
	without := slices.Clone(lists)
	without[1] = &memoryList{}
	codes, text = onBuffers(t, without, nil, "sizes")
	if !allAre(codes, exit.OK) {
		t.Fatal(codes, text)
	}
	wants(t, text, "30000,\n    0,\n    8\n", fmt.Sprintf(`"parity_bytes": %d`, n))
	for r := range lost {
		for _, f := range []memoryFile{data[r], parity[r]} {
			if _, err := f.WriteAt(make([]byte, len(f.content(t))), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if codes, text := onBuffers(t, lists, lost, "recover"); !allAre(codes, exit.OK) {
		t.Fatal(codes, text)
	}
	for r, f := range data {
		is := f.content(t)
		for _, s := range lists[r].(*memoryList).Buffers {
			if !bytes.Equal(is[s.Offset:s.Offset+s.Bytes], was[r][s.Offset:s.Offset+s.Bytes]) {
				t.Errorf("rank %d: what lies at %d is another one", r, s.Offset)
			}
		}
		if lost[r] != nil && !bytes.Equal(is[:4097], make([]byte, 4097)) {
			t.Errorf("rank %d: something was written outside its buffers", r)
		}
		if !bytes.Equal(parity[r].content(t), had[r]) {
			t.Errorf("rank %d: its parity is another one", r)
		}
	}
}

// TestBuffersMisuse has one of two ranks give a list that will not do: both say so.
func TestBuffersMisuse(t *testing.T) {
	t.Parallel()
	data := newMemoryFile(t, make([]byte, 1000))
	read, err := os.Open(filepath.Join(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	room := func() *memoryPart { return &memoryPart{FD: newMemoryFile(t, nil).fd()} }
	good := func() any { return &memoryList{[]memoryPart{{data.fd(), 0, 1000}}, room(), true} }
	for _, c := range []struct {
		list any
		args []string
		want string
	}{
		{good(), nil, "takes one of protect, parity-bytes, sizes, recover"},
		{good(), []string{"make"}, "takes one of protect, parity-bytes, sizes, recover"},
		{"text", []string{"protect", "--tolerate", "1"}, "--list"},
		{map[string]int{"rom": 1}, []string{"protect", "--tolerate", "1"}, `unknown field "rom"`},
		{&memoryList{}, []string{"protect", "--tolerate", "1"}, "has no parity, which protect needs"},
		{good(), []string{"recover"}, "asks for room, which recover does not make"},
		{&memoryList{[]memoryPart{{data.fd(), 900, 101}}, room(), true}, []string{"protect", "--tolerate", "1"}, "part 0: 101 bytes at 900 of descriptor"},
		{&memoryList{[]memoryPart{{data.fd(), -1, 10}}, room(), true}, []string{"protect", "--tolerate", "1"}, "10 bytes at -1"},
		{&memoryList{[]memoryPart{{data.fd(), 1 << 62, 1 << 62}}, room(), true}, []string{"protect", "--tolerate", "1"}, "rank 1"},
		{&memoryList{[]memoryPart{{60_000, 0, 1}}, room(), true}, []string{"protect", "--tolerate", "1"}, "descriptor 60000"},
		{&memoryList{nil, &memoryPart{FD: int(read.Fd())}, true}, []string{"protect", "--tolerate", "1"}, "no room for parity"},
	} {
		codes, text := onBuffers(t, []any{good(), c.list}, nil, c.args...)
		if codes[0] == exit.OK || codes[0] != codes[1] {
			t.Errorf("%v: exit codes %v", c.args, codes)
		}
		wants(t, text, c.want)
	}
	if codes, text := onBuffers(t, []any{good()}, map[int][]string{0: {"--list", "60001"}}, "protect", "--tolerate", "1"); !allAre(codes, exit.Usage) {
		t.Error(codes, text)
	} else {
		wants(t, text, "--list 60001")
	}
}
