package cli

import (
	"errors"
	"fmt"
	"strings"

	"volley"
	"volley/algo"
	"volley/coded"
	"volley/engine"
	"volley/executor"
	"volley/internal/selection"
	"volley/transport"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // the run failed
	exitUsage       = 2   // usage or bad input
	exitWrong       = 3   // the result failed verification
	exitInterrupted = 130 // Ctrl-C
)

// exitCode returns that of an error: its own, where it has a method for that.
func exitCode(err error) int {
	var own interface{ ExitCode() int }
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		return own.ExitCode()
	case volley.IsInputError(err):
		return exitUsage
	}
	return exitFailed
}

// A usageError marks an error as the caller's to mend.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// ExitCode is exitUsage, unless the error inside has an exit code of its own.
func (e usageError) ExitCode() int {
	var own interface{ ExitCode() int }
	if errors.As(e.error, &own) {
		return own.ExitCode()
	}
	return exitUsage
}

// usage marks err, unless nil, as the caller's to mend.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// usagef is fmt.Errorf for errors that are the caller's to mend.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// A wrongResult says that what a verb has looked at or made is not what it has to be.
type wrongResult struct{ error }

// ExitCode is exitWrong.
func (wrongResult) ExitCode() int { return exitWrong }

// wrongf is fmt.Errorf for a *wrongResult.
func wrongf(format string, args ...any) error { return wrongResult{fmt.Errorf(format, args...)} }

// errInterrupted is the cause of a context that Ctrl-C has ended.
var errInterrupted error = interruptedError{}

type interruptedError struct{}

func (interruptedError) Error() string { return "interrupted" }

// ExitCode is exitInterrupted.
func (interruptedError) ExitCode() int { return exitInterrupted }

// message returns what to print of an error, in one line: the failure itself,
// without who heard of it, and that of one processor where several failed.
func message(err error) string {
	symbol, changed, aborted := new(volley.SymbolError), new(coded.ChangedError), new(transport.AbortError)
	switch {
	case errors.Is(err, errInterrupted):
		return errInterrupted.Error()
	case errors.As(err, &symbol): // it names the file, which is more than the processor
		return symbol.Error()
	case errors.As(err, &changed):
		return changed.Error()
	case errors.As(err, &aborted):
		err = aborted.Cause
	}
	if flag := flagFor(err); flag != "" {
		return selection.Message(err) + "; " + flag
	}
	return selection.Message(err)
}

// flagFor says by which flag an error of the library can be mended, which knows none; ""
// where there is none.
func flagFor(err error) string {
	limit := new(algo.LimitError)
	switch {
	case errors.As(err, new(*volley.MemoryError)):
		return "--memory gives more"
	case errors.Is(err, engine.ErrOpen):
		return "--secret FILE or " + engine.SecretVariable + " gives a secret, and --bind 127.0.0.1 needs none"
	case errors.Is(err, executor.ErrTimeout):
		return "--timeout waits longer"
	case errors.As(err, &limit) && limit.Whole:
		return "leave --whole out"
	case errors.As(err, &limit):
		var flags []string
		if limit.Limits.Rounds.Over() >= 0 {
			flags = append(flags, "--rounds-over")
		}
		if limit.Limits.Memory > 0 {
			flags = append(flags, "--max-memory")
		}
		if limit.Limits.Compute > 0 {
			flags = append(flags, "--max-compute")
		}
		return "allow more with " + strings.Join(flags, " or ")
	}
	return ""
}
