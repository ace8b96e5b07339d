package explore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"volley/internal/comparison"
	"volley/internal/selection"
	"volley/lab/crossings"
)

// What the page compares at most, and what it does unless it is told.
const (
	mostCompared    = 512 // values of K
	largestCompared = 2048
	largestPacket   = 1 << 50
	usualProcessors = "2..64"
	usualFrom       = "1KiB"
	usualTo         = "64MiB"
)

type costRequest struct {
	Flags      flags  `json:"flags"`      // without processors; without matrix: for any
	Processors string `json:"processors"` // a list such as 4,8,16..20; empty: 2..64
	Algorithms string `json:"only"`       // names of algorithms with commas; empty: all
}

type costAnswer struct {
	Command    string    `json:"command"`
	Algorithms []string  `json:"algorithms"` // in the order of the registry, or as asked for
	Rows       []costRow `json:"rows"`
}

type costRow struct {
	K       int                 `json:"k"`
	Ports   int                 `json:"ports"` // that are used
	BoundC1 int                 `json:"bound_c1"`
	BoundC2 float64             `json:"bound_c2"`
	Fewest  *int                `json:"fewest"` // bound of C2 in the fewest rounds, where a higher one is known
	Chosen  string              `json:"chosen"` // the algorithm that the planner takes; empty: none
	Costs   map[string]costCell `json:"costs"`  // by algorithm, of those that exist
}

type costCell struct {
	C1      int     `json:"c1"`
	C2      float64 `json:"c2"` // packets
	C3      int     `json:"c3"`
	Seconds float64 `json:"seconds"`
}

// compareCosts answers with what algorithms cost for many K.
func compareCosts(ctx context.Context, request costRequest) (*costAnswer, error) {
	text := cmp.Or(strings.TrimSpace(request.Processors), usualProcessors)
	ks, err := selection.ParseNumbers(text, 1, largestCompared)
	if err != nil {
		return nil, selection.Mark("processors", err)
	}
	if len(ks) > mostCompared {
		return nil, selection.Markf("processors", "%d values: the page compares %d at most; volley cost takes more", len(ks), mostCompared)
	}
	derived := flags{}
	maps.Copy(derived, request.Flags)
	delete(derived, "processors")
	names := strings.TrimSpace(request.Algorithms)
	c, err := derived.comparison(names, ks)
	if err != nil {
		return nil, onlyOf(names, err)
	}
	rows, err := c.Rows(ctx)
	if err != nil {
		return nil, onlyOf(names, err)
	}
	derived["processors"] = text
	a := &costAnswer{Command: derived.costCommand(names)}
	for _, x := range c.Algorithms {
		a.Algorithms = append(a.Algorithms, x.Name)
	}
	for _, r := range rows {
		row := costRow{K: r.K, Ports: r.Used, BoundC1: r.C1, BoundC2: r.C2, Costs: map[string]costCell{}}
		if b, ok := r.Fewest(); ok {
			row.Fewest = &b
		}
		if r.Chosen != nil {
			row.Chosen = r.Chosen.Algorithm
		}
		for name, p := range r.Costs {
			row.Costs[name] = costCell{p.Cost.C1, p.Cost.PacketC2(), p.Cost.PacketC3(), c.Model.Time(p.Cost).Seconds()}
		}
		a.Rows = append(a.Rows, row)
	}
	return a, nil
}

// onlyOf marks an error of the algorithms to compare as one of the list that names them.
func onlyOf(names string, err error) error {
	if fault := new(selection.Error); names != "" && errors.As(err, &fault) && fault.Flag == "algorithm" {
		return selection.Mark("only", err)
	}
	return err
}

type sizesRequest struct {
	Flags    flags  `json:"flags"` // without matrix: for any
	Smallest string `json:"from"`  // size of a packet; empty: 1KiB
	Largest  string `json:"to"`    // empty: 64MiB
}

type sizesAnswer struct {
	Sizes     []float64            `json:"sizes"` // whole bytes
	Plans     []sizedPlan          `json:"plans"`
	Crossings []crossings.Crossing `json:"crossings"`
	Chosen    *crossings.Crossing  `json:"chosen"` // what the planner takes at --size
}

type sizedPlan struct {
	Algorithm  string    `json:"algorithm"`
	Parameters string    `json:"parameters"`
	C1         int       `json:"c1"`
	C2         float64   `json:"c2"` // packets
	C3         int       `json:"c3"`
	Memory     int       `json:"memory"`
	Seconds    []float64 `json:"seconds"` // for each size
}

