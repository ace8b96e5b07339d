package volley_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley"
	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/faulty"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/matrix/matrixtest"
	"volley/sim"
	"volley/transport"
	"volley/verify"
)

// paper is the model of the paper with usual times.
func paper(ports int) volley.Option {
	return volley.WithPaperModel(ports, volley.DefaultBeta, volley.DefaultTau)
}

// slowerLinks is a network that [sim.ParseNetwork] reads.
func slowerLinks(name string) sim.Network {
	n, err := sim.ParseNetwork(name)
	if err != nil {
		panic(err)
	}
	return n
}

// TestDisagreement starts one processor, or a few, with something else.
func TestDisagreement(t *testing.T) {
	same := func(k int) member {
		return member{matrix: matrixtest.Random(t, fieldtest.Parse(t, "2^8"), k, 1), packet: make([]byte, 100), opts: []volley.Option{paper(2)}}
	}
	given, err := mustEncoder(t, same(5).matrix, volley.WithAlgorithm("bruck-allgather")).Plan(t.Context(), nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	with := func(opts ...volley.Option) func(m *member) {
		return func(m *member) { m.opts = append(slices.Clone(m.opts), opts...) }
	}
	other := func(f string, seed uint64) func(m *member) {
		return func(m *member) { m.matrix = matrixtest.Random(t, fieldtest.Parse(t, f), m.matrix.Rows(), seed) }
	}
	for _, c := range []struct {
		k      int
		change func(m *member)
		differ []string
	}{
		{5, other("2^8:0x11b", 1), []string{"field"}},
		{5, other("2^8", 2), []string{"matrix"}},
		{5, func(m *member) { m.matrix = matrix.DenseOf(m.matrix) }, []string{"matrix"}}, // equal, but by another name
		{5, other("2^16", 3), []string{"field", "matrix"}},
		{5, with(paper(1)), []string{"ports"}},
		{130, with(paper(1)), []string{"ports"}},
		{5, with(volley.WithNetwork(volley.DefaultNetwork())), []string{"model"}},
		{5, with(volley.WithWholePackets()), []string{"whole packets"}},
		{5, with(volley.WithNetwork(slowerLinks("100mbit/1ms,3:0.5"))), []string{"model", "slower links"}},
		{5, with(volley.WithAlgorithm("universal")), []string{"algorithm"}},
		{5, with(volley.WithPlan(given)), []string{"ports", "algorithm"}},
		{5, with(volley.WithMemory(1 << 20)), []string{"memory"}},
		{5, with(volley.WithCheck(false)), []string{"check"}},
		{5, with(paper(3), volley.WithAlgorithm("bruck-allgather"), volley.WithMemory(1<<20), volley.WithCheck(false)), []string{"ports", "algorithm", "memory", "check"}},
	} {
		for _, who := range [][]int{{0}, {3}, {0, 4}, {1, 2}} {
			synctest.Test(t, func(t *testing.T) {
				members := slices.Repeat([]member{same(c.k)}, c.k)
				for _, i := range who {
					c.change(&members[i])
				}
				reference := 0
				if who[0] == 0 {
					reference = 1
				}
				for i, r := range encode(t.Context(), members) {
					got, names := &volley.DisagreementError{}, []string(nil)
					errors.As(r.err, &got)
					for _, x := range got.Differences {
						names = append(names, x.Name)
					}
					if !slices.Equal(got.Ranks, who) || got.Reference != reference || !slices.Equal(names, c.differ) {
						t.Errorf("%v: rank %d: got error %v, want ranks %v to differ from %d in %q", who, i, r.err, who, reference, c.differ)
					}
					if errors.As(r.err, new(*transport.AbortError)) {
						t.Errorf("%v: processor %d only heard of it: %v", who, i, r.err)
					}
				}
			})
		}
	}
}

// TestNoDisagreement gives processors options that differ and may: all go by the β, τ and γ of processor 0.
func TestNoDisagreement(t *testing.T) {
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 3, 1)
	packets := randomPackets(a.Field(), 5, 5, 5)
	members := alike(a, packets)
	for k, ports := range []int{2, 3, math.MaxInt} {
		members[k].opts = []volley.Option{volley.WithPaperModel(ports, time.Duration(k+1)*time.Second, sim.PerByte(k+1)), volley.WithGamma(sim.PerByte(k + 1)), volley.WithTimeout(time.Duration(k) * time.Hour)}
	}
	_, want := mustEncode(t, alike(a, packets, members[0].opts...))
	results := encode(t.Context(), members)
	for k, r := range results {
		if r.err != nil || r.report.PlanHash != want.PlanHash || wrong(results, product(a, packets))[k] {
			t.Errorf("processor %d: %v, report %+v", k, r.err, r.report)
		}
	}
}

