package volley

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// control runs the small collectives around a run, by plans like any other, and
// counts their traffic apart.
type control struct {
	t          transport.Transport
	processors int
	timeout    time.Duration
	rounds     int
	bytes      int64
}

// processor returns the first processor that lives at a rank.
func (c *control) processor(rank int) int {
	first, _ := executor.Hosted(c.processors, rank, c.t.Size())
	return first
}

// manyProcessors is how many are too many for all to tell all: from there on, trees
// and schedules for any matrix take K times less of control traffic together, for
// as many rounds again.
const manyProcessors = 129

// run runs a part on records of bytes, all of that length: one for each source at this
// rank. It returns as many as the part puts out.
func (c *control) run(ctx context.Context, part *executor.Executable, inputs [][]byte, outputs, length int) ([][]byte, error) {
	job := executor.Job{Executable: part, Bytes: int64(length), Segment: int64(max(1, length)), Timeout: c.timeout}
	for _, record := range inputs {
		job.Inputs = append(job.Inputs, executor.Input{Memory: record})
	}
	records := make([][]byte, outputs)
	for k := range records {
		records[k] = make([]byte, length)
		job.Outputs = append(job.Outputs, executor.Output{Memory: records[k]})
	}
	traffic, err := executor.Run(ctx, c.t, job)
	if err != nil {
		return nil, err
	}
	c.rounds += len(traffic[0].Rounds)
	most := int64(0)
	for _, t := range traffic {
		most = max(most, t.Bytes)
	}
	c.bytes += most
	return records, nil
}

// runRanks runs a plan for as many processors as there are ranks.
func (c *control) runRanks(ctx context.Context, p plan.Plan, inputs [][]byte, outputs, length int) ([][]byte, error) {
	part, err := executor.Prepare(p, c.t.Rank(), c.t.Size())
	if err != nil {
		return nil, err
	}
	return c.run(ctx, part, inputs, outputs, length)
}

// mostRecord bounds what a rank may tell all others at once: the longest are lists of files and
// traces.
const mostRecord = 1 << 28

// Exchange gives the record of every rank, of any length, to all of them. A wait for one
// message is bounded by the timeout, unless that is 0. The errors are those of
// [executor.Run], and that of a transport.
func Exchange(ctx context.Context, t transport.Transport, record []byte, timeout time.Duration) ([][]byte, error) {
	c := &control{t: t, processors: t.Size(), timeout: timeout}
	lengths, err := c.allgather(ctx, 1, binary.LittleEndian.AppendUint64(nil, uint64(len(record))))
	if err != nil {
		return nil, err
	}
	most := uint64(0)
	for r, data := range lengths {
		n := binary.LittleEndian.Uint64(data)
		if n > mostRecord {
			return nil, fmt.Errorf("volley: rank %d announces a record of %d bytes: at most %d are possible", r, n, mostRecord)
		}
		most = max(most, n)
	}
	if most == 0 {
		return make([][]byte, len(lengths)), nil
	}
	padded := make([]byte, most)
	copy(padded, record)
	records, err := c.allgather(ctx, 1, padded)
	if err != nil {
		return nil, err
	}
	for r, n := range lengths {
		records[r] = records[r][:binary.LittleEndian.Uint64(n)]
	}
	return records, nil
}

// ExchangeValues is [Exchange] of values, by their JSON.
func ExchangeValues[T any](ctx context.Context, t transport.Transport, mine T, timeout time.Duration) ([]T, error) {
	record, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	records, err := Exchange(ctx, t, record, timeout)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(records))
	for r, record := range records {
		if err := json.Unmarshal(record, &all[r]); err != nil {
			return nil, fmt.Errorf("volley: rank %d says what does not fit here: %w", r, err)
		}
	}
	return all, nil
}

// beat is how long a rank that is at work may be silent, unless a quarter of its timeout is
// less. It is short, as other ranks may have other timeouts.
const beat = time.Second

