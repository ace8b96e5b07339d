package session

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"

	"volley"
	"volley/collective"
	"volley/group/internal/judge"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/sim"
)

// A Setup is what a session begins with. Tests give more than the settings.
type Setup struct {
	protection.Settings
	Disk     disk.Disk // nil: disk.OS
	InTurn   bool      // a rank calls the disk for one node after the other, and reads nothing ahead
	HostName string    // the host that this rank is on; "": the one that runs this process
	Seated   bool      // roots are the seats of a snapshot: none of them has spares
}

// Host returns the host that this rank is on.
func (s *Session) Host() disk.HostID {
	if s.HostName != "" {
		return disk.HostID{Name: s.HostName}
	}
	return disk.ThisHost()
}

// Defaulted returns the options with defaults for those that are zero.
func Defaulted(o Setup) Setup {
	if o.Memory == 0 {
		o.Memory = volley.DefaultMemory
	}
	if o.Network == (sim.Network{}) {
		o.Network = volley.DefaultNetwork()
	}
	if o.Disk == nil {
		o.Disk = disk.OS
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Tell tells of more bytes that are done, and of more that have to be.
func (s *Session) Tell(processed, added int64) {
	if s.Progress != nil {
		s.Progress(processed, added)
	}
}

// Trust says which manifests count.
func (s *Session) Trust() judge.Trust {
	return judge.Trust{Key: s.Key, NoKey: s.NoKey, Believe: s.Believe}
}

// Read tells of so many bytes that are read.
func (s *Session) Read(n int64) { s.Tell(n, 0) }

// Bytes of a key.
const (
	leastKey = 16
	MostKey  = 4096
)

// ReadKey returns the key in a file, which is all of it but for a line break at the end. Nobody but its owner, the caller or
// root, may be able to read or write it.
func ReadKey(path string) ([]byte, error) {
	text, err := disk.ReadSecret(path, MostKey+2)
	if err != nil {
		return nil, store.Inputf("cannot read the key: %w. A new one: (umask 077; head -c 32 /dev/urandom | base64 > FILE)", err)
	}
	key := bytes.TrimSuffix(text, []byte("\n"))
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func checkKey(key []byte) error {
	if len(key) < leastKey || len(key) > MostKey {
		return store.Inputf("a key of %d bytes or more than %d: want %d to %d; a new one: (umask 077; head -c 32 /dev/urandom | base64 > FILE)", min(len(key), MostKey), MostKey, leastKey, MostKey)
	}
	return nil
}

// A LostError says that a snapshot, whose manifest has the root, does not come back for certain. All ranks find it.
type LostError struct {
	Step   int64
	Root   string
	Reason string
}

func (e *LostError) Error() string { return e.Reason }

// A Seat is where a node of a snapshot lies.
type Seat struct {
	Node  int    // of the run, whose root it is or lies in
	Spare string // its name there; "": it is the root
	Dir   string // what the caller calls it
}

// A SeatsError says that the nodes of a snapshot lie elsewhere than those of the run: at the seats, by node. All ranks find it.
type SeatsError struct {
	Step  int64
	Seats []Seat
	Ranks []int         // that have them
	Nodes []*store.Node // of the run, at this rank
}

func (e *SeatsError) Error() string { return "the nodes of the snapshot lie elsewhere" }

// IsInputError reports whether the caller has to change something: the error is a [*protection.RefusedError], a
// [*protection.TooManyError] or a [*collective.DisagreementError].
func IsInputError(err error) bool {
	return errors.As(err, new(*protection.RefusedError)) || errors.As(err, new(*protection.TooManyError)) || errors.As(err, new(*collective.DisagreementError))
}
