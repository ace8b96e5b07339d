package tcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Contribution is what a rank tells all others through rank 0.
type Contribution struct {
	Protocol int
	Name     string // of the gathering
	Rank     int
	Size     int // of the run
	Data     []byte
}

// A caller is a rank that has come to rank 0. Its context ends with it.
type caller struct {
	context.Context
	address string
}

// A gathering is one at rank 0.
type gathering struct {
	callers  []*caller // nil: it has not come
	texts    [][]byte
	complete bool
	err      error
}

// answered is what rank 0 answers. Texts of ranks that have not come are null.
type answered struct {
	Texts [][]byte `json:"Records"`
	Error string
	Input bool // the error is an InputError
}

// An InputError says what is wrong with a run, such as ranks that contradict each other; it is the caller's to mend.
type InputError struct{ error }

func (e *InputError) Unwrap() error { return e.error }

// ExitCode is that for bad input.
func (*InputError) ExitCode() int { return 2 }

// Inputf is fmt.Errorf for an [InputError].
func Inputf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Gather returns the data of all ranks, which call it with the same name and size, once in a run, for one gathering
// after the other. They meet at the listener of rank 0, which is at the address, and stay connected with it. Where some
// do not come within the time (0: any), or ranks contradict each other, all return an error that says which, with what
// the others have said. After the first gathering nobody waits for a rank that has ended. There are no texts where
// that is rank 0.
func (l *Listener) Gather(ctx context.Context, address string, mine Contribution, limit time.Duration) ([][]byte, error) {
	mine.Protocol = Protocol
	if mine.Rank == 0 {
		return l.lead(ctx, mine, limit)
	}
	if limit > 0 {
		limit += l.limits.Answer
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
		defer cancel()
	}
	text, err := json.Marshal(mine)
	if err == nil {
		text, err = l.ask(ctx, address, text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot meet rank 0 at %s: %w", address, err)
	}
	var reply answered
	if err := json.Unmarshal(text, &reply); err != nil || len(reply.Texts) != mine.Size && reply.Error == "" {
		return nil, fmt.Errorf("rank 0 at %s answers what is no table of %d ranks", address, mine.Size)
	}
	switch {
	case reply.Input:
		return reply.Texts, Inputf("%s", reply.Error)
	case reply.Error != "":
		return reply.Texts, errors.New(reply.Error)
	}
	return reply.Texts, nil
}

// ask returns what rank 0 answers to a contribution. It connects the first time; a context that ends breaks the
// connection.
func (l *Listener) ask(ctx context.Context, address string, text []byte) (answer []byte, err error) {
	defer context.AfterFunc(ctx, func() { l.leave(context.Cause(ctx)) })()
	if l.first == nil {
		if l.first, err = l.dial(l.meets, address, frame{kind: meetFrame}, false); err != nil {
			return nil, err
		}
		context.AfterFunc(l.meets, func() { l.first.Close() })
	}
	if err = l.first.send(frame{kind: textFrame, text: text}); err == nil {
		answer, err = l.first.text(tableFrame)
	}
	if err != nil {
		return nil, cmp.Or(context.Cause(l.meets), plain(err))
	}
	return answer, nil
}

// update changes what ranks have said, and wakes those who wait for that.
func (l *Listener) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until a condition holds of what ranks have said.
func (l *Listener) await(ctx context.Context, holds func() bool) error {
	for {
		err := context.Cause(ctx) // what holds by then counts
		l.mu.Lock()
		satisfied, changed := holds(), l.changed
		l.mu.Unlock()
		switch {
		case satisfied:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// lead is Gather at rank 0.
func (l *Listener) lead(ctx context.Context, mine Contribution, limit time.Duration) ([][]byte, error) {
	g := &gathering{callers: make([]*caller, mine.Size), texts: make([][]byte, mine.Size)}
	if limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	l.update(func() {
		l.gathered[mine.Name] = g
		l.add(g, &caller{context.Background(), "rank 0"}, mine)
	})
	err := l.await(ctx, func() bool { return g.complete || l.absent(g) == nil })
	l.update(func() {
		absent := l.absent(g)
		switch {
		case g.complete:
		case absent == nil && l.met == nil:
			l.met = g.callers
		case absent == nil:
		case errors.Is(err, context.DeadlineExceeded):
			g.err = fmt.Errorf("of %d ranks these have not come to rank 0 within %v: %s", mine.Size, limit, strings.Join(absent, ", "))
		default:
			g.err = err
		}
		g.complete = true
	})
	return g.texts, g.err
}

// absent returns the ranks that have not come, and have not ended since the ranks met.
func (l *Listener) absent(g *gathering) (ranks []string) {
	for r, c := range g.callers {
		if c == nil && (l.met == nil || l.met[r].Err() == nil) {
			ranks = append(ranks, fmt.Sprint(r))
		}
	}
	return ranks
}

// meet answers the contributions of a rank, one after the other, until the rank ends or this listener closes.
func (l *Listener) meet(c *conn) error {
	ctx, cancel := context.WithCancel(l.meets)
	defer l.update(cancel)
	texts := make(chan []byte)
	l.serving.Go(func() {
		defer cancel()
		for ctx.Err() == nil {
			text, err := c.text(textFrame)
			if err != nil {
				return // the rank has ended
			}
			select {
			case texts <- text:
			case <-ctx.Done():
			}
		}
	})
	rank := &caller{ctx, c.RemoteAddr().String()}
	for {
		select {
		case text := <-texts:
			answer, err := l.answer(rank, text)
			if err == nil {
				err = c.send(frame{kind: tableFrame, text: answer})
			}
			if err != nil {
				c.Close()
				return err
			}
		case <-ctx.Done():
			c.Close()
			return nil
		}
	}
}

// answer is Gather for a rank that calls.
func (l *Listener) answer(rank *caller, text []byte) ([]byte, error) {
	var r Contribution
	if err := json.Unmarshal(text, &r); err != nil || r.Rank <= 0 {
		return nil, errors.New("it sends no contribution of a rank")
	}
	var g *gathering
	err := l.await(rank, func() bool { g = l.gathered[r.Name]; return g != nil })
	if err != nil {
		return nil, err
	}
	l.update(func() { l.add(g, rank, r) })
	if err := l.await(rank, func() bool { return g.complete }); err != nil {
		return nil, err
	}
	reply := answered{Texts: g.texts}
	if g.err != nil {
		reply.Error, reply.Input = g.err.Error(), errors.As(g.err, new(*InputError))
	}
	return json.Marshal(reply)
}

// add takes a contribution. A contradiction ends the gathering for all.
func (l *Listener) add(g *gathering, rank *caller, r Contribution) {
	size := len(g.callers)
	switch {
	case g.complete:
	case r.Protocol != Protocol:
		g.err = Inputf("rank %d, at %s, speaks protocol %d and rank 0 protocol %d: run the same version of Volley everywhere", r.Rank, rank.address, r.Protocol, Protocol)
	case r.Size != size || r.Rank >= size:
		g.err = Inputf("%s says that it is rank %d of %d, and rank 0 that there are %d", rank.address, r.Rank, r.Size, size)
	case g.callers[r.Rank] != nil && g.callers[r.Rank].Err() == nil:
		g.err = Inputf("two processes are rank %d: at %s and at %s", r.Rank, g.callers[r.Rank].address, rank.address)
	default:
		g.callers[r.Rank], g.texts[r.Rank] = rank, r.Data
	}
	g.complete = g.complete || g.err != nil
}
