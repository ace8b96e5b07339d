package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Latest is the newest snapshot: see Step of the settings.
const Latest int64 = -1

func StepName(step int64) string { return fmt.Sprint("step-", step) }

// StepOf returns the snapshot of which a directory is, was until it was renamed, or is to be.
func StepOf(name string) (step int64, ok bool) {
	parts := stepNames.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	step, err := strconv.ParseInt(parts[1], 10, 64)
	return step, err == nil
}

var stepNames = regexp.MustCompile(`^step-(0|[1-9][0-9]*)(?:\.draft|\.aside-.*)?$`)

func NewestFirst(a, b int64) int { return cmp.Compare(b, a) }

// SparePrefix begins the names of directories in a root that have snapshots of nodes which are missing.
const SparePrefix = ".spare-"

// LookIn returns the snapshots in a root, the newest first, and its spares. A root that is missing has none.
func LookIn(d disk.Disk, root string) (steps []int64, spares []string, err error) {
	dir, err := d.Open(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, nil, store.Inputf("%s is not a directory: name the root of a node's snapshots", root)
	case err != nil:
		return nil, nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(".")
	for _, e := range entries {
		switch step, ok := StepOf(e.Name()); {
		case !e.IsDir():
		case ok && e.Name() == StepName(step):
			steps = append(steps, step)
		case strings.HasPrefix(e.Name(), SparePrefix):
			spares = append(spares, e.Name())
		}
	}
	slices.SortFunc(steps, NewestFirst)
	return steps, spares, err
}

func IdentifyRoot(d disk.Disk, root string) protection.Identity {
	steps, _, err := LookIn(d, root)
	for _, step := range steps {
		if id := store.Identify(d, filepath.Join(root, StepName(step))); id.Node >= 0 {
			id.Group, id.Name, id.Step = "", tree.WholePath(root), step
			return id
		}
	}
	return protection.Identity{Node: -1, Name: tree.WholePath(root), Empty: err == nil && steps == nil}
}

// Apart returns an error where one of the directories here is, or lies in, another. It makes and changes none of them.
func Apart(o Setup, dirs []string) error {
	nodes, err := nodesAt(&o.Settings, dirs, 0)
	if err != nil {
		return err
	}
	return nodesApart(Defaulted(o).Disk, nodes, o.Meta)
}

// Apart is the function Apart for the nodes at this rank, wherever they are by now, and for additional ones.
func (s *Session) Apart(additional ...*store.Node) error {
	return nodesApart(s.Disk, slices.Concat(s.Nodes, additional), s.Meta)
}

func nodesApart(d disk.Disk, nodes []*store.Node, meta string) error {
	var dirs, names []string
	for _, n := range nodes {
		if n.Absent == "" {
			dirs, names = append(dirs, n.DirPath), append(names, n.DirName)
		}
	}
	if meta != "" { // or the next run would protect it
		dirs, names = append(dirs, meta), append(names, meta)
	}
	paths, above := make([]string, len(dirs)), make([][]disk.FileID, len(dirs))
	for i, dir := range dirs {
		if paths[i], _ = disk.RealPath(d, dir); paths[i] != "" { // one that cannot be opened is failing
			above[i] = disk.Above(d, paths[i])
		}
	}
	for i, a := range paths {
		for j, b := range paths {
			if i == j || a == "" || b == "" {
				continue
			}
			rel, err := filepath.Rel(a, b)
			below := err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
			height := -1 // how far above b a is, whatever its path
			if above[i][0] != (disk.FileID{}) {
				height = slices.Index(above[j], above[i][0])
			}
			switch {
			case rel == ".", height == 0:
				return store.Inputf("%s and %s are the same directory: give every node its own", names[i], names[j])
			case below, height > 0:
				return store.Inputf("%s lies in %s: give directories that lie apart", names[j], names[i])
			}
		}
	}
	return nil
}

// Nested returns an error where another directory here lies in what a node has, as one that is mounted there does, or one
// that is a mount of a part of it: its paths do not tell.
func (s *Session) Nested(n *store.Node, l *tree.Listing) error {
	for _, o := range s.Nodes {
		if o == n || o.Dir == nil {
			continue
		}
		info, err := o.Dir.Lstat(".")
		if err != nil {
			return err
		}
		if p := l.Directory(disk.Identity(info)); p != "" {
			return store.Inputf("%s is %s, too: give directories that lie apart", o.DirName, n.Path(p))
		}
	}
	return nil
}

// Order returns, by node of the group, which of the directories is its: those that say which node they
// are keep their places. The others take the free places of their names, and then those that are left, in their order. Where
// directories contradict each other, which the verbs report, it is the order in which they are given. What the newest
// snapshot of a root says counts for more than what older ones do, which may have had other nodes.
func Order(ids []protection.Identity) []int {
	order, asGiven := freePlaces(len(ids)), make([]int, len(ids))
	newest, group := int64(0), ""
	for i, id := range ids {
		asGiven[i] = i
		if id.Node >= 0 {
			newest = max(newest, id.Step)
		}
	}
	for i, id := range ids {
		n := store.PlaceIn(protection.Place{Node: id.Node, Nodes: id.Nodes}, id.Next, len(ids))
		switch {
		case n < 0 || id.Step < newest:
			continue
		case n >= len(ids) || order[n] >= 0 || group != "" && id.Group != group:
			return asGiven
		}
		order[n], group = i, id.Group
	}
	for i, id := range ids {
		if id.Nodes == len(ids) {
			order.take(id.Node, i)
		}
	}
	for i, id := range ids {
		order.take(freePlace(ids, id, order), i)
	}
	for i := range ids {
		order.take(slices.Index(order, -1), i)
	}
	return order
}

// places are directories by node; -1: the place is free.
type places []int

func freePlaces(nodes int) places { return slices.Repeat(places{-1}, nodes) }

// take gives a directory that has no place one that is free.
func (p places) take(n, directory int) {
	if n >= 0 && n < len(p) && p[n] < 0 && !slices.Contains(p, directory) {
		p[n] = directory
	}
}

// freePlace returns the free place to which most directories give the name of a directory that does not say its node; -1:
// there is none.
func freePlace(ids []protection.Identity, unnamed protection.Identity, order []int) int {
	best, votes := -1, make([]int, len(ids))
	for _, id := range ids {
		n := slices.Index(id.Names, unnamed.Name)
		if unnamed.Node >= 0 || len(id.Names) != len(ids) || n < 0 || order[n] >= 0 || slices.Contains(id.Names[n+1:], unnamed.Name) {
			continue
		}
		if votes[n]++; best < 0 || votes[n] > votes[best] {
			best = n
		}
	}
	return best
}

// Resized returns the order of directories in a run that resizes their group: those that it is to have, by node, and
// then those that are removed, by names of directories or by numbers of nodes of the group as it was.
func Resized(names []string, ids []protection.Identity, added []bool, remove []string) ([]int, error) {
	var former []int // directories of the group as it was
	var old []protection.Identity
	for i := range names {
		if !added[i] {
			former, old = append(former, i), append(old, ids[i])
		}
	}
	k, formerNodes := len(names)-len(remove), len(former)
	if k < 2 || k == formerNodes {
		return nil, store.Inputf("a group of %d nodes, and %d are added and %d removed: want another number of nodes, 2 or more. To move a node, recover into an empty directory in its place", formerNodes, len(names)-formerNodes, len(remove))
	}
	var removed []int
	for _, name := range remove {
		i := slices.Index(names, name)
		if i >= 0 && slices.Contains(names[i+1:], name) {
			return nil, store.Inputf("%q is the directory of several nodes: name the node by its number, from 0", name)
		}
		if n, err := strconv.Atoi(name); i < 0 && err == nil && n >= 0 {
			if list := formerNames(ids, k); n < len(list) { // it is repeated
				i = slices.IndexFunc(ids, func(id protection.Identity) bool { return id.Name == list[n] })
			} else if list == nil && n < formerNodes {
				i = former[Order(old)[n]]
			}
		}
		if !slices.Contains(former, i) || slices.Contains(removed, i) {
			return nil, store.Inputf("%q is to be removed, and is no node of the group, or named twice: name its directory, or its number, 0 to %d", name, formerNodes-1)
		}
		removed = append(removed, i)
	}
	order := append(freePlaces(k), removed...)
	for i, id := range ids {
		if id.Nodes == k || id.Next.Nodes == k {
			order.take(store.PlaceIn(protection.Place{Node: id.Node, Nodes: id.Nodes}, id.Next, k), i)
		}
	}
	for _, i := range former {
		order.take(ids[i].Node, i)
	}
	for i := range names {
		order.take(slices.Index(order, -1), i)
	}
	return order, nil
}

// formerNames returns the names of the directories of the epoch before, by node, where the group has so many nodes already.
func formerNames(ids []protection.Identity, nodes int) []tree.Name {
	for _, id := range ids {
		if id.Nodes == nodes && id.FormerNames != nil {
			return id.FormerNames
		}
	}
	return nil
}
