package executor

import (
	"context"

	"volley/executor/internal/compile"
	"volley/executor/internal/cores"
	"volley/plan"
)

// An Executable is what one rank has to do for a plan: the programs of its processors, made ready to run on packets of any
// length, any number of times. It is immutable and safe for concurrent use.
type Executable struct{ compiled *compile.Executable }

// Bytes returns about how much memory it takes.
func (x *Executable) Bytes() int64 { return x.compiled.Bytes() }

// Prepare makes the executable of a rank. It returns an error when a program cannot be made, or sends and receives of
// processors here do not agree, and the cause of the context where that ends.
func Prepare(ctx context.Context, p plan.Plan, rank, ranks int) (*Executable, error) {
	return prepare(ctx, p, rank, ranks, false)
}

// PrepareCompact is [Prepare] for one of many ranks of a process. The executable holds the coefficients of its
// maps as they are in packets, a quarter or less of what kernels want, and makes a map ready whenever it computes with
// it, of as many ranks at a time as there are cores.
func PrepareCompact(ctx context.Context, p plan.Plan, rank, ranks int) (*Executable, error) {
	return prepare(ctx, p, rank, ranks, true)
}

func prepare(ctx context.Context, p plan.Plan, rank, ranks int, compact bool) (*Executable, error) {
	x, err := compile.Prepare(ctx, p, rank, ranks, compact)
	if err != nil {
		return nil, err
	}
	return &Executable{x}, nil
}

// Hosted returns which processors of a plan live at a rank: all of [first, end). They
// are dealt out in order, to each rank as many as to any other or one more.
func Hosted(processors, rank, ranks int) (first, end int) {
	return compile.Hosted(processors, rank, ranks)
}

// RankOf returns the rank at which a processor of a plan lives: it is among those that
// [Hosted] returns for that rank.
func RankOf(proc, processors, ranks int) int { return compile.RankOf(proc, processors, ranks) }

// OnCore does something when there is a place, one for each core of the process. The stack that it takes is not
// the caller's, which waits with it. Where the context ends before there is a place, it does nothing: the error is its
// cause.
func OnCore(ctx context.Context, work func()) error { return cores.Run(ctx, work) }
