package erasure

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"volley/collective"
	"volley/executor"
	"volley/field"
	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/sim"
	"volley/transport"
)

// Add adds traffic to t.
func Add(t, o *protection.PlanTraffic) {
	if t.Plan == noPlan {
		t.Plan = o.Plan
	}
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
	Window  *transport.Window   // in which all ranks have the symbols of all nodes; nil: each has those of its nodes
}

// Run runs a repair of so many bytes of each symbol, which has its memory at this rank.
func (r *Repair) Run(ctx context.Context, set *Environment, length int64, memory func(content.Symbol) []byte) (*protection.PlanTraffic, error) {
	t, start, end := set.T, 0, int(length)
	if set.Window != nil { // no messages: each rank codes a slice of every symbol
		start, end = transport.Slice(end, t.Size(), t.Rank(), sliceUnit)
		t = transport.Alone(t)
	}
	p, err := r.compile(set, length)
	if err == nil {
		err = r.prepare(ctx, p, set.T, t)
	}
	if err != nil {
		return nil, err
	}
	job := executor.Job{Executable: r.executable, Bytes: int64(end - start), Align: store.Align, Timeout: set.Timeout}
	for n, last := executor.Hosted(len(r.Inputs), t.Rank(), t.Size()); n < last; n++ {
		for _, x := range r.Inputs[n] {
			job.Inputs = append(job.Inputs, executor.Input{Memory: memory(x)[start:end]})
		}
		for _, x := range r.Outputs[n] {
			job.Outputs = append(job.Outputs, executor.Output{Memory: memory(x)[start:end]})
		}
	}
	if job.Segment, err = executor.SegmentBytes(p, r.slots, length, set.Memory, job.Align); err != nil {
		return nil, &protection.RefusedError{Err: err}
	}
	info := p.Info()
	job.Segment = min(job.Segment, max(mostSegment, job.Align)*int64(info.PieceCount()))
	header := collective.Digest(collective.TermOf("plan", []any{length, job.Segment, info.Rounds(), info.Rows}))
	job.Header = header[:]
	job.Accept = func(rank int, theirs []byte) error {
		if !bytes.Equal(theirs, job.Header) {
			return collective.OtherPlan(rank, t.Rank())
		}
		return nil
	}
	says := binary.LittleEndian.Uint64(job.Header)
	if err = set.meet(ctx, says); err == nil { // all symbols are there
		_, err = executor.Run(ctx, t, job)
	}
	if err == nil {
		err = set.meet(ctx, says)
	}
	if err != nil {
		return nil, err
	}
	traffic := &protection.PlanTraffic{Plan: info.Algorithm + " " + info.Parameters}
	element := length
	if pieces := int64(info.PieceCount()); pieces > 1 {
		element = store.Aligned((length + pieces - 1) / pieces)
	}
	for _, n := range r.sent { // as if each node were elsewhere
		traffic.Sent = append(traffic.Sent, n*element)
	}
	return traffic, nil
}

// sliceUnit is what slices of symbols are multiples of: whole lines of a cache.
const sliceUnit = 64

// meet waits until all ranks have come that share a window, and are at the same run.
func (o *Environment) meet(ctx context.Context, says uint64) error {
	if o.Window == nil {
		return nil
	}
	peer, err := collective.New(o.T, o.Timeout).Meet(ctx, o.Window, says)
	if err == nil && peer >= 0 {
		err = collective.OtherPlan(peer, o.T.Rank())
	}
	return err
}

// mostSegment bounds what is run of every packet at a time, beside the memory.
const mostSegment = 4 << 20

func (o *Environment) model(f field.Field, bytes int64) sim.Model {
	return sim.Model{Network: o.Network, Bytes: bytes, SymbolBytes: f.SymbolBytes()}
}
