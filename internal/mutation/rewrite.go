package main

import (
	"cmp"
	"go/token"
	"slices"
	"strings"
)

// An edit puts text in place of src[at:end].
type edit struct {
	at, end int
	text    string
	order   int // among those of the same place
}

// The order of edits at one place: what closes an expression comes before what opens
// the next one.
const (
	closing = iota
	opening
	replacing
)

// A rewrite is the edits of a file, which never overlap. Those that open an expression
// are added from the outside in, those that close it from the inside out.
type rewrite struct {
	file  *token.File
	src   []byte
	edits []edit
}

func (r *rewrite) open(at token.Pos, text string)  { r.insert(at, "", text, opening) }
func (r *rewrite) close(at token.Pos, text string) { r.insert(at, "", text, closing) }

func (r *rewrite) replace(at token.Pos, old, text string) { r.insert(at, old, text, replacing) }

func (r *rewrite) insert(at token.Pos, old, text string, order int) {
	offset := r.file.Offset(at)
	r.edits = append(r.edits, edit{offset, offset + len(old), text, order})
}

// text returns the source as it was.
func (r *rewrite) text(from, to token.Pos) string {
	return string(r.src[r.file.Offset(from):r.file.Offset(to)])
}

// apply returns the source with all edits. Lines stay where they are.
func (r *rewrite) apply() string {
	slices.SortStableFunc(r.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	var out strings.Builder
	done := 0
	for _, e := range r.edits {
		out.Write(r.src[done:e.at])
		out.WriteString(e.text)
		done = e.end
	}
	out.Write(r.src[done:])
	return out.String()
}
