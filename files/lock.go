package files

import (
	"fmt"
	"time"

	"volley/internal/printable"
)

// A Holder is who has a lock.
type Holder struct {
	PID    int       `json:"pid"`
	User   string    `json:"user,omitempty"`
	Host   string    `json:"host"`
	Verb   string    `json:"verb"`
	Since  time.Time `json:"since"`
	Origin string    `json:"from,omitempty"` // the host where the run was started; "": there
	Run    string    `json:"run"`            // a name that the processes of one run share
	Rank   int       `json:"rank"`

	Stopped bool `json:"stopped,omitempty"` // it is on this host, and does nothing until it is continued; nobody writes that
}

// String says who uses a directory, and since when.
func (h Holder) String() string {
	if h.PID == 0 {
		return "another run of volley uses it"
	}
	text := fmt.Sprintf("volley %s has used it since %s (process %d on %s", h.Verb, printable.Time(h.Since), h.PID, h.Host)
	if h.User != "" {
		text += ", user " + h.User
	}
	if h.Origin != "" && h.Origin != h.Host {
		text += ", started from " + h.Origin
	}
	if h.Stopped {
		text += ", stopped"
	}
	return text + ")"
}

// Matches reports whether both are one rank of one run.
func (h Holder) Matches(o Holder) bool { return h.Run != "" && h.Run == o.Run && h.Rank == o.Rank }

// A BusyError says that another run has a lock.
type BusyError struct {
	Path   string // of the directory that it uses
	Holder Holder // zero where that is not known
}

func (e *BusyError) Error() string {
	h := e.Holder
	advice := "wait until that has ended"
	switch {
	case h.PID == 0:
	case h.Stopped:
		advice = fmt.Sprintf("on %s, kill -CONT %d has it go on, and kill -KILL %d ends it", h.Host, h.PID, h.PID)
	default:
		advice += fmt.Sprintf(", or end it: kill %d on %s", h.PID, h.Host)
	}
	return fmt.Sprintf("%s is busy: %v; %s", e.Path, h, advice)
}

// ExitCode is that of the command line where a run has failed: nothing is wrong with what was asked for.
func (e *BusyError) ExitCode() int { return 1 }

// A SharedError says that two ranks of one run have a directory.
type SharedError struct {
	Path  string
	Ranks [2]int
}

func (e *SharedError) Error() string {
	return fmt.Sprintf("ranks %d and %d have one directory, %s: give each its own", e.Ranks[0], e.Ranks[1], e.Path)
}

// SeenBy returns the error for a holder that wants the lock of a busy directory. It is a [*SharedError] where another rank
// of its run has it. Where the holder itself is named, it has given the lock back, and another run has it unnamed yet.
func (e *BusyError) SeenBy(mine Holder) error {
	switch {
	case e.Holder.Matches(mine):
		return &BusyError{Path: e.Path}
	case mine.Run != "" && e.Holder.Run == mine.Run:
		return &SharedError{e.Path, [2]int{min(mine.Rank, e.Holder.Rank), max(mine.Rank, e.Holder.Rank)}}
	}
	return e
}
