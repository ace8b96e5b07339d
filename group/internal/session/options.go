package session

import (
	"log/slog"

	"volley"
	"volley/group/internal/judge"
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
