package draw

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"volley/algo"
	"volley/field"
	"volley/matrix"
	"volley/matrix/matrices"
	"volley/plan"
	"volley/verify"
)

// A Figure is one of the paper's: C. Wang and N. Raviv, "All-to-All Encode in Synchronous Systems", arXiv:2205.05183.
type Figure struct {
	Number      int      `json:"number"`
	Title       string   `json:"title"`
	Caption     string   `json:"caption"`
	Corrections []string `json:"corrections"` // what the paper has otherwise
	draw        func(*Picture) error
}

// Figures are all four. Rounds are counted from 1 there, as in the paper.
var Figures = []Figure{
	{
		Number: 1,
		Title:  "A universal algorithm for K = 4, p = 1",
		Caption: "In round 1 every processor sends its packet to the next one. In round 2 it sends a sum of the two packets that it then has " +
			"to the second next one, which adds it to its own part of the result. Only the coefficients a depend on the matrix.",
		Corrections: []string{"The caption has a₍ₖ₋₁₎ₖxₖ₋₁ in round 1. It must be xₖ₋₁ itself: processor k sends it on with another coefficient " +
			"in round 2, which it cannot do if a₍ₖ₋₁₎ₖ = 0."},
		draw: drawUniversal,
	},
	{
		Number: 2,
		Title:  "Prepare for K = 65, p = 2: x₀ goes to m = 9 processors",
		Caption: "Filled boxes are processors that have x₀. In round 1 processor 0 sends it to 3 and 6. In round 2 each of the three sends it " +
			"to the next two. All other packets go in the same way at the same time.",
		Corrections: []string{},
		draw:        drawPrepare,
	},
	{
		Number: 3,
		Title:  "Shoot for K = 65, p = 2: what reaches processor 0",
		Caption: "Nine processors hold parts of the result of processor 0. Above each is which packets its part is made of, as first–last modulo 65. " +
			"In round 1 of the phase parts go 9 and 18 processors further, in round 2 they go 27 and 54 further. " +
			"The part of processor 58 is zero, as its packets are in other parts already.",
		Corrections: []string{
			"The caption names processors 60, 3, …, 57, which send to processor 0 for K = 66. For K = 65 they are 58, 2, 11, …, 56.",
			"The text has messages go to k + ρ·mᵗ in round t of the phase. It must be k + ρ·m·(p+1)ᵗ⁻¹: with m = 9, mᵗ is 81 in round 2.",
		},
		draw: drawShoot,
	},
	{
		Number: 4,
		Title:  "The two trees of a DFT for K = 9, p = 2",
		Caption: "Left: polynomials. A polynomial has every third coefficient of its parent, and the leaves are the packets. " +
			"Right: field elements. Each is a third root of its parent, and the leaves are the points at which f is evaluated.",
		Corrections: []string{
			"The caption has f₀(z) = x₀ + x₃z + x₆z³. The last power is z².",
			"The caption has γ₁ = g³ and γ₁₀ = g for a generator g of the field. Both are β³, where β has order K.",
			"The text has processor k begin with xₖ. It begins with the packet whose index has the digits of k reversed: leaf f₀₁ is x₃, not x₁.",
		},
		draw: drawTrees,
	},
}

// Picture draws the figure, as wide as a column of a journal.
func (f Figure) Picture() (*Picture, error) {
	p := &Picture{title: fmt.Sprintf("Figure %d: %s", f.Number, f.Title), notes: append([]string{f.Caption}, f.Corrections...), width: column}
	if err := f.draw(p); err != nil {
		return nil, fmt.Errorf("figure %d: %w", f.Number, err)
	}
	return p, nil
}

const (
	column    = 336.0 // 3.5 inches
	inset     = 2.0   // of texts, which may begin before their place
	fontMath  = 11.0
	fontSmall = 9.0
	soft      = 0xB0B0B0
)

// A traced plan is one with what flows in it.
type traced struct {
	*plan.Materialized
	flow     *plan.Flow
	memories []*verify.Memory
}

