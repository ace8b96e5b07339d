// Package store knows what lies in a node's .volley: names, generations, manifests and records, and how they are built
// and put in force. It knows no transport and no other node.
package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"volley/files"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// What lies in a node's .volley: docs/format.md says what each is. A generation is one directory. It is built under its
// pending name, its manifest last, and gets its other name when all nodes have it.
const (
	GenerationName = "generation."
	PendingName    = "pending."
	ManifestFile   = "manifest.json"
	NodeFile       = "node.json"
	RecordFileName = "record"
	ParityFile     = "parity"

	LockFile     = "lock"
	temporary    = "tmp-"
	StageName    = temporary + "stage"
	ReplacedName = "replaced"
	ScrubName    = "scrub" // in which verify notes when it has read parts of the node: any file of it may be lost
)

// EndingName marks, in the .volley of all nodes, that the protection of a group, which it names, ends. It is the last file
// that goes. It stays where another node could not be read: a node that has it and no generation says that the protection
// has ended.
const EndingName = temporary + "unprotect"

// The most bytes of files that are read as a whole.
const (
	MostNode     = 4 << 10
	MostManifest = 256 << 20
)

// mostUnknown bounds the generations without a good manifest that are looked at: a node that has more makes them up.
const mostUnknown = 64

// MetaPath returns the path of what has a name in .volley.
func MetaPath(names ...string) string { return path.Join(tree.MetaName, path.Join(names...)) }

// GenerationDir returns the name of a generation's directory in .volley, and PendingDir the one that it has until all
// nodes have it.
func GenerationDir(g int64) string { return fmt.Sprint(GenerationName, g) }
func PendingDir(g int64) string    { return fmt.Sprint(PendingName, g) }

// DirOf returns the one of these that a node has of a generation.
func DirOf(g int64, committed bool) string {
	if committed {
		return GenerationDir(g)
	}
	return PendingDir(g)
}

// A Loaded generation is what a node has of it. The manifest is nil where it cannot be read, or is damaged.
type Loaded struct {
	dir      string // its name in .volley
	Node     int    // which node of the manifest's group this is; -1: nothing says it
	Named    bool   // by node.json, and not by the record that it has
	Manifest *Manifest
	Text     []byte // of the manifest, as stored
}

// Path returns the path of what has a name in the directory of the generation.
func (l *Loaded) Path(name string) string { return MetaPath(l.dir, name) }

// Generation returns the directory of a generation in force, of which nothing else may be there.
func (n *Node) Generation(g int64) *Loaded {
	if l := n.Held[g]; l != nil {
		return l
	}
	return &Loaded{dir: GenerationDir(g), Node: n.Index}
}

// An identity says which node of which group a directory is, in a generation that lies there.
type identity struct {
	Format string `json:"format"`
	Group  string `json:"group"`
	protection.Place
	protection.SetIndex
}

func valid(p protection.Place) bool { return p.Node >= 0 && p.Node < p.Nodes && p.Nodes <= MostNodes }

// PlaceIn returns which of so many nodes a directory is that says p, and, while its group is resized, next.
func PlaceIn(p, next protection.Place, nodes int) int {
	if p.Nodes != nodes && next.Nodes == nodes {
		return next.Node
	}
	return p.Node
}

// NumberAmong returns which of so many nodes the node says that it is, or -1.
func (s *State) NumberAmong(nodes int) int {
	if s.Claimed == (protection.Place{}) {
		return -1
	}
	return PlaceIn(s.Claimed, s.Next, nodes)
}

// NeverInForce reports whether nothing that the node has of a group was ever in force, and all of it could be read.
func (s *State) NeverInForce() bool {
	return s.Failing == "" && s.Busy == nil && s.Bad == nil && !slices.ContainsFunc(s.Held, func(h Held) bool { return h.Committed })
}

