// Package transport carries messages between the ranks of a group.
//
// A transport knows bytes and ranks and nothing else: no plans, no fields. Rank r of a group of n is the same
// participant everywhere, 0 <= r < n; above this package rank r is processor r.
//
// The package transporttest holds the suite that every implementation passes.
package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A Tag tells messages between the same two ranks apart. Messages with the same sender, receiver and tag arrive in the
// order in which they were sent; nothing is promised about messages with different tags.
type Tag struct {
	Round, Port int
}

// ControlRounds is how many rounds of tags are for what ranks say besides running a plan, whose tags follow.
const ControlRounds = 16

// String returns, for example, "round 3 port 0".
func (t Tag) String() string { return fmt.Sprintf("round %d port %d", t.Round, t.Port) }

// A Transfer is one message at its sender or receiver. From Post until it is over nobody changes it or its parts, or reads
// parts that are received.
type Transfer struct {
	Rank    int // the other one
	Tag     Tag
	Receive bool     // else it is sent
	Parts   [][]byte // what is sent, from where it lies, or where to receive; any number, of any length
	ID      int      // for the caller alone
}

// String returns, for example, "receive from rank 3".
func (t *Transfer) String() string {
	if t.Receive {
		return fmt.Sprintf("receive from rank %d", t.Rank)
	}
	return fmt.Sprintf("send to rank %d", t.Rank)
}

// A Queue is a completion queue: transfers are posted together, and Wait names each when over, one by one in any order.
//
// One goroutine at a time waits for a queue. Others may post meanwhile.
type Queue interface {
	// Post starts transfers and returns at once. What is wrong with one, such as a rank that is
	// not another rank of the group, Wait says. A round's transfers in one call travel together
	// and cost the least; receives that are posted before the messages come are not copied.
	Post(transfers ...*Transfer)

	// Wait waits until a transfer is over that it has not named, and returns it: one received
	// lies whole in its parts, and the parts of one sent may be changed again. The latter does
	// not say that the receiver has made use of it. With the transfer Wait returns the error of it,
	// a *[LengthError] when the message did not have the lengths asked for, or else what broke.
	//
	// Without a transfer it returns an *[AbortError] after an abort, and the cause of ctx when that ends. What is under
	// way stays so: after an abort, or when nobody waits any more, memory of its parts may be read or written at any
	// later time. It is then never reused or unmapped, only left to the garbage collector.
	//
	// Wait also waits where nothing is under way.
	Wait(ctx context.Context) (*Transfer, error)
}

// Gather says that nothing will follow from the next [Queue.Wait] until so many receives are over. A
// queue with a method Gather may then return from it only when they are, or after a while: a return has its price.
func Gather(q Queue, receives int) {
	if g, ok := q.(interface{ Gather(receives int) }); ok {
		g.Gather(receives)
	}
}

// A Transport is one rank's end of the connections of a group.
//
// A send may be over only when its receiver has posted the receive, so a rank that waits for
// its sends before it posts its receives may wait for itself.
//
// Any number of goroutines use a Transport at once, each with a queue and tags of its own, and no wait of one holds up
// another. Abort may be called at any time; Close, when no Post or Wait is under way.
type Transport interface {
	// Rank returns this rank, in [0, Size()).
	Rank() int

	// Size returns the number of ranks of the group.
	Size() int

	// NewQueue returns an empty queue. It holds nothing that would have to be given back.
	NewQueue() Queue

	// Abort ends the group: every wait under way or begun later, at every rank, returns an *AbortError with this rank
	// and cause. Only the first abort of a group counts; of aborts that cross on a network, each rank may count another
	// as the first, and keeps to it.
	Abort(cause error)

	// Close gives back what this end holds. Messages whose sends are over still arrive, and so does an abort. After it
	// only Abort may be called, perhaps without effect.
	Close() error
}

// Send sends a message and waits until its parts may be changed again.
func Send(ctx context.Context, t Transport, dst int, tag Tag, parts ...[]byte) error {
	return perform(ctx, t, &Transfer{Rank: dst, Tag: tag, Parts: parts})
}

