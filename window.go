package volley

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
	"unsafe"

	"volley/algo"
	"volley/collective"
	"volley/executor"
	"volley/internal/runcheck"
	"volley/plan"
	"volley/sim"
	"volley/transport"
)

// Ranks of one host send no messages. All packets lie in memory that they share. It is as if one rank had all of them,
// whose work they divide: each takes a slice of every packet, from the same byte to the same byte, and computes that slice
// of every coded packet. They meet before it, when all packets are there, and after it. Packets that lie elsewhere are
// copied to the stage and back, in segments that stay in the cache.
//
// Several hosts, with as many ranks on each, divide the work in the same way first: a host is given a slice of every packet,
// and codes this slice of every coded packet. The i-th ranks of all hosts send each other the slices before, and those of the
// coded packets after. Of H hosts with n packets each, a host sends n(H-1)/H packets before, and as many after.

// Share makes memory of so many bytes for each rank of t, which all read and write, for the packets and results of
// [Encoder.Bind]; a rank's own are Parts[t.Rank()]. All ranks call it with the same number. It returns
// [collective.ErrApart] where they do not run on one host. Close gives the memory back when no Bound has it any more.
func Share(ctx context.Context, t transport.Transport, bytes int, timeout time.Duration) (*transport.Window, error) {
	if err := transport.CheckTimeout(timeout); err != nil {
		t.Abort(err)
		return nil, inputf("volley: %w", err)
	}
	return collective.New(t, timeout).Share(ctx, bytes)
}

// mostTogether bounds the processors of a host whose programs every rank has.
const mostTogether = 256

// stagedBytes returns how much of a packet is on the stage at a time, with so many processors. Long segments take
// fewer meetings, and by measurement less time for a byte. All of them together are to stay in a cache.
func stagedBytes(n int) int { return max(256<<10, (2<<20)/n) }

// hosts says which ranks share memory.
type hosts struct {
	local  transport.Transport // the ranks of this host
	byHost [][]int             // the ranks of each host: their i-th have the same place on each host's stage
	index  int                 // which of these is this one
}

// hosts returns which ranks of t share memory, or nil where packets go by messages of a plan: no ranks do, or somebody wants
// such a plan.
func (e *Encoder) hosts(t transport.Transport) *hosts {
	o := &e.options
	named := o.plan != nil || o.algorithm != algo.Auto || o.paper || o.wholePackets || o.order != algo.Natural || o.limits != algo.Limits{}
	h := &hosts{local: transport.OnHost(t)}
	if h.local == nil || named || transport.HostOf(h.local).Unshared != nil || e.problem.Processors() > mostTogether {
		return nil
	}
	h.byHost, h.index = transport.Hosts(t)
	perHost := h.local.Size()
	if perHost == 1 || slices.ContainsFunc(h.byHost, func(ranks []int) bool { return len(ranks) != perHost }) {
		return nil
	}
	return h
}

// A stage says where packets and results lie on the stage of this host.
type stage struct {
	*hosts
	window        *transport.Window
	spots         []spot // of the processors of all hosts
	stride, bytes int    // of a packet: from one to the next, and used of it
}

// A spot is a processor's place on the stage: of which rank of the host, and which one there.
type spot struct{ rank, index int }

// stage returns the stage of a run, or nil where it goes by messages.
func (e *Encoder) stage(
	ctx context.Context, c *collective.Comm, t transport.Transport, shared settings,
) (*stage, error) {
	h := e.hosts(t) // none also where memory was refused since
	if shared.Apart != 0 || h == nil {
		return nil, nil
	}
	n, perRank := e.problem.Processors(), 0
	s := &stage{hosts: h, spots: make([]spot, n)}
	for i := range h.local.Size() {
		index := 0
		for _, ranks := range h.byHost {
			first, end := executor.Hosted(n, ranks[i], t.Size())
			for proc := first; proc < end; proc++ {
				s.spots[proc] = spot{i, index}
				index++
			}
		}
		perRank = max(perRank, index)
	}
	unit := int64(sliceUnit(e.matrix.Field().SymbolBytes()))
	limit := int64(stagedBytes(n))
	if len(h.byHost) > 1 {
		limit = exchangedBytes
	}
	limit = min(limit, e.options.memory/int64(2*perRank)) / unit * unit
	if limit == 0 {
		return nil, nil
	}
	_, part := h.part(int(shared.Bytes), 0, int(unit))
	s.bytes = min(int(limit), (part+int(unit)-1)/int(unit)*int(unit))
	s.stride = s.bytes + apartBytes
	var err error
	// for packets of any length: only what is touched takes memory
	s.window, err = collective.New(h.local, e.options.timeout).Stage(ctx, 2*perRank*int(limit+apartBytes))
	host := transport.HostOf(h.local)
	if told := host.Aborted(); told != nil {
		return nil, told // in which ranks have the numbers of t
	}
	if err != nil && host.Unshared == nil {
		return nil, err
	}
	if len(h.byHost) > 1 {
		refused, err := collective.AllgatherValues(ctx, t, host.Unshared != nil, e.options.timeout)
		if err != nil {
			return nil, err
		}
		if slices.Contains(refused, true) {
			host.Unshared = cmp.Or(host.Unshared, errors.New("the ranks of another host cannot share memory"))
		}
	}
	if host.Unshared != nil {
		return nil, nil
	}
	return s, nil
}

