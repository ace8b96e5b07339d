// Package collective has what ranks do together around a run: greet, allgather, barrier, and work that takes long.
//
// All ranks call the same functions in the same order. Where one fails, it aborts the group: all others return a
// *transport.AbortError that names the rank, unless they have failed themselves, and the transport is of no more use.
// Where all ranks find the same error in what they know of each other, they meet once more before they return it, see
// [Comm.Alike]: else the first to abort would hide the error of the others.
package collective

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"volley/transport"
)

// A Comm runs collectives of all ranks of a transport and counts their traffic.
type Comm struct {
	Rounds int   // of all collectives until now
	Bytes  int64 // that this rank sent in them

	t       transport.Transport
	timeout time.Duration
	first   int // round of the tags of a collective
}

// New returns the Comm of a transport. A wait for one message is bounded by the timeout, unless that is 0.
func New(t transport.Transport, timeout time.Duration) *Comm { return &Comm{t: t, timeout: timeout} }

// Separate returns a Comm of the same transport with tags of its own, which counts by itself.
func (c *Comm) Separate() *Comm { return &Comm{t: c.t, timeout: c.timeout, first: mostRounds} }

// mostText bounds what a rank may tell all others at once: the longest are lists of files.
const mostText = 1 << 28

// mostShort is how long texts may be that travel along with their lengths, in bytes.
const mostShort = 504

// Allgatherv gives the text of every rank, of any length up to 256 MiB, to all of them. A wait for one message is
// bounded by the timeout, unless that is 0. It returns an error where a rank announces a longer text.
func Allgatherv(ctx context.Context, t transport.Transport, text []byte, timeout time.Duration) ([][]byte, error) {
	c := New(t, timeout)
	heads, err := c.Allgather(ctx, headOf(text))
	if err != nil {
		return nil, err
	}
	return c.rest(ctx, heads, text)
}

// headOf returns the length of a text and its first bytes, padded with zeros.
func headOf(text []byte) []byte {
	head := append(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+mostShort), uint64(len(text))), text[:min(len(text), mostShort)]...)
	return head[:8+mostShort]
}

// rest returns the texts of all ranks, whose heads have come.
func (c *Comm) rest(ctx context.Context, heads [][]byte, text []byte) (_ [][]byte, err error) {
	longest := uint64(0)
	texts := make([][]byte, len(heads))
	for r, head := range heads {
		n := binary.LittleEndian.Uint64(head)
		if n > mostText {
			return nil, fmt.Errorf("collective: rank %d announces a text of %d bytes: at most %d are possible", r, n, mostText)
		}
		longest = max(longest, n)
		texts[r] = head[8:]
	}
	if longest > mostShort {
		padded := make([]byte, longest)
		copy(padded, text)
		if texts, err = c.Allgather(ctx, padded); err != nil {
			return nil, err
		}
	}
	for r, head := range heads {
		texts[r] = texts[r][:binary.LittleEndian.Uint64(head)]
	}
	return texts, nil
}

// AllgatherValues is [Allgatherv] of values, by their JSON. It also returns an error where that of a rank is no T.
func AllgatherValues[T any](ctx context.Context, t transport.Transport, mine T, timeout time.Duration) ([]T, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	texts, err := Allgatherv(ctx, t, text, timeout)
	if err != nil {
		return nil, err
	}
	return values[T](texts)
}

func values[T any](texts [][]byte) ([]T, error) {
	decoded := make([]T, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &decoded[r]); err != nil {
			return nil, fmt.Errorf("collective: rank %d says what does not fit here: %w", r, err)
		}
	}
	return decoded, nil
}

// beat returns how long a working rank may be silent, or a quarter of its timeout: others may have shorter ones.
func (c *Comm) beat() time.Duration {
	if c.timeout > 0 {
		return min(time.Second, max(c.timeout/4, 1))
	}
	return time.Second
}

// Steady has every rank do work of its own, such as syncing files, that may take longer than the timeout. Meanwhile the
// ranks exchange signs of life: a wait for one is bounded by the timeout, unless that is 0. Steady returns nil when the
// work of all ranks has succeeded. Where work fails at some ranks, these return the errors of their work. They abort
// the group when the others have finished or a beat has passed; the others then return the [transport.AbortError], and
// the contexts of their works end. All ranks call Steady. The work does not use t, and has ended when Steady returns.
func Steady(ctx context.Context, t transport.Transport, timeout time.Duration, work func(context.Context) error) error {
	return New(t, timeout).Steady(ctx, work)
}

// Steady is [Steady] with the tags of c.
func (c *Comm) Steady(ctx context.Context, work func(context.Context) error) error {
	_, err := c.steady(ctx, false, func(ctx context.Context) ([]byte, error) { return nil, work(ctx) })
	return err
}

