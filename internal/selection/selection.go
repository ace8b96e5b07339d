// Package selection has the flags for a matrix, a plan and a cost model, for verbs and the page, and what they mean.
package selection

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/internal/printable"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/sim"
)

// A Selection is the values of the flags: the caller adds those that are wanted, which sets defaults, and parses them.
type Selection struct {
	Field        string
	Matrix       string
	Points       string
	Omega        string
	Alpha        string
	Order        string // natural, reversed, reversed:R or any
	Inverse      bool
	Processors   int
	Sinks        int // 0: every processor is source and sink
	Separate     bool
	ByModel      string // network or paper
	Network      string // RATE/LATENCY or a preset; empty: the default
	WholePackets bool
	Ports        int
	Algorithm    string
	Beta, Tau    string
	Gamma        string
	Size         string // of a packet
	Limits       algo.Limits
	Process      bool // the run is in one process

	// Open opens the files of a matrix and of its points; nil is [os.Open].
	Open func(name string) (io.ReadCloser, error)

	// Assumed says for a report which network [Selection.Model] has taken; "" where flags say it.
	Assumed string

	flags      *pflag.FlagSet // of a matrix
	modelFlags *pflag.FlagSet // of the model; nil: there are none
}

// An Error says that the value of a flag is not right.
type Error struct {
	Flag string // its long name
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// ExitCode returns the exit code of the command line where arguments are wrong.
func (e *Error) ExitCode() int { return 2 }
func (e *Error) Unwrap() error { return e.Err }

// Mark returns an *[Error] of a flag, or nil for nil.
func Mark(flag string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{flag, err}
}

// Markf is [Mark] of an error of a format.
func Markf(flag, format string, args ...any) error {
	return &Error{flag, fmt.Errorf(format, args...)}
}

// packages are the prefixes of the library's errors, which mean little to who sets flags.
var packages = regexp.MustCompile(`^(algo|bench|executor|field|matrix|plan|sim|verify|volley): `)

// Message returns what to show of an error, in one line.
func Message(err error) string {
	text := err.Error()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if list, ok := e.(interface{ Unwrap() []error }); ok { // of errors.Join the first counts
			if first := list.Unwrap()[0].Error(); strings.HasPrefix(e.Error(), first+"\n") {
				text = strings.Replace(text, e.Error(), first, 1)
			}
		}
	}
	return printable.Text(packages.ReplaceAllString(text, ""))
}

// UsualField is that of a matrix that has no field of its own.
const UsualField = "2^8"

// orders lists the values of --order.
var orders = []string{"natural", "reversed", "any"}

// AddMatrix adds the flags that select a matrix. When they have been parsed, SetDefaults is to be called.
func (s *Selection) AddMatrix(f *pflag.FlagSet) {
	s.flags = f
	f.StringVar(&s.Field, "field", UsualField, "finite `FIELD`, one that volley fields lists; for fti 2^16")
	f.StringVar(&s.Matrix, "matrix", "cauchy", "`MATRIX`, one of those that volley help matrices lists")
	f.StringVar(&s.Points, "points", "coset", "`POINTS` of a vandermonde matrix: coset, coset:R, powers, codes, or a file of decimal values")
	f.StringVar(&s.Omega, "omega", "", "`POINTS` ω of a lagrange matrix, x of a cauchy matrix: coset, powers, codes, or a file (default coset; cauchy: codes)")
	f.StringVar(&s.Alpha, "alpha", "", "`POINTS` α of a lagrange matrix, y of a cauchy matrix; here the words of --omega mean the points after ω")
	f.StringVar(&s.Order, "order", "natural", "`ORDER` of the coded packets: natural, reversed (of digits, for dft; reversed:R with radices up to R), or any that is cheapest")
	f.BoolVar(&s.Inverse, "inverse", false, "use the inverse of the matrix, after --order")
	f.Var(Positive(&s.Sinks), "sinks", "`R`, the processors that get a coded packet: the first ones or, with --separate, others (default: all)")
	f.BoolVar(&s.Separate, "separate", false, "the sinks hold no data: they come after the K processors that do")
}

// SetDefaults sets what depends on other flags and was not given: the field of the matrix.
func (s *Selection) SetDefaults() {
	if spec, err := matrices.ParseSpec(s.Matrix); err == nil && !s.flags.Changed("field") {
		s.Field = spec.DefaultField(UsualField)
	}
}

// AddProcessors adds the flag of the number of processors.
func (s *Selection) AddProcessors(f *pflag.FlagSet) {
	f.IntVarP(&s.Processors, "processors", "k", 0, "`K`, the number of processors (default: of rows, with --matrix file:A.csv)")
}

// AddPlan adds the flags that select a plan for a matrix: by the model of that name unless --model says another.
func (s *Selection) AddPlan(f *pflag.FlagSet, usual string) {
	f.StringVar(&s.Algorithm, "algorithm", algo.Auto, "`NAME` that volley algorithms lists, with parameters or without, as in exchange:8,8; or auto for the cheapest")
	s.AddModel(f, usual)
	s.AddLimits(f)
}

