// Package located says in which line JSON is wrong that came from elsewhere.
package located

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
