package group

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"volley"
	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

// Traffic is what runs of plans have sent.
type Traffic struct {
	Plan       string  `json:"plan"`
	C1         int     `json:"c1"`       // rounds
	C2Bytes    int64   `json:"c2_bytes"` // the largest messages of all rounds
	MostSent   int64   `json:"most_sent"`
	TotalBytes int64   `json:"result_bytes"` // of parity, or data and parity, that came of it
	Seconds    float64 `json:"seconds"`

	sent []int64 // by node here
}

// add adds the traffic of a run that followed.
func (t *Traffic) add(o *Traffic) {
	if t.Plan == "" || t.Plan == noPlan {
		t.Plan = o.Plan
	}
	t.C1 += o.C1
	t.C2Bytes += o.C2Bytes
	t.TotalBytes += o.TotalBytes
	t.Seconds += o.Seconds
	for i, n := range o.sent {
		if i == len(t.sent) {
			t.sent = append(t.sent, 0)
		}
		t.sent[i] += n
	}
}

// noPlan is the plan where nothing had to be coded.
const noPlan = "none"

// total finds out what the busiest node has sent.
func (t *Traffic) total(ctx context.Context, s *session) error {
	if t.Plan == "" {
		t.Plan = noPlan
	}
	all, err := volley.ExchangeValues(ctx, s.t, t.sent, s.Timeout) // none where nothing was coded
	for _, n := range slices.Concat(all...) {
		t.MostSent = max(t.MostSent, n)
	}
	return err
}

// runPlan runs a plan whose processors are the nodes, on packets of so many bytes. Inputs
// and outputs are those of the nodes at this rank.
func (s *session) runPlan(ctx context.Context, p plan.Plan, what string, bytesEach int64, inputs []io.ReaderAt, outputs []io.WriterAt,
	observe func(proc int, inputs, outputs [][]byte) error, blockBytes int64) (*Traffic, error) {
	start := time.Now()
	info := p.Info()
	part, err := executor.Compile(p, s.t.Rank(), s.t.Size())
	if err != nil {
		return nil, err
	}
	segment, err := executor.SegmentBytes(p, plan.MemorySlots(p), bytesEach, s.Memory, blockBytes)
	if err != nil {
		return nil, &InputError{error: err}
	}
	segment = min(segment, max(mostSegment*int64(info.PieceCount()), blockBytes*int64(info.PieceCount())))
	header := []byte(sum(fmt.Appendf(nil, "%s %d %d %d %d", what, bytesEach, segment, info.Rounds(), info.Rows)))
	traffic, err := executor.Run(ctx, s.t, executor.Job{
		Part: part, Bytes: bytesEach, Segment: segment, Align: blockBytes, Inputs: in, Outputs: out,
		Header: header,
		Check: func(rank int, theirs []byte) error {
			if !bytes.Equal(theirs, header) {
				return fmt.Errorf("rank %d does something else than rank %d: start all with the same arguments", rank, s.t.Rank())
			}
			return nil
		},
		Observe: observe, Timeout: s.Timeout,
	})
	if err != nil {
		return nil, err
	}
	var sent []int64
	for _, t := range traffic {
		sent = append(sent, t.Bytes)
	}
	cost := sim.Count(p)
	t := &Traffic{Plan: info.Algorithm + " " + info.Parameters, C1: cost.C1, Seconds: time.Since(start).Seconds(), sent: sent}
	t.C2Bytes = int64(cost.PacketC2() * float64(bytesEach))
	return t, nil
}

// mostSegment bounds what is run of every packet at a time, beside the memory.
const mostSegment = 4 << 20

// encode makes the given blocks of all parity: outputs are the parity chunks of the nodes at
// this rank. The check of layout striped is for several runs, of different numbers.
func (s *session) encode(ctx context.Context, c *code, b blocks, inputs []io.ReaderAt, outputs []io.WriterAt, check *check, number int) (*Traffic, error) {
	n := b.bytes()
	if n == 0 {
		return &Traffic{Plan: noPlan}, nil
	}
	var t *Traffic
	if c.layout == Full {
		e, err := c.encodes(&s.Options)
		if err != nil {
			return nil, err
		}
		var packets []volley.Packet
		for i := range inputs {
			packets = append(packets, volley.Packet{Source: inputs[i], Size: n, Coded: outputs[i]})
		}
		r, err := e.RunAll(ctx, s.t, packets)
		if err != nil {
			return nil, err
		}
		t = &Traffic{Plan: r.Algorithm + " " + r.Parameters, C1: r.C1, C2Bytes: int64(sim.Cost{C2: r.C2, Pieces: r.Pieces}.PacketC2() * float64(n)), Seconds: r.Seconds, sent: []int64{r.BytesSentMax}}
	} else {
		p, err := c.plan(&s.Options, n)
		if err != nil {
			return nil, err
		}
		check.begin(number)
		if t, err = s.runPlan(ctx, p, "encode", n, inputs, outputs, check.observe, check.blockBytes()); err != nil {
			return nil, err
		}
		check.end()
	}
	t.TotalBytes = int64(len(outputs)) * n
	return t, nil
}

// volleyOptions are those of an all-to-all encode over a field.
func (o *Options) volleyOptions(f field.Field) []volley.Option {
	return []volley.Option{
		volley.WithMemory(o.Memory), volley.WithTimeout(o.Timeout), volley.WithPorts(o.Ports), volley.WithBeta(o.Beta),
		volley.WithTau(o.Tau), volley.WithCutting(),
	}
}

