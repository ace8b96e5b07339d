package group

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"volley"
	"volley/internal/disk"
	"volley/sim"
)

// Options are those of all verbs. All ranks give the same, but for Timeout.
type Options struct {
	Memory  int64         // bytes of packets that a node holds at a time; 0: volley.DefaultMemory
	Timeout time.Duration // without a message until a run fails; 0: never
	Ports   int           // messages that a node sends, and receives, at a time; 0: 1
	Beta    time.Duration // β of the links; 0: volley.DefaultBeta
	Tau     sim.PerByte   // τ; 0: volley.DefaultTau

	// Believe names a node, by its directory or number, whose newest generation is taken
	// for the one in force, where it cannot be told.
	Believe string

	// Members names nodes, by directory or number, whose directories are theirs although
	// nothing in them shows it.
	Members []string

	// Key makes manifests, and tells those that were made with it: others do not count. It is
	// the same at all ranks; [ReadKey] reads it. A group that was protected with a key is
	// refused without it, unless NoKey is set: then nothing is checked, and Protect makes
	// manifests without a key.
	Key   []byte
	NoKey bool

	disk disk.Disk // nil: disk.OS
}

func (o *Options) defaults() {
	if o.Memory == 0 {
		o.Memory = volley.DefaultMemory
	}
	if o.Ports == 0 {
		o.Ports = volley.DefaultPorts
	}
	if o.Beta == 0 {
		o.Beta = volley.DefaultBeta
	}
	if o.Tau == 0 {
		o.Tau = volley.DefaultTau
	}
	if o.disk == nil {
		o.disk = disk.OS
	}
}

// A Way is an option that lets a verb do what it has refused.
type Way string

// The ways on.
const (
	WayBelieve      Way = "Believe"
	WayMembers      Way = "Members"
	WayForce        Way = "Force"
	WayAllowDeleted Way = "AllowDeleted"
	WayBeyond       Way = "Beyond"
	WayKey          Way = "Key" // or NoKey
)

// An InputError is the caller's to mend: directories or numbers that will not do, or too
// much that is lost.
type InputError struct {
	error
	Way Way // the option with which the verb does it nevertheless; "" where there is none
}

// Unwrap returns the error itself.
func (e *InputError) Unwrap() error { return e.error }

func inputf(format string, args ...any) error {
	return &InputError{error: fmt.Errorf(format, args...)}
}

// IsInputError reports whether an error is the caller's to mend: an [*InputError] or a
// [*TooManyError].
func IsInputError(err error) bool {
	return errors.As(err, new(*InputError)) || errors.As(err, new(*TooManyError))
}

// A TooManyError says that more nodes are lost than the group tolerates. Nothing was written.
type TooManyError struct {
	Nodes    []string // directories
	Tolerate int
	Possible bool // the parity would replace them nevertheless
}

func (e *TooManyError) Error() string {
	text := fmt.Sprintf("%d nodes are lost, and the group tolerates the loss of %d: %s", len(e.Nodes), e.Tolerate, strings.Join(e.Nodes, ", "))
	if e.Possible {
		return text + ". Their data can be recovered nevertheless"
	}
	return text
}

// A WrongError says that something that was recovered is not what was protected. Nothing of
// it has been kept.
type WrongError struct{ what string }

// ExitCode returns the exit code of the command line where a result is wrong.
func (e *WrongError) ExitCode() int { return 3 }

func (e *WrongError) Error() string { return e.what }
