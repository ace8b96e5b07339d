package plan

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"volley/field"
)

// Format and Version name the JSON form of a plan. A decoder refuses every
// other version.
const (
	Format  = "volley-plan"
	Version = 1
)

// header is a plan file but for its programs, which follow in a list.
type header struct {
	Format     string   `json:"format"`
	Version    int      `json:"version"`
	Algorithm  string   `json:"algorithm"`
	Parameters string   `json:"parameters"`
	Field      string   `json:"field"`
	Processors int      `json:"processors"`
	Ports      int      `json:"ports"`
	Rows       int      `json:"rows"`
	Columns    int      `json:"columns"`
	Pieces     int      `json:"pieces,omitempty"`
	Phases     []Phase  `json:"phases"`
	Notes      []string `json:"notes,omitempty"`
	Layers     []string `json:"layers,omitempty"`
}

type programJSON struct {
	Proc    int               `json:"proc"`
	Rows    []int             `json:"rows"` // one per input
	Rounds  []roundJSON       `json:"rounds"`
	Compute []combinationJSON `json:"compute"`
	Outputs []outputJSON      `json:"outputs"`
}

type roundJSON struct {
	Compute []combinationJSON `json:"compute"`
	Sends   []Send            `json:"sends"`
	Recvs   []Recv            `json:"recvs"`
}

type outputJSON struct {
	Slot   int `json:"slot"`
	Column int `json:"column"`
}

type combinationJSON []termJSON

// termJSON is written [slot, "coefficient"]. The coefficient is a string, so
// that readers whose numbers are floats keep all of its digits.
type termJSON struct {
	slot int
	coef string
}

func (t *termJSON) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("term %s: want [slot, \"coefficient\"]", data)
	}
	if err := json.Unmarshal(pair[0], &t.slot); err != nil {
		return fmt.Errorf("term %s: slot: %w", data, err)
	}
	if err := json.Unmarshal(pair[1], &t.coef); err != nil {
		return fmt.Errorf("term %s: coefficient: %w", data, err)
	}
	return nil
}

// Encode writes the JSON form of p, a program at a time: its memory is that of
// the largest program.
func Encode(w io.Writer, p Plan) error {
	info := p.Info()
	h := header{
		Format: Format, Version: Version,
		Algorithm: info.Algorithm, Parameters: info.Parameters, Field: info.Field.Name(),
		Processors: info.Processors, Ports: info.Ports, Rows: info.Rows, Columns: info.Columns, Pieces: info.Pieces,
		Phases: append([]Phase{}, info.Phases...), Notes: info.Notes, Layers: info.Layers,
	}
	head, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("plan: encode: %w", err)
	}
	b := bufio.NewWriter(w)
	b.Write(head[:len(head)-1]) // the closing brace comes after the programs
	b.WriteString(",\"programs\":[")
	for k := range info.Processors {
		if k > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		if err := writeProgram(b, p, k); err != nil {
			return err
		}
	}
	b.WriteString("\n]}\n")
	if err := b.Flush(); err != nil {
		return fmt.Errorf("plan: encode: %w", err)
	}
	return nil
}

// EncodeProgram writes one element of the programs list of [Encode]: the JSON
// form of one processor's program.
func EncodeProgram(w io.Writer, p Plan, proc int) error {
	if err := writeProgram(w, p, proc); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("plan: encode: %w", err)
	}
	return nil
}

func writeProgram(w io.Writer, p Plan, proc int) error {
	prog, err := p.Program(proc)
	if err != nil {
		return fmt.Errorf("plan: program of processor %d: %w", proc, err)
	}
	out := &programWriter{w: w}
	out.text(`{"proc":`)
	out.value(prog.Proc)
	out.text(`,"rows":`)
	out.value(indices(prog.Inputs, func(i int) int { return p.Row(proc, i) }))
	out.text(`,"rounds":[`)
	for t, r := range prog.Rounds {
		if t > 0 {
			out.text(",")
		}
		out.text(`{"compute":`)
		out.combinations(r.Compute)
		out.text(`,"sends":`)
		out.value(append([]Send{}, r.Sends...)) // never null
		out.text(`,"recvs":`)
		out.value(append([]Recv{}, r.Recvs...))
		out.text("}")
	}
	out.text(`],"compute":`)
	out.combinations(prog.Compute)
	outputs := []outputJSON{}
	for o, slot := range prog.Outputs {
		outputs = append(outputs, outputJSON{slot, p.Column(proc, o)})
	}
	out.text(`,"outputs":`)
	out.value(outputs)
	out.text("}")
	out.flush()
	if out.err != nil {
		return fmt.Errorf("plan: encode: %w", out.err)
	}
	return nil
}

