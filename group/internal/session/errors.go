package session

import (
	"errors"
	"fmt"
	"strings"

	"volley/group/internal/store"
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
	Possible bool // Beyond may recover them
}

// ExitCode returns 2, as for an [*InputError].
func (e *TooManyError) ExitCode() int { return 2 }

func (e *TooManyError) Error() string {
	text := fmt.Sprintf("%d nodes are lost, and the group tolerates the loss of %d: %s", len(e.Nodes), e.Tolerate, strings.Join(e.Nodes, ", "))
	if e.Possible {
		return text + ". Their data can be recovered nevertheless"
	}
	return text
}

// IsInputError reports whether the caller has to change something: the error is an [*InputError] or a [*TooManyError].
func IsInputError(err error) bool {
	return errors.As(err, new(*store.InputError)) || errors.As(err, new(*TooManyError))
}
