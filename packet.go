package volley

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"volley/executor"
	"volley/field"
)

// A Packet is the packet of a processor and where its coded packet goes, each in memory or behind a reader or writer. A
// processor that is no source has no packet, and one that is no sink has no place for a coded packet.
type Packet struct {
	Data   []byte      // the packet in memory, used where it lies and only read
	Source io.ReaderAt // unless nil, reads the packet in place of Data
	Size   int64       // bytes of Source

	// Result gets the coded packet, as long as the longest of all: in the room of *Result or in new memory. That room is
	// no other packet's or coded packet's of the run.
	Result *[]byte

	// Coded, unless nil, takes the coded packet in place of Result, from offset 0 in ascending order.
	Coded io.WriterAt
}

// bytes returns the length of the packet.
func (p *Packet) bytes() int64 {
	if p.Source != nil {
		return p.Size
	}
	return int64(len(p.Data))
}

// validate returns an error unless p does for a processor that is a source or a sink.
func (p *Packet) validate(f field.Field, source, sink bool) error {
	symbol := int64(f.SymbolBytes())
	switch n := p.bytes(); {
	case n < 0 || n%symbol != 0:
		return fmt.Errorf("a packet of %d bytes: symbols of %s have %d bytes", n, f.Name(), symbol)
	case p.Source == nil && p.Size != 0:
		return fmt.Errorf("a packet of %d bytes and no Source: want one, or Data alone", p.Size)
	case !source && n > 0:
		return fmt.Errorf("a packet of %d bytes, and it is no source: want none", n)
	case sink && p.Result == nil && p.Coded == nil:
		return errors.New("no place for its coded packet: want a Result or a Coded")
	}
	return nil
}

// input returns the packet for the executor, which refuses symbols outside the field.
func (p *Packet) input(f field.Field) executor.Input {
	input := executor.Input{Memory: p.Data}
	if p.Source != nil {
		input.Reader = &packetReader{p.Source, p.Size}
	}
	packet := *p
	input.Validate = func(part []byte, offset int64) error { return packet.validateSymbols(f, part, offset) }
	return input
}

// validateSymbols returns a *[SymbolError] where a part of the packet, which begins at an offset, holds a symbol
// outside the field.
func (p *Packet) validateSymbols(f field.Field, part []byte, offset int64) error {
	i := f.FirstInvalid(part)
	if i < 0 {
		return nil
	}
	i *= f.SymbolBytes()
	name := ""
	if named, ok := p.Source.(interface{ Name() string }); ok {
		name = named.Name()
	}
	return &SymbolError{Field: f.Name(), Name: name, Offset: offset + int64(i), Value: field.Symbol(f, part[i:])}
}

// output returns where the executor puts a coded packet of n bytes.
func (p *Packet) output(n int64) executor.Output {
	if p.Coded != nil {
		return executor.Output{Writer: p.Coded}
	}
	if *p.Result == nil || int64(cap(*p.Result)) < n { // a coded packet of no bytes is not nil
		*p.Result = make([]byte, n)
	}
	*p.Result = (*p.Result)[:n]
	return executor.Output{Memory: *p.Result}
}

// apart returns an error where a coded packet of n bytes would lie in the memory of a packet, or of another coded packet:
// a packet would be gone before it was read for the last time. Processors count from first.
func apart(packets []Packet, first int, n int64) error {
	type room struct {
		start, end uintptr
		proc       int
		written    bool
	}
	var rooms []room
	add := func(proc int, memory []byte, written bool) {
		if len(memory) > 0 {
			start := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
			rooms = append(rooms, room{start, start + uintptr(len(memory)), proc, written})
		}
	}
	for i, p := range packets {
		if p.Source == nil {
			add(first+i, p.Data, false)
		}
		if p.Coded == nil && p.Result != nil && int64(cap(*p.Result)) >= n {
			add(first+i, (*p.Result)[:n], true)
		}
	}
	slices.SortFunc(rooms, func(a, b room) int { return cmp.Compare(a.start, b.start) })
	var latest, result room // those that end last
	for _, x := range rooms {
		neighbour := result
		if x.written {
			neighbour = latest
		}
		if x.start < neighbour.end {
			written, kind := x, "packet"
			switch {
			case !x.written:
				written, neighbour = neighbour, x
			case neighbour.written:
				kind = "coded packet"
			}
			return fmt.Errorf("the coded packet of processor %d and the %s of processor %d lie in one memory: give each coded packet memory of its own",
				written.proc, kind, neighbour.proc)
		}
		if x.end > latest.end {
			latest = x
		}
		if x.written && x.end > result.end {
			result = x
		}
	}
	return nil
}

// A SymbolError says that a packet holds a symbol that is no element of the field.
type SymbolError struct {
	Field  string        // its name
	Name   string        // of the file, where the reader of the packet has a method Name
	Offset int64         // of the first such symbol in the packet, in bytes
	Value  field.Element // what stands there
}

func (e *SymbolError) Error() string {
	name := "packet"
	if e.Name != "" {
		name = e.Name
	}
	return fmt.Sprintf("%s: symbol %v at byte %d is outside the field %s", name, e.Value, e.Offset, e.Field)
}

// packetReader reads the first size bytes of src, which are all there.
type packetReader struct {
	src  io.ReaderAt
	size int64
}

func (r *packetReader) ReadAt(p []byte, offset int64) (int, error) {
	var end error
	if available := max(0, r.size-offset); available < int64(len(p)) {
		p, end = p[:available], io.EOF
	}
	if len(p) == 0 {
		return 0, end
	}
	n, err := r.src.ReadAt(p, offset)
	if n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return n, fmt.Errorf("%d of %d bytes: %w", offset+int64(n), r.size, err)
	}
	return n, end
}
