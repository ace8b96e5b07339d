package volley

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"volley/algo"
	"volley/collective"
	"volley/executor"
	"volley/internal/memo"
	"volley/internal/poll"
	"volley/internal/runcheck"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/transport"
)

// An Encoder computes one matrix on any packets, in any number of runs, also at once by processors of one process.
type Encoder struct {
	matrix  matrix.Matrix
	problem *algo.Problem
	options options
	terms   []collective.Term // on which all ranks have to agree
	key     *problemKey       // nil: plans are the encoder's own
	checker *runcheck.Checker

	plans *memo.Cache // the last ones, which later runs mostly use again
}

// mostPlans bounds the plans that an encoder keeps for packets of other sizes.
const mostPlans = 4

// A chosenPlan is a plan and what is worth making once for all processors and runs.
type chosenPlan struct {
	plan.Plan
	model sim.Model                 // chosen by it
	tags  transport.Limits          // and within them
	slots int                       // plan.MemorySlots
	kept  atomic.Pointer[memo.Kept] // by which later encoders find it; nil: they do not

	mu          sync.Mutex // guards what follows
	executables map[executableKey]*executor.Executable
	agreed      settings // in the last run, without the seed
	report      Report   // of that, as far as it is known before a run
	hosts       [][]int  // of which stage.pays was asked last: their ranks
	slower      bool     // what stage.pays has answered: this plan takes no less time than their exchange
}

// reportOf returns the report of a run, as far as it is known before it.
func (e *Encoder) reportOf(c *chosenPlan, shared settings) *Report {
	shared.Seed, shared.Apart = 0, 0
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report.PlanHash == "" || c.agreed != shared {
		c.agreed, c.report = shared, *newReport(c.Plan, e.problem)
		c.report.PacketBytes = shared.Bytes
		c.report.SymbolsPerPacket = shared.Bytes / int64(e.matrix.Field().SymbolBytes())
		c.report.PlanHash = planHash(c.Plan, e.matrix, shared)
	}
	r := c.report
	return &r
}

type executableKey struct{ rank, ranks int }

// mostReady is up to how many ranks of a process have the maps of a plan ready for kernels.
const mostReady = 64

// executable returns the plan ready to run at a rank.
func (c *chosenPlan) executable(ctx context.Context, rank, ranks int) (x *executor.Executable, err error) {
	key := executableKey{rank, ranks}
	c.mu.Lock()
	x = c.executables[key]
	c.mu.Unlock()
	if x != nil {
		return x, nil
	}
	ended := executor.OnCore(ctx, func() {
		c.mu.Lock()
		ready := len(c.executables) < mostReady
		c.mu.Unlock()
		if ready {
			x, err = executor.Prepare(ctx, c.Plan, rank, ranks)
		} else {
			x, err = executor.PrepareCompact(ctx, c.Plan, rank, ranks)
		}
	})
	if err = cmp.Or(ended, err); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.executables[key] = x
	c.mu.Unlock()
	if kept := c.kept.Load(); kept != nil {
		planned.Grow(kept, x.Bytes())
	}
	return x, nil
}

// NewEncoder returns an encoder for the matrix a, or an error when a has no rows or columns or an option is out of range.
// Where the context ends, such as while the plan of [WithPlan] is checked for long, the error is its cause.
func NewEncoder(ctx context.Context, a matrix.Matrix, opts ...Option) (*Encoder, error) {
	o := defaults()
	for _, option := range opts {
		option(&o)
	}
	if err := o.validate(); err != nil {
		return nil, inputError{err}
	}
	problem := &algo.Problem{Matrix: a, Separate: o.separate, Ports: o.ports, Order: o.order, Limits: o.limits, WholePackets: o.wholePackets}
	problem.WholePackets = problem.WholeFor(o.algorithm)
	if o.plan != nil {
		problem.Ports = o.plan.Info().Ports
	}
	e := &Encoder{matrix: a, plans: memo.New(mostPlans)}
	if key, shared := keyOf(problem); shared {
		e.key = &key
		known, _, err := memo.Get(ctx, planned, key, problemBytes*int64(a.Rows()+a.Cols()), func() (*algo.Problem, error) { return problem, problem.Prepare() })
		if err != nil {
			return nil, err
		}
		copied := *known // which callers may change
		problem = &copied
	} else if err := problem.Prepare(); err != nil {
		return nil, err
	}
	if _, err := o.network.Rates(problem.Processors()); err != nil {
		return nil, inputError{err}
	}
	if o.plan != nil {
		if err := o.checkGiven(ctx, o.plan, problem); err != nil {
			return nil, err
		}
	}
	e.problem, e.options, e.terms = problem, o, termsOf(problem, &o)
	e.checker = runcheck.New(a, problem, e.keepEntries)
	return e, nil
}

// keepEntries is [runcheck.Keep].
func (e *Encoder) keepEntries(ctx context.Context, bytes int64, make func() (matrix.Matrix, error)) (matrix.Matrix, error) {
	if e.key == nil {
		return make()
	}
	a, _, err := memo.Get(ctx, planned, entriesKey{*e.key}, bytes, make)
	return a, err
}

// problemBytes is about what a problem takes for each row and column, with the structure found in it; and a plan by
// itself.
const problemBytes = 200

// Plan returns the plan that the encoder runs over t on packets of the given number of symbols, the longest of all, when
// the model of processor 0 is its own. Where t is nil, that is any transport without [transport.Limits]. It returns an
// error when the algorithm cannot compute the matrix, or t carries no plan of it, and the cause of the context where that
// ends.
func (e *Encoder) Plan(ctx context.Context, t transport.Transport, symbols int64) (plan.Plan, error) {
	c, err := e.choose(ctx, e.model(symbols), transport.LimitsOf(t))
	if err != nil {
		return nil, err
	}
	return c.Plan, nil
}

