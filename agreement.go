package volley

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"volley/algo"
	"volley/collective"
	"volley/executor"
	"volley/sim"
	"volley/transport"
)

// Greet compares with all other ranks what this one is to do, and by which version of Volley. All ranks call it, before
// they say anything else. It returns a *[collective.PeerError] where they differ, which names the ranks. A wait for one
// message is bounded by the timeout: see [transport.CheckTimeout].
func Greet(ctx context.Context, t transport.Transport, verb string, timeout time.Duration) error {
	if err := transport.CheckTimeout(timeout); err != nil {
		t.Abort(err)
		return inputf("volley: %w", err)
	}
	host, _ := os.Hostname() // or none
	_, err := collective.New(t, timeout).Greet(ctx, collective.Greeting{Verb: verb, Version: Version, Host: host},
		func([]uint64) bool { return true }, func([][]byte) error { return nil })
	return err
}

// A greeting is what a processor tells all others before a run, in [collective.Comm.Greet].
type greeting struct {
	Terms    terms
	Settings settings
}

// settings are what may differ, in words of [collective.Greeting].
type settings struct {
	Bytes int64 // length of its packet; in what greet returns, of the longest
	Apart int64 // 1: it does not go through memory of the host; in what greet returns, 1 where one does not

	// Those of processor 0 are used by all. The others say 0.
	Seed    uint64 // of the fingerprints
	Network sim.Network
	Beta    int64 // ns
	Tau     sim.PerByte
	Gamma   sim.PerByte
}

const settingWords = 14

// words returns what is said as words, the largest of which count.
func (o settings) words() []uint64 {
	words := make([]uint64, settingWords)
	recode(o, words)
	return words
}

// settingsOf is the inverse of words.
func settingsOf(words []uint64) (o settings) {
	recode(words, &o)
	return o
}

// recode fills a value with the bytes of another one of its size.
func recode(from, to any) {
	data, err := binary.Append(nil, binary.LittleEndian, from)
	if err == nil {
		_, err = binary.Decode(data, binary.LittleEndian, to)
	}
	if err != nil {
		panic(err) // of fixed size
	}
}

// terms are what all processors have to agree on; long ones as digests.
type terms struct {
	Ports     uint32 // 0: the planner chooses, by the model of a network
	Field     [8]byte
	Matrix    [8]byte
	Algorithm [8]byte
	Memory    int64
	Declared  int64 // length of packets
	Check     bool
	Order     uint8
	Separate  bool
	Whole     bool
	Limits    [8]byte
}

func (o settings) model(symbolBytes int) sim.Model {
	return sim.Model{Network: o.Network, Beta: time.Duration(o.Beta), Tau: o.Tau, Gamma: o.Gamma, Bytes: o.Bytes, SymbolBytes: symbolBytes}
}

// mostPacket is more bytes than any processor has, and few enough to reckon with.
const mostPacket = 1 << 46

// impossible says what cannot be of what is said, or nothing.
func (o settings) impossible() string {
	if o.Apart < 0 || o.Apart > 1 {
		return fmt.Sprintf("it goes through memory of the host in way %d: want 0 or 1", o.Apart)
	}
	if o.Bytes < 0 || o.Bytes > mostPacket {
		return fmt.Sprintf("its packet has %d bytes: want 0 to %d", o.Bytes, int64(mostPacket))
	}
	m := options{network: o.Network, paper: o.model(1).Paper(), ports: 1, beta: time.Duration(o.Beta), tau: o.Tau, gamma: o.Gamma, memory: 1, algorithm: algo.Auto}
	if err := m.validate(); err != nil {
		return strings.TrimPrefix(err.Error(), "volley: ")
	}
	return ""
}

// A DisagreementError says that processors were started with different arguments. All of a run return the same one.
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
	return fmt.Sprintf("volley: %s %s %s from processor %d in %s: give all the same",
		who, collective.Numbers(e.Processors), verb, e.With, strings.Join(e.In, ", "))
}

