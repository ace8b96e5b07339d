package algo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"volley/algo/internal/exchange"
	"volley/algo/internal/layers"
	"volley/algo/schedule"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// ErrStructure is wrapped by the errors of algorithms for matrices with a structure that the one given has not.
var ErrStructure = schedule.ErrStructure

// What several codewords share is the same for algorithms.
type (
	Traffic  = schedule.Traffic
	Codeword = schedule.Codeword
	Packet   = schedule.Packet
)

// A Problem is a matrix to compute: K sources hold a packet each, row by row, and R sinks obtain the columns.
//
// In a square problem K = R and every processor is both. Otherwise source k is processor k, and sink s is processor s
// as well, so that there are max(K, R) processors; where sinks are separate, it is processor K+s, of K+R.
type Problem struct {
	Matrix   matrix.Matrix
	Separate bool
	Ports    int // less than the number of processors; 0: the planner chooses, as on a network with one link per node
	Order    Order
	Limits   Limits

	// Traffic, unless nil, is what is asked for in place of a matrix.
	Traffic *Traffic

	// WholePackets keeps plans out that cut packets into pieces.
	WholePackets bool

	// Carry, unless nil, returns an error where the transport does not carry plans of so many rounds and ports. What it
	// allows, it allows with fewer of either.
	Carry func(rounds, ports int) error

	// Context, unless nil, ends planning: the error is then its cause.
	Context context.Context

	// Both are kept for all who plan for the matrix, whatever context theirs have.
	known  *factorisations
	rounds *poll.Once[int] // the fewest of any plan

	hopeless func(sim.Cost) bool // see Hopeless; nil: no plan is known yet

	inMemory bool      // see [schedule.Task]
	rates    []float64 // likewise
}

// Limits are what a plan may take. The zero value has no limits.
type Limits struct {
	Rounds  RoundLimit
	Memory  int // packets that a processor holds at a time; 0: any number
	Compute int // multiply-adds per symbol, of a processor; 0: any number
}

// A RoundLimit bounds the rounds of a plan. The zero value is no bound; [FewestPlus] makes the others.
type RoundLimit struct{ n int } // rounds above one less than the fewest; 0: any number

// FewestPlus allows n rounds more than the fewest that any plan for the problem has; a negative n allows any number.
func FewestPlus(n int) RoundLimit { return RoundLimit{max(0, min(n, math.MaxInt-1)+1)} }

// Excess returns how many rounds above the fewest are allowed, and -1 where any number is.
func (l RoundLimit) Excess() int { return l.n - 1 }

// Task returns what the plan is for, without the limits.
func (p *Problem) Task() schedule.Task {
	return schedule.Task{Matrix: p.Matrix, Separate: p.Separate, Ports: p.Ports, InMemory: p.inMemory, Rates: p.rates, Context: p.Context, Traffic: p.Traffic}
}

// Processors returns how many processors there are.
func (p *Problem) Processors() int { return p.Task().Processors() }

// Square reports whether every processor is source and sink.
func (p *Problem) Square() bool { return p.Task().Square() }

// Order says which processor is to have which column of A. AnyOrder saves a DFT of 16 to 256 packets a round, 11 to 14 % of the
// time by the model of 10 Gbit/s.
type Order int

const (
	Natural  Order = iota // processor k has column k
	AnyOrder              // as the plan's Column says, if that saves anything
)

// String returns "natural" or "any".
func (o Order) String() string { return [...]string{"natural", "any"}[o] }

// Source returns the row of the matrix that multiplies the packet of a processor; ok is false where it has none.
func (p *Problem) Source(proc int) (row int, ok bool) { return p.Task().Source(proc) }

// Sink returns which sink a processor is; ok is false where it is none.
func (p *Problem) Sink(proc int) (sink int, ok bool) { return p.Task().Sink(proc) }

// CheckProcessors returns an error unless the packets of q, initial and coded, are at the processors that the problem
// says.
func (p *Problem) CheckProcessors(q plan.Plan) error {
	if got, want := q.Info().Processors, p.Processors(); got != want {
		return fmt.Errorf("it has %d processors, want %d", got, want)
	}
	pieces := q.Info().PieceCount()
	packets := func(n int, index func(proc, i int) int, proc int) []int {
		list := []int{}
		for i := 0; i < n; i += pieces {
			list = append(list, index(proc, i)/pieces)
		}
		return list
	}
	single := func(number int, exists bool) []int {
		if !exists {
			return []int{}
		}
		return []int{number}
	}
	relabelled := p.Order == AnyOrder && p.Square()
	for k := range p.Processors() {
		s := q.Schedule(k)
		if got, want := packets(s.Inputs, q.Row, k), single(p.Source(k)); !slices.Equal(got, want) {
			return fmt.Errorf("processor %d has the initial packets %v, want %v", k, got, want)
		}
		got, want := packets(len(s.Outputs), q.Column, k), single(p.Sink(k))
		if !slices.Equal(got, want) && !(relabelled && len(got) == 1) {
			return fmt.Errorf("processor %d gets the coded packets %v, want %v", k, got, want)
		}
	}
	return nil
}

