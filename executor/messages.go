package executor

import (
	"context"
	"fmt"
	"slices"

	"volley/executor/internal/compile"
	"volley/executor/internal/run"
	"volley/trace"
	"volley/transport"
)

// A mail carries the messages of a segment, and of what runs beside it.
type mail struct {
	*segment
	queue       transport.Queue
	sends       []transfer
	receives    []transfer
	batch       []*transport.Transfer // to be posted
	besides     []beside              // transfers of Job.Beside that are not over
	watchdog    transport.Watchdog
	headerBytes int64
}

// A transfer is a message of the segment. Its ID is its number among the sends or the receives.
type transfer struct {
	transport.Transfer
	began int64
}

// A beside is a transfer of one of [Job].Beside.
type beside struct {
	*transport.Transfer
	of transport.Beside
}

func (l *mail) init(s *segment) {
	*l = mail{segment: s, queue: s.t.NewQueue(), sends: make([]transfer, len(s.x.Sends)), receives: make([]transfer, len(s.x.Receives))}
	l.watchdog.Transport, l.watchdog.Timeout = s.t, s.job.Timeout
	for k := range l.sends {
		l.sends[k].ID = k
	}
	for i := range l.receives {
		l.receives[i].ID, l.receives[i].Receive = i, true
	}
}

// hasHeader reports whether a message has a header: the first one of two ranks.
func (l *mail) hasHeader(m *compile.Message) bool {
	return m.First && l.offset == 0 && len(l.job.Header) > 0
}

// receive has a message asked for with the next post.
func (l *mail) receive(i int) {
	m, t := &l.x.Receives[i], &l.receives[i]
	at, end := m.At, m.At+m.Count
	for i := at; i < end; i++ {
		l.memory[i] = l.memory[i][:l.element]
	}
	if l.hasHeader(&m.Message) {
		at--
	}
	t.Parts = l.memory[at:end:end]
	l.add(t, &m.Message)
}

// send has a message sent with the next post.
func (l *mail) send(k int) {
	m, t := &l.x.Sends[k], &l.sends[k]
	if l.hasHeader(&m.Message) {
		l.headerBytes += int64(len(l.job.Header))
	}
	if m.Again {
		t.Parts = l.sends[k-1].Parts
	} else {
		t.Parts = slices.Grow(t.Parts[:0], 1+len(m.Slots))
		if l.hasHeader(&m.Message) {
			t.Parts = append(t.Parts, l.job.Header)
		}
		for _, slot := range m.Slots {
			t.Parts = append(t.Parts, l.memory[slot][:l.element])
		}
	}
	l.add(t, &m.Message)
}

// add has a transfer posted with the next ones.
func (l *mail) add(t *transfer, m *compile.Message) {
	t.Rank, t.Tag = int(m.Rank), transport.Tag{Round: transport.ControlRounds + l.number*l.x.Rounds + int(m.Round), Port: int(m.Port)}
	t.began = l.job.Trace.Now()
	l.batch = append(l.batch, &t.Transfer)
}

// post posts what was added.
func (l *mail) post() {
	if len(l.batch) > 0 {
		l.queue.Post(l.batch...)
		l.batch = l.batch[:0]
	}
}

// beginBesides begins what runs beside.
func (l *mail) beginBesides() error {
	for _, b := range l.job.Beside {
		if err := l.goOn(beside{of: b}, nil); err != nil {
			return err
		}
	}
	return nil
}

// goOn tells a [Job].Beside what is over, and has what it returns posted with the next ones.
func (l *mail) goOn(b beside, err error) error {
	if err != nil {
		err = fmt.Errorf("rank %d: %v: %w", l.x.Rank, b.Transfer, err)
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

// wait posts, and waits until a message is received or sent, which it returns, or something beside is over.
func (l *mail) wait(ctx context.Context, m *run.Machine) (run.Do, error) {
	l.post()
	began := l.job.Trace.Now()
	missing := l.missing(m)
	l.watchdog.Start(missing.Rank)
	if l.job.Trace == nil { // which tells when each message came
		transport.Gather(l.queue, l.enough(m))
	}
	t, err := l.queue.Wait(ctx)
	err = l.watchdog.Stop(err)
	if t == nil {
		t = missing
	}
	if i := slices.IndexFunc(l.besides, func(b beside) bool { return b.Transfer == t }); i >= 0 {
		b := l.besides[i]
		l.besides = slices.Delete(l.besides, i, i+1)
		return run.Do{}, l.goOn(b, err)
	}
	if t.Receive {
		return run.Do{What: run.Receive, Number: t.ID}, l.received(t.ID, began, err)
	}
	return run.Do{What: run.Send, Number: t.ID}, l.sent(t.ID, began, err)
}

// sent records that a send is over, and returns what has failed.
func (l *mail) sent(k int, began int64, err error) error {
	m := &l.x.Sends[k]
	l.noteMessage(trace.Settle, trace.Send, &m.Message, len(m.Slots), began, l.sends[k].began)
	if err != nil {
		return of(int(m.Src), fmt.Errorf("round %d: send to processor %d: %w", m.Round, m.Dst, err))
	}
	return nil
}

// received records that a message is there, and returns what is wrong with it.
func (l *mail) received(i int, began int64, err error) error {
	m, t := &l.x.Receives[i], &l.receives[i]
	l.noteMessage(trace.Wait, trace.Receive, &m.Message, int(m.Count), began, t.began)
	if wrong, ok := err.(*transport.LengthError); ok { // its round is that of the plan, not of the pipeline
		named := *wrong
		named.Tag.Round = int(m.Round)
		err = &named
	}
	if err != nil {
		return of(int(m.Dst), fmt.Errorf("round %d: receive from processor %d: %w", m.Round, m.Src, err))
	}
	if l.hasHeader(&m.Message) {
		if err := l.job.Accept(int(m.Rank), t.Parts[0]); err != nil {
			return of(int(m.Dst), fmt.Errorf("round %d: %w", m.Round, err))
		}
	}
	return nil
}

// enough returns how many receives have to be over before anything follows for the packets, or less. What runs
// beside them can wait: in its first messages a return from each would cost more than it.
func (l *mail) enough(m *run.Machine) int {
	n := m.Enough()
	for i := 0; i < len(l.besides) && m.Receiving() == 0; i++ {
		if l.besides[i].Receive {
			n++
		}
	}
	return n
}

// missing returns the transfer that has been waited for the longest.
func (l *mail) missing(m *run.Machine) *transport.Transfer {
	switch do := m.Missing(); do.What {
	case run.Receive:
		return &l.receives[do.Number].Transfer
	case run.Send:
		return &l.sends[do.Number].Transfer
	}
	return l.besides[0].Transfer
}
