package explore

import (
	"cmp"
	"context"
	"slices"

	"volley/plan"
)

// The most cells along a side of a heat map, rounds with figures of their own, and offsets of each of them.
const (
	mostCells   = 256
	mostRounds  = 2048
	mostOffsets = 16
)

// aggregate is how much a plan sends: bins of processors and rounds, all but perhaps the last one equally large.
type aggregate struct {
	ProcessorBin int           `json:"processor_bin"` // processors in a bin
	RoundBin     int           `json:"round_bin"`     // rounds in a bin
	Sent         [][]int       `json:"sent"`          // by bins: the most elements that one processor sends in one round
	Pairs        [][]int       `json:"pairs"`         // by bins of senders and receivers: all elements
	Since        [][]int       `json:"since"`         // likewise: the round with the first message; -1: there is none
	Rounds       []roundFigure `json:"rounds"`        // the first mostRounds
}

type roundFigure struct {
	Elements int      `json:"elements"`
	Offsets  []offset `json:"offsets"` // the most frequent ones, at most mostOffsets
}

// offset is the messages that go equally far.
type offset struct {
	Offset   int `json:"offset"` // receiver minus sender, modulo the processors
	Messages int `json:"messages"`
}

// aggregateOf counts the messages of p. It holds one schedule at a time. The error is that of ctx.
func aggregateOf(ctx context.Context, p plan.Plan) (*aggregate, error) {
	info := p.Info()
	k, rounds := info.Processors, info.Rounds()
	bins := func(n int) (size, count int) {
		size = max(1, (n+mostCells-1)/mostCells)
		return size, (n + size - 1) / size
	}
	a := &aggregate{Rounds: make([]roundFigure, min(rounds, mostRounds))}
	var processorBins, roundBins int
	a.ProcessorBin, processorBins = bins(k)
	a.RoundBin, roundBins = bins(rounds)
	a.Sent, a.Pairs, a.Since = grid(processorBins, roundBins, 0), grid(processorBins, processorBins, 0), grid(processorBins, processorBins, -1)
	offsets := make([]map[int]int, len(a.Rounds)) // messages by offset
	for src := range k {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for r, round := range p.Schedule(src).Rounds {
			sent := 0
			for _, s := range round.Sends {
				sent += len(s.Slots)
				source, target := src/a.ProcessorBin, s.Dst/a.ProcessorBin
				a.Pairs[source][target] += len(s.Slots)
				if first := &a.Since[source][target]; *first < 0 || r < *first {
					*first = r
				}
				if r >= len(a.Rounds) {
					continue
				}
				a.Rounds[r].Elements += len(s.Slots)
				if offsets[r] == nil {
					offsets[r] = map[int]int{}
				}
				offsets[r][(s.Dst-src+k)%k]++
			}
			cell := &a.Sent[src/a.ProcessorBin][r/a.RoundBin]
			*cell = max(*cell, sent)
		}
	}
	for r, counts := range offsets {
		sorted := []offset{}
		for far, messages := range counts {
			sorted = append(sorted, offset{far, messages})
		}
		slices.SortFunc(sorted, func(x, y offset) int { return cmp.Or(y.Messages-x.Messages, x.Offset-y.Offset) })
		a.Rounds[r].Offsets = sorted[:min(len(sorted), mostOffsets)]
	}
	return a, nil
}

func grid(rows, columns, filled int) [][]int {
	g := make([][]int, rows)
	for i := range g {
		g[i] = slices.Repeat([]int{filled}, columns)
	}
	return g
}
