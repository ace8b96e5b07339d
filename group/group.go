package group

import (
	"context"
	"slices"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/sim"
	"volley/transport"
	"volley/transport/local"
)

// A Group is the nodes of a group, as far as this rank has them, and the options of all verbs. Its methods are the
// verbs, one at a time. Between two of them it holds no lock and no open file, and it knows nothing of the nodes: each
// verb reads anew what they hold.
type Group struct {
	dirs    []string
	options session.Setup
	t       transport.Transport // nil: each verb has one of its own, as an error ends it
}

// Join returns a group of which the transport's rank has the nodes with these directories. All ranks call the same
// verbs, each for its own directories. An error of a verb ends the transport, so that no rank waits for another: the
// next verb needs a new one. Whoever calls Join closes t.
func Join(t transport.Transport, dirs []string, o protection.Settings) *Group {
	return &Group{dirs: slices.Clone(dirs), options: session.Setup{Settings: o}, t: t}
}

// Open returns a group that has all of its nodes in this process. It changes nothing at them, and they need not be
// protected. It returns a [*protection.RefusedError] where one of the directories is, or lies in, another. After an error of a verb
// the group is as good as before.
func Open(dirs []string, o protection.Settings) (*Group, error) {
	return open(dirs, session.Setup{Settings: o})
}

func open(dirs []string, o session.Setup) (*Group, error) {
	if err := session.Apart(o, dirs); err != nil {
		return nil, err
	}
	return &Group{dirs: slices.Clone(dirs), options: o}, nil
}

// meet calls f with the session of a verb.
func meet[T any](ctx context.Context, g *Group, f func(*session.Session) (T, error)) (result T, err error) {
	t := g.t
	if t == nil {
		endpoint := local.New(1)[0]
		defer endpoint.Close()
		t = endpoint
	}
	return session.Meeting(ctx, t, g.options, f)
}

// A task is what a verb does on a session.
type task[T any] func(context.Context, *session.Session) (T, error)

// runOnce does a verb's work with the nodes of the group.
func runOnce[T any](ctx context.Context, g *Group, v session.Verb, f task[T]) (T, error) {
	return meet(ctx, g, func(s *session.Session) (result T, err error) {
		var found *surroundings // snapshots, unless the verb's is named
		defer func() { found.Close() }()
		v.Pick = func(ctx context.Context, s *session.Session) (err error) {
			found.Close() // of nodes that were placed by what they said before they were locked
			found, err = pickSnapshot(ctx, s)
			return err
		}
		if err = s.Look(ctx, g.dirs, v); err == nil {
			err = s.Find(ctx)
		}
		if err != nil {
			return result, err
		}
		return f(ctx, s)
	})
}

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
