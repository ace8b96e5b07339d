package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"volley/algo"
	"volley/algo/algotest"
	"volley/field"
	"volley/plan"
)

// TestValidate checks that every registered algorithm's plans are valid.
func TestValidate(t *testing.T) {
	for _, a := range algo.Algorithms() {
		if a.Structured {
			continue
		}
		for k := 1; k <= 20; k++ {
			for ports := 1; ports <= 4; ports++ {
				if err := plan.Validate(algotest.Compile(t, a.Name, "2^8", "random:1", k, ports)); err != nil {
					t.Errorf("%s, K=%d p=%d: %v", a.Name, k, ports, err)
				}
			}
		}
	}
}

// breakages change a valid plan for 5 processors and 2 ports in one place.
var breakages = []struct {
	name string
	rule plan.Rule
	do   func(m *plan.Materialized)
}{
	{"port above p", plan.RulePort, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[0].Port = 2 }},
	{"negative port", plan.RulePort, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Recvs[0].Port = -1 }},
	{"two sends on a port", plan.RulePort, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[1].Port = 0 }},
	{"two receives on a port", plan.RulePort, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Recvs[1].Port = 0 }},
	{"more ports than others", plan.RulePort, func(m *plan.Materialized) { m.Common.Ports = 5 }},
	{"no port", plan.RulePort, func(m *plan.Materialized) { m.Common.Ports = 0 }},
	{"message to oneself", plan.RulePartner, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[0].Dst = 1 }},
	{"message to nobody", plan.RulePartner, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[0].Dst = 5 }},
	{"receive from nobody", plan.RulePartner, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Recvs[0].Src = -1 }},
	{"receives out of order", plan.RuleOrder, func(m *plan.Materialized) {
		r := m.Programs[1].Rounds[0].Recvs
		r[0], r[1] = r[1], r[0]
	}},
	{"empty message", plan.RuleCount, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[0].Slots = nil }},
	{"slot to come", plan.RuleSlot, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[0].Slots = []plan.Slot{100} }},
	{"negative slot", plan.RuleSlot, func(m *plan.Materialized) { m.Programs[1].Compute[0][0].Slot = -1 }},
	{"output that is not there", plan.RuleSlot, func(m *plan.Materialized) { m.Programs[1].Outputs[0] = 1000 }},
	{"combination of itself", plan.RuleSlot, func(m *plan.Materialized) {
		p := m.Programs[1]
		p.Compute[0][0].Slot = p.Schedule().Slots - 1
	}},
	{"coefficient outside the field", plan.RuleCoefficient, func(m *plan.Materialized) { m.Programs[1].Compute[0][0].Coef = field.Code(257) }},
	{"send without receive", plan.RuleMatch, func(m *plan.Materialized) {
		r := &m.Programs[1].Rounds[0]
		r.Recvs = r.Recvs[:1]
	}},
	{"receive without send", plan.RuleMatch, func(m *plan.Materialized) {
		r := &m.Programs[1].Rounds[0]
		r.Sends = r.Sends[:1]
	}},
	{"other receiver", plan.RuleMatch, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[0].Dst = 0 }},
	{"other sender", plan.RuleMatch, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Recvs[0].Src = 2 }},
	{"longer message", plan.RuleMatch, func(m *plan.Materialized) { m.Programs[1].Rounds[0].Sends[0].Slots = []plan.Slot{0, 0} }},
	{"fewer rounds", plan.RuleRounds, func(m *plan.Materialized) { m.Programs[1].Rounds = m.Programs[1].Rounds[:1] }},
	{"another's program", plan.RuleProcessor, func(m *plan.Materialized) { m.Programs[1].Proc = 2 }},
	{"no processors", plan.RuleProcessor, func(m *plan.Materialized) { m.Common.Processors = 0 }},
	{"column twice", plan.RuleMatrix, func(m *plan.Materialized) { m.Columns[1][0] = 0 }},
	{"column outside", plan.RuleMatrix, func(m *plan.Materialized) { m.Columns[1][0] = 5 }},
	{"column missing", plan.RuleMatrix, func(m *plan.Materialized) { m.Common.Columns = 6 }},
	{"row missing", plan.RuleMatrix, func(m *plan.Materialized) { m.Common.Rows = 6 }},
	{"pieces that do not fit", plan.RulePieces, func(m *plan.Materialized) { m.Common.Pieces = 3 }},
	{"negative pieces", plan.RulePieces, func(m *plan.Materialized) { m.Common.Pieces = -1 }},
	{"packets in parts of others", plan.RulePieces, func(m *plan.Materialized) { m.Common.Pieces = 5 }},
	{"row outside", plan.RuleMatrix, func(m *plan.Materialized) { m.Rows[1][0] = 5 }},
}

