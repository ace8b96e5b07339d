// Package executor runs the programs of a plan over a transport, on packets of any
// length.
//
// It knows no algorithm: a program says what to combine, send and receive. [Prepare] makes
// an [Executable] of the programs of all processors at one rank; [Run] runs it. Long packets
// are cut into segments, and the programs run once for each, so that the memory of a
// processor stays within a bound.
//
// A pipeline runs segments one after the other: it reads a segment, computes and exchanges its messages, and writes it.
// Two pipelines take turns, so that one computes while the other reads, writes or waits for messages. [Traffic] counts
// what processors send each other, also within a rank.
//
// A plan's rounds are an order, not barriers. Package compile makes them steps: a step computes and sends the messages
// that need the same. It runs as soon as nothing that it needs is missing, a few rounds ahead at most.
//
// A packet so passes [Input], the segment's memory, the coder, the mail at one rank and at another one, the coder and
// the segment there, and [Output].
package executor

import (
	"context"
	"io"
	"time"

	"volley/plan"
	"volley/transport"
)

// A Job is what one rank is to run. Bytes, Segment, Align, Ahead and the length of Header
// are the same at every rank, and so is the plan of Executable.
type Job struct {
	Executable *Executable // of this rank

	// Bytes is the length of every packet: a multiple of the symbol size.
	Bytes int64

	// Segment is how many bytes of every packet are run at a time: a multiple of
	// the symbol size, and more than 0; see [SegmentBytes]. Where the plan cuts
	// packets into pieces, it cuts each segment into as many, at multiples of Align
	// bytes; 0 is the symbol size.
	Segment int64
	Align   int64

	// Ahead lets two segments be under way: one is computed while the other is read,
	// written or waits for messages. It takes memory for two segments of everything; at one
	// rank that is one more of each input and output. The messages of every other segment
	// then have tags of rounds that follow those of the plan, twice as many together: [transport.Limits]
	// say whether there is room.
	Ahead bool

	// Inputs hold the packets of the processors of the rank, one after the other, each
	// of which is one input of its program, or as many as there are pieces. A packet that
	// ends before Bytes is padded with zeros.
	Inputs []Input

	// Outputs receive the results in the same order, segment by segment in ascending
	// order, while inputs are read.
	Outputs []Output

	// Header goes in front of the first message to each rank, and Accept looks
	// at the ones that arrive. No header is sent when it is empty, and Accept may
	// then be nil.
	Header []byte
	Accept func(rank int, header []byte) error

	// Observe, unless nil, sees every segment's inputs and outputs of a processor, piece
	// by piece, before they are written, in ascending order. It may not keep or change
	// them. It is called for several processors at a time.
	Observe func(proc int, inputs, outputs [][]byte) error

	// ObserveAll, unless nil, does so at the only rank of a group: it sees the inputs and outputs of all processors,
	// block by block, by the goroutine that has just computed the block. It is called for several blocks at a time, in
	// any order. Where packets are cut into pieces, it sees the first piece of all, then the next.
	ObserveAll func(inputs, outputs [][]byte) error

	// Timeout bounds the wait for one message to come, or to be taken; 0 means
	// no bound.
	Timeout time.Duration
}

// An Input is a packet to read, in memory or behind a reader.
type Input struct {
	Memory []byte      // the packet, which is used where it lies
	Reader io.ReaderAt // unless nil, reads the packet in place of Memory

	// Validate, unless nil, sees every part of the packet before it is used. An error ends
	// the run.
	Validate func(part []byte, offset int64) error
}

// An Output is where a result goes, to memory or to a writer.
type Output struct {
	Memory []byte      // [Job].Bytes or more: the result is computed where it is to lie
	Writer io.WriterAt // unless nil, takes the result in place of Memory
}

// Traffic counts what one processor did. A message that goes out in segments
// counts once.
type Traffic struct {
	Rounds       []plan.RoundTraffic // what it sent, by round
	Bytes        int64               // sent, without headers
	HeaderBytes  int64               // sent in headers
	MultiplyAdds int                 // per symbol
	Segments     int
}

// ErrTimeout is wrapped by the error of a wait that took longer than
// [Job].Timeout.
var ErrTimeout = transport.ErrTimeout

// Run runs the programs of the processors at the transport's rank once, and returns what they sent, in order. The
// errors are those of [Bind] and [Bound.Run].
func Run(ctx context.Context, t transport.Transport, job Job) ([]Traffic, error) {
	b, err := Bind(ctx, t, job)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := b.Run(); err != nil {
		return nil, err
	}
	return b.Traffic(), nil
}
