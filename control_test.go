package volley

import (
	"context"
	"encoding/binary"
	"reflect"
	"testing"
	"time"

	"volley/field"
	"volley/internal/fuzzlimit"
	"volley/matrix"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

func TestCompare(t *testing.T) {
	ports := func(p uint32) greeting { return greeting{Terms: terms{Ports: p}} }
	for _, c := range []struct {
		all  []greeting
		want *DisagreementError
	}{
		{[]greeting{ports(1)}, nil},
		{[]greeting{ports(1), {Terms: terms{Ports: 1}, Bytes: 5, Beta: 6, Tau: 7}, ports(1)}, nil},
		{[]greeting{ports(1), ports(2)}, &DisagreementError{[]int{1}, 0, []string{"ports"}}},
		{[]greeting{ports(1), ports(2), ports(2)}, &DisagreementError{[]int{0}, 1, []string{"ports"}}},
		{[]greeting{ports(1), ports(2), ports(3)}, &DisagreementError{[]int{1, 2}, 0, []string{"ports"}}},
	} {
		err := compare(c.all)
		if got, _ := err.(*DisagreementError); !reflect.DeepEqual(got, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%v: got %v, want %v", c.all, err, c.want)
		}
	}
}

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
		if encoders[i], err = NewEncoder(a, WithBeta(time.Duration(i+1)), WithTau(sim.PerByte(i+2)), WithGamma(sim.PerByte(i+3)), WithCheck(false)); err != nil {
			t.Fatal(err)
		}
	}
	err = local.Run(t.Context(), k, func(ctx context.Context, tr transport.Transport) error {
		r, err := encoders[tr.Rank()].Run(ctx, tr, Packet{Result: new([]byte)})
		if err != nil {
			return err
		}
		// Greetings with digests go as in an allgather; then a header of 32 bytes
		// for each of three partners.
		if want := int64((k-1)*helloBytes + 3*32); r.ControlBytes != want {
			t.Errorf("processor %d: %d bytes of control, want %d", tr.Rank(), r.ControlBytes, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range encoders {
		if by := e.choices[0].by; by.Beta != 1 || by.Tau != 2 || by.Gamma != 3 {
			t.Errorf("processor %d chose by %+v", i, by)
		}
	}
}

// FuzzAgree lets greetings arrive damaged.
func FuzzAgree(f *testing.F) {
	for _, g := range []greeting{{}, {Bytes: 5, Terms: terms{Ports: 2, Check: true}}} {
		f.Add(record(f, "encode", g), record(f, "encode", greeting{}))
		f.Add(record(f, "encode", g), record(f, "protect", g))
	}
	f.Add([]byte{}, []byte{1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		defer fuzzlimit.Hold(t, len(a)+len(b))()
		both := func(records ...[]byte) (greeting, error) {
			terms, err := unseal(records)
			if err != nil {
				return greeting{}, err
			}
			return agree(terms)
		}
		shared, err := both(a, b)
		if err != nil {
			return
		}
		// Whatever is agreed on is what one said, but for the length.
		for _, data := range [][]byte{a, b} {
			one, err := both(data)
			if err != nil || one.Terms != shared.Terms || one.Bytes > shared.Bytes || shared.Bytes < 0 || shared.Bytes > mostPacket {
				t.Errorf("%x: %+v, %v; of both: %+v", data, one, err, shared)
			}
		}
	})
}

// record returns a greeting as it goes over the wire.
func record(t testing.TB, verb string, g greeting) []byte {
	data, err := binary.Append(nil, binary.LittleEndian, g)
	if err != nil || len(data) > len(hello{}.Terms) {
		t.Fatal(len(data), err)
	}
	return seal(verb, data)
}
