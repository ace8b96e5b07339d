package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"volley/field"
	"volley/internal/poll"
	"volley/internal/printable"
)

// A Rule names a condition that every plan meets; see [Validate].
type Rule string

const (
	RuleProcessor   Rule = "processor"   // a program belongs to the processor it was asked for
	RuleRounds      Rule = "rounds"      // every program has the rounds of the plan
	RulePort        Rule = "port"        // ports are in [0, p), each used once per round and direction
	RulePartner     Rule = "partner"     // partners are other processors of the plan
	RuleOrder       Rule = "order"       // receives are in port order
	RuleCount       Rule = "count"       // messages carry one element or more
	RuleSlot        Rule = "slot"        // only slots are used that exist by then
	RuleCoefficient Rule = "coefficient" // coefficients belong to the field
	RuleMatch       Rule = "match"       // each receive has its send, of the same size, and each send its receive
	RuleMatrix      Rule = "matrix"      // every row of A is an input, of one processor or more, and every column one output
	RulePieces      Rule = "pieces"      // the pieces of a packet are inputs, and outputs, of one processor, in order
	RuleSchedule    Rule = "schedule"    // a processor's schedule is that of its program
	RuleClasses     Rule = "classes"     // the classes have representatives of their own, and as many are like each
	RuleProgram     Rule = "program"     // the program can be made
)

// A Violation is one breach of a rule. Proc, Round, Port and Slot are -1 where they do not apply.
type Violation struct {
	Rule  Rule   `json:"rule"`
	Proc  int    `json:"processor"`
	Round int    `json:"round"`
	Port  int    `json:"port"`
	Slot  int    `json:"slot"`
	Got   string `json:"got"`
	Want  string `json:"want"`
}

func (v Violation) String() string {
	var b strings.Builder
	if v.Proc < 0 {
		b.WriteString("the plan")
	} else {
		fmt.Fprintf(&b, "processor %d", v.Proc)
	}
	for _, x := range []struct {
		name string
		n    int
	}{{"round", v.Round}, {"port", v.Port}, {"slot", v.Slot}} {
		if x.n >= 0 {
			fmt.Fprintf(&b, " %s %d", x.name, x.n)
		}
	}
	fmt.Fprintf(&b, ": %s: got %s, want %s", v.Rule, v.Got, v.Want)
	return b.String()
}

// maxViolations bounds what a ValidationError holds: a wrong plan is usually wrong everywhere.
const maxViolations = 100

// A ValidationError lists the breaches found, the first 100 of them, in the order of rounds: what follows from one comes
// after it.
type ValidationError struct {
	Violations []Violation
}

// Error shows the first violation and how many others there are.
func (e *ValidationError) Error() string {
	s := "plan: " + e.Violations[0].String()
	if n := len(e.Violations) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Validate checks the plan against the model: at most p messages out and p in per processor and round, none to oneself,
// every receive matched by one send, only slots that exist, coefficients in the field, and what the plan says of itself
// (rounds, classes, schedules). It makes every program once, so it takes time in proportion to the whole plan. The
// error is a *[ValidationError], or the cause of the context where that ends.
//
// Whether the plan computes the right matrix is another question: see package verify.
func Validate(ctx context.Context, p Plan) (err error) {
	defer poll.Catch(&err)
	p = poll.WithContext(ctx, p)
	info := p.Info()
	v := &validator{
		info:    info,
		rounds:  info.Rounds(),
		steps:   poll.New(ctx),
		waiting: map[message]delivery{},
		rows:    map[int]bool{},
		columns: map[int]bool{},
	}
	if !v.shape() {
		return &ValidationError{v.found}
	}
	for k := range info.Processors {
		v.steps.Steps(1)
		prog, err := p.Program(k)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			v.report(Violation{RuleProgram, k, -1, -1, -1, err.Error(), "a program"})
			continue
		}
		v.program(k, prog)
		v.matrix(p, k, prog)
		schedule := p.Schedule(k)
		v.kinds = append(v.kinds, kindOf(schedule))
		if got, want := schedule, prog.Schedule(); !sameSchedule(got, want) {
			v.report(Violation{RuleSchedule, k, -1, -1, -1, got.text(), want.text()})
		}
	}
	v.unmatched()
	v.classes(p)
	if n := len(v.rows); n != info.Rows {
		v.report(Violation{RuleMatrix, -1, -1, -1, -1, "inputs for " + printable.Count(n, "row"), fmt.Sprint(info.Rows)})
	}
	if n := len(v.columns); n != info.Columns {
		v.report(Violation{RuleMatrix, -1, -1, -1, -1, "outputs for " + printable.Count(n, "column"), fmt.Sprint(info.Columns)})
	}
	if v.order(); len(v.found) > 0 {
		return &ValidationError{v.found}
	}
	return nil
}

