package schedules

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"volley/algo"
	"volley/internal/cli/session"
	"volley/internal/comparison"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
	"volley/plan"
	"volley/sim"
	"volley/verify"
)

type checkOptions struct {
	selection.Selection // of which only the flags of a matrix are used
	json                bool
}

func newCheck(s *session.Invocation) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check [flags] PLAN",
		Short: "Check a plan of your own: rules, matrix and costs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("want one PLAN, got %d: see volley check --help", len(args))
			}
			return nil
		},
		RunE: session.Stoppable(func(cmd *cobra.Command, args []string) error { return runCheck(s, cmd, o, args[0]) }),
	}
	f := cmd.Flags()
	o.AddMatrix(f)
	o.Open = s.OpenInput
	f.Lookup("matrix").DefValue = "" // none: the rules only
	f.Lookup("field").Usage = "finite field (default: that of the plan)"
	for _, name := range []string{"sinks", "separate"} { // which the plan says
		f.MarkHidden(name)
	}
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	return cmd
}

// A planReport says what a plan is, does and costs.
type planReport struct {
	Algorithm  string `json:"algorithm"`
	Parameters string `json:"parameters"`
	Field      string `json:"field"`
	Processors int    `json:"processors"`
	Ports      int    `json:"ports"`
	Sources    int    `json:"sources"`
	Sinks      int    `json:"sinks"`
	Pieces     int    `json:"pieces"`

	Violations []plan.Violation `json:"violations"` // of the rules, the first 100
	Matrix     string           `json:"matrix"`     // that the plan was compared with; empty: none
	Computed   bool             `json:"computed"`   // the plan computes the matrix
	Differs    int              `json:"differs"`    // entries of the matrix that the plan gets wrong
	Mismatches []mismatch       `json:"mismatches"` // the first 100 of them

	C1     int     `json:"c1"`     // rounds
	C2     float64 `json:"c2"`     // packets
	C3     int     `json:"c3"`     // multiply-adds per symbol, at the busiest processor
	Memory float64 `json:"memory"` // packets that a processor holds, when it forgets none

	comparison.Bounds
}

// A mismatch is an entry of the matrix that a plan gets wrong.
type mismatch struct {
	Processor int    `json:"processor"` // whose result it is
	Initial   string `json:"initial"`   // packet, such as x3
	Coded     string `json:"coded"`
	Got       string `json:"got"`
	Want      string `json:"want"`
}

func runCheck(s *session.Invocation, cmd *cobra.Command, o *checkOptions, name string) error {
	o.SetDefaults()
	r := &planReport{Violations: []plan.Violation{}, Mismatches: []mismatch{}}
	p, err := readPlan(s, name)
	if invalid := new(plan.ValidationError); errors.As(err, &invalid) {
		r.Violations = invalid.Violations
		return errors.Join(o.printViolations(cmd.OutOrStdout(), r), err)
	}
	if err != nil {
		return err
	}
	counted := r.cost(p)
	var computed *algo.Problem // nil: of a matrix that is not known
	if cmd.Flags().Changed("matrix") {
		if computed, err = o.compare(cmd, p, r); err != nil && len(r.Mismatches) == 0 {
			return err
		}
	}
	r.Bounds = comparison.BoundsOf(computed, p.Info(), counted)
	if o.json {
		return errors.Join(session.WriteJSON(cmd.OutOrStdout(), r), err)
	}
	return errors.Join(r.print(cmd.OutOrStdout()), err)
}

// printViolations prints what the error does not say: all violations, where there are several.
func (o *checkOptions) printViolations(w io.Writer, r *planReport) (err error) {
	if o.json {
		return session.WriteJSON(w, r)
	}
	for i := 0; i < len(r.Violations) && len(r.Violations) > 1 && err == nil; i++ {
		err = printable.Fprintf(w, "%v\n", r.Violations[i])
	}
	return err
}

// cost fills in what the plan is and costs, and returns what was counted.
func (r *planReport) cost(p *plan.Materialized) sim.Cost {
	info, cost := p.Info(), sim.Count(p)
	pieces := info.PieceCount()
	r.Algorithm, r.Parameters, r.Field = info.Algorithm, info.Parameters, info.Field.Name()
	r.Processors, r.Ports, r.Pieces = info.Processors, info.Ports, pieces
	r.Sources, r.Sinks = info.Rows/pieces, info.Columns/pieces
	r.C1, r.C2, r.C3 = cost.C1, cost.PacketC2(), cost.PacketC3()
	r.Memory = float64(plan.MemorySlots(p)) / float64(pieces)
	return cost
}

