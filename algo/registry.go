package algo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"volley/algo/internal/exchange"
	"volley/algo/internal/layers"
	"volley/algo/internal/relay"
	"volley/algo/internal/universal"
	"volley/algo/internal/windows"
	"volley/algo/schedule"
	"volley/internal/poll"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// An Algorithm is a row of the registry.
type Algorithm struct {
	Name     string `json:"name"`    // as --algorithm takes it
	Title    string `json:"title"`   // what it does, in one line
	Problem  string `json:"problem"` // the matrices, K and p it takes
	C1       string `json:"c1"`      // a closed formula; plans are counted, formulas are tests of them
	C2       string `json:"c2"`
	Source   string `json:"source"`
	Example  string `json:"-"`        // flags of a plan that the command line prints
	Baseline bool   `json:"baseline"` // known from elsewhere, here to compare with

	// ByName says that the planner takes the algorithm only where it is named.
	ByName bool `json:"-"`

	Parts []Part `json:"-"` // of its plans, where some have names of their own

	// Structured says that the algorithm has no plan for some square matrices.
	Structured bool `json:"structured"`

	// Traffic says that it is for traffic, and not for a matrix.
	Traffic bool `json:"-"`

	// Make returns the plans for a problem, one or more: those of which none is worse than another in both C1 and C2,
	// the fewest rounds first. Each passes [plan.Validate] and computes the matrix, in the order that the problem asks
	// for. The error wraps [schedule.ErrStructure] where the algorithm has no plan for the problem. Make may be called
	// by several goroutines at once; it returns equal plans for equal problems, as all processors plan by themselves.
	Make func(p *Problem) ([]plan.Plan, error) `json:"-"`

	// WithParameters returns the plan with parameters of one's own, which [Lookup] reads after the name:
	// lists of numbers of 1 and more. The error wraps [schedule.ErrStructure] where they do not
	// fit the problem. Where WithParameters is nil, parameters select one of the plans of Make.
	WithParameters func(p *Problem, parameters [][]int) (plan.Plan, error) `json:"-"`

	part func(Part) Algorithm // one of Parts
}

// A Part is the plans of an algorithm that are called by a name, which --algorithm takes too.
type Part struct{ Name, Example string }

// Algorithms returns the registry in the order in which people should read it, later registrations last.
func Algorithms() []Algorithm { return slices.Clone(registry) }

// Planned returns those of the registry that [Auto] chooses from.
func Planned() []Algorithm {
	return slices.DeleteFunc(Algorithms(), func(a Algorithm) bool { return a.ByName })
}

// Parts returns the algorithms for matrices, in place of one that has parts these.
func Parts() []Algorithm {
	return slices.DeleteFunc(withParts(), func(a Algorithm) bool { return len(a.Parts) > 0 || a.Traffic })
}

// withParts returns the registry, with its parts after an algorithm.
func withParts() (list []Algorithm) {
	for _, a := range registry {
		list = append(list, a)
		for _, x := range a.Parts {
			list = append(list, a.part(x))
		}
	}
	return list
}

// Register adds an algorithm to the registry, and so to the planner. Programs call it before they plan anything, such
// as from an init function: it must not run at the same time as anything else of this package. All processors of a run
// register the same algorithms in the same order. It returns an error for an algorithm without a name or Make, and for
// a name that is taken, as "auto" is.
func Register(a Algorithm) error {
	if a.Name == "" || a.Make == nil || len(a.Parts) > 0 {
		return fmt.Errorf("algo: cannot register algorithm %q: want one name, and a function that makes plans", a.Name)
	}
	if _, err := Lookup(a.Name); err == nil || a.Name == Auto {
		return fmt.Errorf("algo: cannot register algorithm %q: the name is taken", a.Name)
	}
	registry = append(registry, a)
	return nil
}

