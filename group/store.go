package group

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"volley/group/internal/tree"

	"volley/internal/atomicfile"
	"volley/internal/disk"
)

// What lies in a node's .volley: docs/format.md says what each is.
const (
	nodeFile        = "node.json"
	manifestName    = "manifest."
	pendingName     = "pending."
	recordName      = "record."
	parityOfRecords = "recordparity."
	parityName      = "parity."
	lockFile        = "lock"
	temporary       = "tmp-"
	stageName       = temporary + "stage"
	replacedName    = "replaced"
)

// The most bytes of files that are read as a whole. Manifests of version 1, only recognised, have all records.
const (
	mostNode     = 4 << 10
	mostManifest = 256 << 20
)

// A node is one of the group whose directory is here.
type node struct {
	index    int
	at       string    // its directory
	given    string    // what the caller calls that
	name     tree.Name // of it, or of its root: see Manifest.Names
	absent   string    // why it cannot be reached
	added    bool      // to a group that is resized
	root     string    // in which the directory is a snapshot; "": it is none
	rootName string    // what the caller calls the root
	id       identity  // that it says of itself; Nodes is 0 where it says none
	was      Place     // in the group before it is resized
	dir      disk.Dir  // nil: there is none, or it cannot be read
	unlock   func(remove bool)
	bare     bool              // it had no .volley when it was opened, and so no lock to share
	undo     func()            // removes the directories that were made for it
	stored   map[string][]byte // its record files, where they are in memory, by path
	held     map[int64]*loaded // by generation
	unread   map[int64]error   // generations whose manifest, or own record, the disk does not give
}

type loaded struct {
	manifest *Manifest
	text     []byte // as stored
}

type identity struct {
	Format string `json:"format"`
	Group  string `json:"group"`
	Place
	Part
	Next Place `json:"next,omitzero"` // in the group that it is resized to
}

// A Place is which node of how many a directory is.
type Place struct {
	Node  int `json:"node"`
	Nodes int `json:"nodes"` // of the group
}

func (p Place) valid() bool { return p.Node >= 0 && p.Node < p.Nodes && p.Nodes <= mostNodes }

// placeIn returns which of so many nodes a directory is that says p, and, while its group is resized, next.
func placeIn(p, next Place, nodes int) int {
	if p.Nodes != nodes && next.Nodes == nodes {
		return next.Node
	}
	return p.Node
}

// in returns which of so many nodes the node says that it is, or -1.
func (s *state) in(nodes int) int {
	if s.Said == (Place{}) {
		return -1
	}
	return placeIn(s.Said, s.Next, nodes)
}

// in returns the number of the node in a manifest's group.
func (n *node) in(m *Manifest) int {
	if n.id.Nodes == 0 {
		return n.index
	}
	return placeIn(n.id.Place, n.id.Next, m.Nodes)
}

func readIdentity(d disk.Dir) (id identity, err error) {
	text, err := disk.ReadText(d, metaPath(nodeFile), mostNode)
	if err == nil {
		text, err = disk.Unseal(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &id)
	}
	if err == nil && id.Format != Format {
		err = fmt.Errorf("format: %q: want %q", id.Format, Format)
	}
	if err == nil && (!id.Place.valid() || id.Next != Place{} && !id.Next.valid()) {
		err = fmt.Errorf("node: %d of %d nodes: a group has at most %d", id.Node, id.Nodes, mostNodes)
	}
	if err == nil && !id.Part.Valid() {
		err = fmt.Errorf("set, sets: %d of %d: want 0 of 0, or one of 1 to %d", id.Set, id.Sets, mostSets)
	}
	return id, err
}

func metaPath(name string) string { return path.Join(tree.MetaName, name) }

func manifestPath(g int64) string     { return metaPath(fmt.Sprint(manifestName, g, ".json")) }
func pendingPath(g int64) string      { return metaPath(fmt.Sprint(pendingName, g, ".json")) }
func parityPath(g int64) string       { return metaPath(fmt.Sprint(parityName, g)) }
func recordPath(g int64) string       { return metaPath(fmt.Sprint(recordName, g)) }
func recordParityPath(g int64) string { return metaPath(fmt.Sprint(parityOfRecords, g)) }