// exchangedBytes is how much of a packet a host is given at a time, in messages of some of these.
const exchangedBytes = 1 << 20

// part returns the part of n bytes that a host codes.
func (h *hosts) part(n, host, unit int) (start, end int) {
	return transport.Slice(n, len(h.byHost), host, unit)
}

// apartBytes is what packets on the stage lie apart: equal offsets in many of them would share few sets of a cache.
const apartBytes = 192

// sliceUnit is what slices are multiples of: whole lines of a cache, and whole symbols.
func sliceUnit(symbol int) int {
	unit := symbol
	for unit%64 != 0 {
		unit += symbol
	}
	return unit
}

// packet returns the place of a processor's packet or result, of so many bytes.
func (s *stage) packet(proc int, result bool, bytes int) []byte {
	spot := s.spots[proc]
	i := 2 * spot.index
	if result {
		i++
	}
	return s.window.Parts[spot.rank][i*s.stride:][:bytes:bytes]
}

// cost returns what the exchange of slices between hosts costs: each host sends of every packet that it has the slices
// of the others, and later of every result of the others its own.
func (s *stage) cost(e *Encoder, ranks int) sim.Cost {
	var sent, returned sim.NodeRound
	n, peers := e.problem.Processors(), len(s.byHost)-1
	for _, host := range s.byHost {
		sources, sinks := 0, 0
		for _, rank := range host {
			rankSources, rankSinks := e.ends(executor.Hosted(n, rank, ranks))
			sources, sinks = sources+rankSources, sinks+rankSinks
		}
		sent.Elements = max(sent.Elements, float64(max(sources*peers, e.matrix.Rows()-sources)))
		returned.Elements = max(returned.Elements, float64(max(sinks*peers, e.matrix.Cols()-sinks)))
	}
	sent.Messages, returned.Messages = peers, peers
	return sim.Cost{C1: 2, Pieces: len(s.byHost), Nodes: []sim.NodeRound{sent, returned}}
}

// ends counts the sources and the sinks among the processors [first, end).
func (e *Encoder) ends(first, end int) (sources, sinks int) {
	for proc := first; proc < end; proc++ {
		if _, source := e.problem.Source(proc); source {
			sources++
		}
		if _, sink := e.problem.Sink(proc); sink {
			sinks++
		}
	}
	return sources, sinks
}

// pays reports whether the exchange takes no longer than a plan by messages, by the model of the network that has chosen
// it, in which the ranks of a host have one link. The plan keeps the answer: to count its messages takes up to 0.1 s.
func (s *stage) pays(e *Encoder, ranks int, chosen *chosenPlan, model sim.Model) bool {
	chosen.mu.Lock()
	defer chosen.mu.Unlock()
	if chosen.hosts != nil && slices.EqualFunc(chosen.hosts, s.byHost, slices.Equal) {
		return chosen.slower
	}
	hostOf := make([]int, ranks)
	for host, list := range s.byHost {
		for _, rank := range list {
			hostOf[rank] = host
		}
	}
	rank := func(proc int) int { return executor.RankOf(proc, e.problem.Processors(), ranks) }
	between := sim.CountBetween(chosen, rank, func(proc int) int { return hostOf[rank(proc)] })
	chosen.hosts, chosen.slower = s.byHost, model.Time(s.cost(e, ranks)) <= model.Time(between)
	return chosen.slower
}