// compile returns the plan of an algorithm for K processors.
func compile(algorithm, fieldName, spec, order string, k, ports int) (*traced, matrix.Matrix, error) {
	f, err := field.Parse(fieldName)
	if err != nil {
		return nil, nil, err
	}
	s, err := matrices.ParseSpec(spec)
	if err != nil {
		return nil, nil, err
	}
	s.Order = order
	a, err := s.Build(f, k, k)
	if err != nil {
		return nil, nil, err
	}
	found, err := algo.Lookup(algorithm)
	if err != nil {
		return nil, nil, err
	}
	p, err := found.Compile(a, ports)
	if err != nil {
		return nil, nil, err
	}
	t := &traced{}
	if t.Materialized, err = plan.Materialize(p); err != nil {
		return nil, nil, err
	}
	if t.flow, err = plan.Follow(p); err != nil {
		return nil, nil, err
	}
	t.memories, err = verify.Trace(context.Background(), t.Materialized)
	return t, a, err
}

// subscript writes digits as subscripts.
func subscript(text string) string {
	return strings.NewReplacer("0", "₀", "1", "₁", "2", "₂", "3", "₃", "4", "₄", "5", "₅", "6", "₆", "7", "₇", "8", "₈", "9", "₉").Replace(text)
}

// power writes a power, whose first is the base itself.
func power(base string, n int) string {
	if n == 1 {
		return base
	}
	return base + string([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[n])
}

func packet(row int) string { return "x" + subscript(strconv.Itoa(row)) }

// node draws a box with a processor's number.
func (p *Picture) node(x, y float64, text string, edge, inside uint32, dashes []float64) {
	corners := box{x - 12, y - 10, x + 12, y + 10}.corners()
	p.fill(inside, corners...)
	p.shapes = append(p.shapes, shape{paths: [][]point{append(corners, corners[0])}, colour: edge, width: 1, dashes: dashes})
	colour := edge
	if inside == ink {
		colour = white
	}
	p.text(x, y+4, middle, fontMath, colour, text)
}

// bend draws an arrow that leaves a row of nodes upwards, or downwards, and comes back to it. It returns its middle.
func (p *Picture) bend(source, target point, height float64) point {
	offset := math.Copysign(10, height) // from the middle of a node to its edge
	source.y, target.y = source.y-offset, target.y-offset
	var points []point
	const steps = 24
	for i := range steps + 1 {
		t := float64(i) / steps
		points = append(points, point{source.x + t*(target.x-source.x), source.y - 4*t*(1-t)*height})
	}
	last := segment{points[steps-2], target}
	p.line(ink, 1, points[:steps-1]...)
	p.arrow(last, 0, 1, false, true)
	return point{(source.x + target.x) / 2, source.y - height}
}

// parts writes what a processor makes of packets for a column of A, those first that came the shorter way to it.
func (t *traced) parts(processor, column int, rows []int) string {
	k := t.Common.Processors
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b int) int { return (processor-a+k)%k - (processor-b+k)%k })
	var terms []string
	for _, r := range rows {
		terms = append(terms, "a"+subscript(fmt.Sprint(r, column))+packet(r))
	}
	return strings.ReplaceAll(strings.Join(terms, " + "), " ", "")
}

// drawUniversal draws the messages of each round as arrows between four processors, and what makes the results.
func drawUniversal(p *Picture) error {
	t, _, err := compile("prepare-and-shoot", "2^8", "cauchy", "", 4, 1)
	if err != nil {
		return err
	}
	x := func(processor int) float64 { return column * (float64(processor) + 0.5) / 4 }
	received := make([][]string, 4) // by processor
	y := 60.0
	for round, messages := range t.Messages() {
		p.text(inset, y-44, start, fontMath, ink, fmt.Sprint("round ", round+1))
		low := 0.0
		for _, m := range messages {
			content := t.flow.Content(m.Src, m.Slots[0])
			label := packet(content.Rows[0])
			mine := t.parts(m.Dst, m.Dst, content.Rows)
			if !content.Raw {
				label = t.parts(m.Src, content.Columns[0], content.Rows)
				mine = "(" + label + ")"
			}
			received[m.Dst] = append(received[m.Dst], mine)
			height, below := 22.0, -5.0
			if m.Dst < m.Src {
				height, below = -22, 13
			}
			top := p.bend(point{x(m.Src), y}, point{x(m.Dst), y}, height)
			p.math(top.x, top.y+below, middle, ink, label)
			low = max(low, top.y+below)
		}
		for k := range 4 {
			p.node(x(k), y, strconv.Itoa(k), ink, white, nil)
		}
		y = low + 72
	}
	y -= 46
	for k := range 4 {
		terms := append([]string{t.parts(k, k, []int{k})}, received[k]...)
		p.math(column/2, y, middle, ink, "x̃"+subscript(strconv.Itoa(k))+" = "+strings.Join(terms, " + "))
		y += 17
	}
	p.height = y - 9
	return nil
}

