package plan

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"

	"volley/field"
)

// Format and Version name the JSON form of a plan. A decoder refuses every other version.
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

// programFile is a program in a file.
type programFile struct {
	Proc    int           `json:"proc"`
	Rows    []int         `json:"rows"` // one per input
	Rounds  []Round       `json:"rounds"`
	Compute []Combination `json:"compute"`
	Outputs []output      `json:"outputs"`
}

type output struct {
	Slot   int `json:"slot"`
	Column int `json:"column"`
}

// MarshalJSON writes each term as [slot, "coefficient"]: a string, as readers whose numbers are floats would lose digits.
func (c Combination) MarshalJSON() ([]byte, error) {
	data := []byte{'['}
	for i, t := range c {
		if i > 0 {
			data = append(data, ',')
		}
		data = strconv.AppendInt(append(data, '['), int64(t.Slot), 10)
		data = append(append(append(data, `,"`...), t.Coef.String()...), `"]`...)
	}
	return append(data, ']'), nil
}

// UnmarshalJSON reads what [Combination.MarshalJSON] writes, over whatever field.
func (t *Term) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("term %s: want [slot, \"coefficient\"]", data)
	}
	if err := json.Unmarshal(pair[0], &t.Slot); err != nil {
		return fmt.Errorf("term %s: slot: %w", data, err)
	}
	var coef string
	if err := json.Unmarshal(pair[1], &coef); err != nil {
		return fmt.Errorf("term %s: coefficient: %w", data, err)
	}
	const most = 78 // digits of 2^256
	v, ok := new(big.Int).SetString(coef[:min(len(coef), most)], 10)
	if !ok || len(coef) > most {
		return fmt.Errorf("term %.100s: coefficient: want a decimal number of at most %d digits", data, most)
	}
	var err error
	if t.Coef, err = field.FromInt(v); err != nil {
		return fmt.Errorf("term %s: coefficient: %w", data, err)
	}
	return nil
}

// Encode writes the JSON form of p, a program at a time: its memory is that of the largest program.
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
	separator := "\n"
	for k := range info.Processors {
		data, err := programJSON(p, k)
		if err != nil {
			return err
		}
		b.WriteString(separator)
		b.Write(data)
		separator = ",\n"
	}
	b.WriteString("\n]}\n")
	if err := b.Flush(); err != nil {
		return fmt.Errorf("plan: encode: %w", err)
	}
	return nil
}

// EncodeProgram writes one element of the programs list of [Encode]: the JSON form of one processor's program.
func EncodeProgram(w io.Writer, p Plan, proc int) error {
	data, err := programJSON(p, proc)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("plan: encode: %w", err)
	}
	return nil
}

func programJSON(p Plan, proc int) ([]byte, error) {
	prog, err := p.Program(proc)
	if err != nil {
		return nil, fmt.Errorf("plan: program of processor %d: %w", proc, err)
	}
	file := programFile{
		Proc: prog.Proc, Rows: indices(prog.Inputs, func(i int) int { return p.Row(proc, i) }),
		Rounds: []Round{}, Compute: append([]Combination{}, prog.Compute...), Outputs: []output{}, // never null
	}
	for _, r := range prog.Rounds {
		file.Rounds = append(file.Rounds, Round{append([]Combination{}, r.Compute...), append([]Send{}, r.Sends...), append([]Recv{}, r.Recvs...)})
	}
	for o, slot := range prog.Outputs {
		file.Outputs = append(file.Outputs, output{slot, p.Column(proc, o)})
	}
	return json.Marshal(file)
}

// Decode reads the JSON form of a plan and validates it: a plan that Decode returns meets every rule of [Validate]. It
// returns an error for another format or version, an unknown key, data after the plan, and a *[ValidationError].
func Decode(r io.Reader) (*Materialized, error) {
	var file struct {
		header
		Programs []programFile `json:"programs"`
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
		prog := &Program{Proc: x.Proc, Inputs: len(x.Rows), Rounds: x.Rounds, Compute: x.Compute}
		columns := make([]int, len(x.Outputs))
		for o, out := range x.Outputs {
			prog.Outputs = append(prog.Outputs, out.Slot)
			columns[o] = out.Column
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
