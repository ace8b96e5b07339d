package executor

import (
	"context"
	"fmt"
	"slices"

	"volley/executor/internal/compile"
	"volley/executor/internal/run"
	"volley/transport"
)

// A mail carries the messages of a segment.
type mail struct {
	*segment
	queue       transport.Queue
	sends       []transport.Transfer // messages of the segment, by their IDs
	receives    []transport.Transfer
	batch       []*transport.Transfer // to be posted
	watchdog    transport.Watchdog
	headerBytes int64
}

func (box *mail) init(s *segment) {
	*box = mail{segment: s, queue: s.t.NewQueue(), sends: make([]transport.Transfer, len(s.x.Sends)), receives: make([]transport.Transfer, len(s.x.Receives))}
	box.watchdog.Transport, box.watchdog.Timeout = s.t, s.job.Timeout
	for k := range box.sends {
		box.sends[k].ID = k
	}
	for i := range box.receives {
		box.receives[i].ID, box.receives[i].Receive = i, true
	}
}

// hasHeader reports whether a message has a header: the first one of two ranks.
func (box *mail) hasHeader(m *compile.Message) bool {
	return m.First && box.offset == 0 && len(box.job.Header) > 0
}

// receive has a message asked for with the next post.
func (box *mail) receive(i int) {
	m, t := &box.x.Receives[i], &box.receives[i]
	start, end := m.Element, m.Element+m.Count
	for i := start; i < end; i++ {
		box.memory[i] = box.memory[i][:box.element]
	}
	if box.hasHeader(&m.Message) {
		start--
	}
	t.Parts = box.memory[start:end:end]
	box.add(t, &m.Message)
}

// send has a message sent with the next post.
func (box *mail) send(k int) {
	m, t := &box.x.Sends[k], &box.sends[k]
	if box.hasHeader(&m.Message) {
		box.headerBytes += int64(len(box.job.Header))
	}
	if m.Again {
		t.Parts = box.sends[k-1].Parts
	} else {
		t.Parts = slices.Grow(t.Parts[:0], 1+len(m.Slots))
		if box.hasHeader(&m.Message) {
			t.Parts = append(t.Parts, box.job.Header)
		}
		for _, slot := range m.Slots {
			t.Parts = append(t.Parts, box.memory[slot][:box.element])
		}
	}
	box.add(t, &m.Message)
}

// add has a transfer posted with the next ones.
func (box *mail) add(t *transport.Transfer, m *compile.Message) {
	t.Rank, t.Tag = int(m.Rank), transport.Tag{Round: transport.ControlRounds + box.number*box.x.Rounds + int(m.Round), Port: int(m.Port)}
	box.batch = append(box.batch, t)
}

// post posts what was added.
func (box *mail) post() {
	if len(box.batch) > 0 {
		box.queue.Post(box.batch...)
		box.batch = box.batch[:0]
	}
}

// wait posts, and waits until a message is received or sent, which it returns.
func (box *mail) wait(ctx context.Context, m *run.Interpreter) (run.Activity, error) {
	box.post()
	missing := box.missing(m)
	box.watchdog.Start(missing.Rank)
	transport.Gather(box.queue, m.Enough())
	t, err := box.queue.Wait(ctx)
	err = box.watchdog.Stop(err)
	if t == nil {
		t = missing
	}
	if t.Receive {
		return run.Activity{Action: run.Receive, Number: t.ID}, box.received(t.ID, err)
	}
	if err != nil {
		m := &box.x.Sends[t.ID]
		err = inProcessor(int(m.Src), fmt.Errorf("round %d: send to processor %d: %w", m.Round, m.Dst, err))
	}
	return run.Activity{Action: run.Send, Number: t.ID}, err
}

// received returns what is wrong with a message that is there.
func (box *mail) received(i int, err error) error {
	m, t := &box.x.Receives[i], &box.receives[i]
	if wrong, ok := err.(*transport.LengthError); ok { // its round is that of the plan, not of the pipeline
		named := *wrong
		named.Tag.Round = int(m.Round)
		err = &named
	}
	if err != nil {
		return inProcessor(int(m.Dst), fmt.Errorf("round %d: receive from processor %d: %w", m.Round, m.Src, err))
	}
	if box.hasHeader(&m.Message) {
		if err := box.job.Accept(int(m.Rank), t.Parts[0]); err != nil {
			return inProcessor(int(m.Dst), fmt.Errorf("round %d: %w", m.Round, err))
		}
	}
	return nil
}

// missing returns the transfer that has been waited for the longest.
func (box *mail) missing(m *run.Interpreter) *transport.Transfer {
	task := m.Missing()
	if task.Action == run.Receive {
		return &box.receives[task.Number]
	}
	return &box.sends[task.Number]
}
