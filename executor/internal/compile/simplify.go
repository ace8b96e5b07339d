package compile

import (
	"slices"

	"volley/field"
)

func (v *value) isProduct() bool { return v.kind == sumValue && v.count == 1 }

// inlineSums lets the sum that needs another one, which no other sum does and nobody is sent, add
// up its terms itself: that is as much arithmetic, and one sum less to write and read. In other
// characteristics than 2 a sum of several terms has to be needed as it is, not scaled. In
// characteristic 2 all that need a product make it themselves.
func (c *compiler) inlineSums() {
	for _, id := range c.ends {
		c.poller.Steps(1)
		c.values[id].kept = true
	}
	for _, r := range c.rounds {
		for _, s := range r.sends {
			c.poller.Steps(1 + len(s.Slots))
			for _, id := range s.Slots {
				c.values[id].kept = true
			}
		}
	}
	for id := range int32(len(c.values)) {
		for _, t := range c.termsOf(id) {
			c.values[t.value].uses++
		}
	}
	inlined := func(t term) bool {
		s := &c.values[t.value]
		alone := s.uses == 1 && (c.x.Binary || s.isProduct() || t.coef == oneCoef)
		return s.kind == sumValue && !s.kept && (alone || c.x.Binary && s.isProduct())
	}
	for id := range int32(len(c.values)) {
		old := c.termsOf(id)
		if !slices.ContainsFunc(old, inlined) {
			continue
		}
		start := len(c.terms)
		for _, t := range old {
			if !inlined(t) {
				c.terms = append(c.terms, t)
				continue
			}
			for _, u := range c.termsOf(t.value) {
				c.terms = append(c.terms, term{u.value, c.coefOf(c.field.Mul(c.element(t.coef), c.element(u.coef)))})
			}
		}
		terms := c.tidy(c.terms[start:])
		c.terms = c.terms[:start+len(terms)]
		v := &c.values[id]
		v.firstTerm, v.count = int32(start), int32(len(terms))
	}
}

// copyPays is in how many sums an input is from which on it is worth a copy in scratch
// memory, where blocks of several inputs do not push each other out of the cache. Kernels
// for bytes make up to 16 sums at a time and read an input once for these. By measurement, to
// read it four times costs less than a copy.
const copyPays = 17

// planesPay is how many elements maps read and write for each that is converted to planes
// or back, from which on planes pay.
const planesPay = 4

// convert lets everything be computed in planes where the field has them, nothing
// is sent, and enough is computed to make the conversion of inputs and outputs pay. Else it
// copies the inputs that are needed often.
func (c *compiler) convert() {
	if len(c.rounds) > 0 {
		return
	}
	operands, conversions := 0, c.x.Inputs+len(c.ends)
	uses := make([]int, c.x.Inputs) // now that sums are final
	for id := range int32(len(c.values)) {
		if c.values[id].kind == sumValue {
			operands++
		}
		for _, t := range c.termsOf(id) {
			operands++
			if int(t.value) < len(uses) {
				uses[t.value]++
			}
		}
	}
	ofInputs, leastUses := Copied, copyPays
	if f, ok := c.field.(field.Planar); ok && operands >= planesPay*conversions {
		c.planar, ofInputs, leastUses = f, ToPlanes, 1
	}
	convert := func(id int32, target Conversion) int32 {
		if c.values[id].converted == 0 {
			c.terms = append(c.terms, term{id, oneCoef})
			v := value{kind: sumValue, convert: target, kept: target == FromPlanes, firstTerm: int32(len(c.terms) - 1), count: 1}
			c.values[id].converted = c.add(v)
		}
		return c.values[id].converted
	}
	for id := range int32(len(c.values)) {
		for n, t := range c.termsOf(id) {
			if c.values[t.value].kind == inputValue && uses[t.value] >= leastUses {
				converted := convert(t.value, ofInputs)
				c.termsOf(id)[n].value = converted
			}
		}
		sortTerms(c.termsOf(id))
	}
	for o, id := range c.ends {
		c.poller.Steps(1)
		if v := &c.values[id]; c.planar != nil && v.kind == sumValue && v.count > 0 && v.convert != FromPlanes {
			v.kept = false
			c.ends[o] = convert(id, FromPlanes)
		}
	}
	c.x.Planar = c.planar
}