// SteadyValues is [Steady] of works that each return a value, and [AllgatherValues] of the values, in one exchange.
func SteadyValues[T any](ctx context.Context, t transport.Transport, timeout time.Duration, work func(context.Context) (T, error)) ([]T, error) {
	texts, err := New(t, timeout).steady(ctx, true, func(ctx context.Context) ([]byte, error) {
		mine, err := work(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(mine)
	})
	if err != nil {
		return nil, err
	}
	return values[T](texts)
}

// steady does what Steady does. It returns the texts that all works have returned, if these are wanted.
func (c *Comm) steady(ctx context.Context, wanted bool, work func(context.Context) ([]byte, error)) (texts [][]byte, err error) {
	if c.t.Size() == 1 {
		text, err := work(ctx)
		return [][]byte{text}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		text []byte
		err  error
	}
	results := make(chan result, 1)
	go func() {
		text, err := work(ctx)
		results <- result{text, err}
	}()
	ticks := time.NewTicker(c.beat())
	defer ticks.Stop()
	const working, succeeded, failed = 0, 1, 2
	state := byte(working)
	var outcome result // of the work here
	ended := func(r result) {
		outcome, state = r, succeeded
		if r.err != nil {
			state = failed
		}
		if r.err != nil && ctx.Err() != nil { // which is why
			outcome.err = context.Cause(ctx)
		}
	}
	aborting := false // a rank has said that it has failed
	for {
		switch {
		case state != working:
		case aborting:
			select {
			case r := <-results:
				ended(r)
			default:
			}
		default:
			select {
			case r := <-results:
				ended(r)
			case <-ticks.C:
			case <-ctx.Done(): // the exchange says so to all
			}
		}
		say := []byte{state}
		if wanted {
			say = append(say, headOf(outcome.text)...)
		}
		states, err := c.Allgather(ctx, say)
		switch {
		case outcome.err != nil: // only now, when others have had the time to find the same
			c.t.Abort(outcome.err)
			return nil, outcome.err
		case err != nil:
			cancel(err)
			if state == working {
				<-results
			}
			return nil, err
		case !slices.ContainsFunc(states, func(report []byte) bool { return report[0] != succeeded }):
			if !wanted {
				return nil, nil
			}
			for r, report := range states {
				states[r] = report[1:]
			}
			return c.rest(ctx, states, outcome.text)
		}
		aborting = slices.ContainsFunc(states, func(report []byte) bool { return report[0] == failed })
	}
}

// radix is how many times more ranks each round reaches. More would save rounds, and cost hosts more among many ranks.
const radix = 8

// evenRadix returns the least radix with which k ranks take no more rounds, as 4 for 16 ranks: fewer messages.
func evenRadix(k int) int {
	rounds := func(radix int) (n int) {
		for reach := 1; reach < k; reach *= radix {
			n++
		}
		return n
	}
	least := 2
	for rounds(least) > rounds(radix) {
		least++
	}
	return least
}

// radix returns the radix of the rounds: beside greetings, whose messages stay the same, an even one.
func (c *Comm) radix() int {
	if c.first > 0 {
		return evenRadix(c.t.Size())
	}
	return radix
}

// mostRounds is how many rounds a collective has at most, of 8^8 ranks.
const mostRounds = transport.ControlRounds / 2

// An exchange is called with nil, and then with each of its transfers that is over, and the error of it. It returns transfers to
// be posted next. An error ends it.
type exchange func(finished *transport.Transfer, err error) ([]*transport.Transfer, error)

// rounds lets this rank hear from all others, directly or through others, and all others from it (Bruck et al., 1997).
// In every round it sends to the ranks span, 2·span, … below its own what it has heard from the span ranks that begin
// with itself, and receives the same from those above. message returns what goes to the rank that is distance below,
// and how many bytes come from the one as far above, which take is given.
func (c *Comm) rounds(message func(span, distance int) (send []byte, receive int), take func(distance int, data []byte) error) exchange {
	k, rank := c.t.Size(), c.t.Rank()
	number, span, remaining, radix := c.first, 1, 0, c.radix()
	return func(finished *transport.Transfer, err error) (receives []*transport.Transfer, _ error) {
		if finished != nil {
			if err == nil && finished.Receive {
				err = take(finished.ID, finished.Parts[0])
			}
			if remaining--; err != nil || remaining > 0 {
				return nil, err
			}
		}
		if span >= k {
			return nil, nil
		}
		var sends []*transport.Transfer
		for distance := span; distance < min(k, radix*span); distance += span {
			tag := transport.Tag{Round: number, Port: distance/span - 1}
			data, length := message(span, distance)
			receives = append(receives, &transport.Transfer{Rank: (rank + distance) % k, Tag: tag, Parts: [][]byte{make([]byte, length)}, Receive: true, ID: distance})
			sends = append(sends, &transport.Transfer{Rank: (rank + k - distance) % k, Tag: tag, Parts: [][]byte{data}})
			c.Bytes += int64(len(data))
		}
		number, span, remaining = number+1, min(k, radix*span), 2*len(sends)
		c.Rounds++
		return append(receives, sends...), nil
	}
}

// run runs a collective by itself. What a message says counts before the error of a send, whose receiver may have gone.
func (c *Comm) run(ctx context.Context, b exchange) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := transport.Watchdog{Transport: c.t, Timeout: c.timeout, Cancel: cancel}
	q := c.t.NewQueue()
	var t *transport.Transfer
	var unfinished []*transport.Transfer
	var unsent error
	transfers, err := b(nil, nil)
	for {
		if err != nil {
			return transport.Fail(c.t, err)
		}
		q.Post(transfers...)
		unfinished = append(unfinished, transfers...)
		if len(unfinished) == 0 || unsent != nil && !unfinished[0].Receive {
			break
		}
		watchdog.Start(unfinished[0].Rank)
		transport.Gather(q, receives(unfinished))
		t, err = q.Wait(ctx)
		err = watchdog.Stop(err)
		t = cmp.Or(t, unfinished[0])
		unfinished = slices.DeleteFunc(unfinished, func(x *transport.Transfer) bool { return x == t })
		if err != nil {
			err = fmt.Errorf("rank %d: %v: %w", c.t.Rank(), t, err)
		}
		if transfers = nil; err != nil && !t.Receive {
			unsent, err = cmp.Or(unsent, err), nil
			continue
		}
		transfers, err = b(t, err)
	}
	if unsent != nil {
		return transport.Fail(c.t, unsent)
	}
	return nil
}

