package explore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ask returns the result of a method, and the error as the page gets it.
func ask[R any](t *testing.T, name, request string) (result R, failure *problem) {
	t.Helper()
	var b bytes.Buffer
	if _, err := Answer(context.Background(), name, []byte(request), &b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	var last struct {
		Result json.RawMessage
		Error  *problem
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatalf("%s: %v", lines[len(lines)-1], err)
	}
	if last.Error == nil {
		if err := json.Unmarshal(last.Result, &result); err != nil {
			t.Fatal(err)
		}
	}
	return result, last.Error
}

// result returns the result of a method that has no error.
func result[R any](t *testing.T, name, request string) R {
	t.Helper()
	x, failure := ask[R](t, name, request)
	if failure != nil {
		t.Fatalf("%s %s: %s", name, request, failure.Message)
	}
	return x
}

// shownPlan is what the page reads of a plan, as it reads it.
type shownPlan struct {
	Command    string
	Info       planInfo
	Cost       planCost
	Candidates []candidate
	Rejected   []rejection
	Messages   [][]message
	Detail     *struct {
		Inputs      [][]int
		Outputs     [][]output
		RowNames    []string `json:"row_names"`
		ColumnNames []string `json:"column_names"`
		Memory      [][]slot
		Matrix      [][]string
		Partial     [][][3]any
		Mismatches  []mismatch
	}
	Aggregate aggregate
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{
		`"processors":"1"`,
		`"processors":"2","matrix":"random:1"`,
		`"processors":"4","algorithm":"prepare-and-shoot","field":"7","matrix":"random:1"`,
		`"processors":"9","ports":"2","matrix":"dft","field":"19"`,
		`"processors":"9","ports":"2","matrix":"dft","field":"19","order":"reversed"`,
		`"processors":"13","ports":"3","field":"97","matrix":"random:2"`,
		`"processors":"16","field":"goldilocks","matrix":"dft"`,
		`"processors":"16","matrix":"fti"`,
		`"processors":"6","algorithm":"exchange"`,
		`"processors":"10","sinks":"4","separate":"true"`,
		`"processors":"4","sinks":"7","ports":"2"`,
		`"processors":"16","algorithm":"bruck-allgather"`,
		`"processors":"12","order":"any","matrix":"dft","field":"37"`,
		`"processors":"65","ports":"2","algorithm":"prepare-and-shoot","field":"257","matrix":"random:1"`,
	} {
		p, failure := ask[shownPlan](t, "plan", `{"flags":{`+flags+`}}`)
		if failure != nil {
			t.Errorf("%s: %s: %s", flags, failure.Field, failure.Message)
			continue
		}
		d := p.Detail
		if d == nil {
			t.Errorf("%s: no detail", flags)
			continue
		}
		if len(d.Mismatches) > 0 {
			t.Errorf("%s: it computes another matrix: %v", flags, d.Mismatches)
		}
		c := p.Cost
		if c.C1 < c.BoundC1 || c.PacketsC2 < c.BoundC2 || c.Universal != nil && c.PacketsC2 < *c.Universal {
			t.Errorf("%s: less than a bound beside it: %+v", flags, c)
		}
		if len(p.Messages) != p.Cost.C1 || len(d.Partial) != p.Cost.C1+1 {
			t.Errorf("%s: %d rounds, %d steps, C1 = %d", flags, len(p.Messages), len(d.Partial), p.Cost.C1)
		}
		checkMessages(t, flags, &p)
		checkSlots(t, flags, &p)
	}
}

// checkSlots checks what inputs and outputs are said to hold: packets, and columns of A.
func checkSlots(t *testing.T, flags string, p *shownPlan) {
	t.Helper()
	d, n := p.Detail, p.Info.Pieces
	rows, columns := 0, 0
	for k := range p.Info.Processors {
		for i, row := range d.Inputs[k] {
			rows++
			s := d.Memory[k][i]
			if want := fmt.Sprint([]int{row}, []string{"1"}, d.RowNames[row]); fmt.Sprint(s.Rows, s.Coefs, s.Label) != want || s.Round != -1 || s.Kind != "input" {
				t.Errorf("%s: input %d of %d is %+v, want %s", flags, i, k, s, want)
			}
		}
		for _, o := range d.Outputs[k] {
			columns++
			s := d.Memory[k][o.Slot]
			if !slices.Contains(s.Columns, o.Column) && len(s.Rows) > 0 {
				t.Errorf("%s: output %s goes into %v", flags, d.ColumnNames[o.Column], s.Columns)
			}
			holds := map[int]string{}
			for i, row := range s.Rows {
				holds[row] = s.Coefs[i]
			}
			for row := range p.Info.Rows {
				want := "0"
				if row%n == o.Column%n {
					want = d.Matrix[row/n][o.Column/n]
				}
				if got := cmp.Or(holds[row], "0"); got != want {
					t.Errorf("%s: %s holds %s of %s, want %s", flags, d.ColumnNames[o.Column], got, d.RowNames[row], want)
				}
			}
		}
	}
	if rows != p.Info.Rows || columns != p.Info.Columns || len(d.RowNames) != rows || len(d.ColumnNames) != columns {
		t.Errorf("%s: %d inputs, %d outputs, names of %d and %d", flags, rows, columns, len(d.RowNames), len(d.ColumnNames))
	}
}

// checkMessages checks that what is received is what was sent, and that the heat map and
// the costs count the same messages.
func checkMessages(t *testing.T, flags string, p *shownPlan) {
	t.Helper()
	all, since := 0, map[[2]int]int{}
	for r, round := range p.Messages {
		largest, elements := 0, 0
		sent, far := map[int]int{}, map[int]offset{}
		for _, m := range round {
			largest, elements = max(largest, len(m.Slots)), elements+len(m.Slots)
			sent[m.Src] += len(m.Slots)
			if _, ok := since[[2]int{m.Src, m.Dst}]; !ok {
				since[[2]int{m.Src, m.Dst}] = r
			}
			o := (m.Dst - m.Src + p.Info.Processors) % p.Info.Processors
			far[o] = offset{o, far[o].Messages + 1}
			for i, s := range m.Slots {
				from, to := p.Detail.Memory[m.Src][s], p.Detail.Memory[m.Dst][m.Received+i]
				if i < mostLabels && m.Labels[i] != from.Label || len(m.Labels) != min(len(m.Slots), mostLabels) {
					t.Fatalf("%s: round %d: %v are labels of %+v", flags, r, m.Labels, from)
				}
				if fmt.Sprint(from.Rows, from.Coefs) != fmt.Sprint(to.Rows, to.Coefs) || to.Kind != "received" || to.Round != r || to.Source != m.Src || to.Port != m.Port {
					t.Fatalf("%s: round %d: %+v is received as %+v", flags, r, from, to)
				}
			}
		}
		f := p.Aggregate.Rounds[r]
		if want := p.Cost.Rounds[r]; largest != want.Largest || len(round) != want.Messages || f.Elements != elements {
			t.Errorf("%s: round %d: %d messages, at most %d of %d elements; the cost has %+v, the heat map %+v", flags, r, len(round), largest, elements, want, f)
		}
		for k := range p.Info.Processors {
			if got := p.Aggregate.Sent[k][r]; got != sent[k] {
				t.Errorf("%s: round %d: processor %d sends %d elements, the heat map has %d", flags, r, k, sent[k], got)
			}
		}
		for _, o := range f.Offsets {
			if o != far[o.Offset] {
				t.Errorf("%s: round %d: %+v, the heat map has %+v", flags, r, far[o.Offset], o)
			}
		}
		if len(f.Offsets) != min(len(far), mostOffsets) {
			t.Errorf("%s: round %d: %d offsets of %d", flags, r, len(f.Offsets), len(far))
		}
		all += elements
	}
	sum := 0
	for src, row := range p.Aggregate.Pairs {
		for dst, n := range row {
			sum += n
			first, ok := since[[2]int{src, dst}]
			if got := p.Aggregate.Since[src][dst]; ok && got != first || !ok && got != -1 {
				t.Errorf("%s: the first message from %d to %d is in round %d, the heat map has %d", flags, src, dst, first, got)
			}
		}
	}
	if sum != all {
		t.Errorf("%s: the pairs exchange %d elements, the messages carry %d", flags, sum, all)
	}
}

// TestTooLarge checks that what has too many coefficients is shown message by message, without what slots hold.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	for _, k := range []int{32, 64, 81} {
		p := result[shownPlan](t, "plan", fmt.Sprintf(`{"flags":{"processors":"%d","model":"network","network":"10gbit/20us","algorithm":"exchange:%[1]d"}}`, k))
		if p.Detail != nil || len(p.Aggregate.Rounds) != p.Cost.C1 || len(p.Messages) != p.Cost.C1 {
			t.Errorf("K = %d: detail %v, %d rounds with figures and %d with messages of %d", k, p.Detail != nil, len(p.Aggregate.Rounds), len(p.Messages), p.Cost.C1)
		}
		for r, round := range p.Messages {
			if len(round) != p.Cost.Rounds[r].Messages || len(round[0].Labels) != min(len(round[0].Slots), mostLabels) || !regexp.MustCompile(`^[xy]\d+\.\d+$`).MatchString(round[0].Labels[0]) {
				t.Errorf("K = %d: round %d has %d messages, such as %+v", k, r, len(round), round[0])
			}
		}
	}
}

