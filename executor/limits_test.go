package executor_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"volley/executor"
	"volley/transport"
)

// A narrow transport has few tags, and counts what is posted.
type narrow struct {
	transport.Transport
	rounds int
	posts  *atomic.Int64
}

func (n narrow) Limits() transport.Limits {
	return transport.Limits{{Rounds: transport.ControlRounds + n.rounds, Ports: 1}}
}

func (n narrow) NewQueue() transport.Queue { return narrowQueue{n.Transport.NewQueue(), n.posts} }

type narrowQueue struct {
	transport.Queue
	posts *atomic.Int64
}

func (q narrowQueue) Post(list ...*transport.Transfer) {
	q.posts.Add(int64(len(list)))
	q.Queue.Post(list...)
}

// TestLimits refuses a plan of three rounds where the transport has tags of fewer, or in two pipelines of fewer than
// six.
func TestLimits(t *testing.T) {
	for _, x := range []struct {
		ahead  bool
		rounds int
		fits   bool
	}{{false, 2, false}, {false, 3, true}, {true, 5, false}, {true, 6, true}} {
		var posts atomic.Int64
		r := newRun(t)
		r.job = func(_ int, job *executor.Job) { job.Ahead = x.ahead }
		r.wrap = func(below transport.Transport) transport.Transport { return narrow{below, x.rounds, &posts} }
		r.do(t.Context())
		for proc, err := range r.errs {
			if refused := errors.As(err, new(*transport.LimitsError)); refused == x.fits || x.fits && err != nil {
				t.Errorf("two pipelines %v, %d rounds: processor %d: %v", x.ahead, x.rounds, proc, err)
			}
		}
		if posted := posts.Load() > 0; posted != x.fits {
			t.Errorf("two pipelines %v, %d rounds: %d messages were posted", x.ahead, x.rounds, posts.Load())
		}
	}
}
