package session

import (
	"log/slog"
	"time"

	"volley"
	"volley/group/internal/decide"
	"volley/internal/disk"
	"volley/sim"
)

// Options holds what all verbs take. All ranks give the same values, but for Timeout.
type Options struct {
	Memory  int64         // bytes of packets in memory, for each node; 0: volley.DefaultMemory
	Timeout time.Duration `json:"-"` // a run fails after this long without a message; 0: never
	Network sim.Network   `json:"-"` // that plans are chosen for; the zero one: volley.DefaultNetwork
	Gamma   sim.PerByte   `json:"-"` // γ, of a multiply-add on a byte

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

	// Key authenticates manifests: only those made with it count. All ranks give the same; [ReadKey] reads it. Without
	// Key, a group that has one is refused, unless NoKey is set: then nothing is checked, and manifests have no HMAC.
	Key   []byte `json:"-"`
	NoKey bool

	// Roots says that the directories are roots of snapshots, directories step-N of which the verb takes one.
	// Step is its number, or Latest. Verify and Recover take the newest one that is in force, or that can be
	// recovered; Protect takes the newest one that is at every root.
	Roots bool
	Step  int64

	// From is the host where the run was started, if that is another one. Whoever finds a node locked by it reads that.
	From string `json:"-"`

	// ReadRate is how many bytes a second are read of each node at this rank, on average, by all verbs; 0: no limit.
	ReadRate int64 `json:"-"`

	// Progress, unless nil, is called, also at once, with how many more bytes of nodes here are done, and are to be.
	Progress func(done, more int64) `json:"-"`

	// Log gets what a verb finds and does, for who looks into it; nil: nothing is logged.
	Log *slog.Logger `json:"-"`

	inner inner
}

// An inner option is for this module and its tests alone.
type inner struct {
	disk   disk.Disk // nil: disk.OS
	inTurn bool      // a rank calls the disk for one node after the other, and reads nothing ahead
	host   string    // that this rank is on; "": the one that runs this process
}

// On returns the options for another disk. In turn, a rank calls it for one node after the other, and reads nothing ahead.
func On(o Options, d disk.Disk, inTurn bool) Options {
	o.inner.disk, o.inner.inTurn = d, inTurn
	return o
}

// At returns the options for a rank on another host.
func At(o Options, host string) Options {
	o.inner.host = host
	return o
}

// Host returns the host that this rank is on.
func (s *Session) Host() disk.Host {
	if s.inner.host != "" {
		return disk.Host{Name: s.inner.host}
	}
	return disk.ThisHost()
}

// Defaulted returns the options with defaults for those that are zero.
func Defaulted(o Options) Options {
	if o.Memory == 0 {
		o.Memory = volley.DefaultMemory
	}
	if o.Network == (sim.Network{}) {
		o.Network = volley.DefaultNetwork()
	}
	if o.inner.disk == nil {
		o.inner.disk = disk.OS
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Tell tells of more bytes that are done, and of more that have to be.
func (s *Session) Tell(done, more int64) {
	if s.Progress != nil {
		s.Progress(done, more)
	}
}

// Trust says which manifests count.
func (s *Session) Trust() decide.Trust {
	return decide.Trust{Key: s.Key, NoKey: s.NoKey, Believe: s.Believe}
}

// UseKey has the options take the key in a file, or none where the name is "none"; a file of that
// name is ./none. They stay as they are where there is no name.
func (o *Options) UseKey(name string) (err error) {
	switch name {
	case "":
	case "none":
		o.NoKey = true
	default:
		o.Key, err = ReadKey(name)
	}
	return err
}

// Read tells of so many bytes that are read.
func (s *Session) Read(n int64) { s.Tell(n, 0) }
