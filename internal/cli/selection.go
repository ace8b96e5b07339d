package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/sim"
	"volley/tune"
)

// selection is the flags by which every verb selects a matrix and a plan.
type selection struct {
	field     string
	matrix    string
	points    string
	omega     string
	alpha     string
	base      string
	order     string // one of orders
	inverse   bool
	k         int
	sinks     int // 0: every processor is source and sink
	separate  bool
	cut       bool
	ports     int
	algorithm string
	beta, tau string
	gamma     string
	limits    algo.Limits
}

// usualField is that of a matrix that has no field of its own.
const usualField = "2^8"

// orders lists the values of --order.
var orders = []string{"natural", "reversed", "any"}

// addMatrix adds the flags that select a matrix.
func (s *selection) addMatrix(cmd *cobra.Command) {
	defer flagGroup(cmd, "Matrix")()
	f := cmd.Flags()
	f.StringVar(&s.field, "field", usualField, "finite field, as volley fields lists them; with fti 2^16 unless given")
	f.StringVar(&s.matrix, "matrix", "cauchy", "matrix A, see volley matrix --help: "+matrixNames())
	f.StringVar(&s.points, "points", "coset", "points of a vandermonde or moore matrix: coset, powers, codes, or a file of decimal values")
	f.StringVar(&s.omega, "omega", "", "points ω of a lagrange matrix, x of a cauchy matrix: coset, powers, codes, or a file (default coset; cauchy: codes)")
	f.StringVar(&s.alpha, "alpha", "", "points α of a lagrange matrix, y of a cauchy matrix: the words of --omega mean the points after ω here")
	f.StringVar(&s.base, "base", "", "base of a moore or gabidulin matrix, the order of a subfield (default the characteristic)")
	f.StringVar(&s.order, "order", "natural", "order of the coded packets: natural, reversed (of digits, for dft), or any that is cheapest")
	f.BoolVar(&s.inverse, "inverse", false, "use the inverse of the matrix")
	f.Var(atLeast{&s.sinks, 1, 0}, "sinks", "number of processors that get a coded packet: the first ones or, with --separate, others (default: all)")
	f.BoolVar(&s.separate, "separate", false, "the sinks hold no data: they are processors of their own, after the others")
	cmd.PreRun = func(*cobra.Command, []string) {
		if spec, err := matrix.ParseSpec(s.matrix); err == nil && !f.Changed("field") {
			s.field = spec.DefaultField(usualField)
		}
	}
}

// addProcessors adds the flag of the number of processors.
func (s *selection) addProcessors(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&s.k, "processors", "k", 0, "number of processors")
}

// addPlan adds the flags that select a plan for a matrix.
func (s *selection) addPlan(cmd *cobra.Command) {
	end := flagGroup(cmd, "Plan")
	f := cmd.Flags()
	f.IntVarP(&s.ports, "ports", "p", volley.DefaultPorts, "messages a processor sends, and receives, at a time")
	f.StringVar(&s.algorithm, "algorithm", algo.Auto, "auto, or a name that volley algorithms lists")
	end()
	s.addModel(cmd)
	s.addLimits(cmd)
}

// addLimits adds the flags that widen or bound the choice of a plan.
func (s *selection) addLimits(cmd *cobra.Command) {
	f := cmd.Flags()
	end := flagGroup(cmd, "Plan")
	f.BoolVar(&s.cut, "cut", false, "let auto cut packets into pieces where every processor is source and sink, too")
	end()
	defer flagGroup(cmd, "Limit")()
	s.limits = algo.NoLimits
	f.Var(atLeast{&s.limits.RoundsOver, 0, -1}, "rounds-over", "at most so many rounds more than the fewest (default: as beta and tau decide)")
	f.Var(atLeast{&s.limits.Memory, 1, 0}, "max-memory", "at most so many packets held by a processor (default: any number)")
	f.Var(atLeast{&s.limits.Compute, 1, 0}, "max-compute", "at most so many multiply-adds per symbol at a processor (default: any number)")
}