// model is the encoder's own, for packets of that many symbols.
func (e *Encoder) model(symbols int64) sim.Model {
	n := e.matrix.Field().SymbolBytes()
	o := &e.options
	return sim.Model{Network: o.network, Beta: o.beta, Tau: o.tau, Gamma: o.gamma, Bytes: symbols * int64(n), SymbolBytes: n}
}

// Carried returns a *[PlanError] where the plan of [WithPlan] is one for which t has no room. [Encoder.Run] does so, too,
// before it sends anything.
func (e *Encoder) Carried(t transport.Transport) error {
	return e.carried(transport.LimitsOf(t))
}

func (e *Encoder) carried(tags transport.Limits) error {
	p := e.options.plan
	if p == nil {
		return nil
	}
	info := p.Info()
	if err := tags.Carry(info.Rounds(), info.Ports); err != nil {
		return &PlanError{Reason: err}
	}
	return nil
}

// choose returns the plan by the model that a transport with those tags carries, an earlier one where there is one; a
// plan that is given is the same by all models.
func (e *Encoder) choose(ctx context.Context, m sim.Model, tags transport.Limits) (*chosenPlan, error) {
	key := chosenKey{model: m, tags: tags}
	if e.options.plan != nil {
		key.model = sim.Model{}
	}
	c, _, err := memo.Get(ctx, e.plans, key, 1, func() (*chosenPlan, error) { return e.newPlan(ctx, m, tags) })
	return c, err
}

// newPlan returns a plan that is chosen, which is that of an earlier encoder where there is one.
func (e *Encoder) newPlan(ctx context.Context, m sim.Model, tags transport.Limits) (*chosenPlan, error) {
	if err := e.carried(tags); err != nil {
		return nil, err
	}
	choose := func() (c *chosenPlan, err error) {
		defer poll.Catch(&err)
		p := e.options.plan
		if p == nil {
			carried := e.problem.CarriedBy(tags.Carry)
			lent, takeBack := poll.Lend(ctx) // plans are kept for longer than ctx
			defer takeBack()
			carried.Context = lent
			if p, err = algo.Choose(e.options.algorithm, carried, m); err != nil {
				return nil, err
			}
		}
		slots := plan.MemorySlots(poll.WithContext(ctx, p))
		return &chosenPlan{Plan: p, model: m, tags: tags, slots: slots, executables: map[executableKey]*executor.Executable{}}, nil
	}
	if e.key == nil || e.options.plan != nil {
		return choose()
	}
	c, kept, err := memo.Get(ctx, planned, chosenKey{*e.key, e.options.algorithm, m, tags}, problemBytes, choose)
	if err == nil {
		c.kept.Store(kept)
	}
	return c, err
}

// Encode runs an all-to-all encode as the processor with the transport's rank and returns its coded packet: with x_i
// the packet of processor i, padded with zero symbols to the longest of all, it is Σ_i A[i][rank]·x_i. Every processor
// of the transport calls Encode with an equal matrix and equal options.
//
// A packet is a vector of symbols as package field describes, so its length is a multiple of the symbol size. Encode
// only reads it, and the coded packet is new memory. The errors are those of [NewEncoder] and [Encoder.Run].
func Encode(ctx context.Context, t transport.Transport, a matrix.Matrix, packet []byte, opts ...Option) ([]byte, *Report, error) {
	e, err := NewEncoder(ctx, a, opts...)
	if err != nil {
		t.Abort(err)
		return nil, nil, err
	}
	return e.Encode(ctx, t, packet)
}

// Encode is [Encoder.Run] for one processor, whose packet is in memory. It returns the coded packet in new memory.
func (e *Encoder) Encode(ctx context.Context, t transport.Transport, packet []byte) ([]byte, *Report, error) {
	var coded []byte
	report, err := e.Run(ctx, t, Packet{Data: packet, Result: &coded})
	if err != nil {
		return nil, nil, err
	}
	return coded, report, nil
}

// Problem returns what the encoder plans for.
func (e *Encoder) Problem() *algo.Problem { return e.problem }

// An inputError is the caller's to mend.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

func inputf(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// IsInputError reports whether an error of a run is the caller's to mend: wrong packets or options, or a disagreement.
func IsInputError(err error) bool {
	return errors.As(err, new(inputError)) || errors.As(err, new(*PlanError)) || errors.As(err, new(*SymbolError)) || errors.As(err, new(*collective.PeerError)) || errors.As(err, new(*DisagreementError)) || errors.As(err, new(*MemoryError)) ||
		errors.As(err, new(*algo.LimitError)) || errors.As(err, new(*transport.LimitsError)) || errors.Is(err, algo.ErrStructure)
}

// MemoryError says that the bound of [WithMemory] is too low for the algorithm.
type MemoryError = executor.MemoryError

// planHash identifies a run: two ranks with equal hashes send each other what the other expects.
func planHash(p plan.Plan, a matrix.Matrix, g settings) string {
	info := p.Info()
	sum := collective.Digest(collective.TermOf("protocol", collective.Protocol), collective.TermOf("version of plans", plan.Version),
		collective.TermOf("field", info.Field.Name()), collective.TermOf("matrix", a.ID()), collective.TermOf("processors", info.Processors), collective.TermOf("ports", info.Ports),
		collective.TermOf("algorithm", info.Algorithm), collective.TermOf("parameters", info.Parameters), collective.TermOf("agreed", g.words()))
	return hex.EncodeToString(sum[:])
}
