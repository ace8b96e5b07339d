package executor_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"volley/executor"
	"volley/field/fieldtest"
	"volley/internal/faulty"
	"volley/transport"
)

// checkAborted checks that every processor failed with the cause, one or more of
// them by itself and the others by an abort, and that each says text, once.
func checkAborted(t testing.TB, errs []error, cause error, text string) {
	t.Helper()
	own := 0
	for proc, err := range errs {
		if !errors.Is(err, cause) {
			t.Errorf("processor %d: got error %v, want one that wraps %v", proc, err, cause)
			continue
		}
		if n := strings.Count(err.Error(), text); n != 1 {
			t.Errorf("processor %d: the error %q says %q %d times", proc, err, text, n)
		}
		if !errors.As(err, new(*transport.AbortError)) {
			own++
		}
	}
	if own == 0 {
		t.Error("nobody failed by itself")
	}
}

// failing is a packet that cannot be read or written from some offset on.
type failing struct {
	below interface {
		io.ReaderAt
		io.WriterAt
	}
	from int64
	err  error
}

func (f failing) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= f.from {
		return 0, f.err
	}
	return f.below.ReadAt(p, offset)
}

func (f failing) WriteAt(p []byte, offset int64) (int, error) {
	if offset >= f.from {
		return 0, f.err
	}
	return f.below.WriteAt(p, offset)
}

// endless is a packet of zeros, and a place for any.
type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error)  { clear(p); return len(p), nil }
func (endless) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func zeros() []executor.Input    { return []executor.Input{{Reader: endless{}}} }
func discard() []executor.Output { return []executor.Output{{Writer: endless{}}} }

// newRun returns a run of many segments at 8 processors.
func newRun(t testing.TB) *run {
	f := fieldtest.Parse(t, "2^8")
	return &run{
		plan: compile(t, "universal", randomMatrix(t, f, 8), 1), packets: randomPackets(f, 1, equal(8, 100)...),
		bytes: 100, segment: 10,
	}
}

func TestReadAndWriteErrors(t *testing.T) {
	broken := errors.New("broken disk")
	for _, c := range []struct {
		text string
		wear func(*executor.Job, failing)
	}{
		{"read input 0: broken disk", func(j *executor.Job, f failing) { j.Inputs[0].Reader = f }},
		{"write output 0: broken disk", func(j *executor.Job, f failing) { j.Outputs[0].Writer = f }},
	} {
		for _, from := range []int64{0, 50, 90} {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				r.job = func(proc int, job *executor.Job) {
					if proc == 5 {
						c.wear(job, failing{endless{}, from, broken})
					}
				}
				r.do(t.Context())
				if from == 90 && strings.HasPrefix(c.text, "write") { // others have their last messages by then
					r.errs = slices.DeleteFunc(r.errs, func(err error) bool { return err == nil })
					checkAborted(t, r.errs, broken, c.text)
					return
				}
				checkAborted(t, r.errs, broken, c.text)
				if err := r.errs[5]; err == nil || err.Error() != "processor 5: "+c.text {
					t.Errorf("processor 5: got error %v", err)
				}
				for proc, err := range r.errs {
					if aborted := new(transport.AbortError); proc != 5 && (!errors.As(err, &aborted) || aborted.Rank != 5) {
						t.Errorf("processor %d: got error %v, want that of rank 5", proc, err)
					}
				}
			})
		}
	}
}

// TestTimeout lets a processor hang or die and looks at what the others say.
func TestTimeout(t *testing.T) {
	whom := regexp.MustCompile(`round \d: (receive from|send to) processor \d: timed out: nothing for 1m0s; rank 2 waits for nobody: it computes, reads or writes, or it hangs( \(rank \d waits for rank \d.*\))?$`)
	for name, fault := range map[string]func(round int) faulty.Fault{"hang": faulty.Hang, "die": faulty.Die} {
		for round := range 7 { // from 3 on those of the second pipeline
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				r.job = func(_ int, job *executor.Job) { job.Timeout = time.Minute }
				r.wrap = func(below transport.Transport) transport.Transport {
					if below.Rank() != 2 {
						return below
					}
					return faulty.New(below, fault(transport.ControlRounds+round))
				}
				start := time.Now()
				r.do(t.Context())
				if round == 6 { // there is none
					for proc, err := range r.errs {
						if err != nil {
							t.Errorf("processor %d: %v", proc, err)
						}
					}
					return
				}
				if took := time.Since(start); took != time.Minute {
					t.Errorf("%s in round %d: took %v", name, round, took)
				}
				for proc, err := range r.errs {
					if proc == 2 {
						if err == nil {
							t.Errorf("%s in round %d: it does not know itself", name, round)
						}
						continue
					}
					if !errors.Is(err, executor.ErrTimeout) || !whom.MatchString(err.Error()) {
						t.Errorf("%s in round %d: processor %d: %v", name, round, proc, err)
					}
				}
			})
		}
	}
}

// TestTimeoutNamesPartner has two processors, so that it is clear who waits.
func TestTimeoutNamesPartner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fieldtest.Parse(t, "257")
		r := &run{
			plan: compile(t, "exchange", randomMatrix(t, f, 2), 1), packets: randomPackets(f, 1, 5, 5),
			bytes: 10, segment: 10,
			job: func(_ int, job *executor.Job) { job.Timeout = time.Second },
			wrap: func(below transport.Transport) transport.Transport {
				if below.Rank() == 0 {
					return faulty.New(below, faulty.Hang(transport.ControlRounds+1))
				}
				return below
			},
		}
		r.do(t.Context())
		if err := r.errs[1]; err == nil || err.Error() != "processor 1: round 1: receive from processor 0: timed out: nothing for 1s; rank 0 waits for nobody: it computes, reads or writes, or it hangs" {
			t.Errorf("got error %v", err)
		}
	})
}

