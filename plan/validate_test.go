package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field"
	_ "volley/field/curves"
	"volley/field/fieldtest"
	"volley/internal/fuzzlimit"
	"volley/plan"
)

// handmade is a plan in which processor 0 has two packets of two pieces, 1 passes on what
// it is sent and 2 obtains one packet. A phase has no round and one a name like a tag.
func handmade(t testing.TB) *plan.Materialized {
	t.Helper()
	term := func(slot int, coef uint64) plan.Term { return plan.Term{Slot: slot, Coef: field.Code(coef)} }
	return &plan.Materialized{
		Common: plan.Info{
			Algorithm: "by-hand", Parameters: "a=1 b=2", Field: fieldtest.Parse(t, "257"), Processors: 3, Ports: 2, Rows: 4, Columns: 2, Pieces: 2,
			Phases: []plan.Phase{{Name: "out", Rounds: 1}, {Name: "idle"}, {Name: "<on>", Rounds: 1}},
			Notes:  []string{"a note", "another note"}, Layers: []string{"a layer"},
		},
		Programs: []*plan.Program{
			{Proc: 0, Inputs: 4, Rounds: []plan.Round{
				{
					Compute: []plan.Combination{{term(0, 1)}, {term(1, 3)}, {term(2, 1), term(3, 1)}},
					Sends:   []plan.Send{{Port: 1, Dst: 1, Slots: []plan.Slot{4, 5, 6}}},
				},
				{},
			}},
			{Proc: 1, Rounds: []plan.Round{
				{Recvs: []plan.Recv{{Port: 1, Src: 0, Count: 3}}},
				{Sends: []plan.Send{{Port: 0, Dst: 2, Slots: []plan.Slot{0, 1, 2}}}},
			}},
			{Proc: 2, Rounds: []plan.Round{
				{},
				{Recvs: []plan.Recv{{Port: 0, Src: 1, Count: 3}}},
			}, Compute: []plan.Combination{{term(0, 1), term(1, 2)}, {term(2, 1)}}, Outputs: []plan.Slot{3, 4}},
		},
		Rows:    [][]int{{0, 1, 2, 3}, {}, {}},
		Columns: [][]int{{}, {}, {0, 1}},
	}
}

// A plan, the program of processor 1, and its first round.
type (
	M = *plan.Materialized
	P = *plan.Program
	R = *plan.Round
)