// programWriter writes JSON term by term: a program may have millions.
type programWriter struct {
	w    io.Writer
	data []byte
	err  error
}

func (w *programWriter) flush() {
	if w.err == nil {
		_, w.err = w.w.Write(w.data)
	}
	w.data = w.data[:0]
}

func (w *programWriter) text(s string) { w.data = append(w.data, s...) }

func (w *programWriter) value(v any) {
	data, _ := json.Marshal(v) // numbers, which can be written
	w.data = append(w.data, data...)
}

// combinations writes each term as [slot, "coefficient"].
func (w *programWriter) combinations(list []Combination) {
	w.text("[")
	for i, c := range list {
		if i > 0 {
			w.text(",")
		}
		w.text("[")
		for j, term := range c {
			if j > 0 {
				w.text(",")
			}
			w.text("[")
			w.data = strconv.AppendInt(w.data, int64(term.Slot), 10)
			w.text(`,"`)
			w.text(term.Coef.String())
			w.text(`"]`)
			if len(w.data) > 1<<15 {
				w.flush()
			}
		}
		w.text("]")
	}
	w.text("]")
}

// Decode reads the JSON form of a plan and validates it: a plan that Decode
// returns meets every rule of [Validate]. It returns an error for another
// format or version, an unknown key, a coefficient outside the field, data
// after the plan, and a *[ValidationError].
func Decode(r io.Reader) (*Materialized, error) {
	var file struct {
		header
		Programs []programJSON `json:"programs"`
	}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("plan: decode: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("plan: decode: data after the plan, at byte %d", d.InputOffset())
	}
	if file.Format != Format || file.Version != Version {
		return nil, fmt.Errorf("plan: decode: format %q version %d: want %q version %d", file.Format, file.Version, Format, Version)
	}
	f, err := field.Parse(file.Field)
	if err != nil {
		return nil, fmt.Errorf("plan: decode: %w", err)
	}
	if len(file.Programs) != file.Processors {
		return nil, fmt.Errorf("plan: decode: %d programs: want %d, one for each processor", len(file.Programs), file.Processors)
	}
	m := &Materialized{Common: Info{
		Algorithm: file.Algorithm, Parameters: file.Parameters, Field: f,
		Processors: file.Processors, Ports: file.Ports, Rows: file.Rows, Columns: file.Columns, Pieces: file.Pieces,
		Phases: file.Phases, Notes: file.Notes, Layers: file.Layers,
	}}
	rounds := 0 // the sum is not to overflow
	for _, ph := range file.Phases {
		if ph.Rounds < 0 || ph.Rounds > math.MaxInt-rounds {
			return nil, fmt.Errorf("plan: decode: phase %q has %d rounds: want 0 or more, as many as the programs have", ph.Name, ph.Rounds)
		}
		rounds += ph.Rounds
	}
	for _, x := range file.Programs {
		prog, columns, err := x.program(f)
		if err != nil {
			return nil, fmt.Errorf("plan: decode: processor %d: %w", x.Proc, err)
		}
		m.Programs = append(m.Programs, prog)
		m.Rows = append(m.Rows, x.Rows)
		m.Columns = append(m.Columns, columns)
	}
	if err := Validate(m); err != nil {
		return nil, err
	}
	return m, nil
}

func (x *programJSON) program(f field.Field) (*Program, []int, error) {
	prog := &Program{Proc: x.Proc, Inputs: len(x.Rows)}
	var err error
	for t, r := range x.Rounds {
		y := Round{Sends: r.Sends, Recvs: r.Recvs}
		if y.Compute, err = fromJSON(f, r.Compute); err != nil {
			return nil, nil, fmt.Errorf("round %d: %w", t, err)
		}
		prog.Rounds = append(prog.Rounds, y)
	}
	if prog.Compute, err = fromJSON(f, x.Compute); err != nil {
		return nil, nil, err
	}
	columns := make([]int, len(x.Outputs))
	for o, out := range x.Outputs {
		prog.Outputs = append(prog.Outputs, out.Slot)
		columns[o] = out.Column
	}
	return prog, columns, nil
}

func fromJSON(f field.Field, list []combinationJSON) ([]Combination, error) {
	var out []Combination
	for i, c := range list {
		combination := make(Combination, len(c))
		for j, term := range c {
			coef, err := field.ParseElement(f, term.coef)
			if err != nil {
				return nil, fmt.Errorf("combination %d, term %d: %w", i, j, err)
			}
			combination[j] = Term{term.slot, coef}
		}
		out = append(out, combination)
	}
	return out, nil
}
