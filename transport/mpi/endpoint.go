//go:build mpi

package mpi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"volley/transport"
)

// An Endpoint is this process's rank of a group. Any number of goroutines may use it at
// once.
type Endpoint struct {
	*communicator
	lengthBits int // of a tag

	// What follows is guarded by the engine's lock.
	queues  map[stream][]*receiving // asked for, oldest first
	sends   []*sending
	leaves  map[leave]int // that have come for sends that have not begun
	met     map[int]bool  // ranks that were sent or have sent something
	granted []*receiving  // long messages that were given leave, and have not come
	asking  []*receiving  // those that were not, oldest first
	letters []*request    // control messages under way
	post    *request      // for the next one that comes
	paper   []byte        // where it comes
	abort   *transport.AbortError
	closed  bool
	broken  bool // a wait was given up: messages may be left that nobody takes
	waits   map[*wait]bool
	answers map[int]chan answer // by the number of a question
	asked   int                 // questions so far
	strayed time.Time           // when strays were looked for

	buffers bufferPool
}

var (
	_ transport.Transport = (*Endpoint)(nil)
	_ transport.Inquirer  = (*Endpoint)(nil)
)

// stream is what keeps its order.
type stream struct {
	src int
	tag transport.Tag
}

// controlTag is the tag of control messages. The others have one more than round·ports +
// port, and then bits that depend on the length of the message: a message of another length
// than was asked for is never put into memory that is too short.
const controlTag = 0

// mostLengthBits is how many they are if the library has room; ports and leastRounds go first.
const (
	mostLengthBits = 10
	ports          = 64
	leastRounds    = 1 << 14
)

// lengthHash depends on a length.
func lengthHash(n, bits int) int { return int(uint64(n) * 0x9e3779b97f4a7c15 >> (64 - bits)) }

func newEndpoint(handle *int) (e *Endpoint, err error) {
	call(func() {
		var g *communicator
		if g, err = duplicate(handle); err != nil {
			return
		}
		e = &Endpoint{
			communicator: g,
			lengthBits:   max(1, min(mostLengthBits, bits.Len(uint(g.mostTag))-bits.Len(ports*leastRounds))),
			queues:       map[stream][]*receiving{}, leaves: map[leave]int{}, met: map[int]bool{}, waits: map[*wait]bool{}, answers: map[int]chan answer{},
		}
		e.paper = make([]byte, letterBytes)
		if err = e.await(); err == nil {
			engine.open[e] = true
		}
	})
	return e, err
}

// Rank returns this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size returns the number of ranks of the group.
func (e *Endpoint) Size() int { return e.size }

// Exclusive calls f while nothing else calls MPI, on a thread that may.
func (e *Endpoint) Exclusive(f func()) { call(f) }

// tagOf returns MPI's tag for a message of ours.
func (e *Endpoint) tagOf(t transport.Tag, length int) (int, error) {
	rounds := e.mostTag>>e.lengthBits/ports - 1
	if t.Port < 0 || t.Port >= ports || t.Round < 0 || t.Round >= rounds {
		return 0, fmt.Errorf("mpi: %v: the MPI library has room for %d rounds of %d ports", t, rounds, ports)
	}
	return (1+t.Round*ports+t.Port)<<e.lengthBits | lengthHash(length, e.lengthBits), nil
}

// peer returns an error unless r is another rank.
func (e *Endpoint) peer(doing string, r int) error {
	if r < 0 || r >= e.size || r == e.rank {
		return fmt.Errorf("rank %d cannot %s rank %d: not another rank of the group of %d", e.rank, doing, r, e.size)
	}
	return nil
}

// begin looks whether a transfer may begin, and returns MPI's tag for it. The caller holds
// the lock.
func (e *Endpoint) begin(doing string, rank int, t transport.Tag, length int) (int, error) {
	if err := e.peer(doing, rank); err != nil {
		return 0, err
	}
	if e.abort != nil { // nothing goes to those who have not heard of it
		return 0, e.abort
	}
	if e.closed {
		return 0, fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed)
	}
	return e.tagOf(t, length)
}

// A sending is a message under way to another rank.
type sending struct {
	e        *Endpoint
	dst      int
	tag      transport.Tag
	mpiTag   int
	held     [][][]byte // pieces that have not been sent, the blocks of each
	long     bool       // it needs leave
	requests []*request
	err      error
	done     bool
}