// AtAllRanks reports that all ranks find the error.
func (e *DisagreementError) AtAllRanks() bool { return true }

// greeting returns what this rank says, whose packet has so many bytes.
func (e *Encoder) greeting(t transport.Transport, size int64) greeting {
	g := greeting{
		Terms: terms{
			Ports:     uint32(e.problem.Ports),
			Field:     digest(e.matrix.Field().Name()),
			Matrix:    digest(e.matrix.ID()),
			Algorithm: digest(e.options.algorithm),
			Memory:    e.options.memory,
			Declared:  e.options.packetBytes,
			Check:     e.options.check,
			Order:     uint8(e.options.order),
			Separate:  e.options.separate,
			Whole:     e.options.whole,
			Limits:    digest(fmt.Sprint(e.options.limits)),
		},
		Settings: settings{Bytes: size},
	}
	if t.Rank() == 0 {
		g.Settings = e.first(size)
	}
	if e.hosts(t) == nil {
		g.Settings.Apart = 1
	}
	return g
}

// first returns the settings that rank 0 says.
func (e *Encoder) first(size int64) settings {
	o := &e.options
	return settings{
		Bytes: size, Seed: rand.Uint64(), Network: o.network, Beta: int64(o.beta), Tau: o.tau, Gamma: o.gamma,
	}
}

// An agreement is what all ranks have agreed on over one transport.
type agreement struct {
	t      transport.Transport
	shared settings
	runs   uint64 // after the first
	bound  *Bound // unless nil, what runs go on with
}

// mostAgreements bounds the transports that an encoder keeps for each rank.
const mostAgreements = 4

// agree returns what all ranks agree on for a run. By an earlier agreement it also returns what is to find out, beside the
// run, that the others go by it.
func (e *Encoder) agree(ctx context.Context, c *collective.Comm, t transport.Transport, size int64) (shared settings, resume []transport.SideExchange, err error) {
	if s := e.agreement(t); s != nil {
		s.runs++
		shared = s.shared
		shared.Seed += s.runs // no two runs have the same
		return shared, []transport.SideExchange{c.Resume(shared.Seed)}, nil
	}
	shared, err = e.agreeAnew(ctx, c, t, size)
	if err == nil && e.keeps(t) {
		e.mu.Lock()
		defer e.mu.Unlock()
		list := slices.Insert(e.agreements[t.Rank()], 0, &agreement{t: t, shared: shared})
		for _, oldest := range list[min(len(list), mostAgreements):] {
			oldest.close()
		}
		e.agreements[t.Rank()] = list[:min(len(list), mostAgreements)]
	}
	return shared, nil, err
}

// agreeAnew returns what all ranks agree on, whatever they had agreed on before.
func (e *Encoder) agreeAnew(
	ctx context.Context, c *collective.Comm, t transport.Transport, size int64,
) (settings, error) {
	size = max(size, e.options.packetBytes)
	if shared := e.first(size); t.Size() == 1 && shared.impossible() == "" {
		return shared, nil // nobody says otherwise
	}
	return e.greet(ctx, c, t, size)
}

// keeps reports whether the encoder has agreements over a transport.
func (e *Encoder) keeps(t transport.Transport) bool {
	return e.options.packetBytes > 0 && t.Size() > 1 && reflect.ValueOf(t).Comparable()
}

