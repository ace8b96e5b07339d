package volley

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"volley/collective"
	"volley/executor"
	"volley/internal/runcheck"
	"volley/transport"
	"volley/verify"
)

// Run runs an all-to-all encode as the processors at the transport's rank, which [executor.Hosted] names: there is a
// packet for each, in order. A transport of as many ranks as processors has one at each rank; the only rank of a
// local.New(1) has all, and runs them on all cores. See [Encode] for what the packets are. The report counts what all
// processors at the rank did. Runs of one transport follow one another.
//
// Before any data moves the processors compare what they are about to do; [Encoder.Bind] has them do so once for many
// runs. Then they check the result, see [WithCheck]: Run returns nil only when the coded packets of all processors are
// right. A failure ends the run at all processors; the transport is then of no more use, nor is what has been written.
// The error is, or wraps,
//
//   - a *[collective.PeerError], at every processor, where they are other programs, versions or verbs;
//   - a *[DisagreementError], at every processor, where they have different matrices
//     or options;
//   - a *verify.CheckError, where a coded packet is wrong: the processor's, or one of its host that it has coded a part of;
//   - a *[SymbolError], where its packet holds a symbol outside the field;
//   - a *[MemoryError], where [WithMemory] allows too little;
//   - a *[PlanError], before anything is sent, where the transport cannot carry the plan of [WithPlan];
//   - one that wraps a *transport.LimitsError, where it carries no plan of the algorithm;
//   - the error of a Source or a Coded, io.ErrUnexpectedEOF where a Source ends before Size;
//   - executor.ErrTimeout, where a message took longer than [WithTimeout] allows;
//   - the cause of ctx, where that ended, also while it plans or compiles;
//   - a *transport.AbortError, where another processor failed first: it names
//     that one and wraps its error, across processes perhaps only the text of it.
func (e *Encoder) Run(ctx context.Context, t transport.Transport, packets ...Packet) (*Report, error) {
	b, err := e.bind(ctx, t, packets, nil)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := b.run(); err != nil {
		return nil, err
	}
	return b.Report(), nil
}

// A Bound is a run of an encoder that is ready to be run any number of times, one after the other, on packets that lie
// where they lay. Everything that does not depend on their bytes is done: without the check, a run in memory allocates
// nothing. It is what MPI-4 calls a persistent collective.
type Bound struct {
	e       *Encoder
	ctx     context.Context
	t       transport.Transport
	c       *collective.Comm
	packets []Packet
	first   int      // processor here
	shared  settings // what all have agreed on; Seed is that of the run
	report  *Report
	plan    [sha256.Size]byte // its hash
	carrier carrier

	began       time.Time     // the run, or the making of the Bound
	check, took time.Duration // of the last run
}

// A carrier is how packets get from rank to rank.
type carrier interface {
	// run runs once. It returns once all coded packets are there and, unless that is left out, right.
	run() error

	// traffic returns what the processors here sent in the last run.
	traffic() []executor.Traffic

	close()
}

// Bind makes a run ready. All ranks call it, and later run as often as each other. Packets and results are those of
// [Encoder.Run], all in memory or behind readers and writers that are read and written anew in each run; *Result stays the
// same memory. Where the ranks run on one host, and all packets and results lie in windows of [Share] that every rank gives,
// they are used where they lie. All runs end when ctx does. The errors are those of Run.
func (e *Encoder) Bind(ctx context.Context, t transport.Transport, packets []Packet, windows ...*transport.Window) (*Bound, error) {
	return e.bind(ctx, t, packets, append([]*transport.Window{}, windows...))
}

// Run runs once. An error, of which [Encoder.Run] has the list, is the end of the Bound.
func (b *Bound) Run() error {
	b.began = time.Now()
	b.shared.Seed++ // no two runs have the same
	return b.run()
}

// Close gives back what the Bound holds, when no run is under way. The transport, the packets and the windows are the
// caller's.
func (b *Bound) Close() { b.carrier.close() }

// Report says what the last run did.
func (b *Bound) Report() *Report {
	r := *b.report
	r.Verified, r.CheckSeconds = b.e.options.check, b.check.Seconds()
	r.count(b.carrier.traffic())
	r.ControlRounds += b.c.Rounds
	r.ControlBytes += b.c.Bytes
	r.Seconds = b.took.Seconds()
	return &r
}

// run runs, and ends the group where that fails.
func (b *Bound) run() error {
	if err := b.carrier.run(); err != nil {
		b.e.failed(b.t, err)
		return err
	}
	b.took = time.Since(b.began)
	return nil
}

// failed ends the group for an error that is not another rank's.
func (e *Encoder) failed(t transport.Transport, err error) {
	e.checker.Forget()
	if !errors.As(err, new(*transport.AbortError)) {
		t.Abort(err)
	}
}

