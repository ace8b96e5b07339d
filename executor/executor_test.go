package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"volley/algo/algotest"
	"volley/executor"
	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/race"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// A planned matrix is a plan and what it computes.
type planned struct {
	name  string
	plan  plan.Plan
	a     matrix.Matrix
	ranks []int
}

// plans are those of all algorithms, for few and for many processors and ports, and some by hand.
func plans(t *testing.T) (list []planned) {
	for _, name := range []string{"2^8", "2^16", "257", "97"} {
		f := fieldtest.Parse(t, name)
		for _, k := range []int{1, 2, 5, 8, 13} {
			a := randomMatrix(t, f, k)
			for _, algorithm := range []string{"universal", "prepare-and-shoot", "bruck-allgather", "exchange"} {
				for _, ports := range []int{1, 3} {
					if ports >= k && k > 1 || algorithm == "exchange" && k == 1 {
						continue
					}
					list = append(list, planned{fmt.Sprint(algorithm, " ", name, " K=", k, " p=", ports), compile(t, algorithm, a, ports), a, []int{k, 1, (k + 1) / 2}})
				}
			}
		}
		few := matrix.DenseOf(randomMatrix(t, f, 12)) // columns have one entry or none
		for i := range 12 {
			for j := range 3 {
				few.Set(i, 4*j, field.Element{})
			}
		}
		few.Set(7, 0, field.One)
		few.Set(2, 4, f.Generator())
		list = append(list, planned{"few entries " + name, compile(t, "universal", few, 1), few, []int{1, 5}})
		for _, p := range []plan.Plan{relay(f), twice(f)} {
			n := p.Info().Processors
			list = append(list, planned{p.Info().Algorithm + " " + name, p, transferMatrix(t, p), []int{1, (n + 1) / 2, n}})
		}
	}
	for _, c := range []struct {
		algorithm, field, matrix string
		k                        int
	}{
		{"additive-fft", "2^16", "lch", 64}, {"additive-fft", "2^8", "lch", 32}, {"dft", "257", "dft", 64}, {"dft", "goldilocks", "dft", 32},
		{"dft", "bls12-381", "dft", 16}, {"folded-lagrange", "257", "lagrange", 64}, {"cauchy", "2^16", "cauchy", 32},
	} {
		a, err := matrices.Spec{Family: c.matrix}.Build(fieldtest.Parse(t, c.field), c.k, c.k)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, planned{c.algorithm + " " + c.field, algotest.Compile(t, c.algorithm, c.field, c.matrix, c.k, 1), a, []int{1, 5}})
	}
	return list
}

// TestRuns runs plans at some ranks and at one each, on packets of any length in segments of any, in memory and behind
// readers, over a transport that spoils what is yet to be received and gathers all it may. The results are the product; what
// was sent is what the plan says, with a header to each partner; what is read, seen and written comes in ascending order.
func TestRuns(t *testing.T) {
	for n, x := range plans(t) {
		t.Run(x.name, func(t *testing.T) {
			f := x.plan.Info().Field
			rows, size := x.a.Rows(), f.SymbolBytes()
			for number, c := range []struct{ symbols, segment, align int }{
				{0, 1, 0}, {1, 1, 0}, {13, 13, 0}, {13, 100, 0}, {13, 5, 0}, {100, 16, 1}, {263, 24, 8}, {263, 60, 0},
			} {
				if (x.a.Rows() > 13 || race.Enabled) && number%3 != 1 { // takes long
					continue
				}
				lengths := equal(rows, c.symbols)
				if rows > 2 {
					lengths[1], lengths[rows-1] = c.symbols/3, 0
				}
				packets := randomPackets(f, uint64(number), lengths...)
				want := product(x.a, packets, c.symbols)
				pieces := x.plan.Info().PieceCount()
				c.segment = (c.segment + pieces*max(1, c.align) - 1) / (pieces * max(1, c.align)) * pieces * max(1, c.align)
				for _, ranks := range x.ranks {
					r := &run{plan: x.plan, packets: packets, ranks: ranks, bytes: c.symbols * size, segment: c.segment * size, inMemory: (n+number)%3 == 0}
					seen := r.observe(c.align * size)
					var ends []*watched
					r.wrap = func(below transport.Transport) transport.Transport {
						ends = append(ends, newWatched(t, gathering{below}))
						return ends[len(ends)-1]
					}
					synctest.Test(t, func(t *testing.T) { r.mustDo(t) })
					r.check(t, want)
					r.checkTraffic(t, c.align*size)
					r.checkSeen(t, seen, ranks)
					for rank, end := range ends {
						if end.open != 0 {
							t.Errorf("rank %d: %d transfers not ended", rank, end.open)
						}
					}
					if t.Failed() {
						t.Fatalf("%d ranks, %d symbols in segments of %d, aligned by %d", ranks, c.symbols, c.segment, c.align)
					}
				}
			}
		})
	}
}

