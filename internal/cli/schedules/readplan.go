package schedules

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/selection"
	"volley/plan"
)

// mostPlan is the bytes that the file of a plan may have.
const mostPlan = 1 << 30

// readPlan reads the file of a plan. The error wraps a *[plan.ValidationError] where the plan breaks a rule.
func readPlan(s *session.Session, name string) (*plan.Materialized, error) {
	data, err := readAtMost(s, name, mostPlan)
	if err != nil {
		return nil, exit.Usagef("cannot read the plan: %w", err)
	}
	p, err := plan.Decode(bytes.NewReader(data))
	if err == nil {
		return p, nil
	}
	if wrong := new(plan.DecodeError); errors.As(err, &wrong) {
		name, err = fmt.Sprintf("%s, line %d", name, wrong.Line), wrong.Reason
	}
	if errors.As(err, new(*plan.ValidationError)) {
		return nil, exit.AsUsage(&planError{name, err})
	}
	return nil, exit.Usagef("%w: want a file as volley plan -o plan.json writes it", &planError{name, err})
}

// A planError says what is wrong with a plan, and in which file.
type planError struct {
	where string
	err   error
}

func (e *planError) Error() string {
	return fmt.Sprintf("cannot use the plan %s: %s", e.where, selection.Message(e.err))
}

func (e *planError) Unwrap() error { return e.err }

// readAtMost reads a file, which may be a pipe. It returns an error where that has more bytes.
func readAtMost(s *session.Session, name string, most int64) ([]byte, error) {
	f, err := s.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return data, err
}
