package volley

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley/collective"
	"volley/field"
	"volley/matrix"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// TestControl checks that all choose by the β and τ of processor 0, and counts
// the bytes that are not of the run.
func TestControl(t *testing.T) {
	const k = 8
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	a, err := matrix.Random(f, k, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	var encoders [k]*Encoder
	for i := range encoders {
		if encoders[i], err = NewEncoder(t.Context(), a, WithPaperModel(1, time.Duration(i+1), sim.PerByte(i+2)), WithGamma(sim.PerByte(i+3)), WithCheck(false)); err != nil {
			t.Fatal(err)
		}
	}
	err = local.Run(t.Context(), k, func(ctx context.Context, tr transport.Transport) error {
		b, err := encoders[tr.Rank()].Bind(ctx, tr, []Packet{{Result: new([]byte)}})
		if err != nil {
			return err
		}
		defer b.Close()
		if by := b.carrier.(*messages).model; by.Beta != 1 || by.Tau != 2 || by.Gamma != 3 {
			t.Errorf("processor %d chose by %+v", tr.Rank(), by)
		}
		if err := b.Run(); err != nil {
			return err
		}
		r := b.Report()
		// A greeting goes to all other ranks, and a header of 32 bytes to each of three partners.
		if want := int64((k-1)*152 + 3*32); r.ControlBytes != want {
			t.Errorf("processor %d: %d bytes of control, want %d", tr.Rank(), r.ControlBytes, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzOwn lets words be anything: they are what is said, and what cannot be is noticed.
func FuzzOwn(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3), math.Float64bits(4), math.Float64bits(5), []byte{9})
	f.Fuzz(func(t *testing.T, a, b, c, d, e uint64, network []byte) {
		text := append(network, make([]byte, 24)...)
		words := []uint64{a, b % 3, b, 0, 0, 0, c, d, e}
		for i := range 3 {
			words[3+i] = binary.LittleEndian.Uint64(text[8*i:])
		}
		o := settingsOf(words)
		if !slices.Equal(o.words(), words) {
			t.Errorf("%d: %+v: %d", words, o, o.words())
		}
		if m := o.model(1); o.impossible() == "" && (m.Bytes < 0 || m.Beta < 0 || !(m.Tau >= 0) || !(m.Gamma >= 0)) {
			t.Errorf("%d: %+v is possible", words, o)
		}
	})
}

// ranks runs f at all ranks of a group and returns the errors, which come without a timeout.
func ranks(t *testing.T, n int, f func(context.Context, transport.Transport) error) []error {
	t.Helper()
	errs := make([]error, n)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		local.Run(t.Context(), n, func(ctx context.Context, tr transport.Transport) error {
			errs[tr.Rank()] = f(ctx, tr)
			return nil
		})
		if took := time.Since(start); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
	return errs
}

// TestImpossible has a rank say numbers that cannot be: all name it, and nobody makes room for
// them.
func TestImpossible(t *testing.T) {
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	a, err := matrix.Random(f, 3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := NewEncoder(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		say  func(*settings)
	}{
		{"a negative length", func(g *settings) { g.Bytes = -1 }},
		{"a length", func(g *settings) { g.Bytes = math.MaxInt64 }},
		{"β", func(g *settings) { g.Beta = -1 }},
		{"τ", func(g *settings) { g.Tau = sim.PerByte(math.NaN()) }},
		{"γ", func(g *settings) { g.Gamma = sim.PerByte(math.Inf(1)) }},
	} {
		for r, err := range ranks(t, 3, func(ctx context.Context, tr transport.Transport) error {
			if tr.Rank() < 2 {
				_, _, err := encoder.Encode(ctx, tr, []byte{1})
				return err
			}
			own := encoder.settings(tr, 0)
			c.say(&own)
			_, err := collective.New(tr, time.Minute).Greet(ctx, encoder.greeting(own), func(words []uint64) string { return settingsOf(words).impossible() })
			return err
		}) {
			if r < 2 && (err == nil || !strings.Contains(err.Error(), "rank 2 says that ")) {
				t.Errorf("%s: rank %d: %v", c.name, r, err)
			}
		}
	}
}