// Receive receives a message into the parts, which have its lengths.
func Receive(ctx context.Context, t Transport, src int, tag Tag, parts ...[]byte) error {
	return perform(ctx, t, &Transfer{Rank: src, Tag: tag, Parts: parts, Receive: true})
}

func perform(ctx context.Context, t Transport, transfer *Transfer) error {
	q := t.NewQueue()
	q.Post(transfer)
	_, err := q.Wait(ctx)
	return err
}

// Bytes returns the bytes of the parts together.
func (t *Transfer) Bytes() (total int) {
	for _, part := range t.Parts {
		total += len(part)
	}
	return total
}

// Lengths returns the bytes of each part.
func (t *Transfer) Lengths() []int {
	lengths := make([]int, len(t.Parts))
	for i, part := range t.Parts {
		lengths[i] = len(part)
	}
	return lengths
}

// A CoreSharer is a Transport that knows which ranks run on the same machine.
type CoreSharer interface {
	// Cores returns how many of the cores that this process may use are this rank's share.
	Cores() int

	// Overlaps reports, alike at all ranks, whether messages travel while a rank computes. They do
	// not where all ranks are on one machine and have no core for it: then computing waits.
	Overlaps() bool
}

// Cores returns how many goroutines of this rank may compute at a time: runtime.GOMAXPROCS,
// or less where t is a [CoreSharer] and ranks share the cores.
func Cores(t Transport) int {
	cores := runtime.GOMAXPROCS(0)
	if s, ok := t.(CoreSharer); ok {
		return min(cores, s.Cores())
	}
	return cores
}

// Overlaps reports whether messages travel while a rank computes: so they do unless a [CoreSharer] says otherwise.
func Overlaps(t Transport) bool {
	s, ok := t.(CoreSharer)
	return !ok || s.Overlaps()
}

// An Inquirer is a Transport that can ask other ranks whom they wait for.
type Inquirer interface {
	// Inquire returns whom a rank has waited for the longest by now; -1 is nobody. It returns an error where the rank does
	// not answer before ctx ends.
	Inquire(ctx context.Context, rank int) (whom int, err error)
}

// Around is embedded by a Transport around another one, of which it has the methods of [CoreSharer],
// [Limiter] and [Inquirer].
type Around struct{ Transport }

// Cores is [Cores].
func (a Around) Cores() int { return Cores(a.Transport) }

// Overlaps is [Overlaps].
func (a Around) Overlaps() bool { return Overlaps(a.Transport) }

// Limits is [LimitsOf].
func (a Around) Limits() Limits { return LimitsOf(a.Transport) }

// Inquire asks the other one, or returns an error where that is no [Inquirer].
func (a Around) Inquire(ctx context.Context, rank int) (whom int, err error) {
	if q, ok := a.Transport.(Inquirer); ok {
		return q.Inquire(ctx, rank)
	}
	return -1, errors.New("the transport cannot ask others")
}

// answerTime is how long Blame waits for an answer, which takes milliseconds unless the machine is overloaded.
const answerTime = 2 * time.Second

// Blame says why a rank keeps others waiting: it follows the waits from it to the one that waits for nobody or does not
// answer, and names that. The text is empty where t is no [Inquirer], or the group ends meanwhile.
func Blame(t Transport, rank int) string {
	q, ok := t.(Inquirer)
	if !ok {
		return ""
	}
	chain := []int{rank}
	for {
		last := chain[len(chain)-1]
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		whom, err := q.Inquire(ctx, last)
		cancel()
		var ended *AbortError
		switch {
		case errors.As(err, &ended): // the others will say why
			return ""
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

func (e *AbortError) Error() string {
	cause := strings.TrimPrefix(e.Cause.Error(), fmt.Sprintf("rank %d: ", e.Rank)) // it may say so, too
	return fmt.Sprintf("rank %d stopped: %s", e.Rank, cause)
}

// Unwrap returns the cause.
func (e *AbortError) Unwrap() error { return e.Cause }

// A LengthError says that a message does not have the parts its receiver asked for. A transport that carries no part
// boundaries notices only a wrong sum; Got is then that sum alone.
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
