package volley

import (
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
	"volley/plan"
	"volley/sim"
	"volley/trace"
	"volley/transport"
)

// Ranks of one host send no messages. All packets lie in memory that they share. It is as if one rank had all of them,
// whose work they divide: each takes a slice of every packet, from the same byte to the same byte, and computes that slice
// of every coded packet. They meet before it, when all packets are there, and after it. Packets that lie elsewhere are
// copied to the stage and back, in segments that stay in the cache.

// Share makes memory of so many bytes for each rank of t, which all read and write, for the packets and results of
// [Encoder.Bind]; a rank's own are Parts[t.Rank()]. All ranks call it with the same number. It returns
// [collective.ErrApart] where they do not run on one host. Close gives the memory back when no Bound has it any more.
func Share(ctx context.Context, t transport.Transport, bytes int, timeout time.Duration) (*transport.Window, error) {
	return collective.New(t, timeout).Share(ctx, bytes)
}

// mostTogether bounds the processors of a host whose programs every rank has.
const mostTogether = 256

// stagedBytes returns how much of a packet is on the stage at a time, with so many processors. Long segments take
// fewer meetings, and by measurement less time for a byte. All of them together are to stay in a cache.
func stagedBytes(n int) int { return max(256<<10, (2<<20)/n) }

// A stage says where packets and results lie on the stage.
type stage struct {
	window      *transport.Window
	n, ranks    int // processors
	slot, bytes int // of a packet: from one to the next, and used of it
}

// apart reports whether packets of t go by messages: its ranks share no memory, or somebody wants a plan of messages.
func (e *Encoder) apart(t transport.Transport) bool {
	o := &e.options
	h := transport.HostOf(t)
	named := o.plan != nil || o.algorithm != algo.Auto || o.paper || o.whole || o.order != algo.Natural || o.limits != algo.Limits{}
	return h == nil || h.Unshared != nil || named || t.Size() == 1 || e.problem.Processors() > mostTogether
}

// stage returns the stage of a run, or nil where it goes by messages.
func (e *Encoder) stage(ctx context.Context, c *collective.Comm, t transport.Transport, shared own) (*stage, error) {
	if shared.Apart != 0 || e.apart(t) { // the latter also where memory was refused since
		return nil, nil
	}
	n := e.problem.Processors()
	each := (n + t.Size() - 1) / t.Size()
	s := &stage{n: n, ranks: t.Size()}
	unit := int64(sliceUnit(e.matrix.Field().SymbolBytes()))
	most := min(int64(stagedBytes(n)), e.options.memory/int64(2*each)) / unit * unit
	if most == 0 {
		return nil, nil
	}
	s.bytes = int(min(most, (shared.Bytes+unit-1)/unit*unit))
	s.slot = s.bytes + apartBytes
	window, err := c.Stage(ctx, 2*each*int(most+apartBytes)) // for packets of any length: only what is touched takes memory
	if transport.HostOf(t).Unshared != nil {
		return nil, nil
	}
	s.window = window
	return s, err
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
	rank := executor.RankOf(proc, s.n, s.ranks)
	first, _ := executor.Hosted(s.n, rank, s.ranks)
	i := 2 * (proc - first)
	if result {
		i++
	}
	return s.window.Parts[rank][i*s.slot:][:bytes:bytes]
}

// inProcess returns the model of the same packets, all in the memory of one process.
func inProcess(m sim.Model) sim.Model {
	network, _ := sim.ParseNetwork("process") // which is a preset
	return sim.Model{Network: network, Gamma: cmp.Or(m.Gamma, sim.ProcessGamma), Bytes: m.Bytes, SymbolBytes: m.SymbolBytes}
}

// alone is the transport of one of several ranks that is to code as if it were the only one.
type alone struct{ transport.Transport }

func (alone) Rank() int      { return 0 }
func (alone) Size() int      { return 1 }
func (a alone) Cores() int   { return transport.Cores(a.Transport) }
func (alone) Overlaps() bool { return false }

