package verbs

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"volley/algo"
	"volley/field"
	"volley/matrix/matrices"
	"volley/sim"
)

// A sweep asks what each family of algorithms is worth on networks with one link per node,
// where a plan may use as many ports as it likes: for every matrix, number of processors,
// network, packet size and speed of coding, which plan takes the least time, and what the
// best plan of another family would take.
type sweep struct {
	Cases    []sweepCase
	Networks []string      // as [sim.ParseNetwork] reads them
	Sizes    []int64       // bytes of a packet
	Gammas   []sim.PerByte // of a multiply-add
	Slowest  int           // the largest K at which conditional algorithms, whose search is long, take part
}

// A sweepCase is the matrices of one kind: K sources for each of the numbers, and R sinks.
type sweepCase struct {
	Matrix, Field string
	Processors    []int
	Sinks         func(k int) int // nil: every processor is source and sink
	Separate      bool
}

// usualSweep is the sweep of the table in docs/research.md.
func usualSweep() sweep {
	s := sweep{Networks: sim.Presets, Gammas: []sim.PerByte{0, 0.1e-9, 1e-9}, Slowest: 64}
	for bytes := int64(64); bytes <= 64<<20; bytes *= 4 {
		s.Sizes = append(s.Sizes, bytes)
	}
	powers := []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
	s.Cases = []sweepCase{
		{Matrix: "random:1", Field: "2^16", Processors: append([]int{3, 6, 12, 24, 48, 100, 384, 1000}, powers...)},
		{Matrix: "cauchy", Field: "2^16", Processors: powers},
		{Matrix: "dft", Field: "65537", Processors: powers},
		{Matrix: "vandermonde", Field: "65537", Processors: []int{12, 24, 48, 96, 384}},
		{Matrix: "lagrange", Field: "65537", Processors: []int{16, 24, 64, 256}},
		{Matrix: "lch", Field: "2^16", Processors: []int{16, 64, 256, 1024}},
		{Matrix: "cauchy", Field: "257", Processors: []int{27, 48, 54}}, // 3h² and 6h², which lifted takes
	}
	sinks := []func(k int) int{
		func(int) int { return 1 }, func(k int) int { return max(1, k/10) }, func(k int) int { return max(2, k/4) }, func(k int) int { return 4 * k },
	}
	for _, r := range sinks {
		for _, separate := range []bool{false, true} {
			s.Cases = append(s.Cases, sweepCase{Matrix: "cauchy", Field: "2^16", Processors: []int{12, 24, 40, 100}, Sinks: r, Separate: separate})
		}
	}
	return s
}

// A familyWorth is what one family is worth in a sweep.
type familyWorth struct {
	Name   string
	Chosen float64   // of all cells, those in which one of its plans takes the least time
	Pays   float64   // of all cells, those in which the best other plan takes 10 % longer, or more
	Loss   []float64 // by network: the most that the best other plan takes longer, as a part
	Where  string    // the cell of the largest
}

