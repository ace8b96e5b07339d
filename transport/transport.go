// Package transport carries messages between the ranks of a group.
//
// A transport knows bytes and ranks and nothing else: no plans, no fields. Rank
// r of a group of n is the same participant everywhere, 0 <= r < n; above this
// package rank r is processor r.
//
// The package transporttest holds the suite that every implementation passes.
package transport

import (
	"context"
	"fmt"
)

// A Tag tells messages between the same two ranks apart. Messages with the same
// sender, receiver and tag arrive in the order in which they were sent; nothing
// is promised about messages with different tags.
type Tag struct {
	Round, Port int
}

// String returns, for example, "round 3 port 0".
func (t Tag) String() string { return fmt.Sprintf("round %d port %d", t.Round, t.Port) }

// A Message is a message received. Its parts may be the sender's own memory:
// they may be read, never written, until Release is called, and not touched
// after that. Release is called exactly once.
type Message struct {
	Parts   [][]byte
	Release func()
}

// A Sending is a send under way.
type Sending interface {
	// Wait returns when the parts handed to Send may be changed again: when the
	// receiver has released the message or its bytes are on their way in a copy.
	// It returns the error of the transfer, an *[AbortError] after an abort, or
	// the cause of ctx when that ends first.
	Wait(ctx context.Context) error
}

// A Receiving is a receive under way.
type Receiving interface {
	// Wait returns the message once it is there whole. It returns an error when
	// the transfer failed or the message does not have the lengths asked for,
	// an *[AbortError] after an abort, or the cause of ctx when that ends first;
	// the message is then lost.
	Wait(ctx context.Context) (Message, error)
}

// A Transport is one rank's end of the connections of a group.
//
// Send and Receive start a transfer and return at once, so that a round's
// messages travel together. Each Sending and Receiving is waited for once. One
// goroutine at a time uses a Transport, except that Abort may be called from
// any.
type Transport interface {
	// Rank returns this rank, in [0, Size()).
	Rank() int

	// Size returns the number of ranks of the group.
	Size() int

	// Send starts sending a message of the given parts to rank dst, which is
	// another rank. The parts may not be changed until Wait has returned.
	Send(dst int, tag Tag, parts [][]byte) Sending

	// Receive starts receiving the next message with this tag from rank src.
	// It has len(lengths) parts; lengths holds their sizes in bytes.
	Receive(src int, tag Tag, lengths []int) Receiving

	// Abort ends the group: every wait under way or begun later, at every rank,
	// returns an *AbortError with this rank and cause. Only the first abort of a
	// group counts.
	Abort(cause error)

	// Close gives back what this end holds. Messages already sent still arrive.
	Close() error
}

// An AbortError says which rank ended the group, and why.
type AbortError struct {
	Rank  int
	Cause error
}

func (e *AbortError) Error() string { return fmt.Sprintf("rank %d stopped: %v", e.Rank, e.Cause) }

// Unwrap returns the cause.
func (e *AbortError) Unwrap() error { return e.Cause }
