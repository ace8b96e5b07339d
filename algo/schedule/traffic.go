package schedule

import "volley/field"

// Traffic is codewords among processors with several packets each, such as the stripes of a storage group.
type Traffic struct {
	Field           field.Field
	Inputs, Outputs []int // of every processor
	Pieces          int   // that packets are cut into, each of which takes other ways; 0 is 1
	Codewords       []Codeword
}

// A Codeword says what packets are to be: output Sinks[j] is the sum over i of Coefficients[j][i] times input Sources[i].
type Codeword struct {
	Sources, Sinks []Packet
	Coefficients   [][]field.Element
}

// A Packet is a packet of a processor: one of its inputs or outputs.
type Packet struct{ Proc, Index int }