// Of a message of more pieces than freePieces, the others wait until its receiver gives
// leave, which it does once it has asked for it and what it was given leave for before has
// come, or nearly. Else a rank that is ahead would take its receiver's link from the one
// whose turn it is. Leave is given unasked, ahead of what the receiver sends in that round:
// an answer would queue behind that.
const freePieces = 2

// leave is for a message to a rank.
type leave struct{ rank, mpiTag int }

// Send sends the parts from where they lie.
func (e *Endpoint) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	s := &sending{e: e, dst: dst, tag: tag}
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	call(func() {
		var err error
		if s.mpiTag, err = e.begin("send to", dst, tag, length); err != nil {
			s.err, s.done = err, true
			return
		}
		s.held = cut(parts)
		s.long = len(s.held) > freePieces
		e.sends = append(e.sends, s)
		e.advance(leave{dst, s.mpiTag})
	})
	return s
}

// cut cuts a message into pieces, all of mostBytes but the last.
func cut(parts [][]byte) (pieces [][][]byte) {
	var blocks [][]byte
	room := mostBytes
	for _, part := range parts {
		for len(part) > 0 {
			n := min(room, len(part))
			blocks = append(blocks, part[:n])
			part, room = part[n:], room-n
			if room == 0 {
				pieces, blocks, room = append(pieces, blocks), nil, mostBytes
			}
		}
	}
	return append(pieces, blocks)
}

// advance sends what may go of the messages with a tag to a rank, in their order.
func (e *Endpoint) advance(key leave) {
	for _, s := range e.sends {
		if s.dst != key.rank || s.mpiTag != key.mpiTag || len(s.held) == 0 {
			continue
		}
		if s.long && e.leaves[key] == 0 {
			if len(s.requests) == 0 {
				s.start(freePieces)
			}
			return // those that follow have to wait for the rest of it
		}
		if s.long {
			if e.leaves[key]--; e.leaves[key] == 0 {
				delete(e.leaves, key)
			}
		}
		s.start(len(s.held))
	}
}

// start sends so many pieces.
func (s *sending) start(n int) {
	s.e.met[s.dst] = true
	for _, blocks := range s.held[:n] {
		r, err := s.e.send(s.dst, s.mpiTag, blocks)
		if err != nil {
			s.err, s.held = s.name(err), nil
			return
		}
		s.requests = append(s.requests, r)
	}
	s.held = s.held[n:]
}

// name says of an error of MPI whose it is.
func (s *sending) name(err error) error {
	if errors.As(err, new(*mpiError)) {
		return fmt.Errorf("rank %d: send to rank %d, %v: %w", s.e.rank, s.dst, s.tag, err)
	}
	return err
}

// test looks how far the message is.
func (s *sending) test() {
	if len(s.held) > 0 {
		return
	}
	for _, r := range s.requests {
		if !r.over {
			return
		}
		if r.err != nil {
			s.err = s.name(r.err)
		}
	}
	s.done = true
}

// Wait waits until MPI needs the parts no more.
func (s *sending) Wait(ctx context.Context) error {
	return s.e.wait(ctx, s.dst, func() (bool, error) { return s.done, s.err }, func() {})
}

// A receiving is a message asked for.
type receiving struct {
	e       *Endpoint
	src     int
	tag     transport.Tag
	mpiTag  int
	lengths []int
	total   int
	buffer  []byte
	got     int       // bytes that have come
	request *request  // for the next piece
	heard   time.Time // when the last one came, or leave was given
	stray   int       // tag of a message of another length
	dropped bool      // nobody waits any more
	done    bool
	err     error
}

// Receive asks for a message.
func (e *Endpoint) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	r := &receiving{e: e, src: src, tag: tag, lengths: lengths}
	for _, n := range lengths {
		r.total += n
	}
	call(func() {
		var err error
		if r.mpiTag, err = e.begin("receive from", src, tag, r.total); err != nil {
			r.err, r.done = err, true
			return
		}
		key := stream{src, tag}
		queue := append(e.queues[key], r)
		e.queues[key] = queue
		if len(queue) == 1 || queue[len(queue)-2].request != nil && queue[len(queue)-2].total < mostBytes {
			r.ask() // else a piece of the one before would come here
		}
		if r.total >= freePieces*mostBytes {
			e.asking = append(e.asking, r)
			e.give()
		}
	})
	return r
}