var registry = []Algorithm{
	{
		Name:    "universal",
		Title:   "prepare-and-shoot with the best window and stride for K and p",
		Problem: "any A, K, p",
		C1:      "clog(K), or more where that saves packets",
		C2:      "min of ceil((m-1)/p) + ceil((n-1)/p) over m*n >= K, clog(m) + clog(n) = C1",
		Source:  "paper, section Prepare and Shoot, generalised",
		Example: "-k 16",
		Make: func(p *Problem) ([]plan.Plan, error) {
			l := p.Limits
			if component := p.components(); component != nil {
				return []plan.Plan{universal.OnComponents(p.Task(), component)}, nil
			}
			return universal.Plans(p.Task(), l.Rounds.Excess(), l.Memory > 0 || l.Compute > 0)
		},
		WithParameters: func(p *Problem, parameters [][]int) (plan.Plan, error) {
			return universal.PlanWith(p.Task(), parameters)
		},
	},
	layered(Algorithm{
		Name:    layers.AnyFamily,
		Title:   "products of small layers, such as the stages of a transform; neighbours fused where that saves rounds or packets",
		Problem: "DFT, Vandermonde, Lagrange, Cauchy and lch matrices on cosets, subspaces or other fibres, their inverses and transposes",
		C1:      "sum of clog(r) over the sizes r of the groups of fused layers; 1 for natural order, where a permutation is left",
		C2:      "sum of Psi(r) over these, and likewise",
		Source:  "paper, sections Computing a DFT Matrix, Generalization, Computing Lagrange Matrices; Lin, Chung, Han, FOCS 2014; the fusions ours",
		Example: "--field 257 --matrix dft -k 16",
		Parts: []Part{
			{"dft", "--field 257 --matrix dft -k 16"},
			{"draw-and-loose", "--field 257 --matrix vandermonde -k 24"},
			{"lagrange", "--field 257 --matrix lagrange -k 24"},
			{"folded-lagrange", "--field 257 --matrix lagrange -k 24"},
			{"cauchy", "--matrix cauchy -k 24"},
			{"additive-fft", "--matrix lch -k 24"},
		},
	}),
	{
		Name:       "sinks",
		Title:      "a universal step in each of n groups, then reduction trees; broadcast first for K < R",
		Problem:    "K sources and R sinks, apart or among them; any A, p",
		C1:         "clog(ceil(B/n)) + clog(n), B = max(K,R), 1 <= n <= B/min(K,R); clog(n+1) where sinks are apart",
		C2:         "Psi(ceil(B/n)) + clog(n); clog(n+1) where sinks are apart",
		Source:     "paper, remark on N > K, for one n; the search over n ours",
		Example:    "--matrix cauchy -k 25 --sinks 5",
		Structured: true,
		Make:       planned(exchange.Plans),
	},
	{
		Name:       "sinks-structured",
		Title:      "sinks with the layers of R×R blocks instead of a universal step",
		Problem:    "as sinks, R | K or K | R; Cauchy, Lagrange, Reed-Solomon, Vandermonde, lch blocks on cosets or subspaces",
		C1:         "2*h + clog(S/Z') + clog(n), S = min(K,R), n = B/S, Z' = (p+1)^h; clog(n+1) where sinks are apart",
		C2:         "2*h + Psi(S/Z') + clog(n); clog(n+1) where sinks are apart",
		Source:     "ours",
		Example:    "--matrix rs:vandermonde -k 96 --sinks 32",
		Structured: true,
		Make:       planned(exchange.StructuredPlans),
	},
	{
		Name:       "exchange",
		Title:      "slices of all packets to each processor, which computes a slice of all results, and back",
		Problem:    "any A, K, R, p, square too; large packets; max(K,R) <= 256, square 512, of layers 1024",
		C1:         "2*ceil((M-1)/p), M = max(K,R), down to 2*clog(M)",
		C2:         "2*ceil((M-1)/p)/M packets, up to 2*clog(M)/(p+1) for M = (p+1)^d",
		Source:     "Bruck et al., IEEE TPDS 8(11), 1997 (index); Rabenseifner, ICCS 2004, for R = 1; as an encode ours",
		Example:    "--matrix cauchy -k 16",
		Structured: true,
		Make:       func(p *Problem) ([]plan.Plan, error) { return exchange.ExchangePlans(p.Task(), p.factor(nil)) },
		WithParameters: func(p *Problem, parameters [][]int) (plan.Plan, error) {
			return exchange.ExchangeWith(p.Task(), p.factor(nil), parameters)
		},
	},
	{
		Name:       "helpers",
		Title:      "slices to the processors that are no sinks, or by the rates of links, which compute them; both ways at once, S batches",
		Problem:    "any A and p; R sinks among K > 2R sources, or apart, K > R, or slower links; large packets; N <= 256 processors",
		C1:         "(S+1)*ceil((N-1)/p); S+2 with slower links",
		C2:         "(K-1)/(K-R)*(1+1/S) packets at p = 1, sinks among the sources; with slower links about 1+2/S times the bound of their rates, at p = K-1",
		Source:     "ours",
		Example:    "--matrix cauchy -k 24 --sinks 3",
		Structured: true,
		Make:       planned(exchange.HelpersPlans),
		WithParameters: func(p *Problem, parameters [][]int) (plan.Plan, error) {
			return exchange.HelpersWith(p.Task(), parameters)
		},
	},
	{
		Name:       "split",
		Title:      "packets split into slices in groups of s, universal on the K/s groups, slices joined",
		Problem:    "any A and p, K = s*n, every processor source and sink",
		C1:         "ceil((r-1)/p) for each radix r of s, there and back, + clog(K/s)",
		C2:         "the C2 of exchange for s + Psi(K/s) packets; h + Psi(K/2^h) for s = 2^h, p = 1",
		Source:     "ours",
		Example:    "--matrix cauchy -k 16",
		Structured: true,
		Make:       planned(exchange.SplitPlans),
	},
	{
		Name:       "windows",
		Title:      "prepare-and-shoot with B elements more for everybody, passed on in the results of others",
		Problem:    "any K and p; A whose K*B pivots are not zero, such as Cauchy matrices",
		C1:         "clog(m) + ceil(B/p) + clog(c+1)",
		C2:         "ceil((m-1)/p) + ceil(B/p) + ceil(c/p) for K <= m*(1+B+c) + B*c",
		Source:     "ours",
		Example:    "--matrix cauchy -k 24",
		Structured: true,
		Make: func(p *Problem) ([]plan.Plan, error) {
			return windows.Plans(p.Task(), p.Limits.Rounds.Excess(), p.Hopeless)
		},
	},
	{
		Name:    "prepare-and-shoot",
		Title:   "the paper's universal algorithm, corrected",
		Problem: "any A, K, p",
		C1:      "clog(K)",
		C2:      "(m-1)/p + (n-1)/p, m and n powers of p+1, m*n >= K, m = n or m = (p+1)*n",
		Source:  "paper, section Prepare and Shoot",
		Example: "-k 16",
		Make:    Stepped("prepare-and-shoot", func(size, ports int) schedule.Step { return universal.NewPrepareAndShoot(size, ports) }),
	},
	{
		Name:     "bruck-allgather",
		Title:    "allgather in the fewest rounds, then local coding",
		Problem:  "any A, K, p",
		C1:       "clog(K)",
		C2:       "ceil((K-1)/p)",
		Source:   "Bruck et al., IEEE TPDS 8(11), 1997",
		Example:  "-k 16",
		Baseline: true,
		Make:     Stepped("bruck-allgather", func(size, ports int) schedule.Step { return universal.NewBruckAllgather(size, ports) }),
	},
	{
		Name:       "sparse",
		Title:      "every scaled packet straight to where it is needed, by cyclic shifts",
		Problem:    "any K and p; A more than half of whose entries are zero",
		C1:         "ceil(n/p) for n shifts by which an entry is from its processor",
		C2:         "ceil(n/p)",
		Source:     "MPI libraries (pairwise alltoall), pruned",
		Example:    "-k 8 --field 2 --matrix random:3",
		Structured: true,
		Make: func(p *Problem) ([]plan.Plan, error) {
			if !p.sparse() {
				return nil, schedule.Misfit("algo: the matrix is not sparse, or has more than 65,536 entries: take another algorithm, such as universal")
			}
			return Stepped("sparse", Direct)(p)
		},
	},
	{
		Name:       "relay",
		Title:      "each piece of a codeword through one of its processors, which adds up for the others",
		Problem:    "several codewords among processors with several packets each: parity and recovery of groups",
		C1:         "K-1 for K rotated stripes at p = 1",
		C2:         "K-1 for K rotated stripes at p = 1",
		Source:     "ours",
		Structured: true,
		Traffic:    true,
		Make:       relayed,
	},
}

