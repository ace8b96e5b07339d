package executor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"volley/executor"
	"volley/field/fieldtest"
	"volley/internal/faulty"
	"volley/transport"
)

// A diary lists what is done to the packets of a rank, in order.
type diary struct {
	mu   sync.Mutex
	seen map[string][]int64 // offsets, by what is done
}

func (d *diary) note(what string, offset int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[what] = append(d.seen[what], offset)
}

// noted is a packet whose reads and writes a diary lists.
type noted struct {
	io.ReaderAt
	io.WriterAt
	diary *diary
	proc  int
}

func (n noted) ReadAt(p []byte, offset int64) (int, error) {
	n.diary.note(fmt.Sprintf("read %d", n.proc), offset)
	return n.ReaderAt.ReadAt(p, offset)
}

func (n noted) WriteAt(p []byte, offset int64) (int, error) {
	n.diary.note(fmt.Sprintf("write %d", n.proc), offset)
	return n.WriterAt.WriteAt(p, offset)
}

// TestPipelines runs many segments at several ranks, with short packets among them: the
// result is right, and every processor reads, observes and writes in ascending order.
func TestPipelines(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{2, 5, 8, 13} {
		a := randomMatrix(t, f, k)
		for _, algorithm := range []string{"universal", "bruck-allgather", "prepare-and-shoot"} {
			p := compile(t, algorithm, a, min(2, k-1))
			for _, ranks := range []int{2, (k + 1) / 2, k} {
				if ranks < 2 {
					continue
				}
				for _, segment := range []int{4, 16, 30} {
					const symbols = 100
					lengths := equal(k, symbols)
					lengths[k-1], lengths[k/2] = 0, 17
					d := &diary{seen: map[string][]int64{}}
					r := &run{plan: p, packets: randomPackets(f, uint64(k), lengths...), ranks: ranks, bytes: symbols, segment: segment}
					r.job = func(rank int, job *executor.Job) {
						first, _ := executor.Hosted(k, rank, ranks)
						for i := range job.Inputs {
							job.Inputs[i].Reader = noted{ReaderAt: job.Inputs[i].Reader, diary: d, proc: first + i}
							job.Outputs[i].Writer = noted{WriterAt: job.Outputs[i].Writer, diary: d, proc: first + i}
						}
						seen := make([]int64, k)
						job.Observe = func(proc int, inputs, _ [][]byte) error {
							d.note(fmt.Sprintf("observe %d", proc), seen[proc])
							seen[proc] += int64(len(inputs[0]))
							return nil
						}
					}
					r.mustDo(t)
					r.check(t, product(a, r.packets, symbols))
					checkTraffic(t, r)
					var want []int64
					for offset := int64(0); offset < symbols; offset += int64(segment) {
						want = append(want, offset)
					}
					for proc := range k {
						for _, what := range []string{"read", "observe", "write"} {
							if got := d.seen[fmt.Sprintf("%s %d", what, proc)]; !slices.Equal(got, want) {
								t.Errorf("%s, K=%d at %d ranks: processor %d: %s at %v, want %v", algorithm, k, ranks, proc, what, got, want)
							}
						}
					}
					if t.Failed() {
						return
					}
				}
			}
		}
	}
}

// TestPipelinesOfPieces runs plans that cut packets, over a transport that spoils what is yet to be
// received.
func TestPipelinesOfPieces(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{5, 6, 9} {
		a := randomMatrix(t, f, k)
		p := compile(t, "exchange", a, 1)
		if p.Info().PieceCount() == 1 {
			t.Fatalf("K=%d: the plan cuts nothing", k)
		}
		for _, ranks := range []int{2, 3, k} {
			const symbols = 101
			lengths := equal(k, symbols)
			lengths[0] = 50
			r := &run{plan: p, packets: randomPackets(f, 7, lengths...), ranks: ranks, bytes: symbols, segment: 12}
			r.wrap = func(below transport.Transport) transport.Transport { return newWatched(t, below) }
			r.mustDo(t)
			r.check(t, product(a, r.packets, symbols))
		}
	}
}

// TestPipelineErrors lets segments of both pipelines fail, in each of the ways there are: the
// other pipeline and all other ranks end, and the error names the processor and the true round.
func TestPipelineErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, from := range []int64{10, 20, 70} { // of the second pipeline, of the first, and late
		for text, wear := range map[string]func(*executor.Job){
			"processor 5: read input 0: broken":   func(j *executor.Job) { j.Inputs[0].Reader = failing{endless{}, from, broken} },
			"processor 5: write output 0: broken": func(j *executor.Job) { j.Outputs[0].Writer = failing{endless{}, from, broken} },
			"processor 5: broken": func(j *executor.Job) {
				seen := int64(0)
				j.Observe = func(int, [][]byte, [][]byte) error {
					if seen += 10; seen > from {
						return broken
					}
					return nil
				}
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				r.job = func(rank int, job *executor.Job) {
					if rank == 5 {
						wear(job)
					}
				}
				r.do(t.Context())
				checkAborted(t, r.errs, broken, text)
			})
		}
	}
	for n := range 12 { // some of the first pipeline, some of the second
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
				wrong := new(transport.LengthError)
				if !errors.As(err, &wrong) || wrong.Tag.Round > 2 {
					t.Errorf("send %d: rank %d: got error %v", n, rank, err)
				}
			}
		})
	}
}

// TestPipelinesCancelled ends a run whose pipelines wait for messages and for turns.
func TestPipelinesCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(90*time.Second, func() { cancel(enough) })
		r := newRun(t)
		r.job = func(_ int, job *executor.Job) { job.Inputs[0].Reader = slowPacket{job.Inputs[0].Reader, time.Minute} }
		r.do(ctx)
		checkAborted(t, r.errs, enough, "enough")
	})
	// At one rank the error needs no name.
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(90*time.Second, func() { cancel(enough) })
		r := newRun(t)
		r.ranks = 1
		r.job = func(_ int, job *executor.Job) { job.Inputs[0].Reader = slowPacket{job.Inputs[0].Reader, time.Minute} }
		r.do(ctx)
		if r.errs[0] != enough {
			t.Errorf("one rank: error %v, want enough", r.errs[0])
		}
	})
}

// slowPacket takes its time to be read.
type slowPacket struct {
	io.ReaderAt
	each time.Duration
}

func (s slowPacket) ReadAt(p []byte, offset int64) (int, error) {
	time.Sleep(s.each)
	return s.ReaderAt.ReadAt(p, offset)
}

// TestPipelinesOverlap checks, in virtual time, that reading and messages go on side by side: a
// run takes about as long as the longer of the two.
func TestPipelinesOverlap(t *testing.T) {
	const segments, wire = 10, 3 * time.Second // of a segment: one for each round
	for _, read := range []time.Duration{time.Second, 3 * time.Second, 6 * time.Second} {
		for _, ahead := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				r.job = func(_ int, job *executor.Job) {
					job.Ahead = ahead
					job.Inputs[0].Reader = slowPacket{job.Inputs[0].Reader, read}
				}
				r.wrap = func(below transport.Transport) transport.Transport {
					return delayed(below, time.Second)
				}
				start := time.Now()
				r.mustDo(t)
				took := time.Since(start)
				if sum := segments * (read + wire); !ahead && took != sum {
					t.Errorf("one after the other: %v, want %v", took, sum)
				}
				if most := segments*max(read, wire) + min(read, wire); ahead && took > most {
					t.Errorf("reads of %v and rounds of 1s took %v: want %v or less", read, took, most)
				}
			})
		}
	}
}
