package executor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"volley/trace"
	"volley/transport"
)

// A transfer is a message of the segment. Its ID is its place among the sends or the receives.
type transfer struct {
	transport.Transfer
	began int64
	over  bool
}

// A beside is a transfer of one of [Job].Beside.
type beside struct {
	*transport.Transfer
	of transport.Beside
}

// runSteps computes, sends and receives all of the segment. A message leaves when what it carries
// is there, and receives are posted rounds ahead.
func (l *lane) runSteps(ctx context.Context) error {
	x := l.x
	l.ready = l.ready[:0]
	for s := range x.steps {
		if l.needs[s] = int(x.steps[s].needs); l.needs[s] == 0 {
			l.ready = append(l.ready, s)
		}
	}
	for i := range l.receives {
		l.receives[i].over = false
	}
	l.posted, l.oldest, l.receiving = 0, 0, 0
	l.postReceives()
	for begun := l.offset > 0; ; {
		for n := 0; n < len(l.ready); n++ { // it grows
			l.runStep(l.ready[n])
		}
		l.ready = l.ready[:0]
		for i := 0; i < len(l.Beside) && !begun; i++ {
			if err := l.goOn(beside{of: l.Beside[i]}, nil); err != nil {
				return err
			}
		}
		begun = true
		l.post()
		if l.oldest == len(x.receives) {
			break
		}
		if err := l.await(ctx); err != nil {
			return err
		}
	}
	for o, result := range x.outputs {
		_, length := l.piece(o)
		l.outputs[o] = l.memory[result.at][:length]
	}
	return nil
}

// runStep computes what a step has to, and sends its messages.
func (l *lane) runStep(s int) {
	step := &l.x.steps[s]
	if len(step.operations) > 0 {
		l.post() // what is there goes first
	}
	l.compute(s)
	for k := step.sends.first; k < step.sends.end; k++ {
		l.send(k)
	}
	l.wake(step.wakes)
}

// wake tells steps that something they need is there.
func (l *lane) wake(steps []int) {
	for _, s := range steps {
		if l.needs[s]--; l.needs[s] == 0 {
			l.ready = append(l.ready, s)
		}
	}
}

// hasHeader reports whether a message has a header: the first one of two ranks.
func (l *lane) hasHeader(m *message) bool {
	return m.first && l.offset == 0 && len(l.Header) > 0
}

// postReceives has the receives of the rounds that may be under way posted.
func (l *lane) postReceives() {
	all := l.x.receives
	for l.posted < len(all) && all[l.posted].round < all[l.oldest].round+roundsAhead {
		m, t := &all[l.posted], &l.receives[l.posted]
		at, end := m.at, m.at+m.count
		for i := at; i < end; i++ {
			l.memory[i] = l.memory[i][:l.element]
		}
		if l.hasHeader(&m.message) {
			at--
		}
		t.Parts = l.memory[at:end:end]
		l.add(t, &m.message)
		l.posted++
		l.receiving++
	}
}

// send has message k posted.
func (l *lane) send(k int) {
	m, t := &l.x.sends[k], &l.sends[k]
	if l.hasHeader(&m.message) {
		l.headerBytes += int64(len(l.Header))
	}
	if m.again {
		t.Parts = l.sends[k-1].Parts
	} else {
		t.Parts = slices.Grow(t.Parts[:0], 1+len(m.slots))
		if l.hasHeader(&m.message) {
			t.Parts = append(t.Parts, l.Header)
		}
		for _, slot := range m.slots {
			t.Parts = append(t.Parts, l.memory[slot][:l.element])
		}
	}
	t.over = false
	l.sending++
	l.add(t, &m.message)
}

// add has a transfer posted with the next ones.
func (l *lane) add(t *transfer, m *message) {
	t.Rank, t.Tag = int(m.rank), transport.Tag{Round: transport.ControlRounds + l.number*l.x.planRounds + int(m.round), Port: int(m.port)}
	t.began = l.Trace.Now()
	l.batch = append(l.batch, &t.Transfer)
}

