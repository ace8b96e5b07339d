package explore

import (
	"context"
	"errors"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/internal/comparison"
	"volley/internal/selection"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
)

// A question is what was selected, ready to be answered.
type question struct {
	*selection.Selection
	matrix  matrix.Matrix
	bytes   int64 // of a packet
	model   sim.Model
	encoder *volley.Encoder
}

// ask builds what the flags select; planning ends with ctx. The error is a *selection.Error.
func (f flags) ask(ctx context.Context) (*question, error) {
	s, err := f.bounded(mostProcessors, nil)
	if err != nil {
		return nil, err
	}
	q := &question{Selection: s}
	if q.matrix, err = s.Build(); err != nil {
		return nil, err
	}
	return q, q.prepare(ctx)
}

func (q *question) prepare(ctx context.Context) (err error) {
	if q.bytes, err = q.Bytes(); err != nil {
		return err
	}
	if q.model, err = q.Model(q.matrix.Field(), field.PackingOf(q.matrix.Field()).Symbols(q.bytes)); err != nil {
		return err
	}
	if q.encoder, err = volley.NewEncoder(ctx, q.matrix, q.Options(q.model)...); err != nil {
		return selection.Mark("ports", err)
	}
	q.encoder.Problem().Context = ctx
	return nil
}

// plan returns the plan that is chosen. The error is a *selection.Error.
func (q *question) plan(ctx context.Context) (plan.Plan, error) {
	p, err := q.encoder.Plan(ctx, nil, q.model.Symbols())
	field := "algorithm"
	if errors.As(err, new(*algo.LimitError)) {
		field = q.LimitFlag()
	}
	return p, selection.Mark(field, err)
}

type planRequest struct {
	Flags flags `json:"flags"`
}

// planAnswer is a plan for people to look at.
type planAnswer struct {
	Command    string      `json:"command"`
	Info       planInfo    `json:"info"`
	Cost       planCost    `json:"cost"`
	Candidates []candidate `json:"candidates"` // in the order of the registry
	Rejected   []rejection `json:"rejected"`
	Messages   [][]message `json:"messages"`         // by round; empty for more than comparison.MostDrawn processors
	Detail     *detail     `json:"detail,omitempty"` // unless it is too much
	OwnMatrix  bool        `json:"own_matrix"`       // A is what the plan computes, as of a file that names no other
	Aggregate  *aggregate  `json:"aggregate"`
}

type planInfo struct {
	Algorithm  string       `json:"algorithm"`
	Parameters string       `json:"parameters"`
	Field      string       `json:"field"`
	Q          string       `json:"q"`
	Processors int          `json:"processors"`
	Ports      int          `json:"ports"`
	Rows       int          `json:"rows"`
	Columns    int          `json:"columns"`
	Pieces     int          `json:"pieces"`
	Phases     []plan.Phase `json:"phases"`
	Notes      []string     `json:"notes"`
	Layers     []string     `json:"layers"`
	Structure  string       `json:"structure"` // of the matrix
}

// planCost is what a plan costs; seconds are those of the model.
type planCost struct {
	comparison.Bounds
	C1          int                 `json:"c1"`
	C2          int                 `json:"c2"` // elements
	C3          int                 `json:"c3"`
	PacketsC2   float64             `json:"packets_c2"`
	Seconds     float64             `json:"seconds"`
	Bytes       int64               `json:"bytes"`        // of a packet
	PacketBytes int64               `json:"packet_bytes"` // of it as symbols, W
	Beta        float64             `json:"beta"`
	Tau         sim.PerByte         `json:"tau"`
	Gamma       sim.PerByte         `json:"gamma"`
	Network     *planNetwork        `json:"network"` // nil: the model of the paper
	Rounds      []plan.RoundTraffic `json:"rounds"`
	Times       []float64           `json:"times"` // of the rounds' messages, in the model
}

// planNetwork is LogGP's L, o and G of one message, in seconds, and what the busiest processor exchanges.
type planNetwork struct {
	Latency  float64     `json:"latency"`
	Overhead float64     `json:"overhead"`
	Gap      sim.PerByte `json:"gap"`
	Messages int         `json:"messages"`
	Packets  float64     `json:"packets"`
}

type candidate struct {
	Algorithm  string  `json:"algorithm"`
	Parameters string  `json:"parameters"`
	Ports      int     `json:"ports"`
	C1         int     `json:"c1"`
	C2         float64 `json:"c2"` // packets
	C3         int     `json:"c3"`
	Memory     int     `json:"memory"`
	Seconds    float64 `json:"seconds"`
	Broken     string  `json:"broken"` // the limit that it breaks
	Chosen     bool    `json:"chosen"` // by the planner
	Named      bool    `json:"named"`  // by the flags: whatever others cost, it is the plan
}

type rejection struct {
	Algorithm string `json:"algorithm"`
	Reason    string `json:"reason"`
}