// sightings are what a job was shown: of each processor the inputs and outputs, and headers by source.
type sightings struct {
	mu    sync.Mutex
	shown [][2][][]byte
	heard []map[int]int // by rank
}

const greeting = "who goes there?"

// observe notes what jobs are shown, and gives them a header.
func (r *run) observe(align int) *sightings {
	pieces := r.plan.Info().PieceCount()
	s := &sightings{shown: make([][2][][]byte, r.plan.Info().Processors), heard: make([]map[int]int, r.plan.Info().Processors)}
	r.job = func(rank int, job *executor.Job) {
		job.Align, job.Header = int64(align), []byte(greeting)
		heard := map[int]int{}
		s.heard[rank] = heard
		job.Accept = func(src int, got []byte) error {
			if heard[src]++; string(got) != greeting {
				return fmt.Errorf("header %q", got)
			}
			return nil
		}
		job.Observe = func(proc int, inputs, outputs [][]byte) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for side, list := range [][][]byte{inputs, outputs} {
				if s.shown[proc][side] == nil {
					s.shown[proc][side] = make([][]byte, len(list)/pieces)
				}
				for i, part := range list {
					s.shown[proc][side][i/pieces] = append(s.shown[proc][side][i/pieces], part...)
				}
			}
			return nil
		}
	}
	return s
}

// checkSeen compares what was shown with the packets, and headers with the partners.
func (r *run) checkSeen(t *testing.T, s *sightings, ranks int) {
	t.Helper()
	k := r.plan.Info().Processors
	partners := make([]map[int]int, ranks)
	packets := r.packets
	for proc := range k {
		rank := executor.RankOf(proc, k, ranks)
		if partners[rank] == nil {
			partners[rank] = map[int]int{}
		}
		for _, round := range r.plan.Schedule(proc).Rounds {
			for _, recv := range round.Recvs {
				if src := executor.RankOf(recv.Src, k, ranks); src != rank {
					partners[rank][src] = 1
				}
			}
		}
		for _, got := range s.shown[proc][0] {
			padded := append(bytes.Clone(packets[0]), make([]byte, r.bytes-len(packets[0]))...)
			if packets = packets[1:]; !bytes.Equal(got, padded) {
				t.Errorf("processor %d: shown %x, want %x", proc, got, padded)
			}
		}
		for o, got := range s.shown[proc][1] {
			if !bytes.Equal(got, r.outputs[proc][o].data) {
				t.Errorf("processor %d: shown %x of output %d, want %x", proc, got, o, r.outputs[proc][o].data)
			}
		}
	}
	for rank := range ranks {
		if !reflect.DeepEqual(s.heard[rank], partners[rank]) {
			t.Errorf("rank %d heard headers %v, want %v", rank, s.heard[rank], partners[rank])
		}
	}
}

