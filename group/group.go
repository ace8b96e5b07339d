package group

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"volley"
	"volley/group/internal/decide"
	"volley/group/internal/erasure"
	"volley/group/internal/store"
	"volley/internal/disk"
	"volley/sim"
)

// Options holds what all verbs take. All ranks give the same values, but for Timeout.
type Options struct {
	Memory  int64         // bytes of packets in memory, for each node; 0: volley.DefaultMemory
	Timeout time.Duration // a run fails after this long without a message; 0: never
	Network sim.Network   // that plans are chosen for; the zero one: volley.DefaultNetwork
	Gamma   sim.PerByte   // γ, of a multiply-add on a byte

	// Believe names, by directory or number, a node whose newest generation is in force if the nodes disagree.
	Believe string

	// Names are what to call the directories at this rank, where others have the same ones at
	// other machines; nil: as they are given. Believe uses these names.
	Names []string

	// Absent says of directories at this rank why they are unreachable; "" or nil: they are not.
	Absent []string

	// Meta, unless empty, is a directory at this rank in which everything of Volley's lies: that of node 3 in
	// Meta/node.3, in place of the .volley in its directory. A node may then be a snapshot of a file system, for
	// reading only. The directories are given in the order of the nodes. Recover makes, for what it brings back, a
	// .volley in the directory as long as it runs.
	Meta string

	// Part is what Protect notes at the nodes; the zero one keeps what is noted.
	Part

	// Key authenticates manifests: only those made with it count. All ranks give the same; [ReadKey] reads it. Without
	// Key, a group that has one is refused, unless NoKey is set: then nothing is checked, and manifests have no HMAC.
	Key   []byte
	NoKey bool

	// Roots says that the directories are roots of snapshots, of which the verb takes one: see [Snapshots].
	// Step is its number, or Latest. Verify and Recover take the newest one that is in force, or that can be
	// recovered; Protect takes the newest one that is at every root.
	Roots bool  `json:"-"` // ranks compare them as part of what they are to do
	Step  int64 `json:"-"`

	// Progress, unless nil, is called, also at once, with how many more bytes of nodes here are done, and are to be.
	Progress func(done, more int64) `json:"-"`

	passed map[int64]*lostError // snapshots that turned out to be lost; nil: there is no other to take
	disk   disk.Disk            // nil: disk.OS
	inTurn bool                 // a rank calls the disk for one node after the other, and reads nothing ahead
}

func (o *Options) defaults() {
	if o.Memory == 0 {
		o.Memory = volley.DefaultMemory
	}
	if o.Network == (sim.Network{}) {
		o.Network = volley.DefaultNetwork()
	}
	if o.disk == nil {
		o.disk = disk.OS
	}
}

// progress tells of more bytes that are done, and of more that have to be.
func (o *Options) progress(done, more int64) {
	if o.Progress != nil {
		o.Progress(done, more)
	}
}

func (o *Options) trust() decide.Trust {
	return decide.Trust{Key: o.Key, NoKey: o.NoKey, Believe: o.Believe}
}

// Inputf is fmt.Errorf for an [InputError] of packages that choose groups.
func Inputf(format string, args ...any) error { return store.Inputf(format, args...) }

// IsInputError reports whether the caller has to change something: the error is an [*InputError] or a [*TooManyError].
func IsInputError(err error) bool {
	return errors.As(err, new(*InputError)) || errors.As(err, new(*TooManyError))
}

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

// Estimate returns what the model of a network says of a group whose nodes have so many bytes of data each: of making
// parity, and of bringing back the nodes that are lost, both without reading and writing files. Possible of recovery is
// false where nothing is lost, or too much. The error says why there can be no such layout.
func Estimate(nodes, tolerate int, layout string, bytes int64, network sim.Network, lost []int) (protect, recovery Cost, err error) {
	o := &Options{Network: network}
	o.defaults()
	return erasure.Estimate(nodes, tolerate, layout, bytes, &erasure.Setting{Memory: o.Memory, Network: o.Network}, lost)
}
