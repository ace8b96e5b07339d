package main

import (
	"fmt"
	"math/big"

	"volley/field"
	"volley/matrix"
)

// The ways to encode, and what they are compared with.
const (
	bare        = "volley"         // the plan that Volley chooses, made ready once, without the check
	asDefault   = "volley-default" // with it
	boundWindow = "volley-window"  // as bare, and packets and results lie in a window, where all ranks are on one host
	// A plan of Volley asked for by its algorithm is "volley-" and the name of that.

	allgather = "allgather" // MPI_Allgather, then every rank codes its own packet
	ring      = "ring"      // packets go around, each is coded while it travels on
	alltoall2 = "alltoall2" // MPI_Alltoall of slices, each rank codes one of all packets, MPI_Alltoall back
	isend2    = "isend2"    // the same by MPI_Isend and MPI_Irecv of all slices

	iallgather = "iallgather" // allgather by MPI_Iallgather and MPI_Wait
	ialltoall2 = "ialltoall2" // alltoall2 by MPI_Ialltoall and MPI_Wait

	alltoall2Uncoded = "alltoall2-uncoded"
	isend2Uncoded    = "isend2-uncoded"
	raw              = "raw" // as these over plain TCP
	codingAlone      = "coding"

	// Through a window that all ranks of a host share: window.c.
	windowSlice = "window-slice" // packets and results lie in it; each rank codes a slice of all results
	windowOwn   = "window-own"   // and each its own result
	copiesSlice = "copies-slice" // packets and results are private, and go through it by segments
	copiesOwn   = "copies-own"
)

var (
	peers   = []string{allgather, ring, alltoall2, isend2} // that code
	uncoded = []string{alltoall2Uncoded, isend2Uncoded}
	windows = []string{windowSlice, windowOwn, copiesSlice, copiesOwn}
	later   = []string{iallgather, ialltoall2} // that code, by nonblocking collectives; not measured unless asked for
)

// messages are what the peers send, and MPI's for them.
type messages interface {
	allgather(x, all []byte, nonblocking bool)
	alltoall(out, in []byte, nonblocking bool) // slice j of out goes to rank j; slices lie one after the other
	exchange(out, in []byte)                   // alltoall with a message to and from each other rank; the own slice stays
	shift(out, in []byte, to, from int) (wait func())
	raw(out, in []byte) error // exchange without MPI
	// window returns one that all ranks share, for packets like x, which lies in it. products has for the coefficient of
	// packet i in result j, which is number j·K+i, its products with the symbols 1, 2, 4 to 128. The error says why there
	// is no window, at all ranks.
	window(products, x []byte) (sharedWindow, error)
}

// A sharedWindow is a window of all ranks of a host. All call encode and close.
type sharedWindow interface {
	kernel() string // the instructions that code
	clear()         // the rank's result in the window
	encode(name string, x, y []byte)
	result(y []byte) // sets y to the result in the window
	close()
}

// buffers are what the peers at one rank need, whatever the matrix.
type buffers struct {
	in, out, y []byte // a packet each; y is the result of all ways
	all        []byte // k packets; made by the first that needs them
	apart      []byte // a packet that no message has touched; as all
}

// A peerWork is what the peers at one rank work with.
type peerWork struct {
	messages
	*buffers
	rank, k, unit int // unit is the bytes of a symbol
	x             []byte
	column        field.Map   // 1×k: this rank's coded packet of all
	from          []field.Map // 1×1: what each rank's packet adds to it
	whole         field.Map   // k×k
	threads       int
	shared        sharedWindow // nil: there is none, or none is measured
}

func newPeerWork(m messages, a matrix.Matrix, rank, threads int, x []byte, b *buffers) *peerWork {
	k, f := a.Rows(), a.Field()
	w := &peerWork{messages: m, buffers: b, rank: rank, k: k, unit: f.SymbolBytes(), x: x, threads: threads}
	rows := make([][]field.Element, k)
	for j := range rows {
		for i := range k {
			rows[j] = append(rows[j], a.At(i, j))
		}
	}
	w.whole, w.column = f.Map(rows), f.Map(rows[rank:rank+1])
	for _, c := range rows[rank] {
		w.from = append(w.from, f.Map([][]field.Element{{c}}))
	}
	return w
}