func readIdentity(d disk.Dir, dir string) (id identity, err error) {
	text, err := disk.ReadText(d, MetaPath(dir, NodeFile), MostNode)
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
	case !valid(id.Place):
		err = fmt.Errorf("node: %d of %d nodes: a group has at most %d", id.Node, id.Nodes, MostNodes)
	case !id.SetIndex.Valid():
		err = fmt.Errorf("set, sets: %d of %d: want 0 of 0, or one of 1 to %d", id.Set, id.Sets, protection.MostSets)
	}
	return id, err
}

// readGeneration reads a generation's manifest, and finds out which node this is. The errors are those of the manifest,
// and of node.json.
func readGeneration(d disk.Dir, name string, g int64) (l *Loaded, id identity, err, wrong error) {
	l = &Loaded{dir: name, Node: -1}
	if l.Text, err = disk.ReadText(d, l.Path(ManifestFile), MostManifest); err == nil {
		l.Manifest, err = DecodeManifest(l.Text)
	}
	if err == nil && l.Manifest.Generation != g {
		l.Manifest, err = nil, fmt.Errorf("generation: %d", l.Manifest.Generation)
	}
	if id, wrong = readIdentity(d, name); wrong == nil && (err != nil || id.Group == l.Manifest.Group && id.Nodes == l.Manifest.Nodes) {
		l.Node, l.Named = id.Node, true
		return l, id, err, nil
	}
	if wrong == nil {
		wrong = fmt.Errorf("group, nodes: %s of %d: the manifest has %s of %d", id.Group, id.Nodes, l.Manifest.Group, l.Manifest.Nodes)
	}
	if err == nil {
		if l.Node = l.Manifest.RecordOwner(d, name); l.Node >= 0 {
			id = l.Manifest.identity(l.Node)
		}
	}
	if wrong != nil && l.Node < 0 {
		id = identity{}
	}
	return l, id, err, wrong
}

func (m *Manifest) identity(node int) identity {
	return identity{Format: Format, Group: m.Group, Place: protection.Place{Node: node, Nodes: m.Nodes}, SetIndex: m.SetIndex}
}

// RecordOwner returns the node whose own record a directory without a good node.json has; -1: none, or several have the same.
func (m *Manifest) RecordOwner(d disk.Dir, dir string) int {
	record, _, err := readRecord(d, dir, RecordFileName, MostRecord)
	sum := disk.Sum(record)
	matches := func(r RecordSum) bool { return err == nil && r.SHA256 == sum }
	n := slices.IndexFunc(m.Records, matches)
	if n >= 0 && slices.ContainsFunc(m.Records[n+1:], matches) {
		return -1
	}
	return n
}

// PathOf returns what people call a path below a node: what is in .volley lies in meta, unless that is "".
func PathOf(dir, meta string, p tree.Name) string {
	if rest, ok := strings.CutPrefix(string(p)+"/", tree.MetaName+"/"); ok && meta != "" {
		return tree.JoinPath(meta, tree.Name(rest))
	}
	return tree.JoinPath(dir, p)
}

// Path returns what the caller calls a path below the node.
func (n *Node) Path(p tree.Name) string { return PathOf(n.DirName, n.Meta, p) }

// Path returns what the caller calls a path below the node.
func (s *State) Path(p tree.Name) string { return PathOf(s.Dir, s.Meta, p) }