// ask asks for the next piece.
func (r *receiving) ask() {
	if r.buffer == nil {
		r.buffer = r.e.buffers.get(r.total)
	}
	rest := r.buffer[r.got:]
	request, err := r.e.receive(r.src, r.mpiTag, rest[:min(len(rest), mostBytes)])
	if err != nil {
		r.fail(err)
		return
	}
	r.request = request
}

// give gives leave for long messages, in the order in which they were asked for: to those
// of one round together, as ports may be links, and to the next ones when these have nearly
// come, or do not come at all for a while: then the link is free.
func (e *Endpoint) give() {
	e.granted = slices.DeleteFunc(e.granted, func(r *receiving) bool { return r.done })
	e.asking = slices.DeleteFunc(e.asking, func(r *receiving) bool {
		if r.done {
			return true
		}
		if !e.met[r.src] { // the first of two ranks to speak connects them, and should not be both
			return false
		}
		for _, g := range e.granted {
			if g.tag.Round != r.tag.Round && g.total-g.got > freePieces*mostBytes && time.Since(g.heard) < leaveAfter+4*e.pace {
				return false
			}
		}
		r.heard = time.Now()
		e.granted = append(e.granted, r)
		e.write(r.src, letter{Leave: r.mpiTag})
		return true
	})
}

// leaveAfter is how long nothing may come of a message that was given leave.
const leaveAfter = 20 * time.Millisecond

// hear looks whether a piece has come, and asks for the next one.
func (r *receiving) hear() {
	for r.request != nil {
		if !r.request.over {
			return
		}
		bytes, err := r.request.bytes, r.request.err
		r.request = nil
		switch {
		case err != nil:
			r.fail(err)
			return
		case bytes < 0:
			r.refuse()
			return
		}
		r.got += bytes
		r.heard = time.Now()
		r.e.met[r.src] = true
		switch {
		case bytes == mostBytes:
			r.ask()
		default:
			r.over()
		}
	}
}

// refuse takes a message of another length, whose tag says so, in place of the one that was
// asked for.
func (r *receiving) refuse() {
	r.e.write(r.src, letter{Leave: r.stray}) // it may be a long one
	for r.got = 0; ; {
		m, ok, err := r.e.probe(r.src, r.stray)
		if err == nil && ok {
			_, err = m.read()
			r.got += m.bytes
		}
		switch {
		case err != nil:
			r.fail(err)
			return
		case ok && m.bytes < mostBytes:
			r.over()
			return
		}
	}
}

// strayAfter is how long nothing is over before it is looked whether a message has come with
// another length, and then how often.
const strayAfter = 20 * time.Millisecond

// strays looks for messages of other lengths than were asked for.
func (e *Endpoint) strays() {
	if min(time.Since(e.strayed), time.Since(e.overAt)) < strayAfter {
		return
	}
	e.strayed = time.Now()
	for key, queue := range e.queues {
		tag, ok, err := e.peek(key.src)
		r := queue[0]
		if err != nil || !ok || tag == controlTag || tag == r.mpiTag || tag>>e.lengthBits != r.mpiTag>>e.lengthBits || r.request == nil || r.stray != 0 {
			continue
		}
		r.stray = tag
		if err := e.cancel(r.request); err != nil { // without effect where the right one has come
			r.fail(err)
		}
	}
}

func (r *receiving) fail(err error) {
	r.err, r.done = fmt.Errorf("rank %d: receive from rank %d, %v: %w", r.e.rank, r.src, r.tag, err), true
}

// over is called when the last piece has come.
func (r *receiving) over() {
	if r.done = true; r.got != r.total {
		r.err = &transport.LengthError{Src: r.src, Tag: r.tag, Got: []int{r.got}, Want: slices.Clone(r.lengths)}
	}
	if r.dropped || r.err != nil {
		r.e.buffers.put(r.buffer)
	}
}

// hearAll looks what has come of a stream.
func (e *Endpoint) hearAll(key stream) {
	queue := e.queues[key]
	for len(queue) > 0 {
		r := queue[0]
		if r.request == nil && !r.done {
			r.ask()
		}
		if r.hear(); !r.done {
			break
		}
		queue = slices.Delete(queue, 0, 1)
	}
	if len(queue) > 0 {
		e.queues[key] = queue
	} else {
		delete(e.queues, key) // a tag seldom comes back
	}
}