// A check compares random combinations of all chunks, which obey the code as the chunks do. It
// sums those of several runs.
type check struct {
	code   *code
	seed   verify.Seed
	first  int // node here
	block  int // symbols
	nodes  int // here
	data   [][]*verify.Fingerprint
	parity [][]*verify.Fingerprint
	sums   []prints // of runs that have ended, by node here
}

// newCheck returns a check of chunks of so many bytes, of the nodes at this rank.
func (s *session) newCheck(ctx context.Context, c *code, n int64) (*check, error) {
	var seed verify.Seed
	rand.Read(seed[:])
	seeds, err := volley.Exchange(ctx, s.t, seed[:], s.Timeout)
	if err != nil {
		return nil, err
	}
	copy(seed[:], seeds[0])
	x := &check{code: c, seed: seed, first: s.nodes[0].index, block: verify.BlockSymbols(n/int64(c.field.SymbolBytes()), c.k), nodes: len(s.nodes)}
	for range s.nodes {
		var p prints
		for _, list := range []struct {
			sums *[][]byte
			n    int
		}{{&p.Data, c.data}, {&p.Parity, c.parity}} {
			for range list.n {
				*list.sums = append(*list.sums, verify.NewFingerprint(c.field, seed, x.block).Bytes())
			}
		}
		x.sums = append(x.sums, p)
	}
	return x, nil
}

// begin begins a run, which has a number of its own.
func (x *check) begin(number int) {
	seed := verify.Seed(sha256.Sum256(binary.LittleEndian.AppendUint64(x.seed[:], uint64(number))))
	prints := func(n int) (list []*verify.Fingerprint) {
		for range n {
			list = append(list, verify.NewFingerprint(x.code.field, seed, x.block))
		}
		return list
	}
	x.data, x.parity = nil, nil
	for range x.nodes {
		x.data, x.parity = append(x.data, prints(x.code.data)), append(x.parity, prints(x.code.parity))
	}
}

// end adds the run to those before.
func (x *check) end() {
	for i := range x.sums {
		for j, f := range x.data[i] {
			subtle.XORBytes(x.sums[i].Data[j], x.sums[i].Data[j], f.Bytes())
		}
		for j, f := range x.parity[i] {
			subtle.XORBytes(x.sums[i].Parity[j], x.sums[i].Parity[j], f.Bytes())
		}
	}
}

func (x *check) blockBytes() int64 { return int64(x.block * x.code.field.SymbolBytes()) }

// observe sees the next parts of all chunks of a node.
func (x *check) observe(proc int, inputs, outputs [][]byte) error {
	for i, part := range inputs {
		x.data[proc-x.first][i].Add(part)
	}
	for i, part := range outputs {
		x.parity[proc-x.first][i].Add(part)
	}
	return nil
}

// prints are the fingerprints of a node.
type prints struct{ Data, Parity [][]byte }

// gather gives the sums of all nodes to all.
func (x *check) gather(ctx context.Context, s *session) ([]prints, error) {
	all, err := exchange(ctx, s, x.sums)
	for n, p := range all {
		wrong := func(sum []byte) bool { return len(sum) != len(x.sums[0].Data[0]) }
		if len(p.Data) != x.code.data || len(p.Parity) != x.code.parity || slices.ContainsFunc(slices.Concat(p.Data, p.Parity), wrong) {
			return nil, fmt.Errorf("%s has %d and %d sums: want %d and %d, all of one length", s.name(n), len(p.Data), len(p.Parity), x.code.data, x.code.parity)
		}
	}
	return all, err
}

func (p *prints) of(s symbol) []byte {
	if s.parity {
		return p.Parity[s.index]
	}
	return p.Data[s.index]
}

// verify returns a *verify.CheckError where parity is wrong.
func (x *check) verify(ctx context.Context, s *session) error {
	all, err := x.gather(ctx, s)
	if err != nil {
		return err
	}
	for i := range x.code.words {
		if w := &x.code.words[i]; !fits(x.code, w, all) {
			return &verify.CheckError{Proc: w.parity[0].node}
		}
	}
	return nil
}

// combine returns what the fingerprint of a parity has to be.
func combine(f field.Field, w *codeword, j int, all []prints) []byte {
	var sources [][]byte
	var coefficients []field.Element
	for i, d := range w.data {
		sources = append(sources, all[d.node].of(d))
		coefficients = append(coefficients, w.coefficient(i, j))
	}
	want := make([]byte, len(sources[0]))
	f.Combine(want, coefficients, sources)
	return want
}

// repair brings back the given blocks of symbols. Inputs and outputs are those of the
// nodes at this rank, in the order of repair.inputs and outputs.
func (s *session) repair(ctx context.Context, r *repair, b blocks, input func(symbol) io.ReaderAt, output func(symbol) io.WriterAt) (*Traffic, error) {
	p, err := algo.Relay(r.problem)
	if err != nil {
		return nil, err
	}
	var inputs []io.ReaderAt
	var outputs []io.WriterAt
	for _, n := range s.nodes {
		for _, x := range r.inputs[n.index] {
			inputs = append(inputs, input(x))
		}
		for _, x := range r.outputs[n.index] {
			outputs = append(outputs, output(x))
		}
	}
	t, err := s.runPlan(ctx, p, "repair", b.bytes(), inputs, outputs, nil, align)
	if err != nil {
		return nil, err
	}
	for _, list := range r.outputs {
		t.TotalBytes += int64(len(list)) * b.bytes()
	}
	return t, nil
}