// inProcess returns the model of the same packets, all in the memory of one process.
func inProcess(m sim.Model) sim.Model {
	network, _ := sim.ParseNetwork("process") // which is a preset
	return sim.Model{Network: network, Gamma: cmp.Or(m.Gamma, sim.ProcessGamma), Bytes: m.Bytes, SymbolBytes: m.SymbolBytes}
}

// sharedMemory is the way of ranks that share memory.
type sharedMemory struct {
	*Bound
	plan  plan.Plan
	stage *stage
	alone transport.Transport // of the ranks of this host
	unit  int                 // of slices, bytes

	scratch [][]byte // of the packets here, where not all of one is in memory; of several hosts

	bound   *executor.Bound // codes a slice of everything
	inputs  []executor.Input
	outputs []executor.Output
	sources []int    // the processors of inputs
	sinks   []int    // and of outputs
	data    [][]byte // packets, where all lie in windows, else nil
	coded   [][]byte // and results

	relation *runcheck.RelationCheck // nil: without the check

	sent    int64  // bytes to other hosts, in the last run
	says    uint64 // at meetings, and the number of the run
	located [4]int // what locate was called with last
}

// throughWindow makes the way through shared memory ready.
func (b *Bound) throughWindow(chosen *chosenPlan, executable *executor.Executable, stage *stage, windows []*transport.Window) (carrier, error) {
	e := b.e
	symbol := e.matrix.Field().SymbolBytes()
	w := &sharedMemory{Bound: b, plan: chosen.Plan, stage: stage, alone: transport.Alone(stage.local), unit: sliceUnit(symbol), scratch: make([][]byte, len(b.packets))}
	for proc := range e.problem.Processors() {
		if _, source := e.problem.Source(proc); source {
			w.sources = append(w.sources, proc)
		}
		if _, sink := e.problem.Sink(proc); sink {
			w.sinks = append(w.sinks, proc)
		}
	}
	w.inputs, w.outputs = make([]executor.Input, len(w.sources)), make([]executor.Output, len(w.sinks))
	note := "all ranks are on one host: no messages, each codes a slice of every packet in memory that they share"
	if hosts := len(stage.byHost); hosts > 1 {
		note = fmt.Sprintf("%d ranks on each of %d hosts: hosts exchange slices of packets, and each codes one in memory that its ranks share", stage.local.Size(), hosts)
		b.report.Pieces = hosts // of which messages are, and C1 and C2
	} else if err := w.find(windows); err != nil {
		return nil, err
	}
	digest := b.digest()
	w.says = binary.LittleEndian.Uint64(digest[:])
	_, n := stage.part(min(w.step(), int(b.shared.Bytes)), 0, w.unit)
	_, longest := transport.Slice(n, stage.local.Size(), 0, w.unit) // of any rank, so that any slice has room: a shorter segment may give this rank more
	w.locate(0, n, 0, longest)
	segment, _, err := chosen.segment(int64(longest), e.options.memory, int64(w.unit), 1, false)
	if err != nil {
		return nil, b.c.SharedError(b.ctx, err)
	}
	b.report.Notes = append(slices.Clip(b.report.Notes), note)
	job := executor.Job{
		Executable: executable, Bytes: int64(longest), Segment: segment, Align: int64(w.unit), Inputs: w.inputs, Outputs: w.outputs,
	}
	if e.options.check {
		if w.relation, err = e.checker.Relation(b.ctx, chosen, transport.Cores(b.t)); err != nil {
			return nil, err
		}
		job.ObserveAll = w.relation.Observe
	}
	w.bound, err = executor.Bind(context.WithoutCancel(b.ctx), w.alone, job)
	return w, err
}

