package executor_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"volley/executor"
	"volley/field/fieldtest"
	"volley/internal/faulty"
	"volley/transport"
)

// failing is a packet that cannot be read or written from some offset on.
type failing struct {
	from int64
	err  error
}

func (f failing) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= f.from {
		return 0, f.err
	}
	return endless{}.ReadAt(p, offset)
}

func (f failing) WriteAt(p []byte, offset int64) (int, error) { return f.ReadAt(p, offset) }

// TestFailures has a rank fail in all ways, in the first segment, in one of the other pipeline, and in the last, where others may
// have all that they need. It says what is wrong; all others name it, say the same once, and nobody waits.
func TestFailures(t *testing.T) {
	broken := errors.New("broken disk")
	nine, err := executor.Prepare(t.Context(), compile(t, "universal", randomMatrix(t, fieldtest.Parse(t, "2^8"), 9), 1), 5, 9)
	if err != nil {
		t.Fatal(err)
	}
	for text, change := range map[string]func(j *executor.Job, from int64){
		"read input 0: broken disk":   func(j *executor.Job, from int64) { j.Inputs[0].Reader = failing{from, broken} },
		"write output 0: broken disk": func(j *executor.Job, from int64) { j.Outputs[0].Writer = failing{from, broken} },
		"read input 0: damaged": func(j *executor.Job, from int64) {
			j.Inputs[0].Validate = func(_ []byte, offset int64) error {
				if offset >= from {
					return errors.New("damaged")
				}
				return nil
			}
		},
		"refused": func(j *executor.Job, from int64) {
			seen := int64(0)
			j.Observe = func(_ int, inputs, _ [][]byte) error {
				if seen += int64(len(inputs[0])); seen > from {
					return errors.New("refused")
				}
				return nil
			}
		},
		"a stranger": func(j *executor.Job, _ int64) {
			j.Accept = func(int, []byte) error { return errors.New("a stranger") }
		},
		"the executable of rank 5 of 9 at rank 5 of 8":                             func(j *executor.Job, _ int64) { j.Executable = nine },
		"0 inputs and 1 outputs: the program has 1 and 1":                          func(j *executor.Job, _ int64) { j.Inputs = nil },
		"1 inputs and 2 outputs: the program has 1 and 1":                          func(j *executor.Job, _ int64) { j.Outputs = append(j.Outputs, discard()...) },
		"packets of -2 bytes in segments of 10":                                    func(j *executor.Job, _ int64) { j.Bytes = -2 },
		"packets of 100 bytes in segments of 0: want multiples of the symbol size": func(j *executor.Job, _ int64) { j.Segment = 0 },
		"in segments of -2": func(j *executor.Job, _ int64) { j.Segment = -2 },
	} {
		for _, from := range []int64{0, 50, 90} {
			for _, inMemory := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					r := newRun(t)
					r.inMemory = inMemory
					r.job = func(rank int, job *executor.Job) {
						job.Header, job.Accept = []byte("header"), func(int, []byte) error { return nil }
						if rank == 5 {
							change(job, from)
						}
					}
					r.do(t.Context())
					for rank, err := range r.errs {
						aborted := new(transport.AbortError)
						switch heard := errors.As(err, &aborted); {
						case err == nil && from == 90 && rank != 5: // it had its last messages by then
						case rank == 5 && (err == nil || heard || !strings.HasPrefix(err.Error(), "processor 5: ") || !strings.Contains(err.Error(), text)),
							rank != 5 && (!heard || aborted.Rank != 5 || strings.Count(err.Error(), text) != 1):
							t.Errorf("%s from %d: rank %d: %v", text, from, rank, err)
						}
					}
				})
			}
		}
	}
}

// stoppedAt returns what stops rank 2 in a round of the plan.
func stoppedAt(fault func(round int) faulty.Fault, round int) func(transport.Transport) transport.Transport {
	return func(below transport.Transport) transport.Transport {
		if below.Rank() != 2 {
			return below
		}
		return faulty.New(below, fault(transport.ControlRounds+round))
	}
}

