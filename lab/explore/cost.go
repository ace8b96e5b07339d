package explore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"

	"volley/internal/comparison"
	"volley/internal/selection"
)

// What the page compares at most, and what it does unless it is told.
const (
	mostCompared    = 512 // values of K
	largestCompared = 2048
	largestPacket   = 1 << 50
	usualProcessors = "2..64"
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