// find finds packets and results in the windows. All ranks call it. Where one lies elsewhere, all go over the stage.
func (w *sharedMemory) find(windows []*transport.Window) error {
	if windows == nil {
		return nil // a run by itself has none
	}
	type location struct {
		Window uint64 // its ID
		Offset int    // -1: elsewhere
	}
	type locations struct {
		Windows          []uint64
		Packets, Results []location
	}
	var mine locations
	known := map[uint64]*transport.Window{}
	for _, window := range windows {
		if window.Fits(w.t) {
			known[window.ID] = window
			mine.Windows = append(mine.Windows, window.ID)
		}
	}
	locationOf := func(memory []byte, wanted bool) location {
		for id, window := range known {
			part := window.Parts[w.t.Rank()]
			offset := int(uintptr(unsafe.Pointer(unsafe.SliceData(memory))) - uintptr(unsafe.Pointer(unsafe.SliceData(part))))
			if wanted && offset >= 0 && offset <= len(part)-len(memory) && int64(len(memory)) == w.shared.Bytes {
				return location{id, offset}
			}
		}
		return location{Offset: -1}
	}
	for i := range w.packets {
		p := &w.packets[i]
		result := []byte(nil)
		if p.Result != nil {
			result = *p.Result
		}
		mine.Packets, mine.Results = append(mine.Packets, locationOf(p.Data, p.Source == nil)), append(mine.Results, locationOf(result, p.Coded == nil))
	}
	byRank, err := collective.AllgatherValues(w.ctx, w.t, mine, w.e.options.timeout)
	if err != nil {
		return err
	}
	for _, theirs := range byRank { // what one rank does not give, none uses
		maps.DeleteFunc(known, func(id uint64, _ *transport.Window) bool { return !slices.Contains(theirs.Windows, id) })
	}
	var data, coded [][]byte
	add := func(list *[][]byte, proc int, listOf func(locations) []location) (found bool) {
		rank := w.stage.spots[proc].rank
		position := listOf(byRank[rank])[w.stage.spots[proc].index]
		window := known[position.Window]
		if window == nil || position.Offset < 0 {
			return false
		}
		*list = append(*list, window.Parts[rank][position.Offset:][:w.shared.Bytes])
		return true
	}
	for _, proc := range w.sources {
		if !add(&data, proc, func(p locations) []location { return p.Packets }) {
			return nil
		}
	}
	for _, proc := range w.sinks {
		if !add(&coded, proc, func(p locations) []location { return p.Results }) {
			return nil
		}
	}
	w.data, w.coded = data, coded
	return nil
}

// step returns how many bytes of packets lie where others read them at a time, at all hosts together.
func (w *sharedMemory) step() int {
	if w.data != nil {
		return max(1, int(w.shared.Bytes))
	}
	return max(1, w.stage.bytes*len(w.stage.byHost))
}

// packetOf returns the packet of a processor that is here, else nil.
func (w *sharedMemory) packetOf(proc int) *Packet {
	if i := proc - w.first; 0 <= i && i < len(w.packets) {
		return &w.packets[i]
	}
	return nil
}

// inMemory reports whether the rank that has a packet uses n bytes of it, from the offset on, where they lie.
func (p *Packet) inMemory(offset, n int) bool { return p.Source == nil && offset+n <= len(p.Data) }

// locate has the executor code the bytes [start, end) of the n that are on the stage, which begin at the offset in packets.
func (w *sharedMemory) locate(offset, n, start, end int) {
	if last := w.located; last == [...]int{offset, n, start, end} && w.bound != nil {
		return
	}
	w.located = [...]int{offset, n, start, end}
	for i, proc := range w.sources {
		switch p := w.packetOf(proc); {
		case w.data != nil:
			w.inputs[i].Memory = w.data[i][start:end:end]
		case p != nil && p.inMemory(offset, n):
			w.inputs[i].Memory = p.Data[offset+start:][:end-start]
		default:
			w.inputs[i].Memory = w.stage.packet(proc, false, n)[start:end:end]
		}
	}
	for i, proc := range w.sinks {
		switch p := w.packetOf(proc); {
		case w.data != nil:
			w.outputs[i].Memory = w.coded[i][start:end:end]
		case p != nil && p.Coded == nil:
			w.outputs[i].Memory = (*p.Result)[offset+start:][:end-start]
		default:
			w.outputs[i].Memory = w.stage.packet(proc, true, n)[start:end:end]
		}
	}
	if w.bound != nil {
		w.bound.SetBytes(int64(end - start))
	}
}

func (w *sharedMemory) run() error {
	says := w.says + w.shared.Seed
	bytes := int(w.shared.Bytes)
	w.sent = 0
	for offset := 0; offset < bytes || offset == 0; offset += w.step() {
		n := min(w.step(), bytes-offset)
		if w.ctx.Err() != nil { // without the check too
			return context.Cause(w.ctx)
		}
		if err := w.copyIn(offset, n, says); err != nil {
			return err
		}
		if err := w.meet(says); err != nil {
			return err
		}
		start, end := w.stage.part(n, w.stage.index, w.unit)
		if err := w.code(offset+start, end-start); err != nil {
			return err
		}
		if err := w.meet(says); err != nil {
			return err
		}
		if err := w.copyOut(offset, n, says); err != nil {
			return err
		}
	}
	w.check = w.relation.Took()
	switch { // all have their coded packets
	case w.relation == nil || w.data != nil:
		return nil
	case len(w.stage.byHost) > 1:
		return w.c.Barrier(w.ctx)
	}
	return w.meet(says)
}

