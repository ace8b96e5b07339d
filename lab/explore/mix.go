package explore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"volley"
	"volley/field"
	"volley/internal/code"
	"volley/internal/selection"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

// What mix takes: words that people can read, not data.
const (
	mostWords   = 16
	longestWord = 16 // bytes
)

type mixRequest struct {
	Flags flags    `json:"flags"`
	Words []string `json:"words"` // the packets, one a processor
	Lost  []int    `json:"lost"`  // processors, each with its packet and its coded packet
}

// mixAnswer is what the plan of the flags makes of words, and how lost words come back.
type mixAnswer struct {
	Words     []string  `json:"words"`    // their bytes, in hexadecimal
	Mixtures  []mixture `json:"mixtures"` // by processor, as the plan has computed them
	Restored  []mixture `json:"back"`     // by lost processor; empty where too many are lost
	Needed    int       `json:"needed"`   // packets of any kind, to bring all back
	Remaining int       `json:"left"`     // that are there
	Fold      string    `json:"fold"`     // what a bit that a shift moves out of a byte comes back as
}

// A mixture is a sum of products.
type mixture struct {
	Name  string    `json:"name"`
	Bytes string    `json:"bytes"` // in hexadecimal, as everywhere here
	Text  string    `json:"text"`
	Terms []product `json:"terms"`
}

// A product is a packet times a number: the sum of the packet shifted by the places of the number's ones.
type product struct {
	Coef   string  `json:"coef"`
	Name   string  `json:"name"` // of the packet
	Source string  `json:"from"` // its bytes
	Bytes  string  `json:"bytes"`
	Shifts []shift `json:"shifts"`
}

type shift struct {
	Count int    `json:"by"`
	Bytes string `json:"bytes"`
}

// mix runs the plan of the flags on words, and brings back those that are lost from what is left.
func mix(ctx context.Context, request mixRequest) (*mixAnswer, error) {
	q, data, err := request.prepare(ctx)
	if err != nil {
		return nil, err
	}
	coded, err := q.encode(ctx, data)
	if err != nil {
		return nil, err
	}
	a := &mixAnswer{Mixtures: []mixture{}, Restored: []mixture{}, Needed: len(data), Fold: hex.EncodeToString(times(q.matrix.Field(), []byte{1 << 7}, field.Code(2)))}
	indices := make([]int, len(data))
	for k := range indices {
		indices[k] = k
	}
	var kept, lost []int
	for k, word := range data {
		m := mixtureOf(q.matrix.Field(), "y"+strconv.Itoa(k), column(q.matrix, len(data), k), named("x", data, indices))
		if err := m.check(coded[k]); err != nil {
			return nil, err
		}
		a.Words, a.Mixtures = append(a.Words, hex.EncodeToString(word)), append(a.Mixtures, m)
		if slices.Contains(request.Lost, k) {
			lost = append(lost, k)
		} else {
			kept = append(kept, k)
		}
	}
	a.Remaining = 2 * len(kept)
	parity, solution, err := code.Solve(ctx, q.matrix, kept, lost, kept)
	if err != nil {
		return nil, err
	}
	if len(parity) < len(lost) {
		return a, nil
	}
	available := append(named("x", data, kept), named("y", coded, parity)...)
	for i, k := range lost {
		m := mixtureOf(solution.Field(), "x"+strconv.Itoa(k), column(solution, len(available), i), available)
		if err := m.check(data[k]); err != nil {
			return nil, err
		}
		a.Restored = append(a.Restored, m)
	}
	return a, nil
}

// prepare returns what is selected, and the words as packets. The error is a *selection.Error.
func (request mixRequest) prepare(ctx context.Context) (*question, [][]byte, error) {
	if n := len(request.Words); n < 1 || n > mostWords {
		return nil, nil, selection.Markf("words", "%d words: want 1 to %d", n, mostWords)
	}
	var data [][]byte
	for _, word := range request.Words {
		letters, err := lettersOf(word, request.Words[0])
		if err != nil {
			return nil, nil, selection.Mark("words", err)
		}
		data = append(data, letters)
	}
	selected := flags{}
	maps.Copy(selected, request.Flags)
	selected["processors"], selected["size"] = strconv.Itoa(len(data)), strconv.Itoa(len(data[0]))
	q, err := selected.ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	if q.matrix.Field().Name() != "2^8" || q.matrix.Cols() != len(data) || q.encoder.Problem().Processors() != len(data) {
		return nil, nil, selection.Mark("field", errors.New("words are mixed over the field 2^8, with a coded packet at each processor"))
	}
	return q, data, nil
}

// encode runs the plan on data, and returns the coded packets.
func (q *question) encode(ctx context.Context, data [][]byte) ([][]byte, error) {
	coded := make([][]byte, len(data))
	return coded, local.Run(ctx, len(data), func(ctx context.Context, t transport.Transport) error {
		k := t.Rank()
		_, err := q.encoder.Run(ctx, t, volley.Packet{Data: data[k], Result: &coded[k]})
		return err
	})
}

