package grpc

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/mem"

	"volley/transport"
)

// A peer is another rank, as this one sees it. The endpoint's lock guards it.
type peer struct {
	e          *Endpoint
	rank       int
	link       stream // what is sent goes there; nil: not yet
	connecting bool
	accepted   bool // it has opened a stream
	left       bool // it has closed
	read       chan struct{}
	allRead    bool // read is closed: nothing more is known to get there
	wake       chan struct{}

	// What is sent.
	urgent []*frame    // heads and what is no message
	rests  []*transfer // of cleared messages
	held   map[transport.Tag][]*transfer
	credit int // for heads

	// What is received.
	posted map[transport.Tag][]*transfer
	early  map[transport.Tag][]early
	heads  int // early ones
	taken  int // bytes of heads that came, and the sender has not got back as credit
	owed   int // of these, what it should get
	coming map[transport.Tag][]*transfer
}

// early is the head of a message that came before its receive was posted.
type early struct {
	size int
	data []byte
}

func newPeer(e *Endpoint, rank int) *peer {
	return &peer{
		e: e, rank: rank, credit: earlyBytes, read: make(chan struct{}), wake: make(chan struct{}, 1),
		held: map[transport.Tag][]*transfer{}, posted: map[transport.Tag][]*transfer{},
		early: map[transport.Tag][]early{}, coming: map[transport.Tag][]*transfer{},
	}
}

// pop takes the first of a list that a tag has.
func pop[T any](lists map[transport.Tag][]T, tag transport.Tag) (first T, ok bool) {
	list := lists[tag]
	if len(list) == 0 {
		return first, false
	}
	if first = list[0]; len(list) == 1 {
		delete(lists, tag)
	} else {
		lists[tag] = list[1:]
	}
	return first, true
}

// push has a frame sent before all rests.
func (p *peer) push(f *frame) {
	p.urgent = append(p.urgent, f)
	p.signal()
}

func (p *peer) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // it is awake
	}
}

// tell pushes a frame about the message of a tag that has n others before it of which neither was told.
func (p *peer) tell(k kind, tag transport.Tag, n int) {
	p.push(&frame{kind: k, a: uint32(tag.Round), b: uint32(tag.Port), n: uint64(n)})
}

// use connects the pair: the lower rank does it, as the other one gets to it as well.
func (p *peer) use() {
	if p.e.rank < p.rank {
		p.connect()
	}
}

// send sends the head of a message, and holds the rest.
func (p *peer) send(t *transfer) {
	if p.left {
		t.queue.Finish(t.Transfer, errLeft(p.rank))
		return
	}
	p.use()
	t.left.Store(int64(t.size) + 1)
	n := min(t.size, headBytes, p.credit)
	p.credit -= n
	p.push(&frame{
		kind: headFrame, a: uint32(t.Tag.Round), b: uint32(t.Tag.Port), n: uint64(t.size),
		data: t.pieces(n), written: func() { t.wrote(n + 1) },
	})
	if n < t.size {
		p.held[t.Tag] = append(p.held[t.Tag], t)
	}
}

// next returns what to send next, or nil.
func (p *peer) next() *frame {
	if len(p.urgent) > 0 {
		f := p.urgent[0]
		p.urgent = p.urgent[1:]
		return f
	}
	if len(p.rests) == 0 {
		return nil
	}
	t := p.rests[0]
	n := min(frameBytes, t.size-t.moved)
	f := &frame{kind: restFrame, a: uint32(t.Tag.Round), b: uint32(t.Tag.Port), data: t.pieces(n), written: func() { t.wrote(n) }}
	if t.moved == t.size {
		p.rests = p.rests[1:]
	}
	return f
}

// receive takes a message that has come, or waits for it.
func (p *peer) receive(t *transfer) {
	m, ok := pop(p.early, t.Tag)
	if !ok {
		p.use()
		p.posted[t.Tag] = append(p.posted[t.Tag], t)
		return
	}
	p.heads--
	if m.size == t.size {
		fill(t.pieces(len(m.data)), mem.BufferSlice{mem.SliceBuffer(m.data)}.Reader())
	}
	p.began(t, m.size, len(m.data))
}