// meet waits until all ranks have come, which are at the same run.
func (w *sharedMemory) meet(says uint64) error {
	ranks, timeout := w.stage.byHost[w.stage.index], w.e.options.timeout
	overdue := func(rank int) error { return transport.TimedOut(w.t, ranks[rank], timeout) }
	peer, err := w.stage.window.Meet(w.ctx, transport.HostOf(w.stage.local), says, timeout, overdue)
	if err == nil && peer >= 0 {
		err = w.disagreement(ranks[peer])
	}
	return err
}

// slice returns this rank's slice of n bytes on the stage.
func (w *sharedMemory) slice(n int) (start, end int) {
	return transport.Slice(n, w.stage.local.Size(), w.stage.local.Rank(), w.unit)
}

// code codes this rank's slice of the n bytes on the stage, which begin at the offset in packets, and checks it.
func (w *sharedMemory) code(offset, n int) error {
	start, end := w.slice(n)
	if start == end {
		return nil
	}
	w.locate(offset, n, start, end)
	return w.bound.Run()
}

// copyIn copies n bytes of the packets here to the stage, but those that this rank codes itself, and looks whether they
// are symbols. Of several hosts each gets its part.
func (w *sharedMemory) copyIn(offset, n int, says uint64) error {
	f := w.e.matrix.Field()
	if w.data != nil { // all lie where others read them, whole
		for i := range w.packets {
			if err := w.packets[i].validateSymbols(f, w.packets[i].Data, 0); err != nil {
				return fmt.Errorf("processor %d: %w", w.first+i, err)
			}
		}
		return nil
	}
	first, end := w.stage.part(n, w.stage.index, w.unit)
	sliceStart, sliceEnd := w.slice(end - first)
	segments := make([][]byte, 0, mostFew)
	for _, proc := range w.sources {
		p := w.packetOf(proc)
		if p == nil {
			continue
		}
		staged := w.stage.packet(proc, false, min(end-first, w.stage.bytes))
		segment, read, err := w.segmentOf(proc, offset, n, staged)
		if err != nil {
			return fmt.Errorf("processor %d: read its packet: %w", proc, err)
		}
		if err := p.validateSymbols(f, segment[:read], int64(offset)); err != nil {
			return fmt.Errorf("processor %d: %w", proc, err)
		}
		segments = append(segments, segment)
		switch part := segment[first:end]; {
		case len(part) == 0 || &part[0] == &staged[0]:
		case p.inMemory(offset+first, end-first):
			copy(staged[:sliceStart], part)
			copy(staged[sliceEnd:], part[sliceEnd:])
		default:
			copy(staged, part)
		}
	}
	return w.exchange(says, false, segments, n)
}

// mostFew is how many packets at a rank make no garbage.
const mostFew = 8