// compare compares the plan with the selected matrix. It returns the problem of that matrix where the plan computes it. The
// error names the first wrong entry, with exit code exit.Wrong.
func (o *checkOptions) compare(cmd *cobra.Command, p *plan.Materialized, r *planReport) (*algo.Problem, error) {
	if !cmd.Flags().Changed("field") {
		o.Field = r.Field
	} else if o.Field != r.Field {
		return nil, exit.Usagef("--field %s: the plan is over %s: leave --field out", o.Field, r.Field)
	}
	o.Processors, o.Sinks = r.Sources, r.Sinks
	a, err := o.Build()
	if err != nil {
		return nil, err
	}
	r.Matrix = o.Matrix
	err = verify.Check(cmd.Context(), p, a)
	wrong := new(verify.MismatchError)
	if !errors.As(err, &wrong) {
		if r.Computed = err == nil; !r.Computed {
			return nil, exit.AsUsage(err)
		}
		return &algo.Problem{Matrix: a, Separate: r.Processors > max(r.Sources, r.Sinks), Order: algo.AnyOrder}, nil
	}
	r.Differs = wrong.Count
	info := p.Info()
	for _, m := range wrong.Mismatches {
		r.Mismatches = append(r.Mismatches, mismatch{m.Proc, info.InitialName(m.Row), info.CodedName(m.Column), m.Got.String(), m.Want.String()})
	}
	m := r.Mismatches[0]
	return nil, exit.Wrongf("the plan computes another matrix than %s: %s: processor %d has %s·%s in %s, want %s·%s",
		r.Matrix, printable.Count(r.Differs, "wrong coefficient"), m.Processor, m.Got, m.Initial, m.Coded, m.Want, m.Initial)
}

func (r *planReport) print(w io.Writer) error {
	result := "keeps the rules; not compared with a matrix: name one with --matrix"
	if r.Matrix != "" {
		result = fmt.Sprintf("keeps the rules and computes %s, exactly", r.Matrix)
		if !r.Computed {
			result = fmt.Sprintf("keeps the rules, and computes another matrix than %s", r.Matrix)
		}
	}
	shape := printable.Count(r.Processors, "processor")
	if r.Sources != r.Processors || r.Sinks != r.Processors {
		shape += fmt.Sprintf(" (%s, %s)", printable.Count(r.Sources, "source"), printable.Count(r.Sinks, "sink"))
	}
	name := r.Algorithm
	if r.Parameters != "" {
		name += " (" + r.Parameters + ")"
	}
	leastC1, leastC2 := r.Bounds.Text(r.C1)
	return printable.Fprintf(w, `plan       %s, %s, p = %d, field %s
C1         %s%s
C2         %s%s
C3         %s per symbol
memory     %s at most
result     %s
`, name, shape, r.Ports, r.Field,
		printable.Count(r.C1, "round"), leastC1, packetCount(r.C2), leastC2,
		printable.Count(r.C3, "multiply-add"), packetCount(r.Memory), result)
}

// packetCount returns "1 packet", "2.5 packets".
func packetCount(n float64) string {
	if n == 1 {
		return "1 packet"
	}
	return report.Number(n) + " packets"
}

// mostPlan is the bytes that the file of a plan may have.
const mostPlan = 1 << 30

// readPlan reads the file of a plan. The error wraps a *[plan.ValidationError] where the plan breaks a rule.
func readPlan(s *session.Invocation, name string) (*plan.Materialized, error) {
	data, err := readAtMost(s, name, mostPlan)
	if err != nil {
		return nil, exit.Usagef("cannot read the plan: %w", err)
	}
	p, err := plan.Decode(bytes.NewReader(data))
	if err == nil {
		return p, nil
	}
	if name == session.Standard {
		name = "standard input"
	}
	if wrong := new(plan.DecodeError); errors.As(err, &wrong) {
		if err = wrong.Reason; wrong.Line > 0 {
			name += fmt.Sprintf(", line %d", wrong.Line)
		}
	}
	if errors.As(err, new(*plan.ValidationError)) {
		return nil, exit.AsUsage(&planError{name, err})
	}
	return nil, exit.Usagef("%w: want a file as volley plan --json prints it", &planError{name, err})
}

// A planError says what is wrong with a plan, and in which file.
type planError struct {
	file string
	err  error
}

func (e *planError) Error() string {
	return fmt.Sprintf("cannot use the plan %s: %s", e.file, selection.Message(e.err))
}

func (e *planError) Unwrap() error { return e.err }

// readAtMost reads a file, which may be a pipe. It returns an error where that has more bytes.
func readAtMost(s *session.Invocation, name string, limit int64) ([]byte, error) {
	f, err := s.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return data, err
}
