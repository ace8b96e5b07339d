package executor

import (
	"slices"

	"volley/field"
)

// assignMemory gives inputs, elements received and what is computed and kept their places
// in the memory of the segment. What a later step needs is kept, too.
func (c *compiler) assignMemory() {
	x := c.x
	for id := range c.values {
		for _, t := range c.values[id].terms {
			if s := &c.values[t.value]; s.kind == sumValue && s.step < c.values[id].step {
				s.kept = true
			}
		}
	}
	place := func(kind valueKind, first int) (count int) {
		for id := range c.values {
			if v := &c.values[id]; v.kind == kind && v.kept && (kind != sumValue || v.step >= 0) {
				v.at = location(first + count)
				count++
			}
		}
		return count
	}
	place(inputValue, 0)
	x.received = place(receivedValue, x.inputs)
	x.computed = place(sumValue, x.inputs+x.received)
}

// locate turns values into locations.
func (c *compiler) locate() {
	x := c.x
	for _, m := range x.sends {
		for n, id := range m.slots {
			m.slots[n] = int(c.values[id].at)
		}
	}
	for i := range x.receives {
		m := &x.receives[i]
		m.at = int32(c.values[m.at].at)
	}
	x.between = x.received + x.computed
	put := make([]bool, x.inputs+x.between) // out already
	for o, id := range c.ends {
		r := &x.outputs[o]
		r.at = int(c.values[id].at)
		if r.first = r.at >= x.inputs && !put[r.at]; r.first {
			put[r.at] = true
			x.between--
		}
	}
}

// A batch is values that one operation computes.
type batch struct {
	values  []int
	next    *batch // with the same first source
	ordered bool
}

// A room is where short lists are made, many in one allocation.
type room[T any] []T

// mostRoom is up to how many entries a room is made for at a time, unless a list takes more.
const mostRoom = 1 << 12

// take returns an empty list with room for n, of up to so many that are still to come.
func (r *room[T]) take(n, coming int) []T {
	if n > len(*r) {
		*r = make([]T, max(n, min(mostRoom, coming)))
	}
	list := (*r)[:0:n]
	*r = (*r)[n:]
	return list
}

// order says which operations compute the values of each step.
func (c *compiler) order() {
	for i := range c.steps {
		c.x.steps[i].operations = c.operations(c.orderStep(i))
	}
}

