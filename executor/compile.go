package executor

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"volley/field"
	"volley/plan"
)

// Hosted returns which processors of a plan live at a rank: all of [first, end). They
// are dealt out in order, to each rank as many as to any other or one more.
func Hosted(processors, rank, ranks int) (first, end int) {
	return rank * processors / ranks, (rank + 1) * processors / ranks
}

// rankOf returns where a processor lives.
func rankOf(proc, processors, ranks int) int { return ((proc+1)*ranks - 1) / processors }

// A Part is what one rank has to do for a plan: the programs of its processors, made
// ready to run on packets of any length, any number of times. It is immutable and safe
// for concurrent use.
//
// What processors of one rank send each other stays where it lies. Combinations of
// the same sources, also those of several processors, are one [field.Map]. A stage is
// what can be computed before other ranks have to be waited for; within it, block by
// block, everything is computed for one block before the next, so that what is needed
// only there never leaves the cache.
type Part struct {
	plan        plan.Plan
	rank, ranks int
	rounds      int // of the plan
	first       int // processor here
	processors  []processor
	inputs      int // elements, of all processors: the first of the memory
	received    int // elements: those that follow
	wide        int // elements that are as long as a segment and computed: the last
	outputs     []output
	homes       []int // of a wide element: the output that it is, or -1
	stages      []stage
	scratch     int          // blocks of elements that only a stage needs
	widest      int          // inputs and outputs of a map
	work        int          // multiply-adds of a symbol
	borrowed    bool         // an output is an input, or was received
	planar      field.Planar // of steps that change the layout
}

// A processor is what is to be known of one that lives here.
type processor struct {
	inputs, outputs int // elements
	traffic         Traffic
	elements        int64 // sent
}

// An output says where in memory an output is.
type output struct {
	proc int // that it belongs to, of those here
	at   int
}

// A stage computes, and then sends and receives.
type stage struct {
	round    int
	steps    []step
	sends    []send
	receives []receive
}

// A place is one of an element: in the memory of the segment, or ^i in block i of the
// scratch memory.
type place int

// A step is a map of elements.
type step struct {
	of      field.Map // nil: the one output is zero, or the input in another layout
	out, in []place
	add     bool // to what is in the one output
	change  layout
}

// A layout is what a packet is changed to.
type layout uint8

const (
	sameLayout layout = iota
	copied
	toPlanes
	fromPlanes
)

type send struct {
	src, dst, rank, port int
	slots                []int // in memory
}

type receive struct {
	src, dst, rank, port int
	first, count         int // in memory
}

// Compile makes the part of a rank ready. It returns an error when a program cannot be
// made, or sends and receives of processors here do not agree.
func Compile(p plan.Plan, rank, ranks int) (*Part, error) {
	info := p.Info()
	if ranks < 1 || ranks > info.Processors || rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("a plan for %d processors at rank %d of %d", info.Processors, rank, ranks)
	}
	first, end := Hosted(info.Processors, rank, ranks)
	programs, err := programsOf(p, first, end)
	if err != nil {
		return nil, err
	}
	c := &compiler{
		part: &Part{plan: p, rank: rank, ranks: ranks, rounds: info.Rounds(), first: first}, field: info.Field, programs: programs,
		minus: info.Field.Sub(field.Element{}, field.One), zero: -1,
	}
	c.binary = c.minus == field.One
	if err := c.follow(); err != nil {
		return nil, err
	}
	c.simplify()
	c.change()
	c.lay()
	c.part.planar = c.planar
	return c.part, nil
}

// programsOf returns the programs of processors [first, end).
func programsOf(p plan.Plan, first, end int) ([]*plan.Program, error) {
	programs, errs := make([]*plan.Program, end-first), make([]error, end-first)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(end-first, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(end-first); i = next.Add(1) - 1 {
				programs[i], errs[i] = p.Program(first + int(i))
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("processor %d: program: %w", first+i, err)
		}
	}
	return programs, nil
}

// A compiler follows the elements through the programs of a part.
type compiler struct {
	part     *Part
	field    field.Field
	planar   field.Planar  // unless nil, maps are those of planes
	minus    field.Element // -1
	binary   bool          // the characteristic is 2
	programs []*plan.Program

	values []value
	zero   int // the value that is zero, or -1
	comms  []comm
	ends   []int // the values of the outputs
}

// A value is an element: an input, one received, or a sum of others.
type value struct {
	kind  valueKind
	terms []term
	uses  int    // in sums
	to    layout // what its one source is changed to
	kept  bool
	stage int // in which it is computed, or -1
	place place
	last  int // step that needs it
}

