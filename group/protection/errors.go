package protection

import (
	"fmt"
	"strings"
	"time"

	"volley/internal/printable"
)

// An Option names the option that lets a verb do what it has refused.
type Option string

// The options.
const (
	OptionBelieve       Option = "Believe"
	OptionForce         Option = "Force"
	OptionAcceptDeleted Option = "AcceptDeleted"
	OptionAcceptChanged Option = "AcceptChanged"
	OptionGiveUp        Option = "GiveUp" // Force of Unprotect
	OptionTolerate      Option = "Tolerate"
	OptionKey           Option = "Key" // or NoKey
	OptionFiles         Option = "Files"
	OptionSets          Option = "Sets" // none of this package: package sets has one for each group
)

// A RefusedError says what the caller has to change: directories, options, or too much that is lost.
type RefusedError struct {
	Err    error
	Option Option // the option with which the verb goes on; "": there is none
}

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *RefusedError) Unwrap() error { return e.Err }

// ExitCode returns 2, that of bad input.
func (e *RefusedError) ExitCode() int { return 2 }

// A CorruptError says that what was recovered is not what was protected, or parity does not fit. Nothing of it is kept.
type CorruptError struct{ Reason string }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *CorruptError) ExitCode() int { return 3 }

func (e *CorruptError) Error() string { return e.Reason }

// An UnclearError says that nodes contradict each other: nobody can tell which generation is in force.
type UnclearError struct{ Err error }

func (e *UnclearError) Error() string { return e.Err.Error() }

// A NoneError says that nothing of Volley's is at any node, and that all could be read: there is nothing to recover, as
// before the first run that protects. What is there and cannot be used is another error.
type NoneError struct{ Err error }

func (e *NoneError) Error() string { return e.Err.Error() }

// Unwrap returns a [*RefusedError].
func (e *NoneError) Unwrap() error { return e.Err }

// ExitCode returns the exit code of the command line where nothing is there yet.
func (e *NoneError) ExitCode() int { return 5 }

// A TooManyError says that more nodes are lost than the group tolerates. Nothing was written.
type TooManyError struct {
	Nodes    []string // directories
	Tolerate int
}

// ExitCode returns 2, as for an [*RefusedError].
func (e *TooManyError) ExitCode() int { return 2 }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d nodes are lost, and the group tolerates the loss of %d: %s", len(e.Nodes), e.Tolerate, strings.Join(e.Nodes, ", "))
}

// An UnreachableError says that a verb which needs all nodes cannot reach some. Nothing was written.
type UnreachableError struct {
	Nodes  []string  // directories
	Reason string    // of the first one
	Since  time.Time // what has changed at the others is not protected; zero: nothing is
}

func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("%s cannot be reached, and all nodes are needed: %s", strings.Join(e.Nodes, ", "), e.Reason)
	if !e.Since.IsZero() {
		text += fmt.Sprintf(". What has changed at the others since %s is not protected", printable.Time(e.Since))
	}
	return text + ". Run again when it can be"
}

// An IncompleteError says that not everything was brought back.
type IncompleteError struct {
	Reasons []string // was not, and why
}

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *IncompleteError) ExitCode() int { return 3 }

func (e *IncompleteError) Error() string {
	return "not everything is recovered: " + strings.Join(e.Reasons, "; ")
}
