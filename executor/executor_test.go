package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/field/fieldtest"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// TestEncode runs every algorithm and compares with the dense product, and what
// was sent with what the plan says.
func TestEncode(t *testing.T) {
	sizes := []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 27, 31}
	if testing.Short() {
		sizes = []int{1, 2, 5, 16}
	}
	for _, name := range []string{"2^8", "2^16", "257", "3^4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fieldtest.Parse(t, name)
			for _, k := range sizes {
				a := randomMatrix(t, f, k)
				for _, c := range []struct{ symbols, segment int }{
					{0, 1},    // nothing
					{1, 1},    // one symbol
					{13, 13},  // one segment
					{13, 100}, // more room than needed
					{13, 5},   // a short last segment
				} {
					packets := randomPackets(f, uint64(c.segment), equal(k, c.symbols)...)
					want := product(a, packets, c.symbols)
					for _, algorithm := range algo.Algorithms() {
						if algorithm.Structured {
							continue
						}
						for _, ports := range []int{1, 2, 3} {
							if ports > max(1, k-1) {
								continue
							}
							r := &run{
								plan: compile(t, algorithm.Name, a, ports), packets: packets,
								bytes: c.symbols * f.SymbolBytes(), segment: c.segment * f.SymbolBytes(),
							}
							for _, r.ranks = range []int{k, 1, (k + 1) / 2} {
								r.mustDo(t)
								r.check(t, want)
								checkTraffic(t, r)
								if t.Failed() {
									t.Fatalf("%s, K=%d at %d ranks, p=%d, %d symbols in segments of %d", algorithm.Name, k, r.ranks, ports, c.symbols, c.segment)
								}
							}
						}
					}
				}
			}
		})
	}
}

// TestCopies has outputs that are copies of an input, so long that goroutines share them.
func TestCopies(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	const k, size = 5, 300_000
	a := matrix.NewDense(f, k, k)
	for j := range k {
		a.Set(j/2, j, field.One)
	}
	packets := randomPackets(f, 1, equal(k, size)...)
	want := product(a, packets, size)
	for _, segment := range []int{size, size/2 + 1} {
		outputs := make([][]byte, k)
		r := &run{plan: compile(t, "exchange", a, 1), packets: packets, bytes: size, segment: segment, ranks: 1}
		r.job = func(_ int, job *executor.Job) {
			for o := range k {
				outputs[o] = make([]byte, size)
				job.Outputs[o] = executor.Output{Memory: outputs[o]}
			}
		}
		r.mustDo(t)
		for o := range k {
			if !bytes.Equal(outputs[o], want[o]) {
				t.Errorf("output %d, segments of %d bytes: it is not input %d", o, segment, o/2)
			}
		}
	}
}

// checkTraffic compares what was counted with the cost of the plan.
func checkTraffic(t testing.TB, r *run) {
	t.Helper()
	cost := sim.Count(r.plan)
	rounds := make([]plan.RoundTraffic, len(cost.Rounds))
	segments := max(1, (r.bytes+r.segment-1)/r.segment)
	for proc, traffic := range r.traffic {
		program, err := r.plan.Program(proc)
		if err != nil {
			t.Fatal(err)
		}
		want := executor.Traffic{
			Rounds: make([]plan.RoundTraffic, len(program.Rounds)), MultiplyAdds: program.Terms(), Segments: segments,
		}
		for n, round := range program.Rounds {
			for _, send := range round.Sends {
				want.Bytes += int64(len(send.Slots) * r.bytes)
				want.Rounds[n].Messages++
				want.Rounds[n].Largest = max(want.Rounds[n].Largest, len(send.Slots))
			}
			rounds[n].Messages += traffic.Rounds[n].Messages
			rounds[n].Largest = max(rounds[n].Largest, traffic.Rounds[n].Largest)
		}
		if !reflect.DeepEqual(*traffic, want) {
			t.Errorf("processor %d: traffic %+v, want %+v", proc, *traffic, want)
		}
	}
	if !reflect.DeepEqual(rounds, cost.Rounds) {
		t.Errorf("rounds %+v, want %+v", rounds, cost.Rounds)
	}
}

