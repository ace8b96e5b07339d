// Package site says whether the hosts of a group can work, before anything is protected: what each finds at its
// directories, and what that comes to for all of them. It changes nothing.
package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// A Directory is a directory that is to be looked at.
type Directory struct {
	Dir     string
	Step    *int64   // unless nil it is a root of snapshots, of which this one, or the newest for [session.Latest], is looked at
	Meta    string   // where its parity comes; "": beside its files
	Exclude []string // patterns of what is not protected; nil: as in an earlier run

	OneFileSystem *bool // what is mounted below is not protected; nil: as in an earlier run
}

// Validate says what is wrong with the patterns.
func (p Directory) Validate() error { return tree.Excludes(p.Exclude).Validate() }

// An Inspection is what a host finds at a directory.
type Inspection struct {
	Machine string `json:"machine,omitempty"` // the same for all directories of a machine; "": not known
	Disk    string `json:"disk,omitempty"`    // of the machine; "": not known
	OnRoot  bool   `json:"on_root"`           // it lies on the file system of /
	User    string `json:"user,omitempty"`    // whom the files are read and written as
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`             // of these
	AtMost  bool   `json:"at_most,omitempty"` // there was no time to count all: it has no more bytes than that
	Free    *int64 `json:"free_bytes"`        // where its parity comes; nil: not known
	Room    string `json:"room,omitempty"`    // which file system of the machine that is; "": not known

	// What an earlier run has protected, if any.
	Protected bool `json:"protected"`
	Tolerate  int  `json:"tolerate,omitempty"`

	Faults  []Fault `json:"faults,omitempty"`
	Seconds float64 `json:"seconds"` // that looking has taken
}

// Validate says what is wrong with a node that another machine has told of.
func (n *Inspection) Validate() error {
	if n == nil {
		return errors.New("nothing was found")
	}
	if n.Files < 0 || n.Bytes < 0 || n.Bytes > mostBytes || n.Free != nil && *n.Free < 0 || n.Tolerate < 0 || n.Tolerate > store.MostNodes {
		return fmt.Errorf("%d files, %d bytes, R of %d: want what a node can have", n.Files, n.Bytes, n.Tolerate)
	}
	return nil
}

// mostBytes of a node are 4 PiB: the parity of all nodes can be counted.
const mostBytes = 1 << 52

// A Fault is why a group cannot work.
type Fault struct {
	Kind FaultKind `json:"kind"`
	Text string    `json:"what"`
}

// A FaultKind is a kind of fault.
type FaultKind string

// Kinds of faults at a directory.
const (
	NoDirectory  FaultKind = "no directory"
	NoPermission FaultKind = "no permission"
	Closed       FaultKind = "closed files"
	NoMount      FaultKind = "no mount"
	NoRoom       FaultKind = "no room"
	Unreadable   FaultKind = "cannot be read"
)

// The time to count the files of a node: it is spent before ranks meet.
const mostLook = 3 * time.Second

// A machine is what is looked at; tests have one of their own.
type machine struct {
	disk.Disk
	name   string
	access func(path string, write bool) error
	room   func(path string) (free, used int64, err error)
	device func(fs.FileInfo) string
	onRoot func(fs.FileInfo) bool
}

// Look looks at a directory of this machine, for a few seconds at most.
func Look(ctx context.Context, p Directory) Inspection {
	return look(ctx, &machine{disk.OS, disk.ThisHost().Boot, disk.Access, disk.Room, disk.Device, onRoot}, p)
}

// onRoot reports whether something lies on the file system of /.
func onRoot(info fs.FileInfo) bool {
	root, err := os.Stat("/")
	fileSystem := disk.Identity(info).FileSystem()
	return err == nil && fileSystem != "" && fileSystem == disk.Identity(root).FileSystem()
}

func look(ctx context.Context, m *machine, p Directory) (n Inspection) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, mostLook)
	defer cancel()
	n.Machine, n.User = m.name, disk.UserName()
	if err := n.examine(ctx, m, p); err != nil {
		kind := Unreadable
		switch {
		case errors.Is(err, fs.ErrNotExist):
			kind = NoDirectory
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			kind = NoPermission
		}
		n.Faults = append(n.Faults, Fault{kind, n.faultText(kind, err)})
	}
	n.Seconds = time.Since(begun).Seconds()
	return n
}

// faultText returns what is wrong, and where.
func (n *Inspection) faultText(kind FaultKind, err error) string {
	subject := "it"
	if e := new(fs.PathError); errors.As(err, &e) && filepath.IsAbs(e.Path) {
		subject = e.Path
	}
	switch kind {
	case NoDirectory:
		return "there is no such directory"
	case NoPermission:
		return fmt.Sprintf("user %s may not read and write %s: %s", n.User, subject, disk.Reason(err))
	}
	return fmt.Sprintf("%s cannot be read: %s", subject, disk.Reason(err))
}

// examine looks at the directory, as far as it can be opened.
func (n *Inspection) examine(ctx context.Context, m *machine, p Directory) error {
	dir := p.Dir
	d, err := m.Open(dir)
	if err != nil {
		return err
	}
	defer func() { d.Close() }()
	info, err := d.Lstat(".")
	if err != nil {
		return err
	}
	n.Disk = m.device(info)
	n.OnRoot = m.onRoot(info)
	parity := d.Path()
	if p.Meta != "" {
		if parity, info, err = existing(m, p.Meta); err != nil {
			return err
		}
	}
	free, used, err := m.room(parity)
	if err == nil {
		n.Free, n.Room = &free, disk.Identity(info).FileSystem()
	}
	if err := cmp.Or(m.access(d.Path(), p.Meta == ""), m.access(parity, true)); err != nil {
		return err
	}
	if p.Step != nil {
		step := *p.Step
		if step == session.Latest {
			steps, err := session.StepsIn(m, dir)
			if err != nil || steps == nil {
				return err
			}
			step = steps[0]
		}
		snapshot, err := d.Sub(session.StepName(step))
		if errors.Is(err, fs.ErrNotExist) { // the node has lost it, as an empty root has all
			return nil
		}
		if err != nil {
			return err
		}
		d.Close()
		d = snapshot
	}
	rules := tree.Rules{Exclude: p.Exclude}
	if earlier := store.NewestManifest(d); earlier != nil {
		n.Protected, n.Tolerate = true, earlier.Tolerate
		rules = earlier.Rules()
		if p.Exclude != nil {
			rules.Exclude = p.Exclude
		}
	}
	if p.OneFileSystem != nil {
		rules.OneFileSystem = *p.OneFileSystem
	}
	return n.count(ctx, m, d, rules, used)
}

// count counts the files below a directory, and notes what this user may not read. Where there is no time to count all,
// the node has at most what its file system uses.
func (n *Inspection) count(ctx context.Context, m *machine, d disk.Dir, rules tree.Rules, used int64) error {
	l, err := tree.Scan(timedDir{d, ctx}, false, rules)
	if err != nil {
		return err
	}
	for _, e := range l.Entries {
		if e.Type != tree.TypeFile { // links take no room, and others are not protected
			continue
		}
		var err error
		if ctx.Err() == nil { // else there is no time to try it
			err = m.access(tree.JoinPath(d.Path(), e.Path), false)
		}
		switch {
		case err == nil:
			n.Files, n.Bytes = n.Files+1, n.Bytes+e.Size
		case !errors.Is(err, fs.ErrNotExist): // else it has gone meanwhile
			l.Bad[e.Path] = err
		}
	}
	maps.DeleteFunc(l.Bad, func(_ tree.Name, err error) bool { return errors.Is(err, ctx.Err()) })
	if err := l.Bad["."]; err != nil {
		return err
	}
	if closed := slices.Sorted(maps.Keys(l.Bad)); closed != nil {
		text := fmt.Sprintf("%s: %s", tree.JoinPath(d.Path(), closed[0]), disk.Reason(l.Bad[closed[0]]))
		if len(closed) > 1 {
			text = fmt.Sprintf("%s, and %d more such", text, len(closed)-1)
		}
		n.Faults = append(n.Faults, Fault{Closed, text})
	}
	if err = ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		n.AtMost, n.Bytes, err = true, max(n.Bytes, used), nil
	}
	n.Bytes = min(n.Bytes, mostBytes)
	return err
}

// A timedDir tells of nothing any more when its context has ended.
type timedDir struct {
	disk.Dir
	ctx context.Context
}

func (d timedDir) Lstat(name string) (fs.FileInfo, error) {
	if err := d.ctx.Err(); err != nil {
		return nil, err
	}
	return d.Dir.Lstat(name)
}

// existing returns the nearest directory that is there.
func existing(m *machine, dir string) (path string, info fs.FileInfo, err error) {
	current, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	d, err := m.Open(current)
	for errors.Is(err, fs.ErrNotExist) && current != filepath.Dir(current) {
		current = filepath.Dir(current)
		d, err = m.Open(current)
	}
	if err != nil {
		return "", nil, err
	}
	defer d.Close()
	info, err = d.Lstat(".")
	return d.Path(), info, err
}
