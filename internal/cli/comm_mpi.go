//go:build mpi

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"volley/collective"
	"volley/transport"
	"volley/transport/mpi"
)

func init() {
	comms = append(comms, comm{"mpi", "by MPI, in the processes that mpirun starts", joinMPI})
}

// joinMPI makes this process one of its job. It takes a second group for the end, as the
// first may be broken by then.
func joinMPI(ctx context.Context, o *joining) (*party, error) {
	limit := o.timeout
	var e, last *mpi.Endpoint
	joined := make(chan error, 1)
	go func() {
		var err error
		if e, err = mpi.Init(); err == nil {
			last, err = mpi.Init()
		}
		joined <- err
	}()
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	select {
	case err := <-joined:
		if err != nil {
			return nil, err
		}
	case <-late: // MPI cannot say who is missing: all others say that they wait
		host, _ := os.Hostname()
		rank := cmp.Or(os.Getenv("OMPI_COMM_WORLD_RANK"), os.Getenv("PMI_RANK"), os.Getenv("SLURM_PROCID"), "?")
		sessionOf(ctx).say(slog.LevelError, saying{Text: fmt.Sprintf("MPI did not bring all processes together within %v: rank %s waits on %s, and those that say nothing have not come; where all have, --timeout waits longer", limit, rank, host), Host: host})
		time.Sleep(endingTime) // mpirun ends the others when the first has ended
		return nil, exitError{errSaid, exitFailed}
	}
	ends := []*mpi.Endpoint{e, last}
	p := &party{Transport: e, part: func(mine ending, s *session) int { return partMPI(last, ends, mine, s) }}
	if o.sets.size == 0 {
		return p, nil
	}
	said, err := collective.Allgatherv(ctx, e, o.says(), limit)
	if err != nil {
		return p, err
	}
	for n, ranks := range o.share(said, e.Rank()) {
		at := slices.Index(ranks, e.Rank())
		if at < 0 {
			continue
		}
		set, err := mpi.Split(n, at)
		if err != nil {
			return p, err
		}
		p.Transport, ends = set, append(ends, set)
		p.apart = func(work func()) {
			collective.Steady(context.Background(), e, limit, func(context.Context) error { work(); return nil })
		}
	}
	return p, nil
}

// partMPI lets rank 0 gather the endings and say what went wrong. All take the exit code
// from it. Then all endpoints are closed.
func partMPI(last *mpi.Endpoint, ends []*mpi.Endpoint, mine ending, s *session) int {
	ctx, cancel := context.WithTimeout(context.Background(), endingTime)
	defer cancel()
	all := make([]*ending, last.Size())
	all[last.Rank()] = &mine
	verdict := mine
	complete := true
	if last.Rank() == 0 {
		coming := last.NewQueue()
		for r := 1; r < last.Size(); r++ {
			coming.Post(&transport.Transfer{Rank: r, Parts: [][]byte{make([]byte, endingBytes)}, Receive: true})
		}
		for range last.Size() - 1 {
			if t, err := coming.Wait(ctx); err != nil {
				complete = false
			} else if err := json.Unmarshal(t.Parts[0], &all[t.Rank]); err != nil {
				complete = false
			}
		}
		s.hear(all)
		verdict.Code = worst(all)
		for r, x := range all {
			if r > 0 && x != nil {
				complete = transport.Send(ctx, last, r, transport.Tag{Round: 1}, record(verdict)) == nil && complete
			}
		}
	} else {
		err := transport.Send(ctx, last, 0, transport.Tag{}, record(mine))
		if err == nil {
			later, cancel := context.WithTimeout(context.Background(), 2*endingTime)
			defer cancel()
			var x ending
			text := make([]byte, endingBytes)
			if err = transport.Receive(later, last, 0, transport.Tag{Round: 1}, text); err == nil {
				if err = json.Unmarshal(text, &x); err == nil {
					verdict.Code = x.Code
				}
			}
		}
		if complete = err == nil; !complete && mine.Text != "" && !mine.Heard {
			s.say(slog.LevelError, saying{mine.Text, []int{last.Rank()}, mine.Host}) // rank 0 cannot
		}
	}
	if complete {
		done := make(chan error, 1)
		go func() {
			var err error
			for _, e := range ends {
				err = errors.Join(err, e.Close())
			}
			done <- errors.Join(err, mpi.Finalize())
		}()
		select {
		case err := <-done:
			if err == nil {
				return verdict.Code
			}
		case <-time.After(2 * endingTime): // somebody is gone since; mpirun ends those who wait
			s.say(slog.LevelError, saying{Text: "a process does not end"})
			return max(verdict.Code, exitFailed)
		}
	}
	mpi.AbortJob(s.conclude(max(verdict.Code, exitFailed)))
	return exitFailed
}