// A State is what is found of a node before anything else is looked at.
type State struct {
	Dir            string           `json:",omitempty"`
	Meta           string           `json:",omitempty"` // where its .volley lies, unless in the directory itself
	Name           tree.Name        `json:",omitempty"` // see Manifest.Names
	Lost           bool             `json:",omitempty"` // no directory, or nothing in it but what a recovery began with
	Failing        string           `json:",omitempty"` // why it cannot be read
	Unreachable    bool             `json:",omitempty"` // it is failing as it cannot be reached
	Files          bool             `json:",omitempty"` // there are files that are not Volley's
	Node           int              // that it says it is, or -1
	Claimed        protection.Place `json:",omitzero"`  // by the newest generation that is committed, or else by the newest
	Next           protection.Place `json:",omitzero"`  // by a pending generation of another number of nodes
	Added          bool             `json:",omitempty"` // to a group that is resized
	Group          string           `json:",omitempty"`
	Held           []Held           `json:",omitempty"`
	Bad            []string         `json:",omitempty"` // files of Volley's that are damaged, and how
	Leftovers      []string         `json:",omitempty"` // what interrupted runs have left
	ReadOnly       string           `json:",omitempty"` // why it cannot be written to, where a verb is to
	Unlocked       bool             `json:",omitempty"` // it could not be locked
	Open           bool             `json:",omitempty"` // others may read what is in .volley, or write to it
	UnknownVersion int              `json:",omitempty"` // version of a manifest that is whole, and that this program does not know; 0: there is none
	Numbers        []int64          `json:",omitempty"` // generations of which there is anything
	Unknown        []Unknown        `json:",omitempty"` // generations of which nobody can tell what the node has
	Ended          string           `json:",omitempty"` // group whose protection has ended: the node has a mark, and no generation any more

	Busy   *files.BusyError `json:",omitempty"` // of a snapshot: who writes to it; nothing else is known
	Writer *files.BusyError `json:",omitempty"` // who writes to the node while it is read
}

// An Unknown generation is there, and its manifest is missing or damaged, or cannot be read.
type Unknown struct {
	Generation int64
	Committed  bool
	Reason     string
	Failed     bool             `json:",omitempty"` // the disk does not give it
	Group      string           `json:",omitempty"` // by node.json
	Place      protection.Place `json:",omitzero"`
}

// Held is a generation of which a node has the manifest.
type Held struct {
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
	Unread     []string    `json:",omitempty"` // record files that the disk does not give, and why
	Names      []tree.Name `json:",omitempty"` // of the nodes, where these may not be the directories of the run
	Replaces   []tree.Name `json:",omitempty"` // of those of the epoch before, where it is pending
}

// Current is the generation in force.
type Current struct {
	Generation int64  // 0: the group was never protected
	Root       string // SHA-256 of its manifest
	Newest     int64  // generation that a new one comes after
}

// Holds reports whether a node has the manifest of a generation.
func (s *State) Holds(h Held) bool {
	return slices.ContainsFunc(s.Held, func(o Held) bool { return o.Generation == h.Generation && o.Root == h.Root })
}

// MayHold reports whether it cannot be read whether a node has a generation.
func (s *State) MayHold(g int64) bool {
	return s.Failing != "" || s.UnreadAt(g) != nil
}

// UnreadAt returns a generation of which nobody can tell what the node has, or nil. What is committed comes first.
func (s *State) UnreadAt(g int64) *Unknown {
	if i := slices.IndexFunc(s.Unknown, func(u Unknown) bool { return u.Generation == g }); i >= 0 {
		return &s.Unknown[i]
	}
	return nil
}

// Holding returns what a node has of a generation in force, or nil.
func (s *State) Holding(c Current) *Held {
	for i := range s.Held {
		if h := &s.Held[i]; h.Generation == c.Generation && h.Root == c.Root {
			return h
		}
	}
	return nil
}

// Interrupted reports whether a recovery of the node has not ended.
func (s *State) Interrupted() bool { return slices.Contains(s.Leftovers, StageName) }

// Load looks at a node. The key, if there is one, tells manifests that were made with it. Nodes is how many directories
// the run has.
func (n *Node) Load(key []byte, nodes int) *State {
	s := &State{Dir: n.DirName, Meta: n.Meta, Name: n.Name, Node: -1, Added: n.Added, ReadOnly: n.ReadOnly, Writer: n.Writer}
	if n.Dir == nil {
		s.Lost, s.Failing, s.Unreachable = n.Failing == "", n.Failing, n.Absent != ""
		return s
	}
	s.Unlocked = n.Unlock == nil && n.Writer == nil
	n.Held, n.Unread = map[int64]*Loaded{}, map[int64]error{}
	files, entries, err := contents(n.Dir)
	if err != nil {
		s.Failing = err.Error()
		return s
	}
	s.Files = files
	s.Open = len(n.exposed(entries)) > 0
	s.Lost = !s.Files && isUnused(entries)
	for _, e := range entries {
		if Leftover(e.Name()) {
			s.Leftovers = append(s.Leftovers, e.Name())
		}
		if kind, g, ok := NameOf(e.Name()); ok {
			n.loadGeneration(s, e.Name(), g, kind == GenerationName, key, nodes)
		}
	}
	if slices.Contains(s.Leftovers, EndingName) && len(s.Numbers) == 0 {
		group, _ := disk.ReadText(n.Dir, MetaPath(EndingName), MostNode)
		s.Ended = string(group)
	}
	s.Say()
	return s
}