// run returns what each family is worth, the largest loss first; families that have a plan in
// some cell only. The error is that of ctx, of a matrix or a network.
func (s sweep) run(ctx context.Context) ([]familyWorth, error) {
	var networks []sim.Network
	for _, name := range s.Networks {
		n, err := sim.ParseNetwork(name)
		if err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	type job struct {
		sweepCase
		k int
	}
	var jobs []job
	for _, c := range s.Cases {
		for _, k := range c.Processors {
			jobs = append(jobs, job{c, k})
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(b.k, a.k) }) // the longest first
	var mu sync.Mutex
	cells := 0
	worth := map[string]*familyWorth{}
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for _, j := range jobs {
		workers.Go(func() error {
			plans, symbol, err := s.plans(ctx, j.sweepCase, j.k)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			cells += s.compare(j.sweepCase, j.k, plans, symbol, networks, worth)
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	var list []familyWorth
	for _, w := range worth {
		w.Chosen /= float64(cells)
		w.Pays /= float64(cells)
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b familyWorth) int {
		return cmp.Or(cmp.Compare(slices.Max(b.Loss), slices.Max(a.Loss)), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// A familyCost is the cost of a plan of a family.
type familyCost struct {
	family string
	sim.Cost
}

// plans returns the costs of all plans for K processors, at every number of ports that a
// stage of some radix can use, and the bytes of a symbol.
func (s sweep) plans(ctx context.Context, c sweepCase, k int) ([]familyCost, int, error) {
	f, err := field.Parse(c.Field)
	if err != nil {
		return nil, 0, err
	}
	spec, err := matrices.ParseSpec(c.Matrix)
	if err != nil {
		return nil, 0, err
	}
	r := k
	if c.Sinks != nil {
		r = c.Sinks(k)
	}
	a, err := spec.Build(f, k, r)
	if err != nil {
		return nil, 0, fmt.Errorf("research: sweep of %s with K = %d: %w", c.Matrix, k, err)
	}
	var list []familyCost
	var before []int
	for parts := 1; parts <= 10; parts++ {
		p := &algo.Problem{Matrix: a, Separate: c.Separate, Ports: 1, Context: ctx}
		processors := p.Processors()
		radix := 2
		for power := radix; power < processors; radix++ { // the least with radix^parts >= processors
			power = 1
			for range parts {
				power *= radix + 1
			}
		}
		p.Ports = radix - 1
		if parts == 1 {
			p.Ports = max(1, processors-1)
		}
		if slices.Contains(before, p.Ports) {
			continue
		}
		before = append(before, p.Ports)
		if err := p.Prepare(); err != nil {
			return nil, 0, err
		}
		for _, x := range algo.Algorithms() {
			if x.Conditional && k > s.Slowest {
				continue
			}
			plans, err := x.Plans(p)
			if ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
			if err != nil {
				continue // none for this problem
			}
			for _, q := range plans {
				list = append(list, familyCost{q.Info().Algorithm, sim.Count(q)})
			}
		}
	}
	return list, f.SymbolBytes(), nil
}

// compare adds what families are worth in the cells of one problem, and returns how many
// cells it has.
func (s sweep) compare(c sweepCase, k int, plans []familyCost, symbol int, networks []sim.Network, worth map[string]*familyWorth) int {
	for _, p := range plans {
		if worth[p.family] == nil {
			worth[p.family] = &familyWorth{Name: p.family, Loss: make([]float64, len(networks))}
		}
	}
	cells := 0
	for at, network := range networks {
		for _, bytes := range s.Sizes {
			for _, gamma := range s.Gammas {
				model := sim.Model{Network: network, Gamma: gamma, Bytes: bytes, SymbolBytes: symbol}
				best, other := -1, -1 // the best plan, and the best of another family
				for i, p := range plans {
					switch t := model.Time(p.Cost); {
					case best < 0 || t < model.Time(plans[best].Cost):
						if best >= 0 && plans[best].family != p.family {
							other = best
						}
						best = i
					case p.family != plans[best].family && (other < 0 || t < model.Time(plans[other].Cost)):
						other = i
					}
				}
				cells++
				w := worth[plans[best].family]
				w.Chosen++
				if other < 0 {
					continue
				}
				loss := float64(model.Time(plans[other].Cost))/float64(model.Time(plans[best].Cost)) - 1
				if loss > slices.Max(w.Loss) {
					w.Where = fmt.Sprintf("%s, %s, %s, γ %v", c.name(k), s.Networks[at], inBytes(float64(bytes)), gamma)
				}
				w.Loss[at] = max(w.Loss[at], loss)
				if loss >= 0.1 {
					w.Pays++
				}
			}
		}
	}
	return cells
}

// name names the matrix for K processors.
func (c sweepCase) name(k int) string {
	text := fmt.Sprintf("%s, K = %d", c.Matrix, k)
	if c.Sinks != nil {
		text += fmt.Sprintf(", R = %d", c.Sinks(k))
	}
	if c.Separate {
		text += " apart"
	}
	return text
}
