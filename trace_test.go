package volley_test

import (
	"context"
	"testing"

	"volley"
	"volley/executor"
	"volley/field/fieldtest"
	"volley/matrix/matrixtest"
	"volley/trace"
	"volley/transport"
	"volley/transport/local"
)

// TestWithTrace compares the traces of runs at several ranks with their reports.
func TestWithTrace(t *testing.T) {
	const k = 6
	f := fieldtest.Parse(t, "2^8")
	a := matrixtest.Random(t, f, k, 1)
	packets := randomPackets(f, 5000, 5000, 5000, 5000, 5000, 400)
	for _, ranks := range []int{k, 2, 1} {
		recorder := trace.New()
		encoder, err := volley.NewEncoder(t.Context(), a, volley.WithMemory(32<<10), volley.WithTrace(recorder))
		if err != nil {
			t.Fatal(err)
		}
		reports := make([]*volley.Report, ranks)
		err = local.Run(t.Context(), ranks, func(ctx context.Context, tr transport.Transport) (err error) {
			first, end := executor.Hosted(k, tr.Rank(), ranks)
			var mine []volley.Packet
			for proc := first; proc < end; proc++ {
				mine = append(mine, volley.Packet{Data: packets[proc], Coded: discard{}})
			}
			reports[tr.Rank()], err = encoder.Run(ctx, tr, mine...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		type key struct {
			rank int
			kind trace.Kind
		}
		count, sent := map[key]int{}, make([]int64, ranks)
		rounds := make([]map[int]bool, ranks)
		for rank := range rounds {
			rounds[rank] = map[int]bool{}
		}
		for _, e := range recorder.Events() {
			count[key{e.Rank, e.Kind}]++
			if e.Kind == trace.Send {
				sent[e.Rank] += e.Bytes
				rounds[e.Rank][e.Round] = true
			}
		}
		for rank, r := range reports {
			if r.Segments < 2 {
				t.Fatalf("%d segments: they cover too little", r.Segments)
			}
			for _, kind := range []trace.Kind{trace.Agree, trace.Plan, trace.Compile, trace.Check} {
				if n := count[key{rank, kind}]; n != 1 {
					t.Errorf("%d ranks: rank %d: %d spans %s", ranks, rank, n, kind)
				}
			}
			for _, kind := range []trace.Kind{trace.Read, trace.Observe, trace.Write} {
				if n := count[key{rank, kind}]; n != r.Segments {
					t.Errorf("%d ranks: rank %d: %d spans %s for %d segments", ranks, rank, n, kind, r.Segments)
				}
			}
			if ranks == k && (sent[rank] != r.BytesSentMax || len(rounds[rank]) != r.C1) {
				t.Errorf("rank %d: %d bytes in rounds %v, reported are %d in %d rounds", rank, sent[rank], rounds[rank], r.BytesSentMax, r.C1)
			}
		}
	}
}