// layered completes the row of products of layers, or of those that have the name alone.
func layered(a Algorithm) Algorithm {
	a.Structured = true
	a.Make = func(p *Problem) ([]plan.Plan, error) {
		return layers.Plans(a.Name, p.Task(), p.factor, p.Order == AnyOrder)
	}
	a.WithParameters = func(p *Problem, parameters [][]int) (plan.Plan, error) {
		return layers.PlanWith(a.Name, p.Task(), p.factor, p.Order == AnyOrder, parameters)
	}
	a.part = func(x Part) Algorithm {
		named := a
		named.Name, named.Example, named.Parts = x.Name, x.Example, nil
		return layered(named)
	}
	return a
}

// relayed returns the plan of as many pieces as the transport carries. One of more ports takes long to make: there is one
// where it may take half of the time, as messages wait for the latency.
func relayed(p *Problem) ([]plan.Plan, error) {
	t := *p.Traffic
	hopeless := func(c sim.Cost) bool { return p.Ports > 1 && p.Hopeless(c) }
	if p.WholePackets {
		t.Pieces = 1
	}
	for {
		q, err := relay.Plan(t, p.Ports, hopeless)
		if err != nil || q == nil {
			return nil, err
		}
		if t.Pieces <= 1 || p.carry(q) == nil {
			return []plan.Plan{q}, nil
		}
		t.Pieces = (t.Pieces + 1) / 2 // and about half of the rounds
	}
}

// planned returns the plans that depend on the task alone.
func planned(plans func(schedule.Task) ([]plan.Plan, error)) func(p *Problem) ([]plan.Plan, error) {
	return func(p *Problem) ([]plan.Plan, error) { return plans(p.Task()) }
}

