package volley

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"volley/algo"
	"volley/collective"
	"volley/sim"
	"volley/transport"
)

// A DisagreementError says that ranks were started with different arguments. All of a run return the same one.
type DisagreementError = collective.DisagreementError

// Greet compares with all other ranks what this one is to do, by which version of Volley, and with which settings. All ranks
// call it, before they say anything else. Where they differ, it returns a *[collective.PeerError] or a *[DisagreementError],
// which name the ranks. A wait for one message is bounded by the timeout: see [transport.CheckTimeout].
func Greet(ctx context.Context, t transport.Transport, verb string, timeout time.Duration, terms ...collective.Term) error {
	if err := transport.CheckTimeout(timeout); err != nil {
		t.Abort(err)
		return inputf("volley: %w", err)
	}
	host, _ := os.Hostname() // or none
	_, err := collective.New(t, timeout).Greet(ctx, collective.Greeting{Verb: verb, Version: Version, Host: host, Terms: terms}, nil)
	return err
}

// settings are what may differ, in words of [collective.Greeting].
type settings struct {
	Bytes int64 // length of its packet; in what greet returns, of the longest
	Apart int64 // 1: it does not go through memory of the host; in what greet returns, 1 where one does not

	// Those of processor 0 are used by all. The others say 0.
	Seed              uint64 // of the fingerprints
	Latency, Overhead time.Duration
	Gap               sim.PerByte
	Beta              int64 // ns
	Tau               sim.PerByte
	Gamma             sim.PerByte
}

const settingWords = 9

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
func recode(source, target any) {
	data, err := binary.Append(nil, binary.LittleEndian, source)
	if err == nil {
		_, err = binary.Decode(data, binary.LittleEndian, target)
	}
	if err != nil {
		panic(err) // of fixed size
	}
}

// termsOf returns what all ranks of an encoder have to agree on.
func termsOf(p *algo.Problem, o *options) []collective.Term {
	terms := []collective.Term{collective.TermOf("field", p.Matrix.Field().Name()), collective.TermOf("matrix", p.Matrix.ID())}
	if p.Ports > 0 {
		terms = append(terms, collective.TermOf("model", "of the paper"), collective.TermOf("ports", p.Ports))
	} else {
		terms = append(terms, collective.TermOf("model", "of a network"))
	}
	return append(terms,
		collective.TermOf("algorithm", o.algorithm), collective.TermOf("memory", o.memory), collective.TermOf("packet length", o.packetBytes),
		collective.TermOf("check", o.check), collective.TermOf("order", o.order), collective.TermOf("separate sinks", o.separate),
		collective.TermOf("whole packets", o.wholePackets), collective.TermOf("limits", o.limits),
		collective.TermOf("slower links", o.network.Slower),
	)
}

// model is without slower links, which are no words.
func (o settings) model(symbolBytes int) sim.Model {
	network := sim.Network{Latency: o.Latency, Overhead: o.Overhead, Gap: o.Gap}
	return sim.Model{Network: network, Beta: time.Duration(o.Beta), Tau: o.Tau, Gamma: o.Gamma, Bytes: o.Bytes, SymbolBytes: symbolBytes}
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
	model := o.model(1)
	m := options{network: model.Network, paper: model.Paper(), ports: 1, beta: time.Duration(o.Beta), tau: o.Tau, gamma: o.Gamma, memory: 1, algorithm: algo.Auto}
	if err := m.validate(); err != nil {
		return strings.TrimPrefix(err.Error(), "volley: ")
	}
	return ""
}

// settings returns what this rank says, whose packet has so many bytes.
func (e *Encoder) settings(t transport.Transport, size int64) settings {
	s := settings{Bytes: size}
	if t.Rank() == 0 {
		s = e.first(size)
	}
	if e.hosts(t) == nil {
		s.Apart = 1
	}
	return s
}

// first returns the settings that rank 0 says.
func (e *Encoder) first(size int64) settings {
	o := &e.options
	return settings{
		Bytes: size, Seed: rand.Uint64(), Latency: o.network.Latency, Overhead: o.network.Overhead, Gap: o.network.Gap,
		Beta: int64(o.beta), Tau: o.tau, Gamma: o.gamma,
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
	words, err := c.Greet(ctx, e.greeting(e.settings(t, size)), func(words []uint64) string { return settingsOf(words).impossible() })
	if err != nil {
		return settings{}, err
	}
	return settingsOf(words), nil
}

// greeting returns the greeting of a rank that says so.
func (e *Encoder) greeting(s settings) collective.Greeting {
	return collective.Greeting{Verb: "encode", Version: Version, Terms: e.terms, Words: s.words()}
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
	if _, ok := b.carrier.(*sharedMemory); !ok {
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
