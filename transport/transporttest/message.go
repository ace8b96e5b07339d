package transporttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"volley/transport"
)

// A message has bytes that follow from what it says of itself, so that both its ends know them.
type message struct {
	src, dst int
	tag      transport.Tag
	serial   int // tells messages with the same tag apart
	lengths  []int
}

func (l message) String() string {
	return fmt.Sprintf("message %d from rank %d to rank %d, %v", l.serial, l.src, l.dst, l.tag)
}

func (l message) parts() [][]byte {
	random := rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, l.src, l.dst, l.tag.Round, l.tag.Port, l.serial)))
	parts := make([][]byte, len(l.lengths))
	for i, n := range l.lengths {
		parts[i] = make([]byte, n)
		random.Read(parts[i])
	}
	return parts
}

func (l message) check(parts [][]byte) error {
	if len(parts) != len(l.lengths) {
		return fmt.Errorf("%v: got %d parts, want %d", l, len(parts), len(l.lengths))
	}
	for i, want := range l.parts() {
		got := parts[i]
		if len(got) != len(want) {
			return fmt.Errorf("%v: part %d: got %d bytes, want %d", l, i, len(got), len(want))
		}
		if !bytes.Equal(got, want) {
			index := 0
			for got[index] == want[index] {
				index++
			}
			return fmt.Errorf("%v: part %d: byte %d of %d: got %#02x, want %#02x", l, i, index, len(got), got[index], want[index])
		}
	}
	return nil
}

// An endpoint is a rank that tests.
type endpoint struct {
	ctx context.Context
	transport.Transport
}

// next and prev are the neighbours on the ring of all ranks.
func (d endpoint) next() int { return (d.Rank() + 1) % d.Size() }
func (d endpoint) prev() int { return (d.Rank() + d.Size() - 1) % d.Size() }

// toNext and fromPrev are the same message at its two ends.
func (d endpoint) toNext(tag transport.Tag, serial int, lengths ...int) message {
	return message{d.Rank(), d.next(), tag, serial, lengths}
}

func (d endpoint) fromPrev(tag transport.Tag, serial int, lengths ...int) message {
	return message{d.prev(), d.Rank(), tag, serial, lengths}
}

// partner returns the other rank of this rank's pair (0, 1), (2, 3) …; the last of an odd number has none.
func (d endpoint) partner() (r int, ok bool) {
	r = d.Rank() ^ 1
	return r, r < d.Size()
}

// transfer returns this end of a message: what is sent, or memory with other bytes.
func (d endpoint) transfer(l message) *transport.Transfer {
	if l.src == d.Rank() {
		return &transport.Transfer{Rank: l.dst, Tag: l.tag, Parts: l.parts()}
	}
	t := &transport.Transfer{Rank: l.src, Tag: l.tag, Receive: true}
	for _, n := range l.lengths {
		t.Parts = append(t.Parts, bytes.Repeat([]byte{0xA5}, n))
	}
	return t
}

// A pending is a message on its way, in a queue of its own.
type pending struct {
	message
	*transport.Transfer
	queue transport.Queue
}

func (d endpoint) post(l message) pending { return d.start(l, d.transfer(l)) }

func (d endpoint) start(l message, t *transport.Transfer) pending {
	p := pending{l, t, d.NewQueue()}
	p.queue.Post(t)
	return p
}

// Wait waits until the message is there, or its memory free.
func (p pending) Wait(ctx context.Context) error {
	t, err := p.queue.Wait(ctx)
	if t != nil && t != p.Transfer {
		return fmt.Errorf("wait for %v: it returned a transfer that was not posted, %+v", p.message, *t)
	}
	return err
}

// finish waits for messages in turn, and checks what has come.
func (d endpoint) finish(messages ...pending) error {
	for _, p := range messages {
		if err := p.problem(p.Transfer, p.Wait(d.ctx)); err != nil {
			return err
		}
	}
	return nil
}

// problem returns what is wrong with a transfer of the message that has ended with an error, or nil.
func (l message) problem(t *transport.Transfer, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%v: %v: %w", l, t, err)
	case t.Receive:
		return l.check(t.Parts)
	}
	return nil
}

// trade sends and receives all at once, in one queue.
func (d endpoint) trade(messages ...message) error {
	q, transfers := d.NewQueue(), make([]*transport.Transfer, len(messages))
	for i, l := range messages {
		transfers[i] = d.transfer(l)
	}
	q.Post(transfers...)
	for remaining := len(transfers); remaining > 0; remaining-- {
		t, err := q.Wait(d.ctx)
		if t == nil {
			first := slices.IndexFunc(transfers, func(t *transport.Transfer) bool { return t != nil })
			return fmt.Errorf("%d of %d messages under way, such as %v: %w", remaining, len(transfers), messages[first], err)
		}
		i := slices.Index(transfers, t)
		if i < 0 {
			return fmt.Errorf("a transfer that was not posted, or is named twice: %+v", *t)
		}
		transfers[i] = nil
		if err := messages[i].problem(t, err); err != nil {
			return err
		}
	}
	return nil
}

// pass trades one message of these lengths around the ring.
func (d endpoint) pass(tag transport.Tag, lengths ...int) error {
	return d.trade(d.fromPrev(tag, 0, lengths...), d.toNext(tag, 0, lengths...))
}