const (
	gutter = 44.0 // for the names of rounds
	pitch  = 32.0 // of boxes
	rung   = 58.0 // of rounds

	fieldTree = 124.0 // where the tree of field elements begins
)

func boxAt(i int) float64 { return gutter + pitch*(float64(i)+0.5) }

// drawPrepare draws the nine processors before the first round of prepare and after each.
func drawPrepare(p *Picture) error {
	t, _, err := compile("prepare-and-shoot", "2^8", "cauchy", "", 65, 2)
	if err != nil {
		return err
	}
	rounds := t.Messages()[:t.Common.Phases[0].Rounds]
	type edge struct{ round, source, target int }
	var edges []edge
	arrival := map[int]int{0: 0} // by processor: after how many rounds
	for round, messages := range rounds {
		for _, m := range messages {
			for _, slot := range m.Slots {
				if rows := t.flow.Content(m.Src, slot).Rows; slices.Equal(rows, []int{0}) {
					edges = append(edges, edge{round, m.Src, m.Dst})
					arrival[m.Dst] = round + 1
				}
			}
		}
	}
	y := func(round int) float64 { return 30 + rung*float64(round) }
	p.math(boxAt(0), 13, middle, ink, packet(0))
	for round := range rounds {
		p.text(inset, y(round)+rung/2+4, start, fontMath, ink, fmt.Sprint("round ", round+1))
		for k := range len(arrival) {
			if arrival[k] <= round {
				p.line(soft, 1, point{boxAt(k), y(round) + 10}, point{boxAt(k), y(round+1) - 10})
			}
		}
	}
	for _, e := range edges {
		p.arrow(segment{point{boxAt(e.source), y(e.round) + 10}, point{boxAt(e.target), y(e.round+1) - 10}}, 0, 1, false, true)
	}
	for round := range len(rounds) + 1 {
		for k := range len(arrival) {
			edge, inside := uint32(soft), uint32(white)
			if arrival[k] <= round {
				edge, inside = ink, ink
			}
			p.node(boxAt(k), y(round), strconv.Itoa(k), edge, inside, nil)
		}
	}
	p.height = y(len(rounds)) + 12
	return nil
}

// A part is what a processor has for y0 before the shoot phase, and where it goes.
type part struct {
	processor, next int   // the processor that has y0 sends to -1
	round           int   // of the message, in the phase
	distance        int   // how far it goes in all
	rows            []int // of the packets in it, modulo K one after the other
}

// partsOf returns the parts of y0, those first that go farthest. A part may be zero.
func (t *traced) partsOf() []part {
	k := t.Common.Processors
	sums := map[int][]int{0: t.flow.Content(0, t.Programs[0].Outputs[0]).Rows} // by processor: all that it sends on
	distances := map[int]int{}
	list := []part{{next: -1}}
	first := t.Common.Phases[0].Rounds
	for round, messages := range slices.Backward(t.Messages()[first:]) {
		for _, m := range messages {
			for i, slot := range m.Slots {
				if slices.Contains(t.flow.Content(m.Dst, m.Received+i).Columns, 0) {
					distances[m.Src] = distances[m.Dst] + (m.Dst-m.Src+k)%k
					sums[m.Src] = t.flow.Content(m.Src, slot).Rows
					list = append(list, part{processor: m.Src, next: m.Dst, round: round, distance: distances[m.Src]})
				}
			}
		}
	}
	for i, q := range list {
		for _, r := range sums[q.processor] {
			if !slices.ContainsFunc(list, func(o part) bool { return o.next == q.processor && slices.Contains(sums[o.processor], r) }) {
				list[i].rows = append(list[i].rows, r)
			}
		}
		slices.SortFunc(list[i].rows, func(a, b int) int { return (q.processor-b+k)%k - (q.processor-a+k)%k })
	}
	slices.SortFunc(list, func(a, b part) int { return b.distance - a.distance })
	return list
}