// loadGeneration adds to the state what the node has of a generation. A pending one without a good manifest was not completed.
func (n *Node) loadGeneration(s *State, name string, g int64, committed bool, key []byte, nodes int) {
	if !slices.Contains(s.Numbers, g) {
		s.Numbers = append(s.Numbers, g)
	}
	l, id, err, wrong := readGeneration(n.Dir, name, g)
	version := new(VersionError)
	switch {
	case errors.As(err, &version):
		s.UnknownVersion = version.Version
		return
	case err != nil && !committed && !disk.Failed(err):
		if s.Leftovers = append(s.Leftovers, name); !errors.Is(err, fs.ErrNotExist) {
			s.noteBad(n, name+"/"+ManifestFile, err)
		}
		return
	case err != nil:
		s.noteBad(n, name+"/"+ManifestFile, err)
		if len(s.Unknown) < mostUnknown {
			s.Unknown = append(s.Unknown, Unknown{g, committed, disk.Reason(err), disk.Failed(err), id.Group, id.Place})
		}
		if disk.Failed(err) {
			n.Unread[g] = err
		}
		return
	}
	if wrong != nil && !errors.Is(wrong, fs.ErrNotExist) {
		s.noteBad(n, name+"/"+NodeFile, wrong)
	}
	h := n.inspect(s, l, key)
	h.Committed = committed
	if h.Nodes != nodes || !committed && h.Epoch > 0 {
		h.Names = l.Manifest.Names
	}
	if r := l.Manifest.Replaces; r != nil && !committed {
		h.Replaces = r.Names
	}
	if info, err := n.Dir.Lstat(l.Path(ManifestFile)); err == nil {
		h.Since = info.ModTime()
	}
	if n.Held[g] != nil { // what is committed comes first, by the names
		s.Leftovers = append(s.Leftovers, name)
		return
	}
	s.Held, n.Held[g] = append(s.Held, h), l
}

// Say sets whose node this is: by the newest generation that is committed, or else by the newest.
func (s *State) Say() {
	s.Group, s.Claimed, s.Next, s.Node = "", protection.Place{}, protection.Place{}, -1
	list := slices.Clone(s.Held)
	for _, u := range s.Unknown {
		list = append(list, Held{Generation: u.Generation, Group: u.Group, Node: u.Place.Node, Nodes: u.Place.Nodes, Committed: u.Committed})
	}
	list = slices.DeleteFunc(list, func(h Held) bool { return h.Node < 0 || h.Nodes == 0 })
	if len(list) == 0 {
		return
	}
	newest := slices.MaxFunc(list, func(a, b Held) int {
		if a.Committed != b.Committed {
			return map[bool]int{true: 1, false: -1}[a.Committed]
		}
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Generation, b.Generation))
	})
	s.Group, s.Claimed, s.Node = newest.Group, protection.Place{Node: newest.Node, Nodes: newest.Nodes}, newest.Node
	for _, h := range list {
		if !h.Committed && h.Group == s.Group && h.Nodes != newest.Nodes {
			s.Next = protection.Place{Node: h.Node, Nodes: h.Nodes}
		}
	}
}

// exposed returns what of .volley, in which these lie, others may read or write, itself first. A directory in it
// hides what it has.
func (n *Node) exposed(entries []fs.DirEntry) []string {
	var list []string
	if info, err := n.Dir.Lstat(tree.MetaName); err == nil && !disk.Private(info) {
		list = append(list, tree.MetaName)
	}
	for _, e := range entries {
		if info, err := n.Dir.Lstat(MetaPath(e.Name())); err == nil && (info.Mode().IsRegular() || info.IsDir() && e.Name() != ReplacedName) && !disk.Private(info) {
			list = append(list, MetaPath(e.Name()))
		}
	}
	return list
}

