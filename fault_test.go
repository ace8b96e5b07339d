package volley_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley"
	"volley/algo"
	"volley/collective"
	"volley/executor"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/faulty"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/matrix/matrixtest"
	"volley/transport"
	"volley/transport/local"
	"volley/verify"
)

// TestDisagreement starts one processor, or a few, with something else.
func TestDisagreement(t *testing.T) {
	const k = 5
	bytes8 := fieldtest.Parse(t, "2^8")
	same := member{matrix: matrixtest.Random(t, bytes8, k, 1), packet: make([]byte, 100), opts: []volley.Option{volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau)}}
	with := func(opts ...volley.Option) member {
		m := same
		m.opts = append(slices.Clone(same.opts), opts...)
		return m
	}
	other := func(f string, seed uint64) member {
		m := same
		m.matrix = matrixtest.Random(t, fieldtest.Parse(t, f), k, seed)
		return m
	}
	for _, c := range []struct {
		other member
		in    []string
	}{
		{other("2^8:0x11b", 1), []string{"field"}},
		{other("257", 1), []string{"field"}},
		{other("2^8", 2), []string{"matrix"}},
		{member{matrix: matrix.DenseOf(same.matrix), packet: same.packet, opts: same.opts}, []string{"matrix"}}, // equal, but by another name
		{other("2^16", 3), []string{"field", "matrix"}},
		{with(volley.WithPaperModel(1, volley.DefaultBeta, volley.DefaultTau)), []string{"ports"}},
		{with(volley.WithNetwork(volley.DefaultNetwork())), []string{"model"}},
		{with(volley.WithWholePackets()), []string{"whole packets"}},
		{with(volley.WithAlgorithm("universal")), []string{"algorithm"}},
		{with(volley.WithMemory(1 << 20)), []string{"memory"}},
		{with(volley.WithCheck(false)), []string{"check"}},
		{with(volley.WithPaperModel(3, volley.DefaultBeta, volley.DefaultTau), volley.WithAlgorithm("bruck-allgather"), volley.WithMemory(1<<20), volley.WithCheck(false)), []string{"ports", "algorithm", "memory", "check"}},
	} {
		for _, who := range [][]int{{0}, {3}, {0, 4}, {1, 2}} {
			synctest.Test(t, func(t *testing.T) {
				members := slices.Repeat([]member{same}, k)
				for _, i := range who {
					members[i] = c.other
				}
				with := 0
				if who[0] == 0 {
					with = 1
				}
				for i, r := range encode(t.Context(), members) {
					var got *volley.DisagreementError
					if !errors.As(r.err, &got) || !slices.Equal(got.Ranks, who) || got.Reference != with || !slices.Equal(names(got), c.in) {
						t.Errorf("%v: rank %d: got error %v, want ranks %v to differ from %d in %q", who, i, r.err, who, with, c.in)
					}
					if errors.As(r.err, new(*transport.AbortError)) {
						t.Errorf("%v: processor %d only heard of it: %v", who, i, r.err)
					}
				}
			})
		}
	}
	for _, c := range []struct {
		err  volley.DisagreementError
		text string
	}{
		{
			volley.DisagreementError{Ranks: []int{3}, Reference: 0, Differences: []collective.Difference{{Term: collective.Term{Name: "matrix"}}}},
			"volley: rank 3 differs from rank 0 in matrix: give all the same",
		},
		{
			volley.DisagreementError{Ranks: []int{0, 3, 12}, Reference: 1, Differences: []collective.Difference{
				{Term: collective.Term{Name: "field", Value: "257"}, Expected: "2^8"}, {Term: collective.Term{Name: "ports", Value: "2"}, Expected: "1"},
			}},
			"volley: ranks 0, 3, 12 differ from rank 1 in field (257, not 2^8), ports (2, not 1): give all the same",
		},
	} {
		if got := c.err.Error(); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
	}
}

// names returns what ranks differ in.
func names(e *volley.DisagreementError) (list []string) {
	for _, x := range e.Differences {
		list = append(list, x.Name)
	}
	return list
}

// TestNoDisagreement gives processors different options that are to be equal in
// effect.
func TestNoDisagreement(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 3, 1)
	packets := randomPackets(a.Field(), 5, 5, 5)
	members := alike(a, packets)
	for k, opts := range [][]volley.Option{
		{volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau), volley.WithTimeout(time.Hour)},
		{volley.WithPaperModel(3, volley.DefaultBeta, volley.DefaultTau), volley.WithTimeout(time.Minute)},
		{volley.WithPaperModel(math.MaxInt, volley.DefaultBeta, volley.DefaultTau)},
	} {
		members[k].opts = opts
	}
	coded, _ := mustEncode(t, members)
	for j, want := range product(a, packets) {
		if !bytes.Equal(coded[j], want) {
			t.Errorf("processor %d: got %x, want %x", j, coded[j], want)
		}
	}
}