// TestTransportContract runs plans in many segments over a transport that spoils what is yet to
// be received, and sees whether anything under way is changed.
func TestTransportContract(t *testing.T) {
	const k, symbols = 16, 40
	f := fieldtest.Parse(t, "2^8")
	a := randomMatrix(t, f, k)
	packets := randomPackets(f, 1, equal(k, symbols)...)
	want := product(a, packets, symbols)
	for _, algorithm := range algo.Algorithms() {
		if algorithm.Structured {
			continue
		}
		for _, c := range []struct{ ports, segment int }{{1, 3}, {3, 3}, {1, 4}, {3, 4}} {
			t.Run(fmt.Sprintf("%s/p=%d/segment=%d", algorithm.Name, c.ports, c.segment), func(t *testing.T) {
				r := &run{plan: compile(t, algorithm.Name, a, c.ports), packets: packets, bytes: symbols, segment: c.segment}
				r.mustDo(t)
				r.check(t, want)

				var ends []*watched
				r.wrap = func(below transport.Transport) transport.Transport {
					ends = append(ends, newWatched(t, below))
					return ends[len(ends)-1]
				}
				r.mustDo(t)
				r.check(t, want)
				for proc, end := range ends {
					if end.open != 0 {
						t.Errorf("processor %d: %d transfers not ended", proc, end.open)
					}
				}
			})
		}
	}
}

func TestHeader(t *testing.T) {
	const k = 9
	f := fieldtest.Parse(t, "257")
	header := []byte("who goes there?")
	for _, name := range []string{"universal", "prepare-and-shoot", "bruck-allgather", "exchange"} {
		t.Run(name, func(t *testing.T) {
			heard := make([]map[int]int, k)
			r := &run{
				plan: compile(t, name, randomMatrix(t, f, k), 2), packets: randomPackets(f, 1, equal(k, 10)...),
				bytes: 20, segment: 6,
				job: func(proc int, job *executor.Job) {
					heard[proc] = map[int]int{}
					job.Header = header
					job.Accept = func(src int, got []byte) error {
						heard[proc][src]++
						if !bytes.Equal(got, header) {
							return fmt.Errorf("header %q", got)
						}
						return nil
					}
				},
			}
			r.mustDo(t)
			for proc := range k {
				to, from := map[int]bool{}, map[int]int{}
				for _, round := range r.plan.Schedule(proc).Rounds {
					for _, send := range round.Sends {
						to[send.Dst] = true
					}
					for _, recv := range round.Recvs {
						from[recv.Src] = 1
					}
				}
				if got, want := r.traffic[proc].HeaderBytes, int64(len(to)*len(header)); got != want {
					t.Errorf("processor %d sent %d bytes of headers, want %d", proc, got, want)
				}
				if !reflect.DeepEqual(heard[proc], from) {
					t.Errorf("processor %d checked headers (by source) %v, want %v", proc, heard[proc], from)
				}
			}
		})
	}
}

func TestHeaderRefused(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	stranger := errors.New("a stranger")
	r := &run{
		plan: compile(t, "universal", randomMatrix(t, f, 4), 1), packets: randomPackets(f, 1, 5, 5, 5, 5),
		bytes: 5, segment: 5,
		job: func(proc int, job *executor.Job) {
			job.Header = []byte{byte(proc / 3)} // that of processor 3 differs
			job.Accept = func(src int, got []byte) error {
				if got[0] != 0 && proc != 3 {
					return fmt.Errorf("processor %d is %w", src, stranger)
				}
				return nil
			}
		},
	}
	r.do(t.Context())
	if r.errs[3] == nil { // it had all its messages before it heard
		r.errs = r.errs[:3]
	}
	checkAborted(t, r.errs, stranger, "processor 3 is a stranger")
}

// TestPadding runs inputs that end early, also within a segment or before it.
func TestPadding(t *testing.T) {
	for _, name := range []string{"2^16", "3^4"} {
		f := fieldtest.Parse(t, name)
		a := randomMatrix(t, f, 6)
		packets := randomPackets(f, 1, 20, 0, 1, 7, 8, 19)
		for _, segment := range []int{4, 20} {
			r := &run{
				plan: compile(t, "universal", a, 1), packets: packets,
				bytes: 20 * f.SymbolBytes(), segment: segment * f.SymbolBytes(),
			}
			r.mustDo(t)
			r.check(t, product(a, packets, 20))
		}
	}
}