// compareSizes answers with the times of all plans for one K over the sizes of packets.
func compareSizes(ctx context.Context, request sizesRequest) (*sizesAnswer, error) {
	smallest, largest, err := request.bounds()
	if err != nil {
		return nil, err
	}
	c, err := request.Flags.comparison("", nil)
	if err != nil {
		return nil, err
	}
	k := c.Selection.Processors
	if k < 1 {
		return nil, selection.Markf("processors", "%d processors: want 1 to %d", k, largestCompared)
	}
	bytes, err := c.Selection.Bytes()
	if err != nil {
		return nil, err
	}
	c.Processors, c.AllPlans = []int{k}, true
	rows, err := c.Rows(ctx)
	if err != nil {
		return nil, err
	}
	a := &sizesAnswer{Sizes: crossings.Sizes(smallest, largest)}
	plans := rows[0].Plans
	if p := rows[0].Chosen; p != nil {
		i := slices.IndexFunc(plans, func(x comparison.PlanCost) bool { return x.Algorithm == p.Algorithm && x.Parameters == p.Parameters })
		if i < 0 { // skipping what takes longer, the planner may look further
			i, plans = len(plans), append(plans, *p)
		}
		a.Chosen = &crossings.Crossing{Plan: i, Bytes: float64(bytes), Seconds: crossings.Seconds(c, *p, float64(bytes))}
	}
	for i, size := range a.Sizes {
		a.Sizes[i] = math.Round(size)
	}
	a.Sizes = slices.Compact(a.Sizes) // few bytes have few sizes
	for _, p := range plans {
		sized := sizedPlan{p.Algorithm, p.Parameters, p.Cost.C1, p.Cost.PacketC2(), p.Cost.PacketC3(), p.Memory, nil}
		for _, size := range a.Sizes {
			sized.Seconds = append(sized.Seconds, crossings.Seconds(c, p, size))
		}
		a.Plans = append(a.Plans, sized)
	}
	a.Crossings = list(crossings.Find(c, plans, a.Sizes))
	for i := range a.Crossings {
		a.Crossings[i].Bytes = math.Round(a.Crossings[i].Bytes)
	}
	return a, nil
}

// bounds returns the smallest and the largest size, by default the usual ones, or a *selection.Error.
func (r *sizesRequest) bounds() (smallest, largest int64, err error) {
	r.Smallest, r.Largest = cmp.Or(strings.TrimSpace(r.Smallest), usualFrom), cmp.Or(strings.TrimSpace(r.Largest), usualTo)
	if smallest, err = selection.ParseSize(r.Smallest); err != nil {
		return 0, 0, selection.Markf("from", "%q: %w", r.Smallest, err)
	}
	if largest, err = selection.ParseSize(r.Largest); err != nil {
		return 0, 0, selection.Markf("to", "%q: %w", r.Largest, err)
	}
	switch {
	case smallest < 1:
		return 0, 0, selection.Markf("from", "%q: want 1B or more", r.Smallest)
	case largest <= smallest:
		return 0, 0, selection.Markf("to", "%q: want more than %s", r.Largest, r.Smallest)
	case largest > largestPacket:
		return 0, 0, selection.Markf("to", "%q: want 1PiB at most", r.Largest)
	}
	return smallest, largest, nil
}

// comparison returns a comparison of the algorithms named, or of all, for some K or that of the flags.
func (f flags) comparison(names string, ks []int) (*comparison.Comparison, error) {
	s, err := f.bounded(largestCompared, ks)
	if err != nil {
		return nil, err
	}
	c := &comparison.Comparison{
		Processors: ks, Selection: s, HasMatrix: strings.TrimSpace(f["matrix"]) != "", Settings: []comparison.PortSetting{{Ports: s.Ports, Excess: s.Limits.Rounds.Excess()}}, Planner: s.Algorithm,
	}
	s.Algorithm = names
	bytes, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	return c, c.Prepare(names, bytes)
}

// costCommand returns the command line of volley-lab cost for the algorithms named. Without a matrix it is for any, unlike other verbs.
func (f flags) costCommand(names string) string {
	derived := maps.Clone(f)
	delete(derived, "matrix")
	delete(derived, "algorithm")
	var list []string
	if strings.TrimSpace(f["matrix"]) != "" {
		list = append(list, "--matrix", strings.TrimSpace(f["matrix"]))
	}
	if names != "" {
		list = append(list, "--algorithm", names)
	}
	return derived.command("cost", list...)
}