// makePrivate closes to others what is in .volley: parity tells what is in the files of other nodes. What is another
// user's stays as it is, which load finds. A file of several names stays, too: the others may be anywhere.
func (n *Node) makePrivate() {
	entries, _ := n.Dir.ReadDir(tree.MetaName)
	for _, name := range n.exposed(entries) {
		if info, err := n.Dir.Lstat(name); err == nil && info.IsDir() {
			n.Dir.Chmod(name, 0o700)
			continue
		}
		f, err := n.Dir.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && disk.Linked(info) == (disk.FileID{}) {
			f.Chmod(0o600)
		}
		f.Close()
	}
}

func (s *State) noteBad(n *Node, name string, err error) {
	s.Bad = append(s.Bad, fmt.Sprintf("%s: %v", n.Path(tree.Name(MetaPath(name))), err))
}

// Held returns what a manifest says, which the key may vouch for.
func (l *Loaded) Held(key []byte) Held {
	m := l.Manifest
	return Held{
		Generation: m.Generation, Group: m.Group, Epoch: m.Epoch, Node: l.Node, Nodes: m.Nodes, Tolerate: m.Tolerate,
		Root: disk.Sum(l.Text), Bytes: int64(len(l.Text)), Keyed: m.MAC != "", Vouched: MadeWith(key, l.Text),
	}
}

// inspect reads the records of a generation that a node has, and looks for the parity. Whatever else has the name of one of
// these files is bad.
func (n *Node) inspect(s *State, l *Loaded, key []byte) Held {
	m := l.Manifest
	h := l.Held(key)
	noteIrregular := func(name string, info fs.FileInfo, err error) {
		if err == nil && !info.Mode().IsRegular() {
			s.noteBad(n, l.dir+"/"+name, disk.NotRegular(info.Mode()))
		}
	}
	changes, err := n.Changes(l, m)
	h.Complete = err == nil && l.Named
	for _, name := range append(changes.files(), ChangesFile) {
		info, err := n.Dir.Lstat(l.Path(name))
		noteIrregular(name, info, err)
	}
	if l.Node < 0 {
		return h
	}
	for i, f := range m.RecordFilesAt(l.Node) {
		_, err := n.Read(l, f)
		info, failed := n.Dir.Lstat(l.Path(f.Name))
		noteIrregular(f.Name, info, failed)
		if err != nil {
			h.Complete = false
			if disk.Failed(err) {
				h.Unread = append(h.Unread, fmt.Sprintf("%s (%s)", f.Name, disk.Reason(err)))
			}
			if i == 0 && disk.Failed(err) {
				n.Unread[m.Generation] = err
			}
			continue
		}
		h.Records = append(h.Records, i)
	}
	return h
}

// Leftover reports whether a name of .volley is of a run that was interrupted.
func Leftover(name string) bool {
	return strings.HasPrefix(name, temporary) || strings.HasPrefix(name, disk.Hidden)
}

// contents reports whether a directory has files that are not Volley's, and returns what is in .volley.
func contents(d disk.Dir) (files bool, entries []fs.DirEntry, err error) {
	top, err := d.ReadDir(".")
	if err == nil {
		files = slices.ContainsFunc(top, func(e fs.DirEntry) bool {
			return e.Name() != tree.MetaName && !strings.HasPrefix(e.Name(), disk.Hidden)
		})
		entries, err = d.ReadDir(tree.MetaName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return files, entries, err
}

// isUnused reports whether .volley holds only what a recovery begins with, and the notes of when something was read.
func isUnused(entries []fs.DirEntry) bool {
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != LockFile && e.Name() != ScrubName && !Leftover(e.Name())
	})
}

