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

const (
	gatherMethod = "Gather"
	mostAnswer   = 64 << 20 // bytes of what rank 0 answers
)

// A Record is what a rank tells all others through rank 0.
type Record struct {
	Protocol int
	Name     string // of the gathering
	Rank     int
	Size     int // of the run
	Data     []byte
}

// A gathering is one at rank 0. Its listener's lock guards it until it is over.
type gathering struct {
	calls   []context.Context // of the ranks that have come
	records [][]byte
	over    chan struct{} // closed when all have come, or err says why not
	err     error
}

// answered is what rank 0 answers. Records of ranks that have not come are null.
type answered struct {
	Records [][]byte
	Error   string
	Input   bool // the error is an InputError
}

// An InputError says how ranks of a run contradict each other.
type InputError struct{ error }

// ExitCode is that for bad input.
func (*InputError) ExitCode() int { return 2 }

func inputf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Gather returns the data of all ranks, which call it with the same name and size, once in a run. They
// meet at the listener of rank 0, which is at the address. Where some do not come within the time (0: any), or ranks
// contradict each other, all return an error that says which, with what the others have said.
func (l *Listener) Gather(ctx context.Context, address string, mine Record, limit time.Duration) ([][]byte, error) {
	mine.Protocol = Protocol
	if mine.Rank == 0 {
		return l.lead(ctx, mine, limit)
	}
	if limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, limit+5*time.Second) // rank 0 says who is missing
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := l.client(address, cancel)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	var answer []byte
	if err := conn.Invoke(ctx, "/"+service+"/"+gatherMethod, &text, &answer, rpc.WaitForReady(true), rpc.MaxCallRecvMsgSize(mostAnswer)); err != nil {
		return nil, fmt.Errorf("rank %d cannot meet rank 0 at %s: %w", mine.Rank, address, reason(ctx, err))
	}
	var said answered
	if err := json.Unmarshal(answer, &said); err != nil || len(said.Records) != mine.Size && said.Error == "" {
		return nil, fmt.Errorf("rank 0 at %s answers what is no table of %d ranks", address, mine.Size)
	}
	switch {
	case said.Input:
		return said.Records, &InputError{errors.New(said.Error)}
	case said.Error != "":
		return said.Records, errors.New(said.Error)
	}
	return said.Records, nil
}

// lead is Gather at rank 0.
func (l *Listener) lead(ctx context.Context, mine Record, limit time.Duration) ([][]byte, error) {
	g := &gathering{calls: make([]context.Context, mine.Size), records: make([][]byte, mine.Size), over: make(chan struct{})}
	l.mu.Lock()
	l.gathered[mine.Name] = g
	close(l.begun)
	l.begun = make(chan struct{})
	l.add(g, ctx, mine)
	l.mu.Unlock()
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	select {
	case <-g.over:
		return g.records, g.err
	case <-late:
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
	return g.records, g.err
}

// gather is Gather for the ranks that call.
func (l *Listener) gather(_ any, ctx context.Context, decode func(any) error, _ rpc.UnaryServerInterceptor) (any, error) {
	var text []byte
	if err := decode(&text); err != nil {
		return nil, err
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil || r.Rank <= 0 {
		l.refused(caller(ctx), errors.New("it sends no record of a rank"))
		return nil, status.Error(codes.InvalidArgument, "no record of a rank")
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
	said := answered{Records: g.records}
	if g.err != nil {
		said.Error, said.Input = g.err.Error(), errors.As(g.err, new(*InputError))
	}
	text, err := json.Marshal(said)
	return &text, err
}

// add notes the record of a rank. A contradiction ends the gathering for all.
func (l *Listener) add(g *gathering, call context.Context, r Record) {
	size := len(g.calls)
	switch {
	case g.ended():
	case r.Protocol != Protocol:
		g.end(inputf("rank %d, at %s, speaks protocol %d and rank 0 protocol %d: run the same version of Volley everywhere", r.Rank, caller(call), r.Protocol, Protocol))
	case r.Size != size || r.Rank >= size:
		g.end(inputf("%s says that it is rank %d of %d, and rank 0 that there are %d", caller(call), r.Rank, r.Size, size))
	case g.calls[r.Rank] != nil && g.calls[r.Rank].Err() == nil:
		g.end(inputf("two processes are rank %d: at %s and at %s", r.Rank, caller(g.calls[r.Rank]), caller(call)))
	default:
		g.calls[r.Rank], g.records[r.Rank] = call, r.Data
		for _, c := range g.calls {
			if c == nil {
				return
			}
		}
		g.end(nil)
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
