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

// TestLatencies counts the latencies of a run among ranks that are 1 ms apart, and whose messages take
// nothing else: a later run with everything at its default takes no more than one short collective on
// top of the rounds of its plan. Before the third one the ranks may tell each other what the second has taken.
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
				e := mustEncoder(t, matrixtest.Random(t, f, k, 1), volley.WithPacketBytes(1000), volley.WithAlgorithm(algorithm), volley.WithNetwork(volley.DefaultNetwork()))
				for run, collectives := range []int{2, 1, 1, 1} {
					began, c1 := time.Now(), make([]int, k)
					err := errors.Join(together(group, func(tr transport.Transport) error {
						_, report, err := e.Encode(t.Context(), tr, make([]byte, 1000))
						if err == nil {
							c1[tr.Rank()] = report.C1
						}
						return err
					})...)
					want, told := time.Duration(c1[0]+collectives*collective)*apart, time.Duration(0)
					if run == 2 {
						told = time.Duration(collective) * apart
					}
					if took := time.Since(began); err != nil || took != want && took != want+told {
						t.Errorf("%s, K = %d, run %d: %v, want %v: C1 is %d: %v", algorithm, k, run, took, want, c1[0], err)
					}
				}
			})
		}
	}
}

// TestManyTransports has one encoder run on more groups in turns than it keeps, and on two at the
// same time. A group on which a run has failed is no obstacle to others.
func TestManyTransports(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "257"), 3, 1)
	e := mustEncoder(t, a, volley.WithPacketBytes(100))
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
