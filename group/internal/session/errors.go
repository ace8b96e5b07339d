package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"volley/collective"
	"volley/group/internal/store"
	"volley/internal/printable"
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

// A TooManyError says that more nodes are lost than the group tolerates. Nothing was written.
type TooManyError struct {
	Nodes    []string // directories
	Tolerate int
}

// ExitCode returns 2, as for an [*InputError].
func (e *TooManyError) ExitCode() int { return 2 }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d nodes are lost, and the group tolerates the loss of %d: %s", len(e.Nodes), e.Tolerate, strings.Join(e.Nodes, ", "))
}

// An UnreachedError says that a verb which needs all nodes cannot reach some. Nothing was written.
type UnreachedError struct {
	Nodes []string  // directories
	Why   string    // of the first one
	Since time.Time // what has changed at the others is not protected; zero: nothing is
}

func (e *UnreachedError) Error() string {
	text := fmt.Sprintf("%s cannot be reached, and all nodes are needed: %s", strings.Join(e.Nodes, ", "), e.Why)
	if !e.Since.IsZero() {
		text += fmt.Sprintf(". What has changed at the others since %s is not protected", printable.Time(e.Since))
	}
	return text + ". Run again when it can be"
}

// IsInputError reports whether the caller has to change something: the error is an [*InputError], a [*TooManyError] or a
// *collective.DisagreementError.
func IsInputError(err error) bool {
	return errors.As(err, new(*store.InputError)) || errors.As(err, new(*TooManyError)) || errors.As(err, new(*collective.DisagreementError))
}