// checkTraffic compares what was counted with the cost of the plan. Pieces are filled up to whole units.
func (r *run) checkTraffic(t testing.TB, align int) {
	t.Helper()
	cost := sim.Count(r.plan)
	pieces, unit := r.plan.Info().PieceCount(), max(align, r.plan.Info().Field.SymbolBytes())
	segments, element := 0, 0 // bytes of an element in all segments
	for left := r.bytes; left > 0 || segments == 0; left -= r.segment {
		n := min(left, r.segment)
		if pieces > 1 {
			n = ((n+pieces-1)/pieces + unit - 1) / unit * unit
		}
		element += n
		segments++
	}
	rounds := make([]plan.RoundTraffic, len(cost.Rounds))
	for proc, traffic := range r.traffic {
		program, err := r.plan.Program(proc)
		if err != nil {
			t.Fatal(err)
		}
		want := executor.Traffic{
			Rounds: make([]plan.RoundTraffic, len(program.Rounds)), MultiplyAdds: program.Terms(), Segments: segments, HeaderBytes: traffic.HeaderBytes,
		}
		partners := map[int]bool{}
		for n, round := range program.Rounds {
			for _, send := range round.Sends {
				partners[send.Dst] = true
				want.Bytes += int64(len(send.Slots) * element)
				want.Rounds[n].Messages++
				want.Rounds[n].Largest = max(want.Rounds[n].Largest, len(send.Slots))
			}
			rounds[n].Messages += traffic.Rounds[n].Messages
			rounds[n].Largest = max(rounds[n].Largest, traffic.Rounds[n].Largest)
		}
		if len(r.errs) == len(r.traffic) {
			want.HeaderBytes = int64(len(partners) * len(greeting))
		}
		if !reflect.DeepEqual(*traffic, want) {
			t.Errorf("processor %d: traffic %+v, want %+v", proc, *traffic, want)
		}
	}
	if !reflect.DeepEqual(rounds, cost.Rounds) {
		t.Errorf("rounds %+v, want %+v", rounds, cost.Rounds)
	}
}

// TestLong has packets so long that goroutines of several cores share them, at the only rank. Outputs are sums, and copies of
// inputs. All inputs and outputs are shown, every byte once.
func TestLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const k, symbols = 4, 70_000
	enough := errors.New("enough")
	for _, name := range []string{"2^8", "257"} {
		f := fieldtest.Parse(t, name)
		copies := matrix.NewDense(f, k, k)
		for j := range k {
			copies.Set(j/2, j, field.One)
		}
		packets := randomPackets(f, 1, equal(k, symbols)...)
		for _, a := range []matrix.Matrix{randomMatrix(t, f, k), copies} {
			want := product(a, packets, symbols)
			for _, algorithm := range []string{"universal", "exchange"} {
				for _, segment := range []int{symbols, 20_000} {
					r := &run{plan: compile(t, algorithm, a, 1), packets: packets, bytes: symbols * f.SymbolBytes(), segment: segment * f.SymbolBytes(), ranks: 1, inMemory: segment == symbols}
					var mu sync.Mutex
					seen := 0
					r.job = func(_ int, job *executor.Job) {
						job.ObserveAll = func(inputs, outputs [][]byte) error {
							mu.Lock()
							defer mu.Unlock()
							seen += len(inputs[0])
							for j, part := range product(a, inputs, min(50, len(inputs[0])/f.SymbolBytes())) {
								if !bytes.Equal(outputs[j][:len(part)], part) {
									t.Errorf("output %d is not what the inputs make it", j)
								}
							}
							return nil
						}
					}
					r.mustDo(t)
					r.check(t, want)
					if seen < r.bytes || seen > r.bytes+4*200*k { // and padding
						t.Errorf("%s over %s, segments of %d: %d bytes seen", algorithm, name, segment, seen)
					}
					r.job = func(_ int, job *executor.Job) {
						job.ObserveAll = func([][]byte, [][]byte) error { return enough }
					}
					if r.do(t.Context()); !errors.Is(r.errs[0], enough) {
						t.Errorf("%s over %s: %v", algorithm, name, r.errs[0])
					}
				}
			}
		}
	}
}