// TestAllgather runs a plan with many outputs, which are received slots.
func TestAllgather(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	for _, k := range []int{1, 2, 7, 16} {
		packets := randomPackets(f, 1, equal(k, 10)...)
		r := &run{plan: allgather(t, f, k, 1), packets: packets, bytes: 10, segment: 4}
		r.mustDo(t)
		for proc, outputs := range r.outputs {
			for i, out := range outputs {
				if !bytes.Equal(out.Bytes(), packets[i]) {
					t.Errorf("K=%d: processor %d has %x of processor %d: want %x", k, proc, out.Bytes(), i, packets[i])
				}
			}
		}
		checkTraffic(t, r)
	}
}

// helpers is a plan in which processor 0 has two inputs and no output, processor 1
// neither (it adds and passes on), processor 2 no input and three outputs (one
// of them zero), and processor 3 has both and talks to nobody.
func helpers(f field.Field) *plan.Materialized {
	c := func(slot int, coef uint64) plan.Term { return plan.Term{Slot: slot, Coef: field.Code(coef)} }
	return &plan.Materialized{
		Common: plan.Info{
			Algorithm: "by hand", Field: f, Processors: 4, Ports: 1, Rows: 3, Columns: 4,
			Phases: []plan.Phase{{Name: "there", Rounds: 2}},
		},
		Programs: []*plan.Program{
			{Proc: 0, Inputs: 2, Rounds: []plan.Round{{
				Compute: []plan.Combination{{c(0, 1), c(1, 2)}},
				Sends:   []plan.Send{{Dst: 1, Slots: []int{0, 2}}},
			}, {}}},
			{Proc: 1, Rounds: []plan.Round{{
				Recvs: []plan.Recv{{Src: 0, Count: 2}},
			}, {
				Compute: []plan.Combination{{c(0, 3), c(1, 1)}},
				Sends:   []plan.Send{{Dst: 2, Slots: []int{2, 1}}},
			}}},
			{Proc: 2, Rounds: []plan.Round{{}, {
				Recvs: []plan.Recv{{Src: 1, Count: 2}},
			}}, Compute: []plan.Combination{{}}, Outputs: []int{0, 2, 1}},
			{Proc: 3, Inputs: 1, Rounds: []plan.Round{{}, {}}, Compute: []plan.Combination{{c(0, 5)}}, Outputs: []int{1}},
		},
		Rows:    [][]int{{0, 1}, {}, {}, {2}},
		Columns: [][]int{{}, {}, {0, 1, 2}, {3}},
	}
}

func TestHelpers(t *testing.T) {
	for _, name := range []string{"257", "3^4"} {
		f := fieldtest.Parse(t, name)
		p := helpers(f)
		a := transferMatrix(t, p)
		const symbols = 11
		packets := randomPackets(f, 3, symbols, symbols, symbols)
		r := &run{plan: p, packets: packets, bytes: symbols * f.SymbolBytes(), segment: 4 * f.SymbolBytes()}
		r.mustDo(t)
		checkTraffic(t, r)
		want := product(a, packets, symbols)
		for proc, outputs := range r.outputs {
			for o, out := range outputs {
				if j := p.Column(proc, o); !bytes.Equal(out.Bytes(), want[j]) {
					t.Errorf("%s: processor %d output %d: got %x, want %x", name, proc, o, out.Bytes(), want[j])
				}
			}
		}
	}
}

