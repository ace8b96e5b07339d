package group

import (
	"bytes"
	"cmp"
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

// What lies in a node's .volley: docs/format.md says what each is. A generation is one directory. It is built under its
// pending name, its manifest last, and gets its other name when all nodes have it.
const (
	generationName = "generation."
	pendingName    = "pending."
	manifestFile   = "manifest.json"
	nodeFile       = "node.json"
	recordFileName = "record"
	parityFile     = "parity"

	lockFile     = "lock"
	temporary    = "tmp-"
	stageName    = temporary + "stage"
	replacedName = "replaced"
)

// endingName marks, in the .volley of all nodes, that the protection ends. It is the last file that goes.
const endingName = temporary + "unprotect"

// The most bytes of files that are read as a whole.
const (
	mostNode     = 4 << 10
	mostManifest = 256 << 20
)

// metaPath returns the path of what has a name in .volley.
func metaPath(names ...string) string { return path.Join(tree.MetaName, path.Join(names...)) }

func generationDir(g int64) string { return fmt.Sprint(generationName, g) }
func pendingDir(g int64) string    { return fmt.Sprint(pendingName, g) }

// A loaded generation is what a node has of it. The manifest is nil where it cannot be read, or is damaged.
type loaded struct {
	dir      string // its name in .volley
	node     int    // which node of the manifest's group this is; -1: nothing says it
	named    bool   // by node.json, and not by the record that it has
	manifest *Manifest
	text     []byte // of the manifest, as stored
}

func (l *loaded) path(name string) string { return metaPath(l.dir, name) }

// generation returns the directory of a generation in force, of which nothing else may be there.
func (n *node) generation(g int64) *loaded {
	if l := n.held[g]; l != nil {
		return l
	}
	return &loaded{dir: generationDir(g), node: n.index}
}

// An identity says which node of which group a directory is, in a generation that lies there.
type identity struct {
	Format string `json:"format"`
	Group  string `json:"group"`
	Place
	Part
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

func readIdentity(d disk.Dir, dir string) (id identity, err error) {
	text, err := disk.ReadText(d, metaPath(dir, nodeFile), mostNode)
	if err == nil {
		text, err = disk.Unseal(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &id)
	}
	switch {
	case err != nil:
	case id.Format != Format:
		err = fmt.Errorf("format: %q: want %q", id.Format, Format)
	case !id.Place.valid():
		err = fmt.Errorf("node: %d of %d nodes: a group has at most %d", id.Node, id.Nodes, mostNodes)
	case !id.Part.Valid():
		err = fmt.Errorf("set, sets: %d of %d: want 0 of 0, or one of 1 to %d", id.Set, id.Sets, mostSets)
	}
	return id, err
}

// readGeneration reads a generation's manifest, and finds out which node this is. The errors are those of the manifest,
// and of node.json.
func readGeneration(d disk.Dir, name string, g int64) (l *loaded, id identity, err, wrong error) {
	l = &loaded{dir: name, node: -1}
	if l.text, err = disk.ReadText(d, l.path(manifestFile), mostManifest); err == nil {
		l.manifest, err = DecodeManifest(l.text)
	}
	if err == nil && l.manifest.Generation != g {
		l.manifest, err = nil, fmt.Errorf("generation: %d", l.manifest.Generation)
	}
	if id, wrong = readIdentity(d, name); wrong == nil && (err != nil || id.Group == l.manifest.Group && id.Nodes == l.manifest.Nodes) {
		l.node, l.named = id.Node, true
		return l, id, err, nil
	}
	if wrong == nil {
		wrong = fmt.Errorf("group, nodes: %s of %d: the manifest has %s of %d", id.Group, id.Nodes, l.manifest.Group, l.manifest.Nodes)
	}
	if err == nil {
		if l.node = l.manifest.whose(d, name); l.node >= 0 {
			id = l.manifest.identity(l.node)
		}
	}
	if wrong != nil && l.node < 0 {
		id = identity{}
	}
	return l, id, err, wrong
}

func (m *Manifest) identity(node int) identity {
	return identity{Format: Format, Group: m.Group, Place: Place{node, m.Nodes}, Part: m.Part}
}

// whose returns the node whose own record a directory without a good node.json has; -1: none, or several have the same.
func (m *Manifest) whose(d disk.Dir, dir string) int {
	is, err := disk.SumText(d, metaPath(dir, recordFileName), mostRecord)
	same := func(r Record) bool { return err == nil && r.SHA256 == is }
	n := slices.IndexFunc(m.Records, same)
	if n >= 0 && slices.ContainsFunc(m.Records[n+1:], same) {
		return -1
	}
	return n
}

func (n *node) path(p tree.Name) string { return tree.JoinPath(n.given, p) }

// A state is what is found of a node before anything else is looked at.
type state struct {
	Dir         string    `json:",omitempty"`
	Name        tree.Name `json:",omitempty"` // see Manifest.Names
	Lost        bool      `json:",omitempty"` // no directory, or nothing in it but what a recovery began with
	Failing     string    `json:",omitempty"` // why it cannot be read
	Unreachable bool      `json:",omitempty"` // it is failing as it cannot be reached
	Files       bool      `json:",omitempty"` // there are files that are not Volley's
	Node        int       // that it says it is, or -1
	Said        Place     `json:",omitzero"`  // by the newest generation that is committed, or else by the newest
	Next        Place     `json:",omitzero"`  // by a pending generation of another number of nodes
	Added       bool      `json:",omitempty"` // to a group that is resized
	Group       string    `json:",omitempty"`
	Held        []held    `json:",omitempty"`
	Bad         []string  `json:",omitempty"` // files of Volley's that are damaged, and how
	Left        []string  `json:",omitempty"` // what interrupted runs have left
	ReadOnly    string    `json:",omitempty"` // why it cannot be written to, where a verb is to
	Unlocked    bool      `json:",omitempty"` // it could not be locked
	Open        bool      `json:",omitempty"` // others may read what is in .volley, or write to it
	Other       int       `json:",omitempty"` // version of a manifest that is whole, and that this program does not know; 0: there is none
	Numbers     []int64   `json:",omitempty"` // generations of which there is anything
	Unknown     []unknown `json:",omitempty"` // generations of which nobody can tell what the node has

	Busy *disk.BusyError `json:",omitempty"` // of a snapshot: who writes to it; nothing else is known
}

// An unknown generation is there, and its manifest cannot be read.
type unknown struct {
	Generation int64
	Committed  bool
	Why        string
	Group      string `json:",omitempty"` // by node.json
	Place      Place  `json:",omitzero"`
}

// held is a generation of which a node has the manifest.
type held struct {
	Generation int64  `json:",omitempty"`
	Group      string `json:",omitempty"`
	Epoch      int    `json:",omitempty"`
	Node       int    // which the directory is in it; -1: nothing says it
	Nodes      int    `json:",omitempty"`
	Tolerate   int    `json:",omitempty"`
	Root       string `json:",omitempty"` // SHA-256 of the manifest, which has those of all records
	Bytes      int64  `json:",omitempty"` // of the manifest
	Committed  bool   `json:",omitempty"`
	Keyed      bool   `json:",omitempty"` // it has an HMAC
	Vouched    bool   `json:",omitempty"` // which was made with the key
	Since      time.Time
	Complete   bool        `json:",omitempty"` // the parity and all records are there
	Records    []int       `json:",omitempty"` // which of the record files are there and right
	Names      []tree.Name `json:",omitempty"` // of the members, where these may not be the directories of the run
	Replaces   []tree.Name `json:",omitempty"` // of those of the epoch before, where it is pending
}

// current is the generation in force.
type current struct {
	generation int64  // 0: the group was never protected
	root       string // SHA-256 of its manifest
	newest     int64  // generation that a new one comes after
}

func (s *state) holds(h held) bool {
	return slices.ContainsFunc(s.Held, func(o held) bool { return o.Generation == h.Generation && o.Root == h.Root })
}

// mayHold reports whether it cannot be read whether a node has a generation.
func (s *state) mayHold(g int64) bool {
	return s.Failing != "" || slices.ContainsFunc(s.Unknown, func(u unknown) bool { return u.Generation == g })
}

// of returns what a node has of a generation in force, or nil.
func (s *state) of(c current) *held {
	for i := range s.Held {
		if h := &s.Held[i]; h.Generation == c.generation && h.Root == c.root {
			return h
		}
	}
	return nil
}

func (s *state) interrupted() bool { return slices.Contains(s.Left, stageName) }

// load looks at a node. The key, if there is one, tells manifests that were made with it. Nodes is how many directories
// the run has.
func (n *node) load(key []byte, nodes int) *state {
	s := &state{Dir: n.given, Node: -1}
	if n.dir == nil {
		s.Lost = true
		return s
	}
	n.held, n.unread = map[int64]*loaded{}, map[int64]error{}
	files, entries, err := contents(n.dir)
	if err != nil {
		return &state{Dir: n.given, Node: -1, Failing: err.Error()}
	}
	s.Files = files
	s.Open = len(n.exposed(entries)) > 0
	s.Lost = !s.Files && empty(entries)
	for _, e := range entries {
		if leftover(e.Name()) {
			s.Left = append(s.Left, e.Name())
		}
		if s.Other = max(s.Other, earlierVersion(n.dir, e.Name())); s.Other > 0 {
			continue
		}
		if kind, g, ok := nameOf(e.Name()); ok {
			n.loadGeneration(s, e.Name(), g, kind == generationName, key, nodes)
		}
	}
	s.say()
	return s
}

// loadGeneration adds to the state what the node has of a generation. One without a manifest was not completed.
func (n *node) loadGeneration(s *state, name string, g int64, committed bool, key []byte, nodes int) {
	if !slices.Contains(s.Numbers, g) {
		s.Numbers = append(s.Numbers, g)
	}
	l, id, err, wrong := readGeneration(n.dir, name, g)
	version := new(versionError)
	switch {
	case errors.As(err, &version):
		s.Other = version.version
		return
	case errors.Is(err, fs.ErrNotExist) && !committed:
		s.Left = append(s.Left, name)
		return
	case errors.Is(err, fs.ErrNotExist):
		s.bad(n, name+"/"+manifestFile, err)
		return
	case err != nil:
		s.bad(n, name+"/"+manifestFile, err)
		s.Unknown = append(s.Unknown, unknown{g, committed, err.Error(), id.Group, id.Place})
		if disk.Failed(err) {
			n.unread[g] = err
		}
		return
	}
	if wrong != nil && !errors.Is(wrong, fs.ErrNotExist) {
		s.bad(n, name+"/"+nodeFile, wrong)
	}
	h := n.complete(l, key)
	h.Committed = committed
	if h.Nodes != nodes || !committed && h.Epoch > 0 {
		h.Names = l.manifest.Names
	}
	if r := l.manifest.Replaces; r != nil && !committed {
		h.Replaces = r.Names
	}
	if info, err := n.dir.Lstat(l.path(manifestFile)); err == nil {
		h.Since = info.ModTime()
	}
	if n.held[g] != nil { // what is committed comes first, by the names
		s.Left = append(s.Left, name)
		return
	}
	s.Held, n.held[g] = append(s.Held, h), l
}

// say sets whose node this is.
func (s *state) say() {
	s.Group, s.Said, s.Next, s.Node = "", Place{}, Place{}, -1
	newer := func(a, b held) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Generation, b.Generation))
	}
	var committed, pending []held
	for _, h := range s.Held {
		switch {
		case h.Node < 0:
		case h.Committed:
			committed = append(committed, h)
		default:
			pending = append(pending, h)
		}
	}
	switch {
	case committed != nil:
		h := slices.MaxFunc(committed, newer)
		s.Group, s.Said = h.Group, Place{h.Node, h.Nodes}
	case pending != nil:
		h := slices.MaxFunc(pending, newer)
		s.Group, s.Said = h.Group, Place{h.Node, h.Nodes}
	default:
		for _, u := range s.Unknown {
			if u.Place.Nodes > 0 {
				s.Group, s.Said = u.Group, u.Place
			}
		}
		if s.Said == (Place{}) {
			return
		}
	}
	for _, h := range pending {
		if h.Group == s.Group && h.Nodes != s.Said.Nodes {
			s.Next = Place{h.Node, h.Nodes}
		}
	}
	s.Node = s.Said.Node
}

