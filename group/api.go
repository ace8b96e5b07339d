package group

import (
	"volley/group/internal/content"
	"volley/group/internal/decide"
	"volley/group/internal/erasure"
	"volley/group/internal/guard"
	"volley/group/internal/pass"
	"volley/group/internal/scrub"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/survey"
	"volley/internal/disk"
	"volley/sim"
)

// Since when all of a node was read.
type Reading = scrub.Reading

// Which node of which group a directory is.
type (
	Identity = store.Identity
	Part     = store.Part
)

// An InputError says what the caller has to change, and its Way the option with which a verb goes on. A WrongError says
// that what came back is not what was protected.
type (
	InputError = store.InputError
	WrongError = store.WrongError
	Way        = store.Way
)

// The ways on.
const (
	WayBelieve       = store.WayBelieve
	WayForce         = store.WayForce
	WayAcceptDeleted = store.WayAcceptDeleted // Accept.Deleted
	WayAcceptChanged = store.WayAcceptChanged // Accept.Changed
	WayFiles         = store.WayFiles
	WayTolerate      = store.WayTolerate
	WayGiveUp        = store.WayGiveUp // Force of Unprotect
	WayKey           = store.WayKey    // or NoKey
	WaySets          = store.WaySets   // none of this package: the command line has one group for each set
)

// Options holds what all verbs take.
type Options = session.Options

// Why a verb ends, besides an [InputError]: errors.As finds them. A [files.BusyError] says who has
// a node's lock, and an UnclearError, within an InputError, that nodes contradict each other.
type (
	UnclearError    = decide.UnclearError
	TooManyError    = session.TooManyError
	UnreachedError  = session.UnreachedError
	TornError       = pass.TornError
	CrowdedError    = guard.CrowdedError
	IncompleteError = survey.IncompleteError
)

// Latest is the newest snapshot: see Options.Step.
const Latest = session.Latest

// Inputf is fmt.Errorf for an [InputError] of packages that choose groups.
func Inputf(format string, args ...any) error { return store.Inputf(format, args...) }

// IsInputError reports whether the caller has to change something: the error is an [*InputError] or a [*TooManyError].
func IsInputError(err error) bool { return session.IsInputError(err) }

// ReadKey returns the key in a file, which is all of it but for a line break at the end. The file has to be one that
// nobody but its owner can read or write, the caller's or root's.
func ReadKey(path string) ([]byte, error) { return session.ReadKey(path) }

// Apart returns an error where one of directories here is, or lies in, another. It makes and changes none of them.
func Apart(dirs []string) error { return session.Apart(Options{}, dirs) }

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(dir string) Identity { return store.Identify(disk.OS, dir) }

// IdentifyRoot returns which node a root is by its newest snapshot that says so.
func IdentifyRoot(root string) Identity { return session.IdentifyRoot(disk.OS, root) }

// Digests of files, part by part, and of parity. Manifests and records always have SHA-256.
const (
	SHA256 = store.SHA256
	BLAKE3 = store.BLAKE3
	XXH3   = store.XXH3
)

// Elsewhere says what to do where a node cannot be read.
const Elsewhere = session.Elsewhere

// Order returns, by node of the group, which of the directories is its: those that say it keep
// their places, and the others take the free places of their names, and then those that are left.
func Order(ids []Identity) []int { return session.Order(ids) }

// Resized returns the order of directories in a run that resizes their group: those that it is to have, by node, and
// then those that are removed. Nodes keep their numbers as far as there are as many. remove has names of directories, or
// numbers of nodes of the group as it was.
func Resized(names []string, ids []Identity, added []bool, remove []string) ([]int, error) {
	return session.Resized(names, ids, added, remove)
}

// What is the matter with a file of a node, or the whole of it: docs/format.md and docs/protect.md have the words.
const (
	Whole       = content.Whole
	Lost        = content.Lost        // a node
	Failing     = content.Failing     // a node
	Unreachable = content.Unreachable // a node
	Foreign     = content.Foreign     // a node
	Missing     = content.Missing     // a file
	Damaged     = content.Damaged     // a file
	Stale       = content.Stale       // a file
	Changed     = content.Changed     // a file
	New         = content.New         // a file
	Deleted     = content.Deleted     // a file, and the next Protect no longer protects it
	Moved       = content.Moved       // a file
	Metadata    = content.Metadata    // mode, owner, attributes or, of a file, time
)

// What making and repairing parity takes, and what was sent.
type (
	Cost    = erasure.Cost
	Traffic = erasure.Traffic
)

// Estimate returns what the model of a network says of a group whose nodes have so many bytes of data each: of making
// parity, and of bringing back the nodes that are lost, both without reading and writing files. The recovery is nil where
// nothing is lost, or too much. The error says why there can be no such group.
func Estimate(nodes, tolerate int, bytes int64, network sim.Network, lost []int) (protect, recovery *Cost, err error) {
	o := session.Defaulted(Options{Network: network})
	return erasure.Estimate(nodes, tolerate, bytes, &erasure.Setting{Memory: o.Memory, Network: o.Network}, lost)
}

// What verbs find and do at a node.
type (
	Edits     = content.Edits
	Finding   = content.Finding
	Recovered = content.Recovered
	Risk      = survey.Risk
	Cause     = survey.Cause
)