// showPlan answers with the plan that the flags select: what encode would run.
func showPlan(ctx context.Context, request planRequest) (*planAnswer, error) {
	q, err := request.Flags.ask(ctx)
	if err != nil {
		return nil, err
	}
	a, err := q.answer(ctx)
	if err == nil {
		a.Command = request.Flags.command("plan")
	}
	return a, err
}

// answer returns the plan that is chosen, without a command. The error is a *selection.Error, or that of ctx.
func (q *question) answer(ctx context.Context) (*planAnswer, error) {
	p, err := q.plan(ctx)
	if err != nil {
		return nil, err
	}
	a := &planAnswer{Info: describe(p.Info())}
	a.Info.Structure, _ = q.encoder.Problem().Structure()
	if a.Cost, err = q.cost(ctx, p); err != nil {
		return nil, err
	}
	a.Candidates, a.Rejected = q.candidates(p.Info())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return a, a.show(ctx, p, func() (matrix.Matrix, error) { return q.matrix, nil })
}

// show adds what the plan sends and, as far as that is not too much, each message and what is in it, beside the matrix A.
// The error is that of ctx or of build, which returns A.
func (a *planAnswer) show(ctx context.Context, p plan.Plan, build func() (matrix.Matrix, error)) (err error) {
	a.Messages = [][]message{}
	if a.Aggregate, err = aggregateOf(ctx, p); err != nil || a.Info.Processors > comparison.MostDrawn {
		return err
	}
	m, err := plan.Materialize(p)
	if err != nil {
		return err
	}
	flow, err := plan.Follow(m)
	if err != nil {
		return err
	}
	a.Messages = messagesOf(m, flow)
	if slotsOf(p)*a.Info.Rows > mostCoefficients {
		return nil
	}
	coded, err := build()
	if err == nil {
		a.Detail, err = detailOf(ctx, m, flow, coded)
	}
	return err
}

func describe(i plan.Info) planInfo {
	return planInfo{
		Algorithm: i.Algorithm, Parameters: i.Parameters, Field: i.Field.Name(), Q: i.Field.Order().String(),
		Processors: i.Processors, Ports: i.Ports, Rows: i.Rows, Columns: i.Columns, Pieces: i.PieceCount(),
		Phases: list(i.Phases), Notes: list(i.Notes), Layers: list(i.Layers),
	}
}

// costOf returns what was counted, and its times in a model.
func costOf(c sim.Cost, m sim.Model) planCost {
	cost := planCost{
		C1: c.C1, C2: c.C2, C3: c.PacketC3(), PacketsC2: c.PacketC2(), Seconds: m.Time(c).Seconds(), Bytes: m.Bytes, PacketBytes: m.Bytes,
		Rounds: list(c.Rounds), Beta: m.Beta.Seconds(), Tau: m.Tau, Gamma: m.Gamma, Times: []float64{},
	}
	for _, d := range m.RoundTimes(c) {
		cost.Times = append(cost.Times, d.Seconds())
	}
	return cost
}

func (q *question) cost(ctx context.Context, p plan.Plan) (planCost, error) {
	r, err := q.encoder.Estimate(ctx, nil, q.model.Symbols())
	if err != nil {
		return planCost{}, selection.Mark("algorithm", err)
	}
	counted := q.model.Count(p)
	c := costOf(counted, q.model)
	c.Bytes, c.C3, c.Seconds = q.bytes, r.C3, r.Seconds // fused sums count
	c.Bounds = comparison.BoundsOf(q.encoder.Problem(), p.Info(), counted)
	if n := q.model.Network; !q.model.Paper() {
		c.Network = &planNetwork{n.Latency.Seconds(), n.Overhead.Seconds(), n.Gap, counted.Messages(), counted.NodePackets()}
	}
	return c, nil
}

// candidates returns what the planner chooses from, and marks the plan that is shown.
func (q *question) candidates(shown plan.Info) ([]candidate, []rejection) {
	candidates, rejected := []candidate{}, []rejection{}
	problem := *q.encoder.Problem()
	problem.WholePackets = problem.WholeFor(algo.Auto) // also where an algorithm is named
	accepted, refused := algo.Candidates(&problem, q.model)
	for _, c := range accepted {
		i := c.Plan.Info()
		current := i.Algorithm == shown.Algorithm && i.Parameters == shown.Parameters && i.Ports == shown.Ports
		candidates = append(candidates, candidate{
			Algorithm: i.Algorithm, Parameters: i.Parameters, Ports: i.Ports, C1: c.Cost.C1, C2: c.Cost.PacketC2(), C3: c.Cost.PacketC3(),
			Memory: c.Memory, Seconds: c.Time.Seconds(), Broken: c.Broken,
			Chosen: current && q.Algorithm == algo.Auto, Named: current && q.Algorithm != algo.Auto,
		})
	}
	for _, r := range refused {
		rejected = append(rejected, rejection{r.Algorithm, selection.Message(r.Reason)})
	}
	return candidates, rejected
}