// mostAtOnce is the most processors for whose traffic a plan of other ports is worth the time that it takes to make.
const mostAtOnce = 256

// MostPorts returns the most ports that a plan may have.
func (p *Problem) MostPorts() int {
	if p.Ports == 0 {
		return max(1, p.Processors()-1)
	}
	return p.Ports
}

// portsToTry returns the ports to look for plans with, the most first. On a network a stage of radix r has r-1
// messages at once: the radices are the roots of the sizes of groups, and powers of two, as layers have them.
func (p *Problem) portsToTry() []int {
	if p.Ports > 0 {
		return []int{p.carried(p.Ports)}
	}
	limit := p.carried(p.MostPorts())
	if p.inMemory {
		if limit >= 1024 { // where each processor is a rank, messages from all to all take gigabytes: six rounds have few
			limit = int(math.Ceil(math.Pow(float64(limit+1), 1.0/6)-1e-9)) - 1
		}
		return []int{limit}
	}
	if p.Traffic != nil {
		if p.Processors() > mostAtOnce {
			return []int{1}
		}
		return slices.Compact([]int{1, limit})
	}
	large, small := max(p.Matrix.Rows(), p.Matrix.Cols()), min(p.Matrix.Rows(), p.Matrix.Cols())
	list := []int{1, min(large, limit)}
	if p.Square() {
		for radix := 4; radix <= limit; radix *= 2 {
			list = append(list, radix-1)
		}
	}
	for _, size := range []int{large, small, schedule.Ceil(large, small) + 1} {
		for digits := 2; digits <= schedule.Clog(size, 1); digits++ {
			radix := int(math.Ceil(math.Pow(float64(size), 1/float64(digits)) - 1e-9))
			list = append(list, radix-1)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return b - a })
	return slices.DeleteFunc(slices.Compact(list), func(n int) bool { return n > limit })
}

// CarriedBy returns the problem for a transport that carries only some plans, see Carry.
func (p *Problem) CarriedBy(carry func(rounds, ports int) error) *Problem {
	derived := *p
	derived.Carry = carry
	return &derived
}

// carried returns how many of so many ports a plan may have to be carried.
func (p *Problem) carried(ports int) int {
	if p.Carry == nil {
		return ports
	}
	return max(1, sort.Search(ports, func(fewer int) bool { return p.Carry(1, fewer+1) != nil }))
}

// carry says why a plan is not carried.
func (p *Problem) carry(q plan.Plan) error {
	if p.Carry == nil {
		return nil
	}
	info := q.Info()
	return p.Carry(info.Rounds(), info.Ports)
}

// forModel returns the problem as the planner takes it up by a model.
func (p *Problem) forModel(model sim.Model) *Problem {
	derived := *p
	derived.inMemory = p.Square() && p.Ports == 0 && !model.Paper() && model.Network.Gap == 0 && model.Gamma > 0
	derived.rates, _ = model.Network.Rates(p.Processors()) // or nobody plans for them
	return &derived
}

func (p *Problem) withPorts(ports int) *Problem {
	derived := *p
	derived.Ports = ports
	return &derived
}

// NewProblem returns the square problem of m without limits. More ports than K-1 count as K-1. It is an error when m is not
// square or ports is below 0.
func NewProblem(m matrix.Matrix, ports int, order Order) (*Problem, error) {
	if m.Rows() < 1 || m.Cols() != m.Rows() {
		return nil, fmt.Errorf("algo: matrix of %d rows and %d columns: an all-to-all encode needs a square one", m.Rows(), m.Cols())
	}
	p := &Problem{Matrix: m, Ports: ports, Order: order}
	return p, p.Prepare()
}

// Prepare checks a problem that was written down, and makes it ready for [Algorithm.Plans]; more ports than there are
// other processors count as those. It returns an error for no sources or sinks, ports below 0 or negative limits.
func (p *Problem) Prepare() error {
	if m := p.Matrix; p.Traffic == nil && (m.Rows() < 1 || m.Cols() < 1) {
		return fmt.Errorf("algo: matrix of %d rows and %d columns: want sources and sinks", m.Rows(), m.Cols())
	}
	if p.Ports != 0 {
		var err error
		if p.Ports, err = Ports(p.Processors(), p.Ports); err != nil {
			return err
		}
	}
	if p.Limits.Memory < 0 || p.Limits.Compute < 0 {
		return fmt.Errorf("algo: limits of %d packets and %d multiply-adds: want 1 or more, or 0 for none", p.Limits.Memory, p.Limits.Compute)
	}
	p.known, p.rounds = &factorisations{bySizes: map[string]*matrix.Factorisation{}}, &poll.Once[int]{}
	return nil
}