type valueKind uint8

const (
	inputValue valueKind = iota
	receivedValue
	sumValue // of no terms: zero
)

type term struct {
	value int
	coef  field.Element
}

// A comm is what a round sends to other ranks and receives from them, as values.
type comm struct {
	round    int
	sends    []send
	receives []receive
}

// follow runs the programs side by side, round by round, on values.
func (c *compiler) follow() error {
	p := c.part
	slots := make([][]int, len(c.programs)) // of each processor: values
	for i, program := range c.programs {
		for range program.Inputs {
			slots[i] = append(slots[i], len(c.values))
			c.values = append(c.values, value{kind: inputValue, kept: true})
		}
		p.processors = append(p.processors, processor{
			inputs: program.Inputs, outputs: len(program.Outputs),
			traffic: Traffic{MultiplyAdds: program.Terms(), Rounds: make([]plan.RoundTraffic, len(program.Rounds))},
		})
		p.inputs += program.Inputs
	}
	type port struct{ dst, port int }
	rounds := 0
	for _, program := range c.programs {
		rounds = max(rounds, len(program.Rounds))
	}
	k := p.plan.Info().Processors
	for t := range rounds {
		mail := map[port][]int{}
		there := comm{round: t}
		for i, program := range c.programs {
			if t >= len(program.Rounds) {
				continue
			}
			r := program.Rounds[t]
			for _, x := range r.Compute {
				slots[i] = append(slots[i], c.sum(x, slots[i]))
			}
			traffic := &p.processors[i].traffic.Rounds[t]
			for _, s := range r.Sends {
				traffic.Messages++
				traffic.Largest = max(traffic.Largest, len(s.Slots))
				p.processors[i].elements += int64(len(s.Slots))
				values := make([]int, len(s.Slots))
				for n, slot := range s.Slots {
					values[n] = slots[i][slot]
				}
				if rank := rankOf(s.Dst, k, p.ranks); rank != p.rank {
					there.sends = append(there.sends, send{c.part.first + i, s.Dst, rank, s.Port, values})
				} else {
					mail[port{s.Dst, s.Port}] = values
				}
			}
		}
		for i, program := range c.programs {
			if t >= len(program.Rounds) {
				continue
			}
			for _, v := range program.Rounds[t].Recvs {
				if rank := rankOf(v.Src, k, p.ranks); rank != p.rank {
					there.receives = append(there.receives, receive{v.Src, c.part.first + i, rank, v.Port, len(c.values), v.Count})
					for range v.Count {
						slots[i] = append(slots[i], len(c.values))
						c.values = append(c.values, value{kind: receivedValue, kept: true})
					}
					continue
				}
				at := port{c.part.first + i, v.Port}
				if len(mail[at]) != v.Count {
					return fmt.Errorf("processor %d: round %d: %d elements from processor %d on port %d, which sends %d: the plan is wrong",
						c.part.first+i, t, v.Count, v.Src, v.Port, len(mail[at]))
				}
				slots[i] = append(slots[i], mail[at]...)
				delete(mail, at)
			}
		}
		if len(mail) > 0 {
			return fmt.Errorf("round %d: %d messages that nobody receives: the plan is wrong", t, len(mail))
		}
		// Messages of one round, port and pair of ranks arrive in order: that of their senders.
		slices.SortStableFunc(there.receives, func(a, b receive) int { return cmp.Or(a.port-b.port, a.src-b.src) })
		if len(there.sends)+len(there.receives) > 0 {
			c.comms = append(c.comms, there)
		}
	}
	for i, program := range c.programs {
		for _, x := range program.Compute {
			slots[i] = append(slots[i], c.sum(x, slots[i]))
		}
		for _, slot := range program.Outputs {
			c.ends = append(c.ends, slots[i][slot])
			p.outputs = append(p.outputs, output{proc: i})
		}
	}
	return nil
}

// sum returns the value of a combination of the values in slots.
func (c *compiler) sum(x plan.Combination, slots []int) int {
	terms := make([]term, 0, len(x))
	for _, t := range x {
		terms = append(terms, term{slots[t.Slot], t.Coef})
	}
	terms = c.tidy(terms)
	switch {
	case len(terms) == 0 && c.zero >= 0:
		return c.zero
	case len(terms) == 0:
		c.zero = len(c.values)
	case len(terms) == 1 && terms[0].coef == field.One:
		return terms[0].value
	}
	c.values = append(c.values, value{kind: sumValue, terms: terms})
	return len(c.values) - 1
}