// TestWrongMember has a rank do what all have to refuse, and what follows from what all have agreed on: each says so itself.
func TestWrongMember(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	with := func(opt volley.Option) func(m []member) {
		return func(m []member) {
			for i := range m {
				m[i].opts = []volley.Option{opt}
			}
		}
	}
	greets := func(m []member) { m[1].verb = "protect" }
	verbs := "volley: rank 1 runs protect, rank 0 runs encode: run the same at all ranks"
	for _, x := range []struct {
		name   string
		k      int
		change func(m []member)
		text   string
		all    bool // find it themselves
	}{
		{"a verb", 3, greets, verbs, true},
		{"a verb among many", 130, greets, verbs, true},
		{"a matrix for more", 2, func(m []member) { m[1].matrix = matrixtest.Random(t, f, 3, 1) }, "a matrix for 3 processors on a transport of 2 ranks", false},
		{"a matrix for fewer", 4, func(m []member) { m[1].matrix = matrixtest.Random(t, f, 3, 1) }, "a matrix for 3 processors on a transport of 4 ranks", false},
		{"an empty matrix", 2, func(m []member) { m[1].matrix = matrix.NewDense(f, 2, 0) }, "2 rows and 0 columns", false},
		{"a packet at no source", 4, func(m []member) {
			for i := range m {
				m[i].matrix, m[i].packet = matrix.NewDense(f, 1, 4), nil
			}
			m[0].packet, m[1].packet = []byte{1}, []byte{1}
		}, "processor 1: a packet of 1 bytes, and it is no source", false},
		{"too little memory", 5, with(volley.WithMemory(1)), "1 bytes of memory", true},
		{"another structure", 5, with(volley.WithAlgorithm("dft")), "dft", true},
		{"limits", 5, with(volley.WithLimits(algo.Limits{Memory: 1})), "limit", true},
	} {
		for range 1 + 15*(x.k/5%2) { // whoever is first
			synctest.Test(t, func(t *testing.T) {
				members := alike(matrixtest.Random(t, f, x.k, 1), make([][]byte, x.k))
				for i := range members {
					members[i].packet = make([]byte, 1000)
				}
				x.change(members)
				for i, r := range encode(t.Context(), members) {
					aborted := errors.As(r.err, new(*transport.AbortError))
					if !strings.Contains(fmt.Sprint(r.err), x.text) || aborted && (x.all || i == 1) {
						t.Errorf("%s: processor %d: %v, want %q", x.name, i, r.err, x.text)
					}
				}
			})
		}
	}
}

// failing fails.
type failing struct{ error }

func (f failing) ReadAt([]byte, int64) (int, error)  { return 0, f.error }
func (f failing) WriteAt([]byte, int64) (int, error) { return 0, f.error }

// file is a packet with a name.
type file struct {
	io.ReaderAt
	name string
}

func (f file) Name() string { return f.name }

