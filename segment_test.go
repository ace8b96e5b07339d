package volley

import (
	"testing"

	"volley/algo"
	"volley/plan"
)

// TestSegment checks into which segments packets are cut: at several ranks seldom, and
// always within the memory.
func TestSegment(t *testing.T) {
	const mib = 1 << 20
	a := mustBuild(t, "2^8", "random:1", 8, 8)
	compiled := func(name string) *chosenPlan {
		algorithm, err := algo.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := algorithm.Compile(a, 1)
		if err != nil {
			t.Fatal(err)
		}
		return &chosenPlan{Plan: p, slots: plan.MemorySlots(p)}
	}
	whole, cut := compiled("universal"), compiled("exchange")
	slots := int64(whole.slots)
	pieces, cutSlots := int64(cut.Info().PieceCount()), int64(cut.slots)
	for _, c := range []struct {
		what          string
		chosenPlan    *chosenPlan
		bytes, memory int64
		ranks         int
		want          int64
		ahead         bool
	}{
		{"one rank", whole, 100 * mib, 1 << 30, 1, maxSegment, true},
		{"one rank, memory for one more of each packet", whole, mib, (slots + 2) * maxSegment, 1, maxSegment, true},
		{"one rank, a byte less", whole, mib, (slots+2)*maxSegment - 1, 1, maxSegment, false},
		{"one rank, pieces", cut, pieces * 640, 640 * (cutSlots + 2*pieces), 1, pieces * 640, true},
		{"one rank, pieces, a byte less", cut, pieces * 640, 640*(cutSlots+2*pieces) - 1, 1, pieces * 640, false},
		{"up to 4 MiB", whole, 4 * mib, 1 << 30, 8, 4 * mib, false},
		{"below 8 MiB", whole, 8*mib - 64, 1 << 30, 8, 8*mib - 64, false},
		{"two of 4 MiB", whole, 8 * mib, 1 << 30, 8, 4 * mib, true},
		{"two, and no third for the last byte", whole, 8*mib + 1, 1 << 30, 8, 4*mib + 64, true},
		{"equal ones", whole, 23 * mib, 1 << 30, 2, (23*mib/5 + 63) / 64 * 64, true},
		{"memory for two of 1 MiB", whole, 20 * mib, 2 * slots * mib, 8, mib, true},
		{"small, with memory for two halves", whole, mib, slots*mib - 1, 8, mib/2 - 64, true},
		{"memory for one of the least", whole, mib, slots * 64, 8, 64, false},
		{"pieces of 4 MiB", cut, pieces * 12 * mib, 1 << 40, 8, pieces * 4 * mib, true},
		{"pieces that are shorter", cut, pieces * 3 * mib, 1 << 40, 8, pieces * 3 * mib, false},
	} {
		n, ahead, err := c.chosenPlan.segment(c.bytes, c.memory, 64, c.ranks, true)
		if err != nil || n != c.want || ahead != c.ahead {
			t.Errorf("%s: %d bytes, ahead %v, error %v: want %d, %v", c.what, n, ahead, err, c.want, c.ahead)
		}
		held := n / int64(c.chosenPlan.Info().PieceCount()) * int64(c.chosenPlan.slots)
		if ahead && c.ranks > 1 {
			held *= 2
		}
		if held > c.memory {
			t.Errorf("%s: segments of %d bytes take %d bytes of memory: it is %d", c.what, n, held, c.memory)
		}
	}
	for _, c := range []struct {
		chosenPlan          *chosenPlan
		bytes, memory, want int64
	}{
		{whole, 2*mib - 64, 1 << 30, 2*mib - 64}, {whole, 2 * mib, 1 << 30, mib}, {whole, 32 * mib, slots * mib / 2, mib / 2},
		{cut, pieces * 5 * mib / 2, 1 << 40, pieces * 5 * mib / 4},
	} {
		if n, ahead, err := c.chosenPlan.segment(c.bytes, c.memory, 64, 8, false); err != nil || n != c.want || ahead {
			t.Errorf("no overlap, %d bytes, %d bytes of memory: %d bytes, ahead %v, error %v: want %d", c.bytes, c.memory, n, ahead, err, c.want)
		}
	}
	if _, _, err := whole.segment(mib, slots*64-1, 64, 8, true); err == nil {
		t.Error("too little memory is no error")
	}
}
