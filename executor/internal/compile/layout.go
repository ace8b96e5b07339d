package compile

import (
	"iter"
	"slices"

	"volley/field"
)

// assignMemory gives inputs, elements received and what is computed and kept their places
// in the memory of the segment. What a later step needs is kept, too.
func (c *compiler) assignMemory() {
	x := c.x
	for id := range int32(len(c.values)) {
		for _, t := range c.termsOf(id) {
			if s := &c.values[t.value]; s.kind == sumValue && s.step < c.values[id].step {
				s.kept = true
			}
		}
	}
	assign := func(kind valueKind, first int) (count int) {
		for id := range c.values {
			c.poller.Steps(1)
			if v := &c.values[id]; v.kind == kind && v.kept && (kind != sumValue || v.step >= 0) {
				if kind == receivedValue && x.Receives[v.receive].First && int(x.Receives[v.receive].Element) == int(id) {
					x.Headers++
					count++
				}
				v.location = ElementOffset(first + count)
				count++
			}
		}
		return count
	}
	assign(inputValue, 0)
	x.Received = assign(receivedValue, x.Inputs) - x.Headers
	x.Computed = assign(sumValue, x.Inputs+x.Headers+x.Received)
}

// locate turns values into locations.
func (c *compiler) locate() {
	x := c.x
	for _, m := range x.Sends {
		c.poller.Steps(1 + len(m.Slots))
		for n, id := range m.Slots {
			m.Slots[n] = int32(c.values[id].location)
		}
	}
	for _, s := range x.Steps {
		for k := s.Sends.First + 1; k < s.Sends.End; k++ {
			c.poller.Steps(1 + len(x.Sends[k].Slots))
			previous, m := &x.Sends[k-1], &x.Sends[k]
			if m.Again = m.First == previous.First && slices.Equal(m.Slots, previous.Slots); m.Again {
				m.Slots = previous.Slots
			}
		}
	}
	for i := range x.Receives {
		c.poller.Steps(1)
		m := &x.Receives[i]
		m.Element = int32(c.values[m.Element].location)
	}
	x.Between = x.Received + x.Computed
	put := make([]bool, x.Inputs+x.Headers+x.Between) // out already
	for o, id := range c.ends {
		c.poller.Steps(1)
		r := &x.Outputs[o]
		r.Element = int(c.values[id].location)
		if r.First = r.Element >= x.Inputs && !put[r.Element]; r.First {
			put[r.Element] = true
			x.Between--
		}
	}
}

// A batch is values that one operation computes: the head and those that follow it, up to the tail.
type batch struct {
	head, tail int32
	count      int32
	next       int32 // batch with the same first source, or 0
	ordered    bool
}

// order says which operations compute the values of each step.
func (c *compiler) order() {
	c.batches, c.maps = append(slices.Grow(c.batches, 1+len(c.values)), batch{}), map[smallMatrix]field.Map{}
	for i := range c.steps {
		c.x.Steps[i].Operations = c.operations(c.orderStep(int32(i)))
	}
}

// valuesOf goes through the values of a batch.
func (c *compiler) valuesOf(b *batch) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for id := b.head; yield(id) && id != b.tail; {
			id = c.values[id].nextInBatch
		}
	}
}

// orderStep orders what a step computes, back from what it has to compute: an element is
// made just before it is first needed, while what it takes is likely to be in the cache.
func (c *compiler) orderStep(step int32) (order []int32) {
	var batches []int32 // that another may take the sources of
	interchangeable := func(a, b int32) bool {
		return c.values[a].convert == c.values[b].convert && c.values[a].step == c.values[b].step &&
			slices.EqualFunc(c.termsOf(a), c.termsOf(b), func(a, b term) bool { return a.value == b.value })
	}
	var nothing int32 // the sums of no terms
	firstBatch := len(c.batches)
	for id := range int32(len(c.values)) {
		c.poller.Steps(1)
		v := &c.values[id]
		if v.kind != sumValue || v.step != step {
			continue
		}
		first := &nothing
		if v.count > 0 {
			first = &c.values[c.terms[v.firstTerm].value].first
		}
		b := *first
		for b != 0 && !interchangeable(c.batches[b].head, id) {
			b = c.batches[b].next
		}
		if b == 0 {
			b = int32(len(c.batches))
			c.batches = append(c.batches, batch{head: id, tail: id, next: *first})
			*first = b
			if v.count > fewSources {
				batches = append(batches, b)
			}
		}
		joined := &c.batches[b]
		c.values[joined.tail].nextInBatch = id
		joined.tail, v.batch = id, b
		joined.count++
	}
	c.join(batches)
	order = make([]int32, 0, len(c.batches)-firstBatch)
	var visit func(id int32)
	visit = func(id int32) {
		c.poller.Steps(1)
		v := &c.values[id]
		if v.kind != sumValue || v.step != step || c.batches[v.batch].ordered {
			return
		}
		c.batches[v.batch].ordered = true
		for _, t := range c.termsOf(id) {
			visit(t.value)
		}
		order = append(order, v.batch)
	}
	for _, id := range c.steps[step] {
		visit(id)
	}
	return order
}