// together is the way of ranks that share memory.
type together struct {
	*Bound
	plan  plan.Plan
	stage *stage
	alone alone
	unit  int // of slices, bytes

	bound   *executor.Bound // codes a slice of everything
	inputs  []executor.Input
	outputs []executor.Output
	sources []int    // the processors of inputs
	sinks   []int    // and of outputs
	data    [][]byte // packets, where all lie in windows, else nil
	coded   [][]byte // and results

	all *relating // nil: without the check

	says    uint64 // at meetings, and the number of the run
	segment int    // that is under way
	placed  [4]int // what place was called with last
}

// throughWindow makes the way through shared memory ready.
func (b *Bound) throughWindow(chosen *choice, executable *executor.Executable, stage *stage, windows []*transport.Window) (way, error) {
	e := b.e
	symbol := e.matrix.Field().SymbolBytes()
	w := &together{Bound: b, plan: chosen.Plan, stage: stage, alone: alone{b.t}, unit: sliceUnit(symbol)}
	for proc := range stage.n {
		if _, source := e.problem.Source(proc); source {
			w.sources = append(w.sources, proc)
		}
		if _, sink := e.problem.Sink(proc); sink {
			w.sinks = append(w.sinks, proc)
		}
	}
	w.inputs, w.outputs = make([]executor.Input, len(w.sources)), make([]executor.Output, len(w.sinks))
	if err := w.find(windows); err != nil {
		return nil, err
	}
	digest := b.digest()
	w.says = binary.LittleEndian.Uint64(digest[:])
	n := min(w.step(), int(b.shared.Bytes))
	longest := min(n, w.each(n)) // of any rank, so that any slice has room: a shorter segment may give this rank more
	w.place(0, n, 0, longest)
	segment, _, err := chosen.segment(int64(longest), e.options.memory, int64(w.unit), 1, false)
	if err != nil {
		return nil, b.c.Alike(b.ctx, err)
	}
	b.report.Notes = append(slices.Clip(b.report.Notes), "all ranks are on one host: no messages, each codes a slice of every packet in memory that they share")
	job := executor.Job{
		Executable: executable, Bytes: int64(longest), Segment: segment, Align: int64(w.unit), Inputs: w.inputs, Outputs: w.outputs,
	}
	if e.options.check {
		if w.all, err = b.relate(chosen); err != nil {
			return nil, err
		}
		job.ObserveAll = w.all.observe
	}
	w.bound, err = executor.Bind(context.WithoutCancel(b.ctx), w.alone, job)
	return w, err
}

// find finds packets and results in the windows. All ranks call it. Where one lies elsewhere, all go over the stage.
func (w *together) find(windows []*transport.Window) error {
	if windows == nil {
		return nil // a run by itself has none
	}
	type place struct {
		Window uint64 // its ID
		Offset int    // -1: elsewhere
	}
	type places struct {
		Windows          []uint64
		Packets, Results []place
	}
	var mine places
	known := map[uint64]*transport.Window{}
	for _, window := range windows {
		if window.Of(w.t) {
			known[window.ID] = window
			mine.Windows = append(mine.Windows, window.ID)
		}
	}
	in := func(memory []byte, wanted bool) place {
		for id, window := range known {
			part := window.Parts[w.t.Rank()]
			offset := int(uintptr(unsafe.Pointer(unsafe.SliceData(memory))) - uintptr(unsafe.Pointer(unsafe.SliceData(part))))
			if wanted && offset >= 0 && offset <= len(part)-len(memory) && int64(len(memory)) == w.shared.Bytes {
				return place{id, offset}
			}
		}
		return place{Offset: -1}
	}
	for i := range w.packets {
		p := &w.packets[i]
		result := []byte(nil)
		if p.Result != nil {
			result = *p.Result
		}
		mine.Packets, mine.Results = append(mine.Packets, in(p.Data, p.Source == nil)), append(mine.Results, in(result, p.Coded == nil))
	}
	all, err := collective.AllgatherValues(w.ctx, w.t, mine, w.e.options.timeout)
	if err != nil {
		return err
	}
	for _, other := range all { // what one rank does not give, none uses
		maps.DeleteFunc(known, func(id uint64, _ *transport.Window) bool { return !slices.Contains(other.Windows, id) })
	}
	var data, coded [][]byte
	add := func(list *[][]byte, proc int, of func(places) []place) (found bool) {
		rank := executor.RankOf(proc, w.stage.n, w.stage.ranks)
		first, _ := executor.Hosted(w.stage.n, rank, w.stage.ranks)
		at := of(all[rank])[proc-first]
		window := known[at.Window]
		if window == nil || at.Offset < 0 {
			return false
		}
		*list = append(*list, window.Parts[rank][at.Offset:][:w.shared.Bytes])
		return true
	}
	for _, proc := range w.sources {
		if !add(&data, proc, func(p places) []place { return p.Packets }) {
			return nil
		}
	}
	for _, proc := range w.sinks {
		if !add(&coded, proc, func(p places) []place { return p.Results }) {
			return nil
		}
	}
	w.data, w.coded = data, coded
	return nil
}

