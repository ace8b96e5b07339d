package exchange

import (
	"fmt"
	"math"
	"slices"

	"volley/algo/internal/layers"
	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

// HelpersPlans returns the plans in which some processors compute the results: packets are cut into S batches of slices,
// and each of these processors computes its slices of every batch of all results.
//
//	problem  R sinks among K > 2R sources, or K > R sources and R sinks apart: the H that are no sinks compute a slice
//	         each. Or K processors that are both, some with slower links: see slicesByRate. Every A, every p
//	cost     with N processors, C1 = (S+1)·⌈(N-1)/p⌉, C2 = C1/(S·H) packets; for sinks among
//	         the sources and p | N-1: (K-1)/(K-R)·(1+1/S)/p (TestHelpersCost). With slower links
//	         S+2 in place of S+1, and about 1+2/S times the bound at p = K-1 (TestSlowerLinks)
//	source   ours
//
// In each of S+1 passes every processor sends to all others, from the next one on: the slices of its own packet that the
// other computes, and the slices of the other's result that it has computed, of the batch before. So a link carries packets
// out while results come in. With slower links the results are those of the batch before that: the links are busy all the
// time, and a processor that waits for the last message of a pass would leave its own idle.
func HelpersPlans(t schedule.Task) ([]plan.Plan, error) {
	var plans []plan.Plan
	numbers := []int{2, 8, 32}
	if t.Square() { // results follow later
		numbers = []int{4, 12, 32}
	}
	for _, batches := range numbers {
		if p, err := HelpersWith(t, [][]int{{batches}}); err == nil {
			plans = append(plans, p)
		} else if plans == nil {
			return nil, err
		}
	}
	return plans, nil
}

// HelpersWith returns the plan with the batches of parameters, one number; in a second list is how many slices of a batch
// each processor computes.
func HelpersWith(t schedule.Task, parameters [][]int) (plan.Plan, error) {
	// These bound the processors, whose schedules are counted one by one, and the pieces.
	const mostProcessors, mostPieces = 256, 1 << 12
	n, k, r := t.Processors(), t.Matrix.Rows(), t.Matrix.Cols()
	counts, named := slicesOf(t), len(parameters) == 2
	if named {
		counts = parameters[1]
	}
	if counts == nil || n > mostProcessors {
		return nil, schedule.Misfit(fmt.Sprintf("algo: helpers for K = %d and R = %d: %d of %d processors are not sinks: want more than R, or slower links where all are, and at most %d processors: take another algorithm, such as exchange or sinks",
			k, r, n-r, n, mostProcessors))
	}
	first := make([]int, 1, n+1) // of the slices of a batch, by processor
	for _, count := range counts {
		first = append(first, first[len(first)-1]+min(count, mostPieces))
	}
	size := first[len(first)-1]
	batches := parameters[0][0]
	if len(parameters[0]) > 1 || len(parameters) > 2 || len(counts) != n || batches < 1 || size < 1 || batches > mostPieces/size {
		return nil, schedule.Misfit(fmt.Sprintf("algo: helpers with parameters %v: want one number, the batches of a packet, or after that the slices of each of %d processors, and 1 to %d slices of a packet: here %d batches of %d",
			parameters, n, mostPieces, batches, size))
	}
	text, delay := fmt.Sprintf("batches=%d", batches), 1 // passes after which results are sent
	if named || t.Square() {
		parameters, delay = [][]int{{batches}, counts}, 2
		text += " slices " + layers.Dotted(counts)
	}
	pieces := batches * size
	common := t.Info("helpers", pieces, text, parameters...)
	common.Phases = []plan.Phase{{Name: "there and back", Rounds: (batches + delay) * schedule.Ceil(n-1, t.Ports)}}
	return &schedule.Programs{
		Matrix: t.Matrix,
		Common: common,
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			var inputs, result []plan.Slot
			if _, ok := t.Source(proc); ok {
				inputs = b.Inputs(pieces)
			}
			ownSink, sink := t.Sink(proc)
			if sink {
				result = make([]plan.Slot, pieces)
			}
			collected := make([][][]plan.Slot, batches) // the slices of all sources, by batch, of those computed here
			results := func(sink, batch int) (list []plan.Slot) {
				if batch < 0 {
					return nil
				}
				for _, slice := range collected[batch] {
					list = append(list, b.Total(schedule.Weighted(slice, func(i int) field.Element { return t.Matrix.At(i, sink) })))
				}
				return list
			}
			for pass := range batches + delay {
				finished := pass - delay                    // batch whose results are sent
				handOut := func(receiver int) []plan.Slot { // its slices of the own packet
					if inputs == nil || pass >= batches {
						return nil
					}
					return inputs[pass*size+first[receiver] : pass*size+first[receiver+1]]
				}
				var batch [][]plan.Slot
				if pass < batches {
					batch = make([][]plan.Slot, counts[proc])
					collected[pass] = batch
				}
				for i := range batch {
					batch[i] = make([]plan.Slot, k)
				}
				for i, slot := range handOut(proc) {
					batch[i][proc] = slot
				}
				for start := 1; start < n; start += t.Ports {
					end := min(start+t.Ports, n)
					for d := start; d < end; d++ {
						receiver := (proc + d) % n
						sent := slices.Clone(handOut(receiver))
						if s, ok := t.Sink(receiver); ok {
							sent = append(sent, results(s, finished)...)
						}
						if len(sent) > 0 {
							b.Send(d-start, receiver, sent)
						}
					}
					for d := start; d < end; d++ {
						sender := (proc - d + n) % n
						slicesIn, resultsIn := 0, 0
						if _, ok := t.Source(sender); ok {
							slicesIn = len(batch)
						}
						if sink && finished >= 0 {
							resultsIn = counts[sender]
						}
						if slicesIn+resultsIn == 0 {
							continue
						}
						received := b.Receive(d-start, sender, slicesIn+resultsIn)
						for i, slot := range received[:slicesIn] {
							batch[i][sender] = slot
						}
						if resultsIn > 0 {
							copy(result[finished*size+first[sender]:], received[slicesIn:])
						}
					}
					b.EndRound()
				}
				if sink && finished >= 0 {
					copy(result[finished*size+first[proc]:], results(ownSink, finished))
				}
			}
			return result
		},
	}, nil
}