// TestInPlace checks that packets are cut at one rank only where a buffer or an observer
// needs it.
func TestInPlace(t *testing.T) {
	const k, size = 6, 5000
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		name     string
		change   func(job *executor.Job)
		segments int
	}{
		{"in memory", func(*executor.Job) {}, 1},
		{"a short packet", func(job *executor.Job) { job.Inputs[3].Memory = make([]byte, size-1) }, 5},
		{"a reader", func(job *executor.Job) { job.Inputs[3].Reader = endless{} }, 5},
		{"a writer", func(job *executor.Job) { job.Outputs[3].Writer = endless{} }, 5},
		{"an observer", func(job *executor.Job) { job.Observe = func(int, [][]byte, [][]byte) error { return nil } }, 5},
	} {
		r := &run{plan: compile(t, "universal", randomMatrix(t, f, k), 1), packets: randomPackets(f, 1, equal(k, size)...), ranks: 1, bytes: size, segment: 1000, inMemory: true}
		r.job = func(_ int, job *executor.Job) { c.change(job) }
		r.mustDo(t)
		if got := r.traffic[0].Segments; got != c.segments {
			t.Errorf("%s: %d segments, want %d", c.name, got, c.segments)
		}
	}
}

// TestSegmentBytes checks segments and what is wrong with memory, to the byte.
func TestSegmentBytes(t *testing.T) {
	whole := &plan.Materialized{Common: plan.Info{Algorithm: "whole"}, Programs: []*plan.Program{{}}}
	cut := &plan.Materialized{Common: plan.Info{Algorithm: "cut", Pieces: 4}, Programs: []*plan.Program{{}}}
	for _, c := range []struct {
		p                    plan.Plan
		slots                int
		bytes, memory, align int64
		want                 int64
		err                  string
	}{
		{whole, 3, 100, 300, 8, 104, ""}, // all of it, in whole units
		{whole, 3, 100, 299, 8, 96, ""},
		{whole, 3, 100, 24, 8, 8, ""},
		{whole, 3, 100, 23, 8, 0, "executor: 23 bytes of memory: whole holds up to 3 packets at a time and needs at least 24 bytes"},
		{whole, 3, 5, 14, 8, 0, "executor: 14 bytes of memory: whole holds up to 3 packets at a time and needs at least 15 bytes"},
		{whole, 3, 5, 15, 8, 8, ""},
		{whole, 0, 0, 1, 8, 8, ""},
		{whole, 0, 9, 9, 3, 9, ""},
		{cut, 10, 100, 250, 8, 4 * 32, ""}, // pieces of 25 bytes
		{cut, 10, 101, 260, 8, 4 * 32, ""}, // of 26
		{cut, 10, 101, 259, 8, 4 * 24, ""},
		{cut, 10, 101, 79, 8, 0, "executor: 79 bytes of memory: cut holds up to 3 packets at a time and needs at least 80 bytes"},
		{cut, 8, 101, 63, 8, 0, "executor: 63 bytes of memory: cut holds up to 2 packets at a time and needs at least 64 bytes"},
	} {
		got, err := executor.SegmentBytes(c.p, c.slots, c.bytes, c.memory, c.align)
		if got != c.want || (err != nil || c.err != "") && fmt.Sprint(err) != c.err {
			t.Errorf("%s, %d slots, %d bytes, memory %d, align %d: %d, %v; want %d, %q", c.p.Info().Algorithm, c.slots, c.bytes, c.memory, c.align, got, err, c.want, c.err)
		}
	}
}

// TestPrepareErrors checks what a plan and its user can get wrong.
func TestPrepareErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	p := compile(t, "universal", randomMatrix(t, f, 4), 1)
	deaf, short := twice(f), twice(f)
	deaf.Programs[1].Rounds[0].Recvs = nil
	short.Programs[1].Rounds[0].Recvs[0].Count = 1
	for _, c := range []struct {
		p           plan.Plan
		rank, ranks int
		want        string
	}{
		{p, 0, 0, "a plan for 4 processors at rank 0 of 0"},
		{p, 5, 6, "a plan for 4 processors at rank 5 of 6"},
		{p, 2, 2, "a plan for 4 processors at rank 2 of 2"},
		{p, -1, 2, "a plan for 4 processors at rank -1 of 2"},
		{noProgram{p}, 1, 2, "processor 2: program: no idea"},
		{deaf, 0, 1, "round 0: 1 messages that nobody receives: the plan is wrong"},
		{short, 0, 1, "processor 1: round 0: 1 elements from processor 0 on port 0, which sends 3: the plan is wrong"},
	} {
		if _, err := executor.Prepare(t.Context(), c.p, c.rank, c.ranks); err == nil || err.Error() != c.want {
			t.Errorf("rank %d of %d: got error %v, want %s", c.rank, c.ranks, err, c.want)
		}
	}
}

