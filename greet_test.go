package volley

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"volley/field"
	"volley/matrix"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

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

// altered is a rank whose greeting is another one. Only who greets as volley does waits for the
// others to find that out.
func altered(ctx context.Context, tr transport.Transport, record []byte, volley bool) error {
	c := &control{t: tr, processors: tr.Size(), timeout: time.Minute}
	if tr.Size() >= manyProcessors {
		if _, err := c.meet(ctx, record, func([][]byte) []byte { return nil }); err != nil {
			return err
		}
	}
	_, err := c.allgather(ctx, 1, record)
	if err == nil && volley {
		err = c.barrier(ctx)
	}
	return err
}

// another returns a greeting of another version.
func another(verb, version string, protocol uint32) []byte {
	h := hello{Magic: helloMagic, Protocol: protocol}
	copy(h.Verb[:], verb)
	copy(h.Version[:], version)
	record, _ := binary.Append(nil, binary.LittleEndian, h)
	sum := digest(string(record[:helloBytes-8]))
	return append(record[:helloBytes-8], sum[:]...)
}

// TestGreet lets one rank be of another verb, version or protocol, or no volley at all: the
// others name it, all alike and at once.
func TestGreet(t *testing.T) {
	garbage := bytes.Repeat([]byte("\x1b[31m"), helloBytes)[:helloBytes]
	for _, c := range []struct {
		name   string
		record []byte
		want   string
	}{
		{"verb", another("protect", Version, protocol), "volley: rank 2 runs protect, rank 0 runs encode: start all ranks with the same verb"},
		{"version", another("encode", "9.9.9", protocol), "volley: rank 2 runs volley 9.9.9, rank 0 runs volley " + Version + ": install the same version at all ranks"},
		{"version first", another("protect", "9.9.9", protocol), "volley: rank 2 runs volley 9.9.9, rank 0 runs volley " + Version + ": install the same version at all ranks"},
		{"protocol", another("encode", Version, 77), fmt.Sprintf("volley: rank 2 runs volley %s with protocol 77, rank 0 runs volley %s with protocol %d: install the same version at all ranks", Version, Version, protocol)},
		{"garbage", garbage, `volley: rank 2 does not greet as volley does, but with "\x1b[31m\x1b[3": start the same program at all ranks`},
		{"an old version", make([]byte, 8), "volley: rank 2 does not greet as volley does, in 256 bytes: another program or an old version runs there: start the same one at all ranks"},
	} {
		for _, n := range []int{3, 5, manyProcessors + 1} {
			named := 0
			for r, err := range ranks(t, n, func(ctx context.Context, tr transport.Transport) error {
				if tr.Rank() == 2 {
					return altered(ctx, tr, c.record, bytes.HasPrefix(c.record, helloMagic[:]))
				}
				err := Greet(ctx, tr, "encode", time.Minute)
				if err != nil {
					tr.Abort(err)
				}
				return err
			}) {
				switch aborted := errors.As(err, new(*transport.AbortError)); {
				case r == 2:
				case err == nil:
					t.Errorf("%s: rank %d of %d noticed nothing", c.name, r, n)
				case err.Error() == c.want && IsInputError(err):
					named++
				case !aborted || !strings.Contains(err.Error(), "rank 2"):
					t.Errorf("%s: rank %d of %d: %v; want %s", c.name, r, n, err, c.want)
				}
			}
			if named == 0 && len(c.record) == helloBytes { // else rank 2 finds out first
				t.Errorf("%s: nobody of %d names rank 2", c.name, n)
			}
		}
	}
}

// TestGreetMany names many ranks.
func TestGreetMany(t *testing.T) {
	for r, err := range ranks(t, 20, func(ctx context.Context, tr transport.Transport) error {
		return Greet(ctx, tr, []string{"verify", "encode", "encode", "protect"}[min(tr.Rank(), 9)/3], time.Minute)
	}) {
		if want := "volley: ranks 0, 1, 2 run verify, ranks 3, 4, 5, 6, 7, 8 run encode, rank 9 runs protect: start all ranks with the same verb"; err == nil || err.Error() != want {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestGreetForm keeps the form of greetings, which other versions rely on.
func TestGreetForm(t *testing.T) {
	record := seal("encode", []byte{1, 2})
	want := "volley\r\n" + "\x07\x00\x00\x00" + "encode" + strings.Repeat("\x00", 14) + Version + strings.Repeat("\x00", 32-len(Version)) + "\x01\x02" + strings.Repeat("\x00", 182)
	sum := sha256.Sum256([]byte(want))
	if want += string(sum[:8]); string(record) != want {
		t.Errorf("got %q, want %q", record, want)
	}
}

// TestVerbs lets a rank encode and the others do something else.
func TestVerbs(t *testing.T) {
	f, err := field.Parse("2^8")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{3, manyProcessors} {
		a, err := matrix.Random(f, n, n, 1)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range ranks(t, n, func(ctx context.Context, tr transport.Transport) error {
			if tr.Rank() == 1 {
				return Greet(ctx, tr, "protect", time.Minute)
			}
			_, _, err := Encode(ctx, tr, a, []byte{1})
			return err
		}) {
			if want := "volley: rank 1 runs protect, rank 0 runs encode: start all ranks with the same verb"; err == nil || err.Error() != want {
				t.Errorf("rank %d of %d: %v", r, n, err)
			}
		}
	}
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
	encoder, err := NewEncoder(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		say  func(*greeting)
	}{
		{"a negative length", func(g *greeting) { g.Bytes = -1 }},
		{"a length", func(g *greeting) { g.Bytes = math.MaxInt64 }},
		{"β", func(g *greeting) { g.Beta = -1 }},
		{"τ", func(g *greeting) { g.Tau = sim.PerByte(math.NaN()) }},
		{"γ", func(g *greeting) { g.Gamma = sim.PerByte(math.Inf(1)) }},
	} {
		for r, err := range ranks(t, 3, func(ctx context.Context, tr transport.Transport) error {
			if tr.Rank() < 2 {
				_, _, err := encoder.Encode(ctx, tr, []byte{1})
				return err
			}
			g := encoder.greeting(0)
			c.say(&g)
			return altered(ctx, tr, record(t, "encode", g), false)
		}) {
			if r < 2 && (err == nil || !strings.Contains(err.Error(), "rank 2 says that ")) {
				t.Errorf("%s: rank %d: %v", c.name, r, err)
			}
		}
	}
	for r, err := range ranks(t, 3, func(ctx context.Context, tr transport.Transport) error {
		if tr.Rank() < 2 {
			_, err := Exchange(ctx, tr, []byte{1}, time.Minute)
			return err
		}
		c := &control{t: tr, processors: 3, timeout: time.Minute}
		_, err := c.allgather(ctx, 1, binary.LittleEndian.AppendUint64(nil, 1<<62))
		return err
	}) {
		if r < 2 && (err == nil || !strings.Contains(err.Error(), "rank 2 announces a record of 4611686018427387904 bytes")) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	for r, err := range ranks(t, 3, func(ctx context.Context, tr transport.Transport) error {
		if tr.Rank() < 2 {
			_, err := ExchangeValues(ctx, tr, 1, time.Minute)
			return err
		}
		_, err := Exchange(ctx, tr, []byte(`{"a":`), time.Minute)
		return err
	}) {
		if r < 2 && (err == nil || !strings.Contains(err.Error(), "rank 2 says what does not fit here")) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