// slicesOf returns how many slices of a batch each processor computes; nil: another algorithm is better.
func slicesOf(t schedule.Task) (counts []int) {
	n, r := t.Processors(), t.Matrix.Cols()
	if t.Square() {
		return slicesByRate(t.Rates)
	}
	if n-r <= r {
		return nil
	}
	counts = make([]int, n)
	for proc := range counts {
		if _, sink := t.Sink(proc); !sink {
			counts[proc] = 1
		}
	}
	return counts
}

// slicesByRate returns how many slices of a batch each processor computes where links have these rates; nil: all as many.
// One that computes the share s sends, and receives, 1 + (K-2)·s packets. Of numbers of slices that come close to the bound
// of docs/theory.md, Theorem 3, it takes the least.
func slicesByRate(rates []float64) (best []int) {
	if len(rates) < 3 || slices.Min(rates) == slices.Max(rates) {
		return nil
	}
	bound, least := schedule.BoundByRates(rates), math.Inf(1)
	for largest := 1.0; largest <= 8; largest++ { // slices of the fastest
		counts, size, longest := make([]int, len(rates)), 0, 0.0
		for i, rate := range rates {
			counts[i] = int(math.Round(largest * (bound*rate - 1) / (bound*slices.Max(rates) - 1)))
			size += counts[i]
		}
		for i, rate := range rates {
			longest = max(longest, (1+float64((len(rates)-2)*counts[i])/float64(size))/rate)
		}
		if longest < 0.99*least {
			best, least = counts, longest
		}
	}
	return best
}
