package grpc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	again      bool // the first stream was lost before the peer took it
	accepted   bool // it has opened a stream
	turns      bool // this rank connects them soon, if the lower one does not
	left       bool // it has closed
	read       chan struct{}
	readAll    func() // closes read: Close need not wait for the peer
	wake       chan struct{}

	// What is sent.
	urgent []*frame    // heads and what is no message
	rests  []*transfer // of cleared messages
	credit int         // for heads

	// What is received.
	heads  int // early ones
	clears int // that came before their messages were sent
	taken  int // bytes of heads that came, and the sender has not got back as credit
	owed   int // of these, what it should get

	lines map[transport.Tag]*line
}

// A line has the messages of a tag: the i-th that is sent meets the i-th receive. It is kept, as tags are few.
type line struct {
	sends, receives uint32      // so far
	waiting         []*transfer // sends whose rest waits for a clear-to-send
	clears          []*frame    // clear-to-sends that came before their messages were sent
	posted          []*transfer // receives whose head has not come
	early           []early
	coming          []*transfer // receives whose rest has not come
}

type early struct {
	size int
	data []byte
}

func newPeer(e *Endpoint, rank int) *peer {
	read := make(chan struct{})
	return &peer{
		e: e, rank: rank, read: read, readAll: sync.OnceFunc(func() { close(read) }), wake: make(chan struct{}, 1),
		credit: earlyBytes, lines: map[transport.Tag]*line{},
	}
}

func (p *peer) line(tag transport.Tag) *line {
	l := p.lines[tag]
	if l == nil {
		l = &line{}
		p.lines[tag] = l
	}
	return l
}

func pull[T any](list *[]T, matches func(T) bool) (first T, ok bool) {
	i := slices.IndexFunc(*list, matches)
	if i < 0 {
		return first, false
	}
	first = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return first, true
}

func pop[T any](list *[]T) (first T, ok bool) { return pull(list, func(T) bool { return true }) }

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

// clear sends the clear-to-send of a receive, once; of another length the sender drops it. All long messages whose receives
// are posted may come at a time: else links would be idle whenever two ranks want the same sender's message.
func (p *peer) clear(t *transfer) {
	if t.cleared {
		return
	}
	t.cleared = true
	p.push(&frame{kind: clearFrame, a: uint32(t.Tag.Round), b: uint32(t.Tag.Port), c: t.number, n: uint64(t.size)})
}

func (p *peer) tellAbort() {
	why := p.e.abort.Cause.Error()
	why = strings.ToValidUTF8(why[:min(len(why), textBytes)], "")
	p.push(&frame{kind: abortFrame, a: uint32(p.e.abort.Rank), data: [][]byte{[]byte(why)}})
}

// use connects the pair: the lower rank does it, as the other one gets to it as well. Where it has not for a while, a
// firewall may be between: the higher one then tries, so that one way is enough, and both find out if there is none.
func (p *peer) use() {
	if p.e.rank < p.rank {
		p.connect()
	} else if p.link == nil && !p.turns {
		p.turns = true
		time.AfterFunc(p.e.listener.limits.Turn, func() {
			p.e.mu.Lock()
			defer p.e.mu.Unlock()
			if !p.e.closed && p.e.abort == nil {
				p.connect()
			}
		})
	}
}

// send sends the head of a message, and holds the rest unless it is cleared.
func (p *peer) send(t *transfer) {
	if p.left {
		t.queue.Finish(t.Transfer, errLeft(p.rank))
		return
	}
	p.use()
	l := p.line(t.Tag)
	t.number = l.sends
	l.sends++
	t.left.Store(int64(t.size) + 1)
	n := min(t.size, headBytes, p.credit)
	p.credit -= n
	p.push(&frame{
		kind: headFrame, a: uint32(t.Tag.Round), b: uint32(t.Tag.Port), n: uint64(t.size),
		data: t.fragment(n), written: func() { t.wrote(n + 1) },
	})
	clear, ok := pull(&l.clears, func(f *frame) bool { return f.c == t.number })
	if ok {
		p.clears--
	}
	switch {
	case n == t.size:
	case ok:
		p.cleared(t, clear.n)
	default:
		l.waiting = append(l.waiting, t)
	}
}