// orderStep orders what a step computes, back from what it has to compute: an element is
// made just before it is first needed, while what it takes is likely to be in the cache.
func (c *compiler) orderStep(step int) (order []*batch) {
	var all []*batch // that another may take the sources of
	same := func(b *batch, v *value) bool {
		w := &c.values[b.values[0]]
		return w.convert == v.convert && slices.EqualFunc(w.terms, v.terms, func(a, b term) bool { return a.value == b.value })
	}
	var nothing *batch // the sums of no terms
	for id := range c.values {
		v := &c.values[id]
		if v.kind != sumValue || int(v.step) != step {
			continue
		}
		head := &nothing
		if len(v.terms) > 0 {
			head = &c.values[v.terms[0].value].first
		}
		b := *head
		for b != nil && (c.values[b.values[0]].step != v.step || !same(b, v)) {
			b = b.next
		}
		if b == nil {
			b = &c.batches.take(1, len(c.values)-id)[:1][0]
			b.next, b.values = *head, c.ids.take(max(1, len(v.terms)), len(c.values)-id)
			*head = b
			if len(v.terms) > fewSources {
				all = append(all, b)
			}
		}
		b.values = append(b.values, id)
		v.batch = b
	}
	c.join(all)
	var visit func(id int)
	visit = func(id int) {
		v := &c.values[id]
		if v.kind != sumValue || int(v.step) != step || v.batch.ordered {
			return
		}
		v.batch.ordered = true
		for _, t := range v.terms {
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
func (c *compiler) join(batches []*batch) {
	terms := func(b *batch) []term { return c.values[b.values[0]].terms }
	slices.SortStableFunc(batches, func(a, b *batch) int { return len(terms(b)) - len(terms(a)) })
	hosts := map[int][]*batch{} // by source
	for _, b := range batches {
		own := terms(b)
		i := slices.IndexFunc(hosts[own[0].value], func(h *batch) bool {
			return len(terms(h))*7 <= len(own)*8 && includes(terms(h), own) &&
				c.values[b.values[0]].depth == c.values[h.values[0]].depth
		})
		if i < 0 {
			for _, t := range own {
				hosts[t.value] = append(hosts[t.value], b)
			}
			continue
		}
		h := hosts[own[0].value][i]
		for _, id := range b.values {
			c.values[id].terms = spread(c.values[id].terms, terms(h))
			c.values[id].batch = h
		}
		h.values = append(h.values, b.values...)
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

// operations makes the operations of batches in order, and gives the elements that only they need
// blocks of the scratch memory, each of which is used again as soon as it is free.
func (c *compiler) operations(order []*batch) []operation {
	x := c.x
	size := 0
	for n, b := range order {
		terms := c.values[b.values[0]].terms
		for _, t := range terms {
			c.values[t.value].last = int32(n)
		}
		size += len(b.values) + len(terms)
	}
	var free []location
	blocks := 0
	maps := map[smallMap]field.Map{}
	operations, locations := make([]operation, 0, len(order)), make([]location, size)
	for n, b := range order {
		terms := c.values[b.values[0]].terms
		op := operation{out: locations[:0:len(b.values)]}
		locations = locations[len(b.values):]
		op.in, locations = locations[:0:len(terms)], locations[len(terms):]
		spare := -1 // a term that the sum takes over
		for i, t := range terms {
			if v := &c.values[t.value]; len(b.values) == 1 && !c.values[b.values[0]].kept && len(terms) > 1 &&
				t.coef == oneCoef && c.scratch(v) && int(v.last) == n {
				spare = i
				break
			}
		}
		for _, id := range b.values {
			v := &c.values[id]
			switch {
			case v.kept:
			case spare >= 0:
				v.at = c.values[terms[spare].value].at
			case len(free) > 0:
				v.at = free[len(free)-1]
				free = free[:len(free)-1]
			default:
				v.at = ^location(blocks)
				blocks++
			}
			op.out = append(op.out, v.at)
		}
		op.add = spare >= 0
		for i, t := range terms {
			v := &c.values[t.value]
			if i == spare {
				continue
			}
			op.in = append(op.in, v.at)
			if c.scratch(v) && int(v.last) == n {
				free = append(free, v.at)
			}
		}
		if op.convert = c.values[b.values[0]].convert; len(terms) > 0 && op.convert == notConverted {
			op.of = c.newMap(b, spare, maps)
		}
		x.widest = max(x.widest, len(op.out)+len(op.in))
		operations = append(operations, op)
	}
	x.scratch = max(x.scratch, blocks)
	return operations
}

// scratch reports whether only one step needs a value.
func (c *compiler) scratch(v *value) bool { return v.kind == sumValue && !v.kept }

// fewEntries is up to how many entries the same matrix is looked for: small ones, such
// as that of a sum, come often.
const fewEntries = 16

// newMap returns the map of a batch, without the given term.
func (c *compiler) newMap(b *batch, without int, known map[smallMap]field.Map) field.Map {
	columns := len(c.values[b.values[0]].terms)
	if without >= 0 {
		columns--
	}
	entries := c.entries[:0]
	for _, id := range b.values {
		for i, t := range c.values[id].terms {
			if i != without {
				entries = append(entries, t.coef)
			}
		}
	}
	c.entries = entries
	few, key := len(entries) <= fewEntries && !c.compact, smallMap{outputs: len(b.values)}
	if few {
		copy(key.entries[:], entries)
		if m := known[key]; m != nil {
			return m
		}
	}
	c.elements = c.elements[:0]
	for _, x := range entries {
		c.elements = append(c.elements, c.element(x))
	}
	if c.compact {
		return newCompactMap(c.x, c.elements)
	}
	m := c.x.newMap(c.elements, columns)
	if few {
		known[key] = m
	}
	return m
}

// newMap returns a map of entries, row by row.
func (x *Executable) newMap(entries []field.Element, columns int) field.Map {
	rows := slices.AppendSeq(make([][]field.Element, 0, len(entries)/columns), slices.Chunk(entries, columns))
	if x.planar != nil {
		return x.planar.PlanarMap(rows)
	}
	return x.plan.Info().Field.Map(rows)
}

// A compactMap is made ready whenever it is applied, a block at a time: ready, it is up to 64 times as large, and
// thousands of ranks may be at it.
type compactMap struct {
	x       *Executable
	entries []byte // symbols, row by row
}

const compactBlock = 1024 // entries

func newCompactMap(x *Executable, entries []field.Element) field.Map {
	f := x.plan.Info().Field
	m := &compactMap{x, make([]byte, len(entries)*f.SymbolBytes())}
	for i, e := range entries {
		field.PutSymbol(f, m.entries[i*f.SymbolBytes():], e)
	}
	return m
}

// Apply is that of [field.Map].
func (m *compactMap) Apply(out, in [][]byte, add bool) {
	f := m.x.plan.Info().Field
	n := f.SymbolBytes()
	columns := min(len(in), compactBlock)
	rows := min(len(out), compactBlock/columns)
	entries := make([]field.Element, 0, rows*columns)
	for top := 0; top < len(out); top += rows {
		bottom := min(top+rows, len(out))
		for left := 0; left < len(in); left += columns {
			right := min(left+columns, len(in))
			entries = entries[:0]
			for row := top; row < bottom; row++ {
				for symbol := range slices.Chunk(m.entries[(row*len(in)+left)*n:(row*len(in)+right)*n], n) {
					entries = append(entries, field.Symbol(f, symbol))
				}
			}
			m.x.newMap(entries, right-left).Apply(out[top:bottom], in[left:right], add || left > 0)
		}
	}
}

// A smallMap is a map of few entries, row by row.
type smallMap struct {
	outputs int
	entries [fewEntries]coef
}
