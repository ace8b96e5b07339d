package algo

import (
	"fmt"
	"strings"

	"volley/matrix"
	"volley/plan"
)

// An Algorithm is a row of the registry.
type Algorithm struct {
	Name     string // as --algorithm takes it
	Title    string // what it does, in one line
	Problem  string // the matrices, K and p it takes
	C1, C2   string // closed formulas; plans are counted, formulas are tests of them
	Source   string
	Example  string // flags of a plan that the command line prints
	Baseline bool   // known from elsewhere, here to compare with

	// Structured says that the algorithm takes only matrices with some structure.
	Structured bool

	// One of:
	step   func(size, ports int) Step            // for one group of all processors
	family func(p *Problem) ([]plan.Plan, error) // several plans, or for some problems only
}

// Algorithms returns the registry, in the order in which people should read it.
func Algorithms() []Algorithm { return append([]Algorithm(nil), registry...) }

var registry = []Algorithm{
	{
		Name:    "universal",
		Title:   "prepare-and-shoot with the best window and stride for K and p",
		Problem: "any A, K, p",
		C1:      "clog(K)",
		C2:      "min of ceil((m-1)/p) + ceil((n-1)/p) over m*n >= K, clog(m) + clog(n) = clog(K)",
		Source:  "paper, section Prepare and Shoot, generalised",
		Example: "-k 16",
		family:  universalPlans,
	},
	{
		Name:       "dft",
		Title:      "a round or two for each radix of K; natural order by shifts or a permutation",
		Problem:    "DFT matrices, their inverses and transposes; K | q-1",
		C1:         "H for K = (p+1)^H in reversed order, H+1 natural",
		C2:         "H in reversed order, H+1 natural; sum of Psi(r) for K a product of radices r",
		Source:     "paper, section Computing a DFT Matrix; mixed radices and shifts beyond it",
		Example:    "--field 257 --matrix dft -k 16",
		Structured: true,
		family:     factored("dft", "dft", anyFusing),
	},
	{
		Name:       "draw-and-loose",
		Title:      "small Vandermonde matrices across cosets, then a DFT inside each",
		Problem:    "Vandermonde matrices on M cosets of Z = (p+1)^H points, their inverses and transposes",
		C1:         "clog(M) + H",
		C2:         "Psi(M) + H",
		Source:     "paper, section Generalization",
		Example:    "--field 257 --matrix vandermonde -k 24",
		Structured: true,
		family:     factored("draw-and-loose", "draw-and-loose", anyFusing),
	},
	{
		Name:       "lagrange",
		Title:      "inverse draw-and-loose on one set of points, draw-and-loose on the other",
		Problem:    "Lagrange matrices on cosets, subspaces or other fibres, K = M*(p+1)^H",
		C1:         "2*clog(M) + 2*H",
		C2:         "2*Psi(M) + 2*H",
		Source:     "paper, section Computing Lagrange Matrices",
		Example:    "--field 257 --matrix lagrange -k 24",
		Structured: true,
		family:     factored("lagrange", "lagrange", withinHalves),
	},
	{
		Name:       "folded-lagrange",
		Title:      "lagrange with the layers around its middle fused, h of H digits left outside",
		Problem:    "as lagrange",
		C1:         "2*h + clog(K/(p+1)^h), 0 <= h <= H",
		C2:         "2*h + Psi(K/(p+1)^h)",
		Source:     "ours",
		Example:    "--field 257 --matrix lagrange -k 24",
		Structured: true,
		family:     factored("folded-lagrange", "lagrange", acrossMiddle),
	},
	{
		Name:       "cauchy",
		Title:      "a (folded) Lagrange matrix between two diagonals",
		Problem:    "Cauchy matrices on points as for lagrange",
		C1:         "2*h + clog(K/(p+1)^h), 0 <= h <= H",
		C2:         "2*h + Psi(K/(p+1)^h)",
		Source:     "ours",
		Example:    "--matrix cauchy -k 24",
		Structured: true,
		family:     factored("cauchy", "cauchy", anyFusing),
	},
	{
		Name:       "additive-fft",
		Title:      "the FFT in characteristic 2, over a subspace instead of a subgroup",
		Problem:    "lch matrices, K = M*2^H, their inverses and transposes",
		C1:         "clog(M) + H at p = 1",
		C2:         "Psi(M) + H at p = 1",
		Source:     "Lin, Chung, Han, FOCS 2014; as a schedule ours",
		Example:    "--matrix lch -k 24",
		Structured: true,
		family:     factored("additive-fft", "additive-fft", anyFusing),
	},
	{
		Name:       "moore",
		Title:      "a linearised FFT over a tower of subfields",
		Problem:    "Moore matrices on K = M*(p+1)^H points of the default arrangement, K <= m, their inverses and transposes",
		C1:         "clog(M) + H",
		C2:         "Psi(M) + H",
		Source:     "ours",
		Example:    "--field 2^16 --matrix moore -k 16",
		Structured: true,
		family:     factored("moore", "moore", anyFusing),
	},
	{
		Name:       "gabidulin",
		Title:      "inverse moore on one set of points, moore on the other, fused in the middle",
		Problem:    "parity of Gabidulin codes, 2*K <= m",
		C1:         "2*h + clog(K/(p+1)^h), 0 <= h <= H",
		C2:         "2*h + Psi(K/(p+1)^h)",
		Source:     "ours",
		Example:    "--field 2^16 --matrix gabidulin -k 8",
		Structured: true,
		family:     factored("gabidulin", "gabidulin", anyFusing),
	},
	{
		Name:    "prepare-and-shoot",
		Title:   "the paper's universal algorithm, corrected",
		Problem: "any A, K, p",
		C1:      "clog(K)",
		C2:      "(m-1)/p + (n-1)/p, m and n powers of p+1, m*n >= K, m = n or m = (p+1)*n",
		Source:  "paper, section Prepare and Shoot",
		Example: "-k 16",
		step:    func(size, ports int) Step { return newPrepareAndShoot(size, ports) },
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
		step:     func(size, ports int) Step { return newBruckAllgather(size, ports) },
	},
	{
		Name:     "ring-allgather",
		Title:    "allgather around a ring, then local coding; FTI level 3",
		Problem:  "any A, K, p; uses one port",
		C1:       "K-1",
		C2:       "K-1",
		Source:   "MPI libraries; FTI",
		Example:  "-k 16",
		Baseline: true,
		step:     func(size, _ int) Step { return ringAllgather{size} },
	},
	{
		Name:     "direct",
		Title:    "every scaled packet straight to where it is needed",
		Problem:  "any A, K, p",
		C1:       "ceil((K-1)/p)",
		C2:       "ceil((K-1)/p)",
		Source:   "MPI libraries (pairwise alltoall)",
		Example:  "-k 16",
		Baseline: true,
		step:     func(size, ports int) Step { return direct{size, ports} },
	},
	{
		Name:     "central",
		Title:    "gather at processor 0, encode there, scatter",
		Problem:  "any A, K, p",
		C1:       "2*clog(K)",
		C2:       "2*ceil((K-1)/p)",
		Source:   "MPI libraries (binomial gather and scatter)",
		Example:  "-k 16",
		Baseline: true,
		step:     func(size, ports int) Step { return newCentral(size, ports) },
	},
}

