package store

import "fmt"

// A Way names the option that lets a verb do what it has refused.
type Way string

// The ways on.
const (
	WayBelieve       Way = "Believe"
	WayForce         Way = "Force"
	WayAcceptDeleted Way = "AcceptDeleted"
	WayAcceptChanged Way = "AcceptChanged"
	WayGiveUp        Way = "GiveUp" // Force of Unprotect
	WayTolerate      Way = "Tolerate"
	WayKey           Way = "Key" // or NoKey
	WayFiles         Way = "Files"
	WaySets          Way = "Sets" // none of this package: package sets has one for each group
)

// An InputError says what the caller has to change: directories, options, or too much that is lost.
type InputError struct {
	Err error
	Way Way // the option with which the verb goes on; "": there is none
}

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *InputError) Unwrap() error { return e.Err }

// ExitCode returns 2, that of bad input.
func (e *InputError) ExitCode() int { return 2 }

func Inputf(format string, args ...any) error {
	return &InputError{Err: fmt.Errorf(format, args...)}
}

// A WrongError says that what was recovered is not what was protected, or parity does not fit. Nothing of it is kept.
type WrongError struct{ What string }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *WrongError) ExitCode() int { return 3 }

func (e *WrongError) Error() string { return e.What }