// segmentOf returns n bytes of a packet here, from the offset on, and how many of them it has, which zeros follow: where they
// lie, or on the stage if that has room for all of them.
func (w *sharedMemory) segmentOf(proc, offset, n int, staged []byte) (segment []byte, read int, err error) {
	p := w.packetOf(proc)
	if p.inMemory(offset, n) {
		return p.Data[offset:][:n], n, nil
	}
	if segment = staged; len(w.stage.byHost) > 1 {
		segment = w.buffer(proc, n)
	}
	if p.Source == nil {
		read = copy(segment, p.Data[min(offset, len(p.Data)):])
	} else {
		reader := packetReader{p.Source, p.Size}
		if read, err = reader.ReadAt(segment, int64(offset)); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	clear(segment[read:])
	return segment, read, err
}

// buffer returns memory for n bytes of a packet here.
func (w *sharedMemory) buffer(proc, n int) []byte {
	b := &w.scratch[proc-w.first]
	if len(*b) < n {
		*b = make([]byte, n)
	}
	return (*b)[:n]
}

// exchange has the ranks of equal index on all hosts send each other their parts of packets, or of results, of n bytes:
// of the processors here there are segments, in order.
func (w *sharedMemory) exchange(says uint64, results bool, segments [][]byte, n int) error {
	if len(w.stage.byHost) == 1 {
		return nil
	}
	index, procs := w.stage.local.Rank(), w.sources
	if results {
		procs = w.sinks
	}
	first, end := w.stage.part(n, w.stage.index, w.unit)
	mine := binary.LittleEndian.AppendUint64(nil, says)
	var theirs [][]byte
	var transfers []*transport.Transfer
	for host, ranks := range w.stage.byHost {
		if host == w.stage.index {
			continue
		}
		partStart, partEnd := w.stage.part(n, host, w.unit)
		header := make([]byte, len(mine))
		away, part := [][]byte{}, [][]byte{} // for that host of what is here, and for this one of what is there
		for _, s := range segments {
			away = append(away, s[partStart:partEnd])
		}
		firstThere, endThere := executor.Hosted(w.e.problem.Processors(), ranks[index], w.t.Size())
		for _, proc := range procs {
			if firstThere <= proc && proc < endThere {
				part = append(part, w.stage.packet(proc, results, end-first))
			}
		}
		send, receive := away, part
		if results {
			send, receive = part, away
		}
		theirs = append(theirs, header)
		transfers = append(transfers,
			&transport.Transfer{Rank: ranks[index], Receive: true, Parts: append(receive, header)},
			&transport.Transfer{Rank: ranks[index], Parts: append(send, mine)})
		for _, p := range send {
			w.sent += int64(len(p))
		}
	}
	if err := w.c.Exchange(w.ctx, transfers); err != nil {
		return err
	}
	for i, header := range theirs {
		if !bytes.Equal(header, mine) {
			return w.disagreement(transfers[2*i].Rank)
		}
	}
	return nil
}

// copyOut copies n bytes of the results here from the stages.
func (w *sharedMemory) copyOut(offset, n int, says uint64) error {
	if w.data != nil {
		return nil
	}
	first, end := w.stage.part(n, w.stage.index, w.unit)
	sliceStart, sliceEnd := w.slice(end - first)
	segments := make([][]byte, 0, mostFew)
	for _, proc := range w.sinks {
		p := w.packetOf(proc)
		if p == nil {
			continue
		}
		staged := w.stage.packet(proc, true, end-first)
		segment := staged
		switch {
		case p.Coded == nil:
			segment = (*p.Result)[offset:][:n]
			copy(segment[first:][:sliceStart], staged)
			copy(segment[first+sliceEnd:end], staged[sliceEnd:])
		case len(w.stage.byHost) > 1:
			segment = w.buffer(proc, n)
			copy(segment[first:end], staged)
		}
		segments = append(segments, segment)
	}
	if err := w.exchange(says, true, segments, n); err != nil {
		return err
	}
	for _, proc := range w.sinks {
		if p := w.packetOf(proc); p != nil {
			if p.Coded != nil {
				if _, err := p.Coded.WriteAt(segments[0], int64(offset)); err != nil {
					return fmt.Errorf("processor %d: write its coded packet: %w", proc, err)
				}
			}
			segments = segments[1:]
		}
	}
	return nil
}

// traffic returns what the processors here did. On one host no message is sent; of several, the rank's messages are counted
// at its first processor, in elements of a slice for one host.
func (w *sharedMemory) traffic() []executor.Traffic {
	list := w.bound.Traffic()[w.first:][:len(w.packets)]
	hosts, pieces := len(w.stage.byHost), w.plan.Info().PieceCount()
	for i := range list {
		list[i] = executor.Traffic{MultiplyAdds: list[i].MultiplyAdds, Segments: max(1, (int(w.shared.Bytes)+w.step()-1)/w.step())}
		if hosts > 1 {
			list[i].MultiplyAdds = list[i].MultiplyAdds * hosts / pieces
			list[i].Bytes = w.sent / int64(len(list))
		}
	}
	if hosts > 1 {
		sources, sinks := w.e.ends(w.first, w.first+len(list)) // sinks at ranks that get results: as many as here
		list[0].Rounds = []plan.RoundTraffic{{Largest: sources, Messages: hosts - 1}, {Largest: sinks, Messages: hosts - 1}}
	}
	return list
}

func (w *sharedMemory) close() { w.bound.Close() }