// fewSources is of how many sources it takes more to look for a batch that takes others.
const fewSources = 4

// join lets a batch, of more sources than few, have the map of another that has all its sources and few besides, with
// zeros: dense matrices have some, and a map of many outputs reads its inputs once. Both
// are of one depth, so that neither needs the other.
func (c *compiler) join(batches []int32) {
	head := func(b int32) int32 { return c.batches[b].head }
	terms := func(b int32) []term { return c.termsOf(head(b)) }
	slices.SortStableFunc(batches, func(a, b int32) int { return len(terms(b)) - len(terms(a)) })
	hosts := map[int32][]int32{} // by source
	for _, b := range batches {
		wanted := terms(b)
		i := slices.IndexFunc(hosts[wanted[0].value], func(h int32) bool {
			return len(terms(h))*7 <= len(wanted)*8 && includes(terms(h), wanted) && c.values[head(b)].depth == c.values[head(h)].depth
		})
		if i < 0 {
			for _, t := range wanted {
				hosts[t.value] = append(hosts[t.value], b)
			}
			continue
		}
		h := hosts[wanted[0].value][i]
		host, joining := &c.batches[h], &c.batches[b]
		for id := range c.valuesOf(joining) {
			c.spread(id, terms(h))
			c.values[id].batch = h
		}
		c.values[host.tail].nextInBatch, host.tail = joining.head, joining.tail
		host.count += joining.count
	}
}

// includes reports whether all the values of some terms are among those of others, both
// being sorted.
func includes(set, subset []term) bool {
	for _, t := range set {
		if len(subset) > 0 && subset[0].value == t.value {
			subset = subset[1:]
		}
	}
	return len(subset) == 0
}

// spread gives a value terms of the values of others, which include all its own.
func (c *compiler) spread(id int32, wider []term) {
	terms := c.termsOf(id)
	v := &c.values[id]
	c.poller.Steps(len(wider))
	v.firstTerm, v.count = int32(len(c.terms)), int32(len(wider))
	for _, t := range wider {
		t.coef = zeroCoef
		if len(terms) > 0 && terms[0].value == t.value {
			t, terms = terms[0], terms[1:]
		}
		c.terms = append(c.terms, t)
	}
}

// operations makes the operations of batches in order, and gives the elements that only they need
// blocks of the scratch memory, each of which is used again as soon as it is free.
func (c *compiler) operations(order []int32) []Operation {
	x := c.x
	size := 0
	for n, b := range order {
		c.poller.Steps(1)
		terms := c.termsOf(c.batches[b].head)
		for _, t := range terms {
			c.values[t.value].last = int32(n)
		}
		size += int(c.batches[b].count) + len(terms)
	}
	var free []ElementOffset
	blocks := 0
	operations, locations := make([]Operation, 0, len(order)), make([]ElementOffset, size)
	for n, number := range order {
		c.poller.Steps(1)
		b := &c.batches[number]
		head, terms := &c.values[b.head], c.termsOf(b.head)
		op := Operation{Outputs: locations[:0:b.count]}
		locations = locations[b.count:]
		op.Inputs, locations = locations[:0:len(terms)], locations[len(terms):]
		for id := range c.valuesOf(b) {
			v := &c.values[id]
			switch {
			case v.kept:
			case len(free) > 0:
				v.location = free[len(free)-1]
				free = free[:len(free)-1]
			default:
				v.location = ^ElementOffset(blocks)
				blocks++
			}
			op.Outputs = append(op.Outputs, v.location)
		}
		for _, t := range terms {
			v := &c.values[t.value]
			op.Inputs = append(op.Inputs, v.location)
			if c.scratch(v) && int(v.last) == n {
				free = append(free, v.location)
			}
		}
		if op.Convert = head.convert; len(terms) > 0 && op.Convert == NotConverted {
			op.Map = c.newMap(b)
		}
		x.Widest = max(x.Widest, len(op.Outputs)+len(op.Inputs))
		operations = append(operations, op)
	}
	x.Scratch = max(x.Scratch, blocks)
	return operations
}