// Direct returns the step that sends every scaled packet straight to where it is needed.
func Direct(size, ports int) schedule.Step { return universal.Direct{Size: size, Ports: ports} }

// Stepped returns the Make of an algorithm whose plan is one step of all processors, each source and sink.
func Stepped(name string, step func(size, ports int) schedule.Step) func(p *Problem) ([]plan.Plan, error) {
	return func(p *Problem) ([]plan.Plan, error) {
		if err := p.Task().MustBeSquare(name); err != nil {
			return nil, err
		}
		return []plan.Plan{schedule.OnAll(name, step(p.Matrix.Rows(), p.Ports), p.Task())}, nil
	}
}

// Lookup returns the algorithm of that name. With parameters after a colon, as in "exchange:8,8" or "universal:4,4", it
// returns one that has only the plan with these, see [plan.Info.Name]. The error lists the names there are.
func Lookup(name string) (Algorithm, error) {
	family, text, hasParameters := strings.Cut(name, ":")
	var names []string
	for _, a := range withParts() {
		switch {
		case a.Name != family:
			names = append(names, a.Name)
		case hasParameters:
			return a.withParameters(text)
		default:
			return a, nil
		}
	}
	return Algorithm{}, fmt.Errorf("algo: no algorithm %q: want auto or one of %s", name, strings.Join(names, ", "))
}

// withParameters returns the algorithm that has only the plans with these parameters.
func (a Algorithm) withParameters(text string) (Algorithm, error) {
	name := a.Name + ":" + text
	var parameters [][]int
	for _, part := range strings.Split(text, "/") {
		var list []int
		for _, number := range strings.Split(part, ",") {
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 || n == 0 && parameters == nil {
				return a, fmt.Errorf("algo: parameters of %q: %q is no number of 1 or more, or of 0 after a slash: want lists such as %s:4,4 or %[3]s:8/4,2", name, number, a.Name)
			}
			list = append(list, n)
		}
		parameters = append(parameters, list)
	}
	build, makePlans := a.WithParameters, a.Make
	a.Name, a.Structured = name, true
	a.Make = func(p *Problem) ([]plan.Plan, error) {
		if build != nil {
			q, err := build(p, parameters)
			if err != nil {
				return nil, err
			}
			return []plan.Plan{q}, nil
		}
		plans, err := makePlans(p)
		var names []string
		matching := slices.DeleteFunc(plans, func(q plan.Plan) bool {
			names = append(names, q.Info().Name())
			return q.Info().Name() != name
		})
		if err == nil && len(matching) == 0 {
			err = schedule.Misfit(fmt.Sprintf("algo: %s for K = %d, p = %d: there are only %s", name, p.Processors(), p.Ports, strings.Join(names, ", ")))
		}
		return matching, err
	}
	return a, nil
}

// Plans returns the algorithm's plans for a problem: one for an algorithm that takes every matrix; for a family, those
// of which none is worse than another in both C1 and C2, the fewest rounds first. The error wraps
// [schedule.ErrStructure] where the matrix has not the structure that the algorithm needs; it is the cause of the
// problem's context where that ends. The problem says how many ports there are.
func (a Algorithm) Plans(p *Problem) (plans []plan.Plan, err error) {
	defer poll.Catch(&err)
	if err := p.Ended(); err != nil {
		return nil, err
	}
	if a.Traffic != (p.Traffic != nil) {
		return nil, schedule.Misfit(fmt.Sprintf("algo: %s is for %s: take another algorithm", a.Name, a.Problem))
	}
	if _, err := Ports(p.Processors(), p.Ports); err != nil { // which only [Choose] finds
		return nil, err
	}
	plans, err = a.Make(p)
	if ended := p.Ended(); ended != nil { // what it has is not all
		return nil, ended
	}
	if err == nil && len(plans) == 0 {
		err = schedule.Misfit(fmt.Sprintf("algo: %s for K = %d, p = %d: no plan within the limits: allow more rounds, or take another algorithm", a.Name, p.Processors(), p.Ports))
	}
	if err == nil && p.sparse() {
		return p.pruned(plans)
	}
	return plans, err
}

// Compile returns the plan of [Algorithm.Plans] with the least C2 for a square matrix in natural order; of an algorithm
// for every matrix, with the fewest rounds. The errors are those of [NewProblem] and [Algorithm.Plans].
func (a Algorithm) Compile(m matrix.Matrix, ports int) (plan.Plan, error) {
	p, err := NewProblem(m, ports, Natural)
	if err != nil {
		return nil, err
	}
	if !a.Structured {
		p.Limits.Rounds = FewestPlus(0)
	}
	plans, err := a.Plans(p)
	if err != nil {
		return nil, err
	}
	return plans[len(plans)-1], nil
}
