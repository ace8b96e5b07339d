package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"volley/field"
)

// A DecodeError says what is wrong with the JSON form of a plan, and in which line.
type DecodeError struct {
	Line   int // from 1; 0 where the text has one line
	Reason error
}

func (e *DecodeError) Error() string {
	reason := strings.TrimPrefix(e.Reason.Error(), "plan: ")
	if e.Line == 0 {
		return "plan: " + reason
	}
	return fmt.Sprintf("plan: line %d: %s", e.Line, reason)
}

// Unwrap returns the reason, a *[ValidationError] where the plan breaks a rule of [Validate].
func (e *DecodeError) Unwrap() error { return e.Reason }

// Decode reads the JSON form of a plan, as docs/format.md describes it, and validates it: a plan that Decode returns
// meets every rule of [Validate]. The error is that of r or a *[DecodeError].
func Decode(r io.Reader) (*Materialized, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("plan: decode: %w", err)
	}
	d := &decoder{text: text, json: json.NewDecoder(bytes.NewReader(text)), line: 1, proc: -1, round: -1}
	d.json.UseNumber()
	m := d.plan()
	if d.err != nil {
		return nil, d.err
	}
	if err := Validate(context.Background(), m); err != nil {
		return nil, d.error(d.lineOf(err.(*ValidationError).Violations[0]), err)
	}
	return m, nil
}

// A decoder takes one token after the other. Types of Go would take keys in any case, twice or not at all, and null for
// whatever there should be. After the first error nothing is read.
type decoder struct {
	text        []byte
	json        *json.Decoder
	counted     int // bytes whose lines are counted
	line        int // of the byte after them
	proc, round int // that are read; -1 outside
	lines       [][]int
	err         error
}

// A key is one of an object, and how to read its value.
type key struct {
	name string
	read func()
}

func (d *decoder) plan() *Materialized {
	m := &Materialized{}
	c := &m.Common
	programs, rounds := 0, 0
	d.object([]key{
		{"format", func() { d.want("format", d.string(), Format) }},
		{"version", func() { d.want("version", d.integer(), Version) }},
		{"algorithm", func() { c.Algorithm = d.string() }},
		{"parameters", func() { c.Parameters = d.string() }},
		{"field", func() { c.Field = d.field() }},
		{"processors", func() { c.Processors = d.integer() }},
		{"ports", func() { c.Ports = d.integer() }},
		{"rows", func() { c.Rows = d.integer() }},
		{"columns", func() { c.Columns = d.integer() }},
		{"pieces", func() {
			if c.Pieces = d.integer(); c.Pieces == 0 {
				d.fail("0 pieces: want 1 or more")
			}
		}},
		{"phases", func() {
			d.list(func() {
				p := Phase{}
				d.object([]key{{"name", func() { p.Name = d.string() }}, {"rounds", func() { p.Rounds = d.integer() }}})
				if p.Rounds < 0 || p.Rounds > math.MaxInt-rounds { // the sum is not to overflow
					d.fail("phase %q has %d rounds: want 0 or more, as many as the programs have", p.Name, p.Rounds)
				}
				rounds += p.Rounds
				c.Phases = append(c.Phases, p)
			})
		}},
		{"notes", func() { d.list(func() { c.Notes = append(c.Notes, d.string()) }) }},
		{"layers", func() { d.list(func() { c.Layers = append(c.Layers, d.string()) }) }},
		{"programs", func() {
			d.list(func() {
				d.proc, d.round = programs, -1
				programs++
				d.program(m)
			})
			d.proc = -1
		}},
	}, "pieces", "notes", "layers")
	if d.err == nil && programs != c.Processors {
		d.fail("%d programs: want %d, one for each processor", programs, c.Processors)
	}
	if d.err == nil {
		if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
			d.fail("data after the plan")
		}
	}
	return m
}

// program reads that of the next processor.
func (d *decoder) program(m *Materialized) {
	prog, rows, columns := &Program{}, []int{}, []int{}
	lines := []int{d.nextLine()}
	d.object([]key{
		{"proc", func() { prog.Proc = d.integer() }},
		{"rows", func() { d.list(func() { rows = append(rows, d.integer()) }) }},
		{"rounds", func() {
			d.list(func() {
				d.round = len(prog.Rounds)
				lines = append(lines, d.nextLine())
				prog.Rounds = append(prog.Rounds, d.readRound())
			})
			d.round = -1
		}},
		{"compute", func() { prog.Compute = d.combinations() }},
		{"outputs", func() {
			d.list(func() {
				d.object([]key{
					{"slot", func() { prog.Outputs = append(prog.Outputs, d.integer()) }},
					{"column", func() { columns = append(columns, d.integer()) }},
				})
			})
		}},
	})
	prog.Inputs = len(rows)
	d.lines = append(d.lines, lines)
	m.Programs, m.Rows, m.Columns = append(m.Programs, prog), append(m.Rows, rows), append(m.Columns, columns)
}

func (d *decoder) readRound() (r Round) {
	d.object([]key{
		{"compute", func() { r.Compute = d.combinations() }},
		{"sends", func() {
			d.list(func() {
				var s Send
				d.object([]key{
					{"port", func() { s.Port = d.integer() }},
					{"dst", func() { s.Dst = d.integer() }},
					{"slots", func() { d.list(func() { s.Slots = append(s.Slots, d.integer()) }) }},
				})
				r.Sends = append(r.Sends, s)
			})
		}},
		{"recvs", func() {
			d.list(func() {
				var x Recv
				d.object([]key{
					{"port", func() { x.Port = d.integer() }},
					{"src", func() { x.Src = d.integer() }},
					{"count", func() { x.Count = d.integer() }},
				})
				r.Recvs = append(r.Recvs, x)
			})
		}},
	})
	return r
}