// breakages change a valid plan in one place: a universal one for 5 processors and 2
// ports, or the handmade one. What is wanted is the text of the error.
var breakages = []struct {
	want     string
	handmade bool
	do       func(M, P, R)
}{
	{"processor 1 round 0 port 2: port: got port 2, want one of [0, 2) (and 1 more)", false, func(_ M, _ P, r R) { r.Sends[0].Port = 2 }},
	{"processor 1 round 0: port: got port -1, want one of [0, 2) (and 1 more)", false, func(_ M, _ P, r R) { r.Recvs[0].Port = -1 }},
	{"processor 1 round 0 port 0: port: got a second message, want one per port, round and direction (and 1 more)", false, func(_ M, _ P, r R) { r.Sends[1].Port = 0 }},
	{"processor 1 round 0 port 0: port: got a second message, want one per port, round and direction (and 1 more)", false, func(_ M, _ P, r R) { r.Recvs[1].Port = 0 }},
	{"the plan: port: got 5 ports, want 1 to 4", false, func(m M, _ P, _ R) { m.Common.Ports = 5 }},
	{"the plan: port: got 2 ports, want 1 to 1", false, func(m M, _ P, _ R) { m.Common.Processors = 1 }},
	{"the plan: port: got 0 ports, want 1 to 4", false, func(m M, _ P, _ R) { m.Common.Ports = 0 }},
	{"processor 1 round 0 port 0: partner: got processor 1, want another one of [0, 5) (and 1 more)", false, func(_ M, _ P, r R) { r.Sends[0].Dst = 1 }},
	{"processor 1 round 0 port 0: partner: got processor 5, want another one of [0, 5) (and 1 more)", false, func(_ M, _ P, r R) { r.Sends[0].Dst = 5 }},
	{"processor 1 round 0 port 0: partner: got processor -1, want another one of [0, 5) (and 1 more)", false, func(_ M, _ P, r R) { r.Recvs[0].Src = -1 }},
	{"processor 1 round 0 port 0: order: got after port 1, want receives in port order", false, func(_ M, _ P, r R) { slices.Reverse(r.Recvs) }},
	{"processor 1 round 0 port 0: count: got 0 elements, want 1 or more (and 1 more)", false, func(_ M, _ P, r R) { r.Sends[0].Slots = []plan.Slot{} }},
	// Slots 6, 8 and 9 are not there then, and processor 3 sends one element.
	{"processor 1 round 0 port 0: count: got 0 elements, want 1 or more (and 4 more)", false, func(_ M, _ P, r R) { r.Recvs[0].Count = 0 }},
	{"processor 1 round 0 port 0 slot 3: slot: got slot 3, want one of [0, 3)", false, func(_ M, _ P, r R) { r.Sends[0].Slots = []plan.Slot{3} }},
	{"processor 1: slot: got slot -1, want one of [0, 9)", false, func(_ M, p P, _ R) { p.Compute[0][0].Slot = -1 }},
	{"processor 1 slot 10: slot: got slot 10, want one of [0, 10)", false, func(_ M, p P, _ R) { p.Outputs[0] = 10 }},
	{"processor 1 slot 9: slot: got slot 9, want one of [0, 9)", false, func(_ M, p P, _ R) { p.Compute[0][0].Slot = 9 }},
	{"processor 1 slot 0: coefficient: got 257, want an element of 257", false, func(_ M, p P, _ R) { p.Compute[0][0].Coef = field.Code(257) }},
	{"processor 0 round 0 port 1: match: got a send to 1 that it does not receive, want one receive", true, func(_ M, _ P, r R) {
		r.Recvs, r.Compute = nil, []plan.Combination{{}, {}, {}}
	}},
	// Slots 7, 8 and 9 are not there then.
	{"processor 2 round 0 port 1: match: got a send to 1 that it does not receive, want one receive (and 3 more)", false, func(_ M, _ P, r R) { r.Recvs = r.Recvs[:1] }},
	{"processor 0 round 0 port 1: match: got a receive from 1 that it does not send, want one send", false, func(_ M, _ P, r R) { r.Sends = r.Sends[:1] }},
	{"processor 1 round 0 port 0: match: got 1 element sent to 0, want 1 element, which processor 4 expects", false, func(_ M, _ P, r R) { r.Sends[0].Dst = 0 }},
	{"processor 1 round 0 port 0: match: got a receive from 2 that processor 0 expects too, want one receiver (and 1 more)", false, func(_ M, _ P, r R) { r.Recvs[0].Src = 2 }},
	{"processor 1 round 0 port 0: match: got 2 elements sent to 4, want 1 element, which processor 4 expects", false, func(_ M, _ P, r R) { r.Sends[0].Slots = []plan.Slot{0, 0} }},
	{"processor 1 round 0 port 1: match: got 2 elements sent to 0, want 1 element, which processor 0 expects", false, func(_ M, _ P, r R) { r.Sends[1].Slots = []plan.Slot{0, 0} }},
	{"processor 1: rounds: got 1 round, want 2 (and 7 more)", false, func(_ M, p P, _ R) { p.Rounds = p.Rounds[:1] }},
	{"processor 1: processor: got the program of processor 2, want its own", false, func(_ M, p P, _ R) { p.Proc = 2 }},
	{"the plan: processor: got 0 processors, want 1 or more", false, func(m M, _ P, _ R) { m.Common.Processors = 0 }},
	{"processor 1 slot 9: matrix: got a second output for column 0, want one (and 1 more)", false, func(m M, _ P, _ R) { m.Columns[1][0] = 0 }},
	{"processor 1 slot 9: matrix: got column 5, want one of [0, 5) (and 1 more)", false, func(m M, _ P, _ R) { m.Columns[1][0] = 5 }},
	{"the plan: matrix: got outputs for 5 columns, want 6", false, func(m M, _ P, _ R) { m.Common.Columns = 6 }},
	{"the plan: matrix: got inputs for 5 rows, want 6", false, func(m M, _ P, _ R) { m.Common.Rows = 6 }},
	{"processor 1 slot 0: matrix: got row 5, want one of [0, 5)", false, func(m M, _ P, _ R) { m.Rows[1][0] = 5 }},
	{"the plan: pieces: got 2 pieces for 5 rows and 5 columns, want a divisor of both", false, func(m M, _ P, _ R) { m.Common.Pieces = 2 }},
	{"the plan: pieces: got 3 pieces for 5 rows and 6 columns, want a divisor of both", false, func(m M, _ P, _ R) { m.Common.Pieces, m.Common.Columns = 3, 6 }},
	{"the plan: pieces: got -1 pieces for 5 rows and 5 columns, want a divisor of both", false, func(m M, _ P, _ R) { m.Common.Pieces = -1 }},
	{"processor 0: pieces: got 1 row, want a multiple of 5 pieces (and 9 more)", false, func(m M, _ P, _ R) { m.Common.Pieces = 5 }},
	{"processor 0: pieces: got row 1 as number 0, want piece 0 of a packet", true, func(m M, _ P, _ R) { m.Rows[0] = []int{1, 2, 3, 0} }},
	{"processor 0: pieces: got row 3 as number 1, want piece 1 of a packet", true, func(m M, _ P, _ R) { m.Rows[0] = []int{0, 3, 2, 1} }},
	{"processor 2: pieces: got column 1 as number 0, want piece 0 of a packet", true, func(m M, _ P, _ R) { m.Columns[2] = []int{1, 0} }},
}

