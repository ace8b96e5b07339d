package local_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"volley/transport"
	"volley/transport/local"
	"volley/transport/transporttest"
)

// closing closes the transport below when the last end over it is closed.
type closing struct {
	*local.Endpoint
	below transport.Transport
	open  *atomic.Int32
}

func (c closing) Close() error {
	err := c.Endpoint.Close()
	if c.open.Add(-1) == 0 {
		c.below.Close()
	}
	return err
}

// over returns the ranks of a group over another one, by its hosts.
func over(ends []*local.Endpoint, hosts []int) []transport.Transport {
	group := make([]transport.Transport, len(hosts))
	for _, below := range ends {
		open := new(atomic.Int32)
		for _, e := range local.NewOver(below, hosts) {
			open.Add(1)
			group[e.Rank()] = closing{e, below, open}
		}
	}
	return group
}

// TestOver has ranks live at those of another transport in another order, and none at one of them.
func TestOver(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Transport {
		hosts := make([]int, n)
		for r := range hosts {
			hosts[r] = n - r
		}
		return over(local.New(n+1), hosts)
	})
}

// TestOverFewer has several ranks live at one, and none at another. An abort, and who is waited for, is then that of the first one there.
func TestOverFewer(t *testing.T) {
	t.Parallel()
	named := []string{"abort ends waits under way", "aborts at once", "ranks say for whom they wait"}
	for _, c := range transporttest.Cases() {
		if slices.Contains(named, c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			for r, tr := range over(local.New(4), []int{2, 0, 2, 3, 2, 0}) {
				wg.Go(func() {
					if err := c.Run(t.Context(), tr); err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
