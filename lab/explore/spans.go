package explore

import (
	"cmp"
	"slices"
	"time"

	"volley/trace"
)

// A span is an event of a trace as the page has it, in seconds from the begin of the run or the first span.
type span struct {
	trace.Event
	Start  float64 `json:"start"`
	Length float64 `json:"length"`
}

// spansOf returns events as spans, with times from a moment on.
func spansOf(events []trace.Event, zero int64) []span {
	spans := make([]span, len(events))
	for i, e := range events {
		spans[i] = span{e, time.Duration(e.Start - zero).Seconds(), time.Duration(e.Length).Seconds()}
	}
	return spans
}

// A timeline is all spans of a run.
type timeline struct {
	Ranks      int      `json:"ranks"`
	Processors [][2]int `json:"processors"` // of each rank the first and the last; 0 and -1 where no span tells
	Rounds     int      `json:"rounds"`
	Seconds    float64  `json:"seconds"`
	Spans      []span   `json:"spans"` // as they begin
}

// timelineOf returns the timeline of spans, which it sorts.
func timelineOf(spans []span) *timeline {
	x := &timeline{Processors: [][2]int{}, Spans: spans}
	hosts := func(rank, first, last int) {
		for len(x.Processors) <= rank {
			x.Processors = append(x.Processors, [2]int{0, -1})
		}
		if p := &x.Processors[rank]; p[0] > p[1] {
			*p = [2]int{first, last}
		} else {
			*p = [2]int{min(p[0], first), max(p[1], last)}
		}
	}
	for _, s := range spans {
		hosts(s.Rank, s.First, s.Last)
		switch s.Kind {
		case trace.Send, trace.Receive, trace.Wait, trace.Settle:
			hosts(s.Peer, s.Partner, s.Partner)
			x.Rounds = max(x.Rounds, s.Round+1)
		case trace.Code: // where there are no others
			x.Rounds = max(x.Rounds, s.Round+1)
		}
		x.Seconds = max(x.Seconds, s.Start+s.Length)
	}
	x.Ranks = len(x.Processors)
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), a.Rank-b.Rank) })
	return x
}
