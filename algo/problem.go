package algo

import (
	"context"
	"fmt"
	"math"
	"sync"

	"volley/algo/internal/sinks"
	"volley/algo/schedule"
	"volley/matrix"
	"volley/sim"
)

// ErrStructure is wrapped by the errors of algorithms for matrices with a structure
// that the one given has not.
var ErrStructure = schedule.ErrStructure

// A Problem is a matrix to compute: K sources hold a packet each, row by row, and R
// sinks obtain the columns.
//
// In a square problem K = R and every processor is both. Otherwise source k is
// processor k, and sink s is processor s as well, so that there are max(K, R)
// processors; where sinks are separate, it is processor K+s, of K+R.
type Problem struct {
	Matrix   matrix.Matrix
	Separate bool
	Ports    int // less than the number of processors, at least 1
	Order    Order
	Limits   Limits

	// Cut lets [Choose] cut the packets of a square problem into pieces. Else it
	// stays in the model of the paper, in which a packet is whole; the packets of
	// other problems are cut in any case, where that is cheaper.
	Cut bool

	// Context, unless nil, ends planning: the error is then its cause.
	Context context.Context

	factor func() *matrix.Factorisation // nil where none is known
	late   func(sim.Cost) bool          // nil: no plan is known yet
}

// Limits are what a plan may take. The zero value has no limits.
type Limits struct {
	Rounds  RoundLimit
	Memory  int // packets that a processor holds at a time; 0: any number
	Compute int // multiply-adds per symbol, of a processor; 0: any number
}

// A RoundLimit bounds the rounds of a plan. The zero value is no bound; [FewestPlus]
// makes the others.
type RoundLimit struct{ n int } // rounds above one less than the fewest; 0: any number

// FewestPlus allows n rounds more than the fewest possible, see [Problem.Bounds];
// a negative n allows any number.
func FewestPlus(n int) RoundLimit { return RoundLimit{max(0, min(n, math.MaxInt-1)+1)} }

// Over returns how many rounds above the fewest possible are allowed, and -1 where any
// number is.
func (l RoundLimit) Over() int { return l.n - 1 }

// Task returns what the plan is for, without the limits.
func (p *Problem) Task() schedule.Task {
	return schedule.Task{Matrix: p.Matrix, Separate: p.Separate, Ports: p.Ports, Context: p.Context}
}

// Processors returns how many processors there are.
func (p *Problem) Processors() int { return p.Task().Processors() }

// Square reports whether every processor is source and sink.
func (p *Problem) Square() bool { return p.Task().Square() }

// Order says which processor is to have which column of A.
type Order int

const (
	Natural Order = iota // processor k has column k
	Any                  // as the plan's Column says, if that saves anything
)

// String returns "natural" or "any".
func (o Order) String() string { return [...]string{"natural", "any"}[o] }

// Source returns the row of the matrix that multiplies the packet of a processor; ok
// is false where it has none.
func (p *Problem) Source(proc int) (row int, ok bool) { return p.Task().Source(proc) }

// Sink returns which sink a processor is; ok is false where it is none.
func (p *Problem) Sink(proc int) (sink int, ok bool) { return p.Task().Sink(proc) }

// Bounds returns C1 and C2 that no schedule of whole packets for every matrix of the shape goes
// below, as [Bounds] does for a plan.
func (p *Problem) Bounds() (c1, c2 int) {
	return bounds(p.Matrix.Rows(), p.Matrix.Cols(), p.Separate, p.Ports, 1)
}

// NewProblem returns the square problem of m without limits, in which more ports
// than K-1 count as K-1. It returns an error when m is not square or ports is below
// 1.
func NewProblem(m matrix.Matrix, ports int, order Order) (*Problem, error) {
	if m.Rows() < 1 || m.Cols() != m.Rows() {
		return nil, fmt.Errorf("algo: matrix of %d rows and %d columns: an all-to-all encode needs a square one", m.Rows(), m.Cols())
	}
	p := &Problem{Matrix: m, Ports: ports, Order: order}
	return p, p.Prepare()
}

// Prepare checks a problem that was written down, and makes it ready for
// [Algorithm.Plans]; more ports than there are other processors count as those. It
// returns an error for no sources or sinks, ports below 1 or negative limits.
func (p *Problem) Prepare() error {
	m := p.Matrix
	if m.Rows() < 1 || m.Cols() < 1 {
		return fmt.Errorf("algo: matrix of %d rows and %d columns: want sources and sinks", m.Rows(), m.Cols())
	}
	var err error
	if p.Ports, err = Ports(p.Processors(), p.Ports); err != nil {
		return err
	}
	if p.Limits.Memory < 0 || p.Limits.Compute < 0 {
		return fmt.Errorf("algo: limits of %d packets and %d multiply-adds: want 1 or more, or 0 for none", p.Limits.Memory, p.Limits.Compute)
	}
	p.factor = sync.OnceValue(func() *matrix.Factorisation {
		if !p.Square() {
			return nil
		}
		return matrix.Factor(m)
	})
	return nil
}

// Ended returns the cause of the problem's context once that has ended, and nil before. A
// long search for plans asks now and then, and gives up.
func (p *Problem) Ended() error { return p.Task().Ended() }

// Hopeless reports whether a plan of C1 and C2 packets is of no use any more, as one that is
// as cheap is known.
func (p *Problem) Hopeless(c sim.Cost) bool { return p.late != nil && p.late(c) }

// MostRounds returns the largest number of rounds that the limits allow, and -1
// where they allow any.
func (p *Problem) MostRounds() int {
	over := p.Limits.Rounds.Over()
	if over < 0 {
		return -1
	}
	fewest, _ := p.Bounds()
	return fewest + over
}

// Factorisation returns [matrix.Factor] of the matrix of a square problem, and nil for others.
func (p *Problem) Factorisation() *matrix.Factorisation { return p.factor() }

// Structure says what structure the matrix, or its blocks for sources and sinks, was
// found to have, for people; found is false where it was none.
func (p *Problem) Structure() (text string, found bool) {
	if p.Square() {
		if fact := p.factor(); fact != nil {
			return fact.Structure, true
		}
	} else if facts, why := sinks.BlockFactors(p.Task()); why == "" {
		return "of the blocks: " + facts[0].Structure, true
	}
	return "none found", false
}

// Ports returns the ports that K processors use of those they have: more than
// K-1 count as K-1, but never less than 1. It returns an error when ports is
// below 1.
func Ports(k, ports int) (int, error) {
	if ports < 1 {
		return 0, fmt.Errorf("algo: %d ports: want 1 or more", ports)
	}
	return max(1, min(ports, k-1)), nil
}
