package group

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"volley/internal/atomicfile"
)

// What lies in a node's .volley, <g> being a generation:
//
//	node.json           group and number of the node
//	manifest.<g>.json   the manifest; where any node has it, all have what it speaks of
//	pending.<g>.json    it, until all nodes have it and their parity
//	parity.<g>          the parity chunks, one after the other
//	tmp-*               what an interrupted run has left
//	replaced/           files that were recovered although they had been written to since
const (
	nodeFile     = "node.json"
	manifestName = "manifest."
	pendingName  = "pending."
	parityName   = "parity."
	temporary    = "tmp-"
	replacedName = "replaced"
)

// A node is one of the group whose directory is here.
type node struct {
	index int
	dir   string // as it was given
	root  string // without symbolic links in it; where there is none yet, dir
}

// identity is what node.json holds.
type identity struct {
	Format string `json:"format"`
	Group  string `json:"group"`
	Node   int    `json:"node"`
}

// path returns that of an entry.
func (n *node) path(p Name) string { return join(n.root, p) }

// meta returns the path of a file of .volley.
func (n *node) meta(name string) string { return filepath.Join(n.root, metaName, name) }

func (n *node) manifest(g int64) string { return n.meta(fmt.Sprint(manifestName, g, ".json")) }
func (n *node) pending(g int64) string  { return n.meta(fmt.Sprint(pendingName, g, ".json")) }
func (n *node) parity(g int64) string   { return n.meta(fmt.Sprint(parityName, g)) }

// A state is what is found of a node before anything else is looked at.
type state struct {
	Dir       string
	Lost      bool // no directory, or nothing in it
	Node      int  // that it says it is, or -1
	Group     string
	Manifests []stored // readable ones
	Bad       []string // others, and why they are not
	Newest    int64    // generation of which there is any file
}

// stored is a manifest that a node has.
type stored struct {
	Generation int64
	Committed  bool
	Group      string
	SHA256     string
	Nodes      int
}

// load looks at a node.
func (n *node) load() (*state, error) {
	s := &state{Dir: n.dir, Node: -1}
	all, err := os.ReadDir(n.root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(all) == 0 {
		s.Lost = true
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(n.root, metaName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if text, err := os.ReadFile(n.meta(nodeFile)); err == nil {
		var id identity
		if text, err = unseal(text); err == nil {
			err = json.Unmarshal(text, &id)
		}
		if err == nil && id.Format != Format {
			err = fmt.Errorf("format: %q: want %q", id.Format, Format)
		}
		if err != nil {
			s.Bad = append(s.Bad, fmt.Sprintf("%s: %v", n.meta(nodeFile), err))
		} else {
			s.Node, s.Group = id.Node, id.Group
		}
	}
	for _, e := range entries {
		kind, g, ok := generationOf(e.Name())
		if !ok {
			continue
		}
		s.Newest = max(s.Newest, g)
		if kind == parityName {
			continue
		}
		text, err := os.ReadFile(n.meta(e.Name()))
		if err != nil {
			return nil, err
		}
		m, err := DecodeManifest(text)
		if err == nil && m.Generation != g {
			err = fmt.Errorf("generation: %d", m.Generation)
		}
		if err != nil {
			s.Bad = append(s.Bad, fmt.Sprintf("%s: %v", n.meta(e.Name()), err))
			continue
		}
		s.Manifests = append(s.Manifests, stored{g, kind == manifestName, m.Group, sum(text), m.Nodes})
	}
	return s, nil
}

// generationOf takes a name of .volley apart.
func generationOf(name string) (kind string, g int64, ok bool) {
	for _, kind := range []string{manifestName, pendingName, parityName} {
		rest, found := strings.CutPrefix(name, kind)
		if kind != parityName && found {
			rest, found = strings.CutSuffix(rest, ".json")
		}
		if !found {
			continue
		}
		g, err := strconv.ParseInt(rest, 10, 64)
		return kind, g, err == nil && g > 0 && fmt.Sprint(g) == rest
	}
	return "", 0, false
}

// clean removes what is not of the generation: earlier and later ones and what interrupted
// runs have left. A pending manifest of it becomes one, as another node has it.
func (n *node) clean(g int64) error {
	entries, err := os.ReadDir(filepath.Join(n.root, metaName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		_, of, ok := generationOf(e.Name())
		if strings.HasPrefix(e.Name(), temporary) || strings.HasPrefix(e.Name(), atomicfile.Hidden) || ok && of != g {
			if err := os.RemoveAll(n.meta(e.Name())); err != nil {
				return err
			}
		}
	}
	if _, err := os.Lstat(n.pending(g)); err == nil {
		if err := os.Rename(n.pending(g), n.manifest(g)); err != nil {
			return err
		}
		return n.sync()
	}
	return nil
}

// sync makes the names in .volley last.
func (n *node) sync() error { return atomicfile.SyncDir(filepath.Join(n.root, metaName)) }

// identify writes node.json.
func (n *node) identify(group string) error {
	text, err := json.Marshal(identity{Format, group, n.index})
	if err != nil {
		return err
	}
	return atomicfile.Write(n.meta(nodeFile), seal(text))
}

// A current is the generation that counts.
type current struct {
	generation int64 // 0: the group was never protected
	manifest   *Manifest
	text       []byte // as stored
	newest     int64  // generation of which any node has a file
}

// latest finds out the generation that counts from what all nodes have: the last one that
// any node has committed. It returns an error that names a node where they do not belong
// together, and the node to take the manifest from.
func latest(states []*state) (c current, from int, err error) {
	from = -1
	var group string
	var named int // by this node
	for n, s := range states {
		c.newest = max(c.newest, s.Newest)
		if s.Node >= 0 && s.Node != n {
			return c, -1, inputf("%s is node %d of its group and was given as node %d: give the directories in the order in which they were protected", s.Dir, s.Node, n)
		}
		names := []string{s.Group}
		for _, m := range s.Manifests {
			names = append(names, m.Group)
		}
		for _, name := range names {
			switch {
			case name == "":
			case group == "":
				group, named = name, n
			case name != group:
				return c, -1, inputf("%s belongs to another group than %s: give the directories of one group", s.Dir, states[named].Dir)
			}
		}
		for _, m := range s.Manifests {
			if m.Committed {
				c.generation = max(c.generation, m.Generation)
			}
		}
	}
	var digest string
	for n, s := range states {
		for _, m := range s.Manifests {
			if m.Generation != c.generation {
				continue
			}
			switch {
			case from < 0:
				from, digest = n, m.SHA256
			case m.SHA256 != digest:
				return c, -1, inputf("%s and %s have different manifests of generation %d: they are not of one group", states[from].Dir, s.Dir, c.generation)
			}
			if m.Nodes != len(states) {
				return c, -1, inputf("%s: a group of %d nodes, and %d were given: give them all, lost ones too", s.Dir, m.Nodes, len(states))
			}
		}
	}
	return c, from, nil
}

// has reports whether a node has the manifest of a generation.
func (s *state) has(g int64) bool {
	return slices.ContainsFunc(s.Manifests, func(m stored) bool { return m.Generation == g })
}
