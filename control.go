package volley

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"volley/algo"
	"volley/executor"
	"volley/field"
	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/verify"
)

// control runs the small collectives around a run, which are plans like any
// other, and counts their traffic apart.
type control struct {
	t       transport.Transport
	timeout time.Duration
	rounds  int
	bytes   int64
}

// run runs p with one input packet and returns the outputs.
func (c *control) run(ctx context.Context, p plan.Plan, packet []byte) ([]memory, error) {
	outputs := make([]memory, p.Schedule(c.t.Rank()).Outputs)
	job := executor.Job{
		Plan: p, Bytes: int64(len(packet)), Segment: int64(max(len(packet), p.Info().Field.SymbolBytes())),
		Inputs:  []io.ReaderAt{bytes.NewReader(packet)},
		Timeout: c.timeout,
	}
	for o := range outputs {
		job.Outputs = append(job.Outputs, &outputs[o])
	}
	traffic, err := executor.Run(ctx, c.t, job)
	if err != nil {
		return nil, err
	}
	c.rounds += len(traffic.Rounds)
	c.bytes += traffic.Bytes
	return outputs, nil
}

// allgather returns the records of all processors, which are equally long.
func (c *control) allgather(ctx context.Context, record []byte) ([]memory, error) {
	f, err := field.Parse("2^8") // bytes
	if err != nil {
		return nil, err
	}
	return c.run(ctx, algo.Allgather(f, c.t.Size(), 1), record)
}

// protocol is the version of what processors say to each other.
const protocol = 1

// A greeting is what a processor tells all others before a run: digests of what
// must be equal, and what only it or processor 0 knows.
type greeting struct {
	Protocol  uint32
	Ports     uint32
	Field     [8]byte
	Matrix    [8]byte
	Algorithm [8]byte
	Memory    int64
	Check     bool

	Bytes int64 // length of its packet; in what greet returns, of the longest
	Beta  int64 // ns
	Tau   float64
	Seed  verify.Seed
}

func (g greeting) model(symbolBytes int64) sim.Model {
	return sim.Model{Beta: time.Duration(g.Beta), Tau: g.Tau, Symbols: g.Bytes / symbolBytes}
}

// A DisagreementError says that processors were started with different
// arguments.
type DisagreementError struct {
	Processors []int    // who differ
	With       int      // from this processor
	In         []string // what they differ in
}

func (e *DisagreementError) Error() string {
	who := strings.Trim(fmt.Sprint(e.Processors), "[]")
	if len(e.Processors) == 1 {
		return fmt.Sprintf("volley: processor %s differs from processor %d in %s: start all with the same", who, e.With, strings.Join(e.In, ", "))
	}
	return fmt.Sprintf("volley: processors %s differ from processor %d in %s: start all with the same",
		strings.ReplaceAll(who, " ", ", "), e.With, strings.Join(e.In, ", "))
}

// greet exchanges greetings. It returns processor 0's, with the length of the
// longest packet, or a *DisagreementError.
func (e *Encoder) greet(ctx context.Context, c *control, size int64) (greeting, error) {
	mine := greeting{
		Protocol:  protocol,
		Ports:     uint32(min(e.options.ports, math.MaxUint32)),
		Field:     digest(e.matrix.Field().Name()),
		Matrix:    digest(e.matrix.ID()),
		Algorithm: digest(e.options.algorithm),
		Memory:    e.options.memory,
		Check:     e.options.check,
		Bytes:     size,
		Beta:      int64(e.options.beta),
		Tau:       *e.options.tau,
	}
	rand.Read(mine.Seed[:])
	record, err := binary.Append(nil, binary.LittleEndian, mine)
	if err != nil {
		return greeting{}, err
	}
	records, err := c.allgather(ctx, record)
	if err != nil {
		return greeting{}, err
	}
	all := make([]greeting, len(records))
	for k, data := range records {
		if _, err := binary.Decode(data, binary.LittleEndian, &all[k]); err != nil {
			return greeting{}, fmt.Errorf("volley: greeting of processor %d: %w", k, err)
		}
	}
	if err := compare(all); err != nil {
		return greeting{}, err
	}
	shared := all[0]
	for _, g := range all {
		shared.Bytes = max(shared.Bytes, g.Bytes)
	}
	return shared, nil
}

// compare returns a *DisagreementError when a greeting differs from processor
// 0's in what must be equal.
func compare(all []greeting) error {
	aspects := []struct {
		name string
		same func(a, b greeting) bool
	}{
		{"version", func(a, b greeting) bool { return a.Protocol == b.Protocol }},
		{"field", func(a, b greeting) bool { return a.Field == b.Field }},
		{"matrix", func(a, b greeting) bool { return a.Matrix == b.Matrix }},
		{"ports", func(a, b greeting) bool { return a.Ports == b.Ports }},
		{"algorithm", func(a, b greeting) bool { return a.Algorithm == b.Algorithm }},
		{"memory", func(a, b greeting) bool { return a.Memory == b.Memory }},
		{"check", func(a, b greeting) bool { return a.Check == b.Check }},
	}
	var who []int
	var in []string
	differ := make([]bool, len(all))
	for _, aspect := range aspects {
		found := false
		for k, g := range all {
			if !aspect.same(all[0], g) {
				found, differ[k] = true, true
			}
		}
		if found {
			in = append(in, aspect.name)
		}
	}
	for k := range all {
		if differ[k] {
			who = append(who, k)
		}
	}
	if who == nil {
		return nil
	}
	return &DisagreementError{Processors: who, With: 0, In: in}
}

// digest shortens a name to what can be compared.
func digest(name string) [8]byte {
	sum := sha256.Sum256([]byte(name))
	return [8]byte(sum[:8])
}