// tidy puts terms in the order of their values, adds up those of one value, and
// leaves out what is zero.
func (c *compiler) tidy(terms []term) []term {
	slices.SortStableFunc(terms, func(a, b term) int { return a.value - b.value })
	kept := terms[:0]
	for _, t := range terms {
		if v := &c.values[t.value]; v.kind == sumValue && len(v.terms) == 0 {
			continue
		}
		if n := len(kept); n > 0 && kept[n-1].value == t.value {
			kept[n-1].coef = c.field.Add(kept[n-1].coef, t.coef)
			continue
		}
		kept = append(kept, t)
	}
	return slices.DeleteFunc(kept, func(t term) bool { return t.coef.IsZero() })
}

// simplify spares multiplications and passes over memory.
//
// Where one processor scales an element for another and both need it, as in a
// butterfly, the product ±c·u is made once. Where only one needs it, it makes the
// product itself; in characteristic 2, whose maps multiply as fast as they add, so do
// all.
func (c *compiler) simplify() {
	for _, v := range c.ends {
		c.values[v].kept = true
	}
	for _, x := range c.comms {
		for _, s := range x.sends {
			for _, v := range s.slots {
				c.values[v].kept = true
			}
		}
	}
	if !c.binary {
		scaled := map[int][]int{} // products of an element, by it
		for id := range c.values {
			v := &c.values[id]
			if v.kind == sumValue && len(v.terms) == 1 {
				scaled[v.terms[0].value] = append(scaled[v.terms[0].value], id)
				continue
			}
			for n, t := range v.terms {
				for _, s := range scaled[t.value] {
					switch coef := c.values[s].terms[0].coef; {
					case t.coef == coef:
						v.terms[n] = term{s, field.One}
					case c.field.Add(t.coef, coef).IsZero():
						v.terms[n] = term{s, c.minus}
					default:
						continue
					}
					break
				}
			}
		}
	}
	for id := range c.values {
		for _, t := range c.values[id].terms {
			c.values[t.value].uses++
		}
	}
	for id := range c.values {
		v := &c.values[id]
		changed := false
		for n, t := range v.terms {
			s := &c.values[t.value]
			if s.kind == sumValue && len(s.terms) == 1 && !s.kept && (c.binary || s.uses == 1) {
				v.terms[n] = term{s.terms[0].value, c.field.Mul(t.coef, s.terms[0].coef)}
				changed = true
			}
		}
		if changed {
			v.terms = c.tidy(v.terms)
		}
	}
}

// change lets everything be computed in planes where the field has them, nothing
// is sent, and enough is computed to make the change of inputs and outputs pay. Else it
// copies the inputs that are needed often.
func (c *compiler) change() {
	if len(c.comms) > 0 {
		return
	}
	operands, changes := 0, c.part.inputs+len(c.ends)
	uses := make([]int, c.part.inputs) // now that sums are simple
	for id := range c.values {
		v := &c.values[id]
		if v.kind == sumValue {
			operands += 1 + len(v.terms)
		}
		for _, t := range v.terms {
			if t.value < len(uses) {
				uses[t.value]++
			}
		}
	}
	first, often := copied, copyPays
	if f, ok := c.field.(field.Planar); ok && operands >= changesPay*changes {
		c.planar, first, often = f, toPlanes, 1
	}
	changed := map[int]int{} // values in the other layout
	change := func(id int, to layout) int {
		if other, ok := changed[id]; ok {
			return other
		}
		changed[id] = len(c.values)
		c.values = append(c.values, value{kind: sumValue, terms: []term{{id, field.One}}, to: to, kept: to == fromPlanes})
		return changed[id]
	}
	for id := range len(c.values) {
		terms := c.values[id].terms
		for n, t := range terms {
			if c.values[t.value].kind == inputValue && uses[t.value] >= often {
				terms[n].value = change(t.value, first)
			}
		}
		slices.SortFunc(terms, func(a, b term) int { return a.value - b.value })
	}
	for o, id := range c.ends {
		if v := &c.values[id]; c.planar != nil && v.kind == sumValue && len(v.terms) > 0 && v.to != fromPlanes {
			c.values[id].kept = false
			c.ends[o] = change(id, fromPlanes)
		}
	}
}

// copyPays is in how many sums an input is from which on it is worth a copy in scratch
// memory, where blocks of several inputs do not push each other out of the cache. Kernels
// for bytes make 8 sums at a time: up to there they read an input once.
const copyPays = 11

// changesPay is how many elements maps read and write for each that is changed to planes
// or back, from which on planes pay.
const changesPay = 4

