package main

import (
	"fmt"
	"strings"
)

// A Point is a place in the source with one way to change it.
type Point struct {
	ID       uint32 `json:"id"`
	Package  string `json:"package"`
	File     string `json:"file"` // from the module's root
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Function string `json:"function"` // "Type.Method" for a method
	Operator string `json:"operator"`
	Original string `json:"original"`
	Mutated  string `json:"mutated"`
	N        int    `json:"n"`   // from 1: which of the same changes in the function
	Sum      string `json:"sum"` // of the file's contents
}

// Change returns what the point does, as explained.txt says it.
func (p *Point) Change() string {
	s := p.Original + " → " + p.Mutated
	if p.N > 1 {
		s += fmt.Sprintf(" #%d", p.N)
	}
	return s
}

// Key names the point across runs, whatever its line.
func (p *Point) Key() string {
	return p.File + " | " + p.Function + " | " + p.Change()
}

// removed is what a statement is changed to.
const removed = "(removed)"

// clip returns source on one line, and not all of it if it is long.
func clip(src string) string {
	s := []rune(strings.Join(strings.Fields(src), " "))
	if len(s) > 60 {
		return string(s[:40]) + " … " + string(s[len(s)-17:])
	}
	return string(s)
}