// sends returns the picks of the messages of the run itself that the processor sends.
func sends(t *testing.T, members []member, proc int) (data []faulty.Pick) {
	t.Helper()
	encoder, err := volley.NewEncoder(t.Context(), members[0].matrix, members[0].opts...)
	if err != nil {
		t.Fatal(err)
	}
	run, err := encoder.Plan(t.Context(), nil, int64(len(members[0].packet)/members[0].matrix.Field().SymbolBytes()))
	if err != nil {
		t.Fatal(err)
	}
	for number, round := range run.Schedule(proc).Rounds {
		for _, s := range round.Sends {
			data = append(data, faulty.SendsTo(s.Dst, transport.Tag{Round: transport.ControlRounds + number, Port: s.Port}))
		}
	}
	return data
}

// TestFlippedData flips a bit in every message of a run, one at a time. Without
// the check the result is wrong at some processors and none notices; with it,
// these are the ones that say so.
func TestFlippedData(t *testing.T) {
	const k, symbols = 5, 150
	for _, name := range []string{"2^8", "257", "3^4"} {
		f := fieldtest.Parse(t, name)
		a, err := matrix.Cauchy(f, k, k) // no entry is zero: nothing gets lost
		if err != nil {
			t.Fatal(err)
		}
		packets := randomPackets(f, symbols, symbols, symbols, symbols, symbols)
		want := product(a, packets)
		for _, algorithm := range algo.Algorithms() {
			if algorithm.Structured {
				continue
			}
			t.Run(name+"/"+algorithm.Name, func(t *testing.T) {
				for src := range k {
					members := func(check bool) []member {
						return alike(a, packets, volley.WithAlgorithm(algorithm.Name), volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau), volley.WithCheck(check))
					}
					for i, pick := range sends(t, members(true), src) {
						struck := func(check bool) []result {
							m := members(check)
							last := f.SymbolBytes() * (symbols - 1 - 7*i)
							// Part 0 may be the header.
							m[src].faults = []faulty.Fault{
								faulty.Flip(pick, 1, last, 0),
							}
							results := encode(t.Context(), m)
							if results[src].idle > 0 { // a message of one part
								m[src].faults = []faulty.Fault{faulty.Flip(pick, 0, last, 0)}
								results = encode(t.Context(), m)
								if results[src].idle > 0 {
									t.Fatalf("never struck: %d of %d faults", results[src].idle, len(m[src].faults))
								}
							}
							return results
						}
						unchecked := struck(false)
						for j, r := range unchecked {
							if r.err != nil {
								t.Fatalf("unchecked: processor %d: %v", j, r.err)
							}
						}
						spoilt := wrong(unchecked, want)
						if len(spoilt) == 0 {
							t.Fatalf("send %d of processor %d does not matter", i, src)
						}
						caught := false
						for j, r := range struck(true) {
							var check *verify.CheckError
							switch aborted := new(transport.AbortError); {
							case r.err == nil:
								t.Errorf("send %d of processor %d: processor %d noticed nothing", i, src, j)
							case errors.As(r.err, &aborted):
								if !errors.As(r.err, &check) || !spoilt[aborted.Rank] {
									t.Errorf("send %d of processor %d: processor %d: %v", i, src, j, r.err)
								}
							case !errors.As(r.err, &check) || check.Proc != j || !spoilt[j]:
								t.Errorf("send %d of processor %d: processor %d: %v; the wrong ones are %v", i, src, j, r.err, spoilt)
							default:
								caught = true
							}
						}
						if !caught {
							t.Errorf("send %d of processor %d: no processor says that its packet is wrong", i, src)
						}
					}
				}
			})
		}
	}
}