// addModel adds the flags of the cost model.
func (s *selection) addModel(cmd *cobra.Command) {
	defer flagGroup(cmd, "Cost model")()
	f := cmd.Flags()
	f.StringVar(&s.beta, "beta", "", "time to start a message (default: as volley tune has measured, or "+volley.DefaultBeta.String()+")")
	f.StringVar(&s.tau, "tau", "", "time to send a symbol (default: as measured, or 0.8ns for each of its bytes)")
	f.StringVar(&s.gamma, "gamma", "", "time to multiply and add a symbol (default: as measured, or 0)")
}

func matrixNames() string {
	var names []string
	for _, f := range matrix.Families() {
		names = append(names, f.String())
	}
	return strings.Join(names, ", ")
}

// spec returns the matrix asked for, independently of K.
func (s *selection) spec(cmd *cobra.Command) (matrix.Spec, error) {
	spec, err := matrix.ParseSpec(s.matrix)
	if err != nil {
		return spec, usage(err)
	}
	if cmd.Flags().Changed("points") {
		spec.Points = s.points
	}
	spec.Omega, spec.Alpha, spec.Order, spec.Inverse = s.omega, s.alpha, s.order, s.inverse
	if !slices.Contains(orders, s.order) {
		return spec, usagef("--order %q: want one of %s", s.order, strings.Join(orders, ", "))
	}
	if s.base != "" {
		if spec.Base, err = strconv.ParseUint(s.base, 10, 64); err != nil || spec.Base == 0 {
			return spec, usagef("--base %q: want the order of a subfield, such as 2", s.base)
		}
	}
	return spec, nil
}

// build returns the matrix asked for.
func (s *selection) build(cmd *cobra.Command) (matrix.Matrix, error) {
	f, err := field.Parse(s.field)
	if err != nil {
		return nil, usage(err)
	}
	spec, err := s.spec(cmd)
	if err != nil {
		return nil, err
	}
	if s.k < 1 {
		return nil, usagef("%d processors: say how many with -k, 1 or more", s.k)
	}
	a, err := s.buildFor(spec, f, s.k)
	return a, usage(err)
}

// buildFor returns the matrix of a spec for k sources.
func (s *selection) buildFor(spec matrix.Spec, f field.Field, k int) (matrix.Matrix, error) {
	return spec.Build(f, k, cmp.Or(s.sinks, k))
}

// model returns the cost model for packets of the given number of symbols over f:
// as the flags say, else as volley tune has measured, else by default.
func (s *selection) model(f field.Field, symbols int64) (sim.Model, error) {
	m := sim.Model{Beta: volley.DefaultBeta, Tau: volley.TauPerByte * float64(f.SymbolBytes()), Symbols: symbols}
	measured, ok, err := tune.Default()
	if err != nil {
		return m, usage(err)
	}
	if ok {
		m.Beta, m.Tau = measured.Beta(), measured.TauSecondsPerByte*float64(f.SymbolBytes())
		m.Gamma, _ = measured.Gamma(f.Name(), f.SymbolBytes())
	}
	if s.beta != "" {
		seconds, err := duration("beta", s.beta)
		if err != nil {
			return m, err
		}
		m.Beta = time.Duration(seconds * float64(time.Second))
	}
	if s.tau != "" {
		if m.Tau, err = duration("tau", s.tau); err != nil {
			return m, err
		}
	}
	if s.gamma != "" {
		m.Gamma, err = duration("gamma", s.gamma)
	}
	return m, err
}

// options returns the library's options for the flags.
func (s *selection) options(m sim.Model) []volley.Option {
	list := []volley.Option{
		volley.WithAlgorithm(s.algorithm), volley.WithPorts(s.ports),
		volley.WithBeta(m.Beta), volley.WithTau(m.Tau), volley.WithGamma(m.Gamma), volley.WithOrder(s.planOrder()),
		volley.WithLimits(s.limits),
	}
	if s.cut {
		list = append(list, volley.WithCutting())
	}
	if s.separate {
		list = append(list, volley.WithSeparateSinks())
	}
	return list
}

// planOrder returns what the planner may do about the order.
func (s *selection) planOrder() algo.Order {
	if s.order == algo.Any.String() {
		return algo.Any
	}
	return algo.Natural // of the matrix, which may be reversed
}