// message identifies a message by its sender, as the port rule allows one each.
type message struct{ round, src, port int }

// delivery is what one side of a message says of it.
type delivery struct {
	dst, count int
	sent       bool
}

type validator struct {
	info    Info
	rounds  int
	steps   *poll.Poller
	waiting map[message]delivery // one side seen, the other not yet
	rows    map[int]bool         // rows of A seen as inputs
	columns map[int]bool         // columns of A seen as outputs
	kinds   [][sha256.Size]byte  // of the processors' schedules
	found   []Violation
}

func (v *validator) report(x Violation) {
	if v.found = append(v.found, x); len(v.found) == 2*maxViolations {
		v.order()
	}
}

// order leaves the first violations, in order.
func (v *validator) order() {
	slices.SortStableFunc(v.found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.position(), b.position()), cmp.Compare(uint(a.Proc), uint(b.Proc)))
	})
	v.found = v.found[:min(len(v.found), maxViolations)]
}

// position orders violations: those of a whole program first, then each round, its messages after all else, then the end.
func (v Violation) position() int {
	switch {
	case v.Rule == RuleProcessor, v.Rule == RuleRounds, v.Rule == RuleProgram:
		return -1
	case v.Round < 0:
		return math.MaxInt
	case v.Rule == RuleMatch:
		return 2*v.Round + 1
	}
	return 2 * v.Round
}

// shape checks what the plan says of its size and reports whether the rest can be checked.
func (v *validator) shape() bool {
	if k := v.info.Processors; k < 1 {
		v.report(Violation{RuleProcessor, -1, -1, -1, -1, printable.Count(k, "processor"), "1 or more"})
		return false
	}
	if n := v.info.Pieces; n < 0 || n > 1 && (v.info.Rows%n != 0 || v.info.Columns%n != 0) {
		v.report(Violation{RulePieces, -1, -1, -1, -1, fmt.Sprintf("%s for %s and %s", printable.Count(n, "piece"), printable.Count(v.info.Rows, "row"), printable.Count(v.info.Columns, "column")), "a divisor of both"})
		return false
	}
	if p, limit := v.info.Ports, max(1, v.info.Processors-1); p < 1 || p > limit {
		v.report(Violation{RulePort, -1, -1, -1, -1, printable.Count(p, "port"), fmt.Sprintf("1 to %d", limit)})
		return false
	}
	return true
}

func (v *validator) program(k int, prog *Program) {
	if prog.Proc != k {
		v.report(Violation{RuleProcessor, k, -1, -1, -1, fmt.Sprintf("the program of processor %d", prog.Proc), "its own"})
	}
	if len(prog.Rounds) != v.rounds {
		v.report(Violation{RuleRounds, k, -1, -1, -1, printable.Count(len(prog.Rounds), "round"), fmt.Sprint(v.rounds)})
	}
	slots := prog.Inputs
	for t, r := range prog.Rounds {
		slots = v.combinations(k, t, slots, r.Compute)
		used := make([]bool, v.info.Ports)
		for _, s := range r.Sends {
			if v.end(k, t, s.Port, s.Dst, len(s.Slots), used) {
				v.meet(k, message{t, k, s.Port}, delivery{s.Dst, len(s.Slots), true})
			}
			v.steps.Steps(1 + len(s.Slots))
			for _, slot := range s.Slots {
				v.slot(k, t, s.Port, slot, slots)
			}
		}
		clear(used)
		last := -1
		v.steps.Steps(len(r.Recvs))
		for _, x := range r.Recvs {
			if x.Port < last {
				v.report(Violation{RuleOrder, k, t, x.Port, -1, fmt.Sprint("after port ", last), "receives in port order"})
			}
			last = x.Port
			if v.end(k, t, x.Port, x.Src, x.Count, used) {
				v.meet(k, message{t, x.Src, x.Port}, delivery{k, x.Count, false})
			}
			slots += max(x.Count, 0)
		}
	}
	slots = v.combinations(k, -1, slots, prog.Compute)
	for _, slot := range prog.Outputs {
		v.slot(k, -1, -1, slot, slots)
	}
}