// AddLimits adds the flags that bound the choice of a plan.
func (s *Selection) AddLimits(f *pflag.FlagSet) {
	f.Var(number(0, func() int { return s.Limits.Rounds.Excess() }, func(n int) { s.Limits.Rounds = algo.FewestPlus(n) }), "rounds-over", "at most `N` rounds more than the fewest (default: as the model decides)")
	f.Var(Positive(&s.Limits.Memory), "max-memory", "at most `N` packets held by a processor (default: any number)")
	f.Var(Positive(&s.Limits.Compute), "max-compute", "at most `N` multiply-adds per symbol at a processor (default: any number)")
	f.BoolVar(&s.WholePackets, "whole", false, "keep packets whole: no plan cuts them into pieces")
}

// LimitFlag returns the flag to name where no plan keeps the limits: the first that is set.
func (s *Selection) LimitFlag() string {
	switch {
	case s.Limits.Memory > 0:
		return "max-memory"
	case s.Limits.Compute > 0:
		return "max-compute"
	case s.WholePackets:
		return "whole"
	}
	return "rounds-over"
}

// The models that a time is by.
const (
	NetworkModel = "network"
	PaperModel   = "paper"
)

// AddModel adds the flags of the cost model, which is the one of that name unless --model says another.
func (s *Selection) AddModel(f *pflag.FlagSet, usual string) {
	s.ByModel = usual
	f.Var(Word(&s.ByModel, NetworkModel, PaperModel), "model", "`MODEL` of costs: network, or that of the paper: paper")
	s.modelFlags = f
	f.StringVar(&s.Network, "network", "", "`RATE/LATENCY`, wan or process; slower links after a comma, as 7:0.5 (default: "+usualNetwork+", or process in one process)")
	f.StringVar(&s.Gamma, "gamma", "", "`TIME` to multiply and add a byte, γ (default: 0, or 0.1ns in one process)")
	f.IntVarP(&s.Ports, "ports", "p", volley.DefaultPorts, "`P`, the messages a processor sends, and receives, at a time (--model paper)")
	f.StringVar(&s.Beta, "beta", "", "`TIME` to start a message, β (--model paper; default: "+volley.DefaultBeta.String()+")")
	f.StringVar(&s.Tau, "tau", "", "`TIME` to send a byte, τ (--model paper; default: 0.8ns)")
}

// Names of networks: that of [volley.DefaultNetwork], and that of processors in one process.
const (
	usualNetwork = "10gbit/20us"
	process      = "process"
)

// MakeList makes the flag of a number that of a list, whose default the list is.
func MakeList(f *pflag.FlagSet, name string, list *string) {
	var text pflag.FlagSet
	text.StringVar(list, name, *list, "")
	found := f.Lookup(name)
	found.Value, found.DefValue = text.Lookup(name).Value, *list
	found.Usage += "; or a list as for -k"
}

// checkModel returns an *Error where given flags are those of another model than --model says.
func (s *Selection) checkModel() error {
	unfit, model := []string{"ports", "beta", "tau"}, PaperModel
	if s.ByModel == PaperModel {
		unfit, model = []string{"network"}, NetworkModel
	}
	for _, name := range unfit {
		if s.modelFlags != nil && s.modelFlags.Changed(name) {
			return Markf(name, "--%s belongs to --model %s, and this is --model %s: add --model %[2]s, or leave --%[1]s out", name, model, s.ByModel)
		}
	}
	return nil
}

// AddSize adds the flag of the packet size that a model time is for.
func (s *Selection) AddSize(f *pflag.FlagSet) {
	f.StringVar(&s.Size, "size", "1MiB", "`BYTES` of a packet, for the time by the cost model")
}

// ParseField returns the field asked for. The error is an *Error.
func (s *Selection) ParseField() (field.Field, error) {
	f, err := field.Parse(s.Field)
	return f, Mark("field", err)
}

// Spec returns the matrix asked for, independently of K. The error is an *Error.
func (s *Selection) Spec() (matrices.Spec, error) {
	spec, err := matrices.ParseSpec(s.Matrix)
	if err != nil {
		return spec, Mark("matrix", err)
	}
	if s.flags.Changed("points") {
		spec.Points = s.Points
	}
	spec.Omega, spec.Alpha, spec.Order, spec.Inverse, spec.Open = s.Omega, s.Alpha, s.Order, s.Inverse, s.Open
	if s.ByModel == PaperModel {
		spec = spec.ForPorts(s.Ports)
	}
	if word, _, _ := strings.Cut(s.Order, ":"); !slices.Contains(orders, word) {
		return spec, Markf("order", "--order %q: want one of %s", s.Order, strings.Join(orders, ", "))
	}
	return spec, nil
}