// drawShoot draws the nine parts of the result of processor 0, and how they come together.
func drawShoot(p *Picture) error {
	t, _, err := compile("prepare-and-shoot", "2^8", "cauchy", "", 65, 2)
	if err != nil {
		return err
	}
	list := t.partsOf()
	rounds := t.Common.Phases[1].Rounds
	position := map[int]int{} // by processor
	for i, q := range list {
		position[q.processor] = i
	}
	y := func(round int) float64 { return 34 + rung*float64(round) }
	x := func(processor int) float64 { return boxAt(position[processor]) }
	dashes := func(q part) []float64 {
		if len(q.rows) > 0 {
			return nil
		}
		return []float64{3, 2}
	}
	p.text(inset, 14, start, fontSmall, ink, "packets")
	for round := range rounds {
		p.text(inset, y(round)+rung/2+4, start, fontMath, ink, fmt.Sprint("round ", round+1))
	}
	for _, q := range list {
		last := rounds // the row of the box with all that the processor sends
		if q.next >= 0 {
			last = q.round
			p.arrow(segment{point{x(q.processor), y(last) + 10}, point{x(q.next), y(last+1) - 10}}, 0, 1, false, true)
			p.shapes[len(p.shapes)-1].dashes = dashes(q)
		}
		if last > 0 {
			p.line(soft, 1, point{x(q.processor), y(0) + 10}, point{x(q.processor), y(last) - 10})
		}
		for row := range last + 1 {
			p.node(x(q.processor), y(row), strconv.Itoa(q.processor), ink, white, dashes(q))
		}
		text := "zero"
		if n := len(q.rows); n > 0 {
			text = fmt.Sprint(q.rows[0], "–", q.rows[n-1])
		}
		p.text(x(q.processor), 14, middle, fontSmall, ink, text)
	}
	p.height = y(rounds) + 12
	for _, q := range list {
		if len(q.rows) == 0 {
			p.height += 16
			p.text(column-inset, p.height-4, end, fontSmall, ink, fmt.Sprintf("The part of processor %d is zero: it is sent, and changes nothing.", q.processor))
		}
	}
	return nil
}

// A treeNode is written as what it is, such as "f₀₁ = x₃".
type treeNode struct {
	name, value string
	rows        []int // the packets of a polynomial, the constant coefficient first
	children    []*treeNode
}