// exposed returns what of .volley, in which these lie, others may read or write, itself first. A directory in it
// hides what it has.
func (n *node) exposed(entries []fs.DirEntry) []string {
	var list []string
	if info, err := n.dir.Lstat(tree.MetaName); err == nil && !disk.Private(info) {
		list = append(list, tree.MetaName)
	}
	for _, e := range entries {
		if info, err := n.dir.Lstat(metaPath(e.Name())); err == nil && (info.Mode().IsRegular() || info.IsDir() && e.Name() != replacedName) && !disk.Private(info) {
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
		if info, err := n.dir.Lstat(name); err == nil && info.IsDir() {
			n.dir.Chmod(name, 0o700)
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
		Generation: m.Generation, Group: m.Group, Epoch: m.Epoch, Node: l.node, Nodes: m.Nodes, Tolerate: m.Tolerate,
		Root: disk.Sum(l.text), Bytes: int64(len(l.text)), Keyed: m.mac != "", Vouched: madeWith(key, l.text),
	}
}

// complete reads the records of a generation that a node has, and looks for the parity.
func (n *node) complete(l *loaded, key []byte) held {
	m := l.manifest
	h := l.held(key)
	info, err := n.dir.Lstat(l.path(parityFile))
	h.Complete = err == nil && info.Size() == m.parityBytes() && l.named
	if l.node < 0 {
		return h
	}
	for i, f := range m.recordFilesAt(l.node) {
		is, err := disk.SumText(n.dir, l.path(f.name), f.stored())
		info, failed := n.dir.Lstat(l.path(f.name))
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
	parts := generationNames.FindStringSubmatch(name)
	if parts == nil {
		return "", 0, false
	}
	g, err := strconv.ParseInt(parts[2], 10, 64)
	return parts[1], g, err == nil && g <= mostGeneration
}

var generationNames = regexp.MustCompile(`^(generation\.|pending\.)([1-9][0-9]*)$`)

// earlierVersion returns the version of a manifest that lies where version 4 and earlier ones had it; 0: it is none.
func earlierVersion(d disk.Dir, name string) int {
	if !earlierNames.MatchString(name) {
		return 0
	}
	text, err := disk.ReadText(d, metaPath(name), mostManifest)
	if err == nil {
		_, err = DecodeManifest(text)
	}
	if version := new(versionError); errors.As(err, &version) {
		return version.version
	}
	return 0
}

var earlierNames = regexp.MustCompile(`^(manifest|pending)\.[1-9][0-9]*\.json$`)

// rollForward puts a pending generation in force at the node if it has the root: two runs may have made different ones.
func (n *node) rollForward(g int64, root string) error {
	is, err := disk.SumText(n.dir, metaPath(pendingDir(g), manifestFile), mostManifest)
	if disk.Failed(err) {
		return err
	}
	if err != nil || is != root {
		return nil // there is none, or it is no manifest
	}
	if err := n.remove(generationDir(g)); err != nil {
		return err
	}
	if err := n.dir.Rename(metaPath(pendingDir(g)), metaPath(generationDir(g))); err != nil {
		return err
	}
	if l := n.held[g]; l != nil {
		l.dir = generationDir(g)
	}
	return n.sync()
}

// remove removes a generation. It has another name first: what is left of it, if that fails, is none.
func (n *node) remove(name string) error {
	old := temporary + name
	if err := disk.Discard(n.dir, metaPath(old)); err != nil {
		return err
	}
	switch err := n.dir.Rename(metaPath(name), metaPath(old)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := n.sync(); err != nil {
		return err
	}
	return disk.Discard(n.dir, metaPath(old))
}

// clean removes what interrupted runs have left, and all generations but g. All nodes have committed g.
func (n *node) clean(g int64) error {
	return n.discard(func(name string) bool {
		_, of, ok := nameOf(name)
		return leftover(name) || ok && name != generationDir(of) || ok && of != g
	})
}

// drop removes what the node has of a generation that no node has committed.
func (n *node) drop(g int64) error {
	return n.discard(func(name string) bool {
		_, of, ok := nameOf(name)
		return ok && of == g
	})
}

// discard removes what has some names of .volley.
func (n *node) discard(which func(name string) bool) error {
	entries, err := n.dir.ReadDir(tree.MetaName)
	if err != nil {
		return err
	}
	removed := false
	for _, e := range entries {
		if !which(e.Name()) {
			continue
		}
		removed = true
		remove := n.remove
		if leftover(e.Name()) {
			remove = func(name string) error { return disk.Discard(n.dir, metaPath(name)) }
		}
		if err := remove(e.Name()); err != nil {
			return err
		}
	}
	if !removed {
		return nil
	}
	return n.sync()
}

// tidy removes what interrupted runs have left.
func (n *node) tidy(s *state) error {
	return n.discard(func(name string) bool { return slices.Contains(s.Left, name) })
}

// sync makes the names in .volley last.
func (n *node) sync() error { return n.dir.SyncDir(tree.MetaName) }

// begin makes the directory of a new generation, and the file of its parity.
func (n *node) begin(g int64) (parity disk.File, err error) {
	if err := n.drop(g); err != nil {
		return nil, err
	}
	if err := n.dir.Mkdir(metaPath(pendingDir(g)), 0o700); err != nil {
		return nil, err
	}
	return n.dir.OpenFile(metaPath(pendingDir(g), parityFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// finish writes what else a new generation has, the manifest last, and makes all of it last.
func (n *node) finish(m *Manifest, files []*recordFile, text []byte) error {
	dir := metaPath(pendingDir(m.Generation))
	for _, f := range files {
		if err := atomicfile.WriteIn(n.dir, path.Join(dir, f.name), f.content, 0o600); err != nil {
			return err
		}
	}
	_, err := n.complement(dir, m, text)
	return err
}

// generationDir returns the directory of a generation that comes back at the node: the one that it has, or a new one. One
// of another root is none.
func (n *node) generationDir(g int64, root string) (string, error) {
	for _, name := range []string{generationDir(g), pendingDir(g)} {
		dir := metaPath(name)
		if _, err := n.dir.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", err
		}
		is, err := disk.SumText(n.dir, path.Join(dir, manifestFile), mostManifest)
		if disk.Failed(err) || err == nil && is == root || name == generationDir(g) && n.held[g] == nil {
			return dir, nil
		}
		if err := n.remove(name); err != nil {
			return "", err
		}
	}
	dir := metaPath(pendingDir(g))
	return dir, n.dir.Mkdir(dir, 0o700)
}

// complement writes what the directory of a generation lacks of node.json and the manifest, which is last, and makes it
// last. It reports whether anything was written.
func (n *node) complement(dir string, m *Manifest, manifest []byte) (written bool, err error) {
	id, err := json.Marshal(m.identity(n.index))
	if err != nil {
		return false, err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{nodeFile, disk.Seal(id)}, {manifestFile, manifest}} {
		name := path.Join(dir, f.name)
		if is, err := disk.ReadText(n.dir, name, int64(len(f.text))); err == nil && bytes.Equal(is, f.text) {
			continue
		}
		if err := atomicfile.WriteIn(n.dir, name, f.text, 0o600); err != nil {
			return false, err
		}
		written = true
	}
	return written, cmp.Or(n.sync(), n.dir.SyncDir("."))
}

func (n *node) openParity(g int64) (disk.File, error) {
	if n.dir == nil {
		return nil, fs.ErrNotExist
	}
	return n.dir.OpenFile(n.generation(g).path(parityFile), os.O_RDONLY, 0)
}

// mark notes at a node that the protection ends.
func (n *node) mark() error {
	if n.dir == nil {
		return nil
	}
	if err := disk.Discard(n.dir, metaPath(endingName)); err != nil {
		return err
	}
	f, err := n.dir.OpenFile(metaPath(endingName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), n.sync())
}

// forget removes what is Volley's at a node: manifests, all else, and the mark last. What else lies in .volley stays.
func (n *node) forget() error {
	if n.dir == nil {
		return nil
	}
	for _, which := range []func(name string) bool{
		func(name string) bool {
			_, _, ok := nameOf(name)
			return ok
		},
		func(name string) bool {
			return name == replacedName || leftover(name) && name != endingName
		},
		func(name string) bool { return name == endingName },
	} {
		if err := n.discard(which); err != nil {
			return err
		}
		if err := n.sync(); err != nil {
			return err
		}
	}
	return nil
}
