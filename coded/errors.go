package coded

import (
	"errors"
	"fmt"
	"io/fs"

	"volley/internal/disk"
	"volley/internal/printable"
)

// An InputError says that a file, an option or a directory cannot be used, or too few packets are there to decode.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the error that is the caller's to mend.
func (e *InputError) Unwrap() error { return e.Err }

// ExitCode returns 2, that of bad input, unless Err has one of its own.
func (e *InputError) ExitCode() int {
	var coder interface{ ExitCode() int }
	if errors.As(e.Err, &coder) {
		return coder.ExitCode()
	}
	return 2
}

// input marks err, unless nil, as the caller's to mend.
func input(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{err}
}

func inputf(format string, args ...any) error { return input(fmt.Errorf(format, args...)) }

// A ChangedError says that an input changed while it was read.
type ChangedError struct {
	Name   string // of the file
	Change string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("packet %s: %s: it changed while it was read; let nothing write to it until the run has ended", e.Name, e.Change)
}

// A WrongError says that inputs were decoded wrong.
type WrongError struct {
	Names  []string // of the inputs
	Reason string
}

func (e *WrongError) Error() string {
	return fmt.Sprintf("%s: what is decoded is not what was encoded: %s. The files decoded from are as the manifest has them, so what it says of field, matrix or inputs is wrong",
		printable.List(e.Names), e.Reason)
}

// ExitCode returns 3, that of a wrong result.
func (e *WrongError) ExitCode() int { return 3 }

// reason says in few words why a file cannot be used.
func reason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return missing
	}
	return disk.Reason(err)
}

const missing = "missing"