// cleared sends the rest of a message if its receiver wants so many bytes.
func (p *peer) cleared(t *transfer, size uint64) {
	if size != uint64(t.size) {
		t.wrote(t.size - t.moved)
		return
	}
	p.rests = append(p.rests, t)
	p.signal()
}

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
	f := &frame{
		kind: restFrame, a: uint32(t.Tag.Round), b: uint32(t.Tag.Port), c: t.number,
		data: t.fragment(n), written: func() { t.wrote(n) },
	}
	if t.moved == t.size {
		p.rests = p.rests[1:]
	}
	return f
}

// receive takes a message that has come, or waits for it. The sender of a long one is told clear-to-send before it asks.
func (p *peer) receive(t *transfer) {
	l := p.line(t.Tag)
	t.number = l.receives
	l.receives++
	m, ok := pop(&l.early)
	if !ok {
		p.use()
		l.posted = append(l.posted, t)
		if t.size > headBytes {
			p.clear(t)
		}
		return
	}
	p.heads--
	if m.size == t.size {
		fill(t.fragment(len(m.data)), mem.BufferSlice{mem.SliceBuffer(m.data)}.Reader())
	}
	p.began(l, t, m.size, len(m.data))
}

// began goes on after the head of a message of that size, which had n bytes, was taken.
func (p *peer) began(l *line, t *transfer, size, n int) {
	if p.owed += n; p.owed >= earlyBytes/4 {
		p.push(&frame{kind: creditFrame, n: uint64(p.owed)})
		p.taken -= p.owed
		p.owed = 0
	}
	switch {
	case size != t.size:
		if n < size {
			p.clear(t)
		}
		t.queue.Finish(t.Transfer, &transport.LengthError{Src: p.rank, Tag: t.Tag, Got: []int{size}, Want: t.Lengths()})
	case n == size:
		t.queue.Finish(t.Transfer, nil)
	default:
		l.coming = append(l.coming, t)
		p.clear(t)
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
		l, n := p.line(tag), from.Remaining()
		i := slices.IndexFunc(l.coming, func(t *transfer) bool { return t.number == f.c })
		if i < 0 {
			return errProtocol("%v was not cleared", tag)
		}
		t := l.coming[i]
		if n == 0 || n > t.size-t.moved {
			return errProtocol("%d bytes of %v, of which %d are to come", n, tag, t.size-t.moved)
		}
		fragment := t.fragment(n)
		e.mu.Unlock()
		fill(fragment, from)
		e.mu.Lock()
		if t.moved == t.size {
			l.coming = slices.DeleteFunc(l.coming, func(x *transfer) bool { return x == t })
			t.queue.Finish(t.Transfer, nil)
		}
	case clearFrame:
		l := p.line(tag)
		if t, ok := pull(&l.waiting, func(t *transfer) bool { return t.number == f.c }); ok {
			p.cleared(t, f.n)
		} else if f.c-l.sends < 1<<31 { // not sent yet; the number wraps
			if p.clears++; p.clears > earlyHeads {
				return errProtocol("%d clear-to-sends of messages that are not sent", p.clears)
			}
			l.clears = append(l.clears, f)
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
		if int(f.a) >= e.Size() {
			return errProtocol("an abort of rank %d of %d", f.a, e.Size())
		}
		if !e.closed {
			e.end(&transport.AbortError{Rank: int(f.a), Cause: errors.New(string(rest(from)))})
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
	l := p.line(tag)
	if t, ok := pop(&l.posted); ok {
		if int(size) == t.size {
			fill(t.fragment(n), from)
		}
		p.began(l, t, int(size), n)
		return nil
	}
	if p.heads++; p.heads > earlyHeads {
		return errProtocol("%d messages that nobody asks for", p.heads)
	}
	l.early = append(l.early, early{int(size), rest(from)})
	return nil
}

func (p *peer) leave() {
	p.left = true
	for _, l := range p.lines {
		p.rests = append(p.rests, l.waiting...)
		l.waiting = nil
	}
	for _, t := range p.rests {
		t.queue.Finish(t.Transfer, errLeft(p.rank))
	}
	p.rests = nil
	p.readAll()
	p.push(&frame{kind: goneFrame})
}