// trees are those of polynomials and of field elements of a DFT for 9 processors, read off the packets of its plan.
func (t *traced) trees(beta field.Element) (polynomials, elements *treeNode, err error) {
	radix := t.Common.Ports + 1
	levels := t.Common.Rounds()
	// sent is what processor k has computed when level rounds are over.
	sent := make([][]plan.Slot, levels+1)
	for round, messages := range t.Messages() {
		sent[round] = make([]plan.Slot, t.Common.Processors)
		for _, m := range messages {
			sent[round][m.Src] = m.Slots[0]
		}
	}
	for _, prog := range t.Programs {
		sent[levels] = append(sent[levels], prog.Outputs[0])
	}
	f := t.Common.Field
	supports := make([][][]int, levels+1) // by level: the packets of its polynomials, the constant coefficient first
	points := make([][]int, levels+1)     // by level: powers of beta
	for level, slots := range sent {
		for k, slot := range slots {
			rows := t.flow.Content(k, slot).Rows
			point := 0
			if len(rows) > 1 {
				coefficient := func(i int) field.Element { return t.memories[k].Coefficient(slot, rows[i]) }
				z := f.Mul(coefficient(1), f.Inv(coefficient(0)))
				for i := range rows {
					if coefficient(i) != f.Mul(coefficient(0), field.Exp(f, z, uint64(i))) {
						return nil, nil, errors.New("a packet is no value of a polynomial")
					}
				}
				for point < t.Common.Processors && field.Exp(f, beta, uint64(point)) != z {
					point++
				}
			}
			if !slices.ContainsFunc(supports[level], func(s []int) bool { return slices.Equal(s, rows) }) {
				supports[level] = append(supports[level], rows)
			}
			if !slices.Contains(points[level], point) {
				points[level] = append(points[level], point)
			}
		}
	}
	var polynomial func(level int, name string, rows []int) *treeNode
	polynomial = func(level int, name string, rows []int) *treeNode {
		node := &treeNode{name: name, value: name, rows: rows}
		if level == 0 {
			node.value += " = " + packet(rows[0])
			return node
		}
		for digit := range radix { // its child has every third coefficient
			for _, s := range supports[level-1] {
				if s[0] == rows[digit] && (len(s) == 1 || s[1] == rows[digit+radix]) {
					node.children = append(node.children, polynomial(level-1, name+subscript(strconv.Itoa(digit)), s))
				}
			}
		}
		return node
	}
	var element func(level int, digits string, point int) *treeNode
	element = func(level int, digits string, point int) *treeNode {
		value := field.Exp(f, beta, uint64(point))
		node := &treeNode{name: "γ" + subscript(digits)}
		node.value = node.name + " = " + value.String()
		if level > 0 {
			node.value = node.name + " = " + power("β", point) + " = " + value.String()
		}
		if level == levels {
			return node
		}
		slices.Sort(points[level+1])
		digit := 0
		for _, child := range points[level+1] { // the roots of the element
			if child*radix%t.Common.Processors == point {
				node.children = append(node.children, element(level+1, strconv.Itoa(digit)+digits, child))
				digit++
			}
		}
		return node
	}
	return polynomial(levels, "f", supports[levels][0]), element(0, "", 0), nil
}

// drawTrees draws the two trees beside each other, from their roots to the right.
func drawTrees(p *Picture) error {
	t, _, err := compile("dft", "19", "dft", "reversed", 9, 2)
	if err != nil {
		return err
	}
	_, natural, err := compile("universal", "19", "dft", "", 9, 2)
	if err != nil {
		return err
	}
	beta := natural.At(1, 1)
	polynomials, elements, err := t.trees(beta)
	if err != nil {
		return err
	}
	bottom := p.tree(polynomials, []float64{inset, 28, 66})
	p.tree(elements, []float64{fieldTree, 170, 262})
	y := bottom + 10
	p.math(fieldTree+36, y+17, start, ink, fmt.Sprintf("β = %v, q = %v", beta, t.Common.Field.Order()))
	for _, node := range append([]*treeNode{polynomials}, polynomials.children...) {
		var terms []string
		for i, row := range node.rows {
			term := packet(row)
			if i > 0 {
				term += power("z", i)
			}
			terms = append(terms, term)
		}
		if n := len(terms); n > 3 {
			terms = []string{terms[0], terms[1], "…", terms[n-1]}
		}
		p.math(inset, y, start, ink, node.name+"(z) = "+strings.Join(terms, " + "))
		y += 17
	}
	p.height = y - 9
	return nil
}

// tree draws a tree whose levels begin at some x. Edges go from the end of a text to the beginning of another. It
// returns where the next line comes.
func (p *Picture) tree(root *treeNode, levels []float64) float64 {
	y := 14.0
	var draw func(node *treeNode, level int) float64
	draw = func(node *treeNode, level int) (height float64) {
		var ends []float64
		for _, child := range node.children {
			ends = append(ends, draw(child, level+1))
		}
		if height = y; len(ends) == 0 {
			y += 19
		} else {
			height = (ends[0] + ends[len(ends)-1]) / 2
		}
		right := levels[level] + 1.15*formulaWidth(node.value) + 5 // LaTeX's formulas are wider
		for _, branch := range ends {
			p.line(soft, 1, point{right, height - 4}, point{levels[level+1] - 3, branch - 4})
		}
		p.math(levels[level], height, start, ink, node.value)
		return height
	}
	draw(root, 0)
	return y
}
