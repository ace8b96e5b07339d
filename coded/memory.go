package coded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"volley"
	"volley/collective"
	solver "volley/internal/code"
	"volley/internal/printable"
	"volley/matrix"
	"volley/transport"
)

// A MemoryDecoding says what [DecodePackets] decodes. All ranks give the same Matrix, Timeout and Options.
type MemoryDecoding struct {
	Matrix matrix.Matrix // A, by which the packets were encoded: K rows, and a column for each coded packet

	// Inputs are the packets that have survived at this rank, and Coded its coded packets, by their numbers. They are
	// vectors of symbols, which are only read. A packet may be shorter than the coded packets, which have one length.
	Inputs, Coded map[int][]byte

	Timeout time.Duration // of the wait for a message; 0 is no bound
	Options []volley.Option
	Log     *slog.Logger // gets what the run does; nil: nothing is logged
}

// DecodePackets decodes the packets that no rank has. It returns those that this rank obtains, by
// their numbers, each padded with zeros to the length of a coded packet. With a rank for each
// processor, rank k obtains packet k where that is lost. The report is nil where none is lost.
//
// Every rank of t calls it. The errors are an [*InputError], where too many packets are lost or
// the packets do not fit each other, and those of volley.Encoder.Run.
func DecodePackets(ctx context.Context, t transport.Transport, d MemoryDecoding) (map[int][]byte, *volley.Report, error) {
	h := &packetsAtHand{run: newRun(ctx, t, Options{Timeout: d.Timeout, Log: d.Log}, "decode"), d: d}
	if d.Matrix == nil {
		return nil, nil, h.fail(inputf("no matrix: give the one by which the packets were encoded"))
	}
	results, report, err := h.decode()
	return results, report, h.fail(err)
}

// packetsAtHand are packets in memory, and those of processors at this rank.
type packetsAtHand struct {
	run
	d       MemoryDecoding
	length  int64         // of a coded packet
	lengths map[int]int64 // of the inputs at hand, at the ranks that count
	procs   []processor
	moved   map[int][]byte // by processor: packets of other ranks
	results map[int][]byte // by input
}

func (h *packetsAtHand) decode() (map[int][]byte, *volley.Report, error) {
	k, r := h.d.Matrix.Rows(), h.d.Matrix.Cols()
	holders := newInventory(h.t.Size(), k, r)
	if err := h.gather(holders); err != nil {
		return nil, nil, err
	}
	kept, lost := holders.split()
	if len(lost) == 0 {
		return nil, nil, nil
	}
	var encoder *volley.Encoder
	err := h.atAllRanks(func() error {
		used, decoding, err := solver.Solve(h.ctx, h.d.Matrix, kept, lost, holders.preferred())
		if err != nil {
			return h.input(err)
		}
		if len(used) < len(lost) {
			return inputf("cannot decode: %s of %d lost, and the coded packets at hand tell no more than %d of them", printable.Count(len(lost), "packet"), k, len(used))
		}
		h.procs = holders.assign(used)
		encoder, err = h.newDecoder(h.d.Matrix.Field(), h.procs, decoding, append(slices.Clip(h.d.Options), volley.WithTimeout(h.Timeout)))
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	h.moved, h.results = map[int][]byte{}, map[int][]byte{}
	for p, end := holders.hosted(h.t.Rank()); p < end; p++ {
		if s := h.procs[p]; s.coded >= 0 {
			h.results[s.result] = make([]byte, h.length)
		}
	}
	if err := h.move(holders, h.procs, h); err != nil {
		return nil, nil, err
	}
	report, err := h.encode(encoder, h, h.length/int64(h.d.Matrix.Field().SymbolBytes()))
	if err != nil {
		return nil, nil, err
	}
	return h.results, report, nil
}

// gather says which rank has which packet, after a check that they fit each other.
func (h *packetsAtHand) gather(holders *inventory) error {
	type lengths struct{ Inputs, Coded map[int]int64 }
	mine := lengths{map[int]int64{}, map[int]int64{}}
	for n, packet := range h.d.Inputs {
		mine.Inputs[n] = int64(len(packet))
	}
	for n, packet := range h.d.Coded {
		mine.Coded[n] = int64(len(packet))
	}
	if err := volley.Greet(h.ctx, h.t, "decode", h.d.Timeout, collective.TermOf("matrix", h.d.Matrix.ID())); err != nil {
		return err
	}
	gathered, err := exchange(&h.run, mine)
	if err != nil {
		return err
	}
	h.lengths = map[int]int64{}
	return h.atAllRanks(func() error {
		if err := h.checkRanks(len(holders.inputs)); err != nil {
			return err
		}
		f := h.d.Matrix.Field()
		check := func(kind string, list []int, n, rank int, length int64) error {
			switch symbol := int64(f.SymbolBytes()); {
			case n < 0 || n >= len(list) || length < 0:
				return inputf("rank %d has %s %d: there are %d", rank, kind, n, len(list))
			case length%symbol != 0:
				return inputf("%s %d of rank %d has %d bytes: a symbol of %s has %d", kind, n, rank, length, f.Name(), symbol)
			}
			return nil
		}
		holder := -1 // a rank that has a coded packet
		for rank, l := range gathered {
			for n, length := range l.Coded {
				if err := check("coded packet", holders.coded, n, rank, length); err != nil {
					return err
				}
				if holder < 0 {
					holder, h.length = rank, length
				}
				if length != h.length {
					return inputf("the coded packets of ranks %d and %d have %d and %d bytes: want one length", holder, rank, h.length, length)
				}
				holders.note(holders.coded, n, rank)
			}
		}
		for rank, l := range gathered {
			for n, length := range l.Inputs {
				if err := check("packet", holders.inputs, n, rank, length); err != nil {
					return err
				}
				if holder >= 0 && length > h.length {
					return inputf("packet %d of rank %d has %d bytes: want at most %d, the length of a coded packet", n, rank, length, h.length)
				}
				if holders.note(holders.inputs, n, rank); holders.inputs[n] == rank {
					h.lengths[n] = length
				}
			}
		}
		return nil
	})
}

// packet returns the packet of a processor, where this rank has it.
func (h *packetsAtHand) packet(s processor) []byte {
	if s.coded >= 0 {
		return h.d.Coded[s.coded]
	}
	return h.d.Inputs[s.input]
}

func (h *packetsAtHand) bytes(s processor) int64 {
	if s.coded >= 0 {
		return h.length
	}
	return h.lengths[s.input]
}

func (h *packetsAtHand) reader(s processor) io.ReaderAt { return bytes.NewReader(h.packet(s)) }

func (h *packetsAtHand) writer(p int) io.WriterAt {
	h.moved[p] = make([]byte, h.bytes(h.procs[p]))
	return memory(h.moved[p])
}

func (h *packetsAtHand) source(p int, target *volley.Packet) {
	packet, ok := h.moved[p]
	if !ok {
		packet = h.packet(h.procs[p])
	}
	target.Data = packet
}

func (h *packetsAtHand) sink(p int, target *volley.Packet) {
	target.Coded = nowhere{}
	if s := h.procs[p]; s.coded >= 0 {
		result := h.results[s.result] // which has room
		target.Result, target.Coded = &result, nil
	}
}

type memory []byte

func (m memory) WriteAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > int64(len(m)) {
		return 0, errors.New("write after the end of a packet")
	}
	return copy(m[offset:], p), nil
}

// nowhere takes what is there already.
type nowhere struct{}

func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
