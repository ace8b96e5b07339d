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
	Baseline bool // known from elsewhere, here to compare with

	step func(size, ports int) Step // for one group of all processors
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
		step: func(size, ports int) Step {
			m, n := tune(size, ports, 0)
			return newUniversal(size, ports, m, n)
		},
	},
	{
		Name:    "prepare-and-shoot",
		Title:   "the paper's universal algorithm, corrected",
		Problem: "any A, K, p",
		C1:      "clog(K)",
		C2:      "(m-1)/p + (n-1)/p, m and n powers of p+1, m*n >= K, m = n or m = (p+1)*n",
		Source:  "paper, section Prepare and Shoot",
		step:    func(size, ports int) Step { return newPrepareAndShoot(size, ports) },
	},
	{
		Name:     "bruck-allgather",
		Title:    "allgather in the fewest rounds, then local coding",
		Problem:  "any A, K, p",
		C1:       "clog(K)",
		C2:       "ceil((K-1)/p)",
		Source:   "Bruck et al., IEEE TPDS 8(11), 1997",
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

// Compile returns the algorithm's plan for the square matrix m and the given
// number of ports, where more than K-1 count as K-1. It returns an error when m
// is not square or ports is below 1.
func (a Algorithm) Compile(m matrix.Matrix, ports int) (plan.Plan, error) {
	k := m.Rows()
	if k < 1 || m.Cols() != k {
		return nil, fmt.Errorf("algo: matrix of %d rows and %d columns: an all-to-all encode needs a square one", k, m.Cols())
	}
	ports, err := Ports(k, ports)
	if err != nil {
		return nil, err
	}
	step := a.step(k, ports)
	everyone := Layer{
		Step:  step,
		Whole: true,
		Group: func(proc int) Group {
			return Group{Size: k, Index: proc, Member: func(i int) int { return i }, At: m.At}
		},
	}
	return compile(a.Name, step.Parameters(), m.Field(), k, ports, everyone), nil
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
