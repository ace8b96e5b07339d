package files

import "fmt"

// A FormatError says what is wrong with a text, and where.
type FormatError struct {
	Line   int // from 1; 0 where it is about no line
	Reason string
}

func (e *FormatError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}
