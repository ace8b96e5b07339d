package volley_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"volley"
	"volley/field/fieldtest"
	"volley/internal/delay"
	"volley/matrix/matrixtest"
	"volley/transport"
	"volley/transport/local"
)

// TestLatencies counts the latencies of what is made ready once and run often, among ranks that are 1 ms apart, and whose
// messages take nothing else: a run with everything at its default takes no more than one short collective on top of the
// rounds of its plan.
func TestLatencies(t *testing.T) {
	const apart = time.Millisecond
	f := fieldtest.Parse(t, "2^8")
	for k, collective := range map[int]int{2: 1, 8: 1, 20: 2} {
		for _, algorithm := range []string{"exchange", "universal"} {
			synctest.Test(t, func(t *testing.T) {
				var group []transport.Transport
				for _, end := range local.New(k) {
					group = append(group, delay.New(t.Context(), end, func(*transport.Transfer) time.Duration { return apart }))
				}
				e := mustEncoder(t, matrixtest.Random(t, f, k, 1), volley.WithAlgorithm(algorithm), volley.WithNetwork(volley.DefaultNetwork()))
				bounds := make([]*volley.Bound, k)
				timed := func(what string, rounds func() int, work func(tr transport.Transport) error) {
					began := time.Now()
					err := errors.Join(together(group, work)...)
					if took, want := time.Since(began), time.Duration(rounds())*apart; err != nil || took != want {
						t.Errorf("%s, K = %d, %s: %v, want %v: %v", algorithm, k, what, took, want, err)
					}
				}
				timed("made ready", func() int { return collective }, func(tr transport.Transport) (err error) {
					bounds[tr.Rank()], err = e.Bind(t.Context(), tr, []volley.Packet{{Data: make([]byte, 1000), Result: new([]byte)}})
					return err
				})
				for range 3 {
					timed("run", func() int { return bounds[0].Report().C1 + collective }, func(tr transport.Transport) error { return bounds[tr.Rank()].Run() })
				}
			})
		}
	}
}

// TestManyTransports has one encoder run on several groups in turns, and on two at the same time. A group on which a run has failed is no obstacle to others.
func TestManyTransports(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "257"), 3, 1)
	e := mustEncoder(t, a)
	packets := randomPackets(a.Field(), 50, 10, 0)
	want := product(a, packets)
	run := func(group []transport.Transport, spoilt bool) error {
		return errors.Join(together(group, func(tr transport.Transport) error {
			packet := packets[tr.Rank()]
			if spoilt && tr.Rank() == 1 {
				packet = []byte{255, 255}
			}
			coded, _, err := e.Encode(context.Background(), tr, packet)
			if err == nil && !bytes.Equal(coded, want[tr.Rank()]) {
				err = errors.New("a wrong packet")
			}
			return err
		})...)
	}
	var groups [][]transport.Transport
	for range 6 {
		groups = append(groups, localGroup(3))
	}
	for range 3 {
		for _, group := range groups {
			if err := run(group, false); err != nil {
				t.Error(err)
			}
		}
		failing := localGroup(3)
		for turn, fails := range []bool{false, true, true} { // no run follows on a group where one has failed
			if err := run(failing, turn == 1); (err != nil) != fails {
				t.Errorf("turn %d: %v", turn, err)
			}
		}
	}
	var both sync.WaitGroup
	for _, group := range groups[:2] {
		both.Go(func() {
			for range 50 {
				if err := run(group, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
}