// TestFlippedSinks flips a bit in every message of runs with sources and sinks, of
// packets in pieces, and of fused layers: the check notices each.
func TestFlippedSinks(t *testing.T) {
	const symbols = 1024
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		algorithm string
		k, r      int
		opts      []volley.Option
	}{
		{"sinks", 6, 2, nil},
		{"sinks", 4, 2, []volley.Option{volley.WithSeparateSinks()}},
		{"helpers", 6, 1, nil},
		{"exchange", 4, 2, nil},
		{"exchange", 4, 4, nil},
		{"cauchy", 8, 8, []volley.Option{volley.WithPaperModel(1, volley.DefaultBeta, 1)}}, // it has layers with zeros
	} {
		a, err := matrices.Spec{Family: "cauchy"}.Build(f, c.k, c.r)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%s/K=%d/R=%d", c.algorithm, c.k, c.r), func(t *testing.T) {
			opts := append([]volley.Option{volley.WithAlgorithm(c.algorithm)}, c.opts...)
			encoder, err := volley.NewEncoder(t.Context(), a, opts...)
			if err != nil {
				t.Fatal(err)
			}
			n := encoder.Problem().Processors()
			lengths := make([]int, n)
			for k := range c.k {
				lengths[k] = symbols
			}
			packets := randomPackets(f, lengths...)
			right := encode(t.Context(), alike(a, packets, opts...))
			struck, harmless := 0, 0
			for src := range n {
				for i, pick := range sends(t, alike(a, packets, opts...), src) {
					m := alike(a, packets, opts...)
					var results []result
					for part := 1; part >= 0; part-- { // part 0 may be the header
						m[src].faults = []faulty.Fault{faulty.Flip(pick, part, 3, 5)}
						if results = encode(t.Context(), m); results[src].idle == 0 {
							break
						}
					}
					if results[src].idle > 0 {
						t.Fatalf("send %d of processor %d: never struck", i, src)
					}
					struck++
					if c.algorithm == "cauchy" && !slices.ContainsFunc(results, func(r result) bool { return r.err != nil }) {
						harmless++ // its receiver multiplies it by 0
						for j, r := range results {
							if !bytes.Equal(r.coded, right[j].coded) {
								t.Errorf("send %d of processor %d: processor %d noticed nothing, and its packet is wrong", i, src, j)
							}
						}
						continue
					}
					for j, r := range results {
						if r.err == nil {
							t.Errorf("send %d of processor %d: processor %d noticed nothing", i, src, j)
						}
					}
				}
			}
			if struck == 0 || harmless > struck/2 {
				t.Errorf("%d messages were struck, and %d of these did no harm", struck, harmless)
			}
		})
	}
}

// TestInvalidData changes a symbol on its way to one that is no element, but is
// congruent to what it was, in a message that is a coded packet already.
func TestInvalidData(t *testing.T) {
	for _, c := range []struct {
		field string
		bits  [][2]int // byte and bit
	}{
		{"257", [][2]int{{0, 0}, {1, 0}}}, // + 257
		{"2", [][2]int{{0, 0}, {0, 1}}},   // 0 to X+1
	} {
		t.Run(c.field, func(t *testing.T) {
			f := fieldtest.Parse(t, c.field)
			a := matrix.NewDense(f, 2, 2) // all packets coded are zero
			for _, check := range []bool{false, true} {
				members := alike(a, randomPackets(f, 5, 5), volley.WithAlgorithm("exchange"), volley.WithCheck(check))
				data := sends(t, members, 0)
				for _, bit := range c.bits {
					members[0].faults = append(members[0].faults, faulty.Flip(data[len(data)-1], 0, bit[0], bit[1]))
				}
				results := encode(t.Context(), members)
				if results[0].idle > 0 {
					t.Fatalf("never struck: %d of %d faults", results[0].idle, len(members[0].faults))
				}
				if check {
					if err := results[1].err; !errors.As(err, new(*verify.CheckError)) {
						t.Errorf("got error %v", err)
					}
				} else if f.FirstInvalid(results[1].coded) != 0 {
					t.Errorf("got %x", results[1].coded)
				}
			}
		})
	}
}

// TestFlippedDataOfMany is the same where the ranks add up what is wrong: of many processors, and of matrices that are
// products of layers.
func TestFlippedDataOfMany(t *testing.T) {
	for _, c := range []struct {
		field, family string
		k             int
	}{{"2^8", "random", 66}, {"257", "dft", 16}} {
		f := fieldtest.Parse(t, c.field)
		a, err := matrices.Spec{Family: c.family, Argument: map[string]string{"random": "1"}[c.family]}.Build(f, c.k, c.k)
		if err != nil {
			t.Fatal(err)
		}
		packets := randomPackets(f, slices.Repeat([]int{9}, c.k)...)
		want := product(a, packets)
		for _, ranks := range []int{c.k, 5, 1} {
			for _, check := range []bool{false, true} {
				members := alike(a, packets, volley.WithAlgorithm("universal"), volley.WithPaperModel(2, volley.DefaultBeta, volley.DefaultTau), volley.WithCheck(check))
				if ranks < c.k { // several processors at a rank: nothing is flipped
					hosted(t, members, ranks, want)
					continue
				}
				pick := sends(t, members, 3)[0]
				members[3].faults = []faulty.Fault{faulty.Flip(pick, 1, f.SymbolBytes(), 0)}
				results := encode(t.Context(), members)
				if results[3].idle > 0 {
					t.Fatalf("%s: never struck", c.field)
				}
				spoilt, caught := wrong(results, want), 0
				for j, r := range results {
					switch failed, aborted := new(verify.CheckError), new(transport.AbortError); {
					case !check:
						if r.err != nil || len(spoilt) == 0 {
							t.Errorf("%s: unchecked: processor %d: %v; %d are wrong", c.field, j, r.err, len(spoilt))
						}
					case !errors.As(r.err, &failed) || want[failed.Proc] == nil:
						t.Errorf("%s: processor %d: %v", c.field, j, r.err)
					case !errors.As(r.err, &aborted):
						if caught++; failed.Proc != j {
							t.Errorf("%s: processor %d: %v", c.field, j, r.err)
						}
					}
				}
				if check && caught == 0 {
					t.Errorf("%s: no processor says that its packet is wrong", c.field)
				}
			}
		}
	}
}