func (n *node) path(p tree.Name) string {
	return tree.JoinPath(n.given, p)
}

// A state is what is found of a node before anything else is looked at.
type state struct {
	Dir         string    `json:",omitempty"`
	Name        tree.Name `json:",omitempty"` // see Manifest.Names
	Lost        bool      `json:",omitempty"` // no directory, or nothing in it but what a recovery began with
	Failing     string    `json:",omitempty"` // why it cannot be read
	Unreachable bool      `json:",omitempty"` // it is failing as it cannot be reached
	Files       bool      `json:",omitempty"` // there are files that are not Volley's
	Node        int       // that it says it is, or -1
	Said        Place     `json:",omitzero"`  // by its node.json
	Next        Place     `json:",omitzero"`  // in the group that it is resized to, by that
	Added       bool      `json:",omitempty"` // to a group that is resized
	Group       string    `json:",omitempty"`
	Held        []held    `json:",omitempty"`
	Bad         []string  `json:",omitempty"` // files of Volley's that are damaged, and how
	Left        []string  `json:",omitempty"` // what interrupted runs have left
	Open        bool      `json:",omitempty"` // others may read what is in .volley, or write to it
	Other       int       `json:",omitempty"` // version of a manifest that is whole, and that this program does not know; 0: there is none
	Numbers     []int64   `json:",omitempty"` // generations of which there is any file

	Busy *disk.BusyError `json:",omitempty"` // of a snapshot: who writes to it; nothing else is known
}

// held is a generation of which a node has the manifest.
type held struct {
	Generation int64  `json:",omitempty"`
	Group      string `json:",omitempty"`
	Nodes      int    `json:",omitempty"`
	Tolerate   int    `json:",omitempty"`
	Root       string `json:",omitempty"` // SHA-256 of the manifest, which has those of all records
	Bytes      int64  `json:",omitempty"` // of the manifest
	Committed  bool   `json:",omitempty"`
	Keyed      bool   `json:",omitempty"` // it has an HMAC
	Vouched    bool   `json:",omitempty"` // which was made with the key
	Since      time.Time
	Complete   bool  `json:",omitempty"` // the parity and all records are there
	Records    []int `json:",omitempty"` // which of the record files are there and right
}

func (s *state) interrupted() bool { return slices.Contains(s.Left, stageName) }

// load looks at a node. The key, if there is one, tells manifests that were made with it.
func (n *node) load(key []byte) *state {
	s := &state{Dir: n.given, Node: -1}
	if n.dir == nil {
		s.Lost = true
		return s
	}
	n.held, n.unread = map[int64]*loaded{}, map[int64]error{}
	fail := func(err error) *state {
		return &state{Dir: n.given, Node: -1, Failing: err.Error()}
	}
	files, entries, err := contents(n.dir)
	if err != nil {
		return fail(err)
	}
	s.Files = files
	s.Open = len(n.exposed(entries)) > 0
	s.Lost = !s.Files && empty(entries)
	if id, err := readIdentity(n.dir); err == nil {
		n.id = id
		s.Node, s.Said, s.Next, s.Group = id.Node, id.Place, id.Next, id.Group
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.bad(n, nodeFile, err)
	}
	for _, e := range entries {
		name := e.Name()
		if leftover(name) {
			s.Left = append(s.Left, name)
		}
		kind, g, ok := nameOf(name)
		if !ok {
			continue
		}
		if !slices.Contains(s.Numbers, g) {
			s.Numbers = append(s.Numbers, g)
		}
		if kind != manifestName && kind != pendingName {
			continue
		}
		l := new(loaded)
		if l.text, err = disk.ReadText(n.dir, metaPath(name), mostManifest); err == nil {
			l.manifest, err = DecodeManifest(l.text)
		} else if disk.Failed(err) {
			n.unread[g] = err
		}
		if version := new(versionError); errors.As(err, &version) {
			s.Other = version.version
		}
		if err == nil && l.manifest.Generation != g {
			err = fmt.Errorf("generation: %d", l.manifest.Generation)
		}
		if err != nil {
			s.bad(n, name, err)
			continue
		}
		h := n.complete(l, key)
		h.Committed = kind == manifestName
		if info, err := n.dir.Lstat(metaPath(name)); err == nil {
			h.Since = info.ModTime()
		}
		if i := slices.IndexFunc(s.Held, func(o held) bool { return o.Generation == g }); i >= 0 {
			if h.Committed { // which is read first, by their names
				s.Held[i], n.held[g] = h, l
			}
			continue
		}
		s.Held, n.held[g] = append(s.Held, h), l
	}
	return s
}

