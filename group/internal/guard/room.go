package guard

import (
	"context"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"volley/group/internal/pass"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// A room is what a node is to write on a file system.
type room struct {
	Machine, FileSystem string
	Dir                 string // that is on it
	Node                string
	Need                int64
	Free                int64 // now
	Freed               int64 // by interrupted runs: it goes before anything is written
	block               int64 // that a file takes at least
}

// A Lack says what to do where there is no room for something, and which option goes on nevertheless.
type Lack struct {
	Subject, Advice string
	Option          protection.Option
}

// CheckRoom returns an error where a file system has no room for what all nodes of its machine are to write there. It
// counts what is to be written beside all that is there: what it replaces goes later. What nobody knows counts as
// room: the disk says it when it is full.
func CheckRoom(ctx context.Context, s *session.Session, lack Lack, writes func(n *store.Node) store.Writes) error {
	roomLists, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) ([]room, error) {
		return roomsOf(s, writes(n)), ctx.Err()
	})
	if err != nil {
		return err
	}
	var sums []room
	nodes := map[int][]string{}
	for _, x := range slices.Concat(roomLists...) {
		i := slices.IndexFunc(sums, func(o room) bool { return o.Machine == x.Machine && o.FileSystem == x.FileSystem })
		if i < 0 {
			i, sums = len(sums), append(sums, x)
		} else {
			sums[i].Need, sums[i].Freed, sums[i].Free = sums[i].Need+x.Need, sums[i].Freed+x.Freed, min(sums[i].Free, x.Free)
		}
		nodes[i] = append(nodes[i], x.Node)
	}
	var list []string
	for i, x := range sums {
		if free := x.Free + x.Freed; x.Need > free {
			names := pass.JoinFirst(nodes[i][:min(len(nodes[i]), pass.MostNamed)], ", ", len(nodes[i]))
			list = append(list, names+": the file system of "+x.Dir+" has room for "+bytes(free)+", and "+lack.Subject+" there takes "+bytes(x.Need))
		}
	}
	if list == nil {
		return nil
	}
	err = store.Inputf("%s. Nothing was written: %s", strings.Join(list, "; "), lack.Advice)
	err.(*protection.RefusedError).Option = lack.Option
	return s.SharedError(ctx, err)
}

// bytes returns a number for people, and as it is.
func bytes(n int64) string {
	return humanize.IBytes(uint64(n)) + " (" + humanize.Comma(n) + " bytes)"
}

// roomsOf returns what a node needs of each file system.
func roomsOf(s *session.Session, w store.Writes) (list []room) {
	if len(w.List) == 0 || w.Node.Dir == nil {
		return nil
	}
	metaDir := tree.MetaName
	if w.Node.Meta == "" && w.Node.IsBare() { // a dry run does not make it
		metaDir = "."
	}
	metaRoom, dirRoom := fileSystem(s, w.Node, metaDir, &list), fileSystem(s, w.Node, ".", &list)
	if metaRoom >= 0 {
		list[metaRoom].Freed = w.Freed
	}
	for _, x := range w.List {
		i := metaRoom
		if x.Dir != "" {
			i = dirRoom
		}
		if i >= 0 {
			list[i].Need += (x.Bytes + list[i].block - 1) / list[i].block * list[i].block
		}
	}
	return slices.DeleteFunc(list, func(x room) bool { return x.Need == 0 })
}

// fileSystem returns the place in a list of the file system that a directory of a node is on, and adds it if need be; -1:
// nobody knows what room it has.
func fileSystem(s *session.Session, n *store.Node, dir string, list *[]room) int {
	info, err := n.Dir.Lstat(dir)
	if err != nil || disk.Identity(info).FileSystem() == "" {
		return -1
	}
	id := disk.Identity(info).FileSystem()
	if i := slices.IndexFunc(*list, func(x room) bool { return x.FileSystem == id }); i >= 0 {
		return i
	}
	free, block, err := n.Dir.Room(dir)
	if err != nil {
		return -1
	}
	*list = append(*list, room{Machine: machine(s.Host()), FileSystem: id, Dir: n.Path(tree.Name(dir)), Node: n.DirName, Free: free, block: block})
	return len(*list) - 1
}

// CheckParity is [CheckRoom] for parity that is all made anew, beside the earlier one, but for cells that are holes. Where
// some of it stays, nobody knows yet how much is to be written.
func CheckParity(ctx context.Context, s *session.Session, p *pass.Pass) error {
	m := p.M
	if m.Keeps(s.Manifest) {
		return nil
	}
	filled, err := p.Filled(ctx)
	if err != nil {
		return err
	}
	return CheckRoom(ctx, s, Lack{Subject: "the parity", Advice: "make room, let fewer nodes be lost, or add nodes"}, func(n *store.Node) store.Writes {
		bytes := min(m.ParityBytes(), int64(len(pass.ParityIn(m, n.Index, filled)))*m.BlockBytes)
		return store.Writes{Node: n, List: []store.Write{{Bytes: bytes}}, Freed: n.LeftBytes(s.States[n.Index])}
	})
}
