package volley

import (
	"fmt"
	"math"
	"time"

	"volley/algo"
	"volley/trace"
)

// An Option changes how a run is done. All processors of a run give the same
// options, except [WithTimeout] and [WithTrace].
type Option func(*options)

type options struct {
	algorithm string
	ports     int
	beta      time.Duration
	tau       *float64 // seconds per symbol; nil: TauPerByte for each byte
	memory    int64
	timeout   time.Duration
	check     bool
	order     algo.Order
	separate  bool
	cut       bool
	limits    algo.Limits
	gamma     float64 // seconds per multiply-add of a symbol
	trace     *trace.Recorder
}

// Defaults of the options of the same names.
const (
	DefaultPorts   = 1
	DefaultBeta    = 20 * time.Microsecond
	DefaultMemory  = 64 << 20
	DefaultTimeout = 30 * time.Second
)

// TauPerByte is the default of τ, for each byte of a symbol: 0.8 ns, as on a
// link of 10 Gbit/s.
const TauPerByte = 0.8e-9

func defaults() options {
	return options{
		algorithm: algo.Auto, ports: DefaultPorts, beta: DefaultBeta, memory: DefaultMemory,
		timeout: DefaultTimeout, check: true,
	}
}

// WithAlgorithm names the algorithm, as [algo.Algorithms] lists them. The default,
// "auto", takes the one of least model time.
func WithAlgorithm(name string) Option { return func(o *options) { o.algorithm = name } }

// WithPorts sets p, the messages a processor may send, and receive, at a time. More
// than K-1 count as K-1. The default is 1.
func WithPorts(p int) Option { return func(o *options) { o.ports = p } }

// WithBeta sets β, the time a message takes to start, for the choice of algorithm.
// That of processor 0 is used by all. The default is 20 µs.
func WithBeta(d time.Duration) Option { return func(o *options) { o.beta = d } }

// WithTau sets τ, in seconds per symbol, for the choice of algorithm. That of
// processor 0 is used by all. The default is 0.8 ns for each byte of a symbol.
func WithTau(seconds float64) Option { return func(o *options) { o.tau = &seconds } }

// WithMemory bounds the bytes of packets that a processor holds at a time, received
// ones included; longer packets go in segments. It is no allowance for what [Encode]
// takes and returns. The default is 64 MiB.
func WithMemory(bytes int64) Option { return func(o *options) { o.memory = bytes } }

// WithTimeout bounds the wait for one message to come, or to be taken. The default
// is 30 s; 0 means no bound.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithCheck says whether the result is checked by random linear combinations before
// a run returns: a wrong coded packet passes with probability 2^-32 at most. It also
// makes every processor wait until all have succeeded. The default is true.
func WithCheck(on bool) Option { return func(o *options) { o.check = on } }

// WithOrder says which processor is to obtain which coded packet. The default,
// [algo.Natural], gives processor k that of column k; [algo.Any] lets the plan
// relabel them where that saves a round, and [Report].Columns says how.
func WithOrder(order algo.Order) Option { return func(o *options) { o.order = order } }

// WithSeparateSinks says that the R sinks hold no data: with K sources, sink s is
// processor K+s. Otherwise it is processor s, which is a source as well if there are
// more than s. It makes a difference only to matrices that are not square, and makes
// processors that are source and sink two of a square one.
func WithSeparateSinks() Option { return func(o *options) { o.separate = true } }

// WithCutting lets the plan cut packets into pieces although every processor is
// source and sink: for large packets that takes fewer bytes than any schedule of whole
// packets. All other plans may do so in any case.
func WithCutting() Option { return func(o *options) { o.cut = true } }

// WithLimits bounds what the plan may take. The zero [algo.Limits], which are the default,
// have no limits.
func WithLimits(l algo.Limits) Option { return func(o *options) { o.limits = l } }

// WithGamma sets γ, in seconds per multiply-add of a symbol, for the choice of
// algorithm. That of processor 0 is used by all. The default is 0: coding is taken to
// cost nothing.
func WithGamma(seconds float64) Option { return func(o *options) { o.gamma = seconds } }

// WithTrace records what is done when, of all ranks of the encoder in this process. The
// default, nil, records nothing.
func WithTrace(r *trace.Recorder) Option { return func(o *options) { o.trace = r } }

func (o *options) validate() error {
	switch {
	case o.ports < 1:
		return fmt.Errorf("volley: %d ports: want 1 or more", o.ports)
	case o.beta < 0:
		return fmt.Errorf("volley: β = %v: want 0 or more", o.beta)
	case o.tau != nil && !(*o.tau >= 0 && *o.tau <= math.MaxFloat64):
		return fmt.Errorf("volley: τ = %v s: want a number, 0 or more", *o.tau)
	case !(o.gamma >= 0 && o.gamma <= math.MaxFloat64):
		return fmt.Errorf("volley: γ = %v s: want a number, 0 or more", o.gamma)
	case o.memory < 1:
		return fmt.Errorf("volley: %d bytes of memory: want 1 or more", o.memory)
	case o.order != algo.Natural && o.order != algo.Any:
		return fmt.Errorf("volley: order %d: want algo.Natural or algo.Any", o.order)
	case o.timeout < 0:
		return fmt.Errorf("volley: timeout %v: want 0 or more", o.timeout)
	}
	if o.algorithm == algo.Auto {
		return nil
	}
	_, err := algo.Lookup(o.algorithm)
	return err
}
