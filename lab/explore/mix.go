package explore

import (
	"bytes"
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
	Words    []string  `json:"words"`    // their bytes, in hexadecimal
	Mixtures []mixture `json:"mixtures"` // by processor, as the plan has computed them
	Back     []mixture `json:"back"`     // by lost processor; empty where too many are lost
	Needed   int       `json:"needed"`   // packets of any kind, to bring all back
	Left     int       `json:"left"`     // that are there
	Fold     string    `json:"fold"`     // what a bit that a shift moves out of a byte comes back as
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
	From   string  `json:"from"` // its bytes
	Bytes  string  `json:"bytes"`
	Shifts []shift `json:"shifts"`
}

type shift struct {
	By    int    `json:"by"`
	Bytes string `json:"bytes"`
}

// mix runs the plan of the flags on words, and brings back those that are lost from what is left.
func mix(ctx context.Context, request mixRequest, _ func(any) error) (*mixAnswer, error) {
	q, data, err := request.prepare(ctx)
	if err != nil {
		return nil, err
	}
	coded, err := q.encode(ctx, data)
	if err != nil {
		return nil, err
	}
	a := &mixAnswer{Mixtures: []mixture{}, Back: []mixture{}, Needed: len(data), Fold: hex.EncodeToString(times(q.matrix.Field(), []byte{1 << 7}, field.Code(2)))}
	all := make([]int, len(data))
	for k := range all {
		all[k] = k
	}
	var kept, lost []int
	for k, word := range data {
		m, err := mixtureOf(q.matrix, k, named("x", data, all), packet{"y" + strconv.Itoa(k), coded[k]})
		if err != nil {
			return nil, err
		}
		a.Words, a.Mixtures = append(a.Words, hex.EncodeToString(word)), append(a.Mixtures, m)
		if slices.Contains(request.Lost, k) {
			lost = append(lost, k)
		} else {
			kept = append(kept, k)
		}
	}
	a.Left = 2 * len(kept)
	parity := code.Independent(q.matrix, lost, kept)
	if len(parity) < len(lost) {
		return a, nil
	}
	by, err := code.Solve(q.matrix, kept, lost, parity)
	if err != nil {
		return nil, err
	}
	left := append(named("x", data, kept), named("y", coded, parity)...)
	for i, k := range lost {
		m, err := mixtureOf(by, i, left, packet{"x" + strconv.Itoa(k), data[k]})
		if err != nil {
			return nil, err
		}
		a.Back = append(a.Back, m)
	}
	return a, nil
}

// prepare returns what is selected, and the words as packets. The error is a *selection.Error.
func (request mixRequest) prepare(ctx context.Context) (*question, [][]byte, error) {
	if n := len(request.Words); n < 1 || n > mostWords {
		return nil, nil, at("words", fmt.Errorf("%d words: want 1 to %d", n, mostWords))
	}
	length := len(request.Words[0])
	if length < 1 || length > longestWord {
		return nil, nil, at("words", fmt.Errorf("%q: want 1 to %d letters", request.Words[0], longestWord))
	}
	var data [][]byte
	for _, word := range request.Words {
		if len(word) != length {
			return nil, nil, at("words", fmt.Errorf("%q: want %d letters, as the first word has", word, length))
		}
		data = append(data, []byte(word))
	}
	selected := flags{}
	maps.Copy(selected, request.Flags)
	selected["processors"], selected["size"] = strconv.Itoa(len(data)), strconv.Itoa(length)
	q, err := selected.ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	if q.matrix.Field().Name() != "2^8" || q.matrix.Cols() != len(data) || q.encoder.Problem().Processors() != len(data) {
		return nil, nil, at("field", errors.New("words are mixed over the field 2^8, with a coded packet at each processor"))
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

func named(name string, data [][]byte, which []int) []packet {
	var list []packet
	for _, k := range which {
		list = append(list, packet{name + strconv.Itoa(k), data[k]})
	}
	return list
}

// mixtureOf returns the sum of packets with the coefficients of a column of a, which is to be what is wanted.
func mixtureOf(a matrix.Matrix, column int, of []packet, want packet) (mixture, error) {
	f := a.Field()
	m := mixture{Name: want.name, Bytes: hex.EncodeToString(want.data), Text: readable(want.data)}
	sum := make([]byte, len(want.data))
	for row, x := range of {
		coef := a.At(row, column)
		all := times(f, x.data, coef)
		p := product{Coef: coef.String(), Name: x.name, From: hex.EncodeToString(x.data), Bytes: hex.EncodeToString(all), Shifts: []shift{}}
		for by := range 8 {
			if coef.Int().Bit(by) == 1 {
				p.Shifts = append(p.Shifts, shift{by, hex.EncodeToString(times(f, x.data, field.Code(1<<by)))})
			}
		}
		m.Terms = append(m.Terms, p)
		for i := range sum {
			sum[i] ^= all[i]
		}
	}
	if !bytes.Equal(sum, want.data) {
		return m, fmt.Errorf("%s is %x by its sum, and %x by the plan: this is a fault of the program", m.Name, sum, want.data)
	}
	return m, nil
}

func times(f field.Field, data []byte, by field.Element) []byte {
	product := make([]byte, len(data))
	for i := range data {
		field.PutSymbol(f, product[i:], f.Mul(field.Symbol(f, data[i:]), by))
	}
	return product
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