// exposed returns what of .volley, in which these lie, others may read or write, itself first.
func (n *node) exposed(entries []fs.DirEntry) []string {
	var list []string
	if info, err := n.dir.Lstat(tree.MetaName); err == nil && !disk.Private(info) {
		list = append(list, tree.MetaName)
	}
	for _, e := range entries {
		if info, err := n.dir.Lstat(metaPath(e.Name())); err == nil && info.Mode().IsRegular() && !disk.Private(info) {
			list = append(list, metaPath(e.Name()))
		}
	}
	return list
}

// makePrivate closes to others what is in .volley: parity tells what is in the files of other nodes. What is another
// user's stays as it is, which load finds. A file of several names stays, too: the others may be anywhere.
func (n *node) makePrivate() {
	entries, _ := n.dir.ReadDir(tree.MetaName)
	for _, name := range n.exposed(entries) {
		if name == tree.MetaName {
			n.dir.Chmod(tree.MetaName, 0o700)
			continue
		}
		f, err := n.dir.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && disk.Linked(info) == (disk.FileID{}) {
			f.Chmod(0o600)
		}
		f.Close()
	}
}

func (s *state) bad(n *node, name string, err error) {
	s.Bad = append(s.Bad, fmt.Sprintf("%s: %v", filepath.Join(n.given, tree.MetaName, name), err))
}

// held returns what a manifest says, which the key may vouch for.
func (l *loaded) held(key []byte) held {
	m := l.manifest
	return held{
		Generation: m.Generation, Group: m.Group, Nodes: m.Nodes, Tolerate: m.Tolerate, Root: disk.Sum(l.text), Bytes: int64(len(l.text)),
		Keyed: m.mac != "", Vouched: madeWith(key, l.text),
	}
}

// complete reads the records of a generation that a node has, and looks for the parity.
func (n *node) complete(l *loaded, key []byte) held {
	m := l.manifest
	h := l.held(key)
	info, err := n.dir.Lstat(parityPath(m.Generation))
	h.Complete = err == nil && info.Size() == m.parityBytes()
	at := n.in(m)
	if at >= m.Nodes {
		return h
	}
	for i, f := range m.recordFiles(at) {
		is, err := disk.SumText(n.dir, f.path, f.stored())
		info, failed := n.dir.Lstat(f.path)
		if err != nil || is != f.sha256 || failed != nil || info.Size() != f.stored() { // memory is taken by the length
			if h.Complete = false; i == 0 && disk.Failed(err) {
				n.unread[m.Generation] = err
			}
			continue
		}
		h.Records = append(h.Records, i)
	}
	return h
}

// leftover reports whether a name of .volley is of a run that was interrupted.
func leftover(name string) bool {
	return strings.HasPrefix(name, temporary) || strings.HasPrefix(name, atomicfile.Hidden)
}

