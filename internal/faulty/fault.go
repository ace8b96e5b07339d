package faulty

import (
	"bytes"
	"slices"

	"volley/transport"
)

// A Pick says which sends of a rank a fault strikes, counted from 0 as the rank begins them.
type Pick func(number int, send *transport.Transfer) bool

// SendsTo picks the sends to rank dst with this tag.
func SendsTo(dst int, tag transport.Tag) Pick {
	return func(_ int, send *transport.Transfer) bool { return send.Rank == dst && send.Tag == tag }
}

// Nth picks one send.
func Nth(n int) Pick { return func(number int, _ *transport.Transfer) bool { return number == n } }

// EverySend picks all sends.
func EverySend(int, *transport.Transfer) bool { return true }

// A message is the parts of one. They may be the sender's own: faults replace them, and write none.
type message = [][]byte

// A Fault is one thing that goes wrong at a rank.
type Fault struct {
	picks  Pick
	strike func(message) []message // returns what is sent in its place, or nil where it does not concern the message
	state  state                   // of the rank from a round on, or running
	round  int
}

// Drop loses the message. Its sender takes it for sent.
func Drop(pick Pick) Fault {
	return Fault{picks: pick, strike: func(message) []message { return []message{} }}
}

// Flip flips one bit, 0 being the lowest, of a byte of a part. A message without that bit is sent as it is.
func Flip(pick Pick, part, offset, bit int) Fault {
	return Fault{picks: pick, strike: func(m message) []message {
		if part >= len(m) || offset >= len(m[part]) || bit > 7 {
			return nil
		}
		m = slices.Clone(m)
		m[part] = bytes.Clone(m[part])
		m[part][offset] ^= 1 << bit
		return []message{m}
	}}
}

// Truncate cuts the message after its first n bytes: the part that holds byte n gets shorter, the parts after it are
// gone. A message of n bytes or fewer is sent as it is.
func Truncate(pick Pick, n int) Fault {
	return Fault{picks: pick, strike: func(m message) []message {
		remaining := n
		for i, part := range m {
			if remaining < len(part) {
				return []message{append(slices.Clone(m[:i]), part[:remaining])}
			}
			remaining -= len(part)
		}
		return nil
	}}
}

// Duplicate sends the message twice; the second is a copy nobody waits for.
func Duplicate(pick Pick) Fault {
	return Fault{picks: pick, strike: func(m message) []message {
		again := slices.Clone(m)
		for i, part := range again {
			again[i] = bytes.Clone(part)
		}
		return []message{m, again}
	}}
}

// Hang stops the rank when it sends, or would hear, its first message of this round or a later one. From then on
// nothing is sent, received or aborted, and every Wait blocks until its ctx ends.
func Hang(round int) Fault { return Fault{state: hung, round: round} }

// Die is like [Hang], but every Wait returns [ErrDead] at once.
func Die(round int) Fault { return Fault{state: dead, round: round} }