// TestWrongPacket has rank 2 of 4 bring a packet that does not do to a first run, or to one after others, by messages, by
// shared memory and on two hosts. It says why; all others name it, say the same, and nobody waits.
func TestWrongPacket(t *testing.T) {
	const size = 90_000
	broken := errors.New("broken")
	symbol := func(offset int, name string) func(p *volley.Packet) {
		return func(p *volley.Packet) {
			p.Data = bytes.Clone(p.Data)
			p.Data[offset], p.Data[offset+1] = 0xff, 0xff
			if name != "" {
				p.Source, p.Size, p.Data = file{bytes.NewReader(p.Data), name}, size, nil
			}
		}
	}
	reader := func(source io.ReaderAt, n int64) func(p *volley.Packet) {
		return func(p *volley.Packet) { p.Source, p.Size, p.Data = source, n, nil }
	}
	for _, x := range []struct {
		text  string
		spoil func(p *volley.Packet)
		cause error
	}{
		{"packet: symbol 65535 at byte 0 is outside the field 257", symbol(0, ""), nil},
		{"one.dat: symbol 65535 at byte 40000 is outside the field 257", symbol(40_000, "one.dat"), nil},
		{"packet: symbol 65535 at byte 89998 is outside the field 257", symbol(size-2, ""), nil},
		{"broken", reader(failing{broken}, size), broken},
		{"70000 of 90000 bytes", reader(bytes.NewReader(make([]byte, 70_000)), size), io.ErrUnexpectedEOF},
		{"broken", func(p *volley.Packet) { p.Coded = failing{broken} }, broken},
		{"processor 2: a packet of 3 bytes: symbols of 257 have 2 bytes", func(p *volley.Packet) { p.Data = p.Data[:3] }, nil},
		{"processor 2: a packet of -2 bytes", reader(bytes.NewReader(nil), -2), nil},
		{"processor 2: a packet of 4 bytes and no Source", reader(nil, 4), nil},
		{"processor 2: no place for its coded packet", func(p *volley.Packet) { p.Result = nil }, nil},
		{"coded packet of processor 2 and the packet of processor 2", func(p *volley.Packet) { result := p.Data; p.Result = &result }, nil},
	} {
		for _, hosts := range [][]int{nil, {4}, {2, 2}} {
			for before := range 2 {
				t.Run(fmt.Sprint(x.text, hosts, before), func(t *testing.T) {
					a := matrixtest.Random(t, fieldtest.Parse(t, "257"), 4, 1)
					e := mustEncoder(t, a, volley.WithTimeout(time.Minute), volley.WithMemory(200_000))
					packets := randomPackets(a.Field(), size/2, size/2, size/2, size/2)
					for rank, err := range atRanks(t, 4, hosts, func(ctx context.Context, tr transport.Transport) error {
						result := make([]byte, size)
						p := volley.Packet{Data: packets[tr.Rank()], Result: &result}
						for range before {
							if _, err := e.Run(ctx, tr, p); err != nil {
								return fmt.Errorf("before: %w", err)
							}
						}
						if tr.Rank() == 2 {
							x.spoil(&p)
						}
						_, err := e.Run(ctx, tr, p)
						return err
					}) {
						aborted := new(transport.AbortError)
						if strings.Count(fmt.Sprint(err), x.text) != 1 || x.cause != nil && !errors.Is(err, x.cause) ||
							errors.As(err, &aborted) != (rank != 2) || rank != 2 && aborted.Rank != 2 {
							t.Errorf("rank %d: %v", rank, err)
						}
					}
				})
			}
		}
	}
}

// sends returns the picks of the messages of the run itself that the processor sends, and in how many pieces packets are cut.
func sends(t *testing.T, members []member, proc int) (data []faulty.Pick, pieces int) {
	t.Helper()
	symbols := int64(len(members[0].packet) / members[0].matrix.Field().SymbolBytes())
	run, err := mustEncoder(t, members[0].matrix, members[0].opts...).Plan(t.Context(), nil, symbols)
	if err != nil {
		t.Fatal(err)
	}
	for number, round := range run.Schedule(proc).Rounds {
		for _, s := range round.Sends {
			data = append(data, faulty.SendsTo(s.Dst, transport.Tag{Round: transport.ControlRounds + number, Port: s.Port}))
		}
	}
	return data, run.Info().PieceCount()
}