// hosted runs the members at fewer ranks, and compares.
func hosted(t *testing.T, members []member, ranks int, want [][]byte) {
	t.Helper()
	e, err := volley.NewEncoder(t.Context(), members[0].matrix, members[0].opts...)
	if err != nil {
		t.Fatal(err)
	}
	coded := make([][]byte, len(members))
	if err := local.Run(t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
		first, end := executor.Hosted(len(members), tr.Rank(), ranks)
		var packets []volley.Packet
		for k := first; k < end; k++ {
			packets = append(packets, volley.Packet{Data: members[k].packet, Result: &coded[k]})
		}
		_, err := e.Run(ctx, tr, packets...)
		return err
	}); err != nil {
		t.Error(err)
	}
	for k := range coded {
		if !bytes.Equal(coded[k], want[k]) {
			t.Errorf("%d ranks: processor %d: %x, want %x", ranks, k, coded[k], want[k])
		}
	}
}

// TestFlippedHeader flips a bit of the plan's hash.
func TestFlippedHeader(t *testing.T) {
	members := alike(matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 2, 1), [][]byte{{1}, {2}})
	members[0].faults = []faulty.Fault{faulty.Flip(sends(t, members, 0)[0], 0, 31, 7)}
	want := collective.OtherPlan(0, 1)
	for k, r := range encode(t.Context(), members) {
		var got *volley.DisagreementError
		if !errors.As(r.err, &got) || !reflect.DeepEqual(error(got), want) {
			t.Errorf("processor %d: got error %v, want %v", k, r.err, want)
		}
	}
}

// TestFlippedControl flips a bit in every byte of everything that a processor
// sends. Whatever comes of it, nobody returns a wrong packet without an error.
func TestFlippedControl(t *testing.T) {
	const k = 3
	f := fieldtest.Parse(t, "2^8")
	a := matrixtest.Random(t, f, k, 1)
	packets := randomPackets(f, 70, 65, 66)
	want := product(a, packets)
	for src := range k {
		struck, failed := 0, 0
		for send := 0; ; send++ {
			parts := 0
			for part := 0; ; part++ {
				offset := 0
				for ; ; offset++ {
					members := alike(a, packets)
					members[src].faults = []faulty.Fault{faulty.Flip(faulty.Nth(send), part, offset, (offset+send)%8)}
					results := encode(t.Context(), members)
					if results[src].idle > 0 {
						break
					}
					struck++
					for j, r := range results {
						if r.err != nil {
							failed++
						} else if !bytes.Equal(r.coded, want[j]) || !r.report.Verified {
							t.Errorf("byte %d of part %d of send %d of processor %d: processor %d returns a wrong packet", offset, part, send, src, j)
						}
					}
				}
				if offset == 0 {
					break
				}
				parts++
			}
			if parts == 0 && send > 4 { // the last ones are the barrier's
				break
			}
		}
		if struck < 300 || failed < 2*struck {
			t.Errorf("processor %d: %d flips, %d failures", src, struck, failed)
		}
	}
}

