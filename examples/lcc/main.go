// The program lcc computes on data in spite of processors that are late and of one
// that computes wrongly: Lagrange coded computing, with encoding and decoding by
// all-to-all encodes instead of a master.
//
// In lcc.go is what one would take from here. The processors are goroutines of this
// process, and what they compute is compared with the direct computation.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"text/tabwriter"

	"volley"
	"volley/examples/internal/elements"
	"volley/field"
	_ "volley/field/curves"
	"volley/matrix"
	"volley/transport"
	"volley/transport/local"
)

func main() {
	log.SetFlags(0)
	seed := flag.Uint64("seed", 1, "of the data and of who is late and who is wrong")
	flag.Parse()
	if err := demonstrate(context.Background(), os.Stdout, *seed); err != nil {
		log.Fatal(err)
	}
}

// demonstrate computes a·x² + b·x, with as many processors late as may be and one
// wrong, and writes what happened.
func demonstrate(ctx context.Context, w io.Writer, seed uint64) error {
	const shards, groups, symbols = 16, 4, 1000
	f, err := field.Parse("goldilocks")
	if err != nil {
		return err
	}
	s, err := NewScheme(f, shards, groups, 2)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	data := make([][]byte, shards)
	for i := range data {
		data[i] = randomPacket(f, rng, symbols)
	}
	compute := quadratic(f, randomPacket(f, rng, symbols), randomPacket(f, rng, symbols))
	order := rng.Perm(s.Processors())
	late, liar := order[s.Need():], order[0]
	slices.Sort(late)
	wrong := rng.IntN(symbols)
	lie := func(result []byte) {
		symbol := result[wrong*f.SymbolBytes():]
		field.PutSymbol(f, symbol, f.Add(field.Symbol(f, symbol), field.One))
	}

	fmt.Fprintf(w, "%d shards of %d symbols over %s, %d processors, f(x) = a·x² + b·x\n", shards, symbols, f.Name(), s.Processors())
	fmt.Fprintf(w, "late         %d of them: %v\n", len(late), late)
	fmt.Fprintf(w, "wrong        processor %d, in symbol %d\n", liar, wrong)

	o, err := simulate(ctx, s, data, compute, late, map[int]func([]byte){liar: lie})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "found wrong  processor %d\n", o.Liar)
	for i, x := range data {
		if !bytes.Equal(o.Values[i], compute(x)) {
			return fmt.Errorf("f of shard %d is not that of the direct computation", i)
		}
	}
	fmt.Fprintf(w, "result       f of all %d shards, equal to the direct computation\n\n", shards)

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "phase\tprocessors\tsymbols of a packet\tC1\tC2\talgorithm")
	for _, p := range o.Phases {
		r := p.Report
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s %s\n", p.Name, p.Processors, r.SymbolsPerPacket, r.C1, r.C2, r.Algorithm, r.Parameters)
	}
	table.Flush()

	dense, err := denseEncode(ctx, s, symbols)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nBroadcast and encode by one %d×%d matrix with rows of zeros: C1 = %d, C2 = %d.\n", s.Processors(), s.Processors(), dense.C1, dense.C2)
	return nil
}

// denseEncode returns what encoding would cost as one encode of all processors.
func denseEncode(ctx context.Context, s *Scheme, symbols int64) (*volley.Report, error) {
	n := s.Processors()
	a := matrix.NewDense(s.Field, n, n)
	for w := range n {
		part, err := matrix.Lagrange(s.omega, s.alpha[w/s.Shards])
		if err != nil {
			return nil, err
		}
		for i := range s.Shards {
			a.Set(i, w, part.At(i, w%s.Shards))
		}
	}
	encoder, err := volley.NewEncoder(ctx, a, s.options...)
	if err != nil {
		return nil, err
	}
	return encoder.Estimate(ctx, nil, symbols)
}

// An Outcome is what a computation gave.
type Outcome struct {
	Values [][]byte // f of each shard
	Liar   int      // whom all that were present found wrong, or -1
	Phases []Phase  // of all processors together
}

// simulate runs all processors of a scheme. The results of some come too late for
// decoding, and those of liars are changed.
func simulate(ctx context.Context, s *Scheme, data [][]byte, compute func([]byte) []byte, late []int, lies map[int]func([]byte)) (*Outcome, error) {
	n := s.Processors()
	var present []int
	for w := range n {
		if !slices.Contains(late, w) {
			present = append(present, w)
		}
	}
	decoded := make([]*Decoded, n)
	phases := make([][]Phase, n)
	err := local.Run(ctx, n, func(ctx context.Context, t transport.Transport) error {
		w := t.Rank()
		var shard []byte
		if w < s.Shards {
			shard = data[w]
		}
		coded, encoding, err := s.Encode(ctx, t, shard)
		if err != nil {
			return err
		}
		phases[w] = encoding
		if slices.Contains(late, w) {
			return nil
		}
		result := compute(coded)
		if lie := lies[w]; lie != nil {
			lie(result)
		}
		var decoding []Phase
		decoded[w], decoding, err = s.Decode(ctx, t, result, present)
		phases[w] = append(phases[w], decoding...)
		return err
	})
	if err != nil {
		return nil, err
	}

	o := &Outcome{Values: make([][]byte, s.Shards), Liar: decoded[present[0]].Liar, Phases: merge(phases)}
	for _, w := range present {
		d := decoded[w]
		if d.Liar != o.Liar {
			return nil, fmt.Errorf("processor %d found %d wrong, processor %d found %d", w, d.Liar, present[0], o.Liar)
		}
		if d.Shard < 0 {
			continue
		}
		if o.Values[d.Shard] != nil {
			return nil, fmt.Errorf("f of shard %d at two processors", d.Shard)
		}
		o.Values[d.Shard] = d.Value
	}
	if slices.ContainsFunc(o.Values, func(v []byte) bool { return v == nil }) {
		return nil, errors.New("f of some shard at no processor")
	}
	return o, nil
}

// merge puts the reports of all processors together, phase by phase.
func merge(processors [][]Phase) []Phase {
	var merged []Phase
	reports := make(map[string][]*volley.Report)
	for _, phases := range processors {
		for _, p := range phases {
			if reports[p.Name] == nil {
				merged = append(merged, p)
			}
			reports[p.Name] = append(reports[p.Name], p.Report)
		}
	}
	for i := range merged {
		merged[i].Report = volley.Merge(reports[merged[i].Name])
	}
	return merged
}

// quadratic returns the function a·x² + b·x, symbol by symbol.
func quadratic(f field.Field, a, b []byte) func(x []byte) []byte {
	aElements, bElements := elements.Unpack(f, a), elements.Unpack(f, b)
	return func(x []byte) []byte {
		y := elements.Unpack(f, x)
		for i := range y {
			y[i] = f.Mul(y[i], f.Add(f.Mul(aElements[i], y[i]), bElements[i]))
		}
		return elements.Pack(f, y)
	}
}

func randomPacket(f field.Field, rng *rand.Rand, symbols int) []byte {
	sampler := field.NewSampler(f)
	list := make([]field.Element, symbols)
	for i := range list {
		list[i] = sampler.Draw(rng.Uint64)
	}
	return elements.Pack(f, list)
}