// lay says what is computed in which stage and in which order, and where it lies.
func (c *compiler) lay() {
	p := c.part
	for id := range c.values {
		c.values[id].stage = -1
	}
	roots := make([][]int, len(c.comms)+1) // by stage: what has to be there in the end
	for s, x := range c.comms {
		for _, m := range x.sends {
			roots[s] = append(roots[s], m.slots...)
		}
	}
	roots[len(c.comms)] = c.ends
	for s, list := range roots {
		for _, v := range list {
			c.demand(v, s)
		}
	}
	c.place()
	for s := range roots {
		p.stages = append(p.stages, c.stage(s, roots[s]))
	}
	for s, x := range c.comms {
		st := &p.stages[s]
		st.round = x.round
		for _, m := range x.sends {
			for n, v := range m.slots {
				m.slots[n] = int(c.values[v].place)
			}
			st.sends = append(st.sends, m)
		}
		for _, m := range x.receives {
			m.first = int(c.values[m.first].place)
			st.receives = append(st.receives, m)
		}
	}
	for o, v := range c.ends {
		at := int(c.values[v].place)
		p.outputs[o].at = at
		if wide := at - p.inputs - p.received; wide < 0 {
			p.borrowed = true
		} else if p.homes[wide] < 0 {
			p.homes[wide] = o
		}
	}
	for i := range p.processors {
		p.work += p.processors[i].traffic.MultiplyAdds
	}
}

// demand lets v be computed in a stage, unless it is earlier. What it takes is computed
// no earlier than then either: what is sent goes first.
func (c *compiler) demand(id, stage int) {
	v := &c.values[id]
	if v.kind != sumValue || v.stage >= 0 {
		return
	}
	v.stage = stage
	for _, t := range v.terms {
		c.demand(t.value, stage)
	}
}

// place gives inputs, elements received and those that are as long as a segment their
// places: the ones kept, and the ones that a later stage needs.
func (c *compiler) place() {
	p := c.part
	for id := range c.values {
		for _, t := range c.values[id].terms {
			if s := &c.values[t.value]; s.kind == sumValue && s.stage < c.values[id].stage {
				s.kept = true
			}
		}
	}
	for _, kind := range []valueKind{inputValue, receivedValue, sumValue} {
		for id := range c.values {
			v := &c.values[id]
			if v.kind != kind || kind == sumValue && (!v.kept || v.stage < 0) {
				continue
			}
			switch kind {
			case inputValue:
				v.place = place(id) // they come first
			case receivedValue:
				v.place = place(p.inputs + p.received)
				p.received++
			default:
				v.place = place(p.inputs + p.received + p.wide)
				p.wide++
			}
		}
	}
	p.homes = slices.Repeat([]int{-1}, p.wide)
}

// A group is values that one map computes.
type group struct {
	values []int
	done   bool
}

// stage orders what stage s computes, from the roots back: an element is made just
// before it is first needed, while what it takes is likely to be in the cache.
func (c *compiler) stage(s int, roots []int) stage {
	groups := map[string]*group{}
	of := map[int]*group{}
	var all []*group
	var key []byte
	for id := range c.values {
		v := &c.values[id]
		if v.kind != sumValue || v.stage != s {
			continue
		}
		key = append(key[:0], byte(v.to))
		for _, t := range v.terms {
			key = binary.AppendUvarint(key, uint64(t.value))
		}
		g := groups[string(key)]
		if g == nil {
			g = new(group)
			groups[string(key)] = g
			all = append(all, g)
		}
		g.values = append(g.values, id)
		of[id] = g
	}
	c.join(all, of)
	var order []*group
	var visit func(id int)
	visit = func(id int) {
		g := of[id]
		if g == nil || g.done {
			return
		}
		g.done = true
		for _, t := range c.values[id].terms {
			visit(t.value)
		}
		order = append(order, g)
	}
	for _, id := range roots {
		visit(id)
	}
	return stage{steps: c.steps(order)}
}

// fewSources is of how many sources it takes more to look for a group that takes others.
const fewSources = 4