func (e *Encoder) agreement(t transport.Transport) *agreement {
	if !e.keeps(t) {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.agreements[t.Rank()]
	i := slices.IndexFunc(list, func(s *agreement) bool { return s.t == t })
	if i < 0 {
		return nil
	}
	s := list[i]
	copy(list[1:], list[:i])
	list[0] = s
	return s
}

// kept returns the Bound that goes on with the agreement over a transport, if there is one, and the seed of the next
// run.
func (e *Encoder) kept(t transport.Transport) (*Bound, uint64) {
	s := e.agreement(t)
	if s == nil || s.bound == nil {
		return nil, 0
	}
	s.runs++
	return s.bound, s.shared.Seed + s.runs
}

// keep has later runs of an agreement go on with a Bound, where packets need not lie where they lay.
func (e *Encoder) keep(b *Bound) bool {
	if _, ok := b.way.(*together); !ok {
		return false
	}
	s := e.agreement(b.t)
	if s != nil {
		s.bound = b
	}
	return s != nil
}

// forget ends the agreement over a transport, which has failed.
func (e *Encoder) forget(t transport.Transport) {
	if !e.keeps(t) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.agreements[t.Rank()] = slices.DeleteFunc(e.agreements[t.Rank()], func(s *agreement) bool {
		if s.t == t {
			s.close()
		}
		return s.t == t
	})
}

// close gives back what the agreement holds.
func (s *agreement) close() {
	if s.bound != nil {
		s.bound.Close()
	}
}

// greet exchanges greetings, and returns the longest packet's length and what processor 0 says, or a *DisagreementError.
func (e *Encoder) greet(ctx context.Context, c *collective.Comm, t transport.Transport, size int64) (settings, error) {
	g := e.greeting(t, size)
	said, err := binary.Append(nil, binary.LittleEndian, g.Terms)
	if err != nil {
		return settings{}, err
	}
	greeting := collective.Greeting{Verb: "encode", Version: Version, Terms: said, Words: g.Settings.words()}
	words, err := c.Greet(ctx, greeting,
		func(words []uint64) bool { return settingsOf(words).impossible() == "" },
		func(said [][]byte) error {
			err := compare(said)
			if apart := new(*DisagreementError); errors.As(err, apart) {
				(*apart).With = e.firstProcessor((*apart).With, t.Size())
				for i, rank := range (*apart).Processors {
					(*apart).Processors[i] = e.firstProcessor(rank, t.Size())
				}
			}
			return err
		})
	if err != nil {
		return settings{}, err
	}
	return settingsOf(words), nil
}

// firstProcessor returns the first processor that lives at a rank.
func (e *Encoder) firstProcessor(rank, ranks int) int {
	first, _ := executor.Hosted(e.problem.Processors(), rank, ranks)
	return first
}

// aspects names what processors have to agree on.
var aspects = []struct {
	name string
	same func(a, b terms) bool
}{
	{"field", func(a, b terms) bool { return a.Field == b.Field }},
	{"matrix", func(a, b terms) bool { return a.Matrix == b.Matrix }},
	{"model", func(a, b terms) bool { return (a.Ports == 0) == (b.Ports == 0) }},
	{"ports", func(a, b terms) bool { return a.Ports == b.Ports || a.Ports == 0 || b.Ports == 0 }},
	{"algorithm", func(a, b terms) bool { return a.Algorithm == b.Algorithm }},
	{"memory", func(a, b terms) bool { return a.Memory == b.Memory }},
	{"packet length", func(a, b terms) bool { return a.Declared == b.Declared }},
	{"check", func(a, b terms) bool { return a.Check == b.Check }},
	{"order", func(a, b terms) bool { return a.Order == b.Order }},
	{"sinks", func(a, b terms) bool { return a.Separate == b.Separate }},
	{"whole packets", func(a, b terms) bool { return a.Whole == b.Whole }},
	{"limits", func(a, b terms) bool { return a.Limits == b.Limits }},
}

// compare returns a *DisagreementError where the terms of greetings differ, by rank, or the error of an impossible one.
func compare(said [][]byte) error {
	all := make([]greeting, len(said))
	for r, data := range said {
		if _, err := binary.Decode(data, binary.LittleEndian, &all[r]); err != nil {
			return err
		}
	}
	votes := map[terms]int{}
	most := 0
	for _, g := range all {
		votes[g.Terms]++
		most = max(most, votes[g.Terms])
	}
	if most == len(all) {
		for r, g := range all {
			if wrong := g.Settings.impossible(); wrong != "" {
				return &collective.PeerError{Reason: fmt.Sprintf("rank %d says that %s", r, wrong)}
			}
		}
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