// TestTimeout lets a processor hang or die and looks at what the others say: whom they wait for, in which round.
func TestTimeout(t *testing.T) {
	whom := regexp.MustCompile(`round \d: (receive from|send to) processor (2: timed out: nothing for 1m0s; rank 2 waits for nobody: it computes, reads or writes, or it hangs|[013-7]: timed out: nothing for 1m0s; rank 2 waits for nobody: it computes, reads or writes, or it hangs \(rank \d waits for rank \d.*\))$`)
	for name, fault := range map[string]func(round int) faulty.Fault{"hang": faulty.Hang, "die": faulty.Die} {
		for round := range 7 { // from 3 on those of the second pipeline
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				r.job = func(_ int, job *executor.Job) { job.Timeout = time.Minute }
				r.wrap = stoppedAt(fault, round)
				start := time.Now()
				r.do(t.Context())
				there := round < 6
				for proc, err := range r.errs {
					if (err != nil) != there || there && proc != 2 && (!errors.Is(err, executor.ErrTimeout) || !whom.MatchString(err.Error())) {
						t.Errorf("%s in round %d: processor %d: %v", name, round, proc, err)
					}
				}
				if took := time.Since(start); there && took != time.Minute {
					t.Errorf("%s in round %d: took %v", name, round, took)
				}
			})
		}
	}
}

// An asking transport takes its time to ask.
type asking struct {
	transport.Transport
	now atomic.Int32 // how many ask
}

func (a *asking) Inquire(context.Context, int) (int, error) {
	a.now.Add(1)
	defer a.now.Add(-1)
	time.Sleep(time.Second)
	return -1, nil
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
			if below.Rank() != 1 {
				return below
			}
			a.Transport = below
			return a
		}
		r.do(t.Context())
		if aborted := new(transport.AbortError); a.now.Load() != 0 || !errors.As(r.errs[1], &aborted) || aborted.Rank != 2 {
			t.Errorf("%d ask, %v", a.now.Load(), r.errs[1])
		}
	})
}

// TestTruncated checks that a message of another length, of any pipeline, stops the run: the error names the true round.
func TestTruncated(t *testing.T) {
	for n := range 12 {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(t)
			r.wrap = func(below transport.Transport) transport.Transport {
				if below.Rank() != 3 {
					return below
				}
				return faulty.New(below, faulty.Truncate(faulty.Nth(n), 9))
			}
			r.do(t.Context())
			for rank, err := range r.errs {
				if wrong := new(transport.LengthError); !errors.As(err, &wrong) || wrong.Tag.Round > 2 {
					t.Errorf("send %d: rank %d: got error %v", n, rank, err)
				}
			}
		})
	}
}

// A narrow transport has few tags.
type narrow struct {
	transport.Transport
	rounds int
}

func (n narrow) Limits() transport.Limits {
	return transport.Limits{{Rounds: transport.ControlRounds + n.rounds, Ports: 1}}
}

// TestLimits refuses a plan of three rounds where the transport has tags of fewer, or in two pipelines of fewer than
// six.
func TestLimits(t *testing.T) {
	for _, x := range []struct {
		ahead  bool
		rounds int
		fits   bool
	}{{false, 2, false}, {false, 3, true}, {true, 5, false}, {true, 6, true}} {
		r := newRun(t)
		r.job = func(_ int, job *executor.Job) { job.Ahead = x.ahead }
		r.wrap = func(below transport.Transport) transport.Transport { return narrow{below, x.rounds} }
		r.do(t.Context())
		for proc, err := range r.errs {
			if refused := errors.As(err, new(*transport.LimitsError)); refused == x.fits || x.fits && err != nil {
				t.Errorf("two pipelines %v, %d rounds: processor %d: %v", x.ahead, x.rounds, proc, err)
			}
		}
	}
}