// join lets a group have the map of another that has all its sources and few besides, with
// zeros: dense matrices have some, and a map of many outputs reads its inputs once. Both
// are of one depth, so that neither needs the other.
func (c *compiler) join(groups []*group, of map[int]*group) {
	terms := func(g *group) []term { return c.values[g.values[0]].terms }
	slices.SortStableFunc(groups, func(a, b *group) int { return len(terms(b)) - len(terms(a)) })
	hosts := map[int][]*group{} // by source
	depths := map[int]int{}
	for _, g := range groups {
		own := terms(g)
		if len(own) <= fewSources {
			return
		}
		i := slices.IndexFunc(hosts[own[0].value], func(h *group) bool {
			return len(terms(h))*7 <= len(own)*8 && includes(terms(h), own) &&
				c.depth(g.values[0], depths) == c.depth(h.values[0], depths)
		})
		if i < 0 {
			for _, t := range own {
				hosts[t.value] = append(hosts[t.value], g)
			}
			continue
		}
		h := hosts[own[0].value][i]
		for _, id := range g.values {
			c.values[id].terms = spread(c.values[id].terms, terms(h))
			of[id] = h
		}
		h.values = append(h.values, g.values...)
	}
}

// includes reports whether all the values of some terms are among those of others, both
// being sorted.
func includes(all, some []term) bool {
	for _, t := range all {
		if len(some) > 0 && some[0].value == t.value {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// spread returns terms of the values of others, which include them all.
func spread(terms, over []term) []term {
	list := make([]term, len(over))
	for i, t := range over {
		list[i].value = t.value
		if len(terms) > 0 && terms[0].value == t.value {
			list[i], terms = terms[0], terms[1:]
		}
	}
	return list
}

// depth returns how many maps a value is from the memory.
func (c *compiler) depth(id int, known map[int]int) int {
	d, ok := known[id]
	if !ok && c.values[id].kind == sumValue {
		for _, t := range c.values[id].terms {
			d = max(d, 1+c.depth(t.value, known))
		}
		known[id] = d
	}
	return d
}

// steps makes the maps of groups in order, and gives the elements that only they need
// places in the scratch memory, each of which is used again as soon as it is free.
func (c *compiler) steps(order []*group) []step {
	p := c.part
	for n, g := range order {
		for _, t := range c.values[g.values[0]].terms {
			c.values[t.value].last = n
		}
	}
	var free []place
	blocks := 0
	maps := map[string]field.Map{}
	var steps []step
	for n, g := range order {
		terms := c.values[g.values[0]].terms
		st := step{}
		spare := -1 // a term that the sum takes over
		for i, t := range terms {
			if v := &c.values[t.value]; len(g.values) == 1 && !c.values[g.values[0]].kept && len(terms) > 1 &&
				t.coef == field.One && c.scratch(v) && v.last == n {
				spare = i
				break
			}
		}
		for _, id := range g.values {
			v := &c.values[id]
			switch {
			case v.kept:
			case spare >= 0:
				v.place = c.values[terms[spare].value].place
			case len(free) > 0:
				v.place = free[len(free)-1]
				free = free[:len(free)-1]
			default:
				v.place = ^place(blocks)
				blocks++
			}
			st.out = append(st.out, v.place)
		}
		st.add = spare >= 0
		for i, t := range terms {
			v := &c.values[t.value]
			if i == spare {
				continue
			}
			st.in = append(st.in, v.place)
			if c.scratch(v) && v.last == n {
				free = append(free, v.place)
			}
		}
		if st.change = c.values[g.values[0]].to; len(terms) > 0 && st.change == sameLayout {
			st.of = c.newMap(g, spare, maps)
		}
		p.widest = max(p.widest, len(st.out)+len(st.in))
		steps = append(steps, st)
	}
	p.scratch = max(p.scratch, blocks)
	return steps
}

// scratch reports whether only one stage needs a value.
func (c *compiler) scratch(v *value) bool { return v.kind == sumValue && !v.kept }

// fewEntries is up to how many entries the same matrix is looked for: small ones, such
// as that of a sum, come often.
const fewEntries = 16

// newMap returns the map of a group, without the given term.
func (c *compiler) newMap(g *group, without int, known map[string]field.Map) field.Map {
	rows := make([][]field.Element, len(g.values))
	var key []byte
	for r, id := range g.values {
		for i, t := range c.values[id].terms {
			if i != without {
				rows[r] = append(rows[r], t.coef)
			}
		}
	}
	build := c.field.Map
	if c.planar != nil {
		build = c.planar.PlanarMap
	}
	if len(rows)*len(rows[0]) > fewEntries {
		return build(rows)
	}
	key = binary.AppendUvarint(key, uint64(len(rows)))
	for _, row := range rows {
		for _, e := range row {
			for _, limb := range e {
				key = binary.AppendUvarint(key, limb)
			}
		}
	}
	m := known[string(key)]
	if m == nil {
		m = build(rows)
		known[string(key)] = m
	}
	return m
}
