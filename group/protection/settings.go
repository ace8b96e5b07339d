// Package protection has the types of what a group's verbs are told, what they find, and why they fail: package group and
// those below it share them.
package protection

import (
	"log/slog"
	"time"

	"volley/sim"
)

// Settings hold what all verbs take. All ranks give the same values, but for Timeout.
type Settings struct {
	Memory  int64         // bytes of packets in memory, for each node; 0: volley.DefaultMemory
	Timeout time.Duration `json:"-"` // a run fails after this long without a message; 0: never
	Network sim.Network   `json:"-"` // that plans are chosen for; the zero one: volley.DefaultNetwork

	// Believe names, by directory or number, a node whose newest generation is in force if the nodes disagree.
	Believe string

	// Names are what to call the directories at this rank, where others have the same ones at
	// other machines; nil: as they are given. Believe uses these names.
	Names []string `json:"-"`

	// Absent says of directories at this rank why they are unreachable; "" or nil: they are not.
	Absent []string `json:"-"`

	// Meta, unless empty, is a directory at this rank in which everything of Volley's lies: that of node 3 in
	// Meta/node.3, in place of the .volley in its directory. A node may then be a snapshot of a file system, for
	// reading only. The directories are given in the order of the nodes. Recover makes, for what it brings back, a
	// .volley in the directory as long as it runs.
	Meta string `json:"-"`

	// Key authenticates manifests: only those made with it count. All ranks give the same; group.ReadKey reads it. Without
	// Key, a group that has one is refused, unless NoKey is set: then nothing is checked, and manifests have no HMAC.
	Key   []byte `json:"-"`
	NoKey bool

	// Roots says that the directories are roots of snapshots, directories step-N of which the verb takes one.
	// Step is its number, or group.Latest. Verify and Recover take the newest one that is in force, or that can be
	// recovered; Protect takes the newest one that is at every root.
	Roots bool
	Step  int64

	// Origin is the host where the run was started, if that is another one. Whoever finds a node locked by it reads that.
	Origin string `json:"-"`

	// ReadRate is how many bytes a second are read of each node at this rank, on average, by all verbs; 0: no limit.
	ReadRate int64 `json:"-"`

	// Progress, unless nil, is called, also at once, with how many more bytes of nodes here are done, and are to be.
	Progress func(processed, added int64) `json:"-"`

	// Log gets what a verb finds and does, for who looks into it; nil: nothing is logged.
	Log *slog.Logger `json:"-"`
}

// Edits are what users do to files on purpose.
type Edits struct {
	Changed bool // files have other content
	Deleted bool // files are gone
}
