package transport_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"volley/transport"
)

// waits is a rank of a group in which each waits for another; -1 is nobody, -2 does not answer, asking -3 ends the
// group, and -4 says nothing at all.
type waits struct {
	transport.Transport
	rank int
	list []int
}

func (w waits) Rank() int { return w.rank }

func (w waits) Inquire(ctx context.Context, rank int) (int, error) {
	switch w.list[rank] {
	case -2:
		return -1, errors.New("no answer")
	case -3:
		return -1, fmt.Errorf("rank %d does not answer: %w", rank, &transport.AbortError{Cause: errors.New("no memory")})
	case -4:
		<-ctx.Done()
		return -1, ctx.Err()
	}
	return w.list[rank], nil
}

func TestBlame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from int
		list []int
		want string
	}{
		{1, []int{1, -1}, "rank 1 waits for nobody: it computes, reads or writes, or it hangs"},
		{1, []int{1, -2}, "rank 1 does not answer"},
		{1, []int{1, 2, -3}, ""},
		{1, []int{1, 2, -4}, "rank 2 does not answer (rank 1 waits for rank 2)"},
		{1, []int{1, 2, -2}, "rank 2 does not answer (rank 1 waits for rank 2)"},
		{3, []int{3, 2, -1, 1}, "rank 2 waits for nobody: it computes, reads or writes, or it hangs (rank 3 waits for rank 1, that for rank 2)"},
		{1, []int{1, 0}, "rank 1 waits for rank 0: their messages are under way, or the plan is wrong"},
		{1, []int{1, 2, 3, 1}, "rank 3 waits for rank 1: their messages are under way, or the plan is wrong (rank 1 waits for rank 2, that for rank 3)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, most := time.Now(), 2*time.Second // for who says nothing at all
			if got := transport.Blame(waits{list: c.list}, c.from); got != c.want || time.Since(start) > most {
				t.Errorf("%v: %s after %v; want %s", c.list, got, time.Since(start), c.want)
			}
		})
	}
}