// began goes on after the head of a message of that size, which had n bytes, was taken.
func (p *peer) began(t *transfer, size, n int) {
	if p.owed += n; p.owed >= earlyBytes/4 {
		p.push(&frame{kind: creditFrame, n: uint64(p.owed)})
		p.taken -= p.owed
		p.owed = 0
	}
	switch {
	case size != t.size:
		if n < size {
			waiting := 0
			for _, other := range p.coming[t.Tag] {
				if other.heard.IsZero() {
					waiting++
				}
			}
			p.tell(dropFrame, t.Tag, waiting)
		}
		t.queue.Finish(t.Transfer, &transport.LengthError{Src: p.rank, Tag: t.Tag, Got: []int{size}, Want: t.Lengths()})
	case n == size:
		t.queue.Finish(t.Transfer, nil)
	default:
		p.coming[t.Tag] = append(p.coming[t.Tag], t)
		p.e.turns.waiting = append(p.e.turns.waiting, t)
		p.e.clear()
	}
}

// errProtocol says that a peer sends what it must not.
func errProtocol(format string, args ...any) error {
	return fmt.Errorf("it sends what it must not: "+format, args...)
}

// take does what a frame from the peer asks for.
func (p *peer) take(f *frame, from *mem.Reader) error {
	e := p.e
	tag := transport.Tag{Round: int(f.a), Port: int(f.b)}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch f.kind {
	case headFrame:
		return p.takeHead(tag, f.n, from)
	case restFrame:
		if len(p.coming[tag]) == 0 {
			return errProtocol("%v was not cleared", tag)
		}
		t := p.coming[tag][0]
		n := from.Remaining()
		if t.heard.IsZero() || n == 0 || n > t.size-t.moved {
			return errProtocol("%d bytes of %v, of which %d are to come", n, tag, t.size-t.moved)
		}
		pieces := t.pieces(n)
		e.mu.Unlock()
		fill(pieces, from)
		e.mu.Lock()
		t.heard = time.Now()
		if t.moved == t.size {
			pop(p.coming, tag)
			t.queue.Finish(t.Transfer, nil)
		}
		e.clear()
	case clearFrame, dropFrame:
		if f.n >= uint64(len(p.held[tag])) {
			return errProtocol("a clear-to-send of %v, which has no message", tag)
		}
		t := p.held[tag][f.n]
		p.held[tag] = slices.Delete(p.held[tag], int(f.n), int(f.n)+1)
		if f.kind == dropFrame {
			t.wrote(t.size - t.moved)
		} else {
			p.rests = append(p.rests, t)
			p.signal()
		}
	case creditFrame:
		if f.n > uint64(earlyBytes-p.credit) {
			return errProtocol("a credit of %d bytes", f.n)
		}
		p.credit += int(f.n)
	case askFrame:
		if len(p.urgent) > earlyHeads {
			return errProtocol("more questions than answers are read")
		}
		rank, waited := e.waits.Oldest()
		p.push(&frame{kind: answerFrame, a: uint32(rank + 1), b: uint32(waited.Milliseconds()), n: f.n})
	case answerFrame:
		if to := e.answers[f.n]; to != nil && int(f.a) <= e.Size() {
			delete(e.answers, f.n)
			to <- answer{int(f.a) - 1, time.Duration(f.b) * time.Millisecond}
		}
	case abortFrame:
		if !e.closed {
			e.end(&transport.AbortError{Rank: p.rank, Cause: errors.New(text(from))})
		}
	case byeFrame:
		p.leave()
	case goneFrame:
		p.readAll()
	default:
		return errProtocol("a frame of kind %d", f.kind)
	}
	return nil
}

// takeHead gives the head of a message to its receive, or keeps it.
func (p *peer) takeHead(tag transport.Tag, size uint64, from *mem.Reader) error {
	n := from.Remaining()
	if size > 1<<62 || n > earlyBytes-p.taken {
		return errProtocol("%d bytes of a message of %d before they are asked for", n, size)
	}
	p.taken += n
	if t, ok := pop(p.posted, tag); ok {
		if int(size) == t.size {
			fill(t.pieces(n), from)
		}
		p.began(t, int(size), n)
		return nil
	}
	if p.heads++; p.heads > earlyHeads {
		return errProtocol("%d messages that nobody asks for", p.heads)
	}
	p.early[tag] = append(p.early[tag], early{int(size), []byte(text(from))})
	return nil
}

// leave notes that the peer has closed: sends to it fail.
func (p *peer) leave() {
	p.left = true
	for _, list := range p.held {
		for _, t := range list {
			t.queue.Finish(t.Transfer, errLeft(p.rank))
		}
	}
	clear(p.held)
	p.readAll()
	p.push(&frame{kind: goneFrame})
}

// readAll says that Close need not wait for the peer.
func (p *peer) readAll() {
	if !p.allRead {
		p.allRead = true
		close(p.read)
	}
}
