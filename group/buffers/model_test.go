package buffers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"volley/group"
	"volley/group/buffers"
	"volley/internal/faulty"
	_ "volley/internal/rapidseed"
	"volley/transport"
)

// A bufferSet is one of two sets of buffers that are protected in turns, and what it has been promised.
type bufferSet struct {
	*job
	states  [][][][]byte // that were, or were to be, protected, the newest last
	certain int          // of these: protect has returned for it; -1: there is none
	called  []int        // ranks that have begun to protect the newest state
	void    bool         // it was refused, and holds nothing any more
}

type buffersModel struct {
	t     *rapid.T
	k, r  int
	sets  [2]*bufferSet
	rng   *rand.Rand
	lines []string
}

// TestModelBuffers protects two sets of buffers in turns, loses ranks, stops one at any message, and gives others what they
// had before. What comes back of a set is one state that all ranks have protected together, or it is refused. A set that
// was protected comes back, whatever happens to the other, as long as no more than R ranks are lost.
func TestModelBuffers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &buffersModel{t: t, k: rapid.IntRange(2, 5).Draw(t, "K"), rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))}
		m.r = rapid.IntRange(1, m.k-1).Draw(t, "R")
		most := rapid.SampledFrom([]int{10, 3000, 100_000}).Draw(t, "most bytes")
		o := buffers.Options{Tolerate: m.r, Digest: rapid.SampledFrom([]string{"", group.SHA256}).Draw(t, "digest")}
		for i := range m.sets {
			m.sets[i] = &bufferSet{job: newJob(m.k, o, most, m.rng), certain: -1, void: true}
			for r := range m.k { // the step
				m.sets[i].buffers[r] = append(m.sets[i].buffers[r], make([]byte, 8))
			}
			if err := errors.Join(m.sets[i].size()...); err != nil {
				t.Fatal(err)
			}
		}
		turn := 0
		for range rapid.IntRange(2, 10).Draw(t, "steps") {
			if turn = 1 - turn; m.sets[1-turn].void {
				turn = 1 - turn
			}
			died := m.protect(turn)
			m.crash(turn, died)
		}
	})
}

func (m *buffersModel) step(format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

func (m *buffersModel) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("K=%d, R=%d\n%s\n%s", m.k, m.r, strings.Join(m.lines, "\n"), fmt.Sprintf(format, args...))
}

// copyOf copies buffers of all ranks.
func copyOf(buffers [][][]byte) (all [][][]byte) {
	for _, list := range buffers {
		var mine [][]byte
		for _, b := range list {
			mine = append(mine, bytes.Clone(b))
		}
		all = append(all, mine)
	}
	return all
}

// sameBuffers reports whether buffers of all ranks are the same.
func sameBuffers(a, b [][][]byte) bool {
	return slices.EqualFunc(a, b, func(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) })
}

// protect has all ranks write the next step to a set and protect it, and returns the rank that has stopped meanwhile, or -1.
func (m *buffersModel) protect(turn int) int {
	x, t := m.sets[turn], m.t
	who := rapid.IntRange(0, m.k-1).Draw(t, "who")
	few := rapid.Bool().Draw(t, "only this rank changes")
	x.called = nil
	for r, list := range x.buffers {
		for i, b := range list {
			for j := range b {
				if x.void || !few || r == who && i == len(list)-1 {
					b[j] = byte(m.rng.Uint32())
				}
			}
		}
	}
	x.states, x.void = append(x.states, copyOf(x.buffers)), false
	died := -1
	faults := make([][]faulty.Fault, m.k)
	var errs []error
	switch rapid.IntRange(0, 3).Draw(t, "stops") {
	case 0:
		died = who
		errs = x.run(func(ctx context.Context, tr transport.Transport, r int) error {
			if r == died {
				return errors.New("killed")
			}
			return buffers.Protect(ctx, tr, x.buffers[r], x.parity[r], x.options[r])
		})
		m.step("protect set %d, state %d, rank %d never calls: %v", turn, len(x.states)-1, died, errs)
	case 1:
		died = who
		at := rapid.IntRange(0, 60).Draw(t, "at")
		faults[died] = []faulty.Fault{faulty.Die(at)}
		errs = x.job.protect(faults...)
		if m.step("protect set %d, state %d, rank %d dies at %d: %v", turn, len(x.states)-1, died, at, errs); errs[died] == nil {
			died = -1
		}
	default:
		errs = x.job.protect(faults...)
		m.step("protect set %d, state %d: %v", turn, len(x.states)-1, errs)
	}
	for r := range m.k {
		if r != died || faults[r] != nil {
			x.called = append(x.called, r)
		}
	}
	if died < 0 {
		if err := errors.Join(errs...); err != nil {
			m.fail("nothing has gone wrong: %v", err)
		}
	}
	if slices.Contains(errs, nil) { // it is complete at all ranks
		x.certain = len(x.states) - 1
	} else {
		x.certain = -1
	}
	return died
}

