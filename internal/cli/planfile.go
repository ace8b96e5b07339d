package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"volley/internal/selection"
	"volley/plan"
)

// readPlan reads the file of a plan. The error is the caller's to mend, and wraps a
// *[plan.ValidationError] where the plan breaks a rule.
func readPlan(name string) (*plan.Materialized, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("cannot read the plan: %w", err)
	}
	p, err := plan.Decode(bytes.NewReader(data))
	if err == nil {
		return p, nil
	}
	syntax, kind := new(json.SyntaxError), new(json.UnmarshalTypeError)
	offset := int64(0)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	case errors.As(err, new(*plan.ValidationError)):
		return nil, usage(&planError{name, err})
	}
	if offset > 0 {
		name = fmt.Sprintf("%s, line %d", name, 1+bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")))
	}
	return nil, usagef("%w: want a file as volley plan --format json writes it", &planError{name, err})
}

// A planError says what is wrong with a plan, and in which file.
type planError struct {
	where string
	err   error
}

func (e *planError) Error() string {
	return fmt.Sprintf("cannot use the plan %s: %s", e.where, strings.TrimPrefix(selection.Message(e.err), "decode: "))
}

func (e *planError) Unwrap() error { return e.err }