// Wait waits for the message.
func (r *receiving) Wait(ctx context.Context) (transport.Message, error) {
	err := r.e.wait(ctx, r.src, func() (bool, error) { return r.done, r.err }, func() { r.dropped = true })
	if err != nil {
		return transport.Message{}, err
	}
	parts := make([][]byte, len(r.lengths))
	rest := r.buffer
	for i, n := range r.lengths {
		parts[i], rest = rest[:n:n], rest[n:]
	}
	released := false
	return transport.Message{Parts: parts, Release: func() {
		if released {
			panic(fmt.Sprintf("mpi: message from rank %d to rank %d, %v, released twice", r.src, r.e.rank, r.tag))
		}
		released = true
		r.e.buffers.put(r.buffer)
	}}, nil
}

// look does what can be done at once. The caller holds the lock.
func (e *Endpoint) look() {
	engine.looked.Store(time.Now().UnixNano())
	if err := e.poll(); err != nil {
		e.end(&transport.AbortError{Rank: e.rank, Cause: err})
	}
	e.sends = slices.DeleteFunc(e.sends, func(s *sending) bool {
		s.test()
		return s.done
	})
	for key := range e.queues {
		e.hearAll(key)
	}
	e.strays()
	e.give()
	e.letters = slices.DeleteFunc(e.letters, func(r *request) bool { return r.over })
	for e.post != nil && e.post.over {
		e.readLetter()
	}
}

// A wait is one under way.
type wait struct {
	rank  int // whom it is for
	since time.Time
}

// Waits look as soon as they begin and then ever more seldom, unless they are woken, so that
// a long one costs little and adds little to its own length: there may be many more ranks
// than cores.
const (
	spin     = 20 * time.Microsecond
	leastNap = 20 * time.Microsecond
	mostNap  = 5 * time.Millisecond
	napShare = 6                     // of the time waited so far
	mostPoll = 20 * time.Millisecond // in C, until ctx is looked at
)

// wait waits until ended says so, or the group or ctx ends. Given up, it calls drop.
func (e *Endpoint) wait(ctx context.Context, rank int, ended func() (bool, error), drop func()) error {
	begun := time.Now()
	w := &wait{rank, begun}
	engine.waits.Add(1)
	defer engine.waits.Add(-1)
	for turn := 0; ; turn++ {
		var done bool
		var err error
		call(func() {
			if turn > 0 {
				e.look()
			}
			if e.abort != nil {
				done, err = true, e.abort
			} else if done, err = ended(); !done && ctx.Err() != nil {
				drop()
				e.broken = true
				done, err = true, context.Cause(ctx)
			}
			if done {
				delete(e.waits, w)
			} else if turn == 0 {
				e.waits[w] = true
			}
		})
		if done {
			return err
		}
		if waited := time.Since(begun); waited > spin {
			call(func() {
				engine.asleep.Store(true)
				err := e.pollFor(waited, &engine.wanted)
				if engine.asleep.Store(false); err != nil {
					e.end(&transport.AbortError{Rank: e.rank, Cause: err})
				}
			})
		}
	}
}

// A letter is a control message.
type letter struct {
	Abort   *string `json:",omitempty"` // why the sender ended the group
	Leave   int     `json:",omitempty"` // MPI's tag of a message to the sender, the rest of which may come
	Ask     int     `json:",omitempty"` // a question's number: for whom does the receiver wait?
	Answer  int     `json:",omitempty"` // that number
	For     int     `json:",omitempty"` // for this rank, or -1: for nobody
	Seconds float64 `json:",omitempty"` // for so long
}

// answer is what a rank says of itself.
type answer struct {
	rank int // that it waits for, or -1
	time time.Duration
}

// write sends a letter.
func (e *Endpoint) write(dst int, l letter) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	r, err := e.send(dst, controlTag, [][]byte{text})
	if err == nil {
		e.letters = append(e.letters, r)
	}
	return err
}

// await asks for the next letter.
func (e *Endpoint) await() (err error) {
	e.post, err = e.receive(anyRank, controlTag, e.paper)
	return err
}