// NameOf takes the name of a generation's directory apart; kind is GenerationName or PendingName.
func NameOf(name string) (kind string, g int64, ok bool) {
	parts := generationNames.FindStringSubmatch(name)
	if parts == nil {
		return "", 0, false
	}
	g, err := strconv.ParseInt(parts[2], 10, 64)
	return parts[1], g, err == nil && g <= MostGeneration
}

var generationNames = regexp.MustCompile(`^(generation\.|pending\.)([1-9][0-9]*)$`)

// RollForward puts a pending generation in force at the node if it has the root: two runs may have made different ones.
func (n *Node) RollForward(g int64, root string) error {
	sum, err := disk.SumText(n.Dir, MetaPath(PendingDir(g), ManifestFile), MostManifest)
	if disk.Failed(err) {
		return err
	}
	if err != nil || sum != root {
		return nil // there is none, or it is no manifest
	}
	if err := n.remove(GenerationDir(g)); err != nil {
		return err
	}
	if err := n.Dir.Rename(MetaPath(PendingDir(g)), MetaPath(GenerationDir(g))); err != nil {
		return err
	}
	if l := n.Held[g]; l != nil {
		l.dir = GenerationDir(g)
	}
	return n.Sync()
}

// remove removes a generation. It has another name first: what is left of it, if that fails, is none.
func (n *Node) remove(name string) error {
	old := temporary + name
	if err := cmp.Or(disk.Discard(n.Dir, MetaPath(old)), n.MakeWay(old)); err != nil {
		return err
	}
	n.clear(name)
	switch err := n.Dir.Rename(MetaPath(name), MetaPath(old)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := n.Sync(); err != nil {
		return err
	}
	return disk.Discard(n.Dir, MetaPath(old))
}

// clear takes directories out of that of a generation, which has none. Those that this process may not move stay in it.
func (n *Node) clear(name string) {
	entries, _ := n.Dir.ReadDir(MetaPath(name))
	for _, e := range entries {
		if e.IsDir() {
			n.MakeWay(name, e.Name())
		}
	}
}

// Clean removes leftovers of interrupted runs, and all generations but g. All nodes have committed g.
func (n *Node) Clean(g int64) error {
	return n.discard(func(name string) bool {
		_, number, ok := NameOf(name)
		return Leftover(name) || ok && name != GenerationDir(number) || ok && number != g
	})
}

// Drop removes what the node has of a generation that no node has committed.
func (n *Node) Drop(g int64) error {
	return n.discard(func(name string) bool {
		_, number, ok := NameOf(name)
		return ok && number == g
	})
}

// discard removes what has some names of .volley.
func (n *Node) discard(matches func(name string) bool) error {
	entries, err := n.Dir.ReadDir(tree.MetaName)
	if err != nil {
		return err
	}
	removed := false
	for _, e := range entries {
		if !matches(e.Name()) {
			continue
		}
		removed = true
		remove := n.remove
		if Leftover(e.Name()) {
			remove = func(name string) error { return disk.Discard(n.Dir, MetaPath(name)) }
		}
		if err := remove(e.Name()); err != nil {
			return err
		}
	}
	if !removed {
		return nil
	}
	return n.Sync()
}

// Tidy removes what interrupted runs have left.
func (n *Node) Tidy(s *State) error {
	return n.discard(func(name string) bool { return slices.Contains(s.Leftovers, name) })
}

// LeftBytes returns how many bytes the leftovers of interrupted runs take: Tidy frees them.
func (n *Node) LeftBytes(s *State) (bytes int64) {
	var add func(name string)
	add = func(name string) {
		info, err := n.Dir.Lstat(name)
		switch {
		case err != nil:
		case info.Mode().IsRegular() && disk.Linked(info) == (disk.FileID{}): // else it has another name that stays
			bytes += disk.Allocated(info)
		case info.IsDir():
			list, _ := n.Dir.ReadDir(name)
			for _, e := range list {
				add(path.Join(name, e.Name()))
			}
		}
	}
	for _, name := range s.Leftovers {
		add(MetaPath(name))
	}
	return bytes
}

// A Write is a file that is to be written at a node, whole, while everything else stays where it is.
type Write struct {
	Bytes int64  // at least
	Dir   string // on whose file system; "": on that of .volley
}

// Writes is what is to be written at a node, and the bytes that go before.
type Writes struct {
	Node  *Node
	List  []Write
	Freed int64
}

// Sync makes the names in .volley last.
func (n *Node) Sync() error { return n.Dir.SyncDir(tree.MetaName) }

// Finish writes what else a new generation has, the manifest last, and makes all of it last. What records have of the one in
// force is kept.
func (n *Node) Finish(inForce int64, m *Manifest, files []*RecordFile, text []byte) error {
	dir := PendingDir(m.Generation)
	for _, f := range files {
		file, err := n.keepSpans(inForce, dir, f)
		if err != nil {
			file = f.Content
		}
		if err := n.WriteFile(dir, f.Name, file); err != nil {
			return err
		}
	}
	_, err := n.Complement(dir, m, text)
	return err
}

// GenerationDir returns the name of the directory of a generation that comes back at the node: the one that it has, or a new one. One
// of another root is none.
func (n *Node) GenerationDir(g int64, root string) (string, error) {
	for _, name := range []string{GenerationDir(g), PendingDir(g)} {
		dir := MetaPath(name)
		info, err := n.Dir.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", err
		}
		sum, err := disk.SumText(n.Dir, path.Join(dir, ManifestFile), MostManifest)
		if info.IsDir() && (disk.Failed(err) || err == nil && sum == root || name == GenerationDir(g) && n.Held[g] == nil) {
			return name, nil
		}
		if err := n.remove(name); err != nil {
			return "", err
		}
	}
	return PendingDir(g), n.Dir.Mkdir(MetaPath(PendingDir(g)), 0o700)
}