// factorisations are those of a matrix that were asked for, by the sizes whose primes are the first radices.
type factorisations struct {
	mu      sync.Mutex
	bySizes map[string]*matrix.Factorisation
	support poll.Once[support]
	sparse  poll.Once[bool]
}

// factor is [layers.Factor] of a square problem's matrix.
func (p *Problem) factor(sizes []int) *matrix.Factorisation {
	if !p.Square() {
		return nil
	}
	p.known.mu.Lock()
	defer p.known.mu.Unlock()
	key := fmt.Sprint(sizes)
	fact, ok := p.known.bySizes[key]
	if !ok {
		fact = layers.Factor(p.Context, p.Matrix, sizes)
		p.known.bySizes[key] = fact
	}
	return fact
}

// fewest returns the fewest rounds of any plan.
func (p *Problem) fewest() int { return p.rounds.Get(p.fewestRounds) }

// Ended returns the cause of the problem's context once that has ended, for long searches, and nil before.
func (p *Problem) Ended() error { return p.Task().Ended() }

// Hopeless reports whether a plan of C1 and C2 packets is of no use any more, as one that is as cheap is known.
func (p *Problem) Hopeless(c sim.Cost) bool { return p.hopeless != nil && p.hopeless(c) }

// MostRounds returns the largest number of rounds that the limits allow, and -1 where they allow any. Where
// the problem's context ends, it unwinds to the function of algo that plans.
func (p *Problem) MostRounds() int {
	excess := p.Limits.Rounds.Excess()
	if excess < 0 {
		return -1
	}
	return p.fewest() + excess
}

// fewestRounds returns the fewest rounds of any plan, which the universal algorithm meets where all are sources and sinks.
func (p *Problem) fewestRounds() int {
	bound := 0 // of traffic none is known
	if p.Traffic == nil {
		bound = BoundC1(reached(p.Matrix.Rows(), p.Matrix.Cols(), p.Separate), p.MostPorts())
	}
	if p.Square() {
		return bound
	}
	derived := p.withPorts(p.MostPorts())
	derived.Limits = Limits{}
	fewest := -1
	for _, a := range registry {
		plans, _ := a.Plans(derived) // an algorithm that has none has no fewest
		poll.Must(p.Ended())
		for _, q := range plans {
			if rounds := q.Info().Rounds(); !derived.cuts(q) && (fewest < 0 || rounds < fewest) {
				fewest = rounds
			}
		}
	}
	return max(fewest, bound)
}

// WholeFor reports whether packets stay whole where the named algorithm, or [Auto], plans: where that is asked for, and
// in the model of the paper, with its ports, where every processor is source and sink and no algorithm is named.
func (p *Problem) WholeFor(name string) bool {
	return p.WholePackets || p.Ports > 0 && name == Auto && p.Square()
}

// cuts reports whether a plan cuts packets that are to stay whole.
func (p *Problem) cuts(q plan.Plan) bool { return p.WholePackets && q.Info().PieceCount() > 1 }

// Factorisation returns [matrix.Factor] of the matrix of a square problem, and nil for others. The error is the cause of
// the context, where that ends; nil is none.
func (p *Problem) Factorisation(ctx context.Context) (fact *matrix.Factorisation, err error) {
	defer poll.Catch(&err)
	derived := *p
	derived.Context = ctx
	return derived.factor(nil), nil
}

// Structure says for people what structure the matrix, or its blocks, was found to have; found is false without any.
func (p *Problem) Structure() (text string, found bool) {
	if p.Square() {
		if fact, err := p.Factorisation(p.Context); err == nil && fact != nil {
			return fact.Structure, true
		}
	} else if facts, reason, err := exchange.BlockFactors(p.Task()); reason == "" && err == nil {
		return "of the blocks: " + facts[0].Structure, true
	}
	return "none found", false
}

// Ports returns the ports that K processors use of those they have: more than K-1 count as K-1, but never less than 1.
// It returns an error when ports is below 1.
func Ports(k, ports int) (int, error) {
	if ports < 1 {
		return 0, fmt.Errorf("algo: %d ports: want 1 or more", ports)
	}
	return max(1, min(ports, k-1)), nil
}
