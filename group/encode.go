package group

import (
	"bytes"
	"context"
	"crypto/subtle"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"volley/executor"
	"volley/field"
	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/internal/disk"
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

func (t *Traffic) add(o *Traffic) {
	if t.Plan == noPlan {
		t.Plan = o.Plan
	}
	t.C1 += o.C1
	t.C2Bytes += o.C2Bytes
	t.TotalBytes += o.TotalBytes
	t.Seconds += o.Seconds
	for i, n := range o.sent {
		t.sent[i] += n
	}
}

// noPlan is the plan where nothing had to be coded.
const noPlan = "none"

func (s *session) traffic() Traffic { return Traffic{Plan: noPlan, sent: make([]int64, len(s.nodes))} }

func (s *session) repair(ctx context.Context, r *repair, b content.Blocks, input func(content.Symbol) executor.Input, output func(content.Symbol) executor.Output) (*Traffic, error) {
	p, err := r.compile(&s.Options, b.Bytes())
	if err == nil && r.executable == nil {
		r.slots, r.cost = plan.MemorySlots(p), sim.Count(p)
		r.executable, err = executor.PrepareContext(ctx, p, s.t.Rank(), s.t.Size())
	}
	if err != nil {
		return nil, err
	}
	job := executor.Job{Executable: r.executable, Bytes: b.Bytes(), Align: store.Align, Timeout: s.Timeout}
	for _, n := range s.nodes {
		for _, x := range r.inputs[n.Index] {
			job.Inputs = append(job.Inputs, input(x))
		}
		for _, x := range r.outputs[n.Index] {
			job.Outputs = append(job.Outputs, output(x))
		}
	}
	if job.Segment, err = executor.SegmentBytes(p, r.slots, job.Bytes, s.Memory, job.Align); err != nil {
		return nil, &InputError{Err: err}
	}
	info := p.Info()
	job.Segment = min(job.Segment, max(mostSegment, job.Align)*int64(info.PieceCount()))
	job.Header = []byte(disk.Sum(fmt.Appendf(nil, "%d %d %d %d", job.Bytes, job.Segment, info.Rounds(), info.Rows)))
	job.Check = func(rank int, theirs []byte) error {
		if !bytes.Equal(theirs, job.Header) {
			return fmt.Errorf("rank %d does something else than rank %d: start all with the same arguments", rank, s.t.Rank())
		}
		return nil
	}
	start := time.Now()
	done, err := executor.Run(ctx, s.t, job)
	if err != nil {
		return nil, err
	}
	var sent []int64
	for _, t := range done {
		sent = append(sent, t.Bytes)
	}
	traffic := &Traffic{
		Plan: info.Algorithm + " " + info.Parameters, C1: r.cost.C1, C2Bytes: int64(r.cost.PacketC2() * float64(job.Bytes)),
		Seconds: time.Since(start).Seconds(), sent: sent,
	}
	for _, list := range r.outputs {
		traffic.TotalBytes += int64(len(list)) * job.Bytes
	}
	return traffic, nil
}

// mostSegment bounds what is run of every packet at a time, beside the memory.
const mostSegment = 4 << 20

func (o *Options) model(f field.Field, bytes int64) sim.Model {
	return sim.Model{Network: o.Network, Gamma: o.Gamma, Bytes: bytes, SymbolBytes: f.SymbolBytes()}
}

// A check compares random combinations of all chunks, which obey the code as the chunks do.
type check struct {
	code         *code
	seed         verify.Seed
	first        int                    // node here
	block        int64                  // bytes
	data, parity []*verify.Fingerprints // of the chunks of each node here
}

// chunk returns which of the chunks of its node a symbol is, the data first.
func (c *code) chunk(s content.Symbol) int {
	if s.Parity {
		return c.data + s.Index
	}
	return s.Index
}

// newCheck returns a check of chunks of so many bytes, of the nodes at this rank.
func (s *session) newCheck(c *code, n int64) *check {
	symbol := int64(c.field.SymbolBytes())
	block := max(1, verify.BlockSymbols(n/symbol, 1)/int(symbol)) // 64 KiB have whole batches
	x := &check{code: c, seed: s.seed, first: s.nodes[0].Index, block: int64(block) * symbol}
	for range s.nodes {
		x.data = append(x.data, verify.NewFingerprints(c.field, s.seed, block, c.data))
		x.parity = append(x.parity, verify.NewFingerprints(c.field, s.seed, block, c.parity))
	}
	return x
}

// folds returns for each node here a random combination of its fingerprints, as long as one: those of all nodes
// add up to zero where all codewords obey the code. If one does not, they do with a probability of 2^-32 at most, as
// each symbol of a fingerprint has random numbers of its own.
func (x *check) folds() [][]byte {
	f, seed := x.code.field, x.seed
	seed[0] ^= 1 // other numbers than those of the fingerprints
	rng, draw := mathrand.NewChaCha8(seed), field.NewSampler(f)
	var folds [][]byte
	var prints [][][]byte
	for i := range x.data {
		prints = append(prints, append(x.data[i].Bytes(), x.parity[i].Bytes()...))
		folds = append(folds, make([]byte, len(prints[i][0])))
	}
	part := f.SymbolBytes()
	for at := 0; at < len(folds[0]); at += part {
		coefficients, sources := make([][]field.Element, len(folds)), make([][][]byte, len(folds))
		add := func(s content.Symbol, c func() field.Element) {
			if i := s.Node - x.first; i >= 0 && i < len(folds) {
				coefficients[i], sources[i] = append(coefficients[i], c()), append(sources[i], prints[i][x.code.chunk(s)][at:][:part])
			}
		}
		for _, w := range x.code.words {
			random := make([]field.Element, len(w.parity))
			for j, s := range w.parity {
				random[j] = draw.Draw(rng.Uint64)
				add(s, func() field.Element { return random[j] })
			}
			for i, s := range w.data {
				add(s, func() (sum field.Element) {
					for j, r := range random {
						sum = f.Add(sum, f.Mul(r, x.code.matrix.At(i, j)))
					}
					return sum
				})
			}
		}
		for i := range folds {
			f.Combine(folds[i][at:][:part], coefficients[i], sources[i])
		}
	}
	return folds
}

// verify returns a [*WrongError] unless all codewords obey the code, by the folds of all nodes.
func (x *check) verify(s *session, folds [][]byte) error {
	sum := make([]byte, len(folds[x.first]))
	for n, fold := range folds {
		if len(fold) != len(sum) {
			return fmt.Errorf("%s has a fold of %d bytes: want %d", s.name(n), len(fold), len(sum))
		}
		subtle.XORBytes(sum, sum, fold)
	}
	if slices.ContainsFunc(sum, func(b byte) bool { return b != 0 }) {
		return &WrongError{What: "the parity that was made does not fit the data: a machine computes or sends what is wrong, and the earlier protection stays in force; run again, and test the memory of the machines if that fails too"}
	}
	return nil
}