// encode runs a peer.
func (w *peerWork) encode(name string) error {
	switch name {
	case allgather, iallgather:
		w.needAll()
		w.allgather(w.x, w.all, name == iallgather)
		w.apply(w.column, [][]byte{w.y}, w.cut(w.all), false)
	case ring:
		w.needAll()
		w.ring()
	case alltoall2, ialltoall2:
		w.alltoall(w.x, w.in, name == ialltoall2)
		w.apply(w.whole, w.cut(w.out), w.cut(w.in), false)
		w.alltoall(w.out, w.y, name == ialltoall2)
	case isend2:
		w.exchange(w.x, w.in)
		in, out := w.cut(w.in), w.cut(w.out)
		in[w.rank], out[w.rank] = w.own(w.x), w.own(w.y)
		w.apply(w.whole, out, in, false)
		w.exchange(w.out, w.y)
	case alltoall2Uncoded:
		w.alltoall(w.x, w.in, false)
		w.alltoall(w.in, w.y, false)
	case isend2Uncoded:
		w.exchange(w.x, w.in)
		w.exchange(w.in, w.y)
	case raw:
		if err := w.raw(w.x, w.in); err != nil {
			return err
		}
		return w.raw(w.in, w.y)
	case codingAlone:
		if w.apart == nil {
			w.apart = make([]byte, len(w.x))
		}
		w.apply(w.whole, w.cut(w.apart), w.cut(w.x), false)
	case windowSlice, windowOwn, copiesSlice, copiesOwn:
		w.shared.encode(name, w.x, w.y)
	}
	return nil
}

// products returns what window wants of a matrix over 2^8.
func products(a matrix.Matrix) (list []byte, err error) {
	f := a.Field()
	if f.SymbolBytes() != 1 || f.Order().Cmp(big.NewInt(256)) != 0 {
		return nil, fmt.Errorf("codes over 2^8, not over %s", f.Name())
	}
	for j := range a.Rows() {
		for i := range a.Rows() {
			bits := []byte{1, 2, 4, 8, 16, 32, 64, 128}
			all := make([]byte, 8)
			f.Combine(all, []field.Element{a.At(i, j)}, [][]byte{bits})
			list = append(list, all...)
		}
	}
	return list, nil
}

// ring is the way of FTI's level 3: in each round a rank sends on what came in the last
// one and codes it meanwhile.
func (w *peerWork) ring() {
	n := len(w.x)
	current := w.x
	for round := range w.k {
		next, wait := w.all[round%2*n:][:n], func() {}
		if round < w.k-1 {
			wait = w.shift(current, next, (w.rank+1)%w.k, (w.rank+w.k-1)%w.k)
		}
		w.apply(w.from[(w.rank+w.k-round)%w.k], [][]byte{w.y}, [][]byte{current}, round > 0)
		wait()
		current = next
	}
}

// prepare clears what the last way left, before this one. The own slice of x is in the result
// already, as the ways that do not code leave it out.
func (w *peerWork) prepare(name string) {
	clear(w.y)
	copy(w.own(w.y), w.own(w.x))
	if inWindow(name) {
		w.shared.clear()
	}
}

// finish sets y to what this way has left elsewhere.
func (w *peerWork) finish(name string) {
	if inWindow(name) {
		w.shared.result(w.y)
	}
}

func inWindow(name string) bool { return name == windowSlice || name == windowOwn }

func (w *peerWork) needAll() {
	if w.all == nil {
		w.all = make([]byte, w.k*len(w.x))
	}
}

// cut returns the k slices, or packets, that lie one after the other.
func (w *peerWork) cut(all []byte) [][]byte {
	list, n := make([][]byte, w.k), len(all)/w.k
	for i := range list {
		list[i] = all[i*n:][:n]
	}
	return list
}

func (w *peerWork) own(packet []byte) []byte { return w.cut(packet)[w.rank] }

func (w *peerWork) apply(m field.Map, out, in [][]byte, add bool) {
	apply(m, w.unit, w.threads, out, in, add)
}
