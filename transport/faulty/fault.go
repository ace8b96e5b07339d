package faulty

import (
	"fmt"
	"slices"
	"time"

	"volley/transport"
)

// A Pick says which sends of a rank a fault strikes.
type Pick struct {
	text  string
	picks func(*message) bool
}

// To picks the sends to rank dst with this tag.
func To(dst int, tag transport.Tag) Pick {
	return Pick{
		fmt.Sprintf("the send to rank %d, %v", dst, tag),
		func(m *message) bool { return m.dst == dst && m.tag == tag },
	}
}

// Nth picks one send: the i-th that the rank begins, from 0, by whichever goroutine.
func Nth(i int) Pick {
	return Pick{fmt.Sprintf("send %d", i), func(m *message) bool { return m.index == i }}
}

// Every picks all sends.
func Every() Pick {
	return Pick{"every send", func(*message) bool { return true }}
}

// String returns, for example, "the send to rank 2, round 3 port 0".
func (p Pick) String() string { return p.text }

// A message is a send on its way through the faults.
type message struct {
	index, dst int
	tag        transport.Tag

	// The slices may be the sender's own: faults replace them, and write none.
	parts  [][]byte
	drop   bool
	delay  time.Duration
	copies int // besides the message itself
}

// A Fault is one thing that goes wrong at a rank.
type Fault struct {
	text   string
	strike func(*message) bool // changes a message, or reports that it does not concern it
	state  state               // of the rank from a round on, or running
	round  int
}

// String says what goes wrong, for example "drop send 4".
func (f Fault) String() string { return f.text }

func onSend(pick Pick, text string, strike func(*message) bool) Fault {
	return Fault{text: text, strike: func(m *message) bool { return pick.picks(m) && strike(m) }}
}

// Drop loses the message. Its sender takes it for sent.
func Drop(pick Pick) Fault {
	return onSend(pick, fmt.Sprintf("drop %v", pick), func(m *message) bool {
		m.drop = true
		return true
	})
}

// Delay hands the message on only after d; messages after it with the same
// receiver and tag stay behind it. Until then its Wait notices no abort.
func Delay(pick Pick, d time.Duration) Fault {
	return onSend(pick, fmt.Sprintf("delay %v by %v", pick, d), func(m *message) bool {
		m.delay += d
		return true
	})
}

// Flip flips one bit, 0 being the lowest, of a byte of a part of the message. A
// message without that bit is sent as it is.
func Flip(pick Pick, part, offset, bit int) Fault {
	text := fmt.Sprintf("flip bit %d of byte %d of part %d of %v", bit, offset, part, pick)
	return onSend(pick, text, func(m *message) bool {
		if part >= len(m.parts) || offset >= len(m.parts[part]) || bit > 7 {
			return false
		}
		m.parts = slices.Clone(m.parts)
		m.parts[part] = slices.Clone(m.parts[part])
		m.parts[part][offset] ^= 1 << bit
		return true
	})
}

// Truncate cuts the message after its first n bytes: the part that holds byte n
// gets shorter, the parts after it are gone. A message of n bytes or fewer is
// sent as it is.
func Truncate(pick Pick, n int) Fault {
	text := fmt.Sprintf("truncate %v to %d bytes", pick, n)
	return onSend(pick, text, func(m *message) bool {
		left := n
		for i, part := range m.parts {
			if left < len(part) {
				m.parts = append(slices.Clone(m.parts[:i]), part[:left])
				return true
			}
			left -= len(part)
		}
		return false
	})
}

// Duplicate sends the message twice; the second is a copy nobody waits for.
func Duplicate(pick Pick) Fault {
	return onSend(pick, fmt.Sprintf("duplicate %v", pick), func(m *message) bool {
		m.copies++
		return true
	})
}

// Hang stops the rank when it sends, or would hear, its first message of this round or a
// later one. From then on nothing is sent, received or aborted, and every Wait
// blocks until its ctx ends.
func Hang(round int) Fault {
	return Fault{text: fmt.Sprintf("hang from round %d on", round), state: hung, round: round}
}

// Die is like [Hang], but every Wait returns [ErrDead] at once.
func Die(round int) Fault {
	return Fault{text: fmt.Sprintf("die at round %d", round), state: dead, round: round}
}