// valid returns the plan that breakages change.
func valid(t testing.TB, byHand bool) *plan.Materialized {
	t.Helper()
	if byHand {
		return handmade(t)
	}
	m, err := plan.Materialize(algotest.Compile(t, "universal:1,5", "257", "random:1", 5, 2))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestValidateFinds checks that each breach of a rule is found and what is said of it; and that none gets past the
// decoder, which says the line: program k is in line k+2.
func TestValidateFinds(t *testing.T) {
	for _, b := range breakages {
		m, invalid := valid(t, b.handmade), new(plan.ValidationError)
		if err := plan.Validate(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		b.do(m, m.Programs[1], &m.Programs[1].Rounds[0])
		if err := plan.Validate(t.Context(), m); !errors.As(err, &invalid) || err.Error() != "plan: "+b.want {
			t.Errorf("error %v, want plan: %s", err, b.want)
		}
		var file bytes.Buffer
		if err := plan.Encode(&file, m); err != nil {
			t.Fatal(err)
		}
		_, err := plan.Decode(&file)
		line, k := 1, 0
		if n, _ := fmt.Sscanf(b.want, "processor %d", &k); n == 1 {
			line = k + 2
		}
		if want := fmt.Sprintf("plan: line %d: %s", line, b.want); !errors.As(err, &invalid) || err.Error() != want {
			t.Errorf("decoded: error %v, want %s", err, want)
		}
	}
}

// liar is a plan that says something of itself that its programs do not bear out.
type liar struct {
	*plan.Materialized
	schedule func(*plan.Schedule)
	classes  []plan.Class
	program  error
}

func (l liar) Schedule(proc int) plan.Schedule {
	s := l.Materialized.Schedule(proc)
	s.Rounds = slices.Clone(s.Rounds) // of the program
	for t, r := range s.Rounds {
		s.Rounds[t].Sends, s.Rounds[t].Recvs = slices.Clone(r.Sends), slices.Clone(r.Recvs)
	}
	if l.schedule != nil {
		l.schedule(&s)
	}
	return s
}

func (l liar) Classes() []plan.Class {
	if l.classes != nil {
		return l.classes
	}
	return l.Materialized.Classes()
}

func (l liar) Program(proc int) (*plan.Program, error) {
	if l.program != nil {
		return nil, l.program
	}
	return l.Materialized.Program(proc)
}

// TestValidateFindsLies has the text of the error, of a schedule up to its rounds.
func TestValidateFindsLies(t *testing.T) {
	for _, c := range []struct {
		want     string // of processor 0's schedule
		handmade bool
		lie      func(s *plan.Schedule)
	}{
		{"2 inputs, 1 outputs, 10 slots", false, func(s *plan.Schedule) { s.Inputs++ }},
		{"1 inputs, 2 outputs, 10 slots", false, func(s *plan.Schedule) { s.Outputs = append(s.Outputs, 0) }},
		{"1 inputs, 1 outputs, 9 slots", false, func(s *plan.Schedule) { s.Slots-- }},
		{"1 inputs, 1 outputs, 10 slots", false, func(s *plan.Schedule) { s.Rounds = append(s.Rounds, plan.Round{}) }},
		{"1 inputs, 1 outputs, 10 slots", false, func(s *plan.Schedule) { s.Rounds[0].Sends[0].Slots = []plan.Slot{0, 0, 0, 0} }},
		{"1 inputs, 1 outputs, 10 slots", false, func(s *plan.Schedule) { s.Rounds[0].Recvs[0].Src++ }},
		{"4 inputs, 0 outputs, 7 slots", true, func(s *plan.Schedule) { s.Rounds[0].Sends = nil }},
		{"0 inputs, 0 outputs, 3 slots", true, func(s *plan.Schedule) { s.Rounds[0].Recvs = nil }},
		{"", true, func(s *plan.Schedule) { s.Rounds[0].Sends = append([]plan.Send{}, s.Rounds[0].Sends...) }}, // an empty list, not none
		{"", true, func(s *plan.Schedule) { s.Rounds[0].Recvs = append([]plan.Recv{}, s.Rounds[0].Recvs...) }},
	} {
		checkLiar(t, liar{Materialized: valid(t, c.handmade), schedule: c.lie}, "schedule: got "+c.want)
	}
	for want, classes := range map[string][]plan.Class{
		"processor 0: classes: got a second class, want one that it stands for":                         {{0, 2}, {0, 3}},
		"the plan: classes: got classes of 4 processors, want 5":                                        {{0, 4}},
		"processor 5: classes: got a class of 5, want a processor of the plan and a class of 1 or more": {{5, 5}},
		"processor 1: classes: got a class of 0, want a processor of the plan and a class of 1 or more": {{0, 5}, {1, 0}},
	} {
		checkLiar(t, liar{Materialized: valid(t, false), classes: classes}, want)
	}
	checkLiar(t, liar{Materialized: valid(t, true), classes: []plan.Class{{Representative: 0, Count: 3}}},
		"processor 0: classes: got classes that have 3 schedules like its own, want 1") // and not all are alike
	// Of 5 processors; no row is an input then, and no column an output.
	checkLiar(t, liar{Materialized: valid(t, false), program: errors.New("singular")}, "processor 0: program: got singular, want a program (and 6 more)")
}

func checkLiar(t *testing.T, l liar, want string) {
	t.Helper()
	invalid := new(plan.ValidationError)
	err := plan.Validate(t.Context(), l)
	if strings.HasSuffix(want, "got ") {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.As(err, &invalid) {
		t.Fatalf("error %v, want %s", err, want)
	}
	if text, _, _ := strings.Cut(err.Error(), ";"); !strings.HasSuffix(text, want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestValidationErrorIsBounded checks that a plan that is wrong everywhere gives
// an error of bounded size.
func TestValidationErrorIsBounded(t *testing.T) {
	m, err := plan.Materialize(algotest.Compile(t, "bruck-allgather", "257", "random:1", 40, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Programs {
		for i := range p.Rounds {
			p.Rounds[i].Sends[0].Port = 9
		}
	}
	var invalid *plan.ValidationError
	if err := plan.Validate(t.Context(), m); !errors.As(err, &invalid) || len(invalid.Violations) != 100 {
		t.Fatalf("error %v, want 100 violations", err)
	}
	if n := len(invalid.Error()); n > 300 {
		t.Errorf("an error text of %d bytes", n)
	}
}

// TestJSON checks that plans of every algorithm are valid, and that decoding what was encoded gives the same plan.
func TestJSON(t *testing.T) {
	plans := []plan.Plan{handmade(t)} // every field of Info, and processors without inputs and outputs
	for _, a := range algo.Algorithms() {
		for k := 1; k <= 20 && !a.Structured; k++ {
			plans = append(plans, algotest.Compile(t, a.Name, "97", "random:1", k, 1+k%4))
		}
	}
	for _, p := range plans {
		what := fmt.Sprintf("%s, K=%d", p.Info().Name(), p.Info().Processors)
		if err := plan.Validate(t.Context(), p); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var first, second bytes.Buffer
		if err := plan.Encode(&first, p); err != nil {
			t.Fatal(err)
		}
		text := first.String()
		m, err := plan.Decode(&first)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := plan.Encode(&second, m); err != nil {
			t.Fatal(err)
		}
		if second.String() != text {
			t.Errorf("%s: encoded again it differs", what)
		}
		common := p.Info()
		common.Arguments = nil // which a file has not
		if got, want := fmt.Sprint(m.Info()), fmt.Sprint(common); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

// TestLongProgram decodes a program of many terms.
func TestLongProgram(t *testing.T) {
	m := handmade(t)
	long := make(plan.Combination, 10_000)
	for i := range long {
		long[i] = plan.Term{Slot: i % 3, Coef: field.Code(uint64(1 + i%256))}
	}
	m.Programs[2].Compute[1] = long
	var file bytes.Buffer
	if err := plan.Encode(&file, m); err != nil {
		t.Fatal(err)
	}
	if got, err := plan.Decode(&file); err != nil || !slices.Equal(got.Programs[2].Compute[1], long) {
		t.Errorf("the long combination is another one when decoded: %v", err)
	}
}

// TestFollow checks what slots hold where rows are more than a word has bits: 130 packets
// of one processor, and their sum.
func TestFollow(t *testing.T) {
	const n = 130
	prog := &plan.Program{Inputs: n, Compute: make([]plan.Combination, 1), Outputs: []plan.Slot{n}}
	m := &plan.Materialized{
		Common:   plan.Info{Field: fieldtest.Parse(t, "2"), Processors: 1, Ports: 1, Rows: n, Columns: 1},
		Programs: []*plan.Program{prog}, Rows: [][]int{make([]int, n)}, Columns: [][]int{{0}},
	}
	for i := range n {
		m.Rows[0][i] = i
		prog.Compute[0] = append(prog.Compute[0], plan.Term{Slot: i, Coef: field.One})
	}
	follow := func(m *plan.Materialized) *plan.Flow {
		f, err := plan.Follow(m)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := follow(m)
	for i := range n {
		want := plan.Content{Rows: []int{i}, Columns: []int{0}, Raw: true}
		if got := f.Content(0, i); !reflect.DeepEqual(got, want) {
			t.Errorf("slot %d: %+v, want %+v", i, got, want)
		}
	}
	if got, want := f.Content(0, n), (plan.Content{Rows: m.Rows[0], Columns: []int{0}, Complete: true}); !reflect.DeepEqual(got, want) {
		t.Errorf("the sum: %+v, want %+v", got, want)
	}
	// A packet times a coefficient is scaled, also where the lowest word of that is 1.
	m.Common.Field, m.Common.Rows, m.Rows, prog.Inputs, prog.Outputs = fieldtest.Parse(t, "bn254"), 1, [][]int{{0}}, 1, []plan.Slot{1}
	for want, coef := range map[string]field.Element{"x0": field.One, "y0": {1, 1}} {
		prog.Compute[0] = plan.Combination{{Slot: 0, Coef: coef}}
		if got := follow(m).Content(0, 1).String(); got != want {
			t.Errorf("%v·x0 is called %s, want %s", coef, got, want)
		}
	}
}

func TestPieces(t *testing.T) {
	for pieces, want := range []string{"x7 y7 of 1", "x7 y7 of 1", "x3.1 y3.1 of 2", "x2.1 y2.1 of 3"} {
		i := plan.Info{Pieces: pieces}
		if got := fmt.Sprintf("%s %s of %d", i.InitialName(7), i.CodedName(7), i.PieceCount()); got != want {
			t.Errorf("%d pieces: %s, want %s", pieces, got, want)
		}
	}
}

func TestSchedule(t *testing.T) {
	m := handmade(t)
	for k, want := range []plan.Schedule{{Slots: 7, Terms: 4}, {Slots: 3}, {Slots: 5, Terms: 3}} {
		want.Program = *m.Programs[k]
		if got := m.Schedule(k); !reflect.DeepEqual(got, want) {
			t.Errorf("processor %d: %+v, want %+v", k, got, want)
		}
	}
	if got := plan.MemorySlots(m); got != 7 {
		t.Errorf("%d slots, want the 7 of processor 0", got)
	}
	if got := plan.MemorySlots(&plan.Materialized{Programs: []*plan.Program{{}}}); got != 0 {
		t.Errorf("%d slots where there is nothing", got)
	}
}

// decoded is a plan in a text of many lines.
const decoded = `{"format": "volley-plan", "version": 1, "algorithm": "by hand", "parameters": "", "field": "2^8:0x11b",
		"processors": 2, "ports": 1, "rows": 2, "columns": 1,
		"phases": [{"name": "a", "rounds": 2}], "programs": [
		{"proc": 0, "rows": [0], "rounds": [
			{"compute": [[]], "sends": [{"port": 0, "dst": 1, "slots": [0, 1]}], "recvs": []},
			{"compute": [], "sends": [], "recvs": [{"port": 0, "src": 1, "count": 1}]}
		], "compute": [[[0, "0"], [2, "255"]]], "outputs": [{"slot": 3, "column": 0}]},
		{"rounds": [
			{"compute": [], "sends": [], "recvs": [{"port": 0, "src": 0, "count": 2}]},
			{"compute": [], "sends": [{"port": 0, "dst": 0, "slots": [2]}], "recvs": []}
		], "proc": 1, "rows": [1], "compute": [], "outputs": []}
	]}
`

// TestDecodeLines has the line of a round, in a text of many lines, of all that docs/format.md does not allow.
func TestDecodeLines(t *testing.T) {
	if _, err := plan.Decode(strings.NewReader(decoded)); err != nil {
		t.Fatal(err)
	}
	const number = "want a string with a decimal number of at most 78 digits, without sign or leading zeros"
	overflow := fmt.Sprintf(`[{"name": "a", "rounds": %d}, {"name": "b", "rounds": %[1]d}, {"name": "c", "rounds": 2}]`, math.MaxInt)
	for _, c := range []struct{ old, new, want string }{
		{decoded, ``, `unexpected EOF`},
		{decoded, `plan`, `invalid character 'p' looking for beginning of value`},
		{decoded, strings.Replace(strings.ReplaceAll(decoded, "\n", " "), `"sends"`, `"sent"`, 1), `processor 0 round 0: unknown key "sent"`},
		{`volley-plan`, `other`, `line 1: format other: want volley-plan`},
		{`"version": 1`, `"version": 2`, `line 1: version 2: want 1`},
		{`2^8:0x11b`, `6`, `line 1: field "6": 6 = 2·3 is no prime power`},
		{`"ports"`, `"prots"`, `line 2: unknown key "prots"`},
		{`"processors": 2`, `"processors": 3`, `line 12: 2 programs: want 3, one for each processor`},
		{`"rounds": 2}`, `"rounds": -1}`, `line 3: phase "a" has -1 rounds: want 0 or more, as many as the programs have`},
		{`[{"name": "a", "rounds": 2}]`, overflow, `line 3: phase "b" has 9223372036854775807 rounds: want 0 or more, as many as the programs have`},
		{`[0, "0"]`, `[0, "one"]`, `line 7: processor 0: coefficient "one": ` + number},
		{`[0, "0"]`, `[0, "-1"]`, `line 7: processor 0: coefficient "-1": ` + number},
		{`[0, "0"]`, `[0, 1]`, `line 7: processor 0: coefficient 1: ` + number},
		{`[0, "0"]`, `[0, "0", 1]`, `line 7: processor 0: a term of more than two: want [slot, "coefficient"]`},
		{`"version": 1,`, ``, `line 12: key "version" is missing`},
		{`"version": 1`, `"version": 1.0`, `line 1: 1.0: want an integer`},
		{`"version": 1`, `"version": 1, "version": 1`, `line 1: key "version" twice`},
		{`"by hand"`, `null`, `line 1: null: want a string`},
		{`"by hand"`, "\"\xff\"", `line 1: text that is not UTF-8`},
		{`2^8:0x11b`, `256`, `line 1: field "256": write it as "2^8"`},
		{`2^8:0x11b`, `2^8:283`, `line 1: field "2^8:283": write it as "2^8:0x11b"`},
		{`"rows": 2,`, `"rows": 2, "pieces": 0,`, `line 2: 0 pieces: want 1 or more`},
		{`"phases": [{"name": "a", "rounds": 2}], `, ``, `line 12: key "phases" is missing`},
		{`"rounds": 2}`, `"rounds": 1}`, `line 4: processor 0: rounds: got 2 rounds, want 1 (and 1 more)`},
		{`[{"name": "a", "rounds": 2}]`, `null`, `line 3: null: want a list`},
		{`{"name": "a", "rounds": 2}`, `2`, `line 3: 2: want an object`},
		{`{"port": 0, "dst": 1, "slots": [0, 1]}`, `{"port": 0, "slots": [0, 1]}`, `line 5: processor 0 round 0: key "dst" is missing`},
		{`"compute": [[]], `, ``, `line 5: processor 0 round 0: key "compute" is missing`},
		{`"sends": [], "recvs": [{"port": 0, "src": 1`, `"recvs": [{"port": 0, "src": 1`, `line 6: processor 0 round 1: key "sends" is missing`},
		{`{"port": 0, "src": 1, "count": 1}`, `{"src": 1, "count": 1}`, `line 6: processor 0 round 1: key "port" is missing`},
		{`{"port": 0, "src": 1, "count": 1}`, `{"port": 0, "src": 1, "count": 1, "why": ""}`, `line 6: processor 0 round 1: unknown key "why"`},
		{`"0"]`, `"00"]`, `line 7: processor 0: coefficient "00": ` + number},
		{`"0"]`, `"+1"]`, `line 7: processor 0: coefficient "+1": ` + number},
		{`"0"]`, `""]`, `line 7: processor 0: coefficient "": ` + number},
		{`[0, "0"]`, `[0]`, `line 7: processor 0: a term of 1: want [slot, "coefficient"]`},
		{`[0, "0"]`, `[null, "0"]`, `line 7: processor 0: null: want an integer`},
		{`"255"`, `"256"`, `line 4: processor 0 slot 2: coefficient: got 256, want an element of 2^8:0x11b`},
		{`{"slot": 3, "column": 0}`, `{"slot": 3}`, `line 7: processor 0: key "column" is missing`},
		{`"count": 2`, `"count": 1`, `line 5: processor 0 round 0 port 0: match: got 2 elements sent to 1, want 1 element, which processor 1 expects (and 1 more)`},
		{`"slots": [2]`, `"slots": [4]`, `line 10: processor 1 round 1 port 0 slot 4: slot: got slot 4, want one of [0, 3)`},
		{`"proc": 1`, `"proc": 0`, `line 8: processor 1: processor: got the program of processor 0, want its own`},
		{`"rows": [1], `, ``, `line 11: processor 1: key "rows" is missing`},
		{"\n\t]}\n", "\n\t]}\n{}", `line 13: data after the plan`},
		{"\n\t]}\n", "\n\t],\n\n}", `line 14: invalid character '}' looking for beginning of object key string`},
		{"\n\t]}\n", "\n", `line 11: processor 1: unexpected EOF`},
	} {
		if !strings.Contains(decoded, c.old) {
			t.Fatalf("%s is not there", c.old)
		}
		_, err := plan.Decode(strings.NewReader(strings.Replace(decoded, c.old, c.new, 1)))
		if wrong := new(plan.DecodeError); !errors.As(err, &wrong) || err.Error() != "plan: "+c.want {
			t.Errorf("%s → %s: error %v, want plan: %s", c.old, c.new, err, c.want)
		}
	}
	if _, err := plan.Decode(iotest.ErrReader(errors.ErrUnsupported)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unreadable: %v", err)
	}
}

// FuzzDecode checks that the decoder survives any input and that what it returns
// can be encoded, decoded, described and traced.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"universal", "prepare-and-shoot", "bruck-allgather"} {
		var file bytes.Buffer
		if err := plan.Encode(&file, algotest.Compile(f, name, "257", "random:1", 3, 2)); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
	}
	f.Add([]byte(`{"format":"volley-plan","version":1,"algorithm":"","parameters":"","field":"2","processors":1,"ports":1,"rows":1,"columns":0,` +
		`"phases":[],"programs":[{"proc":0,"rows":[0],"rounds":[],"compute":[],"outputs":[]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Hold(t, len(data))()
		m, err := plan.Decode(bytes.NewReader(data))
		if wrong := new(plan.DecodeError); err != nil {
			if !errors.As(err, &wrong) || wrong.Line < 1 || wrong.Line > 1+bytes.Count(data, []byte("\n")) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("what is no JSON was decoded")
		}
		var file bytes.Buffer
		if err := plan.Encode(&file, m); err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Decode(&file); err != nil {
			t.Fatalf("what was encoded does not decode: %v", err)
		}
		if err := plan.Describe(&file, m); err != nil {
			t.Fatal(err)
		}
	})
}

// TestName checks that a plan is named by its arguments, whatever its parameters say to people.
func TestName(t *testing.T) {
	for _, c := range []struct {
		info plan.Info
		want string
	}{
		{plan.Info{Algorithm: "direct"}, "direct"},
		{plan.Info{Algorithm: "direct", Arguments: [][]int{nil}}, "direct"},
		{plan.Info{Algorithm: "ours", Parameters: "2 trees, at most 3 deep"}, "ours"},
		{plan.Info{Algorithm: "universal", Parameters: "m=4 n=4", Arguments: [][]int{{4, 4}}}, "universal:4,4"},
		{plan.Info{Algorithm: "exchange", Arguments: [][]int{{8}, {4, 2}}}, "exchange:8/4,2"},
	} {
		if got := c.info.Name(); got != c.want {
			t.Errorf("%+v is named %s, want %s", c.info, got, c.want)
		}
	}
}
