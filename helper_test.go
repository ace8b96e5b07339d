package volley_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"volley"
	"volley/field"
	"volley/internal/faulty"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// randomPacket returns a packet of the given number of symbols.
func randomPacket(f field.Field, rng *rand.Rand, symbols int) []byte {
	packet := make([]byte, symbols*f.SymbolBytes())
	field.FillRandom(f, packet, rng.Uint64)
	return packet
}

// randomPackets returns a packet for each length in symbols.
func randomPackets(f field.Field, lengths ...int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var packets [][]byte
	for _, n := range lengths {
		packets = append(packets, randomPacket(f, rng, n))
	}
	return packets
}

// product returns x·A by the schoolbook, the packets padded to the longest.
func product(a matrix.Matrix, x [][]byte) [][]byte {
	f := a.Field()
	size, longest := f.SymbolBytes(), 0
	for _, packet := range x {
		longest = max(longest, len(packet))
	}
	coded := make([][]byte, a.Cols())
	for j := range coded {
		coded[j] = make([]byte, longest)
		for s := 0; s < longest; s += size {
			var sum field.Element
			for i := range x {
				if s < len(x[i]) {
					sum = f.Add(sum, f.Mul(a.At(i, j), field.Symbol(f, x[i][s:])))
				}
			}
			field.PutSymbol(f, coded[j][s:], sum)
		}
	}
	return coded
}

// atRanks runs f at all ranks of a group: of so many, or of hosts with so many ranks each, which share memory.
func atRanks(t *testing.T, n int, hosts []int, f func(ctx context.Context, tr transport.Transport) error) []error {
	t.Helper()
	var group []transport.Transport
	for _, end := range local.NewHosts(hosts...) {
		group = append(group, end)
	}
	if hosts == nil {
		group = localGroup(n)
	}
	return together(group, func(tr transport.Transport) error {
		err := f(t.Context(), tr)
		if err != nil {
			tr.Abort(err)
		}
		if end, ok := tr.(*local.Endpoint); ok {
			end.Close()
		}
		return err
	})
}

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

// A member is one processor of a run.
type member struct {
	matrix matrix.Matrix
	packet []byte
	opts   []volley.Option
	faults []faulty.Fault
	verb   string // what it greets with, instead of encoding
}

// A result is what [volley.Encode] returned to it.
type result struct {
	coded  []byte
	report *volley.Report
	err    error
	idle   int // faults that never struck
}

// alike returns a member for each packet.
func alike(a matrix.Matrix, packets [][]byte, opts ...volley.Option) []member {
	members := make([]member, len(packets))
	for k, packet := range packets {
		members[k] = member{matrix: a, packet: packet, opts: opts}
	}
	return members
}

// encode runs all members and returns when all have returned. A panic of one is
// one of the test.
func encode(ctx context.Context, members []member) []result {
	results := make([]result, len(members))
	var wg sync.WaitGroup
	for k, end := range local.New(len(members)) {
		wg.Go(func() {
			m, r := members[k], &results[k]
			var t transport.Transport = end
			if m.faults != nil {
				f := faulty.New(end, m.faults...)
				defer func() { r.idle = f.Idle() }()
				t = f
			}
			if m.verb != "" {
				r.err = volley.Greet(ctx, t, m.verb, time.Minute)
				return
			}
			r.coded, r.report, r.err = volley.Encode(ctx, t, m.matrix, m.packet, m.opts...)
		})
	}
	wg.Wait()
	return results
}

// mustEncode is encode, where nothing may fail, and returns the coded packets
// and the report of the whole run.
func mustEncode(t testing.TB, members []member) ([][]byte, *volley.Report) {
	t.Helper()
	var coded [][]byte
	var reports []*volley.Report
	for k, r := range encode(t.Context(), members) {
		if r.err != nil {
			t.Fatalf("processor %d: %v", k, r.err)
		}
		coded, reports = append(coded, r.coded), append(reports, r.report)
	}
	return coded, volley.Merge(reports)
}

// wrong returns the processors whose packets differ from what is wanted.
func wrong(results []result, want [][]byte) map[int]bool {
	list := map[int]bool{}
	for k, r := range results {
		if !bytes.Equal(r.coded, want[k]) {
			list[k] = true
		}
	}
	return list
}
