package guard

import (
	"cmp"
	"context"

	"github.com/dustin/go-humanize"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// CheckRoom returns an error where there is no room for parity that is all made anew, beside the earlier one. Parity that
// is kept may share its blocks with the earlier one, so nobody knows what it takes.
func CheckRoom(ctx context.Context, s *session.Session, m *store.Manifest) error {
	if m.Keeps(s.Manifest) {
		return nil
	}
	return s.Each(ctx, func(_ context.Context, i int, n *store.Node) error {
		at := cmp.Or(n.Meta, n.Dir.Path())
		free, _, err := disk.Room(at)
		if err != nil { // nobody knows, and the disk says it when it is full
			return nil
		}
		own, err := n.Dir.Lstat(tree.MetaName)
		if err != nil {
			return nil
		}
		nodes := int64(0) // here, on the same file system
		for _, o := range s.Nodes[:i+1] {
			if is, err := o.Dir.Lstat(tree.MetaName); err == nil && disk.Identity(own).Beside(disk.Identity(is)) {
				nodes++
			}
		}
		if need := nodes * m.ParityBytes(); need > free {
			return store.Inputf("%s has room for %s, and the parity of %d nodes that lie there takes %s: make room, let fewer nodes be lost, or add nodes", at, humanize.IBytes(uint64(free)), nodes, humanize.IBytes(uint64(need)))
		}
		return nil
	})
}