// Complement writes what the directory of a generation lacks of node.json and the manifest, which is last, and makes it
// last. It reports whether anything was written.
func (n *Node) Complement(dir string, m *Manifest, manifest []byte) (written bool, err error) {
	id, err := n.identity(m)
	if err != nil {
		return false, err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{NodeFile, id}, {ManifestFile, manifest}} {
		if current, err := disk.ReadText(n.Dir, MetaPath(dir, f.name), int64(len(f.text))); err == nil && bytes.Equal(current, f.text) {
			continue
		}
		if err := n.WriteFile(dir, f.name, f.text); err != nil {
			return false, err
		}
		written = true
	}
	return written, cmp.Or(n.Sync(), n.Dir.SyncDir("."))
}

// Complements returns what Complement writes where the node has nothing of the generation.
func (n *Node) Complements(m *Manifest, manifest []byte) []Write {
	id, _ := n.identity(m)
	return []Write{{Bytes: int64(len(id))}, {Bytes: int64(len(manifest))}}
}

// identity returns the content of node.json.
func (n *Node) identity(m *Manifest) ([]byte, error) {
	text, err := json.Marshal(m.identity(n.Index))
	if err != nil {
		return nil, err
	}
	return disk.Seal(text), nil
}

// Mark notes at a node that the protection of a group ends.
func (n *Node) Mark(group string) error {
	if n.Dir == nil {
		return nil
	}
	return n.WriteFile("", EndingName, []byte(group))
}

// Forget removes what is Volley's at a node: manifests, all else, and the mark last, unless that is to stay. What else lies
// in .volley stays.
func (n *Node) Forget(keepMark bool) error {
	if n.Dir == nil {
		return nil
	}
	for _, matches := range []func(name string) bool{
		func(name string) bool {
			_, _, ok := NameOf(name)
			return ok
		},
		func(name string) bool {
			return name == ScrubName || Leftover(name) && name != EndingName
		},
		func(name string) bool { return name == EndingName && !keepMark },
	} {
		if err := n.discard(matches); err != nil {
			return err
		}
		if err := n.Sync(); err != nil {
			return err
		}
	}
	if err := n.Dir.Remove(MetaPath(ReplacedName)); !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) { // or it holds what was not Volley's
		return err
	}
	return nil
}
