package volley

import (
	"fmt"
	"time"

	"volley/algo"
	"volley/plan"
	"volley/sim"
	"volley/transport"
)

// An Option changes a run. All processors give the same options, except [WithTimeout].
type Option func(*options)

type options struct {
	algorithm    string
	network      sim.Network
	paper        bool // the model of the paper instead, with the next three
	ports        int  // 0: the planner chooses
	beta         time.Duration
	tau          sim.PerByte
	memory       int64
	timeout      time.Duration
	check        bool
	order        algo.Order
	separate     bool
	wholePackets bool
	limits       algo.Limits
	gamma        sim.PerByte
	plan         plan.Plan // given, not chosen; nil: none
}

// Defaults of the options of the same names.
const (
	DefaultMemory  = 64 << 20
	DefaultTimeout = 30 * time.Second
)

// Usual arguments of [WithPaperModel].
const (
	DefaultPorts = 1
	DefaultBeta  = 20 * time.Microsecond
	DefaultTau   = sim.PerByte(0.8e-9) // as on a link of 10 Gbit/s
)

// DefaultNetwork returns the default of [WithNetwork]: 10gbit/20us.
func DefaultNetwork() sim.Network {
	n, _ := sim.ParseNetwork("10gbit/20us") // which is a preset
	return n
}

func defaults() options {
	return options{algorithm: algo.Auto, network: DefaultNetwork(), memory: DefaultMemory, timeout: DefaultTimeout, check: true}
}

// WithAlgorithm names one of [algo.Algorithms]. The default, "auto", takes the one of least model time.
func WithAlgorithm(name string) Option { return func(o *options) { o.algorithm = name } }

// WithNetwork sets the network that the plan is chosen for, with one link per node. Messages share the link, so that
// the plan has as many at a time as suits it. Packets are cut into pieces where that is cheaper, see
// [WithWholePackets]. The network of processor 0 is used by all. The default is [DefaultNetwork].
func WithNetwork(n sim.Network) Option {
	return func(o *options) { o.network, o.paper, o.ports = n, false, 0 }
}

// WithPaperModel chooses the plan by the model of the paper instead of a network's. A processor sends, and receives, at
// most p messages at a time, each over a port of its own; more than K-1 count as K-1. A message takes β to start, and τ
// for each byte. Packets stay whole where every processor is source and sink, unless [WithAlgorithm] names an algorithm
// that cuts them. β and τ of processor 0 are used by all; all processors give this model, or none.
func WithPaperModel(p int, beta time.Duration, tau sim.PerByte) Option {
	return func(o *options) { o.network, o.paper, o.ports, o.beta, o.tau = sim.Network{}, true, p, beta, tau }
}

// WithWholePackets keeps packets whole: no plan cuts them into pieces.
func WithWholePackets() Option { return func(o *options) { o.wholePackets = true } }

// WithMemory bounds the bytes of packets that a processor holds at a time, received ones included; longer packets go in
// segments. It is no allowance for what [Encode] takes and returns. The default is 64 MiB.
func WithMemory(bytes int64) Option { return func(o *options) { o.memory = bytes } }

// WithTimeout bounds the wait for one message to come, or to be taken. The default is 30 s; 0 means no bound.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithCheck says whether random linear combinations check the result before a run returns: a wrong coded packet passes
// with a probability of about 2^-32. It also makes every processor wait until all have succeeded. Default: true.
func WithCheck(enabled bool) Option { return func(o *options) { o.check = enabled } }

// WithOrder says which processor is to obtain which coded packet. The default, [algo.Natural], gives processor k that
// of column k; [algo.AnyOrder] lets the plan relabel them where that saves a round, and [Report].Columns says how.
func WithOrder(order algo.Order) Option { return func(o *options) { o.order = order } }

// WithSeparateSinks says that the R sinks hold no data: with K sources, sink s is processor K+s. Otherwise it is
// processor s, which is a source as well if there are more than s. It makes a difference only to matrices that are not
// square, and makes processors that are source and sink two of a square one.
func WithSeparateSinks() Option { return func(o *options) { o.separate = true } }

// WithLimits bounds what the plan may take. The zero [algo.Limits], which are the default, have no limits.
func WithLimits(l algo.Limits) Option { return func(o *options) { o.limits = l } }

// WithGamma sets γ, the time a multiply-add takes on a byte, for the choice of algorithm.
// That of processor 0 is used by all. The default is 0: coding is taken to cost nothing.
func WithGamma(t sim.PerByte) Option { return func(o *options) { o.gamma = t } }

func (o *options) validate() error {
	switch {
	case !o.paper && o.network.Validate() != nil:
		return fmt.Errorf("volley: %w", o.network.Validate())
	case o.paper && o.ports < 1:
		return fmt.Errorf("volley: %d ports: want 1 or more", o.ports)
	case o.beta < 0:
		return fmt.Errorf("volley: β = %v: want 0 or more", o.beta)
	case o.tau.Validate() != nil:
		return fmt.Errorf("volley: τ = %w", o.tau.Validate())
	case o.gamma.Validate() != nil:
		return fmt.Errorf("volley: γ = %w", o.gamma.Validate())
	case o.memory < 1:
		return fmt.Errorf("volley: %d bytes of memory: want 1 or more", o.memory)
	case o.order != algo.Natural && o.order != algo.AnyOrder:
		return fmt.Errorf("volley: order %d: want algo.Natural or algo.AnyOrder", o.order)
	case transport.CheckTimeout(o.timeout) != nil:
		return fmt.Errorf("volley: %w", transport.CheckTimeout(o.timeout))
	}
	if o.algorithm == algo.Auto {
		return nil
	}
	_, err := algo.Lookup(o.algorithm)
	return err
}
