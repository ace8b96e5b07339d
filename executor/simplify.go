package executor

import (
	"slices"

	"volley/field"
)

// shareProducts lets a product ±c·u be made once where one processor scales an element for
// another and both need it, as in a butterfly. In characteristic 2 maps multiply as fast as
// they add, so there it does nothing.
func (c *compiler) shareProducts() {
	if c.x.binary {
		return
	}
	for id := range c.values {
		v := &c.values[id]
		if v.isProduct() {
			of := &c.values[v.terms[0].value]
			v.next, of.product = of.product, int32(id)
			continue
		}
		for n, t := range v.terms {
			for s := c.values[t.value].product; s != 0; s = c.values[s].next {
				switch coef := c.values[s].terms[0].coef; {
				case t.coef == coef:
					v.terms[n] = term{int(s), oneCoef}
				case c.plus(t.coef, coef) == zeroCoef:
					v.terms[n] = term{int(s), c.minus}
				default:
					continue
				}
				break
			}
		}
	}
}

func (v *value) isProduct() bool { return v.kind == sumValue && len(v.terms) == 1 }

// inlineSums lets the sum that needs another one, which no other sum does and nobody is sent, add
// up its terms itself: that is as much arithmetic, and one sum less to write and read. In other
// characteristics than 2 a sum of several terms has to be needed as it is, not scaled. In
// characteristic 2 all that need a product make it themselves.
func (c *compiler) inlineSums() {
	for _, id := range c.ends {
		c.values[id].kept = true
	}
	for _, r := range c.rounds {
		for _, s := range r.sends {
			for _, id := range s.slots {
				c.values[id].kept = true
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
		var terms []term
		for n, t := range v.terms {
			s := &c.values[t.value]
			alone := s.uses == 1 && (c.x.binary || s.isProduct() || t.coef == oneCoef)
			if s.kind != sumValue || s.kept || !alone && !(c.x.binary && s.isProduct()) {
				if terms != nil {
					terms = append(terms, t)
				}
				continue
			}
			if terms == nil {
				terms = slices.Clone(v.terms[:n])
			}
			for _, u := range s.terms {
				terms = append(terms, term{u.value, c.coefOf(c.field.Mul(c.element(t.coef), c.element(u.coef)))})
			}
		}
		if terms != nil {
			v.terms = c.tidy(terms)
		}
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
	operands, conversions := 0, c.x.inputs+len(c.ends)
	uses := make([]int, c.x.inputs) // now that sums are final
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
	ofInputs, often := copied, copyPays
	if f, ok := c.field.(field.Planar); ok && operands >= planesPay*conversions {
		c.planar, ofInputs, often = f, toPlanes, 1
	}
	convert := func(id int, to conversion) int {
		if c.values[id].converted == 0 {
			terms := append(c.terms.take(1, c.x.inputs+len(c.ends)), term{id, oneCoef})
			c.values[id].converted = int32(c.add(value{kind: sumValue, terms: terms, convert: to, kept: to == fromPlanes}))
		}
		return int(c.values[id].converted)
	}
	for id := range len(c.values) {
		terms := c.values[id].terms
		for n, t := range terms {
			if c.values[t.value].kind == inputValue && uses[t.value] >= often {
				terms[n].value = convert(t.value, ofInputs)
			}
		}
		sortTerms(terms)
	}
	for o, id := range c.ends {
		if v := &c.values[id]; c.planar != nil && v.kind == sumValue && len(v.terms) > 0 && v.convert != fromPlanes {
			v.kept = false
			c.ends[o] = convert(id, fromPlanes)
		}
	}
	c.x.planar = c.planar
}