// bind makes a run ready.
func (e *Encoder) bind(ctx context.Context, t transport.Transport, packets []Packet, windows []*transport.Window) (b *Bound, err error) {
	b = &Bound{e: e, ctx: ctx, t: t, packets: packets, began: time.Now()}
	defer func() {
		if err != nil {
			e.failed(t, err)
		}
	}()
	size, err := b.longest()
	if err != nil {
		return nil, err
	}
	tags := transport.LimitsOf(t)
	if err := e.carried(tags); err != nil {
		return nil, err // as all ranks find
	}
	b.c = collective.New(t, e.options.timeout)
	start := time.Now()
	shared, err := e.agree(ctx, b.c, t, size)
	var stage *stage
	if err == nil {
		stage, err = e.stage(ctx, b.c, t, shared)
	}
	took := time.Since(start)
	if err != nil {
		return nil, err
	}
	b.shared = shared
	if err := apart(packets, b.first, shared.Bytes); err != nil {
		return nil, inputf("volley: %w", err)
	}
	for i := range packets {
		if _, sink := e.problem.Sink(b.first + i); sink && packets[i].Coded == nil {
			packets[i].output(shared.Bytes)
		}
	}
	if err := b.ready(stage, windows); err != nil {
		return nil, err
	}
	b.report.AgreeSeconds = took.Seconds()
	return b, nil
}

// ready chooses and compiles the plan, and makes the way ready: over the stage, or by messages where there is none.
func (b *Bound) ready(stage *stage, windows []*transport.Window) error {
	e := b.e
	model, tags := b.shared.model(e.matrix.Field().SymbolBytes()), transport.LimitsOf(b.t)
	model.Network.Slower = e.options.network.Slower // as all have agreed
	rank, ranks := b.t.Rank(), b.t.Size()
	var chosen *chosenPlan
	var err error
	if stage == nil || len(stage.byHost) > 1 {
		chosen, err = e.choose(b.ctx, model, tags)
		if stage != nil && (err != nil || !stage.pays(e, ranks, chosen, model)) {
			stage = nil
		}
	}
	if stage != nil {
		model, tags, rank, ranks = inProcess(model), transport.Limits{}, 0, 1
		chosen, err = e.choose(b.ctx, model, tags)
	}
	if err != nil {
		return b.c.SharedError(b.ctx, err) // as all have agreed on
	}
	start := time.Now()
	b.report = e.reportOf(chosen, b.shared)
	hex.Decode(b.plan[:], []byte(b.report.PlanHash))
	executable, err := chosen.executable(b.ctx, rank, ranks)
	b.report.CompileSeconds = time.Since(start).Seconds()
	if err != nil {
		return err
	}
	if stage != nil {
		b.carrier, err = b.throughWindow(chosen, executable, stage, windows)
	} else {
		b.carrier, err = b.byMessages(chosen, executable)
	}
	return err
}

// longest returns the length of the longest packet here, or what is wrong with the packets.
func (b *Bound) longest() (size int64, err error) {
	e, t := b.e, b.t
	n := e.problem.Processors()
	if t.Size() > n {
		return 0, inputf("volley: a matrix for %d processors on a transport of %d ranks", n, t.Size())
	}
	first, end := executor.Hosted(n, t.Rank(), t.Size())
	b.first = first
	if len(b.packets) != end-first {
		return 0, inputf("volley: a matrix for %d processors on a transport of %d ranks: %d packets at rank %d, want those of processors %d to %d",
			n, t.Size(), len(b.packets), t.Rank(), first, end-1)
	}
	for i, p := range b.packets {
		_, source := e.problem.Source(first + i)
		_, sink := e.problem.Sink(first + i)
		if err := p.validate(e.matrix.Field(), source, sink); err != nil {
			return 0, inputf("volley: processor %d: %w", first+i, err)
		}
		size = max(size, p.bytes())
	}
	return size, nil
}

// digest says what the ranks have agreed on for a run: no message of an earlier one, or of another agreement, has it.
func (b *Bound) digest() (sum [sha256.Size]byte) {
	binary.LittleEndian.PutUint64(sum[copy(sum[:], b.plan[:len(sum)-8]):], b.shared.Seed)
	return sum
}

// disagreement is the error where a rank goes by another plan.
func (b *Bound) disagreement(rank int) error { return collective.OtherPlan(rank, b.t.Rank()) }

// messages are the way by messages of a plan.
type messages struct {
	*Bound
	*chosenPlan
	bound    *executor.Bound
	header   [sha256.Size]byte
	block    int                        // symbols, of fingerprints
	prints   *runcheck.FingerprintCheck // of one of several ranks
	relation *runcheck.RelationCheck    // of the only rank
}