func TestObserve(t *testing.T) {
	const symbols, segment = 10, 4
	f := fieldtest.Parse(t, "2^8")
	p := helpers(f)
	packets := randomPackets(f, 1, symbols, symbols, symbols)
	var mu sync.Mutex
	seen := make([][2][]bytes.Buffer, 4)
	enough := errors.New("enough")
	r := &run{plan: p, packets: packets, bytes: symbols, segment: segment}
	r.job = func(proc int, job *executor.Job) {
		job.Observe = func(proc int, inputs, outputs [][]byte) error {
			mu.Lock()
			defer mu.Unlock()
			for side, list := range [][][]byte{inputs, outputs} {
				if seen[proc][side] == nil {
					seen[proc][side] = make([]bytes.Buffer, len(list))
				}
				for i, data := range list {
					seen[proc][side][i].Write(data)
				}
			}
			return nil
		}
	}
	r.mustDo(t)
	for proc := range 4 {
		for i := range seen[proc][0] {
			if got, want := seen[proc][0][i].Bytes(), packets[p.Row(proc, i)]; !bytes.Equal(got, want) {
				t.Errorf("processor %d input %d: seen %x, want %x", proc, i, got, want)
			}
		}
		for o, out := range r.outputs[proc] {
			if got := seen[proc][1][o].Bytes(); !bytes.Equal(got, out.Bytes()) {
				t.Errorf("processor %d output %d: seen %x, written %x", proc, o, got, out.Bytes())
			}
		}
	}

	r.job = func(proc int, job *executor.Job) {
		if proc == 1 {
			job.Observe = func(int, [][]byte, [][]byte) error { return enough }
		}
	}
	r.do(t.Context())
	if err := r.errs[1]; !errors.Is(err, enough) {
		t.Errorf("got error %v, want %v", err, enough)
	}

	r.ranks = 1
	r.job = func(_ int, job *executor.Job) {
		job.Observe = func(proc int, _, _ [][]byte) error {
			if proc < 2 {
				return nil
			}
			return enough
		}
	}
	r.do(t.Context())
	if err := r.errs[0]; err == nil || err.Error() != "processor 2: enough" {
		t.Errorf("got error %v", err)
	}
}

// TestObserveAll sees all inputs and outputs of the only rank, every byte once, also where plans cut packets into pieces.
func TestObserveAll(t *testing.T) {
	const k = 5
	f := fieldtest.Parse(t, "257")
	a := randomMatrix(t, f, k)
	enough := errors.New("enough")
	for _, algorithm := range []string{"universal", "exchange"} {
		for _, segment := range []int{200, 2000, 100_000} {
			const symbols = 20_000
			packets := randomPackets(f, 1, equal(k, symbols)...)
			var mu sync.Mutex
			seen := 0
			r := &run{plan: compile(t, algorithm, a, 1), packets: packets, ranks: 1, bytes: 2 * symbols, segment: segment}
			r.job = func(_ int, job *executor.Job) {
				job.ObserveAll = func(inputs, outputs [][]byte) error {
					mu.Lock()
					defer mu.Unlock()
					seen += len(inputs[0])
					for j, want := range product(a, inputs, len(inputs[0])/2) {
						if !bytes.Equal(outputs[j], want) {
							t.Errorf("%s, segments of %d: output %d is not what the inputs make it", algorithm, segment, j)
						}
					}
					return nil
				}
			}
			r.mustDo(t)
			r.check(t, product(a, packets, symbols))
			if seen < 2*symbols || seen > 2*symbols+200*k*4 { // and padding
				t.Errorf("%s, segments of %d: %d bytes seen, want %d", algorithm, segment, seen, 2*symbols)
			}
			r.job = func(_ int, job *executor.Job) {
				job.ObserveAll = func([][]byte, [][]byte) error { return enough }
			}
			if r.do(t.Context()); !errors.Is(r.errs[0], enough) {
				t.Errorf("%s, segments of %d: %v", algorithm, segment, r.errs[0])
			}
		}
	}
}

// memory is an output that may be written any number of times.
type memory []byte

func (m memory) WriteAt(p []byte, offset int64) (int, error) { return copy(m[offset:], p), nil }