// TestFlipped flips a bit in the messages of a run, one at a time. Without the check the result is wrong at some processors
// and none notices; with it, these are the ones that say so.
func TestFlipped(t *testing.T) {
	for _, x := range []struct {
		field, matrix string
		k, r          int
		algorithms    string
		opt           volley.Option
		harmless      bool // some messages are multiplied by zero
		many          bool // add up what is wrong, and one of them says so; of these one message is struck
	}{
		{"2^8", "cauchy", 5, 5, "universal prepare-and-shoot bruck-allgather", paper(2), false, false},
		{"257", "cauchy", 5, 5, "universal prepare-and-shoot bruck-allgather", paper(2), false, false},
		{"97", "cauchy", 5, 5, "universal prepare-and-shoot bruck-allgather", paper(2), false, false},
		{"2^8", "cauchy", 6, 2, "sinks", paper(1), false, false},
		{"2^8", "cauchy", 4, 2, "sinks", volley.WithSeparateSinks(), false, false},
		{"2^8", "cauchy", 6, 1, "helpers", paper(1), false, false},
		{"2^8", "cauchy", 4, 2, "exchange", paper(1), false, false},
		{"2^8", "cauchy", 4, 4, "exchange", paper(1), false, false},
		{"2^8", "cauchy", 8, 8, "cauchy", volley.WithPaperModel(1, volley.DefaultBeta, 1), true, false},
		{"2^8", "random:1", 66, 66, "universal", paper(2), false, true},
		{"257", "dft", 16, 16, "dft", paper(2), true, true},
	} {
		for _, algorithm := range strings.Fields(x.algorithms) {
			t.Run(fmt.Sprint(x.field, x.k, x.r, algorithm), func(t *testing.T) {
				f := fieldtest.Parse(t, x.field)
				spec, err := matrices.ParseSpec(x.matrix)
				if err != nil {
					t.Fatal(err)
				}
				a, err := spec.Build(f, x.k, x.r)
				if err != nil {
					t.Fatal(err)
				}
				const symbols = 1024
				n := mustEncoder(t, a, x.opt).Problem().Processors()
				lengths := make([]int, n)
				copy(lengths, slices.Repeat([]int{symbols}, x.k))
				packets := randomPackets(f, lengths...)
				members := func(check bool) []member {
					return alike(a, packets, x.opt, volley.WithAlgorithm(algorithm), volley.WithCheck(check))
				}
				var want [][]byte
				for _, r := range encode(t.Context(), members(true)) {
					want = append(want, r.coded)
				}
				harmless, struck := 0, 0
				for src := range n {
					picks, pieces := sends(t, members(true), src)
					for i, pick := range picks {
						if x.many && (src != 3 || i > 0) {
							continue
						}
						what := fmt.Sprintf("send %d of processor %d", i, src)
						offset := f.SymbolBytes() * max(0, symbols/pieces-1-7*i)
						unchecked, checked := flipped(t, members(false), src, pick, offset), flipped(t, members(true), src, pick, offset)
						spoilt := wrong(unchecked, want)
						if struck++; len(spoilt) == 0 {
							harmless++
							continue
						}
						blame(t, what, unchecked, checked, spoilt, x.many)
					}
				}
				if struck == 0 || harmless > struck/2 || harmless > 0 && !x.harmless {
					t.Errorf("%d messages were struck, and %d of these did no harm", struck, harmless)
				}
			})
		}
	}
}

// flipped flips the lowest bit at the offset of a part that is no header.
func flipped(t *testing.T, m []member, src int, pick faulty.Pick, offset int) []result {
	t.Helper()
	for part := 1; part >= 0; part-- {
		m[src].faults = []faulty.Fault{faulty.Flip(pick, part, offset, 0)}
		if results := encode(t.Context(), m); results[src].idle == 0 {
			return results
		}
	}
	t.Fatal("never struck")
	return nil
}

// blame checks that those with a wrong packet say so, and that without a check nobody does.
func blame(t *testing.T, what string, unchecked, checked []result, spoilt map[int]bool, many bool) {
	t.Helper()
	caught := 0
	for j, r := range checked {
		if unchecked[j].err != nil {
			t.Errorf("unchecked: processor %d: %v", j, unchecked[j].err)
		}
		var failed *verify.CheckError
		aborted := new(transport.AbortError)
		switch heard := errors.As(r.err, &aborted); {
		case !errors.As(r.err, &failed):
			t.Errorf("%s: processor %d: %v", what, j, r.err)
		case heard && !many && !spoilt[aborted.Rank], !heard && failed.Proc != j, !heard && !many && !spoilt[j]:
			t.Errorf("%s: processor %d: %v; the wrong ones are %v", what, j, r.err, spoilt)
		case !heard:
			caught++
		}
	}
	if caught == 0 {
		t.Errorf("%s: no processor says that its packet is wrong", what)
	}
}