// TestHangAndDie stops a processor at every point of a run.
func TestHangAndDie(t *testing.T) {
	const k, timeout = 5, 10 * time.Second
	f := fieldtest.Parse(t, "2^8")
	a := matrixtest.Random(t, f, k, 1)
	packets := randomPackets(f, 100, 100, 100, 100, 100)
	for name, stop := range map[string]func(int) faulty.Fault{"hang": faulty.Hang, "die": faulty.Die} {
		for _, round := range []int{0, 1, transport.ControlRounds} { // the greeting, the check, the run
			synctest.Test(t, func(t *testing.T) {
				members := alike(a, packets, volley.WithTimeout(timeout))
				members[2].faults = []faulty.Fault{stop(round)}
				start := time.Now()
				for j, r := range encode(t.Context(), members) {
					switch {
					case r.err == nil:
						t.Errorf("%s in round %d: processor %d noticed nothing", name, round, j)
					case j != 2 && (!errors.Is(r.err, executor.ErrTimeout) || !strings.Contains(r.err.Error(), "timed out: nothing for 10s")):
						t.Errorf("%s in round %d: processor %d: %v", name, round, j, r.err)
					}
				}
				if took := time.Since(start); took != timeout {
					t.Errorf("%s in round %d: took %v, want %v", name, round, took, timeout)
				}
			})
		}
	}
}

// TestDropped loses each message of a run, one at a time.
func TestDropped(t *testing.T) {
	const k = 4
	f := fieldtest.Parse(t, "2^8")
	a := matrixtest.Random(t, f, k, 1)
	packets := randomPackets(f, 10, 10, 10, 10)
	want := product(a, packets)
	for i := 0; ; i++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			members := alike(a, packets)
			members[1].faults = []faulty.Fault{faulty.Drop(faulty.Nth(i))}
			results := encode(t.Context(), members)
			done = results[1].idle > 0
			failed := 0
			for j, r := range results {
				if r.err != nil {
					failed++
				} else if !bytes.Equal(r.coded, want[j]) {
					t.Errorf("processor %d returns a wrong packet", j)
				}
			}
			if !done && failed == 0 {
				t.Errorf("send %d lost and nobody noticed", i)
			}
		})
		if done {
			break
		}
	}
}

func TestCancel(t *testing.T) {
	enough := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(enough) })
		a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 4, 1)
		members := alike(a, make([][]byte, 4), volley.WithTimeout(0))
		members[3].faults = []faulty.Fault{faulty.Hang(transport.ControlRounds)}
		for j, r := range encode(ctx, members) {
			if !errors.Is(r.err, enough) {
				t.Errorf("processor %d: got error %v", j, r.err)
			}
		}
	})
}

// liar is a matrix with a wrong entry under the right ID, as when memory fails.
type liar struct {
	matrix.Matrix
	i, j int
}

func (l liar) At(i, j int) field.Element {
	e := l.Matrix.At(i, j)
	if i == l.i && j == l.j {
		return l.Field().Add(e, field.One)
	}
	return e
}

// TestWrongSum has one processor weigh its packet by a wrong entry in the check alone. So many processors compare sums: the
// sum is wrong, and no packet is, which is no success.
func TestWrongSum(t *testing.T) {
	const k, liarRank = 65, 3
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), k, 1)
	packets := randomPackets(a.Field(), slices.Repeat([]int{9}, k)...)
	members := alike(a, packets, volley.WithAlgorithm("universal"))
	members[liarRank].matrix = liar{a, liarRank, 40} // which its program does without
	for rank, r := range encode(t.Context(), members) {
		if r.err == nil || !strings.Contains(r.err.Error(), "the check fails, but not by the entries of the matrix") {
			t.Errorf("rank %d: %v", rank, r.err)
		}
	}
}

// TestWrongCoefficient checks that the check does not go by the plan: where others
// compute with a wrong entry, the processor whose packet that makes wrong says so.
func TestWrongCoefficient(t *testing.T) {
	const k, victim = 5, 3
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), k, 1)
	packets := randomPackets(a.Field(), 9, 9, 9, 9, 9)
	want := product(a, packets)[victim]
	for _, name := range []string{"universal:2,3", "exchange"} { // others use entries of theirs
		caught := 0
		for i := range k {
			members := alike(a, packets, volley.WithAlgorithm(name))
			for j := range members {
				if j != victim {
					members[j].matrix = liar{a, i, victim}
				}
			}
			r := encode(t.Context(), members)[victim]
			if r.err == nil {
				if !bytes.Equal(r.coded, want) {
					t.Errorf("%s: wrong entry (%d, %d): not caught", name, i, victim)
				}
				continue
			}
			caught++
			var check *verify.CheckError
			if !errors.As(r.err, &check) || check.Proc != victim {
				t.Errorf("%s: got error %v", name, r.err)
			}
			if text := r.err.Error(); strings.Count(text, "coded packet of processor 3") != 1 {
				t.Errorf("%s: the error is %q", name, text)
			}
		}
		if caught == 0 {
			t.Errorf("%s: nobody uses the wrong entries", name)
		}
	}
}
