//go:build mpi

package ranks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"volley/collective"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/transport/mpi"
)

func init() {
	comms = append(comms, comm{"mpi", joinMPI})
}

// joinMPI makes this process one of its job. It takes a second group for the end, as the first may be broken by then.
func joinMPI(ctx context.Context, o *Joining) (*session.Party, error) {
	limit := o.Timeout
	var e, last *mpi.Endpoint
	joined := make(chan error, 1)
	go func() {
		var err error
		if e, err = mpi.Init(); err == nil {
			last, err = mpi.Init()
		}
		joined <- err
	}()
	var expired <-chan time.Time
	if limit > 0 {
		expired = time.After(limit)
	}
	select {
	case err := <-joined:
		if err != nil {
			return nil, err
		}
	case <-expired: // MPI cannot say who is missing: all others say that they wait
		host, _ := os.Hostname()
		s := o.Session
		rank := cmp.Or(s.Getenv("OMPI_COMM_WORLD_RANK"), s.Getenv("PMI_RANK"), s.Getenv("SLURM_PROCID"), "?")
		s.Say(slog.LevelError, launch.Saying{Text: fmt.Sprintf("MPI did not bring all processes together within %v: rank %s waits on %s, and those that say nothing have not come; where all have, --timeout waits longer", limit, rank, host), Host: host})
		time.Sleep(s.Limits.Ending) // mpirun ends the others when the first has ended
		return nil, exit.WithCode(exit.ErrSaid, exit.Failed)
	}
	ends := []*mpi.Endpoint{e, last}
	p := &session.Party{Transport: e, Part: func(mine launch.Ending, s *session.Invocation) int { return partMPI(last, ends, mine, s) }}
	if o.Nodes == nil || !o.Nodes.Splits() {
		return p, nil
	}
	texts, err := collective.Allgatherv(ctx, e, o.Nodes.Says(e.Rank(), e.Size()), limit)
	if err != nil {
		return p, err
	}
	for n, ranks := range o.Nodes.Share(texts, e.Rank()) {
		index := slices.Index(ranks, e.Rank())
		if index < 0 {
			continue
		}
		set, err := e.Split(n, index)
		if err != nil {
			return p, err
		}
		p.Transport, ends = set, append(ends, set)
		p.Apart = func(work func()) {
			collective.Steady(context.Background(), e, limit, func(context.Context) error { work(); return nil })
		}
	}
	return p, nil
}

// partMPI has all processes hear how each of them has ended. Rank 0 says what went wrong, and all take the exit code
// from it. Then all endpoints are closed.
func partMPI(last *mpi.Endpoint, ends []*mpi.Endpoint, mine launch.Ending, s *session.Invocation) int {
	endings, wrong := collective.AllgatherValues(context.Background(), last, &mine, 2*s.Limits.Ending)
	if wrong != nil { // somebody does not come
		endings = make([]*launch.Ending, last.Size())
		endings[last.Rank()] = &mine
	}
	if last.Rank() == 0 {
		s.Hear(endings)
	} else if wrong != nil && mine.Text != "" && !mine.Heard {
		s.Say(slog.LevelError, launch.Saying{Text: mine.Text, Ranks: []int{last.Rank()}, Host: mine.Host}) // rank 0 cannot
	}
	code := launch.Worst(endings)
	if wrong == nil {
		closed := make(chan error, 1)
		go func() {
			var err error
			for _, e := range ends {
				err = errors.Join(err, e.Close())
			}
			closed <- errors.Join(err, mpi.Finalize())
		}()
		select {
		case err := <-closed:
			if err == nil {
				return code
			}
		case <-time.After(2 * s.Limits.Ending): // somebody is gone since; mpirun ends those who wait
			s.Say(slog.LevelError, launch.Saying{Text: "a process does not end"})
			return max(code, exit.Failed)
		}
	}
	mpi.AbortJob(s.Conclude(max(code, exit.Failed)))
	return exit.Failed
}