// overdue is a transport whose waits ignore their context and take two seconds. It notes what the first wait of each
// queue returned.
type overdue struct {
	transport.Transport
	mu    sync.Mutex
	first map[transport.Queue]*transport.Transfer
}

type overdueQueue struct {
	transport.Queue
	l *overdue
}

func (l *overdue) NewQueue() transport.Queue { return overdueQueue{l.Transport.NewQueue(), l} }

func (q overdueQueue) Wait(context.Context) (*transport.Transfer, error) {
	time.Sleep(2 * time.Second)
	t, err := q.Queue.Wait(context.Background())
	q.l.mu.Lock()
	defer q.l.mu.Unlock()
	q.l.first[q.Queue] = cmp.Or(q.l.first[q.Queue], t)
	return t, err
}

// TestLate checks that a message that comes too late is what the error names,
// not the next one waited for.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.job = func(proc int, job *executor.Job) {
			if proc == 1 {
				job.Timeout = time.Second
			}
		}
		late := &overdue{first: map[transport.Queue]*transport.Transfer{}}
		r.wrap = func(below transport.Transport) transport.Transport {
			if below.Rank() == 1 {
				late.Transport = below
				return late
			}
			return below
		}
		r.do(t.Context())
		named := false
		for _, t := range late.first {
			if t != nil { // else the abort ended the wait
				how := map[bool]string{true: "receive from", false: "send to"}[t.Receive]
				named = named || strings.Contains(r.errs[1].Error(), fmt.Sprintf("%s processor %d: timed out", how, t.Rank))
			}
		}
		checkAborted(t, r.errs, executor.ErrTimeout, "timed out")
		if !named {
			t.Errorf("%v names no message that came late", r.errs[1])
		}
	})
}

// An asking transport takes its time to ask.
type asking struct {
	transport.Transport
	now atomic.Int32 // how many ask
}

func (a *asking) Inquire(context.Context, int) (int, time.Duration, error) {
	a.now.Add(1)
	defer a.now.Add(-1)
	time.Sleep(time.Second)
	return -1, 0, nil
}

// slow is a packet that cannot be read, which takes it longer than the timeout.
type slow struct{}

func (slow) ReadAt([]byte, int64) (int, error) {
	time.Sleep(1500 * time.Millisecond)
	return 0, errors.New("broken disk")
}

// TestAsking has the group end while a rank asks why it waits. The rank returns when it asks no more, as then
// the transport may be closed, and with the cause.
func TestAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, a := newRun(t), &asking{}
		r.job = func(proc int, job *executor.Job) {
			switch proc {
			case 1:
				job.Timeout = time.Second
			case 2:
				job.Inputs[0].Reader = slow{}
			}
		}
		r.wrap = func(below transport.Transport) transport.Transport {
			if below.Rank() == 1 {
				a.Transport = below
				return a
			}
			return below
		}
		r.do(t.Context())
		if aborted := new(transport.AbortError); a.now.Load() != 0 || !errors.As(r.errs[1], &aborted) || aborted.Rank != 2 {
			t.Errorf("%d ask, %v", a.now.Load(), r.errs[1])
		}
	})
}

// TestSlow checks that a timeout bounds each wait, not their sum.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.job = func(_ int, job *executor.Job) { job.Timeout = time.Second }
		r.wrap = func(below transport.Transport) transport.Transport {
			if below.Rank() != 1 {
				return below
			}
			return delayed(below, 900*time.Millisecond)
		}
		start := time.Now()
		r.mustDo(t)
		if took := time.Since(start); took < 4*time.Second {
			t.Errorf("took %v: nothing was slow", took)
		}
	})
}

func TestCancel(t *testing.T) {
	enough := errors.New("enough")
	for _, round := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Hour, func() { cancel(enough) })
			r := newRun(t)
			r.wrap = func(below transport.Transport) transport.Transport {
				if below.Rank() != 6 {
					return below
				}
				return faulty.New(below, faulty.Hang(transport.ControlRounds+round)) // without a timeout
			}
			r.do(ctx)
			checkAborted(t, r.errs, enough, "enough")
		})
	}
	for _, k := range []int{1, 8} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		f := fieldtest.Parse(t, "2^8")
		r := &run{
			plan: compile(t, "universal", randomMatrix(t, f, k), 1), packets: randomPackets(f, 1, equal(k, 9)...),
			bytes: 9, segment: 4,
		}
		r.do(ctx)
		checkAborted(t, r.errs, enough, "enough")
	}
}

// TestTruncated checks that a message of another length stops the run.
func TestTruncated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t)
		r.wrap = func(below transport.Transport) transport.Transport {
			if below.Rank() != 3 {
				return below
			}
			return faulty.New(below, faulty.Truncate(faulty.Nth(4), 9))
		}
		r.do(t.Context())
		for proc, err := range r.errs {
			if !errors.As(err, new(*transport.LengthError)) {
				t.Errorf("processor %d: got error %v", proc, err)
			}
		}
	})
}