func TestPlanAggregated(t *testing.T) {
	t.Parallel()
	p := result[shownPlan](t, "plan", `{"flags":{"processors":"1000","field":"2^16","matrix":"random:1","algorithm":"bruck-allgather"}}`)
	if p.Detail != nil || len(p.Messages) > 0 {
		t.Error("the messages of 1,000 processors one by one")
	}
	a := p.Aggregate
	if a.ProcessorBin != 4 || a.RoundBin != 1 || len(a.Sent) != 250 || len(a.Sent[0]) != 10 {
		t.Errorf("bins of %d and %d: %d×%d", a.ProcessorBin, a.RoundBin, len(a.Sent), len(a.Sent[0]))
	}
	sum := 0
	for _, row := range a.Pairs {
		for _, n := range row {
			sum += n
		}
	}
	if sum != 1000*999 {
		t.Errorf("%d elements", sum)
	}
	if r := a.Rounds[7]; len(r.Offsets) != 1 || p.Cost.Rounds[7].Messages != 1000 || r.Offsets[0].Messages != 1000 {
		t.Errorf("round 7: %+v", r)
	}
}

// TestChosen checks that what is marked is the plan that is shown: the fastest where the planner chooses, and only named
// where the flags name it, which may be slower than others.
func TestChosen(t *testing.T) {
	t.Parallel()
	for flags, wantNamed := range map[string]bool{
		`"processors":"16","size":"1KiB"`:                                                   false,
		`"processors":"16","model":"network"`:                                               false,
		`"processors":"32","model":"network","network":"wan"`:                               false,
		`"processors":"27","ports":"2","matrix":"random:1","algorithm":"prepare-and-shoot"`: true,
		`"processors":"16","model":"network","algorithm":"universal"`:                       true,
	} {
		p := result[shownPlan](t, "plan", `{"flags":{`+flags+`}}`)
		var marked []candidate
		least := p.Candidates[0]
		for _, c := range p.Candidates {
			if c.Broken == "" && c.Seconds < least.Seconds {
				least = c
			}
			if c.Chosen || c.Named {
				marked = append(marked, c)
			}
		}
		if len(marked) != 1 || marked[0].Named != wantNamed || marked[0].Chosen == wantNamed || marked[0].Algorithm != p.Info.Algorithm || marked[0].Ports != p.Info.Ports || marked[0].C1 != p.Cost.C1 {
			t.Errorf("%s: marked %+v, shown %+v", flags, marked, p.Info)
		} else if faster := least.Seconds < marked[0].Seconds; faster && marked[0].Chosen {
			t.Errorf("%s: %+v is chosen, and %+v is faster", flags, marked[0], least)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		flags flags
		want  string
	}{
		{flags{"processors": "8", "ports": "1", "matrix": "cauchy", "size": ""}, "volley-lab plan --model paper -k 8"},
		{flags{"processors": "8", "ports": "2", "inverse": "true", "field": "2^16"}, "volley-lab plan --model paper --field 2^16 --inverse -p 2 -k 8"},
		{flags{"processors": "4", "matrix": "fti", "field": "2^8"}, "volley-lab plan --model paper --field 2^8 --matrix fti -k 4"},
		{flags{"matrix": "it's; rm"}, `volley-lab plan --model paper --matrix 'it'\''s; rm'`},
	} {
		if got := x.flags.command("plan"); got != x.want {
			t.Errorf("%v: %s, want %s", x.flags, got, x.want)
		}
	}
}

// TestPaperFigure4 looks for the polynomials of the first tree in the DFT of figure 4: after round 0 a processor has
// f_r = x_r + x_(r+3)·z + x_(r+6)·z^2 at a z that is a power of β^3 = 7.
func TestPaperFigure4(t *testing.T) {
	t.Parallel()
	a := result[shownPlan](t, "plan", `{"flags":{"processors":"9","ports":"2","algorithm":"dft","field":"19","matrix":"dft","order":"reversed"}}`)
	for k, memory := range a.Detail.Memory {
		i := slices.IndexFunc(memory, func(s slot) bool { return s.Kind == "computed" && s.Round == 1 && s.Coefs[0] == "1" })
		if i < 0 {
			t.Fatalf("processor %d computes nothing before round 1", k)
		}
		z := []int{1, 7, 7 * 7 % 19}[k/3]
		rows, coefs := []int{k % 3, k%3 + 3, k%3 + 6}, fmt.Sprint([]int{1, z, z * z % 19})
		if s := memory[i]; !slices.Equal(s.Rows, rows) || fmt.Sprint(s.Coefs) != coefs {
			t.Errorf("processor %d has rows %v with %v before round 1: want %v with %v", k, s.Rows, s.Coefs, rows, coefs)
		}
	}
}

// TestCost compares the costs of a plan with those that volley plan prints.
func TestCost(t *testing.T) {
	t.Parallel()
	const none = "none"
	for _, x := range []struct{ flags, c1, c2, packets, bounds, universal string }{
		{`"processors":"64","algorithm":"universal"`, "6", "14", "14", "6/6", "14"},
		{`"processors":"64"`, "8", "10", "10", "6/6", none},                         // for Cauchy matrices
		{`"processors":"4","algorithm":"exchange"`, "6", "6", "1.5", "2/1.5", none}, // in 4 pieces
		{`"processors":"8","sinks":"4","algorithm":"sinks"`, "", "", "", "", none},
	} {
		p, failure := ask[shownPlan](t, "plan", `{"flags":{`+x.flags+`}}`)
		if failure != nil {
			t.Fatalf("%s: %s", x.flags, failure.Message)
		}
		c := p.Cost
		universal := none
		if c.Universal != nil {
			universal = fmt.Sprint(*c.Universal)
		}
		if universal != x.universal {
			t.Errorf("%s: the bound for every matrix is %s, want %s", x.flags, universal, x.universal)
		}
		got := fmt.Sprintf("%d %d %v %d/%v", c.C1, c.C2, c.PacketsC2, c.BoundC1, c.BoundC2)
		if want := fmt.Sprintf("%s %s %s %s", x.c1, x.c2, x.packets, x.bounds); x.c1 != "" && got != want {
			t.Errorf("%s: %s, want %s", x.flags, got, want)
		}
		if want := float64(c.C1)*c.Beta + c.PacketsC2*float64(c.PacketBytes)*float64(c.Tau); math.Abs(c.Seconds-want) > 1e-3*want {
			t.Errorf("%s: %v s, want %v", x.flags, c.Seconds, want)
		}
	}
}

// must returns a value that comes without an error, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