// noProgram is a plan whose programs cannot be made.
type noProgram struct{ plan.Plan }

func (noProgram) Program(int) (*plan.Program, error) { return nil, errors.New("no idea") }

// TestNoBarrier delays one of two messages of a round: what the other one lets be sent leaves
// before, and arrives before.
func TestNoBarrier(t *testing.T) {
	for _, late := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			f := fieldtest.Parse(t, "257")
			r := &run{plan: relay(f), packets: randomPackets(f, 1, 5, 5), bytes: 10, segment: 10}
			var mu sync.Mutex
			ended := map[int]time.Duration{}
			start := time.Now()
			r.job = func(rank int, job *executor.Job) {
				job.Observe = func(proc int, _, _ [][]byte) error {
					mu.Lock()
					defer mu.Unlock()
					ended[proc] = time.Since(start)
					return nil
				}
			}
			r.wrap = func(below transport.Transport) transport.Transport {
				if below.Rank() != late {
					return below
				}
				return delayed(below, time.Hour)
			}
			r.mustDo(t)
			prompt, delayed := 5-late, 2+late
			if ended[prompt] != 0 || ended[delayed] != time.Hour {
				t.Errorf("processor %d is late: processors ended after %v", late, ended)
			}
		})
	}
}

// slowPacket takes its time to be read.
type slowPacket time.Duration

func (s slowPacket) ReadAt(p []byte, offset int64) (int, error) {
	time.Sleep(time.Duration(s))
	return endless{}.ReadAt(p, offset)
}

// TestPipelinesOverlap checks, in virtual time, that reading and messages go on side by side: a
// run takes about as long as the longer of the two. A timeout bounds each wait, not their sum.
func TestPipelinesOverlap(t *testing.T) {
	const segments, wire = 10, 3 * time.Second // of a segment: one for each round
	for _, read := range []time.Duration{time.Second, 3 * time.Second, 6 * time.Second} {
		for _, ahead := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t)
				r.job = func(_ int, job *executor.Job) {
					job.Ahead, job.Timeout = ahead, 4*time.Second
					job.Inputs[0].Reader = slowPacket(read)
				}
				r.wrap = func(below transport.Transport) transport.Transport { return delayed(below, time.Second) }
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

// TestAllocations compares runs of few and of many segments: a segment allocates nothing
// where all processors live at one rank, and where they do not, only the transport does.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has pools forget")
	}
	const k = 8
	p := newRun(t).plan
	for _, ranks := range []int{1, 2, k} {
		var parts []*executor.Executable
		for rank := range ranks {
			part, err := executor.Prepare(t.Context(), p, rank, ranks)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		for _, ahead := range []bool{false, true} {
			allocations := func(segments int) float64 {
				return testing.AllocsPerRun(5, func() {
					if err := local.Run(t.Context(), ranks, func(ctx context.Context, tr transport.Transport) error {
						job := executor.Job{Executable: parts[tr.Rank()], Bytes: int64(segments) * 16 << 10, Segment: 16 << 10, Ahead: ahead, Timeout: time.Minute}
						for range k / ranks {
							job.Inputs, job.Outputs = append(job.Inputs, zeros()...), append(job.Outputs, discard()...)
						}
						_, err := executor.Run(ctx, tr, job)
						return err
					}); err != nil {
						t.Error(err)
					}
				})
			}
			// The garbage collector may take what is pooled; a message each would be 100 for each rank.
			if few, many := allocations(3), allocations(103); many > few+float64(20*ranks) {
				t.Errorf("%d ranks, ahead %v: %v allocations for 3 segments, %v for 103", ranks, ahead, few, many)
			}
		}
	}
}
