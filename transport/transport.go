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
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Tag tells messages between the same two ranks apart. Messages with the same
// sender, receiver and tag arrive in the order in which they were sent; nothing
// is promised about messages with different tags.
type Tag struct {
	Round, Port int
}

// ControlRounds is how many rounds of tags are for what ranks say to each other besides running
// a plan: those of plans follow. So neither is ever taken for the other.
const ControlRounds = 8

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
	// Wait returns nil when the parts handed to Send may be changed again: when
	// the receiver has released or refused the message, or its bytes are on
	// their way in a copy. Nil does not say that the receiver made use of it.
	// Wait returns the error of the transfer, an *[AbortError] after an abort,
	// or the cause of ctx when that ends first.
	//
	// After an error the message may still arrive, and the receiver may be
	// reading the parts at any later time. They are then never changed, reused
	// or unmapped, only left to the garbage collector.
	Wait(ctx context.Context) error
}

// A Receiving is a receive under way.
type Receiving interface {
	// Wait returns the message once it is there whole. It returns an error when
	// the transfer failed, a *[LengthError] when the message does not have the
	// lengths asked for, an *[AbortError] after an abort, or the cause of ctx
	// when that ends first. The message is then lost, also when it comes later:
	// the next receive with its tag gets the message after it.
	Wait(ctx context.Context) (Message, error)
}

// A Transport is one rank's end of the connections of a group.
//
// Send and Receive start a transfer and return at once, so that a round's
// messages travel together; what is wrong with a transfer, such as a rank that
// is not another rank of the group, its Wait says. Each Sending and Receiving is
// waited for once, in any order. A send may complete only when its receiver
// releases the message, so a rank that waits for its sends first may wait for
// itself.
//
// Any number of goroutines use a Transport at once, each with tags of its own, and no
// wait of one holds up another. One goroutine at a time uses a Sending or a Receiving.
// Abort may be called at any time; Close, when no Send, Receive or Wait is under way.
type Transport interface {
	// Rank returns this rank, in [0, Size()).
	Rank() int

	// Size returns the number of ranks of the group.
	Size() int

	// Send starts sending a message of the given parts to rank dst, which is
	// another rank. The parts, and the slice that lists them, may not be
	// changed until Wait has returned nil.
	Send(dst int, tag Tag, parts [][]byte) Sending

	// Receive starts receiving the next message with this tag from rank src,
	// which is another rank. It has len(lengths) parts; lengths holds their
	// sizes in bytes and may not be changed until Wait has returned.
	Receive(src int, tag Tag, lengths []int) Receiving

	// Abort ends the group: every wait under way or begun later, at every rank,
	// returns an *AbortError with this rank and cause. Only the first abort of a
	// group counts; of aborts that cross on a network, each rank may count
	// another as the first, and keeps to it.
	Abort(cause error)

	// Close gives back what this end holds. Messages whose sends were waited
	// for still arrive, and so does an abort. After it only Abort may be called,
	// perhaps without effect.
	Close() error
}

// An Inquirer is a Transport that can ask other ranks whom they wait for.
type Inquirer interface {
	// Inquire returns whom a rank has waited for the longest by now, and for how long; -1
	// is nobody. It returns an error where the rank does not answer before ctx ends.
	Inquire(ctx context.Context, rank int) (whom int, since time.Duration, err error)
}

// answerTime is how long Blame waits for an answer: one that computes answers in
// milliseconds, unless the machine is overloaded.
const answerTime = 2 * time.Second

// Blame says why a rank keeps others waiting: it follows the waits from it to the one that
// waits for nobody or does not answer, and names that. The text is empty where t is no
// [Inquirer].
func Blame(t Transport, rank int) string {
	q, ok := t.(Inquirer)
	if !ok {
		return ""
	}
	chain := []int{rank}
	for {
		last := chain[len(chain)-1]
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		whom, _, err := q.Inquire(ctx, last)
		cancel()
		switch {
		case err != nil:
			return fmt.Sprintf("rank %d does not answer%s", last, waits(chain))
		case whom < 0:
			return fmt.Sprintf("rank %d waits for nobody: it computes, reads or writes, or it hangs%s", last, waits(chain))
		case whom == t.Rank() || slices.Contains(chain, whom):
			return fmt.Sprintf("rank %d waits for rank %d: their messages are under way, or the plan is wrong%s", last, whom, waits(chain))
		}
		chain = append(chain, whom)
	}
}

// waits tells how a chain came to its end.
func waits(chain []int) string {
	if len(chain) == 1 {
		return ""
	}
	text := fmt.Sprintf(" (rank %d waits for rank %d", chain[0], chain[1])
	for i := 2; i < len(chain); i++ {
		text += fmt.Sprintf(", that for rank %d", chain[i])
	}
	return text + ")"
}

// ErrClosed is wrapped by the errors of transfers that need a closed end.
var ErrClosed = errors.New("transport closed")

// An AbortError says which rank ended the group, and why.
type AbortError struct {
	Rank  int
	Cause error // across processes perhaps only the text of it
}

func (e *AbortError) Error() string { return fmt.Sprintf("rank %d stopped: %v", e.Rank, e.Cause) }

// Unwrap returns the cause.
func (e *AbortError) Unwrap() error { return e.Cause }

// A LengthError says that a message does not have the parts its receiver asked
// for. A transport that carries no part boundaries notices only a wrong sum;
// Got is then that sum alone.
type LengthError struct {
	Src       int
	Tag       Tag
	Got, Want []int // sizes of the parts in bytes
}

func (e *LengthError) Error() string {
	message := fmt.Sprintf("message from rank %d, %v", e.Src, e.Tag)
	if len(e.Got) == len(e.Want) {
		for i, got := range e.Got {
			if got != e.Want[i] {
				return fmt.Sprintf("%s: part %d: got %d bytes, want %d", message, i, got, e.Want[i])
			}
		}
	}
	return fmt.Sprintf("%s: parts: got %d (%d bytes), want %d (%d bytes)",
		message, len(e.Got), sum(e.Got), len(e.Want), sum(e.Want))
}

func sum(sizes []int) (total int) {
	for _, size := range sizes {
		total += size
	}
	return total
}
