//go:build mpi

package mpi

import (
	"cmp"
	"slices"
	"time"

	"volley/transport"
)

// stream is what keeps its order.
type stream struct {
	rank int
	tag  transport.Tag
}

// underWay returns the transfers that have requests, oldest first.
func (e *Endpoint) underWay() []*transfer {
	var list []*transfer
	for _, s := range e.outstanding {
		if t, ok := s.owner.(*transfer); ok {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *transfer) int { return a.serial - b.serial })
	return slices.Compact(list) // of several fragments
}

// clear sends the clear-to-send of long messages whose receives are posted. All of them travel at a time, and share
// the link: were it one at a time, a link would be idle whenever two ranks want the same sender's message.
func (e *Endpoint) clear() {
	e.uncleared = slices.DeleteFunc(e.uncleared, func(t *transfer) bool {
		if !e.connected[t.Rank] { // the first of two ranks to speak connects them, and should not be both
			return false
		}
		e.sendControl(t.Rank, controlMessage{Clear: t.mpiTag})
		return true
	})
}

// lengthsAfter is how long nothing is over before, and then how often, messages of other lengths are looked for.
const lengthsAfter = 20 * time.Millisecond

// checkLengths looks for messages of other lengths than were asked for, whose tags say so. The
// oldest receive of their stream gets them: it is cancelled, and they are taken in its place.
func (e *Endpoint) checkLengths() {
	e.refused = slices.DeleteFunc(e.refused, (*transfer).discard)
	if min(time.Since(e.checked), time.Since(e.overAt)) < lengthsAfter {
		return
	}
	e.checked = time.Now()
	seen := map[stream]bool{}
	for _, t := range e.underWay() {
		key := stream{t.Rank, t.Tag}
		if !t.Receive || seen[key] {
			continue
		}
		seen[key] = true
		tag, ok, err := e.peek(t.Rank)
		tag &^= moreBit
		if err != nil || !ok || tag == controlTag || tag == t.mpiTag || tag>>e.streamShift != t.mpiTag>>e.streamShift || t.misfitTag != 0 {
			continue
		}
		t.misfitTag = tag
		for i, index := range t.requests {
			if e.outstanding[index] != (request{t, i}) {
				continue // it is over
			}
			if err := e.cancel(index); err != nil { // without effect where the right one has come
				t.fail(err)
			}
		}
	}
}

// discard takes what has come of a message of other lengths, and reports whether that is all.
func (t *transfer) discard() bool {
	e, got := t.queue.e, 0
	if wrong, ok := t.err.(*transport.LengthError); ok {
		got = wrong.Got[0]
	}
	var failure error
	take := func(tag int) bool {
		n, ok, err := e.communicator.discard(t.Rank, tag)
		got, failure = got+n, cmp.Or(failure, err)
		return ok && err == nil
	}
	last := take(t.misfitTag)
	for take(t.misfitTag | moreBit) {
	}
	if t.wrong(got); failure != nil {
		t.fail(failure)
	}
	if last || failure != nil {
		t.end()
	}
	return last || failure != nil
}
