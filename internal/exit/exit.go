// Package exit has the exit codes of the command line, and errors that have one.
package exit

import (
	"errors"
	"fmt"

	"volley"
)

// Exit codes.
const (
	OK          = 0
	Failed      = 1   // the run failed
	Usage       = 2   // usage or bad input
	Wrong       = 3   // the result failed verification
	Absent      = 5   // nothing is protected yet
	Interrupted = 130 // Ctrl-C
)

var (
	// ErrInterrupted is the cause of a context that Ctrl-C has ended.
	ErrInterrupted = WithCode(errors.New("interrupted"), Interrupted)

	// ErrSaid is that of a run that has said all about it.
	ErrSaid = errors.New("")
)

// Code returns that of an error: its own, where it has a method for that.
func Code(err error) int {
	var coder interface{ ExitCode() int }
	switch {
	case err == nil:
		return OK
	case errors.As(err, &coder):
		return coder.ExitCode()
	case volley.IsInputError(err):
		return Usage
	}
	return Failed
}

type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

func (e coded) ExitCode() int { return e.code }

// WithCode returns an error that has the code.
func WithCode(err error, code int) error { return coded{err, code} }

// AsUsage marks err, unless nil or with an exit code of its own, as the caller's to mend.
func AsUsage(err error) error {
	var coder interface{ ExitCode() int }
	if err == nil || errors.As(err, &coder) {
		return err
	}
	return WithCode(err, Usage)
}

// Usagef is fmt.Errorf for errors that are the caller's to mend.
func Usagef(format string, args ...any) error { return AsUsage(fmt.Errorf(format, args...)) }

// Wrongf is fmt.Errorf for what is not what it has to be.
func Wrongf(format string, args ...any) error { return WithCode(fmt.Errorf(format, args...), Wrong) }
