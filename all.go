package volley

import (
	"context"
	"slices"

	"volley/field"
	"volley/internal/code"
	"volley/matrix"
	"volley/sim"
	"volley/transport/local"
)

// EncodeAll encodes where one process has all packets: a has a row for each of them, and a column for each coded packet
// that comes back, in this order. With A the matrix, coded packet j is Σ_i A[i][j]·x_i, as long as the longest packet, and
// shorter ones count as padded with zeros. See [Encode] for what packets are. All cores take part, by a plan for one process
// unless an option says otherwise.
func EncodeAll(ctx context.Context, a matrix.Matrix, packets [][]byte, opts ...Option) ([][]byte, error) {
	model := inProcess(sim.Model{})
	e, err := NewEncoder(ctx, a, append([]Option{WithNetwork(model.Network), WithGamma(model.Gamma)}, opts...)...)
	if err != nil {
		return nil, err
	}
	if len(packets) != a.Rows() {
		return nil, inputf("volley: %d packets for a matrix of %d rows: want one for each row", len(packets), a.Rows())
	}
	coded := make([][]byte, a.Cols())
	processors := make([]Packet, e.problem.Processors())
	for k := range processors {
		if source, ok := e.problem.Source(k); ok {
			processors[k].Data = packets[source]
		}
		if sink, ok := e.problem.Sink(k); ok {
			processors[k].Result = &coded[sink]
		}
	}
	t := local.New(1)[0]
	defer t.Close()
	report, err := e.Run(ctx, t, processors...)
	if err != nil {
		return nil, err
	}
	if report.Columns == nil {
		return coded, nil
	}
	inOrder := make([][]byte, len(coded))
	for sink, column := range report.Columns {
		inOrder[column] = coded[sink]
	}
	return inOrder, nil
}

// DecodeAll decodes where one process has what is left of packets and of what [EncodeAll] made of them by a, in their order:
// nil stands for what is lost. It returns all packets, those that were lost in new memory, padded with zeros to the length
// of a coded packet. Where those left do not tell the lost ones, the error is one of [IsInputError].
func DecodeAll(ctx context.Context, a matrix.Matrix, packets, coded [][]byte, opts ...Option) ([][]byte, error) {
	if len(packets) != a.Rows() || len(coded) != a.Cols() {
		return nil, inputf("volley: %d packets and %d coded ones for a matrix of %d rows and %d columns: want one for each row and column, nil where it is lost",
			len(packets), len(coded), a.Rows(), a.Cols())
	}
	kept, lost := numbers(packets)
	parity, _ := numbers(coded)
	if len(lost) == 0 {
		return slices.Clone(packets), nil
	}
	used, decoding, err := code.Solve(ctx, a, kept, lost, parity)
	if err != nil {
		return nil, err
	}
	if len(used) < len(lost) {
		return nil, inputf("volley: %d of %d packets are lost, and the coded ones that are left tell no more than %d of them", len(lost), len(packets), len(used))
	}
	longest := len(coded[used[0]])
	var survivors [][]byte
	for _, i := range kept {
		if len(packets[i]) > longest {
			return nil, inputf("volley: packet %d has %d bytes, and coded packet %d has %d: want none longer than the coded packets", i, len(packets[i]), used[0], longest)
		}
		survivors = append(survivors, packets[i])
	}
	for _, j := range used {
		if len(coded[j]) != longest {
			return nil, inputf("volley: coded packet %d has %d bytes, and coded packet %d has %d: want all as long", used[0], longest, j, len(coded[j]))
		}
		survivors = append(survivors, coded[j])
	}
	found, err := EncodeAll(ctx, decoding, survivors, opts...)
	if err != nil {
		return nil, err
	}
	restored := slices.Clone(packets)
	for n, i := range lost {
		restored[i] = found[n]
	}
	return restored, nil
}

// numbers returns which packets there are, and which are lost.
func numbers(packets [][]byte) (kept, lost []int) {
	for i, x := range packets {
		if x == nil {
			lost = append(lost, i)
		} else {
			kept = append(kept, i)
		}
	}
	return kept, lost
}

// mostMDS is how many packets a code of MDS has: the elements of its larger field.
const mostMDS = 1 << 16

// MDS returns the matrix of a code that loses no packet while as many are left as there were: of k packets and r coded ones
// any k give back all. It is a Cauchy matrix over 2^8, whose symbols are bytes, or over 2^16 where k+r is above 256. It
// is an error unless k and r are 1 or more, and k+r is 65536 at most.
func MDS(k, r int) (matrix.Matrix, error) {
	if k < 1 || r < 1 || k > mostMDS-r {
		return nil, inputf("volley.MDS(%d, %d): want 1 or more of both, and %d at most together", k, r, mostMDS)
	}
	name := "2^8"
	if k+r > 1<<8 {
		name = "2^16"
	}
	f, err := field.Parse(name)
	if err != nil {
		return nil, err
	}
	return matrix.Cauchy(f, k, r)
}