// Lookup returns the algorithm of that name. The error lists the names there
// are.
func Lookup(name string) (Algorithm, error) {
	var names []string
	for _, a := range registry {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Algorithm{}, fmt.Errorf("algo: no algorithm %q: want auto or one of %s", name, strings.Join(names, ", "))
}

// Plans returns the algorithm's plans for a problem: one for an algorithm that
// takes every matrix; for a family, those of which none is worse than another in
// both C1 and C2, the fewest rounds first. The error wraps [ErrStructure] where
// the matrix has not the structure that the algorithm needs.
func (a Algorithm) Plans(p *Problem) ([]plan.Plan, error) {
	if a.family != nil {
		return a.family(p)
	}
	if err := p.mustBeSquare(a.Name); err != nil {
		return nil, err
	}
	k := p.Matrix.Rows()
	step := a.step(k, p.Ports)
	return []plan.Plan{compile(a.Name, step.Parameters(), p.Matrix.Field(), k, p.Ports, whole(step, k, p.Matrix.At))}, nil
}

// mustBeSquare returns an error that wraps [ErrStructure] for sources and sinks.
func (p *Problem) mustBeSquare(algorithm string) error {
	if p.Square() {
		return nil
	}
	return fmt.Errorf("algo: %s for %d sources and %d sinks: %w: it is for processors that are both",
		algorithm, p.Matrix.Rows(), p.Matrix.Cols(), ErrStructure)
}

// Compile returns the plan of [Algorithm.Plans] with the least C2 for a square matrix
// in natural order; of an algorithm for every matrix, with the fewest rounds. The
// errors are those of [NewProblem] and [Algorithm.Plans].
func (a Algorithm) Compile(m matrix.Matrix, ports int) (plan.Plan, error) {
	p, err := NewProblem(m, ports, Natural)
	if err != nil {
		return nil, err
	}
	if !a.Structured {
		p.Limits.RoundsOver = 0
	}
	plans, err := a.Plans(p)
	if err != nil {
		return nil, err
	}
	return plans[len(plans)-1], nil
}
