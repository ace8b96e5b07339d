package volley

import (
	"strings"
	"testing"

	"volley/transport/local"
)

// bindAndRun runs an encoder on packets of so many bytes, and returns the plan that it has chosen.
func bindAndRun(t *testing.T, e *Encoder, size int) *chosenPlan {
	t.Helper()
	var packets []Packet
	for range e.problem.Processors() {
		packets = append(packets, Packet{Data: make([]byte, size), Result: new([]byte)})
	}
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

// TestPacketsApart has coded packets that would lie in the memory of packets, or of each other: nothing is sent.
func TestPacketsApart(t *testing.T) {
	const n = 4096
	e := newEncoder(t, mustBuild(t, "2^8", "random:1", 4, 4))
	all := make([]byte, 3*n)
	overlap := "coded packet of processor 2 and the packet of processor 2"
	for name, c := range map[string]struct {
		data, result []byte // of processor 2
		other        []byte // the room of processor 1's coded packet, or none
		want         string
	}{
		"the same":            {all[:n], all[:n], nil, overlap},
		"begins in it":        {all[:n], all[n-1:], nil, overlap},
		"ends in it":          {all[n-1 : 2*n-1], all[:n], nil, overlap},
		"the room ends in it": {all[n-1 : 2*n-1], all[:0:n], nil, overlap},
		"another's":           {all[2*n:], all[:n], all[:n], "coded packet of processor"},
		"beside it":           {all[:n], all[n:], nil, ""},
		"too little room":     {all[:n], all[: n-1 : n-1], nil, ""},
		"none":                {all[:n], nil, nil, ""},
	} {
		packets := make([]Packet, 4)
		for k := range packets {
			packets[k] = Packet{Data: make([]byte, n), Result: new([]byte)}
		}
		packets[3].Data = packets[0].Data // which is only read
		packets[2] = Packet{Data: c.data, Result: &c.result}
		if c.other != nil {
			packets[1].Result = &c.other
		}
		_, err := e.Run(t.Context(), local.New(1)[0], packets...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
