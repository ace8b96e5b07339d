package executor_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"volley/executor"
	"volley/field/fieldtest"
	"volley/trace"
)

// TestTrace checks what a trace says of runs at one rank, in one pipeline and in two: spans of a
// row follow one another, every round of every segment is there, and the bytes sent are those
// counted.
func TestTrace(t *testing.T) {
	const k, symbols = 6, 100
	f := fieldtest.Parse(t, "2^8")
	p := compile(t, "universal", randomMatrix(t, f, k), 1)
	for _, c := range []struct {
		ranks, segment int
		rows           []trace.Row
	}{
		{1, 10, []trace.Row{trace.Pipeline0, trace.Pipeline1}},
		{1, 11, []trace.Row{trace.Pipeline0}},
		{k, 11, []trace.Row{trace.Pipeline0, trace.Messages}},
		{k, 10, []trace.Row{trace.Pipeline0, trace.Pipeline1, trace.Messages}},
	} {
		t.Run(fmt.Sprintf("%d ranks/segments of %d", c.ranks, c.segment), func(t *testing.T) {
			recorder := trace.New()
			r := &run{plan: p, packets: randomPackets(f, 1, equal(k, symbols)...), ranks: c.ranks, bytes: symbols, segment: c.segment}
			r.job = func(_ int, job *executor.Job) {
				job.Trace = recorder
				job.Observe = func(int, [][]byte, [][]byte) error { return nil }
			}
			r.mustDo(t)
			segments := (symbols + c.segment - 1) / c.segment
			type key struct {
				rank int
				kind trace.Kind
			}
			type message struct{ src, dst, segment, round, port int }
			messages := map[trace.Kind]map[message]int64{} // bytes
			type place struct{ rank, segment, round int }
			count, bytes := map[key]int{}, map[key]int64{}
			coded, sent := map[place]int{}, make([]int64, k)
			ends := map[[2]int]int64{} // by rank and row
			var rows []trace.Row
			events := recorder.Events()
			slices.SortStableFunc(events, func(a, b trace.Event) int { return int(a.Start - b.Start) })
			for _, e := range events {
				count[key{e.Rank, e.Kind}]++
				bytes[key{e.Rank, e.Kind}] += e.Bytes
				if !slices.Contains(rows, e.Row) {
					rows = append(rows, e.Row)
				}
				if e.Kind == trace.Code {
					coded[place{e.Rank, e.Segment, e.Round}]++
				}
				if e.Kind == trace.Send {
					sent[e.First] += e.Bytes
				}
				switch m := (message{e.First, e.Partner, e.Segment, e.Round, e.Port}); e.Kind {
				case trace.Wait, trace.Receive:
					m.src, m.dst = m.dst, m.src
					fallthrough
				case trace.Send, trace.Settle:
					if messages[e.Kind] == nil {
						messages[e.Kind] = map[message]int64{}
					}
					messages[e.Kind][m] = e.Bytes
					if e.First != e.Last || e.Rank != e.First || e.Peer != e.Partner {
						t.Errorf("%+v: want one processor at each rank", e)
					}
				}
				first, end := executor.Hosted(k, e.Rank, c.ranks)
				if e.First < first || e.Last >= end || e.Length < 0 || e.Segment >= segments {
					t.Errorf("%+v", e)
				}
				if e.Row == trace.Messages {
					continue
				}
				row := [2]int{e.Rank, int(e.Row)}
				if e.Start < ends[row] {
					t.Errorf("rank %d: %s of segment %d in row %d begins %d ns before the end of the one ahead", e.Rank, e.Kind, e.Segment, e.Row, ends[row]-e.Start)
				}
				ends[row] = e.Start + e.Length
			}
			slices.Sort(rows)
			if !slices.Equal(rows, c.rows) {
				t.Errorf("rows %v, want %v", rows, c.rows)
			}
			for rank := range c.ranks {
				for _, kind := range []trace.Kind{trace.Read, trace.Write, trace.Observe} {
					n := int64(symbols * k / c.ranks)
					if kind == trace.Observe {
						n *= 2
					}
					if x := (key{rank, kind}); count[x] != segments || bytes[x] != n {
						t.Errorf("rank %d: %s %d times, %d bytes: want %d times, %d bytes", rank, kind, count[x], bytes[x], segments, n)
					}
				}
				if n := bytes[key{rank, trace.Turn}]; n != 0 {
					t.Errorf("rank %d: waits for turns have %d bytes", rank, n)
				}
				rounds := []int{trace.AfterRounds}
				if c.ranks > 1 {
					for round := range p.Info().Rounds() {
						rounds = append(rounds, round)
					}
				}
				for segment := range segments {
					for _, round := range rounds {
						if n := coded[place{rank, segment, round}]; n != 1 {
							t.Errorf("rank %d: segment %d: round %d coded %d times", rank, segment, round, n)
						}
					}
				}
			}
			for _, kind := range []trace.Kind{trace.Settle, trace.Receive, trace.Wait} {
				if !maps.Equal(messages[kind], messages[trace.Send]) {
					t.Errorf("%s: messages %v, sent are %v", kind, messages[kind], messages[trace.Send])
				}
			}
			if c.ranks == k {
				for proc, traffic := range r.traffic {
					if sent[proc] != traffic.Bytes {
						t.Errorf("processor %d sent %d bytes, counted are %d", proc, sent[proc], traffic.Bytes)
					}
				}
			}
		})
	}
}
