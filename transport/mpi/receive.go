//go:build mpi

package mpi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"volley/transport"
)

// stream is what keeps its order.
type stream struct {
	src int
	tag transport.Tag
}

// A receiving is a posted receive.
type receiving struct {
	transfer
	lengths   []int
	total     int
	buffer    []byte
	got       int       // bytes that have come
	request   *request  // for the next fragment
	heard     time.Time // when the last one came, or the clear-to-send went
	otherTag  int       // of a message of another length that came instead
	abandoned bool      // nobody waits any more
}

// Receive posts a receive.
func (e *Endpoint) Receive(src int, tag transport.Tag, lengths []int) transport.Receiving {
	r := &receiving{transfer: transfer{e: e, doing: "receive from", rank: src, tag: tag}, lengths: lengths}
	for _, n := range lengths {
		r.total += n
	}
	call(func() {
		if !r.begin(r.total) {
			return
		}
		key := stream{src, tag}
		queue := append(e.posted[key], r)
		e.posted[key] = queue
		if len(queue) == 1 || queue[len(queue)-2].request != nil && queue[len(queue)-2].total < fragmentBytes {
			r.post() // else a fragment of the one before would come here
		}
		if r.total >= eagerFragments*fragmentBytes {
			e.uncleared = append(e.uncleared, r)
			e.clear()
		}
	})
	return r
}

// post posts the receive of the next fragment.
func (r *receiving) post() {
	if r.buffer == nil {
		r.buffer = r.e.buffers.get(r.total)
	}
	rest := r.buffer[r.got:]
	request, err := r.e.receive(r.rank, r.mpiTag, rest[:min(len(rest), fragmentBytes)])
	if err != nil {
		r.fail(err)
		return
	}
	r.request = request
}

// clear sends the clear-to-send of long messages, in the order in which they were posted: of
// one round together, as ports may be links, and of the next when these have nearly
// come, or do not come at all for a while: then the link is free.
func (e *Endpoint) clear() {
	e.cleared = slices.DeleteFunc(e.cleared, func(r *receiving) bool { return r.done })
	e.uncleared = slices.DeleteFunc(e.uncleared, func(r *receiving) bool {
		if r.done {
			return true
		}
		if !e.connected[r.rank] { // the first of two ranks to speak connects them, and should not be both
			return false
		}
		for _, c := range e.cleared {
			if c.tag.Round != r.tag.Round && c.total-c.got > eagerFragments*fragmentBytes && time.Since(c.heard) < clearAfter+4*e.pace {
				return false
			}
		}
		r.heard = time.Now()
		e.cleared = append(e.cleared, r)
		e.sendControl(r.rank, controlMessage{Clear: r.mpiTag})
		return true
	})
}

// clearAfter is how long nothing may come of a message whose sender was told clear-to-send.
const clearAfter = 20 * time.Millisecond

// advance looks which fragments have come, posts the next ones, and reports whether the
// message is over.
func (r *receiving) advance() bool {
	if r.request == nil && !r.done {
		r.post()
	}
	for r.request != nil && r.request.over {
		bytes, err := r.request.bytes, r.request.err
		r.request = nil
		switch {
		case err != nil:
			r.fail(err)
		case bytes < 0:
			r.refuse()
		default:
			r.got += bytes
			r.heard = time.Now()
			r.e.connected[r.rank] = true
			if bytes == fragmentBytes {
				r.post()
			} else {
				r.end()
			}
		}
	}
	return r.done
}

// refuse takes a message of another length, whose tag says so, in place of the one that was
// asked for.
func (r *receiving) refuse() {
	r.e.sendControl(r.rank, controlMessage{Clear: r.otherTag}) // it may be a long one
	for r.got = 0; !r.done; {
		n, ok, err := r.e.discard(r.rank, r.otherTag)
		r.got += n
		switch {
		case err != nil:
			r.fail(err)
		case ok && n < fragmentBytes:
			r.end()
		}
	}
}

// end is called when the last fragment has come.
func (r *receiving) end() {
	if r.done = true; r.got != r.total {
		r.err = &transport.LengthError{Src: r.rank, Tag: r.tag, Got: []int{r.got}, Want: slices.Clone(r.lengths)}
	}
	if r.abandoned || r.err != nil {
		r.e.buffers.put(r.buffer)
	}
}

// lengthsAfter is how long nothing is over before it is looked whether a message has come with
// another length, and then how often.
const lengthsAfter = 20 * time.Millisecond

// checkLengths looks for messages of other lengths than were asked for.
func (e *Endpoint) checkLengths() {
	if min(time.Since(e.checked), time.Since(e.overAt)) < lengthsAfter {
		return
	}
	e.checked = time.Now()
	for key, queue := range e.posted {
		tag, ok, err := e.peek(key.src)
		r := queue[0]
		if err != nil || !ok || tag == controlTag || tag == r.mpiTag || tag>>e.lengthBits != r.mpiTag>>e.lengthBits || r.request == nil || r.otherTag != 0 {
			continue
		}
		r.otherTag = tag
		if err := e.cancel(r.request); err != nil { // without effect where the right one has come
			r.fail(err)
		}
	}
}

// Wait waits for the message.
func (r *receiving) Wait(ctx context.Context) (transport.Message, error) {
	if err := r.wait(ctx, func() { r.abandoned = true }); err != nil {
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
			panic(fmt.Sprintf("mpi: message from rank %d to rank %d, %v, released twice", r.rank, r.e.rank, r.tag))
		}
		released = true
		r.e.buffers.put(r.buffer)
	}}, nil
}
