// Package located reads JSON that came from elsewhere, and says in which line it is wrong.
package located

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"volley/files"
)

// lineOf returns the line of data at which an error of encoding/json is, 0 where that does not tell.
func lineOf(data []byte, err error) int {
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return lineAt(data, syntax.Offset)
	}
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		return lineAt(data, kind.Offset)
	}
	return 0
}

// lineAt returns the line of an offset, 0 where it is outside.
func lineAt(data []byte, offset int64) int {
	if offset < 0 || offset > int64(len(data)) {
		return 0
	}
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// Read returns a JSON text of at most so many bytes. The error is an *[files.FormatError] or that of r.
func Read(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, &files.FormatError{Line: lineAt(text, limit), Reason: fmt.Sprintf("longer than %d bytes", limit)}
	}
	if err := json.Unmarshal(text, new(nothing)); err != nil {
		return nil, Wrong(text, err)
	}
	return text, nil
}

// nothing is what a text is read into to find out whether it is JSON.
type nothing struct{}

func (*nothing) UnmarshalJSON([]byte) error { return nil }

// Wrong returns an error of encoding/json as an *[files.FormatError].
func Wrong(text []byte, err error) error {
	if wrong := new(json.SyntaxError); errors.As(err, &wrong) && wrong.Offset == int64(len(text)) {
		text = bytes.TrimRight(text, " \t\r\n") // white space at the end is no line
		return &files.FormatError{Line: lineAt(text, int64(len(text))), Reason: reason(err)}
	}
	return &files.FormatError{Line: lineOf(text, err), Reason: reason(err)}
}

// goNames are the names of embedded structs in the path of a field: JSON has none.
var goNames = regexp.MustCompile(`\b[A-Z]\w*\.`)

// reason says without Go's types what is wrong.
func reason(err error) string {
	kind := new(json.UnmarshalTypeError)
	switch {
	case !errors.As(err, &kind):
		return strings.TrimPrefix(err.Error(), "json: ")
	case kind.Field == "":
		return "want an object"
	}
	return fmt.Sprintf("%s: %s does not fit there", goNames.ReplaceAllString(kind.Field, ""), kind.Value)
}

// List calls read before each element of the list that a text has under a key, up to the first error: read takes the
// element from the decoder. The text is an object that [Read] has returned. The error is an *[files.FormatError].
func List(text []byte, key string, read func(d *json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	next := func() json.Token {
		t, _ := d.Token() // is there, as the text is JSON
		return t
	}
	if next() != json.Delim('{') {
		return &files.FormatError{Line: 1, Reason: "want an object"}
	}
	for d.More() {
		if next() != key {
			if err := d.Decode(new(nothing)); err != nil {
				return Wrong(text, err)
			}
			continue
		}
		if next() != json.Delim('[') {
			return &files.FormatError{Line: lineAt(text, d.InputOffset()), Reason: key + ": want a list"}
		}
		for n := 0; d.More(); n++ {
			rest := text[d.InputOffset():]
			begin := len(text) - len(bytes.TrimLeft(rest, ", \t\r\n"))
			if err := read(d); err != nil {
				return &files.FormatError{Line: lineAt(text, int64(begin)), Reason: fmt.Sprintf("%s[%d]: %s", key, n, reason(err))}
			}
		}
		return nil
	}
	return &files.FormatError{Line: 1, Reason: key + " is missing"}
}