// crash loses ranks, and recovers both sets.
func (m *buffersModel) crash(turn, died int) {
	t := m.t
	var lost []int
	if died >= 0 && rapid.IntRange(0, 3).Draw(t, "memory survives") > 0 {
		lost = append(lost, died)
	}
	if died < 0 && rapid.Bool().Draw(t, "nothing happens") {
		return
	}
	for range rapid.IntRange(0, m.r).Draw(t, "lost") {
		if r := rapid.IntRange(0, m.k-1).Draw(t, "rank"); len(lost) < m.r && !slices.Contains(lost, r) {
			lost = append(lost, r)
		}
	}
	slices.Sort(lost)
	says := lost // that they have lost what they had
	if len(lost) > 0 && rapid.IntRange(0, 3).Draw(t, "all say so") == 0 {
		says = lost[1:]
	}
	stale := -1
	if rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
		stale = rapid.IntRange(0, m.k-1).Draw(t, "stale rank")
	}
	m.step("lost %v, of which %v say so, rank %d has earlier parity", lost, says, stale)
	order := []int{turn, 1 - turn}
	if rapid.Bool().Draw(t, "the other first") {
		slices.Reverse(order)
	}
	for _, i := range order {
		if x := m.sets[i]; len(x.states) > 0 && !x.void {
			m.recover(i, lost, says, stale)
		}
	}
}

// recover recovers a set, some ranks of which are lost, and one of which may have what it had at another time.
func (m *buffersModel) recover(i int, lost, says []int, stale int) {
	x, t := m.sets[i], m.t
	x.lose(lost...)
	if stale >= 0 {
		if other := m.sets[1-i]; rapid.Bool().Draw(t, "of the other set") && len(other.parity[stale]) == len(x.parity[stale]) {
			copy(x.parity[stale], other.parity[stale])
		} else if len(x.states) > 1 && rapid.Bool().Draw(t, "made anew") {
			was := x.clone()
			was.buffers = copyOf(x.states[len(x.states)-2])
			if err := errors.Join(was.protect()...); err != nil {
				m.fail("%v", err)
			}
			copy(x.parity[stale], was.parity[stale])
			if rapid.Bool().Draw(t, "and its data") {
				for b := range x.buffers[stale] {
					copy(x.buffers[stale][b], was.buffers[stale][b])
				}
			}
		} else {
			stale = -1
		}
	}
	if len(says) > 0 && rapid.IntRange(0, 3).Draw(t, "interrupted") == 0 {
		at, who := rapid.IntRange(0, 60).Draw(t, "at"), rapid.IntRange(0, m.k-1).Draw(t, "who")
		faults := make([][]faulty.Fault, m.k)
		faults[who] = []faulty.Fault{faulty.Die(at)}
		errs := x.run(func(ctx context.Context, tr transport.Transport, r int) error {
			_, err := buffers.Recover(ctx, tr, x.buffers[r], slices.Contains(says, r), x.parity[r], x.options[r])
			return err
		}, faults...)
		m.step("recover set %d, rank %d dies at %d: %v", i, who, at, errs)
	}
	before := x.clone()
	_, errs := x.job.recover(says...)
	err := errors.Join(errs...)
	m.step("recover set %d: %v", i, err)
	switch {
	case err != nil && slices.Contains(errs, nil):
		m.fail("some ranks recover, and others do not")
	case err != nil:
		for r, err := range errs {
			if !group.IsInputError(err) && !errors.As(err, new(*transport.AbortError)) {
				m.fail("rank %d: %v", r, err)
			}
		}
		if wrong := x.equal(before); wrong != nil {
			m.fail("refused, and %v", wrong)
		}
		if x.certain >= 0 && stale < 0 {
			m.fail("state %d does not come back", x.certain)
		}
		x.void, x.certain = true, -1
		return
	}
	is := slices.IndexFunc(x.states, func(s [][][]byte) bool { return sameBuffers(s, x.buffers) })
	if is < 0 {
		m.fail("what came back was never protected together")
	}
	if m.step("  state %d", is); x.certain >= 0 && is != x.certain && stale < 0 {
		m.fail("state %d came back, and state %d was protected", is, x.certain)
	}
	begun := func(r int) bool { return r != stale && !slices.Contains(lost, r) }
	if is < len(x.states)-1 && slices.ContainsFunc(x.called, begun) {
		m.fail("state %d came back, and ranks have begun to protect state %d", is, len(x.states)-1)
	}
	x.certain, x.called = is, nil
	c := x.clone()
	c.lose(says...)
	if _, errs := c.recover(says...); errors.Join(errs...) != nil || !sameBuffers(c.buffers, x.buffers) {
		m.fail("lost once more: %v", errors.Join(errs...))
	}
}