// readLetter reads the letter that has come.
func (e *Endpoint) readLetter() {
	var l letter
	from, wrong := e.post.from, e.post.err
	if wrong == nil && e.post.bytes >= 0 {
		wrong = json.Unmarshal(e.paper[:e.post.bytes], &l)
	}
	if err := e.await(); err != nil || wrong != nil {
		e.end(&transport.AbortError{Rank: e.rank, Cause: errors.Join(wrong, err)})
		return
	}
	switch {
	case l.Abort != nil:
		e.end(&transport.AbortError{Rank: from, Cause: errors.New(*l.Abort)})
	case l.Leave != 0:
		e.leaves[leave{from, l.Leave}]++
		e.advance(leave{from, l.Leave})
	case l.Ask != 0:
		rank, since := e.oldestWait()
		e.write(from, letter{Answer: l.Ask, For: rank, Seconds: since.Seconds()})
	case l.Answer != 0:
		if to := e.answers[l.Answer]; to != nil {
			delete(e.answers, l.Answer)
			to <- answer{l.For, time.Duration(l.Seconds * float64(time.Second))}
		}
	}
}

// letterBytes is how long a letter may be. Texts are cut to an eighth of it: JSON may need
// six bytes for one of theirs.
const letterBytes = 2 << 10

// Inquire asks a rank for whom it has waited the longest, and for how long; -1 is nobody.
// It returns an error where no answer comes until ctx ends.
func (e *Endpoint) Inquire(ctx context.Context, rank int) (int, time.Duration, error) {
	to := make(chan answer, 1)
	var number int
	var err error
	call(func() {
		if err = e.peer("ask", rank); err == nil {
			e.asked++
			number = e.asked
			e.answers[number] = to
			err = e.write(rank, letter{Ask: number})
		}
	})
	if err != nil {
		return -1, 0, err
	}
	for {
		select {
		case a := <-to:
			return a.rank, a.time, nil
		case <-ctx.Done():
			call(func() { delete(e.answers, number) })
			return -1, 0, fmt.Errorf("rank %d does not answer: %w", rank, context.Cause(ctx))
		default:
			nap(leastNap)
			call(e.look)
		}
	}
}

// oldestWait returns whom this rank has waited for the longest, or -1.
func (e *Endpoint) oldestWait() (rank int, waited time.Duration) {
	rank = -1
	for w := range e.waits {
		if d := time.Since(w.since); rank < 0 || d > waited {
			rank, waited = w.rank, d
		}
	}
	return rank, waited
}

// end notes the first abort.
func (e *Endpoint) end(err *transport.AbortError) {
	if e.abort == nil {
		e.abort = err
	}
}

// Abort ends the group; the first one that this rank hears of counts for it.
func (e *Endpoint) Abort(cause error) {
	call(func() {
		if e.abort != nil {
			return
		}
		e.end(&transport.AbortError{Rank: e.rank, Cause: cause})
		text := cause.Error()
		text = strings.ToValidUTF8(text[:min(len(text), letterBytes/8)], "")
		for r := range e.size {
			if r != e.rank {
				e.write(r, letter{Abort: &text})
			}
		}
	})
}

// lastWords is how long Close waits for an abort to leave.
const lastWords = 2 * time.Second

// Close gives up what is still under way. What was sent still arrives, by the keeper's
// help.
func (e *Endpoint) Close() error {
	for begun := time.Now(); time.Since(begun) < lastWords; nap(leastNap) {
		left := 0
		call(func() {
			if !e.closed {
				e.look()
			}
			left = len(e.letters)
		})
		if left == 0 {
			break
		}
	}
	var err error
	call(func() {
		if e.closed {
			return
		}
		e.closed = true
		asked := len(e.queues)
		for _, queue := range e.queues {
			for _, r := range queue {
				r.fail(fmt.Errorf("rank %d: %w", e.rank, transport.ErrClosed))
				if r.request != nil {
					err = errors.Join(err, e.cancel(r.request))
				}
			}
		}
		e.queues = nil
		delete(engine.open, e)
		err = errors.Join(err, e.cancel(e.post), e.poll())
		engine.lost = append(engine.lost, e.list...)
		// Messages that are left would be found in the next group of the same context.
		if !e.broken && e.abort == nil && len(e.sends)+asked+len(e.letters) == 0 {
			err = errors.Join(err, e.free())
		}
		e.drop()
	})
	return err
}

// bufferPool holds buffers of messages that were released.
type bufferPool struct {
	mu   sync.Mutex
	idle [][]byte
}

// get returns a buffer of n bytes.
func (p *bufferPool) get(n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, b := range p.idle {
		if cap(b) >= n && cap(b) <= 2*n+64 {
			p.idle = slices.Delete(p.idle, i, i+1)
			return b[:n]
		}
	}
	return make([]byte, n)
}

// mostIdle is how many buffers are kept.
const mostIdle = 64

func (p *bufferPool) put(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == mostIdle {
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.idle = append(p.idle, b)
}
