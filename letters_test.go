package volley_test

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"volley"
	"volley/plan"
	"volley/transport"
)

// A letter is what a processor sent or asked for, as the transport sees it.
type letter struct {
	slot
	parts []int // bytes
}

// A slot is where letters of every segment go.
type slot struct {
	round, port, peer int
	sent              bool
}

// A counted transport notes letters.
type counted struct {
	transport.Transport
	mu      sync.Mutex // guards letters, which both pipelines note
	letters []letter
}

type countedQueue struct {
	transport.Queue
	counted *counted
}

func (c *counted) NewQueue() transport.Queue { return countedQueue{c.Transport.NewQueue(), c} }

func (q countedQueue) Post(transfers ...*transport.Transfer) {
	q.counted.mu.Lock()
	for _, t := range transfers {
		q.counted.letters = append(q.counted.letters, letter{slot{t.Tag.Round, t.Tag.Port, t.Rank, !t.Receive}, t.Lengths()})
	}
	q.counted.mu.Unlock()
	q.Queue.Post(transfers...)
}

func total(parts []int) (n int64) {
	for _, x := range parts {
		n += int64(x)
	}
	return n
}

// bySlot puts the letters of a processor into the slots of so many rounds, by segment: those of every other segment may have
// tags of rounds after the plan's. The slots ascend.
func bySlot(letters []letter, rounds int) (slots []slot, segments map[slot][][]int) {
	lanes := [2]map[slot][][]int{{}, {}}
	for _, l := range letters {
		lane := 0
		if l.round >= rounds {
			lane, l.round = 1, l.round-rounds
		}
		lanes[lane][l.slot] = append(lanes[lane][l.slot], l.parts)
	}
	segments = lanes[0]
	for s, second := range lanes[1] {
		for i, parts := range second {
			segments[s] = slices.Insert(segments[s], min(2*i+1, len(segments[s])), parts)
		}
	}
	slots = slices.SortedFunc(maps.Keys(segments), func(a, b slot) int {
		return cmp.Or(a.round-b.round, a.port-b.port, a.peer-b.peer)
	})
	return slots, segments
}

// compareLetters counts rounds, elements and bytes from the letters alone. It knows how many collectives a run has: of up
// to 8 times more ranks a round, the greeting is one and the check another.
func (c *trial) compareLetters(t failer, run int, r *volley.Report, all [][]outcome) {
	n := c.processors()
	rounds := make([]plan.RoundTraffic, len(r.Rounds))
	var bytesMax, controlMax int64
	elements := map[int]int64{} // bytes of an element, by segment
	controlRounds := 0
	for proc := range all {
		var rest []letter
		begun := 0
		var sent, said int64
		for _, l := range all[proc][run].letters {
			if l.round >= transport.ControlRounds {
				l.round -= transport.ControlRounds
				rest = append(rest, l)
				continue
			}
			if l.sent && l.port == 0 { // one in each round
				begun++
			}
			if l.sent {
				said += total(l.parts)
			}
		}
		controlRounds = max(controlRounds, begun)
		type way struct {
			peer int
			sent bool
		}
		met := map[way]bool{}
		slots, segments := bySlot(rest, len(rounds))
		for _, place := range slots {
			if place.port < 0 || place.port >= r.Ports || place.round >= len(rounds) || place.peer == proc || place.peer < 0 || place.peer >= n ||
				len(segments[place]) != r.Segments {
				t.Fatalf("run %d, processor %d: letters %+v in %d segments, report %+v", run, proc, place, len(segments[place]), r)
			}
			first := 0
			for s, parts := range segments[place] {
				if partner := (way{place.peer, place.sent}); !met[partner] { // with the hash of the plan in front
					met[partner] = true
					if len(parts) < 2 || parts[0] != 32 {
						t.Fatalf("run %d, processor %d: no header in %+v", run, proc, place)
					}
					if parts = parts[1:]; place.sent {
						said += 32
					}
				}
				if s == 0 {
					first = len(parts)
				}
				for _, size := range parts {
					if element, ok := elements[s]; ok && int64(size) != element || len(parts) != first {
						t.Fatalf("run %d, processor %d, segment %d: %v in %+v, elements of %d bytes", run, proc, s, parts, place, element)
					}
					elements[s] = int64(size)
				}
				if place.sent {
					sent += total(parts)
				}
			}
			if place.sent {
				x := &rounds[place.round]
				x.Messages++
				x.Largest = max(x.Largest, first)
			}
		}
		bytesMax, controlMax = max(bytesMax, sent), max(controlMax, said)
	}
	c1, c2 := 0, 0
	for _, x := range rounds {
		if x.Messages > 0 {
			c1++
			c2 += x.Largest
		}
	}
	if !slices.Equal(rounds, r.Rounds) || c1 != r.C1 || c2 != r.C2 || bytesMax != r.BytesSentMax || controlMax != r.ControlBytes || controlRounds != r.ControlRounds {
		t.Fatalf("run %d: counted %d/%d, %v, %d bytes, %d bytes in %d rounds of control; reported %+v", run, c1, c2, rounds, bytesMax, controlMax, controlRounds, r)
	}
	if least, most, once := c.collectives(); controlRounds < least || controlRounds > most || controlRounds%once != 0 {
		t.Fatalf("run %d: %d rounds of control, want from %d to %d, in collectives of %d each", run, controlRounds, least, most, once)
	}
	var whole int64
	for _, size := range elements {
		whole += size * int64(max(1, r.Pieces))
	}
	if len(elements) > 0 && (whole < r.PacketBytes || r.Pieces < 2 && whole != r.PacketBytes) {
		t.Fatalf("run %d: elements of %v bytes make %d, packets have %d", run, elements, whole, r.PacketBytes)
	}
}

// collectives returns how many rounds of control a run has, and how many one collective.
func (c *trial) collectives() (least, most, once int) {
	n := c.processors()
	for reach := 1; reach < n; reach *= 8 {
		once++
	}
	least, most = once, once
	if !c.unchecked {
		least, most = least+once, most+once
		if n > 64 { // where nobody looks at all of a large matrix
			most += once
		}
	}
	return least, most, once
}
