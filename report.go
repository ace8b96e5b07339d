package volley

import (
	"context"

	"volley/algo"
	"volley/executor"
	"volley/matrix"
	"volley/plan"
	"volley/sim"
	"volley/transport"
)

// A Report says what a run did. That of one processor counts what this processor sent and computed; [Merge] puts the
// reports of all together. Its JSON form is the object that the command line prints.
type Report struct {
	Algorithm  string `json:"algorithm"`
	Parameters string `json:"parameters"`
	Field      string `json:"field"`
	Matrix     string `json:"matrix"`
	K          int    `json:"k"`               // sources
	Sinks      int    `json:"sinks,omitempty"` // where not every processor is source and sink
	Processors int    `json:"processors"`
	Ports      int    `json:"ports"`

	// C1 and C2 are counted from the messages sent, not taken from a formula.
	C1 int `json:"c1"` // rounds in which messages were sent
	C2 int `json:"c2"` // elements: the largest message of each round, summed
	C3 int `json:"c3"` // multiply-adds per symbol, at the busiest processor

	Pieces    int     `json:"pieces,omitempty"` // elements that make a packet, where the plan cuts packets
	C2Packets float64 `json:"c2_packets"`       // C2 in packets

	PacketBytes      int64               `json:"packet_bytes"` // on the wire
	SymbolsPerPacket int64               `json:"symbols_per_packet"`
	Segments         int                 `json:"segments"`
	Rounds           []plan.RoundTraffic `json:"rounds"`
	BytesSentMax     int64               `json:"bytes_sent_max"` // by the busiest processor

	// Control traffic agrees on the run and checks it; it is in no other figure.
	ControlRounds int   `json:"control_rounds"`
	ControlBytes  int64 `json:"control_bytes"` // sent by the busiest processor

	// Columns says, where the coded packets are relabelled, which column of the matrix each processor has.
	Columns []int `json:"columns,omitempty"`

	Notes []string `json:"notes,omitempty"` // the structure used, how an order came about

	PlanHash string  `json:"plan_hash"`
	Order    string  `json:"order"` // of the coded packets: "natural", "reversed" or "relabelled"
	Verified bool    `json:"verified"`
	Seconds  float64 `json:"seconds"`

	// AgreeSeconds, CompileSeconds and CheckSeconds are the parts of Seconds for the agreement of all ranks with which
	// a run begins, and the wait for the last of them; making the programs ready, which later runs of an encoder spare;
	// and the final check, with the fingerprints that a rank took while it did nothing else for the run.
	AgreeSeconds   float64 `json:"agree_seconds"`
	CompileSeconds float64 `json:"compile_seconds"`
	CheckSeconds   float64 `json:"check_seconds"`
}

// count adds what processors of a rank, one at least, sent and computed: a report for each would take longer than
// encoding short packets.
func (r *Report) count(traffic []executor.Traffic) {
	r.Segments, r.Rounds = traffic[0].Segments, make([]plan.RoundTraffic, len(traffic[0].Rounds))
	c3, headers := 0, int64(0)
	for i := range traffic {
		t := &traffic[i]
		addRounds(r.Rounds, t.Rounds)
		c3, headers = max(c3, t.MultiplyAdds), max(headers, t.HeaderBytes)
		r.BytesSentMax = max(r.BytesSentMax, t.Bytes)
	}
	r.C3 = sim.Cost{C3: c3, Pieces: r.Pieces}.PacketC3()
	r.ControlBytes += headers
	r.total()
}

// addRounds adds what others sent, round by round.
func addRounds(sums, rounds []plan.RoundTraffic) {
	for t, x := range rounds {
		sums[t].Largest = max(sums[t].Largest, x.Largest)
		sums[t].Messages += x.Messages
	}
}

// BareSeconds returns the part of Seconds that took the encode itself.
func (r *Report) BareSeconds() float64 {
	return max(0, r.Seconds-r.AgreeSeconds-r.CompileSeconds-r.CheckSeconds)
}

// total works out C1 and C2 from the rounds.
func (r *Report) total() {
	r.C1, r.C2 = 0, 0
	for _, x := range r.Rounds {
		if x.Messages > 0 {
			r.C1++
			r.C2 += x.Largest
		}
	}
	r.C2Packets = sim.Cost{C2: r.C2, Pieces: r.Pieces}.PacketC2()
}

// Merge returns the report of a whole run from those of its processors, of which there is at least one.
func Merge(reports []*Report) *Report {
	merged := *reports[0]
	merged.Rounds = make([]plan.RoundTraffic, len(reports[0].Rounds))
	for _, r := range reports {
		addRounds(merged.Rounds, r.Rounds)
		merged.C3 = max(merged.C3, r.C3)
		merged.BytesSentMax = max(merged.BytesSentMax, r.BytesSentMax)
		merged.ControlBytes = max(merged.ControlBytes, r.ControlBytes)
		merged.Verified = merged.Verified && r.Verified
		merged.Seconds = max(merged.Seconds, r.Seconds)
		merged.AgreeSeconds = max(merged.AgreeSeconds, r.AgreeSeconds)
		merged.CompileSeconds = max(merged.CompileSeconds, r.CompileSeconds)
		merged.CheckSeconds = max(merged.CheckSeconds, r.CheckSeconds)
	}
	merged.total()
	return &merged
}

func newReport(p plan.Plan, problem *algo.Problem) *Report {
	info, a := p.Info(), problem.Matrix
	r := &Report{
		Algorithm:  info.Algorithm,
		Parameters: info.Parameters,
		Field:      info.Field.Name(),
		Matrix:     a.ID(),
		K:          a.Rows(),
		Processors: info.Processors,
		Ports:      info.Ports,
		Rounds:     []plan.RoundTraffic{}, // not null in JSON
		Order:      "natural",
		Notes:      info.Notes,
	}
	if matrix.StructureOf(a).Reversed {
		r.Order = "reversed"
	}
	if info.Pieces > 1 {
		r.Pieces = info.Pieces
	}
	if !problem.Square() {
		r.Sinks = a.Cols()
		return r
	}
	columns := make([]int, info.Processors)
	for k := range columns {
		columns[k] = p.Column(k, 0) / info.PieceCount()
		if columns[k] != k {
			r.Order, r.Columns = "relabelled", columns
		}
	}
	return r
}

// Estimate returns the report that a run over t on packets of that many symbols would give, as
// far as the plan tells: costs, bounds, and the time in the model. The errors are those of
// [Encoder.Plan], and that of a program of the plan that cannot be made.
func (e *Encoder) Estimate(ctx context.Context, t transport.Transport, symbols int64) (*Report, error) {
	p, err := e.Plan(ctx, t, symbols)
	if err != nil {
		return nil, err
	}
	cost := e.model(symbols).Count(p)
	if cost.C3, err = sim.MultiplyAdds(p); err != nil {
		return nil, err
	}
	r := newReport(p, e.problem)
	r.Rounds = append(r.Rounds, cost.Rounds...)
	r.C3 = cost.PacketC3()
	r.SymbolsPerPacket = symbols
	r.PacketBytes = symbols * int64(e.matrix.Field().SymbolBytes())
	r.Seconds = e.model(symbols).Time(cost).Seconds()
	r.total()
	return r, nil
}