// Build returns the matrix asked for. The error is an *Error.
func (s *Selection) Build() (matrix.Matrix, error) {
	f, err := s.ParseField()
	if err != nil {
		return nil, err
	}
	spec, err := s.Spec()
	if err != nil {
		return nil, err
	}
	if spec.Listed() && s.Processors == 0 {
		file, err := spec.OpenFile(spec.Argument)
		if err != nil {
			return nil, Markf("matrix", "matrix: %w", err)
		}
		defer file.Close()
		a, err := matrices.FromCSV(f, file, spec.Argument)
		if err != nil {
			return nil, Mark("matrix", err)
		}
		s.Processors, s.Sinks = a.Rows(), cmp.Or(s.Sinks, a.Cols())
		if s.Sinks == a.Cols() { // the file may be a pipe
			m, err := spec.BuildFrom(f, s.Processors, s.Sinks, nil, a)
			return m, Mark("matrix", err)
		}
	}
	if s.Processors < 1 {
		return nil, Markf("processors", "%d processors: say how many with -k, 1 or more", s.Processors)
	}
	return s.BuildFor(spec, f, s.Processors)
}

// BuildFor returns the matrix of a spec for k sources. The error is an *Error.
func (s *Selection) BuildFor(spec matrices.Spec, f field.Field, k int) (matrix.Matrix, error) {
	a, err := spec.Build(f, k, cmp.Or(s.Sinks, k))
	return a, Mark("matrix", err)
}

// Model returns the cost model for packets of so many symbols over f: by the flags.
func (s *Selection) Model(f field.Field, symbols int64) (sim.Model, error) {
	m := sim.Model{Bytes: symbols * int64(f.SymbolBytes()), SymbolBytes: f.SymbolBytes()}
	if err := s.checkModel(); err != nil {
		return m, err
	}
	s.Assumed = ""
	name := s.Network
	switch {
	case s.ByModel == PaperModel, name != "":
	case s.Process:
		name, s.Assumed = process, "chosen for one process, in which messages cost next to nothing"
	default:
		name, s.Assumed = usualNetwork, "chosen for the network "+usualNetwork+": --network names yours"
	}
	if name == process {
		m.Gamma = sim.ProcessGamma
	}
	if s.ByModel == PaperModel {
		m.Beta, m.Tau = volley.DefaultBeta, volley.DefaultTau
	} else {
		n, err := sim.ParseNetwork(name)
		if err != nil {
			return m, Mark("network", err)
		}
		m.Network = n
	}
	for _, x := range []struct {
		flag, text string
		set        func(seconds float64)
	}{
		{"beta", s.Beta, func(t float64) { m.Beta = time.Duration(t * float64(time.Second)) }},
		{"tau", s.Tau, func(t float64) { m.Tau = sim.PerByte(t) }},
		{"gamma", s.Gamma, func(t float64) { m.Gamma = sim.PerByte(t) }},
	} {
		if x.text == "" {
			continue
		}
		seconds, err := ParseDuration(x.flag, x.text)
		if err != nil {
			return m, err
		}
		x.set(seconds)
	}
	return m, nil
}

// inProcess reports whether plans are for processors of one process, as no flag says otherwise.
func (s *Selection) inProcess() bool {
	return s.Process && s.Network == "" && s.ByModel != PaperModel
}

// Bytes returns the bytes of a packet of --size. The error is an *Error.
func (s *Selection) Bytes() (int64, error) {
	n, err := ParseSize(s.Size)
	if err != nil {
		return 0, Markf("size", "--size %q: %w", s.Size, err)
	}
	return n, nil
}

// Symbols returns the symbols over f of a packet of --size. The error is an *Error.
func (s *Selection) Symbols(f field.Field) (int64, error) {
	n, err := s.Bytes()
	return field.PackingOf(f).Symbols(n), err
}

// Options returns the library's options for the flags.
func (s *Selection) Options(m sim.Model) []volley.Option {
	list := []volley.Option{
		volley.WithAlgorithm(s.Algorithm), volley.WithGamma(m.Gamma), volley.WithOrder(s.PlanOrder()), volley.WithLimits(s.Limits),
	}
	if s.ByModel == PaperModel {
		list = append(list, volley.WithPaperModel(s.Ports, m.Beta, m.Tau))
	} else {
		list = append(list, volley.WithNetwork(m.Network))
	}
	if s.WholePackets || s.inProcess() && s.Algorithm == algo.Auto { // pieces save nothing of what goes nowhere
		list = append(list, volley.WithWholePackets())
	}
	if s.Separate {
		list = append(list, volley.WithSeparateSinks())
	}
	return list
}

// PlanOrder returns what the planner may do about the order.
func (s *Selection) PlanOrder() algo.Order {
	if s.Order == algo.AnyOrder.String() {
		return algo.AnyOrder
	}
	return algo.Natural // of the matrix, which may be reversed
}
