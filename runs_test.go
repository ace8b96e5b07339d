package volley_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"volley"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/delay"
	"volley/internal/faulty"
	"volley/matrix"
	"volley/matrix/matrixtest"
	"volley/transport"
	"volley/transport/local"
)

// together runs f at all ranks of a group, which stays open.
func together(group []transport.Transport, f func(t transport.Transport) error) []error {
	errs := make([]error, len(group))
	var ranks sync.WaitGroup
	for r, t := range group {
		ranks.Go(func() { errs[r] = f(t) })
	}
	ranks.Wait()
	return errs
}

func localGroup(n int) (group []transport.Transport) {
	for _, end := range local.New(n) {
		group = append(group, end)
	}
	return group
}

func mustEncoder(t testing.TB, a matrix.Matrix, opts ...volley.Option) *volley.Encoder {
	t.Helper()
	e, err := volley.NewEncoder(t.Context(), a, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestLatencies counts the latencies of a run among ranks that are 1 ms apart, and whose messages take
// nothing else: a later run with everything at its default takes no more than one short collective on
// top of the rounds of its plan. Before the third one the ranks may tell each other what the second has taken.
func TestLatencies(t *testing.T) {
	const apart = time.Millisecond
	f := fieldtest.Parse(t, "2^8")
	for k, collective := range map[int]int{2: 1, 4: 1, 8: 1, 20: 2} {
		for _, algorithm := range []string{"exchange", "universal"} {
			synctest.Test(t, func(t *testing.T) {
				var group []transport.Transport
				for _, end := range local.New(k) {
					group = append(group, delay.New(t.Context(), end, func(*transport.Transfer) time.Duration { return apart }))
				}
				e := mustEncoder(t, matrixtest.Random(t, f, k, 1), volley.WithPacketBytes(1000), volley.WithAlgorithm(algorithm), volley.WithNetwork(volley.DefaultNetwork()))
				for run, collectives := range []int{2, 1, 1, 1} {
					began, c1 := time.Now(), make([]int, k)
					for r, err := range together(group, func(tr transport.Transport) error {
						_, report, err := e.Encode(t.Context(), tr, make([]byte, 1000))
						if err == nil {
							c1[tr.Rank()] = report.C1
						}
						return err
					}) {
						if err != nil {
							t.Errorf("%s, K = %d, rank %d: %v", algorithm, k, r, err)
						}
					}
					want := time.Duration(c1[0]+collectives*collective) * apart
					told := time.Duration(0)
					if run == 2 {
						told = time.Duration(collective) * apart
					}
					if took := time.Since(began); took != want && took != want+told {
						t.Errorf("%s, K = %d, run %d: %v, want %v: C1 is %d", algorithm, k, run, took, want, c1[0])
					}
				}
			})
		}
	}
}

// TestPacketBytesExceeded has one packet be longer than declared, in the first run or later:
// all ranks say so.
func TestPacketBytesExceeded(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 4, 1)
	for long := range 4 {
		for before := range 3 {
			synctest.Test(t, func(t *testing.T) {
				group := localGroup(4)
				e := mustEncoder(t, a, volley.WithPacketBytes(64), volley.WithTimeout(0))
				for run := range before + 1 {
					for r, err := range together(group, func(tr transport.Transport) error {
						n := 64
						if run == before && tr.Rank() == long {
							n = 65
						}
						_, _, err := e.Encode(t.Context(), tr, make([]byte, n))
						return err
					}) {
						want := fmt.Sprintf("volley: processor %d: a packet of 65 bytes: no more than 64 were declared", long)
						if failed := run == before; failed != (err != nil) || failed && !strings.HasSuffix(err.Error(), want) {
							t.Errorf("run %d, rank %d: %v", run, r, err)
						}
					}
				}
			})
		}
	}
	for _, c := range []struct {
		n    int64
		text string
	}{{-1, "packets of -1 bytes"}, {1 << 47, "want 0 to"}, {3, "symbols of 2^16 have 2 bytes"}} {
		if _, err := volley.NewEncoder(t.Context(), matrixtest.Random(t, fieldtest.Parse(t, "2^16"), 2, 1), volley.WithPacketBytes(c.n)); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%d bytes: %v", c.n, err)
		}
	}
}

