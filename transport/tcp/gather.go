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

// A gathering is one at rank 0. Its listener's lock guards it until it is over.
type gathering struct {
	calls []*caller // of the ranks that have come
	texts [][]byte
	over  chan struct{} // closed when all have come, or err says why not
	err   error
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
func (l *Listener) Gather(
	ctx context.Context, address string, mine Contribution, limit time.Duration,
) ([][]byte, error) {
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
	if err != nil {
		return nil, err
	}
	answer, err := l.ask(ctx, address, text)
	if err != nil {
		return nil, fmt.Errorf("cannot meet rank 0 at %s: %w", address, err)
	}
	var said answered
	if err := json.Unmarshal(answer, &said); err != nil || len(said.Texts) != mine.Size && said.Error == "" {
		return nil, fmt.Errorf("rank 0 at %s answers what is no table of %d ranks", address, mine.Size)
	}
	switch {
	case said.Input:
		return said.Texts, Inputf("%s", said.Error)
	case said.Error != "":
		return said.Texts, errors.New(said.Error)
	}
	return said.Texts, nil
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

// lead is Gather at rank 0.
func (l *Listener) lead(ctx context.Context, mine Contribution, limit time.Duration) ([][]byte, error) {
	g := &gathering{calls: make([]*caller, mine.Size), texts: make([][]byte, mine.Size), over: make(chan struct{})}
	l.mu.Lock()
	l.gathered[mine.Name] = g
	close(l.begun)
	l.begun = make(chan struct{})
	l.add(g, &caller{context.Background(), "rank 0"}, mine)
	l.mu.Unlock()
	var timeout <-chan time.Time
	if limit > 0 {
		timeout = time.After(limit)
	}
	select {
	case <-g.over:
		return g.texts, g.err
	case <-timeout:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var absent []string
	for r, call := range g.calls {
		if call == nil {
			absent = append(absent, fmt.Sprint(r))
		}
	}
	if ctx.Err() != nil {
		g.end(context.Cause(ctx))
	} else {
		g.end(fmt.Errorf("of %d ranks these have not come to rank 0 within %v: %s", mine.Size, limit, strings.Join(absent, ", ")))
	}
	return g.texts, g.err
}

// meet answers the contributions of a rank, one after the other, until the rank ends or this listener closes.
func (l *Listener) meet(c *conn) error {
	ctx, cancel := context.WithCancel(context.Background())
	texts := make(chan []byte)
	l.serving.Go(func() {
		defer cancel() // the rank has ended
		for {
			text, err := c.text(textFrame)
			if err != nil {
				return
			}
			select {
			case texts <- text:
			case <-l.meets.Done():
				return
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
				return err
			}
		case <-ctx.Done():
			return nil
		case <-l.meets.Done():
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
	for g == nil {
		l.mu.Lock()
		over := l.begun
		if g = l.gathered[r.Name]; g != nil {
			l.add(g, rank, r)
			over = g.over
		}
		l.mu.Unlock()
		select {
		case <-over:
		case <-rank.Done():
			return nil, context.Cause(rank)
		case <-l.meets.Done():
			return nil, context.Cause(l.meets)
		}
	}
	said := answered{Texts: g.texts}
	if g.err != nil {
		said.Error, said.Input = g.err.Error(), errors.As(g.err, new(*InputError))
	}
	return json.Marshal(said)
}

// A contradiction ends the gathering for all.
func (l *Listener) add(g *gathering, call *caller, r Contribution) {
	size := len(g.calls)
	switch {
	case g.ended():
	case r.Protocol != Protocol:
		g.end(Inputf("rank %d, at %s, speaks protocol %d and rank 0 protocol %d: run the same version of Volley everywhere", r.Rank, call.address, r.Protocol, Protocol))
	case r.Size != size || r.Rank >= size:
		g.end(Inputf("%s says that it is rank %d of %d, and rank 0 that there are %d", call.address, r.Rank, r.Size, size))
	case g.calls[r.Rank] != nil && g.calls[r.Rank].Err() == nil:
		g.end(Inputf("two processes are rank %d: at %s and at %s", r.Rank, g.calls[r.Rank].address, call.address))
	default:
		g.calls[r.Rank], g.texts[r.Rank] = call, r.Data
		l.complete(g)
	}
}

// complete ends a gathering if all ranks have come, or have ended since they met.
func (l *Listener) complete(g *gathering) {
	for r, call := range g.calls {
		if call == nil && (l.met == nil || l.met[r].Err() == nil) {
			return
		}
	}
	if l.met == nil {
		l.met = g.calls
		for _, call := range l.met {
			context.AfterFunc(call, l.ended)
		}
	}
	g.end(nil)
}

// ended looks what is complete now that a rank has ended.
func (l *Listener) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.gathered {
		if !g.ended() {
			l.complete(g)
		}
	}
}

func (g *gathering) ended() bool {
	select {
	case <-g.over:
		return true
	default:
		return false
	}
}

func (g *gathering) end(err error) {
	if !g.ended() {
		g.err = err
		g.calls = nil // who comes late needs nothing of them
		close(g.over)
	}
}