// step returns how many bytes of packets lie where others read them at a time.
func (w *together) step() int {
	if w.data != nil {
		return max(1, int(w.shared.Bytes))
	}
	return max(1, w.stage.bytes)
}

// each returns how long slices of n bytes are, but the last ones.
func (w *together) each(n int) int {
	return ((n+w.stage.ranks-1)/w.stage.ranks + w.unit - 1) / w.unit * w.unit
}

// slice returns this rank's slice of n bytes.
func (w *together) slice(n int) (from, to int) {
	from = min(n, w.t.Rank()*w.each(n))
	return from, min(n, from+w.each(n))
}

// own returns the packet of a processor that is here, else nil.
func (w *together) own(proc int) *Packet {
	if i := proc - w.first; 0 <= i && i < len(w.packets) {
		return &w.packets[i]
	}
	return nil
}

// whole reports whether n bytes of a packet from at on are used where they lie, by the rank that has it.
func (p *Packet) whole(at, n int) bool { return p.Source == nil && at+n <= len(p.Data) }

// place has the executor code bytes from to to of the n that are on the stage, which begin at the byte at of packets.
func (w *together) place(at, n, from, to int) {
	if last := w.placed; last == [...]int{at, n, from, to} && w.bound != nil {
		return
	}
	w.placed = [...]int{at, n, from, to}
	for i, proc := range w.sources {
		switch p := w.own(proc); {
		case w.data != nil:
			w.inputs[i].Memory = w.data[i][from:to:to]
		case p != nil && p.whole(at, n):
			w.inputs[i].Memory = p.Data[at+from:][:to-from]
		default:
			w.inputs[i].Memory = w.stage.packet(proc, false, n)[from:to:to]
		}
	}
	for i, proc := range w.sinks {
		switch p := w.own(proc); {
		case w.data != nil:
			w.outputs[i].Memory = w.coded[i][from:to:to]
		case p != nil && p.Coded == nil:
			w.outputs[i].Memory = (*p.Result)[at+from:][:to-from]
		default:
			w.outputs[i].Memory = w.stage.packet(proc, true, n)[from:to:to]
		}
	}
}

func (w *together) run() error {
	says := w.says + w.shared.Seed
	bytes := int(w.shared.Bytes)
	for at := 0; at < bytes || at == 0; at += w.step() {
		n := min(w.step(), bytes-at)
		w.segment = at / w.step()
		if w.ctx.Err() != nil { // without the check too
			return context.Cause(w.ctx)
		}
		if err := w.copyIn(at, n); err != nil {
			return err
		}
		if err := w.meet(says); err != nil {
			return err
		}
		if err := w.code(at, n); err != nil {
			return err
		}
		if err := w.meet(says); err != nil {
			return err
		}
		if err := w.copyOut(at, n); err != nil {
			return err
		}
	}
	_, w.check = w.all.observed()
	if w.all != nil && w.data == nil {
		return w.meet(says) // all have their coded packets
	}
	return nil
}