// contents reports whether a directory, if it is there, has files that are not Volley's, and what is in .volley.
func contents(d disk.Dir) (files bool, own []fs.DirEntry, err error) {
	all, err := d.ReadDir(".")
	if err == nil {
		files = slices.ContainsFunc(all, func(e fs.DirEntry) bool { return e.Name() != tree.MetaName })
		own, err = d.ReadDir(tree.MetaName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return files, own, err
}

// empty reports whether nothing is in .volley but what a recovery begins with.
func empty(own []fs.DirEntry) bool {
	return !slices.ContainsFunc(own, func(e fs.DirEntry) bool { return e.Name() != lockFile && !leftover(e.Name()) })
}

func nameOf(name string) (kind string, g int64, ok bool) {
	parts := generationName.FindStringSubmatch(name)
	if parts == nil {
		return "", 0, false
	}
	g, err := strconv.ParseInt(parts[2]+parts[4], 10, 64) // of one form, the other is empty
	return parts[1] + parts[3], g, err == nil && g <= mostGeneration
}

var generationName = regexp.MustCompile(`^(?:(manifest\.|pending\.)([1-9][0-9]*)\.json|(parity\.|record\.|recordparity\.)([1-9][0-9]*))$`)

// rollForward puts a pending manifest in force at the node if it has the root: two runs may have made different ones.
func (n *node) rollForward(g int64, root string) error {
	is, err := disk.SumText(n.dir, pendingPath(g), mostManifest)
	if disk.Failed(err) {
		return err
	}
	if err != nil || is != root {
		return nil // there is none, or it is no manifest
	}
	if err := n.dir.Rename(pendingPath(g), manifestPath(g)); err != nil {
		return err
	}
	return n.sync()
}

// settle ends a change of the group at the node, and cleans it. All nodes have committed the manifest.
func (n *node) settle(m *Manifest) error {
	if n.was = (Place{}); n.id.Next != n.was {
		if err := n.identify(m); err != nil {
			return err
		}
	}
	return n.clean(m.Generation)
}

// clean removes what interrupted runs have left, and all of generations but g. All nodes have committed g.
func (n *node) clean(g int64) error {
	// Manifests go first: what they speak of is there as long as they are.
	for _, manifests := range []bool{true, false} {
		if err := n.discard(func(name string) bool {
			kind, of, ok := nameOf(name)
			if is := kind == manifestName || kind == pendingName; is != manifests {
				return false
			}
			return leftover(name) || ok && (of != g || kind == pendingName)
		}); err != nil {
			return err
		}
		if err := n.sync(); err != nil {
			return err
		}
	}
	return nil
}

// discard removes what has some names of .volley.
func (n *node) discard(which func(name string) bool) error {
	entries, err := n.dir.ReadDir(tree.MetaName)
	for _, e := range entries {
		if err == nil && which(e.Name()) {
			err = disk.Discard(n.dir, metaPath(e.Name()))
		}
	}
	return err
}

// tidy removes what interrupted runs have left.
func (n *node) tidy(s *state) error {
	for _, name := range s.Left {
		if err := disk.Discard(n.dir, metaPath(name)); err != nil {
			return err
		}
	}
	return nil
}

// drop removes what the node has of a generation that no node has committed.
func (n *node) drop(g int64) error {
	return n.discard(func(name string) bool {
		_, of, ok := nameOf(name)
		return ok && of == g
	})
}

// sync makes the names in .volley last.
func (n *node) sync() error { return n.dir.SyncDir(tree.MetaName) }

// identify writes node.json, and makes .volley itself last, before anything counts on what lies in it.
func (n *node) identify(m *Manifest) error {
	id := identity{Format: Format, Group: m.Group, Place: Place{n.index, m.Nodes}, Part: m.Part}
	if n.was != (Place{}) {
		id.Place, id.Next = n.was, id.Place
	}
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := n.write(nodeFile, disk.Seal(text)); err != nil {
		return err
	}
	n.id = id
	return n.dir.SyncDir(".")
}

// write writes a file of .volley whole, or not at all.
func (n *node) write(name string, text []byte) error {
	return atomicfile.WriteIn(n.dir, metaPath(name), text, 0o600)
}

// create makes a file of .volley, in place of what has the name, which may be another name of some file.
func (n *node) create(name string) (disk.File, error) {
	if err := disk.Discard(n.dir, metaPath(name)); err != nil {
		return nil, err
	}
	return n.dir.OpenFile(metaPath(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

func (n *node) openParity(g int64) (disk.File, error) {
	if n.dir == nil {
		return nil, fs.ErrNotExist
	}
	return n.dir.OpenFile(parityPath(g), os.O_RDONLY, 0)
}