// TestRunsAgain runs a job of the only rank again and again. Between runs packets change where they lie, or others lie
// elsewhere and are of another length; an observer refuses a run, and a context ends.
func TestRunsAgain(t *testing.T) {
	const k, most = 4, 1000
	f := fieldtest.Parse(t, "257")
	a := randomMatrix(t, f, k)
	enough := errors.New("enough")
	for _, algorithm := range []string{"universal", "exchange", "bruck-allgather"} {
		x, err := executor.Prepare(t.Context(), compile(t, algorithm, a, 1), 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, lies := range []string{"in memory", "observed", "behind a reader", "for a writer"} {
			observed, refuses := lies == "observed", false
			job := executor.Job{
				Executable: x, Bytes: 2 * most, Segment: 2 * most, Inputs: make([]executor.Input, k), Outputs: make([]executor.Output, k),
			}
			if observed {
				job.ObserveAll = func([][]byte, [][]byte) error {
					if refuses {
						return enough
					}
					return nil
				}
			}
			packets := make([][]byte, k)
			results := make([][]byte, k)
			move := func(symbols int) {
				for i := range k {
					packets[i], results[i] = make([]byte, 2*symbols), make([]byte, 2*symbols)
					job.Inputs[i].Memory, job.Outputs[i].Memory = packets[i], results[i]
				}
				switch lies {
				case "behind a reader":
					job.Inputs[1] = executor.Input{Reader: bytes.NewReader(packets[1])}
				case "for a writer":
					job.Outputs[2] = executor.Output{Writer: memory(results[2])}
				}
			}
			move(most)
			ctx, cancel := context.WithCancelCause(t.Context())
			b, err := executor.Bind(ctx, local.New(1)[0], job)
			if err != nil {
				t.Fatal(err)
			}
			for turn, symbols := range []int{most, most, most, 3, 3, most - 1, most} {
				if symbols != len(packets[0])/2 {
					move(symbols)
					b.SetBytes(int64(2 * symbols))
				}
				for i, p := range randomPackets(f, uint64(turn), equal(k, symbols)...) {
					copy(packets[i], p)
				}
				if err := b.Run(); err != nil {
					t.Fatal(err)
				}
				for i, want := range product(a, packets, symbols) {
					if !bytes.Equal(results[i], want) {
						t.Fatalf("%s, %s, run %d: output %d is wrong", algorithm, lies, turn, i)
					}
				}
			}
			if refuses = observed; !observed {
				cancel(enough)
			}
			if err := b.Run(); !errors.Is(err, enough) {
				t.Errorf("%s, %s: got %v, want %v", algorithm, lies, err, enough)
			}
			cancel(nil)
			b.Close()
		}
	}
}

func TestSegmentBytes(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	for _, algorithm := range algo.Algorithms() {
		if algorithm.Structured {
			continue
		}
		p := compile(t, algorithm.Name, randomMatrix(t, f, 16), 1)
		slots := int64(plan.MemorySlots(p))
		for _, c := range []struct{ bytes, memory, align, want int64 }{
			{1000, 1 << 30, 2, 1000},                // all at once
			{1001, 1 << 30, 64, 1024},               // up to align
			{0, 1, 64, 64},                          // nothing needs no memory
			{10, 10 * slots, 64, 64},                // less than align at once
			{1 << 20, 1000 * slots, 2, 1000},        // exactly
			{1 << 20, 1000*slots - 1, 2, 998},       // one byte less
			{1 << 20, 64*slots + slots - 1, 64, 64}, // the least
			{1 << 20, 64*slots - 1, 64, 0},          // less than that
			{10, 10*slots - 1, 64, 0},
		} {
			got, err := executor.SegmentBytes(p, int(slots), c.bytes, c.memory, c.align)
			if got != c.want || (err != nil) != (c.want == 0) {
				t.Errorf("%s: %+v: got %d, error %v", algorithm.Name, c, got, err)
			}
			if err == nil && slots*min(got, c.bytes) > c.memory {
				t.Errorf("%s: %+v: segments of %d bytes take more than the memory", algorithm.Name, c, got)
			}
			if err != nil {
				least := slots * min(c.align, c.bytes)
				if text := fmt.Sprintf("needs at least %d bytes", least); !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %+v: error %q does not say %q", algorithm.Name, c, err, text)
				}
				if _, err := executor.SegmentBytes(p, int(slots), c.bytes, least, c.align); err != nil {
					t.Errorf("%s: %+v: not enough after all: %v", algorithm.Name, c, err)
				}
			}
		}
	}
}

