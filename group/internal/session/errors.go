package session

import (
	"errors"

	"volley/collective"
	"volley/group/protection"
)

// A LostError says that a snapshot, whose manifest has the root, does not come back for certain. All ranks find it.
type LostError struct {
	Step int64
	Root string
	Err  error
}

func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns why it does not come back.
func (e *LostError) Unwrap() error { return e.Err }

// IsInputError reports whether the caller has to change something: the error is a [*protection.RefusedError], a
// [*protection.TooManyError] or a [*collective.DisagreementError].
func IsInputError(err error) bool {
	return errors.As(err, new(*protection.RefusedError)) || errors.As(err, new(*protection.TooManyError)) || errors.As(err, new(*collective.DisagreementError))
}
