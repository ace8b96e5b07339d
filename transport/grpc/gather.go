package grpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	rpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// mostAnswer bounds what rank 0 answers, in bytes.
const mostAnswer = 64 << 20

var meeting = rpc.StreamDesc{StreamName: "Meet", ServerStreams: true, ClientStreams: true}

// A Contribution is what a rank tells all others through rank 0.
type Contribution struct {
	Protocol int
	Name     string // of the gathering
	Rank     int
	Size     int // of the run
	Data     []byte
}

// A gathering is one at rank 0. Its listener's lock guards it until it is over.
type gathering struct {
	calls []context.Context // of the ranks that have come: each ends with its rank
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
		return nil, fmt.Errorf("cannot meet rank 0 at %s: %w", address, reason(l.meets, err))
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
	if l.stream == nil {
		conn, err := l.client(address, l.leave, false)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(l.meets, func() { conn.Close() })
		if l.stream, err = conn.NewStream(l.meets, &meeting, "/"+service+"/"+meeting.StreamName, rpc.WaitForReady(true), rpc.MaxCallRecvMsgSize(mostAnswer)); err != nil {
			return nil, err
		}
	}
	l.stream.SendMsg(&text) // who receives hears what is wrong
	err = l.stream.RecvMsg(&answer)
	return answer, err
}

// lead is Gather at rank 0.
func (l *Listener) lead(ctx context.Context, mine Contribution, limit time.Duration) ([][]byte, error) {
	g := &gathering{calls: make([]context.Context, mine.Size), texts: make([][]byte, mine.Size), over: make(chan struct{})}
	l.mu.Lock()
	l.gathered[mine.Name] = g
	close(l.begun)
	l.begun = make(chan struct{})
	l.add(g, context.Background(), mine)
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
func (l *Listener) meet(_ any, s rpc.ServerStream) error {
	for {
		var text []byte
		heard := make(chan error, 1)
		go func() { heard <- s.RecvMsg(&text) }()
		select {
		case err := <-heard:
			if err != nil {
				return nil // the rank has ended
			}
		case <-l.meets.Done():
			return nil
		}
		answer, err := l.answer(s.Context(), text)
		if err != nil {
			return err
		}
		if err := s.SendMsg(&answer); err != nil {
			return err
		}
	}
}

// answer is Gather for a rank that calls.
func (l *Listener) answer(ctx context.Context, text []byte) ([]byte, error) {
	var r Contribution
	if err := json.Unmarshal(text, &r); err != nil || r.Rank <= 0 {
		l.refused(caller(ctx), errors.New("it sends no contribution of a rank"))
		return nil, status.Error(codes.InvalidArgument, "no contribution of a rank")
	}
	var g *gathering
	for g == nil {
		l.mu.Lock()
		begun := l.begun
		if g = l.gathered[r.Name]; g != nil {
			l.add(g, ctx, r)
		}
		l.mu.Unlock()
		over := begun
		if g != nil {
			over = g.over
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	said := answered{Texts: g.texts}
	if g.err != nil {
		said.Error, said.Input = g.err.Error(), errors.As(g.err, new(*InputError))
	}
	return json.Marshal(said)
}

// A contradiction ends the gathering for all.
func (l *Listener) add(g *gathering, call context.Context, r Contribution) {
	size := len(g.calls)
	switch {
	case g.ended():
	case r.Protocol != Protocol:
		g.end(Inputf("rank %d, at %s, speaks protocol %d and rank 0 protocol %d: run the same version of Volley everywhere", r.Rank, caller(call), r.Protocol, Protocol))
	case r.Size != size || r.Rank >= size:
		g.end(Inputf("%s says that it is rank %d of %d, and rank 0 that there are %d", caller(call), r.Rank, r.Size, size))
	case g.calls[r.Rank] != nil && g.calls[r.Rank].Err() == nil:
		g.end(Inputf("two processes are rank %d: at %s and at %s", r.Rank, caller(g.calls[r.Rank]), caller(call)))
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

// caller returns the address of who calls.
func caller(ctx context.Context) string {
	if p, ok := grpcpeer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return "rank 0"
}
