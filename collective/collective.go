// Package collective has what ranks of a transport do together around a run: greet, allgather,
// barrier, and work that takes long. They are plans for bytes like any other.
//
// All ranks call the same functions in the same order. Where one fails, it aborts the group:
// all others return a *transport.AbortError that names the rank, unless they have failed
// themselves, and the transport is of no more use. Where all ranks find the same error in what
// they know of each other, they meet once more before they return it, see [Comm.Alike]: else
// the first to abort would hide the error of the others.
package collective

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/plan"
	"volley/transport"
)

// A Comm runs collectives of all ranks of a transport, by plans like any other, and counts
// their traffic.
type Comm struct {
	Rounds int   // of all collectives until now
	Bytes  int64 // that the busiest processor of this rank sent in them

	t       transport.Transport
	timeout time.Duration
}

// New returns the Comm of a transport. A wait for one message is bounded by the timeout,
// unless that is 0.
func New(t transport.Transport, timeout time.Duration) *Comm { return &Comm{t: t, timeout: timeout} }

// Many is how many ranks are too many for all to tell all: from there on, trees
// and schedules for any matrix take K times less of control traffic together, for
// as many rounds again.
const Many = 129

// Run runs an executable on records of that many bytes, one for each source at this rank.
// It returns the records of as many outputs. The errors are those of [executor.Run].
func (c *Comm) Run(ctx context.Context, executable *executor.Executable, inputs [][]byte, outputs, length int) ([][]byte, error) {
	job := executor.Job{Executable: executable, Bytes: int64(length), Segment: int64(max(1, length)), Timeout: c.timeout}
	for _, record := range inputs {
		job.Inputs = append(job.Inputs, executor.Input{Memory: record})
	}
	records := make([][]byte, outputs)
	for k := range records {
		records[k] = make([]byte, length)
		job.Outputs = append(job.Outputs, executor.Output{Memory: records[k]})
	}
	traffic, err := executor.Run(ctx, c.t, job)
	if err != nil {
		return nil, err
	}
	c.Rounds += len(traffic[0].Rounds)
	most := int64(0)
	for _, t := range traffic {
		most = max(most, t.Bytes)
	}
	c.Bytes += most
	return records, nil
}

// runRanks runs a plan for as many processors as there are ranks.
func (c *Comm) runRanks(ctx context.Context, p plan.Plan, inputs [][]byte, outputs, length int) ([][]byte, error) {
	executable, err := executor.Prepare(p, c.t.Rank(), c.t.Size())
	if err != nil {
		return nil, err
	}
	return c.Run(ctx, executable, inputs, outputs, length)
}

// mostRecord bounds what a rank may tell all others at once: the longest are lists of files and
// traces.
const mostRecord = 1 << 28

// Allgatherv gives the record of every rank, of any length up to 256 MiB, to all of them. A wait
// for one message is bounded by the timeout, unless that is 0. The errors are those of
// [executor.Run], and that of a rank which announces a longer record.
func Allgatherv(ctx context.Context, t transport.Transport, record []byte, timeout time.Duration) ([][]byte, error) {
	c := New(t, timeout)
	lengths, err := c.Allgather(ctx, binary.LittleEndian.AppendUint64(nil, uint64(len(record))))
	if err != nil {
		return nil, err
	}
	most := uint64(0)
	for r, data := range lengths {
		n := binary.LittleEndian.Uint64(data)
		if n > mostRecord {
			return nil, fmt.Errorf("collective: rank %d announces a record of %d bytes: at most %d are possible", r, n, mostRecord)
		}
		most = max(most, n)
	}
	if most == 0 {
		return make([][]byte, len(lengths)), nil
	}
	padded := make([]byte, most)
	copy(padded, record)
	records, err := c.Allgather(ctx, padded)
	if err != nil {
		return nil, err
	}
	for r, n := range lengths {
		records[r] = records[r][:binary.LittleEndian.Uint64(n)]
	}
	return records, nil
}

// AllgatherValues is [Allgatherv] of values, by their JSON. It also returns an error where that
// of a rank is no T.
func AllgatherValues[T any](ctx context.Context, t transport.Transport, mine T, timeout time.Duration) ([]T, error) {
	record, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	records, err := Allgatherv(ctx, t, record, timeout)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(records))
	for r, record := range records {
		if err := json.Unmarshal(record, &all[r]); err != nil {
			return nil, fmt.Errorf("collective: rank %d says what does not fit here: %w", r, err)
		}
	}
	return all, nil
}

