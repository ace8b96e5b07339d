package explore

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"volley/plan"
	"volley/sim"
	"volley/transport"
	"volley/transport/late"
	"volley/verify"
)

// A pace is how slow messages are.
type pace struct {
	beta   time.Duration // each takes so long,
	tau    sim.PerByte   // and so long for each byte
	record int           // bytes of a record of the check, which is not slowed; -1: they may be taken for data
}

// paceOf returns the pace at which messages of a plan take the time of the model.
func paceOf(p plan.Plan, m sim.Model) pace {
	info := p.Info()
	symbol := info.Field.SymbolBytes()
	block := verify.BlockSymbols(m.Symbols(), info.Processors)
	element := int(m.Bytes)
	if pieces := info.PieceCount(); pieces > 1 { // which are cut where blocks end
		align := block * symbol
		element = (element + pieces*align - 1) / (pieces * align) * align
	}
	record := len(verify.NewFingerprint(info.Field, verify.Seed{}, block).Bytes())
	if record == element {
		record = -1
	}
	return pace{m.Beta, m.Tau, record}
}

// A link is a transport on which messages of packets arrive no earlier than the pace says.
// Those of the agreement on a run and of its check arrive at once, as far as they can be
// told by their length: a transport is not told what its messages are for.
type link struct {
	transport.Transport
	pace pace
	ctx  context.Context // what is under way ends with it

	mu   sync.Mutex   // guards what follows
	met  map[int]bool // ranks that were sent data
	late *late.Delays
}

func newLink(ctx context.Context, t transport.Transport, p pace) *link {
	l := &link{Transport: t, pace: p, ctx: ctx, met: map[int]bool{}}
	l.late = late.New(&l.mu)
	return l
}

// time returns how long a message takes. The caller holds l.mu.
func (l *link) time(dst int, parts [][]byte) time.Duration {
	// The first message of packets to a rank has a header, the hash of the plan. Before it
	// there is the agreement, the records of which are longer.
	control := func(part []byte) bool { return len(part) == 0 || len(part) == l.pace.record }
	if len(parts) > 1 && !l.met[dst] && len(parts[0]) == sha256.Size && !control(parts[1]) {
		l.met[dst] = true
		parts = parts[1:]
	}
	if len(l.met) == 0 || len(parts) == 0 || control(parts[0]) {
		return 0
	}
	bytes := 0
	for _, part := range parts {
		bytes += len(part)
	}
	return l.pace.beta + time.Duration(float64(bytes)*float64(l.pace.tau)*float64(time.Second))
}

// A slowQueue hands messages on when their time is over, and those of a stream in their order.
type slowQueue struct {
	transport.Queue
	link *link
}

// NewQueue returns an empty queue.
func (l *link) NewQueue() transport.Queue { return slowQueue{l.Transport.NewQueue(), l} }

func (q slowQueue) Post(transfers ...*transport.Transfer) {
	l := q.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range transfers {
		if t.Receive {
			q.Queue.Post(t)
		} else {
			l.late.Post(l.ctx, t.Rank, t.Tag, l.time(t.Rank, t.Parts), func() { q.Queue.Post(t) })
		}
	}
}

// Close closes the transport below once all messages are handed on.
func (l *link) Close() error {
	l.late.Wait()
	return l.Transport.Close()
}
