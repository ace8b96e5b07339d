package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"volley/plan"
)

// The packets whose trees are emphasised: x0 and y0.
const (
	focusRow    = 0
	focusColumn = 0
)

// schedule is what a drawing shows of a plan.
type schedule struct {
	info    plan.Info
	phases  []string // by round
	inputs  []string // by processor: "x3"
	outputs []string // by processor: "y3"
	rounds  [][]message
	source  int    // the processor that has x0, or -1
	sink    int    // the processor that has y0 in the end, or -1
	example string // explains the notation of a partial sum, if there are any
}

type message struct {
	round, src, dst, port int
	// span is how many columns the arrow goes to the right, or to the left when
	// negative. One that leaves the drawing comes in again at the other side.
	span    int
	content []plan.Content
	spreads bool // it carries x0, as it is or in a sum
	gathers bool // it goes into y0
}

// focus reports whether the message is part of a tree that is emphasised.
func (m *message) focus() bool { return m.spreads || m.gathers }

// collect reads the schedule of a plan.
func collect(p plan.Plan) (*schedule, error) {
	m, err := plan.Materialize(p)
	if err != nil {
		return nil, err
	}
	flow, err := plan.Follow(m)
	if err != nil {
		return nil, err
	}
	s := &schedule{info: m.Common, phases: m.Common.PhaseOf(), source: -1, sink: -1}
	s.rounds = make([][]message, s.info.Rounds())
	for k := range m.Programs {
		s.inputs = append(s.inputs, words(runs(s.info.InitialName, m.Rows[k])))
		s.outputs = append(s.outputs, words(runs(s.info.CodedName, m.Columns[k])))
		if slices.Contains(m.Rows[k], focusRow) {
			s.source = k
		}
		if slices.Contains(m.Columns[k], focusColumn) {
			s.sink = k
		}
	}
	s.addMessages(m, flow)
	for _, list := range s.rounds {
		setSpans(list, s.info.Processors)
		s.explain(list)
	}
	return s, nil
}

// addMessages adds the messages of all rounds, by sender.
func (s *schedule) addMessages(m *plan.Materialized, flow *plan.Flow) {
	for t, messages := range m.Messages() {
		slices.SortFunc(messages, func(x, y plan.Message) int {
			return cmp.Or(cmp.Compare(x.Src, y.Src), cmp.Compare(x.Port, y.Port))
		})
		for _, x := range messages {
			msg := message{round: t, src: x.Src, dst: x.Dst, port: x.Port, span: x.Dst - x.Src}
			for i, slot := range x.Slots {
				msg.add(flow.Content(x.Src, slot), flow.Content(x.Dst, x.Received+i))
			}
			s.rounds[t] = append(s.rounds[t], msg)
		}
	}
}

// add adds a packet, given what it is and what becomes of it at the receiver.
func (m *message) add(sent, received plan.Content) {
	m.content = append(m.content, sent)
	m.spreads = m.spreads || slices.Contains(sent.Rows, focusRow)
	m.gathers = m.gathers || len(sent.Rows) > 0 && slices.Contains(received.Columns, focusColumn)
}

// setSpans lets the arrows of a port take the short way around where all
// processors send equally far, so that they are parallel.
func setSpans(list []message, k int) {
	if k == 2 { // two arrows that cross say more
		return
	}
	for port, d := range shifts(list, k) {
		if 2*d > k {
			d -= k
		}
		for i := range list {
			if list[i].port == port {
				list[i].span = d
			}
		}
	}
}

// shifts returns, for the ports on which all k processors send equally far, how
// far that is.
func shifts(list []message, k int) map[int]int {
	count, far := map[int]int{}, map[int]int{}
	for _, m := range list {
		d := (m.dst - m.src + k) % k
		if count[m.port] == 0 || far[m.port] == d {
			far[m.port] = d
			count[m.port]++
		}
	}
	for port, n := range count {
		if n != k {
			delete(far, port)
		}
	}
	return far
}

// explain takes the first partial sum as the example of the notation.
func (s *schedule) explain(list []message) {
	for _, m := range list {
		for _, c := range m.content {
			name, rows, ok := strings.Cut(strings.TrimSuffix(c.String(), ")"), "(")
			if s.example == "" && ok {
				if i := strings.LastIndexByte(rows, ','); i >= 0 {
					rows = strings.ReplaceAll(rows[:i], ",", ", ") + " and " + rows[i+1:]
				}
				s.example = fmt.Sprintf("%v: the part of %s made of %s", c, name, rows)
			}
		}
	}
}

// full returns all that the message carries, for its tooltip.
func (m *message) full() string {
	names := make([]string, len(m.content))
	for i, c := range m.content {
		names[i] = c.String()
	}
	return fmt.Sprintf("round %d: %d → %d on port %d: %s", m.round, m.src, m.dst, m.port, strings.Join(names, " "))
}

// pattern says how far everybody sends in a round, such as "k → k+3, k+6", and
// is empty when that differs.
func pattern(list []message, k int) string {
	far := shifts(list, k)
	if len(list) == 0 || len(far)*k != len(list) {
		return ""
	}
	var to []string
	for port := 0; len(to) < len(far); port++ {
		if d, ok := far[port]; ok {
			to = append(to, fmt.Sprintf("k+%d", d))
		}
	}
	return "k → " + strings.Join(to, ", ")
}