// TestInvalidData changes a symbol on its way to one that is no element, but is
// congruent to what it was, in a message that is a coded packet already.
func TestInvalidData(t *testing.T) {
	for name, bits := range map[string][][2]int{ // byte and bit
		"257": {{0, 0}, {1, 0}}, // + 257
		"2":   {{0, 0}, {0, 1}}, // 0 to X+1
	} {
		f := fieldtest.Parse(t, name)
		for _, check := range []bool{false, true} {
			// All packets are zero, and so are the coded ones.
			packets := randomPackets(f, 5, 5)
			clear(packets[0])
			clear(packets[1])
			members := alike(matrix.DenseFunc(f, 2, 2, func(_, _ int) field.Element { return field.One }), packets, volley.WithAlgorithm("exchange"), volley.WithCheck(check))
			data, _ := sends(t, members, 0)
			for _, bit := range bits {
				members[0].faults = append(members[0].faults, faulty.Flip(data[len(data)-1], 0, bit[0], bit[1]))
			}
			results := encode(t.Context(), members)
			caught := errors.As(results[1].err, new(*verify.CheckError))
			if results[0].idle > 0 || caught != check || !check && f.FirstInvalid(results[1].coded) != 0 {
				t.Errorf("%s, check %v: %v, %x", name, check, results[1].err, results[1].coded)
			}
		}
	}
}

// TestStruck strikes every message of runs of one encoder, one at a time: it is lost, comes twice, or has a bit flipped, in
// every byte of the first run. Nobody returns a wrong packet, and nobody waits past the timeout.
func TestStruck(t *testing.T) {
	const k = 3
	for src := range k {
		for name, fault := range map[string]func(faulty.Pick) faulty.Fault{
			"drop": faulty.Drop, "duplicate": faulty.Duplicate,
			"flip first": func(p faulty.Pick) faulty.Fault { return faulty.Flip(p, 0, 3, 3) },
			"flip later": func(p faulty.Pick) faulty.Fault { return faulty.Flip(p, 1, 3, 3) },
		} {
			struck := 0
			for send := range 40 {
				hit, failed := strike(t, fmt.Sprintf("%s of send %d of rank %d", name, send, src), src, 3, fault(faulty.Nth(send)))
				if hit {
					struck++
				}
				if failed != hit && name != "duplicate" || failed && !hit {
					t.Errorf("%s of send %d of rank %d: struck %v, failed %v", name, send, src, hit, failed)
				}
			}
			if struck < 3 {
				t.Errorf("%s: %d messages of rank %d struck", name, struck, src)
			}
		}
		flips := 0
		for send, parts := 0, 1; parts > 0 || send < 5; send++ { // the last ones are the barrier's
			for parts = 0; ; parts++ {
				offset := 0
				for ; ; offset++ {
					what := fmt.Sprintf("byte %d of part %d of send %d of rank %d", offset, parts, send, src)
					if hit, _ := strike(t, what, src, 1, faulty.Flip(faulty.Nth(send), parts, offset, (offset+send)%8)); !hit {
						break
					}
					flips++
				}
				if offset == 0 {
					break
				}
			}
		}
		if flips < 300 {
			t.Errorf("rank %d: %d flips", src, flips)
		}
	}
}

// strike does runs of one encoder with a fault, and reports whether it struck, and whether a run failed.
func strike(t *testing.T, what string, src, runs int, fault faulty.Fault) (hit, failed bool) {
	const k = 3
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), k, 1)
	packets := randomPackets(a.Field(), 70, 65, 66)
	want := product(a, packets)
	synctest.Test(t, func(t *testing.T) {
		group := localGroup(k)
		bad := faulty.New(group[src], fault)
		group[src] = bad
		e := mustEncoder(t, a, volley.WithTimeout(time.Minute))
		start := time.Now()
		for run := range runs {
			errs := together(group, func(tr transport.Transport) error {
				coded, r, err := e.Encode(t.Context(), tr, packets[tr.Rank()])
				if err == nil && (!r.Verified || !bytes.Equal(coded, want[tr.Rank()])) {
					t.Errorf("%s: rank %d returns a wrong packet in run %d", what, tr.Rank(), run)
				}
				return err
			})
			failed = failed || errors.Join(errs...) != nil
		}
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("%s: took %v", what, took)
		}
		hit = bad.Idle() == 0
	})
	return hit, failed
}