// TestOtherEncoder has one rank, or all but one, take another encoder for a later run: with
// the same options or others, that has never run or has. Nobody waits for ever, without any
// timeout, nobody returns a packet that is checked, and all know why.
func TestOtherEncoder(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{2, 3, 5, 20} {
		square := matrixtest.Random(t, f, k, 1)
		column, err := matrix.Random(f, k, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			a         matrix.Matrix
			algorithm string
		}{{square, "universal"}, {square, "bruck-allgather"}, {square, "exchange"}, {column, "sinks"}} {
			declared := []volley.Option{volley.WithPacketBytes(64), volley.WithTimeout(0), volley.WithAlgorithm(c.algorithm)}
			for name, other := range map[string]*volley.Encoder{
				"equal":      mustEncoder(t, c.a, declared...),
				"length":     mustEncoder(t, c.a, append(declared, volley.WithPacketBytes(128))...),
				"check":      mustEncoder(t, c.a, append(declared, volley.WithCheck(false))...),
				"undeclared": mustEncoder(t, c.a, volley.WithTimeout(0), volley.WithAlgorithm(c.algorithm)),
				"model":      mustEncoder(t, c.a, append(declared, volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau))...),
			} {
				for _, who := range []func(rank int) bool{
					func(rank int) bool { return rank == 0 }, func(rank int) bool { return rank == k-1 },
					func(rank int) bool { return rank != 1 },
				} {
					for _, known := range []bool{false, true} {
						synctest.Test(t, func(t *testing.T) {
							group := localGroup(k)
							usual := mustEncoder(t, c.a, declared...)
							run := func(encoder func(rank int) *volley.Encoder) []error {
								return together(group, func(tr transport.Transport) error {
									p := volley.Packet{Data: make([]byte, 64), Result: new([]byte)}
									_, err := encoder(tr.Rank()).Run(t.Context(), tr, p)
									return err
								})
							}
							runs := []*volley.Encoder{usual, usual}
							if known {
								runs = append(runs, other, usual)
							}
							for _, e := range runs {
								if err := errors.Join(run(func(int) *volley.Encoder { return e })...); err != nil {
									t.Fatalf("K = %d, %s, %s: %v", k, c.algorithm, name, err)
								}
							}
							start := time.Now()
							texts := map[string]bool{}
							for r, err := range run(func(rank int) *volley.Encoder {
								if who(rank) {
									return other
								}
								return usual
							}) {
								if err == nil && name == "check" && who(r) {
									continue // without a check nobody waits for all others
								}
								if err == nil {
									t.Fatalf("K = %d, %s, %s, known %v: rank %d notices nothing", k, c.algorithm, name, known, r)
								}
								texts[err.Error()] = true
							}
							for text := range texts {
								apart := strings.Contains(text, "by an earlier agreement: use the same encoder for a run at all ranks") ||
									known && (strings.Contains(text, "go on by different agreements") || strings.Contains(text, "in plan") || strings.Contains(text, "message from rank"))
								if !apart {
									t.Errorf("K = %d, %s, %s, known %v: %s", k, c.algorithm, name, known, text)
								}
							}
							if took := time.Since(start); took > time.Second {
								t.Errorf("K = %d, %s, %s, known %v: took %v", k, c.algorithm, name, known, took)
							}
						})
					}
				}
			}
		}
	}
}

// TestAbortBetween has a run fail between runs of an encoder: on this group all later runs fail,
// and on another one it agrees anew.
func TestAbortBetween(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	e := mustEncoder(t, matrixtest.Random(t, f, 3, 1), volley.WithPacketBytes(8), volley.WithTimeout(time.Minute))
	for range 3 {
		group := localGroup(3)
		for run, packet := range [][]byte{{1, 1}, {1, 0}, {255, 255}, {1, 0}, {1, 0}} { // the third is no symbol
			for r, err := range together(group, func(tr transport.Transport) error {
				mine := []byte{1, 0}
				if tr.Rank() == 1 && run > 0 {
					mine = packet
				}
				_, _, err := e.Encode(t.Context(), tr, mine)
				return err
			}) {
				if (err != nil) != (run >= 2) || run == 2 && !strings.Contains(err.Error(), "symbol 65535 at byte 0 is outside the field 257") {
					t.Errorf("run %d, rank %d: %v", run, r, err)
				}
			}
		}
	}
}