// done records what was done with so many bytes of each packet here.
func (w *together) done(kind trace.Kind, began int64, bytes int) {
	if w.e.options.trace == nil {
		return
	}
	w.e.options.trace.End(trace.Event{
		Kind: kind, Rank: w.t.Rank(), Row: trace.FirstLane, Start: began, First: w.first, Last: w.first + len(w.packets) - 1,
		Segment: w.segment, Bytes: int64(bytes) * int64(len(w.packets)),
	})
}

// meet waits until all ranks have come, which are at the same run.
func (w *together) meet(says uint64) error {
	defer w.done(trace.Turn, w.e.options.trace.Now(), 0)
	other, err := w.c.Meet(w.ctx, w.stage.window, says)
	if err == nil && other >= 0 {
		err = w.disagreement(other)
	}
	return err
}

// code codes this rank's slice of the n bytes on the stage, and checks it.
func (w *together) code(at, n int) error {
	from, to := w.slice(n)
	if from == to {
		return nil
	}
	began := w.e.options.trace.Now()
	w.place(at, n, from, to)
	w.bound.SetBytes(int64(to - from))
	if err := w.bound.Run(); err != nil {
		return err
	}
	w.done(trace.Code, began, to-from)
	return nil
}

// copyIn copies n bytes of the packets here to the stage, but those that this rank codes itself, and looks whether they
// are symbols.
func (w *together) copyIn(at, n int) error {
	f := w.e.matrix.Field()
	from, to := w.slice(n)
	defer w.done(trace.Read, w.e.options.trace.Now(), n)
	for _, proc := range w.sources {
		p := w.own(proc)
		if p == nil {
			continue
		}
		valid := p.Data[min(at, len(p.Data)):min(at+n, len(p.Data))]
		switch on := w.stage.packet(proc, false, min(n, w.stage.bytes)); {
		case w.data != nil:
		case p.whole(at, n):
			copy(on[:from], valid)
			copy(on[to:], valid[to:])
		case p.Source == nil:
			clear(on[copy(on, valid):])
		default:
			reader := packetReader{p.Source, p.Size}
			read, err := reader.ReadAt(on, int64(at))
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("processor %d: read its packet: %w", proc, err)
			}
			valid = on[:read]
			clear(on[read:])
		}
		if err := p.check(f, valid, int64(at)); err != nil {
			return fmt.Errorf("processor %d: %w", proc, err)
		}
	}
	return nil
}

// copyOut copies n bytes of the results here from the stage.
func (w *together) copyOut(at, n int) error {
	if w.data != nil {
		return nil
	}
	from, to := w.slice(n)
	defer w.done(trace.Write, w.e.options.trace.Now(), n)
	for _, proc := range w.sinks {
		p := w.own(proc)
		if p == nil {
			continue
		}
		on := w.stage.packet(proc, true, n)
		if p.Coded != nil {
			if _, err := p.Coded.WriteAt(on, int64(at)); err != nil {
				return fmt.Errorf("processor %d: write its coded packet: %w", proc, err)
			}
			continue
		}
		result := (*p.Result)[at:][:n]
		copy(result[:from], on)
		copy(result[to:], on[to:])
	}
	return nil
}

// traffic returns what the processors here did: no message was sent.
func (w *together) traffic() []executor.Traffic {
	list := w.bound.Traffic()[w.first:][:len(w.packets)]
	for i := range list {
		list[i] = executor.Traffic{MultiplyAdds: list[i].MultiplyAdds, Segments: max(1, (int(w.shared.Bytes)+w.step()-1)/w.step())}
	}
	return list
}

func (w *together) close() { w.bound.Close() }