// scratch reports whether only one step needs a value.
func (c *compiler) scratch(v *value) bool { return v.kind == sumValue && !v.kept }

// A smallMatrix has few entries. The same one is looked for: small ones, such as that of a sum, come often. By measurement
// an executable of additive-fft, K = 1024, takes 1.1 MB and 4 ms so, and else 2.4 MB and 6 ms.
type smallMatrix struct {
	rows, columns int
	entries       [16]coef // row by row
}

// newMap returns the map of a batch.
func (c *compiler) newMap(b *batch) field.Map {
	columns := int(c.values[b.head].count)
	c.entries = slices.Grow(c.entries[:0], int(b.count)*columns)
	for id := range c.valuesOf(b) {
		for _, t := range c.termsOf(id) {
			c.entries = append(c.entries, t.coef)
		}
	}
	c.poller.Steps(len(c.entries))
	if c.x.Compact && c.planar == nil {
		return c.newCompactMap(c.entries)
	}
	few := smallMatrix{rows: len(c.entries) / columns, columns: columns}
	small := copy(few.entries[:], c.entries) == len(c.entries)
	if m := c.maps[few]; small && m != nil {
		return m
	}
	c.elements = slices.Grow(c.elements[:0], len(c.entries))
	for _, x := range c.entries {
		c.poller.Steps(1)
		c.elements = append(c.elements, c.element(x))
	}
	m := c.x.newMap(c.poller.Steps, c.elements, columns)
	if small {
		c.maps[few] = m
	}
	return m
}

// newMap returns a map of entries, row by row, and tells steps of them.
func (x *Executable) newMap(steps func(int), entries []field.Element, columns int) field.Map {
	rows := slices.AppendSeq(make([][]field.Element, 0, len(entries)/columns), slices.Chunk(entries, columns))
	if x.Planar != nil {
		return field.StepwiseMap(x.Planar, rows, true, steps)
	}
	return field.StepwiseMap(x.Plan.Info().Field, rows, false, steps)
}

// A compactMap multiplies short packets as it is, and is made ready for others: ready, it is up to 64 times as large, and
// thousands of ranks have some. By measurement 4,096 ranks of a dense matrix take 470 MiB so, and else 1,345.
type compactMap struct {
	x       *Executable
	entries []byte // symbols, row by row
}

// compactBytes is the length of packets for which it takes as long to make a map ready as to multiply.
const compactBytes = 1024

func (c *compiler) newCompactMap(entries []coef) field.Map {
	n := c.field.SymbolBytes()
	m := &compactMap{c.x, make([]byte, len(entries)*n)}
	for i, x := range entries {
		c.poller.Steps(1)
		field.PutSymbol(c.field, m.entries[i*n:], c.element(x))
	}
	return m
}

// Apply is that of [field.Map], for all that an operation computes: short packets row by row.
func (m *compactMap) Apply(outputs, inputs [][]byte, _ bool) {
	f, rows := m.x.Plan.Info().Field, len(outputs)
	short := len(outputs[0]) <= compactBytes
	if short {
		rows = 1
	}
	entries := make([]field.Element, rows*len(inputs))
	for first := 0; first < len(outputs); first += rows {
		for i := range entries {
			entries[i] = field.Symbol(f, m.entries[(first*len(inputs)+i)*f.SymbolBytes():])
		}
		if short {
			f.Combine(outputs[first], entries, inputs)
		} else {
			m.x.newMap(func(int) {}, entries, len(inputs)).Apply(outputs, inputs, false)
		}
	}
}