// post posts what was added.
func (l *lane) post() {
	if len(l.batch) > 0 {
		l.queue.Post(l.batch...)
		l.batch = l.batch[:0]
	}
}

// goOn tells a [Job].Beside what is over, and has what it returns posted with the next ones.
func (l *lane) goOn(b beside, err error) error {
	if err != nil {
		err = fmt.Errorf("rank %d: %v: %w", l.x.rank, b.Transfer, err)
	}
	more, err := b.of(b.Transfer, err)
	if err != nil {
		return err
	}
	for _, t := range more {
		l.besides = append(l.besides, beside{t, b.of})
	}
	l.batch = append(l.batch, more...)
	return nil
}

// await waits until a message is received or sent.
func (l *lane) await(ctx context.Context) error {
	l.post()
	began := l.Trace.Now()
	missing := l.missing()
	l.watchdog.Start(missing.Rank)
	if l.Trace == nil { // which tells when each message came
		transport.Gather(l.queue, l.enough())
	}
	t, err := l.queue.Wait(ctx)
	err = l.watchdog.Stop(err)
	t = cmp.Or(t, missing)
	if i := slices.IndexFunc(l.besides, func(b beside) bool { return b.Transfer == t }); i >= 0 {
		b := l.besides[i]
		l.besides = slices.Delete(l.besides, i, i+1)
		return l.goOn(b, err)
	}
	id := t.ID
	if t.Receive {
		return l.received(id, began, err)
	}
	m, sent := &l.x.sends[id], &l.sends[id]
	l.recordMessage(trace.Settle, trace.Send, &m.message, len(m.slots), began, sent.began)
	if err != nil {
		return of(int(m.src), fmt.Errorf("round %d: send to processor %d: %w", m.round, m.dst, err))
	}
	sent.over = true
	l.sending--
	return nil
}

// received notes that a message is there, or that it has failed.
func (l *lane) received(id int, began int64, err error) error {
	m, t := &l.x.receives[id], &l.receives[id]
	l.recordMessage(trace.Wait, trace.Receive, &m.message, int(m.count), began, t.began)
	if wrong, ok := err.(*transport.LengthError); ok { // its round is that of the plan, not of the lane
		named := *wrong
		named.Tag.Round = int(m.round)
		err = &named
	}
	if err != nil {
		return of(int(m.dst), fmt.Errorf("round %d: receive from processor %d: %w", m.round, m.src, err))
	}
	if l.hasHeader(&m.message) {
		if err := l.Check(int(m.rank), t.Parts[0]); err != nil {
			return of(int(m.dst), fmt.Errorf("round %d: %w", m.round, err))
		}
	}
	t.over = true
	l.receiving--
	for l.oldest < len(l.receives) && l.receives[l.oldest].over {
		l.oldest++
	}
	if l.oldest < len(l.receives) {
		l.postReceives()
	}
	l.wake(m.wakes)
	return nil
}

// enough returns how many receives have to be over before anything follows for the packets, or less. What runs
// beside them can wait: in its first messages a return from each would cost more than it.
func (l *lane) enough() int {
	n := l.receiving
	for _, needs := range l.needs {
		if needs > 0 {
			n = min(n, needs)
		}
	}
	for i := 0; i < len(l.besides) && l.receiving == 0; i++ {
		if l.besides[i].Receive {
			n++
		}
	}
	return n
}

// missing returns the transfer that has been waited for the longest.
func (l *lane) missing() *transport.Transfer {
	if l.oldest < len(l.receives) {
		return &l.receives[l.oldest].Transfer
	}
	for id := range l.sends {
		if !l.sends[id].over {
			return &l.sends[id].Transfer
		}
	}
	return l.besides[0].Transfer
}

// settle waits until what was sent may be overwritten, and what runs beside has ended.
func (l *lane) settle(ctx context.Context) error {
	for l.sending > 0 || len(l.besides) > 0 {
		if err := l.await(ctx); err != nil {
			return err
		}
	}
	return nil
}
