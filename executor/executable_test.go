package executor_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"volley/algo/algotest"
	"volley/executor"
	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/race"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/transport/local"
)

// within reports whether a part of a packet lies in its memory.
func within(part, memory []byte) bool {
	if len(part) == 0 || len(memory) == 0 {
		return false
	}
	at := uintptr(unsafe.Pointer(&part[0]))
	begin := uintptr(unsafe.Pointer(&memory[0]))
	return begin <= at && at < begin+uintptr(len(memory))
}

// TestMemory runs plans on packets in memory, at one rank and at several, whole and
// cut: what has room is coded from where it lies to where it is to lie, and the rest
// is copied.
func TestMemory(t *testing.T) {
	const k = 12
	for _, name := range []string{"2^8", "2^4", "2^16", "17", "257", "goldilocks"} { // small fields: matrices with some zeros
		f := fieldtest.Parse(t, name)
		a := randomMatrix(t, f, k)
		for _, algorithm := range []string{"universal", "bruck-allgather", "exchange"} {
			p := compile(t, algorithm, a, 1)
			for _, symbols := range []int{1, 60, 5000} {
				packets := randomPackets(f, 3, append(equal(k-1, symbols), symbols/2)...)
				want := product(a, packets, symbols)
				for _, ranks := range []int{1, 3} {
					in, out := make([][]byte, k), make([][]byte, k)
					read, written := 0, 0 // parts of processor 0 that lie where they belong
					r := &run{plan: p, packets: packets, ranks: ranks, bytes: symbols * f.SymbolBytes(), segment: 600 * f.SymbolBytes()}
					r.job = func(rank int, job *executor.Job) {
						first, _ := executor.Hosted(k, rank, ranks)
						for i := range job.Inputs {
							in[first+i], out[first+i] = bytes.Clone(packets[first+i]), make([]byte, r.bytes)
							job.Inputs[i], job.Outputs[i] = executor.Input{Memory: in[first+i]}, executor.Output{Memory: out[first+i]}
						}
						job.Observe = func(proc int, inputs, outputs [][]byte) error {
							if proc == 0 && within(inputs[0], in[0]) {
								read++
							}
							if proc == 0 && within(outputs[0], out[0]) {
								written++
							}
							return nil
						}
					}
					r.mustDo(t)
					for i := range k {
						if !bytes.Equal(out[i], want[i]) || !bytes.Equal(in[i], packets[i]) {
							t.Fatalf("%s, %s, %d symbols, %d ranks: processor %d: another packet", name, algorithm, symbols, ranks, i)
						}
					}
					if symbols == 5000 && algorithm != "exchange" && (read < 9 || written < 9) {
						t.Errorf("%s, %s: %d of 9 segments read, and %d written, where they lie", name, algorithm, read, written)
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
	a := randomMatrix(t, f, k)
	for _, c := range []struct {
		name     string
		change   func(job *executor.Job)
		segments int
	}{
		{"in memory", func(*executor.Job) {}, 1},
		{"a short packet", func(job *executor.Job) { job.Inputs[3].Memory = make([]byte, size-1) }, 5},
		{"a reader", func(job *executor.Job) { job.Inputs[3].Reader = bytes.NewReader(make([]byte, size)) }, 5},
		{"an observer", func(job *executor.Job) {
			job.Observe = func(int, [][]byte, [][]byte) error { return nil }
		}, 5},
	} {
		r := &run{plan: compile(t, "universal", a, 1), packets: randomPackets(f, 1, equal(k, size)...), ranks: 1, bytes: size, segment: 1000}
		r.job = func(_ int, job *executor.Job) {
			for i := range k {
				job.Inputs[i], job.Outputs[i] = executor.Input{Memory: r.packets[i]}, executor.Output{Memory: make([]byte, size)}
			}
			c.change(job)
		}
		r.mustDo(t)
		if got := r.traffic[0].Segments; got != c.segments {
			t.Errorf("%s: %d segments, want %d", c.name, got, c.segments)
		}
	}
}

// TestCheckErrors lets a packet fail its check, in memory and behind a reader, and an output
// have too little memory.
func TestCheckErrors(t *testing.T) {
	broken := errors.New("gone")
	check := func(_ []byte, offset int64) error {
		if offset >= 4 {
			return broken
		}
		return nil
	}
	f := fieldtest.Parse(t, "2^8")
	for _, c := range []struct {
		change func(*executor.Job)
		want   string
	}{
		{func(j *executor.Job) { j.Inputs[2] = executor.Input{Memory: make([]byte, 9), Validate: check} }, "processor 2: read input 0: gone"},
		{func(j *executor.Job) { j.Inputs[2].Validate = check }, "processor 2: read input 0: gone"},
	} {
		r := &run{
			plan: compile(t, "universal", randomMatrix(t, f, 4), 1), packets: randomPackets(f, 1, equal(4, 9)...),
			ranks: 1, bytes: 9, segment: 3,
		}
		r.job = func(_ int, job *executor.Job) { c.change(job) }
		r.do(t.Context())
		if err := r.errs[0]; err == nil || err.Error() != c.want {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
}

// TestStructuredParts runs structured plans at one rank: what is computed in planes, and
// products that are made once.
func TestStructuredParts(t *testing.T) {
	for _, c := range []struct {
		algorithm, field, matrix string
		k                        int
	}{
		{"additive-fft", "2^16", "lch", 64},
		{"additive-fft", "2^8", "lch", 32},
		{"dft", "257", "dft", 64},
		{"dft", "goldilocks", "dft", 32},
		{"dft", "bls12-381", "dft", 16},
		{"folded-lagrange", "257", "lagrange", 64},
		{"cauchy", "2^16", "cauchy", 32},
	} {
		t.Run(fmt.Sprintf("%s/%s/K=%d", c.algorithm, c.field, c.k), func(t *testing.T) {
			f := fieldtest.Parse(t, c.field)
			spec, err := matrices.ParseSpec(c.matrix)
			if err != nil {
				t.Fatal(err)
			}
			a, err := spec.Build(f, c.k, c.k)
			if err != nil {
				t.Fatal(err)
			}
			p := algotest.Compile(t, c.algorithm, c.field, c.matrix, c.k, 1)
			for _, symbols := range []int{1, 77, 400} {
				packets := randomPackets(f, 5, equal(c.k, symbols)...)
				want := product(a, packets, symbols)
				for _, ranks := range []int{1, 5} {
					r := &run{plan: p, packets: packets, ranks: ranks, bytes: symbols * f.SymbolBytes(), segment: 160 * f.SymbolBytes()}
					r.mustDo(t)
					for proc := range c.k {
						if got := r.outputs[proc][0].Bytes(); !bytes.Equal(got, want[p.Column(proc, 0)]) {
							t.Fatalf("%d symbols, %d ranks: processor %d: another packet", symbols, ranks, proc)
						}
					}
					checkTraffic(t, r)
				}
			}
		})
	}
}

// TestProducts runs matrices whose columns have one entry or none, at one rank, in planes and not:
// outputs are products of an input, inputs, or zero.
func TestProducts(t *testing.T) {
	const k, symbols = 12, 200
	for _, name := range []string{"2^16", "2^8", "257"} {
		f := fieldtest.Parse(t, name)
		dense := matrix.DenseOf(randomMatrix(t, f, k))
		for i := range k {
			for j := range 3 {
				dense.Set(i, 4*j, field.Element{})
			}
		}
		dense.Set(7, 0, field.Code(9))
		dense.Set(2, 4, field.One)
		packets := randomPackets(f, 1, equal(k, symbols)...)
		for _, algorithm := range []string{"bruck-allgather", "universal"} {
			r := &run{plan: compile(t, algorithm, dense, 1), packets: packets, ranks: 1, bytes: symbols * f.SymbolBytes(), segment: 64 * f.SymbolBytes()}
			r.mustDo(t)
			for j, want := range product(dense, packets, symbols) {
				if !bytes.Equal(r.outputs[j][0].Bytes(), want) {
					t.Errorf("%s over %s: output %d is another packet", algorithm, name, j)
				}
			}
		}
	}
}

// TestElementTwice runs a plan that sends an element twice and adds up the two: the sums are
// right where both processors live at one rank and know that it is one element.
func TestElementTwice(t *testing.T) {
	for _, name := range []string{"257", "2^8"} {
		f := fieldtest.Parse(t, name)
		minus := f.Sub(field.Element{}, field.One)
		term := func(slot int, coef field.Element) plan.Term { return plan.Term{Slot: slot, Coef: coef} }
		p := &plan.Materialized{
			Common: plan.Info{
				Algorithm: "by hand", Field: f, Processors: 2, Ports: 1, Rows: 1, Columns: 3, Phases: []plan.Phase{{Name: "there", Rounds: 1}},
			},
			Programs: []*plan.Program{
				{Proc: 0, Inputs: 1, Rounds: []plan.Round{{Sends: []plan.Send{{Dst: 1, Slots: []int{0, 0}}}}}},
				{
					Proc: 1, Rounds: []plan.Round{{Recvs: []plan.Recv{{Src: 0, Count: 2}}}}, Outputs: []int{2, 3, 4},
					Compute: []plan.Combination{
						{term(0, field.Code(3)), term(1, field.Code(7))},
						{term(0, field.One), term(1, minus)},
						{term(0, field.Code(2)), term(1, field.Code(2))},
					},
				},
			},
			Rows: [][]int{{0}, {}}, Columns: [][]int{{}, {0, 1, 2}},
		}
		a := transferMatrix(t, p)
		packets := randomPackets(f, 1, 50)
		for _, ranks := range []int{1, 2} {
			r := &run{plan: p, packets: packets, ranks: ranks, bytes: 50 * f.SymbolBytes(), segment: 16 * f.SymbolBytes()}
			r.mustDo(t)
			for j, want := range product(a, packets, 50) {
				if !bytes.Equal(r.outputs[1][j].Bytes(), want) {
					t.Errorf("%s, %d ranks: output %d is another packet", name, ranks, j)
				}
			}
		}
	}
}

// TestTrafficIsTheCallers changes the traffic that a run returns: the next run of the executable
// returns what it always does. Of a plan that cuts packets, an error counts whole packets.
func TestTrafficIsTheCallers(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	x, err := executor.Prepare(t.Context(), compile(t, "exchange", randomMatrix(t, f, 3), 1), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	job := executor.Job{Executable: x, Bytes: 12, Segment: 12}
	for range 3 {
		job.Inputs, job.Outputs = append(job.Inputs, zeros()...), append(job.Outputs, discard()...)
	}
	for range 2 {
		traffic, err := executor.Run(t.Context(), local.New(1)[0], job)
		if err != nil {
			t.Fatal(err)
		}
		if traffic[0].Rounds[0].Messages != 1 {
			t.Fatalf("%+v", traffic[0])
		}
		traffic[0].Rounds[0].Messages = 99
	}
	job.Outputs = nil
	if _, err := executor.Run(t.Context(), local.New(1)[0], job); err == nil || !strings.Contains(err.Error(), "3 inputs and 0 outputs: the program has 3 and 3") {
		t.Errorf("error %v", err)
	}
}

// TestAllocations compares runs of few and of many segments: a segment allocates nothing
// where all processors live at one rank, and where they do not, only the transport does.
func TestAllocations(t *testing.T) {
	const k = 8
	f := fieldtest.Parse(t, "2^8")
	p := compile(t, "universal", randomMatrix(t, f, k), 1)
	allocations := func(parts []*executor.Executable, segments int, ahead bool) float64 {
		return testing.AllocsPerRun(5, func() {
			var all sync.WaitGroup
			group := local.New(len(parts))
			for rank, part := range parts {
				job := executor.Job{Executable: part, Bytes: int64(segments) * 64 << 10, Segment: 64 << 10, Ahead: ahead, Timeout: time.Minute}
				for range k / len(parts) {
					job.Inputs, job.Outputs = append(job.Inputs, zeros()...), append(job.Outputs, discard()...)
				}
				all.Go(func() {
					if _, err := executor.Run(t.Context(), group[rank], job); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	}
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
			few, many := allocations(parts, 3, ahead), allocations(parts, 103, ahead)
			t.Logf("%d ranks, ahead %v: %v allocations for 3 segments, %v for 103", ranks, ahead, few, many)
			// The garbage collector may take what is pooled; a message each would be 100 for each rank.
			if many > few+float64(20*ranks) && !race.Enabled {
				t.Errorf("%d ranks, ahead %v: %v allocations for 3 segments, %v for 103", ranks, ahead, few, many)
			}
		}
	}
}

// TestHosted checks that processors are dealt out in order and evenly.
func TestHosted(t *testing.T) {
	for k := 1; k < 40; k++ {
		for ranks := 1; ranks <= k; ranks++ {
			next, sizes := 0, []int{}
			for rank := range ranks {
				first, end := executor.Hosted(k, rank, ranks)
				if first != next {
					t.Fatalf("K=%d: rank %d of %d begins at %d, want %d", k, rank, ranks, first, next)
				}
				for proc := first; proc < end; proc++ {
					if is := executor.RankOf(proc, k, ranks); is != rank {
						t.Fatalf("K=%d: processor %d is at rank %d of %d, want %d", k, proc, is, ranks, rank)
					}
				}
				next = end
				sizes = append(sizes, end-first)
			}
			if next != k || slices.Max(sizes) > slices.Min(sizes)+1 {
				t.Fatalf("K=%d at %d ranks: %v", k, ranks, sizes)
			}
		}
	}
}

// TestCores runs a part with one core and with several: both give the same.
func TestCores(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	const k, symbols = 9, 300_000
	a := randomMatrix(t, f, k)
	packets := randomPackets(f, 1, equal(k, symbols)...)
	var outputs [][][]byte
	for _, cores := range []int{1, 4} {
		before := runtime.GOMAXPROCS(cores)
		r := &run{plan: compile(t, "universal", a, 1), packets: packets, ranks: 1, bytes: symbols, segment: symbols}
		r.mustDo(t)
		runtime.GOMAXPROCS(before)
		var all [][]byte
		for _, out := range r.outputs {
			all = append(all, out[0].Bytes())
		}
		outputs = append(outputs, all)
	}
	if !slices.EqualFunc(outputs[0], outputs[1], bytes.Equal) {
		t.Error("another result on four cores")
	}
	for j, want := range product(a, [][]byte{packets[0][:50], packets[1][:50], packets[2][:50], packets[3][:50], packets[4][:50], packets[5][:50], packets[6][:50], packets[7][:50], packets[8][:50]}, 50) {
		if !bytes.Equal(outputs[0][j][:50], want) {
			t.Fatalf("processor %d: another packet", j)
		}
	}
}

// TestAllgatherTogether runs a plan whose outputs are inputs of others.
func TestAllgatherTogether(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	packets := randomPackets(f, 1, equal(7, 10)...)
	var p plan.Plan = allgather(t, f, 7, 1)
	for _, ranks := range []int{1, 2, 3} {
		r := &run{plan: p, packets: packets, ranks: ranks, bytes: 10, segment: 4}
		r.mustDo(t)
		for proc, outputs := range r.outputs {
			for i, out := range outputs {
				if !bytes.Equal(out.Bytes(), packets[i]) {
					t.Errorf("%d ranks: processor %d has %x of processor %d: want %x", ranks, proc, out.Bytes(), i, packets[i])
				}
			}
		}
	}
	if _, err := executor.Prepare(t.Context(), p, 0, 8); err == nil || !strings.Contains(err.Error(), "rank 0 of 8") {
		t.Errorf("got error %v", err)
	}
}
