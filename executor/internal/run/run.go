// Package run says what a rank does with the steps of an executable, segment by segment: when a message is asked for,
// when a step is computed, and when what it makes is sent. It is a machine without input or output, time or goroutines:
// its caller tells it what has happened, and does what it says.
//
//	m.Begin()                      // the inputs of a segment are there
//	for do := m.Next(); ...        // ask for messages, compute steps, send
//	m.Received(i), m.Sent(k)       // what has happened meanwhile; then Next again
//
// Whatever the order in which messages come and sends are over, all that a segment takes is done once, and nothing
// before what it needs is there.
package run

import "volley/executor/internal/compile"

// An Interpreter is at one segment at a time.
type Interpreter struct {
	x         *compile.Executable
	needs     []int32 // what each step lacks
	ready     []int   // steps that lack nothing, in order
	begun     int     // of these, those that were named
	arrived   []bool  // receives
	sent      []bool
	oldest    int          // receive that has not arrived, or all of them
	asked     int          // receives that were named
	receiving int          // of these, those that have not arrived
	sending   int          // sends that were named and are not over
	sends     compile.Span // of the step that was named last, those that were not
}

// New returns the machine of an executable, which then allocates nothing.
func New(x *compile.Executable) *Interpreter {
	return &Interpreter{
		x: x, needs: make([]int32, len(x.Steps)), ready: make([]int, 0, len(x.Steps)),
		arrived: make([]bool, len(x.Receives)), sent: make([]bool, len(x.Sends)),
	}
}

// An Action is what is to be done.
type Action uint8

// What a [Machine] may ask for.
const (
	Wait    Action = iota // for a message to arrive, or a send to be over
	Receive               // ask for a message, of [compile.Executable].Receives
	Compute               // a step, at once: sends of what it makes follow
	Send                  // send a message, of [compile.Executable].Sends
)

// An Activity is what is to be done next with a receive, a step or a send, by its number.
type Activity struct {
	Action Action
	Number int
}

// Begin begins with a segment, of which the inputs are there. The one before is over: see [Machine.Settled].
func (m *Interpreter) Begin() {
	clear(m.arrived)
	clear(m.sent)
	m.oldest, m.asked, m.begun, m.ready = 0, 0, 0, m.ready[:0]
	for s := range m.x.Steps {
		if m.needs[s] = m.x.Steps[s].Needs; m.needs[s] == 0 {
			m.ready = append(m.ready, s)
		}
	}
}

// Next returns what is to be done next. Each receive, step and send of the segment is named once, and a step after the
// sends of the one before.
func (m *Interpreter) Next() Activity {
	switch receives := m.x.Receives; {
	case m.asked < len(receives) && receives[m.asked].Round < receives[m.oldest].Round+compile.RoundsAhead:
		m.asked++
		m.receiving++
		return Activity{Receive, m.asked - 1}
	case m.sends.First < m.sends.End:
		m.sends.First++
		m.sending++
		return Activity{Send, m.sends.First - 1}
	case m.begun < len(m.ready):
		s := m.ready[m.begun]
		m.begun++
		m.sends = m.x.Steps[s].Sends
		m.wake(m.x.Steps[s].Wakes)
		return Activity{Compute, s}
	}
	return Activity{}
}

// wake tells steps that something they need is there.
func (m *Interpreter) wake(steps []int) {
	for _, s := range steps {
		if m.needs[s]--; m.needs[s] == 0 {
			m.ready = append(m.ready, s)
		}
	}
}

// Received says that a message has arrived.
func (m *Interpreter) Received(i int) {
	m.arrived[i] = true
	m.receiving--
	for m.oldest < len(m.arrived) && m.arrived[m.oldest] {
		m.oldest++
	}
	m.wake(m.x.Receives[i].Wakes)
}

// Sent says that what a send carries may be overwritten.
func (m *Interpreter) Sent(k int) {
	m.sent[k] = true
	m.sending--
}

// Complete reports, where Next says to wait, whether all outputs are there.
func (m *Interpreter) Complete() bool { return m.oldest == len(m.arrived) }

// Settled reports, when all outputs are there, whether the memory of the segment may be used again.
func (m *Interpreter) Settled() bool { return m.sending == 0 }

// Enough returns how many messages have to arrive before Next has something else to say than to wait, or less.
func (m *Interpreter) Enough() int {
	n := int32(m.receiving)
	for _, needs := range m.needs {
		if needs > 0 {
			n = min(n, needs)
		}
	}
	return int(n)
}

// Missing returns the receive that has been waited for the longest, or else the send; Wait is none.
func (m *Interpreter) Missing() Activity {
	if !m.Complete() {
		return Activity{Receive, m.oldest}
	}
	if m.sending > 0 {
		for k, finished := range m.sent {
			if !finished {
				return Activity{Send, k}
			}
		}
	}
	return Activity{}
}
