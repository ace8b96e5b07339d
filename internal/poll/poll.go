// Package poll ends long computations when their context has ended. Loops count their steps with a [Poller], which asks
// the context now and then. Once the context has ended, the poller unwinds the computation by a panic. [Catch] at its
// entry turns the panic into an error, so that nothing between the two has to pass errors on.
//
// A step is an operation, a coefficient or an element of a message that is added or examined. What keeps results for
// others has to expect the panic: it keeps nothing then. [Once] does.
package poll

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// stepsPerPoll is how many steps lie between two polls. A step may examine a coefficient that takes a thousand operations
// itself, and a poll takes a few nanoseconds.
const stepsPerPoll = 64

// A Poller counts the steps of one goroutine. A nil Poller counts nothing and never ends.
type Poller struct {
	ctx       context.Context
	remaining int // steps until the next poll
}

// New returns the poller of a context, nil for nil. It polls at its first step.
func New(ctx context.Context) *Poller {
	if ctx == nil {
		return nil
	}
	return &Poller{ctx: ctx}
}

// Context returns the context, nil of a nil Poller.
func (p *Poller) Context() context.Context {
	if p == nil {
		return nil
	}
	return p.ctx
}

// Steps counts n steps that follow. It does not return where the context has been found to have ended.
func (p *Poller) Steps(n int) {
	if p == nil {
		return
	}
	if p.remaining -= n; p.remaining < 0 {
		p.poll()
	}
}

func (p *Poller) poll() {
	p.remaining = stepsPerPoll
	if p.ctx.Err() != nil {
		panic(ended{context.Cause(p.ctx)})
	}
}

// ended is what a poller panics with.
type ended struct{ cause error }

// Must unwinds the computation with an error, unless it is nil.
func Must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// Catch is deferred where a computation begins. It sets err to the cause of a context that has ended the computation.
func Catch(err *error) {
	switch x := recover().(type) {
	case nil:
	case ended:
		*err = x.cause
	default:
		panic(x)
	}
}

// WithContext returns a plan, or whatever else has a method WithContext, bound to a context. The methods of the result poll the
// context: those that return an error return its cause, and the others unwind to a [Catch]. What has no such method, or
// is bound to no context, is returned as it is.
func WithContext[P any](ctx context.Context, bound P) P {
	if u, ok := any(bound).(interface{ WithContext(context.Context) P }); ok && ctx != nil {
		return u.WithContext(ctx)
	}
	return bound
}

// A Once keeps a value that is made when it is first asked for. Unlike with [sync.Once], who finds the making ended by
// its context leaves nothing behind: the next who asks makes the value.
type Once[T any] struct {
	complete atomic.Bool
	mu       sync.Mutex // held by the one that makes the value
	value    T
}

// Get returns the value, which make makes where there is none.
func (o *Once[T]) Get(make func() T) T {
	if !o.complete.Load() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !o.complete.Load() {
			o.value = make()
			o.complete.Store(true)
		}
	}
	return o.value
}

// Lend returns a context that is ctx until it is taken back, and then one without end or values. Who keeps it keeps
// nothing of ctx.
func Lend(ctx context.Context) (lent context.Context, takeBack func()) {
	l := &loan{}
	l.current.Store(&ctx)
	l.Context = context.Background()
	return l, func() { l.current.Store(&l.Context) }
}

type loan struct {
	context.Context // of which it has the deadline
	current         atomic.Pointer[context.Context]
}

func (l *loan) Err() error            { return (*l.current.Load()).Err() }
func (l *loan) Done() <-chan struct{} { return (*l.current.Load()).Done() }
func (l *loan) Value(key any) any     { return (*l.current.Load()).Value(key) }

// A Writer writes until its context ends: the error is then the cause.
type Writer struct {
	Context context.Context
	io.Writer
}

func (w Writer) Write(p []byte) (int, error) {
	if w.Context.Err() != nil {
		return 0, context.Cause(w.Context)
	}
	return w.Writer.Write(p)
}