// TestWrongJobs checks that what a caller can get wrong is an error, at whom it
// concerns and, by an abort, elsewhere.
func TestWrongJobs(t *testing.T) {
	f := fieldtest.Parse(t, "2^16")
	three, err := executor.Prepare(t.Context(), compile(t, "universal", randomMatrix(t, f, 3), 1), 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text  string // in the error
		wrong func(*executor.Job)
	}{
		{"the executable of rank 1 of 3 at rank 1 of 2", func(j *executor.Job) { j.Executable = three }},
		{"0 inputs and 1 outputs: the program has 1 and 1", func(j *executor.Job) { j.Inputs = nil }},
		{"1 inputs and 2 outputs: the program has 1 and 1", func(j *executor.Job) { j.Outputs = append(j.Outputs, executor.Output{Writer: new(buffer)}) }},
		{"packets of 7 bytes in segments of 4: want multiples of the symbol size, 2", func(j *executor.Job) { j.Bytes = 7 }},
		{"packets of -2 bytes", func(j *executor.Job) { j.Bytes = -2 }},
		{"segments of 3", func(j *executor.Job) { j.Segment = 3 }},
		{"segments of 0", func(j *executor.Job) { j.Segment = 0 }},
		{"segments of -2", func(j *executor.Job) { j.Segment = -2 }},
	} {
		t.Run(c.text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &run{
					plan: compile(t, "universal", randomMatrix(t, f, 2), 1), packets: randomPackets(f, 1, 4, 4),
					bytes: 8, segment: 4,
					job: func(proc int, job *executor.Job) {
						if proc == 1 {
							c.wrong(job)
						}
					},
				}
				r.do(t.Context())
				if err := r.errs[1]; err == nil || !strings.HasPrefix(err.Error(), "processor 1: ") || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got error %v, want one that says %q", err, c.text)
				}
				var aborted *transport.AbortError
				if err := r.errs[0]; !errors.As(err, &aborted) || aborted.Rank != 1 || !strings.Contains(err.Error(), c.text) {
					t.Errorf("processor 0: got error %v", err)
				}
			})
		})
	}
}

// TestCompileErrors checks what a plan and its user can get wrong.
func TestCompileErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	p := compile(t, "universal", randomMatrix(t, f, 4), 1)
	deaf, short := helpers(f), helpers(f)
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
		{short, 0, 1, "processor 1: round 0: 1 elements from processor 0 on port 0, which sends 2: the plan is wrong"},
	} {
		if _, err := executor.Prepare(t.Context(), c.p, c.rank, c.ranks); err == nil || err.Error() != c.want {
			t.Errorf("rank %d of %d: got error %v, want %s", c.rank, c.ranks, err, c.want)
		}
	}
}

// noProgram is a plan whose programs cannot be made.
type noProgram struct{ plan.Plan }

func (noProgram) Program(int) (*plan.Program, error) { return nil, errors.New("no idea") }