func (d *decoder) combinations() (list []Combination) {
	d.list(func() {
		c := Combination{}
		d.list(func() { c = append(c, d.term()) })
		list = append(list, c)
	})
	return list
}

// term reads [slot, "coefficient"].
func (d *decoder) term() (t Term) {
	n := 0
	d.list(func() {
		switch n++; n {
		case 1:
			t.Slot = d.integer()
		case 2:
			t.Coef = d.coefficient()
		default:
			d.fail("a term of more than two: want [slot, \"coefficient\"]")
		}
	})
	if n < 2 {
		d.fail("a term of %d: want [slot, \"coefficient\"]", n)
	}
	return t
}

// coefficient reads a decimal number in a string: readers whose numbers are floats would lose digits.
func (d *decoder) coefficient() field.Element {
	const maxDigits = 78 // digits of 2^256
	t := d.token()
	s, ok := t.(string)
	if n := len(s); !ok || n == 0 || n > maxDigits || strings.Trim(s, "0123456789") != "" || n > 1 && s[0] == '0' {
		d.fail("coefficient %s: want a string with a decimal number of at most %d digits, without sign or leading zeros", shown(t), maxDigits)
		return field.Element{}
	}
	v, _ := new(big.Int).SetString(s, 10)
	e, err := field.FromInt(v)
	if err != nil {
		d.fail("coefficient %s: %w", s, err)
	}
	return e
}

// field reads a name as Volley writes it, so that readers need not know others.
func (d *decoder) field() field.Field {
	name := d.string()
	if d.err != nil {
		return nil
	}
	f, err := field.Parse(name)
	if err != nil {
		d.fail("%w", err)
	} else if f.Name() != name {
		d.fail("field %.100q: write it as %q", name, f.Name())
	}
	return f
}

// want reports a value that is another one.
func (d *decoder) want(name string, got, want any) {
	if got != want {
		d.fail("%s %v: want %v", name, got, want)
	}
}

// object reads an object with these keys, each once, in any order.
func (d *decoder) object(keys []key, optional ...string) {
	if !d.open('{', "an object") {
		return
	}
	var seen uint64
	for d.hasNext() {
		name, _ := d.token().(string)
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		switch {
		case d.err != nil:
			return
		case i < 0:
			d.fail("unknown key %.100q", name)
		case seen>>i&1 != 0:
			d.fail("key %q twice", name)
		default:
			seen |= 1 << i
			keys[i].read()
		}
	}
	d.token() // the end
	for i, k := range keys {
		if seen>>i&1 == 0 && !slices.Contains(optional, k.name) {
			d.fail("key %q is missing", k.name)
		}
	}
}

func (d *decoder) list(read func()) {
	if !d.open('[', "a list") {
		return
	}
	for d.hasNext() {
		read()
	}
	d.token() // the end
}

func (d *decoder) integer() int {
	t := d.token()
	number, ok := t.(json.Number)
	if n, err := strconv.Atoi(string(number)); ok && err == nil {
		return n
	}
	d.fail("%s: want an integer", shown(t))
	return 0
}

func (d *decoder) string() string {
	t := d.token()
	s, ok := t.(string)
	if !ok {
		d.fail("%s: want a string", shown(t))
	}
	return s
}

// open takes the beginning of an object or list.
func (d *decoder) open(delim json.Delim, wanted string) bool {
	t := d.token()
	if t != delim {
		d.fail("%s: want %s", shown(t), wanted)
	}
	return d.err == nil
}

func (d *decoder) hasNext() bool { return d.err == nil && d.json.More() }

func (d *decoder) token() json.Token {
	if d.err != nil {
		return nil
	}
	start := d.json.InputOffset()
	t, err := d.json.Token()
	switch {
	case errors.Is(err, io.EOF): // which is no end of a plan
		d.fail("%w", io.ErrUnexpectedEOF)
	case err != nil:
		d.failAt(d.next(), "%w", err)
	}
	if !utf8.Valid(d.text[start:d.json.InputOffset()]) {
		d.fail("text that is not UTF-8")
	}
	return t
}

// shown returns a token for a message.
func shown(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%.100q", t)
	}
	return fmt.Sprintf("%.100v", t)
}

// next returns where the next token begins.
func (d *decoder) next() int {
	rest := d.text[d.json.InputOffset():]
	return len(d.text) - len(bytes.TrimLeft(rest, ":, \t\r\n"))
}

// nextLine returns the line of the next token.
func (d *decoder) nextLine() int {
	end := d.next()
	d.line += bytes.Count(d.text[d.counted:end], []byte("\n"))
	d.counted = end
	return d.line
}

// lineOf returns the line of what breaks a rule: that of its round, its program, or the plan.
func (d *decoder) lineOf(v Violation) int {
	if v.Proc < 0 {
		return 1
	}
	return d.lines[v.Proc][min(v.Round+1, len(d.lines[v.Proc])-1)]
}

// fail keeps the first error, of the token that was read last.
func (d *decoder) fail(format string, args ...any) {
	d.failAt(int(d.json.InputOffset()), format, args...)
}

func (d *decoder) failAt(offset int, format string, args ...any) {
	if d.err != nil {
		return
	}
	location := ""
	if d.proc >= 0 {
		location = fmt.Sprintf("processor %d", d.proc)
		if d.round >= 0 {
			location += fmt.Sprintf(" round %d", d.round)
		}
		location += ": "
	}
	d.err = d.error(1+bytes.Count(d.text[:offset], []byte("\n")), fmt.Errorf(location+format, args...))
}

func (d *decoder) error(line int, reason error) error {
	if !bytes.Contains(bytes.TrimSpace(d.text), []byte("\n")) {
		line = 0
	}
	return &DecodeError{line, reason}
}