// TestManyTransports has one encoder run on more groups in turns than it keeps, and on two at the
// same time.
func TestManyTransports(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 3, 1)
	e := mustEncoder(t, a, volley.WithPacketBytes(100))
	packets := randomPackets(a.Field(), 100, 10, 0)
	want := product(a, packets)
	run := func(group []transport.Transport) {
		for r, err := range together(group, func(tr transport.Transport) error {
			coded, _, err := e.Encode(context.Background(), tr, packets[tr.Rank()])
			if err == nil && !bytes.Equal(coded, want[tr.Rank()]) {
				err = errors.New("a wrong packet")
			}
			return err
		}) {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	}
	var groups [][]transport.Transport
	for range 6 {
		groups = append(groups, localGroup(3))
	}
	for range 3 {
		for _, group := range groups {
			run(group)
		}
	}
	var both sync.WaitGroup
	for _, group := range groups[:2] {
		both.Go(func() {
			for range 50 {
				run(group)
			}
		})
	}
	both.Wait()
}

// TestLaterFaults strikes every message of three runs of one encoder: it is lost, comes twice,
// or has a bit flipped. Nobody returns a wrong packet, and nobody waits past the timeout.
func TestLaterFaults(t *testing.T) {
	const k = 3
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), k, 1)
	packets := randomPackets(a.Field(), 70, 65, 66)
	want := product(a, packets)
	for name, fault := range map[string]func(faulty.Pick) faulty.Fault{
		"drop": faulty.Drop, "duplicate": faulty.Duplicate,
		"flip first": func(p faulty.Pick) faulty.Fault { return faulty.Flip(p, 0, 3, 3) },
		"flip later": func(p faulty.Pick) faulty.Fault { return faulty.Flip(p, 1, 3, 3) },
	} {
		for src := range k {
			struck := 0
			for send := 0; send < 40; send++ {
				synctest.Test(t, func(t *testing.T) {
					group := localGroup(k)
					bad := faulty.New(group[src], fault(faulty.Nth(send)))
					group[src] = bad
					e := mustEncoder(t, a, volley.WithPacketBytes(70), volley.WithTimeout(time.Minute))
					failed := false
					start := time.Now()
					for run := range 3 {
						errs := together(group, func(tr transport.Transport) error {
							coded, _, err := e.Encode(t.Context(), tr, packets[tr.Rank()])
							if err == nil && !bytes.Equal(coded, want[tr.Rank()]) {
								t.Errorf("%s of send %d of rank %d: rank %d returns a wrong packet in run %d", name, send, src, tr.Rank(), run)
							}
							return err
						})
						failed = failed || errors.Join(errs...) != nil
					}
					if bad.Idle() == 0 {
						struck++
						if !failed && name != "duplicate" {
							t.Errorf("%s of send %d of rank %d: nobody noticed", name, send, src)
						}
					} else if failed {
						t.Errorf("%s of send %d of rank %d, which there is not: a run failed", name, send, src)
					}
					if took := time.Since(start); took > 2*time.Minute {
						t.Errorf("%s of send %d of rank %d: took %v", name, send, src, took)
					}
				})
			}
			if struck < 3 {
				t.Errorf("%s: %d messages of rank %d struck", name, struck, src)
			}
		}
	}
}

// A countedMatrix counts how often it is asked for an entry.
type countedMatrix struct {
	matrix.Matrix
	asked *atomic.Int64
}

func (m countedMatrix) At(i, j int) field.Element {
	m.asked.Add(1)
	return m.Matrix.At(i, j)
}

// TestEntriesAreKept has later runs of an encoder ask for no entry of a matrix that is dear to evaluate.
func TestEntriesAreKept(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	a := countedMatrix{matrixtest.Random(t, f, 5, 1), new(atomic.Int64)}
	e, group := mustEncoder(t, a), localGroup(5)
	for run := range 3 {
		before := a.asked.Load()
		for r, err := range together(group, func(tr transport.Transport) error {
			_, _, err := e.Encode(t.Context(), tr, make([]byte, 8))
			return err
		}) {
			if err != nil {
				t.Errorf("run %d, rank %d: %v", run, r, err)
			}
		}
		if asked := a.asked.Load() - before; (asked == 0) != (run > 0) {
			t.Errorf("run %d asks for %d entries", run, asked)
		}
	}
}
