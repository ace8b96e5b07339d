package erasure

import (
	"bytes"
	"context"
	"time"

	"volley/collective"
	"volley/executor"
	"volley/field"
	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/plan"
	"volley/sim"
	"volley/transport"
)

// Add adds traffic to t.
func Add(t, o *protection.PlanTraffic) {
	if t.Plan == noPlan {
		t.Plan = o.Plan
	}
	t.C1 += o.C1
	t.C2Bytes += o.C2Bytes
	t.TotalBytes += o.TotalBytes
	t.Seconds += o.Seconds
	for i, n := range o.Sent {
		t.Sent[i] += n
	}
}

// noPlan is the plan where nothing had to be coded.
const noPlan = "none"

// NewTraffic returns the traffic of so many nodes here before anything is sent.
func NewTraffic(nodes int) protection.PlanTraffic {
	return protection.PlanTraffic{Plan: noPlan, Sent: make([]int64, nodes)}
}

// An Environment is what plans are chosen and run for.
type Environment struct {
	Memory  int64 // bytes of packets in memory, for each node
	Timeout time.Duration
	Network sim.Network
	T       transport.Transport // nil: any, as nothing is run
}

// Run runs a repair of so many bytes of each symbol at this rank, whose nodes have inputs and outputs for the symbols.
func (r *Repair) Run(ctx context.Context, set *Environment, length int64, input func(content.Symbol) executor.Input, output func(content.Symbol) executor.Output) (*protection.PlanTraffic, error) {
	t := set.T
	p, err := r.compile(set, length)
	if err == nil && r.executable == nil {
		r.slots, r.cost = plan.MemorySlots(p), sim.Count(p)
		r.executable, err = executor.Prepare(ctx, p, t.Rank(), t.Size())
	}
	if err != nil {
		return nil, err
	}
	job := executor.Job{Executable: r.executable, Bytes: length, Align: store.Align, Timeout: set.Timeout}
	for n, end := executor.Hosted(len(r.Inputs), t.Rank(), t.Size()); n < end; n++ {
		for _, x := range r.Inputs[n] {
			job.Inputs = append(job.Inputs, input(x))
		}
		for _, x := range r.Outputs[n] {
			job.Outputs = append(job.Outputs, output(x))
		}
	}
	if job.Segment, err = executor.SegmentBytes(p, r.slots, job.Bytes, set.Memory, job.Align); err != nil {
		return nil, &protection.RefusedError{Err: err}
	}
	info := p.Info()
	job.Segment = min(job.Segment, max(mostSegment, job.Align)*int64(info.PieceCount()))
	header := collective.Digest(collective.TermOf("plan", []any{job.Bytes, job.Segment, info.Rounds(), info.Rows}))
	job.Header = header[:]
	job.Accept = func(rank int, theirs []byte) error {
		if !bytes.Equal(theirs, job.Header) {
			return collective.OtherPlan(rank, t.Rank())
		}
		return nil
	}
	start := time.Now()
	traffics, err := executor.Run(ctx, t, job)
	if err != nil {
		return nil, err
	}
	var sent []int64
	for _, x := range traffics {
		sent = append(sent, x.Bytes)
	}
	traffic := &protection.PlanTraffic{
		Plan: info.Algorithm + " " + info.Parameters, C1: r.cost.C1, C2Bytes: int64(r.cost.PacketC2() * float64(job.Bytes)),
		Seconds: time.Since(start).Seconds(), Sent: sent,
	}
	for _, list := range r.Outputs {
		traffic.TotalBytes += int64(len(list)) * job.Bytes
	}
	return traffic, nil
}

// mostSegment bounds what is run of every packet at a time, beside the memory.
const mostSegment = 4 << 20

func (o *Environment) model(f field.Field, bytes int64) sim.Model {
	return sim.Model{Network: o.Network, Bytes: bytes, SymbolBytes: f.SymbolBytes()}
}