// TestStopped stops a processor at every point of a run: all others say so after the timeout, or when their context ends.
func TestStopped(t *testing.T) {
	enough := errors.New("enough")
	a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), 5, 1)
	for _, x := range []struct {
		name  string
		stop  func(round int) faulty.Fault
		opts  []volley.Option
		after time.Duration
		cause error
	}{
		{"hang", faulty.Hang, []volley.Option{volley.WithTimeout(10 * time.Second)}, 10 * time.Second, executor.ErrTimeout},
		{"die", faulty.Die, []volley.Option{volley.WithTimeout(10 * time.Second)}, 10 * time.Second, executor.ErrTimeout},
		{"the usual timeout", faulty.Hang, nil, 30 * time.Second, executor.ErrTimeout},
		{"without a timeout", faulty.Hang, []volley.Option{volley.WithTimeout(0)}, time.Hour, enough},
	} {
		for _, round := range []int{0, 1, transport.ControlRounds} { // the greeting, the check, the run
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(time.Hour, func() { cancel(enough) }).Stop()
				members := alike(a, randomPackets(a.Field(), 100, 100, 100, 100, 100), x.opts...)
				members[2].faults = []faulty.Fault{x.stop(round)}
				start := time.Now()
				for j, r := range encode(ctx, members) {
					if r.err == nil || j != 2 && (!errors.Is(r.err, x.cause) || x.cause != enough && !strings.Contains(r.err.Error(), fmt.Sprint("timed out: nothing for ", x.after))) {
						t.Errorf("%s in round %d: processor %d: %v", x.name, round, j, r.err)
					}
				}
				if took := time.Since(start); took != x.after {
					t.Errorf("%s in round %d: took %v, want %v", x.name, round, took, x.after)
				}
			})
		}
	}
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
	members := alike(a, randomPackets(a.Field(), slices.Repeat([]int{9}, k)...), volley.WithAlgorithm("universal"))
	members[liarRank].matrix = liar{a, liarRank, 40} // which its program does without
	for rank, r := range encode(t.Context(), members) {
		if r.err == nil || !strings.Contains(r.err.Error(), "the check fails, but not by the entries of the matrix") {
			t.Errorf("rank %d: %v", rank, r.err)
		}
	}
}

// TestOtherBound has one rank, or all but one, run what another encoder with equal options has made ready: nobody waits for
// ever, without any timeout, nobody returns a packet, and all know why.
func TestOtherBound(t *testing.T) {
	for _, k := range []int{2, 3, 20} {
		for _, algorithm := range []string{"universal", "bruck-allgather", "exchange"} {
			a := matrixtest.Random(t, fieldtest.Parse(t, "2^8"), k, 1)
			for way, differs := range []func(rank int) bool{
				func(rank int) bool { return rank == 0 }, func(rank int) bool { return rank == k-1 }, func(rank int) bool { return rank != 1 },
			} {
				t.Run(fmt.Sprint(k, algorithm, way), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						encoders := [2]*volley.Encoder{}
						for i := range encoders {
							encoders[i] = mustEncoder(t, a, volley.WithTimeout(0), volley.WithAlgorithm(algorithm))
						}
						for r, err := range together(localGroup(k), func(tr transport.Transport) error {
							bounds := [2]*volley.Bound{}
							for i, e := range encoders {
								b, err := e.Bind(t.Context(), tr, []volley.Packet{{Data: make([]byte, 64), Result: new([]byte)}})
								if err == nil {
									err = b.Run()
								}
								if err != nil { // another rank is in its next run already
									return err
								}
								bounds[i] = b
							}
							if differs(tr.Rank()) {
								return bounds[1].Run()
							}
							return bounds[0].Run()
						}) {
							if !strings.Contains(fmt.Sprint(err), "in plan") {
								t.Errorf("rank %d: %v", r, err)
							}
						}
					})
				})
			}
		}
	}
}