// byMessages makes the way by messages ready.
func (b *Bound) byMessages(chosen *chosenPlan, executable *executor.Executable) (carrier, error) {
	e, t := b.e, b.t
	m := &messages{Bound: b, chosenPlan: chosen}
	m.block = verify.BlockSymbols(b.report.SymbolsPerPacket, chosen.Info().PieceCount())
	align := int64(m.block * e.matrix.Field().SymbolBytes())
	segment, ahead, err := chosen.segment(b.shared.Bytes, e.options.memory, align, t.Size(), transport.Overlaps(t))
	if err != nil {
		return nil, b.c.SharedError(b.ctx, err)
	}
	job := executor.Job{
		Executable: executable, Bytes: b.shared.Bytes, Segment: segment, Align: align, Ahead: ahead,
		Header: m.header[:],
		Accept: func(rank int, theirs []byte) error {
			if !bytes.Equal(theirs, m.header[:]) {
				return b.disagreement(rank)
			}
			return nil
		},
		Timeout: e.options.timeout,
		Inputs:  make([]executor.Input, 0, len(b.packets)),
		Outputs: make([]executor.Output, 0, len(b.packets)),
	}
	for i, packet := range b.packets {
		if _, source := e.problem.Source(b.first + i); source {
			job.Inputs = append(job.Inputs, packet.input(e.matrix.Field()))
		}
		if _, sink := e.problem.Sink(b.first + i); sink {
			job.Outputs = append(job.Outputs, packet.output(b.shared.Bytes))
		}
	}
	switch {
	case e.options.check && t.Size() == 1:
		if m.relation, err = e.checker.Relation(b.ctx, chosen, transport.Cores(t)); err != nil {
			return nil, err
		}
		job.ObserveAll = m.relation.Observe
	case e.options.check:
		job.Observe = func(proc int, inputs, outputs [][]byte) error { return m.prints.Observe(proc, inputs, outputs) }
	}
	m.bound, err = executor.Bind(b.ctx, t, job)
	return m, err
}

func (m *messages) run() error {
	m.header = m.digest()
	if m.e.options.check && m.relation == nil {
		m.prints = m.e.checker.Fingerprints(m.t, m.c, m.Plan, m.shared.Seed, m.block)
	}
	if err := m.bound.Run(); err != nil {
		return err
	}
	m.check = m.relation.Took()
	if x := m.prints; x != nil {
		start := time.Now()
		if err := x.Finish(m.ctx); err != nil {
			return err
		}
		m.check = time.Since(start) + x.Took()
		m.c.Rounds += x.Comm.Rounds
		m.c.Bytes += x.Comm.Bytes
	}
	return nil
}

func (m *messages) traffic() []executor.Traffic { return m.bound.Traffic() }

func (m *messages) close() { m.bound.Close() }

// segment returns how many bytes of packets are run at a time, a multiple of align, and
// whether two segments may be under way, all within bytes of memory for each processor; two are of
// use where messages overlap with computing, and need tags for twice the rounds. Without overlap a segment that stays in
// a cache until it is coded and checked is better, and without the tags one as long as memory allows. It returns a *[MemoryError] where these are too few.
func (c *chosenPlan) segment(bytes, memory, align int64, ranks int, overlaps bool) (n int64, ahead bool, err error) {
	pieces, slots := int64(c.Info().PieceCount()), int64(c.slots)
	if ranks == 1 {
		limit := bytes
		if pieces == 1 { // pieces are short by themselves
			limit = min(limit, maxSegment)
		}
		n, err = executor.SegmentBytes(c, c.slots, limit, memory, align)
		return n, n/pieces*(slots+2*pieces) <= memory, err
	}
	element, concurrent := int64(minMessage), 2 // under way, each of which takes all slots
	if !overlaps {
		element, concurrent = cachedElement, 1
	}
	count := max(1, bytes/(pieces*element))
	n, err = executor.SegmentBytes(c, c.slots, bytes, memory, align)
	two := c.tags.Carry(2*c.Info().Rounds(), c.Info().Ports) == nil
	if err != nil || count == 1 && n >= bytes || overlaps && !two {
		return n, false, err
	}
	if part, err := executor.SegmentBytes(c, concurrent*c.slots, (bytes+count-1)/count, memory, align); err == nil {
		return part, overlaps, nil
	}
	return n, false, nil // two are too much
}

// maxSegment bounds a segment at the only rank: longer ones only push each other out of the caches.
const maxSegment = 256 << 10

// minMessage is how many bytes of an element go in a message at least, where memory allows:
// each segment pays C1·β anew. A message of these takes 3 ms at 10 Gbit/s, against 20 µs to
// begin. Longer packets are cut, as one segment is coded while another is on its way.
const minMessage = 4 << 20

// cachedElement is how many bytes an element has about where messages do not overlap with computing: with 4 MiB
// and more, messages, coding and check read from memory, each by itself.
const cachedElement = 1 << 20
