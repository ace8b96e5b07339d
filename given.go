package volley

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"volley/algo"
	"volley/internal/poll"
	"volley/plan"
	"volley/verify"
)

// WithPlan runs p, a plan that may come from anywhere, such as [plan.Decode]: [WithAlgorithm], [WithNetwork],
// [WithPaperModel] and [WithLimits] choose nothing. [NewEncoder] then returns a *[PlanError] unless p keeps the rules
// of the model, computes the matrix exactly, and has every packet, initial or coded, at the processor that [Encode]
// says. That takes K² symbols and more. A run refuses a plan for which its transport has no room, see [Encoder.Carried].
func WithPlan(p plan.Plan) Option { return func(o *options) { o.plan = p } }

// A PlanError says why the plan of [WithPlan] does not do. It may wrap a *plan.ValidationError or a *verify.MismatchError.
type PlanError struct {
	Reason error
	Matrix string // that the plan was compared with, where it computes another one; else empty
}

func (e *PlanError) Error() string {
	reason := strings.TrimPrefix(strings.TrimPrefix(e.Reason.Error(), "verify: "), "plan: ")
	if e.Matrix != "" {
		reason = "it computes another matrix than " + e.Matrix + ": " + reason
	}
	return "volley: cannot use the plan: " + reason
}

// Unwrap returns the reason.
func (e *PlanError) Unwrap() error { return e.Reason }

// checkGiven returns a *[PlanError] unless p computes the problem's matrix, and names p in the options.
func (o *options) checkGiven(ctx context.Context, p plan.Plan, problem *algo.Problem) error {
	if err := verify.Check(ctx, p, problem.Matrix); errors.As(err, new(*verify.MismatchError)) {
		return &PlanError{err, problem.Matrix.ID()}
	} else if ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return &PlanError{Reason: err}
	}
	if err := problem.CheckProcessors(p); err != nil {
		return &PlanError{Reason: err}
	}
	h := sha256.New()
	if err := plan.Encode(poll.Writer{Context: ctx, Writer: h}, poll.WithContext(ctx, p)); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return &PlanError{Reason: err}
	}
	o.algorithm = fmt.Sprintf("plan %x", h.Sum(nil))
	return nil
}