// receives counts those of transfers.
func receives(transfers []*transport.Transfer) (n int) {
	for _, t := range transfers {
		if t.Receive {
			n++
		}
	}
	return n
}

// Allgather returns the texts of all ranks, which are equally long.
func (c *Comm) Allgather(ctx context.Context, text []byte) ([][]byte, error) {
	k, n := c.t.Size(), len(text)
	heard := append(make([]byte, 0, k*n), text...)[:k*n] // from this rank on
	err := c.run(ctx, c.rounds(func(span, distance int) ([]byte, int) {
		data := heard[:min(span, k-distance)*n]
		return data, len(data)
	}, func(distance int, data []byte) error {
		copy(heard[distance*n:], data)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	texts := make([][]byte, k)
	for i := range texts {
		texts[(c.t.Rank()+i)%k] = heard[i*n:][:n:n]
	}
	return texts, nil
}

// Sum returns the sum of the vectors of all ranks, which are equally long. add adds a vector to a sum; in which order
// does not matter. It takes as many messages as [Comm.Allgather], of two vectors and a digest each: so all ranks that
// return a sum return the same.
func (c *Comm) Sum(ctx context.Context, vector []byte, add func(sum, addend []byte)) ([]byte, error) {
	k, n := c.t.Size(), len(vector)
	var sent []byte // the sums of the span ranks from this one on, and of the k mod span ranks
	sums, span, reach := append(slices.Clone(vector), make([]byte, n)...), 1, 1
	err := c.run(ctx, c.rounds(func(roundSpan, distance int) ([]byte, int) {
		if distance == roundSpan { // the round begins
			sum := digest(sums)
			sent, span, reach = slices.Concat(sums, sum[:]), roundSpan, min(k, roundSpan*c.radix())
			if k%reach >= span {
				copy(sums[n:], sent[:n])
			}
		}
		return sent, len(sent)
	}, func(distance int, data []byte) error {
		spans, rest := data[:n], data[n:2*n]
		if sum := digest(data[:2*n]); !bytes.Equal(sum[:], data[2*n:]) {
			return fmt.Errorf("volley: the sum of rank %d arrived damaged", (c.t.Rank()+distance)%k)
		}
		if distance+span > reach {
			spans = rest // of the last ranks
		}
		add(sums[:n], spans)
		if remaining := k%reach - distance; remaining >= span {
			add(sums[n:], data[:n])
		} else if remaining >= 0 {
			add(sums[n:], rest)
		}
		return nil
	}))
	return sums[:n], err
}

// Exchange sends and receives a message for each other rank that is named, once, as that one does for this rank. It returns
// when all have come and gone. They are the caller's data, and count for nothing.
func (c *Comm) Exchange(ctx context.Context, transfers []*transport.Transfer) error {
	for _, t := range transfers {
		t.Tag = transport.Tag{Round: c.first}
	}
	return c.run(ctx, func(finished *transport.Transfer, err error) ([]*transport.Transfer, error) {
		if finished == nil {
			return transfers, nil
		}
		return nil, err
	})
}

// Barrier returns when all ranks have come to it.
func (c *Comm) Barrier(ctx context.Context) error {
	return c.run(ctx, c.rounds(func(_, _ int) ([]byte, int) { return nil, 0 }, func(int, []byte) error { return nil }))
}

// Barrier returns when all ranks have come to it. A wait for one message is bounded by the timeout, unless that is 0.
func Barrier(ctx context.Context, t transport.Transport, timeout time.Duration) error {
	return New(t, timeout).Barrier(ctx)
}

// SharedError returns err, which all ranks find alike, once all have come to it, so that each returns its own.
func (c *Comm) SharedError(ctx context.Context, err error) error {
	c.Barrier(ctx)
	return err
}
