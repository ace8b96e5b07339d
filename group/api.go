package group

import (
	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/sim"
)

// Latest is the newest snapshot: see [protection.Settings].Step.
const Latest = session.Latest

// Inputf is fmt.Errorf for a [protection.RefusedError] of packages that choose groups.
func Inputf(format string, args ...any) error { return store.Inputf(format, args...) }

// IsInputError reports whether the caller has to change something: the error is a [*protection.RefusedError], a
// [*protection.TooManyError] or a [*collective.DisagreementError].
func IsInputError(err error) bool { return session.IsInputError(err) }

// ReadKey returns the key in a file, which is all of it but for a line break at the end. The file has to be one that
// nobody but its owner can read or write, the caller's or root's.
func ReadKey(path string) ([]byte, error) { return session.ReadKey(path) }

// UseKey has the settings take the key in a file, or none where the name is "none"; a file of that
// name is ./none. The settings stay as they are where there is no name.
func UseKey(o *protection.Settings, name string) (err error) {
	switch name {
	case "":
	case "none":
		o.NoKey = true
	default:
		o.Key, err = ReadKey(name)
	}
	return err
}

// Apart returns an error where one of directories here is, or lies in, another. It makes and changes none of them.
func Apart(dirs []string) error { return session.Apart(session.Setup{}, dirs) }

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(dir string) protection.Identity { return store.Identify(disk.OS, dir) }

// IdentifyRoot returns which node a root is by its newest snapshot that says so.
func IdentifyRoot(root string) protection.Identity { return session.IdentifyRoot(disk.OS, root) }

// Digests of files, part by part, and of parity. Manifests and records always have SHA-256.
const (
	SHA256 = store.SHA256
	BLAKE3 = store.BLAKE3
	XXH3   = store.XXH3
)

// ElsewhereAdvice says what to do where a node cannot be read.
const ElsewhereAdvice = session.ElsewhereAdvice

// Order returns, by node of the group, which of the directories is its: those that say it keep
// their places, and the others take the free places of their names, and then those that are left.
func Order(ids []protection.Identity) []int { return session.Order(ids) }

// Resized returns the order of directories in a run that resizes their group: those that it is to have, by node, and
// then those that are removed. Nodes keep their numbers as far as there are as many. remove has names of directories, or
// numbers of nodes of the group as it was.
func Resized(names []string, ids []protection.Identity, added []bool, remove []string) ([]int, error) {
	return session.Resized(names, ids, added, remove)
}

// What is the matter with a file of a node, or the whole of it: docs/format.md and docs/protect.md have the words.
const (
	Intact      = content.Intact
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

// Estimate returns what the model of a network says of a group whose nodes have so many bytes of data each: of making
// parity, and of bringing back the nodes that are lost, both without reading and writing files. The recovery is nil where
// nothing is lost, or too much. The error says why there can be no such group.
func Estimate(nodes, tolerate int, bytes int64, network sim.Network, lost []int) (protect, recovery *protection.CodingCost, err error) {
	o := session.Defaulted(session.Setup{Settings: protection.Settings{Network: network}})
	return erasure.Estimate(nodes, tolerate, bytes, &erasure.Environment{Memory: o.Memory, Network: o.Network}, lost)
}
