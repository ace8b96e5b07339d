package volley

import (
	"bytes"
	"strings"
	"testing"

	"volley/field/fieldtest"
	"volley/matrix"
	"volley/transport/local"
)

func testEncoder(t *testing.T, k int, opts ...Option) *Encoder {
	t.Helper()
	a, err := matrix.Random(fieldtest.Parse(t, "2^8"), k, k, 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEncoder(t.Context(), a, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestAlternatingSizes runs packets of some sizes in turns: each size is planned and
// compiled once.
func TestAlternatingSizes(t *testing.T) {
	e := testEncoder(t, 4)
	run := func(size int) *chosenPlan {
		packets := make([]Packet, 4)
		for k := range packets {
			packets[k] = Packet{Data: bytes.Repeat([]byte{byte(k)}, size), Result: new([]byte)}
		}
		return bindAndRun(t, e, packets)
	}
	first := map[int]*chosenPlan{}
	for turn := range 3 {
		for size := range mostPlans {
			c := run(100 + size)
			if turn == 0 {
				first[size] = c
			}
			if c != first[size] || len(c.executables) != 1 {
				t.Errorf("turn %d, size %d: planned anew, or %d executables", turn, size, len(c.executables))
			}
		}
	}
}

// bindAndRun runs an encoder on all packets, and returns the plan that it has chosen.
func bindAndRun(t *testing.T, e *Encoder, packets []Packet) *chosenPlan {
	t.Helper()
	b, err := e.Bind(t.Context(), local.New(1)[0], packets)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	return b.carrier.(*messages).chosenPlan
}

// TestPacketInPlace checks that a packet in memory is computed from where it lies to where
// it is to lie: then one rank needs no segments. A reader or writer around the memory does.
func TestPacketInPlace(t *testing.T) {
	const k, size = 4, 3 * maxSegment
	e := testEncoder(t, k, WithCheck(false), WithWholePackets())
	for _, wrapped := range []bool{false, true} {
		packets, out := make([]Packet, k), make([][]byte, k)
		for i := range packets {
			data := bytes.Repeat([]byte{byte(i + 1)}, size)
			out[i] = make([]byte, 1, size)
			packets[i] = Packet{Data: data, Result: &out[i]}
			if wrapped {
				packets[i] = Packet{Source: bytes.NewReader(data), Size: size, Result: &out[i]}
			}
		}
		before := &out[0][0]
		r, err := e.Run(t.Context(), local.New(1)[0], packets...)
		if err != nil {
			t.Fatal(err)
		}
		if (r.Segments == 1) == wrapped || &out[0][0] != before || len(out[0]) != size {
			t.Errorf("wrapped %v: %d segments, result of %d bytes at another place: %v", wrapped, r.Segments, len(out[0]), &out[0][0] != before)
		}
	}
}

// TestPacketsApart has coded packets that would lie in the memory of packets, or of each other: nothing is sent.
func TestPacketsApart(t *testing.T) {
	const n = 4096
	e := testEncoder(t, 4)
	for _, c := range []struct {
		name   string
		rooms  func(all []byte) (data, result []byte) // of processor 2
		others bool                                   // the room is that of processor 1's coded packet
		want   string
	}{
		{"the same", func(all []byte) (_, _ []byte) { return all[:n], all[:n] }, false, "coded packet of processor 2 and the packet of processor 2"},
		{"begins in it", func(all []byte) (_, _ []byte) { return all[:n], all[n-1:] }, false, "coded packet of processor 2 and the packet of processor 2"},
		{"ends in it", func(all []byte) (_, _ []byte) { return all[n-1 : 2*n-1], all[:n] }, false, "coded packet of processor 2 and the packet of processor 2"},
		{"the room ends in it", func(all []byte) (_, _ []byte) { return all[n-1 : 2*n-1], all[:0:n] }, false, "coded packet of processor 2 and the packet of processor 2"},
		{"another's", func(all []byte) (_, _ []byte) { return all[2*n:], all[:n] }, true, "coded packet of processor"},
		{"beside it", func(all []byte) (_, _ []byte) { return all[:n], all[n:] }, false, ""},
		{"too little room", func(all []byte) (_, _ []byte) { return all[:n], all[: n-1 : n-1] }, false, ""},
		{"none", func(all []byte) (_, _ []byte) { return all[:n], nil }, false, ""},
	} {
		all := make([]byte, 3*n)
		data, result := c.rooms(all)
		packets := make([]Packet, 4)
		for k := range packets {
			packets[k] = Packet{Data: bytes.Repeat([]byte{byte(k)}, n), Result: new([]byte)}
		}
		packets[3].Data = packets[0].Data // which is only read
		packets[2] = Packet{Data: data, Result: &result}
		if c.others {
			other := all[:n]
			packets[1].Result = &other
		}
		_, err := e.Run(t.Context(), local.New(1)[0], packets...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
