package volley

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
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
		collective.TermOf("algorithm", o.algorithm), collective.TermOf("memory", o.memory),
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

// agree returns what all ranks agree on for a run.
func (e *Encoder) agree(ctx context.Context, c *collective.Comm, t transport.Transport, size int64) (settings, error) {
	if shared := e.first(size); t.Size() == 1 && shared.impossible() == "" {
		return shared, nil // nobody says otherwise
	}
	greeting := collective.Greeting{Verb: "encode", Version: Version, Terms: e.terms, Words: e.settings(t, size).words()}
	words, err := c.Greet(ctx, greeting, func(words []uint64) string { return settingsOf(words).impossible() })
	if err != nil {
		return settings{}, err
	}
	return settingsOf(words), nil
}