// BenchmarkSegment runs N segments at 16 processors: its figures are those of one
// segment at all of them, in which 64 messages are sent.
func BenchmarkSegment(b *testing.B) {
	const k = 16
	f := fieldtest.Parse(b, "2^8")
	for _, segment := range []int{4 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("K=%d/len=%dKiB", k, segment>>10), func(b *testing.B) {
			a := randomMatrix(b, f, k)
			p := compile(b, "universal", a, 1)
			ends := local.New(k)
			b.SetBytes(int64(k * segment))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for rank, end := range ends {
				part, err := executor.Prepare(b.Context(), p, rank, k)
				if err != nil {
					b.Fatal(err)
				}
				wg.Go(func() {
					_, err := executor.Run(b.Context(), end, executor.Job{
						Executable: part, Bytes: int64(b.N * segment), Segment: int64(segment),
						Inputs: zeros(), Outputs: discard(), Timeout: 30e9,
					})
					if err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestPieces runs plans that cut packets, in segments of any length: pieces are filled
// up with zeros, and the last ones may be nothing else.
func TestPieces(t *testing.T) {
	for _, c := range []struct {
		algorithm, field string
		k, ports         int
	}{{"exchange", "2^8", 5, 1}, {"exchange", "257", 6, 2}, {"exchange", "2^16", 9, 1}, {"exchange", "257", 2, 1}, {"exchange", "257", 3, 2}, {"universal", "257", 5, 1}} {
		f := fieldtest.Parse(t, c.field)
		a := randomMatrix(t, f, c.k)
		p := compile(t, c.algorithm, a, c.ports)
		pieces := p.Info().PieceCount()
		size := f.SymbolBytes()
		for _, symbols := range []int{0, 1, 2, c.k - 1, c.k, c.k + 1, 100, 263} {
			for _, segment := range []int{c.k, 3 * c.k, 1000} {
				for _, align := range []int{0, 1, 8} {
					packets := randomPackets(f, 7, equal(c.k, symbols)...)
					if symbols > 3 {
						packets[1] = packets[1][:3*size] // the rest is zeros
					}
					r := &run{plan: p, packets: packets, bytes: symbols * size, segment: segment * max(1, align) * size}
					seen := make([]int, c.k)
					r.job = func(proc int, job *executor.Job) {
						job.Align = int64(align * size)
						job.Observe = func(proc int, _, outputs [][]byte) error {
							for _, part := range outputs {
								seen[proc] += len(part)
							}
							return nil
						}
					}
					r.mustDo(t)
					r.check(t, product(a, packets, symbols))
					sent := int64(0) // as elements of the bytes that a piece takes, filled up
					for left := symbols * size; ; left -= r.segment {
						n := min(left, r.segment)
						if pieces > 1 {
							unit := max(align, 1) * size
							n = ((n+pieces-1)/pieces + unit - 1) / unit * unit
						}
						sent += int64(n)
						if left <= r.segment {
							break
						}
					}
					for proc, tr := range r.traffic {
						elements := 0
						for _, round := range p.Schedule(proc).Rounds {
							for _, s := range round.Sends {
								elements += len(s.Slots)
							}
						}
						if tr.Bytes != int64(elements)*sent {
							t.Fatalf("%s, K=%d, %d symbols, segment %d, align %d: processor %d sent %d bytes, want %d", c.field, c.k, symbols, segment, align, proc, tr.Bytes, int64(elements)*sent)
						}
					}
					for proc, n := range seen {
						if n != symbols*size {
							t.Fatalf("%s, K=%d, %d symbols: processor %d shows %d bytes", c.field, c.k, symbols, proc, n)
						}
					}
				}
			}
		}
	}
}

// TestSegmentBytesByHand checks segments and what is wrong with memory, to the byte.
func TestSegmentBytesByHand(t *testing.T) {
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
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("%s, %d slots, %d bytes, memory %d, align %d: %d, %q; want %d, %q", c.p.Info().Algorithm, c.slots, c.bytes, c.memory, c.align, got, text, c.want, c.err)
		}
	}
}

// relay is a plan in which processor 0 hears from 1 and 2 through two ports, and passes on what
// it heard, to 3 and 4.
func relay(f field.Field) *plan.Materialized {
	pass := func(proc, dst, port int) *plan.Program {
		return &plan.Program{Proc: proc, Inputs: 1, Rounds: []plan.Round{{Sends: []plan.Send{{Dst: dst, Port: port, Slots: []int{0}}}}, {}}}
	}
	hear := func(proc, port int) *plan.Program {
		return &plan.Program{Proc: proc, Rounds: []plan.Round{{}, {Recvs: []plan.Recv{{Src: 0, Port: port, Count: 1}}}}, Outputs: []int{0}}
	}
	return &plan.Materialized{
		Common: plan.Info{Algorithm: "relay", Field: f, Processors: 5, Ports: 2, Rows: 2, Columns: 2, Phases: []plan.Phase{{Name: "there", Rounds: 2}}},
		Programs: []*plan.Program{
			{Proc: 0, Rounds: []plan.Round{
				{Recvs: []plan.Recv{{Src: 1, Port: 0, Count: 1}, {Src: 2, Port: 1, Count: 1}}},
				{
					Compute: []plan.Combination{{{Slot: 0, Coef: field.Code(2)}}},
					Sends:   []plan.Send{{Dst: 3, Port: 0, Slots: []int{2}}, {Dst: 4, Port: 1, Slots: []int{1}}},
				},
			}},
			pass(1, 0, 0), pass(2, 0, 1), hear(3, 0), hear(4, 1),
		},
		Rows: [][]int{{}, {0}, {1}, {}, {}}, Columns: [][]int{{}, {}, {}, {0}, {1}},
	}
}

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
			for proc, coef := range map[int]uint64{3: 2, 4: 1} {
				for s := range 5 {
					want := f.Mul(field.Code(coef), field.Symbol(f, r.packets[proc-3][2*s:]))
					if got := field.Symbol(f, r.outputs[proc][0].Bytes()[2*s:]); got != want {
						t.Errorf("processor %d: symbol %d is %v, want %v", proc, s, got, want)
					}
				}
			}
		})
	}
}
