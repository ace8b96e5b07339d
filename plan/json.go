package plan

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
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
