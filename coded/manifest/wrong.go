package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"volley/files"
)

// wrong says of an error of encoding/json in which line it is, and without Go's types what is wrong.
func wrong(text []byte, err error) error {
	syntax, kind := new(json.SyntaxError), new(json.UnmarshalTypeError)
	reason := strings.TrimPrefix(err.Error(), "json: ")
	end := int64(0)
	switch {
	case errors.As(err, &syntax):
		end = syntax.Offset
	case errors.As(err, &kind) && kind.Field == "":
		end, reason = kind.Offset, "want an object"
	case errors.As(err, &kind):
		end, reason = kind.Offset, fmt.Sprintf("%s: %s does not fit there", kind.Field, kind.Value)
	default:
		return &files.FormatError{Reason: reason}
	}
	head := text[:end]
	if end == int64(len(text)) {
		head = bytes.TrimRight(head, " \t\r\n") // white space at the end is no line
	}
	return &files.FormatError{Line: 1 + bytes.Count(head, []byte("\n")), Reason: reason}
}
