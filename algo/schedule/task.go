package schedule

import (
	"context"
	"errors"
	"fmt"

	"volley/matrix"
	"volley/plan"
)

// A Task is what a plan is for: the matrix, its sources and sinks, and the ports.
type Task struct {
	Matrix   matrix.Matrix
	Separate bool // sinks are processors of their own
	Ports    int
	InMemory bool      // in one process, where messages are free: arithmetic is all that counts
	Rates    []float64 // of the processors' links, 1 at most; nil: all are alike

	Traffic *Traffic // in place of a matrix, or nil

	// Context, unless nil, ends planning.
	Context context.Context
}

// Processors returns how many processors there are.
func (t Task) Processors() int {
	switch {
	case t.Traffic != nil:
		return len(t.Traffic.Inputs)
	case t.Separate:
		return t.Matrix.Rows() + t.Matrix.Cols()
	}
	return max(t.Matrix.Rows(), t.Matrix.Cols())
}

// Square reports whether every processor is source and sink.
func (t Task) Square() bool {
	return t.Traffic == nil && !t.Separate && t.Matrix.Rows() == t.Matrix.Cols()
}

// Source returns the row of the matrix that multiplies the packet of a processor; ok is false where it has none.
func (t Task) Source(proc int) (row int, ok bool) { return proc, proc < t.Matrix.Rows() }

// Sink returns which sink a processor is; ok is false where it is none.
func (t Task) Sink(proc int) (sink int, ok bool) {
	if t.Separate {
		proc -= t.Matrix.Rows()
	}
	return proc, proc >= 0 && proc < t.Matrix.Cols()
}

// Info returns what is common to all processors of a plan that cuts packets into pieces, 0 for whole ones, but its phases.
func (t Task) Info(algorithm string, pieces int, parameters string, arguments ...[]int) plan.Info {
	n := max(1, pieces)
	return plan.Info{
		Algorithm: algorithm, Parameters: parameters, Arguments: arguments, Field: t.Matrix.Field(), Processors: t.Processors(),
		Ports: t.Ports, Rows: t.Matrix.Rows() * n, Columns: t.Matrix.Cols() * n, Pieces: pieces,
	}
}

// MustBeSquare returns an error that wraps [ErrStructure] for sources and sinks.
func (t Task) MustBeSquare(algorithm string) error {
	if t.Square() {
		return nil
	}
	return fmt.Errorf("algo: %s for %d sources and %d sinks: %w: it is for processors that are both",
		algorithm, t.Matrix.Rows(), t.Matrix.Cols(), ErrStructure)
}

// Ended returns the cause of the context once that has ended, and nil before.
func (t Task) Ended() error {
	if t.Context == nil || t.Context.Err() == nil {
		return nil
	}
	return context.Cause(t.Context)
}

// ErrStructure is wrapped by the errors of algorithms for matrices with a structure that the one given has not.
var ErrStructure = errors.New("the matrix has no such structure")

// A Misfit says why an algorithm has no plan for a problem. It is an [ErrStructure].
type Misfit string

func (e Misfit) Error() string { return string(e) }

// Is reports whether the target is [ErrStructure].
func (e Misfit) Is(target error) bool { return target == ErrStructure }

// An Unmet is a [Misfit] for a matrix that does not meet the condition of an algorithm that takes most.
type Unmet struct{ Misfit }
