package volley

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"volley/algo"
	"volley/collective"
	"volley/executor"
	"volley/sim"
	"volley/transport"
	"volley/verify"
)

// Greet compares with all other ranks what this one is to do, and by which version of Volley.
// All ranks call it, before they say anything else. It returns a *[collective.PeerError] where
// they differ, which names the ranks. A wait for one message is bounded by the timeout, unless
// that is 0.
func Greet(ctx context.Context, t transport.Transport, verb string, timeout time.Duration) error {
	_, err := collective.New(t, timeout).Greet(ctx, verb, Version, nil, func([][]byte) ([]byte, error) { return nil, nil })
	return err
}

// A greeting is what a processor tells all others before a run, as the terms of
// [collective.Comm.Greet].
type greeting struct {
	Terms terms

	Bytes int64 // length of its packet; in what greet returns, of the longest

	// Processor 0's are used by all.
	Network sim.Network
	Beta    int64 // ns
	Tau     sim.PerByte
	Gamma   sim.PerByte
	Seed    verify.Seed
}

// terms are what all processors have to agree on; long ones as digests.
type terms struct {
	Ports     uint32 // 0: the planner chooses, by the model of a network
	Field     [8]byte
	Matrix    [8]byte
	Algorithm [8]byte
	Memory    int64
	Check     bool
	Order     uint8
	Separate  bool
	Whole     bool
	Limits    [3]int64
}

func (g greeting) model(symbolBytes int) sim.Model {
	return sim.Model{Network: g.Network, Beta: time.Duration(g.Beta), Tau: g.Tau, Gamma: g.Gamma, Bytes: g.Bytes, SymbolBytes: symbolBytes}
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
		who, collective.Numbers(e.Processors), verb, e.With, strings.Join(e.In, ", "))
}

// AtAllRanks reports that all ranks find the error.
func (e *DisagreementError) AtAllRanks() bool { return true }

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
			Whole:     e.options.whole,
			Limits:    [3]int64{int64(e.options.limits.Rounds.Over()), int64(e.options.limits.Memory), int64(e.options.limits.Compute)},
		},
		Bytes:   size,
		Network: e.options.network,
		Beta:    int64(e.options.beta),
		Tau:     e.options.tau,
		Gamma:   e.options.gamma,
	}
	rand.Read(g.Seed[:])
	return g
}

// greet exchanges greetings. It returns processor 0's, with the length of the
// longest packet, or a *DisagreementError.
func (e *Encoder) greet(ctx context.Context, c *collective.Comm, ranks int, size int64) (greeting, error) {
	said, err := binary.Append(nil, binary.LittleEndian, e.greeting(size))
	if err != nil {
		return greeting{}, err
	}
	said, err = c.Greet(ctx, "encode", Version, said, func(terms [][]byte) ([]byte, error) {
		shared, err := agree(terms)
		if apart := new(*DisagreementError); errors.As(err, apart) {
			(*apart).With = e.firstProcessor((*apart).With, ranks)
			for i, rank := range (*apart).Processors {
				(*apart).Processors[i] = e.firstProcessor(rank, ranks)
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

// firstProcessor returns the first processor that lives at a rank.
func (e *Encoder) firstProcessor(rank, ranks int) int {
	first, _ := executor.Hosted(e.problem.Processors(), rank, ranks)
	return first
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
			return greeting{}, &collective.PeerError{Reason: fmt.Sprintf("rank %d says that its packet has %d bytes: want 0 to %d", r, g.Bytes, int64(mostPacket))}
		}
		o := &options{network: g.Network, paper: g.Network == (sim.Network{}), ports: 1, beta: time.Duration(g.Beta), tau: g.Tau, gamma: g.Gamma, memory: 1, algorithm: algo.Auto}
		if err := o.validate(); err != nil {
			return greeting{}, &collective.PeerError{Reason: fmt.Sprintf("rank %d has a model that cannot be: %v", r, err)}
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
	{"model", func(a, b terms) bool { return (a.Ports == 0) == (b.Ports == 0) }},
	{"ports", func(a, b terms) bool { return a.Ports == b.Ports }},
	{"algorithm", func(a, b terms) bool { return a.Algorithm == b.Algorithm }},
	{"memory", func(a, b terms) bool { return a.Memory == b.Memory }},
	{"check", func(a, b terms) bool { return a.Check == b.Check }},
	{"order", func(a, b terms) bool { return a.Order == b.Order }},
	{"sinks", func(a, b terms) bool { return a.Separate == b.Separate }},
	{"whole packets", func(a, b terms) bool { return a.Whole == b.Whole }},
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
