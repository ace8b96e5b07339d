package executor

import (
	"fmt"

	"volley/trace"
)

// An output is what is written for one segment.
type output struct {
	segment
	elements [][]byte // memory of computed elements that are outputs, else nil
	results  [][]byte // without padding
	written  []bool   // the result was computed where it is to lie
	own      [][]byte // buffers for elements, nil for what lies in memory
}

// locate finds out where the outputs of a segment are to lie.
func (l *lane) locate(out *output) {
	for i, o := range l.x.outputOf {
		if o < 0 {
			continue
		}
		begin, length := l.piece(o, out.segment)
		to, view := l.Outputs[o/l.pieces], []byte(nil)
		if to.Writer == nil {
			view = viewOf(to.Memory, out.offset+int64(begin), out.element, length)
		}
		if out.written[o] = view != nil; view == nil {
			view = atLeast(&out.own[i], out.element)
		}
		out.elements[i] = view
	}
}

// write writes the outputs of a segment that do not lie where they belong, in some row of
// the trace.
func (l *lane) write(out *output, row trace.Row) error {
	began := l.Trace.Now()
	defer func() { l.done(trace.Write, row, began, out.segment, len(l.Outputs)) }()
	for o, data := range out.results {
		if out.written[o] {
			continue
		}
		begin, _ := l.piece(o, out.segment)
		to, offset := l.Outputs[o/l.pieces], out.offset+int64(begin)
		if to.Writer == nil {
			copy(to.Memory[offset:], data)
		} else if _, err := to.Writer.WriteAt(data, offset); err != nil {
			return l.writeError(o, err)
		}
	}
	return nil
}

// writeError says that output o, an element, could not be written.
func (l *lane) writeError(o int, err error) error {
	q := l.x.outputs[o].proc
	for _, before := range l.x.processors[:q] {
		o -= before.outputs
	}
	return of(l.x.first+q, fmt.Errorf("write output %d: %w", o/l.pieces, err))
}

// A view is what the observer is to see of one processor, and what it says.
type view struct {
	inputs, outputs [][]byte
	err             error
}

// observe shows the segment to the observer, if there is one.
func (l *lane) observe(in *input, out *output) error {
	if l.Observe == nil {
		return nil
	}
	began := l.Trace.Now()
	inputs, outputs := in.data, out.results
	for q, proc := range l.x.processors {
		l.views[q] = view{inputs: inputs[:proc.inputs], outputs: outputs[:proc.outputs]}
		inputs, outputs = inputs[proc.inputs:], outputs[proc.outputs:]
	}
	l.pool.share(len(l.views), l.observer)
	l.done(trace.Observe, l.row(), began, in.segment, len(l.Inputs)+len(l.Outputs))
	for q := range l.views {
		if err := l.views[q].err; err != nil {
			return of(l.x.first+q, err)
		}
	}
	return nil
}

func (l *lane) observeOne(_, q int) {
	v := &l.views[q]
	v.err = l.Observe(l.x.first+q, v.inputs, v.outputs)
}