// combinations checks a list of combinations and returns the slots there are after it.
func (v *validator) combinations(k, t, slots int, list []Combination) int {
	for _, c := range list {
		v.steps.Steps(1 + len(c))
		for _, term := range c {
			v.slot(k, t, -1, term.Slot, slots)
			if !field.Contains(v.info.Field, term.Coef) {
				v.report(Violation{RuleCoefficient, k, t, -1, term.Slot, term.Coef.String(), "an element of " + v.info.Field.Name()})
			}
		}
		slots++
	}
	return slots
}

func (v *validator) slot(k, t, port int, slot, slots int) {
	if slot < 0 || slot >= slots {
		v.report(Violation{RuleSlot, k, t, port, slot, fmt.Sprintf("slot %d", slot), fmt.Sprintf("one of [0, %d)", slots)})
	}
}

// end checks one end of a message and reports whether the message can be identified at all.
func (v *validator) end(k, t, port, partner, count int, used []bool) bool {
	if port < 0 || port >= len(used) {
		v.report(Violation{RulePort, k, t, port, -1, fmt.Sprint("port ", port), fmt.Sprintf("one of [0, %d)", len(used))})
		return false
	}
	if used[port] {
		v.report(Violation{RulePort, k, t, port, -1, "a second message", "one per port, round and direction"})
		return false
	}
	used[port] = true
	if count < 1 {
		v.report(Violation{RuleCount, k, t, port, -1, printable.Count(count, "element"), "1 or more"})
	}
	if partner == k || partner < 0 || partner >= v.info.Processors {
		v.report(Violation{RulePartner, k, t, port, -1, fmt.Sprint("processor ", partner), fmt.Sprintf("another one of [0, %d)", v.info.Processors)})
		return false
	}
	return true
}

// meet pairs the two sides of a message.
func (v *validator) meet(k int, m message, d delivery) {
	peer, ok := v.waiting[m]
	if !ok {
		v.waiting[m] = d
		return
	}
	if peer.sent == d.sent { // two receivers claim one message
		v.report(Violation{RuleMatch, k, m.round, m.port, -1, fmt.Sprintf("a receive from %d that processor %d expects too", m.src, peer.dst), "one receiver"})
		return
	}
	delete(v.waiting, m)
	if peer.dst != d.dst || peer.count != d.count {
		s, r := d, peer
		if !d.sent {
			s, r = peer, d
		}
		v.report(Violation{RuleMatch, m.src, m.round, m.port, -1,
			fmt.Sprintf("%s sent to %d", printable.Count(s.count, "element"), s.dst), fmt.Sprintf("%s, which processor %d expects", printable.Count(r.count, "element"), r.dst)})
	}
}

func (v *validator) unmatched() {
	first := func(a, b message) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.src, b.src), cmp.Compare(a.port, b.port))
	}
	for _, m := range slices.SortedFunc(maps.Keys(v.waiting), first) {
		d := v.waiting[m]
		if d.sent {
			v.report(Violation{RuleMatch, m.src, m.round, m.port, -1, fmt.Sprintf("a send to %d that it does not receive", d.dst), "one receive"})
		} else {
			v.report(Violation{RuleMatch, d.dst, m.round, m.port, -1, fmt.Sprintf("a receive from %d that it does not send", m.src), "one send"})
		}
	}
}

// pieces checks that the indexes of a processor's packets, rows or columns, come in whole packets of pieces.
func (v *validator) pieces(k int, kind string, n int, index func(i int) int) {
	pieces := max(1, v.info.Pieces)
	if n%pieces != 0 {
		v.report(Violation{RulePieces, k, -1, -1, -1, printable.Count(n, kind), fmt.Sprintf("a multiple of %d pieces", pieces)})
		return
	}
	for i := range n {
		if want := index(i-i%pieces) + i%pieces; pieces > 1 && (index(i) != want || want%pieces != i%pieces) {
			v.report(Violation{RulePieces, k, -1, -1, -1, fmt.Sprintf("%s %d as number %d", kind, index(i), i), fmt.Sprintf("piece %d of a packet", i%pieces)})
			return
		}
	}
}

