package volley_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/sim"
	"volley/transport"
	"volley/transport/faulty"
	"volley/transport/local"
	"volley/verify"
)

func parse(t rapid.TB, name string) field.Field {
	f, err := field.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func random(t rapid.TB, f field.Field, k int, seed uint64) matrix.Matrix {
	a, err := matrix.Random(f, k, k, seed)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// symbols returns a packet of n random symbols.
func symbols(f field.Field, n int, rng *rand.Rand) []byte {
	packet := make([]byte, n*f.SymbolBytes())
	q := f.Order().Uint64() // of the fields here
	for i := range n {
		field.PutSymbol(f, packet[i*f.SymbolBytes():], field.Code(rng.Uint64N(q)))
	}
	return packet
}

// dense computes x·A by the schoolbook loop, symbol by symbol.
func dense(a matrix.Matrix, packets [][]byte) [][]byte {
	f := a.Field()
	w, longest := f.SymbolBytes(), 0
	for _, p := range packets {
		longest = max(longest, len(p))
	}
	coded := make([][]byte, a.Cols())
	for j := range coded {
		coded[j] = make([]byte, longest)
		for s := 0; s < longest; s += w {
			var sum field.Element
			for i, p := range packets {
				if s < len(p) {
					sum = f.Add(sum, f.Mul(a.At(i, j), field.Symbol(f, p[s:])))
				}
			}
			field.PutSymbol(f, coded[j][s:], sum)
		}
	}
	return coded
}

// outcome is what each processor of a run returned.
type outcome struct {
	coded   [][]byte
	reports []*volley.Report
	errs    []error
}

// runEach runs an encode in which each processor may have its own matrix, options
// and transport. It fails the test when a processor is still running after 30 s.
func runEach(t rapid.TB, packets [][]byte, a func(k int) matrix.Matrix, opts func(k int) []volley.Option, wrap func(k int, t transport.Transport) transport.Transport) outcome {
	n := len(packets)
	out := outcome{make([][]byte, n), make([]*volley.Report, n), make([]error, n)}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for k, end := range local.New(n) {
		wg.Go(func() {
			var tr transport.Transport = end
			if wrap != nil {
				tr = wrap(k, tr)
			}
			out.coded[k], out.reports[k], out.errs[k] = volley.Encode(ctx, tr, a(k), packets[k], opts(k)...)
			tr.Close()
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		t.Fatalf("the run took over 30 s: %v", errors.Join(out.errs...))
	}
	return out
}

func encode(t rapid.TB, a matrix.Matrix, packets [][]byte, opts ...volley.Option) ([][]byte, *volley.Report) {
	out := runEach(t, packets, func(int) matrix.Matrix { return a }, func(int) []volley.Option { return opts }, nil)
	if err := errors.Join(out.errs...); err != nil {
		t.Fatal(err)
	}
	return out.coded, volley.Merge(out.reports)
}

// TestEncode draws field, matrix, K, p, algorithm, lengths and memory, and
// compares the result with the dense product and the counted costs with those of
// the plan.
func TestEncode(t *testing.T) {
	names := []string{algo.Auto}
	for _, a := range algo.Algorithms() {
		names = append(names, a.Name)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := parse(t, rapid.SampledFrom([]string{"2^8", "2^16", "2^3", "257", "3^4", "2", "65537"}).Draw(t, "field"))
		k := rapid.IntRange(1, 20).Draw(t, "K")
		ports := rapid.IntRange(1, 5).Draw(t, "p")
		name := rapid.SampledFrom(names).Draw(t, "algorithm")
		seed := rapid.Uint64().Draw(t, "seed")
		longest := rapid.SampledFrom([]int{0, 1, 7, 100, 5000}).Draw(t, "longest")
		memory := rapid.SampledFrom([]int64{32 << 10, 1 << 20, volley.DefaultMemory}).Draw(t, "memory")
		rng := rand.New(rand.NewPCG(seed, 0))
		packets := make([][]byte, k)
		for i := range packets {
			packets[i] = symbols(f, rng.IntN(longest+1), rng)
		}
		a := random(t, f, k, seed)
		coded, r := encode(t, a, packets, volley.WithAlgorithm(name), volley.WithPorts(ports), volley.WithMemory(memory))
		for j, want := range dense(a, packets) {
			if !bytes.Equal(coded[j], want) {
				t.Fatalf("coded packet %d differs from the dense product", j)
			}
		}
		algorithm, err := algo.Lookup(r.Algorithm)
		if err != nil {
			t.Fatal(err)
		}
		p, err := algorithm.Compile(a, ports)
		if err != nil {
			t.Fatal(err)
		}
		if cost := sim.Count(p); r.C1 != cost.C1 || r.C2 != cost.C2 || !r.Verified {
			t.Fatalf("counted %d/%d, verified %v; the plan has %d/%d", r.C1, r.C2, r.Verified, cost.C1, cost.C2)
		}
	})
}

// TestDisagreement starts one processor of four with another argument: all
// return the same error, which names who and in what.
func TestDisagreement(t *testing.T) {
	f := parse(t, "2^8")
	packets := [][]byte{{1}, {2}, {3}, {4}}
	for _, c := range []struct {
		in   string
		odd  int
		a    matrix.Matrix
		opts []volley.Option
	}{
		{in: "matrix", odd: 2, a: random(t, f, 4, 2)},
		{in: "matrix", odd: 0, a: random(t, f, 4, 2)},
		{in: "field", odd: 1, a: random(t, parse(t, "2^8:0x11b"), 4, 1)},
		{in: "ports", odd: 3, opts: []volley.Option{volley.WithPorts(2)}},
		{in: "algorithm", odd: 3, opts: []volley.Option{volley.WithAlgorithm("direct")}},
		{in: "memory", odd: 3, opts: []volley.Option{volley.WithMemory(1 << 20)}},
		{in: "check", odd: 3, opts: []volley.Option{volley.WithCheck(false)}},
	} {
		out := runEach(t, packets, func(k int) matrix.Matrix {
			if k == c.odd && c.a != nil {
				return c.a
			}
			return random(t, f, 4, 1)
		}, func(k int) []volley.Option {
			if k == c.odd {
				return c.opts
			}
			return nil
		}, nil)
		for k, err := range out.errs {
			var d *volley.DisagreementError
			if !errors.As(err, &d) {
				// It may hear of another's before it has seen it itself.
				if !errors.As(err, new(*transport.AbortError)) || !strings.Contains(err.Error(), c.in) {
					t.Errorf("%s: processor %d: %v", c.in, k, err)
				}
				continue
			}
			if len(d.Processors) != 1 || d.Processors[0] != c.odd || len(d.In) != 1 || d.In[0] != c.in {
				t.Errorf("%s: processor %d: %v, want processor %d alone", c.in, k, err, c.odd)
			}
		}
	}
}

// flipping wraps the transport of processor 0: from the message that begins the
// data of the run on, one bit of one message is changed.
func flipping(t *testing.T, nth int) func(k int, tr transport.Transport) transport.Transport {
	return func(k int, tr transport.Transport) transport.Transport {
		if k != 0 {
			return tr
		}
		return &flipper{Transport: tr, nth: nth}
	}
}

// flipper changes the last byte of its nth send, in a copy.
type flipper struct {
	transport.Transport
	nth, sent int
}

func (f *flipper) Send(dst int, tag transport.Tag, parts [][]byte) transport.Sending {
	if f.sent++; f.sent == f.nth {
		changed := make([][]byte, len(parts))
		copy(changed, parts)
		last := len(parts) - 1
		changed[last] = append([]byte(nil), parts[last]...)
		changed[last][len(changed[last])-1] ^= 1
		parts = changed
	}
	return f.Transport.Send(dst, tag, parts)
}

// TestCheck flips a bit of each message of processor 0 in turn. With the check
// the run fails; without it a bit of the data leads to a wrong packet. No wrong
// packet gets through the check.
func TestCheck(t *testing.T) {
	f := parse(t, "2^8")
	a, err := matrix.Cauchy(f, 8)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	packets := make([][]byte, 8)
	for k := range packets {
		packets[k] = symbols(f, 1000, rng)
	}
	want := dense(a, packets)
	run := func(nth int, check bool) outcome {
		return runEach(t, packets, func(int) matrix.Matrix { return a },
			func(int) []volley.Option { return []volley.Option{volley.WithCheck(check)} }, flipping(t, nth))
	}
	const control = 3 // messages of the greeting: log2 of 8
	caught := 0
	for nth := 1; nth <= control+3+3; nth++ { // and those of the run, and of the check
		out := run(nth, true)
		for k := range packets {
			if out.errs[k] == nil && !bytes.Equal(out.coded[k], want[k]) {
				t.Errorf("message %d: processor %d has a wrong packet and no error", nth, k)
			}
			if errors.As(out.errs[k], new(*verify.CheckError)) {
				caught++
			}
		}
		if nth > control && errors.Join(out.errs...) == nil {
			t.Errorf("message %d: nobody noticed", nth)
		}
	}
	if caught == 0 {
		t.Error("no processor returned a CheckError")
	}
	wrong := 0
	out := run(control+1, false)
	for k := range packets {
		if out.errs[k] != nil {
			t.Fatal(out.errs[k])
		}
		if !bytes.Equal(out.coded[k], want[k]) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("the change of a message changes no packet: the test tests nothing")
	}
}

// TestDeadProcessor lets a processor die: the others stop, and say whom they
// waited for.
func TestDeadProcessor(t *testing.T) {
	f := parse(t, "2^8")
	a := random(t, f, 5, 1)
	packets := make([][]byte, 5)
	out := runEach(t, packets, func(int) matrix.Matrix { return a },
		func(int) []volley.Option { return []volley.Option{volley.WithTimeout(200 * time.Millisecond)} },
		func(k int, tr transport.Transport) transport.Transport {
			if k != 3 {
				return tr
			}
			return faulty.New(tr, faulty.Die(1))
		})
	for k, err := range out.errs {
		if err == nil {
			t.Errorf("processor %d returned no error", k)
		}
	}
	if text := errors.Join(out.errs...).Error(); !strings.Contains(text, "processor 3") || !strings.Contains(text, "timed out") {
		t.Errorf("%q does not say that processor 3 was waited for", text)
	}
}

func TestSymbolError(t *testing.T) {
	f := parse(t, "257")
	a := random(t, f, 3, 1)
	out := runEach(t, [][]byte{{1, 0}, {2, 0, 1, 1, 2, 1}, {3, 0}}, func(int) matrix.Matrix { return a },
		func(int) []volley.Option { return nil }, nil)
	var symbol *volley.SymbolError
	if !errors.As(out.errs[1], &symbol) || symbol.Offset != 2 || symbol.Value != field.Code(257) {
		t.Errorf("processor 1: %v, want symbol 257 at byte 2", out.errs[1])
	}
	for _, k := range []int{0, 2} {
		if !errors.As(out.errs[k], new(*transport.AbortError)) {
			t.Errorf("processor %d: %v, want to hear of processor 1", k, out.errs[k])
		}
	}
}

func TestBadCalls(t *testing.T) {
	f := parse(t, "2^16")
	a := random(t, f, 2, 1)
	end := local.New(2)[0]
	if _, _, err := volley.Encode(context.Background(), end, a, []byte{1}); err == nil {
		t.Error("a packet of a byte over 2^16 was accepted")
	}
	if _, _, err := volley.Encode(context.Background(), local.New(3)[0], a, nil); err == nil {
		t.Error("a matrix for 2 processors was accepted by 3")
	}
	if _, err := volley.Compile(matrix.NewDense(f, 2, 3)); err == nil {
		t.Error("a 2×3 matrix was accepted")
	}
	for _, bad := range []volley.Option{
		volley.WithPorts(0), volley.WithAlgorithm("magic"), volley.WithBeta(-1), volley.WithTau(-1),
		volley.WithMemory(0), volley.WithTimeout(-1),
	} {
		if _, err := volley.Compile(a, bad); err == nil {
			t.Error("an option out of range was accepted")
		}
	}
}

// TestModelOfProcessor0 gives the processors different β and τ: all run what
// those of processor 0 choose.
func TestModelOfProcessor0(t *testing.T) {
	f := parse(t, "2^8")
	a := random(t, f, 16, 1)
	packets := make([][]byte, 16)
	for k := range packets {
		packets[k] = make([]byte, 1000)
	}
	out := runEach(t, packets, func(int) matrix.Matrix { return a }, func(k int) []volley.Option {
		return []volley.Option{volley.WithBeta(time.Duration(k) * time.Second), volley.WithTau(float64(k))}
	}, nil)
	if err := errors.Join(out.errs...); err != nil {
		t.Fatal(err)
	}
	for k, r := range out.reports {
		if r.PlanHash != out.reports[0].PlanHash {
			t.Errorf("processor %d ran another plan", k)
		}
	}
}

// counter is a writer that counts.
type counter struct{ n int64 }

func (d *counter) WriteAt(p []byte, offset int64) (int, error) {
	if offset != d.n {
		return 0, errors.New("not in ascending order")
	}
	d.n += int64(len(p))
	return len(p), nil
}

// TestRunInSegments runs long packets through little memory, and one encoder
// twice.
func TestRunInSegments(t *testing.T) {
	f := parse(t, "2^8")
	a := random(t, f, 16, 1)
	e, err := volley.Compile(a, volley.WithMemory(256<<10))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		reports := make([]*volley.Report, 16)
		err = local.Run(context.Background(), 16, func(ctx context.Context, tr transport.Transport) error {
			const size = 1 << 20
			src := io.NewSectionReader(zeros{}, 0, size)
			var dst counter
			var err error
			reports[tr.Rank()], err = e.Run(ctx, tr, src, size, &dst)
			if err == nil && dst.n != size {
				t.Errorf("%d bytes written, want %d", dst.n, size)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := volley.Merge(reports); r.Segments < 20 || r.C1 != 4 || r.C2 != 6 {
			t.Errorf("%+v", r)
		}
	}
}

// zeros reads as zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// TestReportJSON checks the names that programs read.
func TestReportJSON(t *testing.T) {
	data, err := json.Marshal(volley.Report{})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"algorithm", "field", "matrix", "k", "ports", "c1", "c2", "c3", "bound_c1", "bound_c2", "packet_bytes",
		"symbols_per_packet", "segments", "rounds", "bytes_sent_max", "control_rounds", "control_bytes", "plan_hash",
		"order", "verified", "seconds",
	} {
		if _, ok := object[key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
}
