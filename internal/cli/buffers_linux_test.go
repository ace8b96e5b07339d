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
	"strings"
	"testing"

	"volley/internal/exit"
)

// newMemory opens a file that stands for the memory of a rank.
func newMemory(t *testing.T, content []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "memory")
	write(t, name, string(content))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// onBuffers runs the verb at ranks that have these lists, with more flags of one rank.
func onBuffers(t *testing.T, lists []any, flags map[int][]string, args ...string) (codes []int, text string) {
	t.Helper()
	return newRanks(t, len(lists), func(r int, c *exec.Cmd) {
		line, err := json.Marshal(lists[r])
		must(t, err)
		list := newMemory(t, line)
		c.Args = append(c.Args, append([]string{"--list", fmt.Sprint(list.Fd())}, flags[r]...)...)
	}, append([]string{"buffers"}, args...)...).do()
}

// TestBuffers protects memory of which a part lies at odd places of a file, loses that of two ranks, and recovers.
func TestBuffers(t *testing.T) {
	t.Parallel()
	rng := rand.NewChaCha8([32]byte{3})
	var data, parity []*os.File
	var lists []any
	for r := range 4 {
		content := make([]byte, 50_000+r)
		rng.Read(content)
		data, parity = append(data, newMemory(t, content)), append(parity, newMemory(t, nil))
		fd := int(data[r].Fd())
		spans := []memoryPart{{fd, 4097, 30_000}, {fd, 0, 0}, {fd, 40_001, 7 + int64(r)}}
		lists = append(lists, &memoryList{spans, &memoryPart{FD: int(parity[r].Fd())}, true})
	}
	do := func(code int, lists []any, lost map[int][]string, words string) string {
		t.Helper()
		codes, text := onBuffers(t, lists, lost, strings.Fields(words)...)
		if !allAre(codes, code) {
			t.Fatal(codes, text)
		}
		return text
	}
	text := do(exit.OK, lists, nil, "protect --tolerate 2")
	n := int64(len(readFile(t, parity[0].Name())))
	wants(t, text, fmt.Sprintf(`"parity_bytes": %d`, n))
	do(exit.Usage, lists, nil, "parity-bytes --tolerate 2") // it has no room to make
	var was, had [][]byte
	for r := range lists {
		m := lists[r].(*memoryList)
		m.Room, m.Parity.Bytes = false, n
		was, had = append(was, readFile(t, data[r].Name())), append(had, readFile(t, parity[r].Name()))
	}
	wants(t, do(exit.OK, lists, nil, "parity-bytes --tolerate 2"), fmt.Sprint(n))
	without := slices.Clone(lists)
	without[1] = &memoryList{}
	wants(t, do(exit.OK, without, nil, "sizes"), "30000,\n    0,\n    8\n", fmt.Sprintf(`"parity_bytes": %d`, n))
	lost := map[int][]string{1: {"--lost"}, 2: {"--lost"}}
	for r := range lost {
		clear(was[r][:4097]) // which is in no buffer
		clear(was[r][34_097:40_001])
		clear(was[r][40_008+r:])
		for _, f := range []*os.File{data[r], parity[r]} {
			if _, err := f.WriteAt(make([]byte, len(readFile(t, f.Name()))), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	do(exit.OK, lists, lost, "recover")
	for r := range lists {
		if !bytes.Equal(readFile(t, data[r].Name()), was[r]) || !bytes.Equal(readFile(t, parity[r].Name()), had[r]) {
			t.Errorf("rank %d: its memory or parity is another one", r)
		}
	}
}

// TestBuffersMisuse has one of two ranks give a list that will not do: both say so.
func TestBuffersMisuse(t *testing.T) {
	t.Parallel()
	data := newMemory(t, make([]byte, 1000))
	room := func() *memoryPart { return &memoryPart{FD: int(newMemory(t, nil).Fd())} }
	good := func() any { return &memoryList{[]memoryPart{{int(data.Fd()), 0, 1000}}, room(), true} }
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
		{spans(int(data.Fd()), 900, 101), protect, "part 0: 101 bytes at 900 of descriptor"},
		{spans(int(data.Fd()), -1, 10), protect, "10 bytes at -1"},
		{spans(int(data.Fd()), 1<<62, 1<<62), protect, "rank 1"},
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
