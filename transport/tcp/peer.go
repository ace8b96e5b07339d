package tcp

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"volley/transport"
)

// A peer is another rank, as this one sees it. The endpoint's lock guards it.
type peer struct {
	e          *Endpoint
	rank       int
	link       *conn // what is sent goes there; nil: not yet
	connecting bool
	accepted   bool // it has called, and was admitted
	turns      bool // this rank connects them soon, if the lower one does not
	writing    bool // parts of sends may be read now
	closed     bool // it has closed
	read       chan struct{}
	readAll    func() // closes read: Close need not wait for the peer
	wake       chan struct{}

	// What is sent.
	urgent []frame     // heads and what is no message
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
	clears          []frame     // clear-to-sends that came before their messages were sent
	posted          []*transfer // receives whose head has not come
	early           []early
	coming          []*transfer // receives whose rest has not come
}

// early is the head of a message that nobody has asked for yet.
type early struct {
	size int // of the message
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
func (p *peer) push(f frame) {
	p.urgent = append(p.urgent, f)
	p.signal()
}

func (p *peer) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // it is awake
	}
}

// frame is one of a message.
func (t *transfer) frame(k kind, n, size int) frame {
	return frame{kind: k, a: uint32(t.Tag.Round), b: uint32(t.Tag.Port), c: t.number, n: uint64(n), size: size}
}

// data is the frame of the next bytes of a message.
func (t *transfer) data(k kind, size int) frame {
	f := t.frame(k, t.size, size)
	f.transfer, f.offset = t, t.moved
	t.moved += size
	return f
}

// clear sends the clear-to-send of a receive, once; of another length the sender drops it. All long messages whose receives
// are posted may come at a time: else links would be idle whenever two ranks want the same sender's message.
func (p *peer) clear(t *transfer) {
	if !t.cleared {
		t.cleared = true
		p.push(t.frame(clearFrame, t.size, 0))
	}
}

func (p *peer) tellAbort() {
	reason := p.e.abort.Cause.Error()
	reason = strings.ToValidUTF8(reason[:min(len(reason), nameBytes)], "")
	p.push(frame{kind: abortFrame, a: uint32(p.e.abort.Rank), text: []byte(reason)})
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
	p.use()
	l := p.line(t.Tag)
	t.number = l.sends
	l.sends++
	size := min(t.size, headBytes, p.credit)
	p.credit -= size
	p.push(t.data(headFrame, size))
	clear, ok := pull(&l.clears, func(f frame) bool { return f.c == t.number })
	if ok {
		p.clears--
	}
	switch {
	case size == t.size:
	case ok:
		p.cleared(t, clear.n)
	default:
		l.waiting = append(l.waiting, t)
	}
}

// cleared sends the rest of a message if its receiver wants so many bytes.
func (p *peer) cleared(t *transfer, size uint64) {
	if size != uint64(t.size) {
		t.passed(t.size - t.moved)
		return
	}
	p.rests = append(p.rests, t)
	p.signal()
}

// collect puts what is to be sent into a batch.
func (p *peer) collect(b *batch) {
	taken := 0
	for ; taken < len(p.urgent) && !b.full(); taken++ {
		b.add(p.urgent[taken])
	}
	p.urgent = slices.Delete(p.urgent, 0, taken)
	for len(p.rests) > 0 && !b.full() {
		t := p.rests[0]
		b.add(t.data(restFrame, min(frameBytes, t.size-t.moved)))
		if t.moved == t.size {
			p.rests = slices.Delete(p.rests, 0, 1)
		}
	}
}

// receive takes a message that has come, or waits for it. The sender of a long one is told clear-to-send before it asks.
func (p *peer) receive(t *transfer) {
	l := p.line(t.Tag)
	t.number = l.receives
	l.receives++
	l.posted = append(l.posted, t)
	if len(l.early) > 0 {
		p.match(l)
		return
	}
	p.use()
	if t.size > headBytes {
		p.clear(t)
	}
}

// match gives an early head to the receive that has been posted for it, if both are there.
func (p *peer) match(l *line) {
	if len(l.early) == 0 || len(l.posted) == 0 {
		return
	}
	head, _ := pop(&l.early)
	t, _ := pop(&l.posted)
	p.heads--
	data := head.data
	if head.size == t.size {
		for _, part := range t.cut(nil, 0, len(data)) {
			data = data[copy(part, data):]
		}
	}
	p.began(l, t, head.size, len(head.data))
}

