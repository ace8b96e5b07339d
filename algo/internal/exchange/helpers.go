package exchange

import (
	"fmt"

	"volley/algo/schedule"
	"volley/field"
	"volley/plan"
)

// HelpersPlans returns the plans in which the processors that are not sinks compute the results: with H of them,
// packets are cut into S batches of H slices, and helper h computes slice h of every batch of all results.
//
//	problem  R sinks among K > 2R sources, or K > R sources and R sinks apart; every A, every p
//	cost     with N processors, C1 = (S+1)·⌈(N-1)/p⌉, C2 = C1/(S·H) packets; for sinks among
//	         the sources and p | N-1: (K-1)/(K-R)·(1+1/S)/p (TestHelpersCost)
//	source   ours
//
// In each of S+1 passes every processor sends to all others, from the next one on: to a helper
// the slice of its own packet, and, as a helper, to a sink the slice of its result, one batch
// later. So the link of a sink carries its own packet out while its result comes in.
func HelpersPlans(t schedule.Task) ([]plan.Plan, error) {
	var plans []plan.Plan
	for _, batches := range []int{2, 8, 32} {
		if p, err := HelpersWith(t, [][]int{{batches}}); err == nil {
			plans = append(plans, p)
		} else if plans == nil {
			return nil, err
		}
	}
	return plans, nil
}

// HelpersWith returns the plan with the batches of parameters, one number.
func HelpersWith(t schedule.Task, parameters [][]int) (plan.Plan, error) {
	// These bound the processors, whose schedules are counted one by one, and the pieces.
	const mostProcessors, mostPieces = 256, 1 << 12
	n, k, r := t.Processors(), t.Matrix.Rows(), t.Matrix.Cols()
	helpers := n - r
	if helpers <= r || n > mostProcessors {
		return nil, schedule.Misfit(fmt.Sprintf("algo: helpers for K = %d and R = %d: %d of %d processors are not sinks: want more than R, and at most %d processors: take another algorithm, such as exchange or sinks",
			k, r, helpers, n, mostProcessors))
	}
	if len(parameters) != 1 || len(parameters[0]) != 1 || parameters[0][0] > mostPieces/helpers {
		return nil, schedule.Misfit(fmt.Sprintf("algo: helpers with parameters %v: want one number, the batches of a packet, 1 to %d for %d helpers", parameters, mostPieces/helpers, helpers))
	}
	batches := parameters[0][0]
	pieces := batches * helpers
	helper := func(proc int) (h int, ok bool) { // sinks are the first processors, or the last
		if !t.Separate {
			proc -= r
		}
		return proc, proc >= 0 && proc < helpers
	}
	common := t.Info("helpers", pieces, fmt.Sprintf("batches=%d", batches), []int{batches})
	common.Phases = []plan.Phase{{Name: "there and back", Rounds: (batches + 1) * schedule.Ceil(n-1, t.Ports)}}
	return &schedule.Programs{
		Matrix: t.Matrix,
		Common: common,
		Write: func(b *schedule.Builder, proc int) []plan.Slot {
			var inputs, result []plan.Slot
			if _, ok := t.Source(proc); ok {
				inputs = b.Inputs(pieces)
			}
			_, sink := t.Sink(proc)
			if sink {
				result = make([]plan.Slot, pieces)
			}
			h, helps := helper(proc)
			var previous []plan.Slot // of the batch before, the slices of all sources
			for pass := range batches + 1 {
				var slices []plan.Slot
				if helps && pass < batches {
					slices = make([]plan.Slot, k)
					slices[proc] = inputs[pass*helpers+h]
				}
				for first := 1; first < n; first += t.Ports {
					last := min(first+t.Ports, n)
					for d := first; d < last; d++ {
						receiver := (proc + d) % n
						if h, ok := helper(receiver); ok && inputs != nil && pass < batches {
							b.Send(d-first, receiver, inputs[pass*helpers+h:][:1])
						} else if s, ok := t.Sink(receiver); ok && previous != nil {
							b.Send(d-first, receiver, []plan.Slot{b.Total(schedule.Weighted(previous, func(i int) field.Element { return t.Matrix.At(i, s) }))})
						}
					}
					for d := first; d < last; d++ {
						sender := (proc - d + n) % n
						if _, ok := t.Source(sender); ok && slices != nil {
							slices[sender] = b.Receive(d-first, sender, 1)[0]
						} else if h, ok := helper(sender); ok && sink && pass > 0 {
							result[(pass-1)*helpers+h] = b.Receive(d-first, sender, 1)[0]
						}
					}
					b.EndRound()
				}
				previous = slices
			}
			return result
		},
	}, nil
}
