package algo

import (
	"errors"
	"fmt"
	"sync"

	"volley/matrix"
)

// A Problem is a matrix to compute on so many ports, in some order of the results.
type Problem struct {
	Matrix matrix.Matrix
	Ports  int // at most K-1, at least 1
	Order  Order

	factor func() *matrix.Factorisation // nil where none is known
}

// Order says which processor is to have which column of A.
type Order int

const (
	Natural Order = iota // processor k has column k
	Any                  // as the plan's Column says, if that saves anything
)

// String returns "natural" or "any".
func (o Order) String() string { return [...]string{"natural", "any"}[o] }

// ErrStructure is wrapped by the errors of algorithms for matrices with a structure
// that the one given has not.
var ErrStructure = errors.New("the matrix has no such structure")

// NewProblem returns a problem, in which more ports than K-1 count as K-1. It
// returns an error when m is not square or ports is below 1.
func NewProblem(m matrix.Matrix, ports int, order Order) (*Problem, error) {
	k := m.Rows()
	if k < 1 || m.Cols() != k {
		return nil, fmt.Errorf("algo: matrix of %d rows and %d columns: an all-to-all encode needs a square one", k, m.Cols())
	}
	ports, err := Ports(k, ports)
	if err != nil {
		return nil, err
	}
	return &Problem{m, ports, order, sync.OnceValue(func() *matrix.Factorisation { return matrix.Factor(m) })}, nil
}

// Structured reports whether the matrix was found to have a structure.
func (p *Problem) Structured() bool { return p.factor() != nil }

// Structure says what structure the matrix was found to have, for people.
func (p *Problem) Structure() string {
	fact := p.factor()
	if fact == nil {
		return "none found"
	}
	return fact.Structure
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