// began goes on after the head of a message of that length, which had size bytes, was taken.
func (p *peer) began(l *line, t *transfer, length, size int) {
	if p.owed += size; p.owed >= earlyBytes/4 {
		p.push(frame{kind: creditFrame, n: uint64(p.owed)})
		p.taken -= p.owed
		p.owed = 0
	}
	if size < length {
		p.clear(t)
	}
	if length != t.size {
		t.queue.Finish(t.Transfer, &transport.LengthError{Src: p.rank, Tag: t.Tag, Got: []int{length}, Want: t.Lengths()})
		return
	}
	t.moved = size
	if size < length {
		l.coming = append(l.coming, t)
	}
	t.passed(size + 1)
}

// take does what a frame from the peer asks for.
func (p *peer) take(c *conn, f frame) error {
	switch f.kind {
	case headFrame:
		return p.takeHead(c, f)
	case restFrame:
		return p.takeRest(c, f)
	}
	text, err := c.rest(f)
	if err != nil {
		return err
	}
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	return p.takeControl(f, text)
}

// takeHead gives the head of a message to its receive, or keeps it.
func (p *peer) takeHead(c *conn, f frame) error {
	length := int(f.n)
	p.e.mu.Lock()
	l := p.line(f.tag())
	if f.n > math.MaxInt || f.size > earlyBytes-p.taken {
		p.e.mu.Unlock()
		return errProtocol("%d bytes of a message of %d before they are asked for", f.size, f.n)
	}
	p.taken += f.size
	t, posted := pop(&l.posted)
	p.e.mu.Unlock()
	var data []byte
	var err error
	switch {
	case !posted:
		data, err = c.rest(f)
	case length == t.size:
		err = t.fill(c, 0, f.size)
	default:
		_, err = io.CopyN(io.Discard, c.reader, int64(f.size))
	}
	if err != nil {
		return err
	}
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	if posted {
		p.began(l, t, length, f.size)
		return nil
	}
	if p.heads++; p.heads > earlyHeads {
		return errProtocol("%d messages that nobody asks for", p.heads)
	}
	l.early = append(l.early, early{length, data})
	p.match(l)
	return nil
}

// takeRest puts bytes of a message where they belong.
func (p *peer) takeRest(c *conn, f frame) error {
	p.e.mu.Lock()
	l := p.line(f.tag())
	i := slices.IndexFunc(l.coming, func(t *transfer) bool { return t.number == f.c })
	if i < 0 {
		p.e.mu.Unlock()
		return errProtocol("%v was not cleared", f.tag())
	}
	t := l.coming[i]
	offset := t.moved
	if f.size == 0 || f.size > t.size-offset {
		p.e.mu.Unlock()
		return errProtocol("%d bytes of %v, of which %d are to come", f.size, f.tag(), t.size-offset)
	}
	if t.moved += f.size; t.moved == t.size {
		l.coming = slices.Delete(l.coming, i, i+1)
	}
	p.e.mu.Unlock()
	if err := t.fill(c, offset, f.size); err != nil {
		return err
	}
	t.passed(f.size)
	return nil
}

func (f frame) tag() transport.Tag { return transport.Tag{Round: int(f.a), Port: int(f.b)} }

// takeControl does what a frame without bytes of messages asks for.
func (p *peer) takeControl(f frame, text []byte) error {
	e := p.e
	switch f.kind {
	case clearFrame:
		l := p.line(f.tag())
		if t, ok := pull(&l.waiting, func(t *transfer) bool { return t.number == f.c }); ok {
			p.cleared(t, f.n)
		} else if l.sends == 0 || f.c-l.sends < 1<<31 { // not sent yet; the number wraps
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
		p.push(frame{kind: answerFrame, a: uint32(e.waits.Oldest() + 1), n: f.n})
	case answerFrame:
		if reply := e.answers[f.n]; reply != nil && int(f.a) <= e.Size() {
			delete(e.answers, f.n)
			reply <- int(f.a) - 1
		}
	case abortFrame:
		if int(f.a) >= e.Size() {
			return errProtocol("an abort of rank %d of %d", f.a, e.Size())
		}
		if !e.closed {
			e.heard(&transport.AbortError{Rank: int(f.a), Cause: errors.New(string(text))})
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

// leave notes that the peer has closed.
func (p *peer) leave() {
	if p.closed {
		return
	}
	p.closed = true
	p.readAll()
	p.push(frame{kind: goneFrame})
	if !p.writing {
		p.fail()
	}
}

// fail ends the sends to a peer that has closed. No frame is being written: their parts may be changed again.
func (p *peer) fail() {
	for _, l := range p.lines {
		p.rests = append(p.rests, l.waiting...)
		l.waiting = nil
	}
	p.urgent = slices.DeleteFunc(p.urgent, func(f frame) bool {
		if f.kind == headFrame {
			p.rests = append(p.rests, f.transfer)
		}
		return f.kind == headFrame
	})
	for _, t := range p.rests {
		t.queue.Finish(t.Transfer, errLeft(p.rank))
	}
	p.rests = nil
}