type packet struct {
	name string
	data []byte
}

func named(name string, data [][]byte, indices []int) []packet {
	var list []packet
	for _, k := range indices {
		list = append(list, packet{name + strconv.Itoa(k), data[k]})
	}
	return list
}

// mixtureOf returns the sum of packets times coefficients. Over 2^8 packets are bytes, over other fields a number each.
func mixtureOf(f field.Field, name string, coefs []field.Element, packets []packet) mixture {
	shown := func(data []byte) string { return field.Symbol(f, data).String() }
	if f.Name() == "2^8" {
		shown = hex.EncodeToString
	}
	sum := make([]byte, len(packets[0].data))
	m := mixture{Name: name}
	for i, x := range packets {
		multiplied := times(f, x.data, coefs[i])
		p := product{Coef: coefs[i].String(), Name: x.name, Source: shown(x.data), Bytes: shown(multiplied), Shifts: []shift{}}
		for bit := range 8 {
			if f.Name() == "2^8" && coefs[i].Int().Bit(bit) == 1 {
				p.Shifts = append(p.Shifts, shift{bit, shown(times(f, x.data, field.Code(1<<bit)))})
			}
		}
		m.Terms = append(m.Terms, p)
		for i := 0; i < len(sum); i += f.SymbolBytes() {
			field.PutSymbol(f, sum[i:], f.Add(field.Symbol(f, sum[i:]), field.Symbol(f, multiplied[i:])))
		}
	}
	m.Bytes, m.Text = shown(sum), readable(sum)
	return m
}

// check compares the sum with what the plan has computed.
func (m mixture) check(want []byte) error {
	if text := hex.EncodeToString(want); m.Bytes != text {
		return fmt.Errorf("%s is %s by its sum, and %s by the plan: this is a fault of the program", m.Name, m.Bytes, text)
	}
	return nil
}

// column returns the coefficients of the first n rows of a column.
func column(a matrix.Matrix, n, number int) []field.Element {
	coefs := make([]field.Element, n)
	for row := range coefs {
		coefs[row] = a.At(row, number)
	}
	return coefs
}

func times(f field.Field, data []byte, factor field.Element) []byte {
	product := make([]byte, len(data))
	for i := 0; i < len(data); i += f.SymbolBytes() {
		field.PutSymbol(f, product[i:], f.Mul(field.Symbol(f, data[i:]), factor))
	}
	return product
}

type sumsRequest struct {
	Flags flags `json:"flags"`
	Sums  []sum `json:"sums"`
}

// A sum is what a processor has computed of packets.
type sum struct {
	Name  string `json:"name"`
	Terms []term `json:"terms"`
}

type term struct {
	Coef string `json:"coef"`
	Name string `json:"name"` // of the packet
	Word string `json:"word"` // that is the packet: a text over 2^8, a number over other fields
}

// sums works sums out, product by product.
func sums(_ context.Context, request sumsRequest) ([]mixture, error) {
	s, err := request.Flags.parse()
	if err != nil {
		return nil, err
	}
	f, err := s.ParseField()
	if err != nil {
		return nil, err
	}
	answer := []mixture{}
	for _, x := range request.Sums {
		if len(x.Terms) == 0 {
			return nil, selection.Markf("sums", "%q has no terms: want one or more", x.Name)
		}
		var coefs []field.Element
		var packets []packet
		for _, t := range x.Terms {
			coef, err := field.ParseElement(f, t.Coef)
			if err != nil {
				return nil, selection.Mark("sums", err)
			}
			data, err := packetOf(f, t.Word, x.Terms[0].Word)
			if err != nil {
				return nil, selection.Mark("sums", err)
			}
			coefs, packets = append(coefs, coef), append(packets, packet{t.Name, data})
		}
		answer = append(answer, mixtureOf(f, x.Name, coefs, packets))
	}
	return answer, nil
}

// lettersOf returns a word's letters, which are as many as the first word has.
func lettersOf(word, first string) ([]byte, error) {
	switch {
	case len(first) < 1 || len(first) > longestWord:
		return nil, fmt.Errorf("%q: want 1 to %d letters", first, longestWord)
	case len(word) != len(first):
		return nil, fmt.Errorf("%q: want %d letters, as the first word has", word, len(first))
	}
	return []byte(word), nil
}

// packetOf returns a word as a packet: its letters over 2^8, one symbol over other fields.
func packetOf(f field.Field, word, first string) ([]byte, error) {
	if f.Name() == "2^8" {
		return lettersOf(word, first)
	}
	number, err := field.ParseElement(f, word)
	data := make([]byte, f.SymbolBytes())
	field.PutSymbol(f, data, number)
	return data, err
}

// readable returns bytes as text, with a dot for what is no letter.
func readable(data []byte) string {
	text := []rune{}
	for _, b := range data {
		if b < ' ' || b > '~' {
			b = '.'
		}
		text = append(text, rune(b))
	}
	return string(text)
}