func (v *validator) matrix(p Plan, k int, prog *Program) {
	v.pieces(k, "row", prog.Inputs, func(i int) int { return p.Row(k, i) })
	v.pieces(k, "column", len(prog.Outputs), func(o int) int { return p.Column(k, o) })
	for i := range prog.Inputs {
		row := p.Row(k, i)
		if row < 0 || row >= v.info.Rows {
			v.report(Violation{RuleMatrix, k, -1, -1, i, fmt.Sprint("row ", row), fmt.Sprintf("one of [0, %d)", v.info.Rows)})
		}
		v.rows[row] = true
	}
	for o, slot := range prog.Outputs {
		col := p.Column(k, o)
		switch {
		case col < 0 || col >= v.info.Columns:
			v.report(Violation{RuleMatrix, k, -1, -1, slot, fmt.Sprint("column ", col), fmt.Sprintf("one of [0, %d)", v.info.Columns)})
		case v.columns[col]:
			v.report(Violation{RuleMatrix, k, -1, -1, slot, fmt.Sprintf("a second output for column %d", col), "one"})
		default:
			v.columns[col] = true
		}
	}
}

func (v *validator) classes(p Plan) {
	total := 0
	seen := map[int]bool{}
	for _, c := range p.Classes() {
		total += c.Count
		if seen[c.Representative] {
			v.report(Violation{RuleClasses, c.Representative, -1, -1, -1, "a second class", "one that it stands for"})
		}
		seen[c.Representative] = true
		if c.Representative < 0 || c.Representative >= v.info.Processors || c.Count < 1 {
			v.report(Violation{RuleClasses, c.Representative, -1, -1, -1, fmt.Sprintf("a class of %d", c.Count), "a processor of the plan and a class of 1 or more"})
		}
	}
	if total != v.info.Processors {
		v.report(Violation{RuleClasses, -1, -1, -1, -1, fmt.Sprintf("classes of %d processors", total), fmt.Sprint(v.info.Processors)})
	}
	if len(v.found) > 0 {
		return
	}
	claimed, counted := map[[sha256.Size]byte]int{}, map[[sha256.Size]byte]int{}
	for _, c := range p.Classes() {
		claimed[v.kinds[c.Representative]] += c.Count
	}
	for _, kind := range v.kinds {
		counted[kind]++
	}
	for k, kind := range v.kinds {
		if n := counted[kind]; n != claimed[kind] {
			v.report(Violation{RuleClasses, k, -1, -1, -1, fmt.Sprintf("classes that have %d schedules like its own", claimed[kind]), fmt.Sprint(n)})
			return
		}
	}
}

// kindOf returns the digest of what schedules of one class have in common: all but the names of partners and ports.
func kindOf(s Schedule) [sha256.Size]byte {
	var b []byte
	add := func(numbers ...int) {
		for _, n := range numbers {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	add(s.Inputs, len(s.Outputs), s.Slots, s.Terms)
	for _, r := range s.Rounds {
		add(len(r.Sends), len(r.Recvs))
		for _, x := range r.Sends {
			add(len(x.Slots))
		}
		for _, x := range r.Recvs {
			add(x.Count)
		}
	}
	return sha256.Sum256(b)
}

// sameSchedule reports whether two schedules are equal but for their terms.
func sameSchedule(a, b Schedule) bool {
	return a.Inputs == b.Inputs && len(a.Outputs) == len(b.Outputs) && a.Slots == b.Slots &&
		slices.EqualFunc(a.Rounds, b.Rounds, func(x, y Round) bool {
			return slices.Equal(x.Recvs, y.Recvs) && slices.EqualFunc(x.Sends, y.Sends, func(x, y Send) bool {
				return x.Port == y.Port && x.Dst == y.Dst && len(x.Slots) == len(y.Slots)
			})
		})
}

// text returns what sameSchedule compares.
func (s Schedule) text() string {
	text := fmt.Sprintf("%d inputs, %d outputs, %d slots", s.Inputs, len(s.Outputs), s.Slots)
	for t, r := range s.Rounds {
		text += fmt.Sprintf("; round %d:", t)
		for _, x := range r.Sends {
			text += fmt.Sprintf(" %d to %d on port %d", len(x.Slots), x.Dst, x.Port)
		}
		for _, x := range r.Recvs {
			text += fmt.Sprintf(" %d from %d on port %d", x.Count, x.Src, x.Port)
		}
	}
	return text
}
