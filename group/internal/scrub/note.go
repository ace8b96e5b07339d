// Package scrub has verify read a node by and by: what a share of it is, and what is noted of the reading.
package scrub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"volley/files"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

const (
	file    = "read.json"
	format  = "volley-scrub"
	version = 1
)

// mostWrong is how many places are noted that were not right, and mostBytes bounds the bytes of the file.
const (
	mostWrong = 1000
	mostBytes = 16 << 20
)

// A Note is how far verify has read a node. It belongs to the node, and to no generation: it goes by names of files.
type Note struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Group   string `json:"group"`
	Node    int    `json:"node"`

	Begun time.Time `json:"begun,omitzero"`  // when a share last began with the first file
	Next  *Spot     `json:"next,omitempty"`  // where the next share goes on; nil: it begins with the first file
	Whole *Period   `json:"whole,omitempty"` // in which all of the node was read, the last one; nil: there was none
	Wrong []Spot    `json:"wrong,omitempty"` // what was not as it was protected when it was last read
}

// A Spot is a byte of a file, or of the parity, which comes after all files.
type Spot struct {
	Path   tree.Name `json:"path,omitempty"`
	Parity bool      `json:"parity,omitempty"`
	Offset int64     `json:"offset"`
	Since  time.Time `json:"since,omitzero"` // of what is wrong: when that was found first
}

// Compare orders spots as shares read them: files by the bytes of their paths, and the parity last.
func (a Spot) Compare(b Spot) int {
	if a.Parity != b.Parity {
		if b.Parity {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(string(a.Path), string(b.Path)), cmp.Compare(a.Offset, b.Offset))
}

// A Period is when something was done.
type Period struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Load returns what is noted of the node in a group, and the text of it. The error is fs.ErrNotExist where nothing is
// noted.
func Load(n *store.Node, m *store.Manifest) (x *Note, text []byte, err error) {
	if n.Dir == nil {
		return nil, nil, fs.ErrNotExist
	}
	if text, err = disk.ReadText(n.Dir, store.MetaPath(store.ScrubName, file), mostBytes); err != nil {
		return nil, nil, err
	}
	line, err := disk.Unseal(text)
	if err == nil {
		x = new(Note)
		err = json.Unmarshal(line, x)
	}
	switch {
	case err != nil:
	case x.Format != format || x.Version != version:
		err = fmt.Errorf("format, version: %q, %d: this program knows %q, %d", x.Format, x.Version, format, version)
	case x.Group != m.Group || x.Node != n.Index:
		err = fmt.Errorf("group, node: %s, %d: this is node %d of %s", x.Group, x.Node, n.Index, m.Group)
	}
	if err != nil {
		return nil, text, err
	}
	return x, text, nil
}

// save notes how far the node was read. Was is the text of what was noted before: where another run has noted
// something since, or is about to, that stays, and no error is returned.
func save(n *store.Node, m *store.Manifest, x *Note, was []byte, holder files.Holder) error {
	if n.Unlock == nil {
		return errors.New("it could not be locked")
	}
	x.Format, x.Version, x.Group, x.Node = format, version, m.Group, n.Index
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(n.Dir, store.MetaPath(store.ScrubName), 0o700); err != nil {
		return err
	}
	unlock, err := n.Dir.Lock(store.MetaPath(store.ScrubName, store.LockFile), false, holder)
	if errors.As(err, new(*files.BusyError)) { // another run is about to
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock(false)
	if _, is, _ := Load(n, m); !bytes.Equal(is, was) {
		return nil
	}
	entries, err := n.Dir.ReadDir(store.MetaPath(store.ScrubName))
	if err != nil {
		return err
	}
	for _, e := range entries { // what a run that was cut off has left
		if store.Leftover(e.Name()) {
			if err := disk.Discard(n.Dir, store.MetaPath(store.ScrubName, e.Name())); err != nil {
				return err
			}
		}
	}
	return n.WriteFile(store.ScrubName, file, disk.Seal(line))
}
