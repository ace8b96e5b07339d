// Package snapshots says what [group.Group.Snapshots] lists, and makes the directories of snapshots.
//
// Those that verbs of package group take lie in roots, see Options.Roots of that package: directories step-N, N a decimal
// number without leading zeros. Other names do not count, so that whoever writes a snapshot gives it its name when it is
// complete. A root belongs to the node that its newest snapshot says, and one that says nothing takes a free place.
package snapshots

import (
	"volley/group"
	"volley/group/internal/session"
	"volley/group/internal/snapshot"
	"volley/internal/disk"
)

// A Snapshot is the directories step-<Step> of all roots: a group of its own. A Report lists the snapshots of roots.
type (
	Snapshot = snapshot.Snapshot
	Report   = snapshot.Report
)

// States of a snapshot.
const (
	InForce     = snapshot.InForce     // every node has it as it was protected, as far as its records tell
	Recoverable = snapshot.Recoverable // lost nodes can be recovered
	Unprotected = snapshot.Unprotected // every node has it, and it is not protected
	Incomplete  = snapshot.Incomplete  // for certain it does not come back: too much is lost, or it was never protected
	Unclear     = snapshot.Unclear     // it may be in force: something could not be read, or contradicts the rest
	Busy        = snapshot.Busy        // another run has its lock, so nothing of it was read
)

// Identify returns which node a root is by its newest snapshot that says so, without the group.
func Identify(root string) group.Identity { return session.IdentifyRoot(disk.OS, root) }
