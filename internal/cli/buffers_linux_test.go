package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
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
	var lists []any
	for r := range 4 {
		content := make([]byte, 50_000+r)
		rng.Read(content)
		data, parity = append(data, newMemoryFile(t, content)), append(parity, newMemoryFile(t, nil))
		fd := data[r].fd()
		spans := []memoryPart{{fd, 4097, 30_000}, {fd, 0, 0}, {fd, 40_001, 7 + int64(r)}}
		lists = append(lists, &memoryList{spans, &memoryPart{FD: parity[r].fd()}, true})
	}
	do := func(code int, lists []any, lost map[int][]string, args ...string) string {
		t.Helper()
		codes, text := onBuffers(t, lists, lost, args...)
		if !allAre(codes, code) {
			t.Fatal(codes, text)
		}
		return text
	}
	text := do(exit.OK, lists, nil, "protect", "--tolerate", "2")
	n := int64(len(parity[0].content(t)))
	wants(t, text, fmt.Sprintf(`"parity_bytes": %d`, n))
	do(exit.Usage, lists, nil, "parity-bytes", "--tolerate", "2") // it has no room to make
	var was, had [][]byte
	for r := range lists {
		m := lists[r].(*memoryList)
		m.Room, m.Parity.Bytes = false, n
		was, had = append(was, data[r].content(t)), append(had, parity[r].content(t))
	}
	wants(t, do(exit.OK, lists, nil, "parity-bytes", "--tolerate", "2"), fmt.Sprint(n))
	without := slices.Clone(lists)
	without[1] = &memoryList{}
	wants(t, do(exit.OK, without, nil, "sizes"), "30000,\n    0,\n    8\n", fmt.Sprintf(`"parity_bytes": %d`, n))
	lost := map[int][]string{1: {"--lost"}, 2: {"--lost"}}
	for r := range lost {
		clear(was[r][:4097]) // which is in no buffer
		clear(was[r][34_097:40_001])
		clear(was[r][40_008+r:])
		for _, f := range []memoryFile{data[r], parity[r]} {
			if _, err := f.WriteAt(make([]byte, len(f.content(t))), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	do(exit.OK, lists, lost, "recover")
	for r := range lists {
		if !bytes.Equal(data[r].content(t), was[r]) || !bytes.Equal(parity[r].content(t), had[r]) {
			t.Errorf("rank %d: its memory or parity is another one", r)
		}
	}
}

// TestBuffersMisuse has one of two ranks give a list that will not do: both say so.
func TestBuffersMisuse(t *testing.T) {
	t.Parallel()
	data := newMemoryFile(t, make([]byte, 1000))
	room := func() *memoryPart { return &memoryPart{FD: newMemoryFile(t, nil).fd()} }
	good := func() any { return &memoryList{[]memoryPart{{data.fd(), 0, 1000}}, room(), true} }
	spans := func(fd int, offset, n int64) any { return &memoryList{[]memoryPart{{fd, offset, n}}, room(), true} }
	const protect = "protect --tolerate 1"
	for _, c := range []struct {
		list       any
		verb, want string
	}{
		{good(), "", "takes one of protect, parity-bytes, sizes, recover"},
		{good(), "make", "takes one of protect, parity-bytes, sizes, recover"},
		{"text", protect, "--list"},
		{map[string]int{"rom": 1}, protect, `unknown field "rom"`},
		{&memoryList{}, protect, "has no parity, which protect needs"},
		{good(), "recover", "asks for room, which recover does not make"},
		{spans(data.fd(), 900, 101), protect, "part 0: 101 bytes at 900 of descriptor"},
		{spans(data.fd(), -1, 10), protect, "10 bytes at -1"},
		{spans(data.fd(), 1<<62, 1<<62), protect, "rank 1"},
		{spans(60_000, 0, 1), protect, "descriptor 60000"},
		{good(), protect + " --list 60001", "--list 60001"},
	} {
		flags := map[int][]string{}
		verb, list, more := strings.Cut(c.verb, " --list")
		if more {
			flags[1] = []string{"--list" + list}
		}
		codes, text := onBuffers(t, []any{good(), c.list}, flags, strings.Fields(verb)...)
		if codes[0] == exit.OK || codes[0] != codes[1] {
			t.Errorf("%s: exit codes %v", c.verb, codes)
		}
		wants(t, text, c.want)
	}
}