// beat is how long a rank that is at work may be silent, unless a quarter of its timeout is
// less. It is short, as other ranks may have other timeouts.
const beat = time.Second

// Steady has every rank do work of its own, such as syncing files, that may take longer than
// the timeout. Meanwhile the ranks exchange signs of life: a wait for one is bounded by the
// timeout, unless that is 0. Steady returns nil when the work of all ranks has succeeded.
// Where work fails at some ranks, these return the errors of their work. They abort the group
// when the others have finished or a beat has passed; the others then return the
// [transport.AbortError], and the contexts of their works end. All ranks call Steady. The work
// does not use t, and it has ended when Steady returns.
func Steady(ctx context.Context, t transport.Transport, timeout time.Duration, work func(context.Context) error) error {
	if t.Size() == 1 {
		return work(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result := make(chan error, 1)
	go func() { result <- work(ctx) }()
	period := beat
	if timeout > 0 {
		period = min(period, max(timeout/4, 1))
	}
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	c := New(t, timeout)
	const working, succeeded, failed = 0, 1, 2
	state := byte(working)
	var failure error
	ended := func(err error) {
		failure, state = err, succeeded
		if err != nil {
			state = failed
		}
	}
	aborting := false // a rank has said that it has failed
	for {
		switch {
		case state != working:
		case aborting:
			select {
			case err := <-result:
				ended(err)
			default:
			}
		default:
			select {
			case err := <-result:
				ended(err)
			case <-ticks.C:
			case <-ctx.Done(): // the exchange says so to all
			}
		}
		all, err := c.Allgather(ctx, []byte{state})
		switch {
		case failure != nil: // only now, when others have had the time to find the same
			t.Abort(failure)
			return failure
		case err != nil:
			cancel(err)
			if state == working {
				<-result
			}
			return err
		case !slices.ContainsFunc(all, func(record []byte) bool { return record[0] != succeeded }):
			return nil
		}
		aborting = slices.ContainsFunc(all, func(record []byte) bool { return record[0] == failed })
	}
}

// Allgather returns the records of all ranks, which are equally long.
func (c *Comm) Allgather(ctx context.Context, record []byte) ([][]byte, error) {
	if c.t.Size() == 1 {
		return [][]byte{record}, nil
	}
	f, err := field.Parse("2^8") // bytes
	if err != nil {
		return nil, err
	}
	return c.runRanks(ctx, algo.Allgather(f, c.t.Size(), 1), [][]byte{record}, c.t.Size(), len(record))
}

// reduce gathers the records of all, which are equally long, at rank 0, where conclude makes
// one of as many bytes of them, and broadcasts that.
func (c *Comm) reduce(ctx context.Context, record []byte, conclude func(records [][]byte) []byte) ([]byte, error) {
	f, err := field.Parse("2^8")
	if err != nil {
		return nil, err
	}
	k, first := c.t.Size(), 0
	if c.t.Rank() == 0 {
		first = 1
	}
	records, err := c.runRanks(ctx, algo.Gather(f, k, 1), [][]byte{record}, first*k, len(record))
	if err != nil {
		return nil, err
	}
	var conclusion [][]byte
	if first == 1 {
		conclusion = [][]byte{conclude(records)}
	}
	all, err := c.runRanks(ctx, algo.Broadcast(f, k, 1), conclusion, 1, len(record))
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Barrier returns when all ranks have come to it.
func (c *Comm) Barrier(ctx context.Context) error {
	if c.t.Size() < Many {
		_, err := c.Allgather(ctx, nil)
		return err
	}
	_, err := c.reduce(ctx, nil, func([][]byte) []byte { return nil })
	return err
}

// Barrier returns when all ranks have come to it. A wait for one message is bounded by the
// timeout, unless that is 0.
func Barrier(ctx context.Context, t transport.Transport, timeout time.Duration) error {
	return New(t, timeout).Barrier(ctx)
}

// Alike returns err, which all ranks find alike in what they know of each other, once all have
// come to it: so each returns its own error, and not that another rank has aborted.
func (c *Comm) Alike(ctx context.Context, err error) error {
	c.Barrier(ctx)
	return err
}