// Steady has every rank do work of its own, such as syncing files, that may take longer than
// the timeout. Meanwhile the ranks exchange signs of life: a wait for one is bounded by the
// timeout, unless that is 0. Steady returns nil when the work of all ranks has succeeded.
// Where work fails at some ranks, these return the errors of their work. They abort the group
// when the others have finished or a beat has passed; the others then return the
// [transport.AbortError], and the contexts of their works end. All ranks call Steady. The work
// does not use t, and it has ended when Steady returns.
func Steady(ctx context.Context, t transport.Transport, timeout time.Duration, work func(context.Context) error) error {
	if t.Size() == 1 {
		return work(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result := make(chan error, 1)
	go func() { result <- work(ctx) }()
	period := beat
	if timeout > 0 {
		period = min(period, max(timeout/4, 1))
	}
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	c := &control{t: t, processors: t.Size(), timeout: timeout}
	const working, succeeded, failed = 0, 1, 2
	state := byte(working)
	var failure error
	for {
		if state == working {
			select {
			case failure = <-result:
				state = succeeded
				if failure != nil {
					state = failed
				}
			case <-ticks.C:
			case <-ctx.Done(): // the exchange says so to all
			}
		}
		all, err := c.allgather(ctx, 1, []byte{state})
		switch {
		case failure != nil: // only now, when others have had the time to find the same
			t.Abort(failure)
			return failure
		case err != nil:
			cancel(err)
			if state == working {
				<-result
			}
			return err
		case !slices.ContainsFunc(all, func(record []byte) bool { return record[0] != succeeded }):
			return nil
		}
	}
}

// allgather returns the records of all ranks, which are equally long.
func (c *control) allgather(ctx context.Context, ports int, record []byte) ([][]byte, error) {
	if c.t.Size() == 1 {
		return [][]byte{record}, nil
	}
	f, err := field.Parse("2^8") // bytes
	if err != nil {
		return nil, err
	}
	return c.runRanks(ctx, algo.Allgather(f, c.t.Size(), ports), [][]byte{record}, c.t.Size(), len(record))
}

// meet gathers the records of all, which are equally long, at processor 0, where
// conclude makes one of as many bytes of them; all obtain that.
func (c *control) meet(ctx context.Context, record []byte, conclude func(records [][]byte) []byte) ([]byte, error) {
	f, err := field.Parse("2^8")
	if err != nil {
		return nil, err
	}
	k, first := c.t.Size(), 0
	if c.t.Rank() == 0 {
		first = 1
	}
	records, err := c.runRanks(ctx, algo.Gather(f, k, 1), [][]byte{record}, first*k, len(record))
	if err != nil {
		return nil, err
	}
	var conclusion [][]byte
	if first == 1 {
		conclusion = [][]byte{conclude(records)}
	}
	all, err := c.runRanks(ctx, algo.Broadcast(f, k, 1), conclusion, 1, len(record))
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// barrier returns when all processors have come to it.
func (c *control) barrier(ctx context.Context) error {
	if c.t.Size() < manyProcessors {
		_, err := c.allgather(ctx, 1, nil)
		return err
	}
	_, err := c.meet(ctx, nil, func([][]byte) []byte { return nil })
	return err
}

// A greeting is what a processor tells all others before a run, as the terms of a [hello].
type greeting struct {
	Terms terms

	Bytes int64 // length of its packet; in what greet returns, of the longest

	// Processor 0's are used by all.
	Beta  int64 // ns
	Tau   sim.PerByte
	Gamma sim.PerByte
	Seed  verify.Seed
}

// terms are what all processors have to agree on; long ones as digests.
type terms struct {
	Ports     uint32
	Field     [8]byte
	Matrix    [8]byte
	Algorithm [8]byte
	Memory    int64
	Check     bool
	Order     uint8
	Separate  bool
	Cut       bool
	Limits    [3]int64
}

func (g greeting) model(symbolBytes int) sim.Model {
	return sim.Model{Beta: time.Duration(g.Beta), Tau: g.Tau, Gamma: g.Gamma, Bytes: g.Bytes, SymbolBytes: symbolBytes}
}

// A DisagreementError says that processors were started with different
// arguments. All processors of a run return the same one.
type DisagreementError struct {
	Processors []int    // who differ, ascending
	With       int      // from this processor, with which the most agree
	In         []string // what they differ in, such as "matrix" or "ports"
}

func (e *DisagreementError) Error() string {
	who, verb := "processor", "differs"
	if len(e.Processors) > 1 {
		who, verb = "processors", "differ"
	}
	return fmt.Sprintf("volley: %s %s %s from processor %d in %s: start all with the same",
		who, numbers(e.Processors), verb, e.With, strings.Join(e.In, ", "))
}

// greeting returns what this processor says, whose packet has so many bytes.
func (e *Encoder) greeting(size int64) greeting {
	g := greeting{
		Terms: terms{
			Ports:     uint32(e.problem.Ports),
			Field:     digest(e.matrix.Field().Name()),
			Matrix:    digest(e.matrix.ID()),
			Algorithm: digest(e.options.algorithm),
			Memory:    e.options.memory,
			Check:     e.options.check,
			Order:     uint8(e.options.order),
			Separate:  e.options.separate,
			Cut:       e.options.cut,
			Limits:    [3]int64{int64(e.options.limits.Rounds.Over()), int64(e.options.limits.Memory), int64(e.options.limits.Compute)},
		},
		Bytes: size,
		Beta:  int64(e.options.beta),
		Tau:   e.options.tau,
		Gamma: e.options.gamma,
	}
	rand.Read(g.Seed[:])
	return g
}

// greet exchanges greetings. It returns processor 0's, with the length of the
// longest packet, or a *DisagreementError.
func (e *Encoder) greet(ctx context.Context, c *control, size int64) (greeting, error) {
	said, err := binary.Append(nil, binary.LittleEndian, e.greeting(size))
	if err != nil {
		return greeting{}, err
	}
	said, err = c.greet(ctx, "encode", said, func(terms [][]byte) ([]byte, error) {
		shared, err := agree(terms)
		if apart := new(*DisagreementError); errors.As(err, apart) {
			(*apart).With = c.processor((*apart).With)
			for i, rank := range (*apart).Processors {
				(*apart).Processors[i] = c.processor(rank)
			}
		}
		if err != nil {
			return nil, err
		}
		return binary.Append(nil, binary.LittleEndian, shared)
	})
	if err != nil {
		return greeting{}, err
	}
	shared := greeting{}
	_, err = binary.Decode(said, binary.LittleEndian, &shared)
	return shared, err
}

// mostPacket is more bytes than any processor has, and few enough to reckon with.
const mostPacket = 1 << 46

// agree returns processor 0's greeting, with the length of the longest packet, or
// a *DisagreementError.
func agree(said [][]byte) (greeting, error) {
	all := make([]greeting, len(said))
	for r, data := range said {
		g := &all[r]
		if _, err := binary.Decode(data, binary.LittleEndian, g); err != nil {
			return greeting{}, err
		}
		if g.Bytes < 0 || g.Bytes > mostPacket {
			return greeting{}, &PeerError{text: fmt.Sprintf("rank %d says that its packet has %d bytes: want 0 to %d", r, g.Bytes, int64(mostPacket))}
		}
		if o := (&options{ports: 1, beta: time.Duration(g.Beta), tau: g.Tau, gamma: g.Gamma, memory: 1, algorithm: algo.Auto}); o.validate() != nil {
			return greeting{}, &PeerError{text: fmt.Sprintf("rank %d says that β is %v, τ %v and γ %v: want numbers, 0 or more", r, o.beta, g.Tau, g.Gamma)}
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

// aspects names what processors have to agree on.
var aspects = []struct {
	name string
	same func(a, b terms) bool
}{
	{"field", func(a, b terms) bool { return a.Field == b.Field }},
	{"matrix", func(a, b terms) bool { return a.Matrix == b.Matrix }},
	{"ports", func(a, b terms) bool { return a.Ports == b.Ports }},
	{"algorithm", func(a, b terms) bool { return a.Algorithm == b.Algorithm }},
	{"memory", func(a, b terms) bool { return a.Memory == b.Memory }},
	{"check", func(a, b terms) bool { return a.Check == b.Check }},
	{"order", func(a, b terms) bool { return a.Order == b.Order }},
	{"sinks", func(a, b terms) bool { return a.Separate == b.Separate }},
	{"cutting", func(a, b terms) bool { return a.Cut == b.Cut }},
	{"limits", func(a, b terms) bool { return a.Limits == b.Limits }},
}

// compare returns a *DisagreementError when the terms differ.
func compare(all []greeting) error {
	votes := map[terms]int{}
	most := 0
	for _, g := range all {
		votes[g.Terms]++
		most = max(most, votes[g.Terms])
	}
	if most == len(all) {
		return nil
	}
	e := &DisagreementError{With: slices.IndexFunc(all, func(g greeting) bool { return votes[g.Terms] == most })}
	with := all[e.With].Terms
	for k, g := range all {
		if g.Terms != with {
			e.Processors = append(e.Processors, k)
		}
	}
	for _, aspect := range aspects {
		if slices.ContainsFunc(all, func(g greeting) bool { return !aspect.same(g.Terms, with) }) {
			e.In = append(e.In, aspect.name)
		}
	}
	return e
}

// digest shortens a text to what can be compared.
func digest(text string) [8]byte {
	sum := sha256.Sum256([]byte(text))
	return [8]byte(sum[:8])
}