func broken(t testing.TB, do func(*plan.Materialized)) *plan.Materialized {
	t.Helper()
	m, err := plan.Materialize(algotest.Compile(t, "universal", "257", "random:1", 5, 2))
	if err != nil {
		t.Fatal(err)
	}
	do(m)
	return m
}

// TestValidateFinds checks that each breach of a rule is found, by that rule, and
// that the text names the processor.
func TestValidateFinds(t *testing.T) {
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			m := broken(t, b.do)
			err := plan.Validate(m)
			var invalid *plan.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("error %v, want a ValidationError", err)
			}
			found := false
			for _, v := range invalid.Violations {
				found = found || v.Rule == b.rule
			}
			if !found {
				t.Errorf("%v, want one of rule %s", invalid.Violations, b.rule)
			}
			if !strings.Contains(err.Error(), "processor ") {
				t.Errorf("%q names no processor", err)
			}
		})
	}
}

// liar is a plan that says something of itself that its programs do not bear out.
type liar struct {
	*plan.Materialized
	schedule func(plan.Schedule) plan.Schedule
	classes  []plan.Class
	program  error
}

func (l liar) Schedule(proc int) plan.Schedule {
	s := l.Materialized.Schedule(proc)
	if l.schedule != nil {
		s = l.schedule(s)
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

func TestValidateFindsLies(t *testing.T) {
	for _, c := range []struct {
		name string
		rule plan.Rule
		liar liar
	}{
		{"schedule with fewer slots", plan.RuleSchedule, liar{schedule: func(s plan.Schedule) plan.Schedule { s.Slots--; return s }}},
		{"schedule with more rounds", plan.RuleSchedule, liar{schedule: func(s plan.Schedule) plan.Schedule {
			s.Rounds = append(s.Rounds, plan.ScheduleRound{})
			return s
		}}},
		{"schedule with larger messages", plan.RuleSchedule, liar{schedule: func(s plan.Schedule) plan.Schedule {
			s.Rounds[0].Sends[0].Count++
			return s
		}}},
		{"schedule with another sender", plan.RuleSchedule, liar{schedule: func(s plan.Schedule) plan.Schedule {
			s.Rounds[0].Recvs[0].Src++
			return s
		}}},
		{"classes of fewer processors", plan.RuleClasses, liar{classes: []plan.Class{{Representative: 0, Count: 4}}}},
		{"representative outside", plan.RuleClasses, liar{classes: []plan.Class{{Representative: 5, Count: 5}}}},
		{"no program", plan.RuleProgram, liar{program: errors.New("singular")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.liar.Materialized = broken(t, func(*plan.Materialized) {})
			var invalid *plan.ValidationError
			if err := plan.Validate(c.liar); !errors.As(err, &invalid) || invalid.Violations[0].Rule != c.rule {
				t.Errorf("error %v, want one of rule %s", err, c.rule)
			}
		})
	}
}

// TestValidationErrorIsBounded checks that a plan that is wrong everywhere gives
// an error of bounded size.
func TestValidationErrorIsBounded(t *testing.T) {
	m, err := plan.Materialize(algotest.Compile(t, "direct", "257", "random:1", 40, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Programs {
		for i := range p.Rounds {
			p.Rounds[i].Sends[0].Port = 9
		}
	}
	var invalid *plan.ValidationError
	if err := plan.Validate(m); !errors.As(err, &invalid) || len(invalid.Violations) != 100 {
		t.Fatalf("error %v, want 100 violations", err)
	}
	if n := len(invalid.Error()); n > 300 {
		t.Errorf("an error text of %d bytes", n)
	}
}

// TestJSON checks that decoding what was encoded gives the same plan.
func TestJSON(t *testing.T) {
	for _, a := range algo.Algorithms() {
		if a.Structured {
			continue
		}
		for _, k := range []int{1, 2, 5, 9} {
			var first, second bytes.Buffer
			p := algotest.Compile(t, a.Name, "3^4", "random:1", k, 2)
			if err := plan.Encode(&first, p); err != nil {
				t.Fatal(err)
			}
			text := first.String()
			m, err := plan.Decode(&first)
			if err != nil {
				t.Fatalf("%s, K=%d: %v", a.Name, k, err)
			}
			if err := plan.Encode(&second, m); err != nil {
				t.Fatal(err)
			}
			if second.String() != text {
				t.Errorf("%s, K=%d: encoded again it differs", a.Name, k)
			}
			if got, want := fmt.Sprint(m.Info()), fmt.Sprint(p.Info()); got != want {
				t.Errorf("%s, K=%d: %s, want %s", a.Name, k, got, want)
			}
		}
	}
}

// TestDecodeValidates checks that no breach gets past the decoder.
func TestDecodeValidates(t *testing.T) {
	for _, b := range breakages {
		var file bytes.Buffer
		m := broken(t, b.do)
		if err := plan.Encode(&file, m); err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Decode(&file); err == nil {
			t.Errorf("%s: decoded", b.name)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	var file bytes.Buffer
	if err := plan.Encode(&file, algotest.Compile(t, "direct", "257", "random:1", 2, 1)); err != nil {
		t.Fatal(err)
	}
	good := file.String()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "EOF"},
		{"not JSON", "plan", "invalid"},
		{"cut short", good[:len(good)/2], "unexpected EOF"},
		{"more data", good + "{}", "data after the plan"},
		{"another format", strings.Replace(good, "volley-plan", "other", 1), "format"},
		{"a later version", strings.Replace(good, `"version":1`, `"version":2`, 1), "version 2"},
		{"unknown key", strings.Replace(good, `"ports"`, `"prots"`, 1), "prots"},
		{"unknown field", strings.Replace(good, `"field":"257"`, `"field":"256x"`, 1), "256x"},
		{"coefficient outside", strings.Replace(good, `"1"`, `"257"`, 1), "outside the field"},
		{"coefficient no number", strings.Replace(good, `"1"`, `"one"`, 1), "not a decimal number"},
		{"coefficient as number", strings.Replace(good, `"1"`, `1`, 1), "coefficient"},
		{"term of three", strings.Replace(good, `,"1"]`, `,"1",1]`, 1), "want [slot"},
		{"programs missing", strings.Replace(good, `"processors":2`, `"processors":3`, 1), "2 programs: want 3"},
		{"negative phase", strings.Replace(good, `"rounds":1}`, `"rounds":-1}`, 1), "-1 rounds"},
	} {
		if c.text == good {
			t.Fatalf("%s: the text was not changed", c.name)
		}
		if _, err := plan.Decode(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// FuzzDecode checks that the decoder survives any input and that what it returns
// can be encoded, decoded, described and traced.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"universal", "direct", "central"} {
		var file bytes.Buffer
		if err := plan.Encode(&file, algotest.Compile(f, name, "257", "random:1", 3, 2)); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
	}
	f.Add([]byte(`{"format":"volley-plan","version":1,"field":"2","processors":1,"ports":1,"programs":[{"rows":[0]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := plan.Decode(bytes.NewReader(data))
		if err != nil {
			return
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
