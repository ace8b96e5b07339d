package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

var (
	errNotRegular = errors.New("not a regular file")
	errTooLong    = errors.New("longer than such a file can be")
	errNotDir     = error(syscall.ENOTDIR)
)

func dirOf(name string) string { return path.Dir(name) }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// OS is the file system of the machine.
var OS Disk = osDisk{}

type osDisk struct{}

func (osDisk) Open(path string) (Dir, error) {
	whole, err := filepath.Abs(path)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(whole)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotDir}
	}
	root, err := os.OpenRoot(whole)
	if err != nil {
		return nil, err
	}
	return &osDir{root, whole}, nil
}

func (osDisk) Make(path string, perm fs.FileMode) (undo func(), err error) {
	var made []string // the innermost first
	undo = func() {
		for _, dir := range made {
			os.Remove(dir) // fails, as it should, where something lies in it
		}
	}
	for up := filepath.Clean(path); ; up = filepath.Dir(up) {
		if _, err := os.Lstat(up); !errors.Is(err, fs.ErrNotExist) {
			break // at the latest for "." or "/"
		}
		made = append(made, up)
	}
	if err := os.MkdirAll(path, perm); err != nil {
		undo()
		return nil, err
	}
	for _, dir := range slices.Backward(made) {
		if err := syncDir(os.OpenFile(filepath.Dir(dir), os.O_RDONLY, 0)); err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}

type osDir struct {
	root *os.Root
	path string
}

func (d *osDir) Path() string { return d.path }

func (d *osDir) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := d.root.OpenFile(filepath.FromSlash(name), flag|nonblock, perm)
	if err != nil {
		return nil, d.whole(err)
	}
	return osFile{f, filepath.Join(d.path, name)}, nil
}

// osFile has its whole path for a name.
type osFile struct {
	*os.File
	path string
}

func (f osFile) Name() string { return f.path }

// whole gives an error of a relative name the whole path.
func (d *osDir) whole(err error) error {
	if e := new(fs.PathError); errors.As(err, &e) && !filepath.IsAbs(e.Path) {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(d.path, e.Path), Err: e.Err}
	}
	if e := new(os.LinkError); errors.As(err, &e) && !filepath.IsAbs(e.New) {
		return &os.LinkError{Op: e.Op, Old: filepath.Join(d.path, e.Old), New: filepath.Join(d.path, e.New), Err: e.Err}
	}
	return err
}

func (d *osDir) Mkdir(name string, perm fs.FileMode) error {
	return d.whole(d.root.Mkdir(filepath.FromSlash(name), perm))
}

func (d *osDir) Lstat(name string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(filepath.FromSlash(name))
	return info, d.whole(err)
}

func (d *osDir) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, d.whole(err)
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int {
		if a.Name() < b.Name() {
			return -1
		}
		return 1
	})
	return list, d.whole(err)
}

func (d *osDir) Readlink(name string) (string, error) {
	target, err := d.root.Readlink(filepath.FromSlash(name))
	return target, d.whole(err)
}

func (d *osDir) Symlink(target, name string) error {
	return d.whole(d.root.Symlink(target, filepath.FromSlash(name)))
}

func (d *osDir) Link(old, name string) error {
	return d.whole(d.root.Link(filepath.FromSlash(old), filepath.FromSlash(name)))
}

func (d *osDir) Rename(old, name string) error {
	return d.whole(d.root.Rename(filepath.FromSlash(old), filepath.FromSlash(name)))
}

func (d *osDir) Remove(name string) error {
	return d.whole(d.root.Remove(filepath.FromSlash(name)))
}

func (d *osDir) Chmod(name string, mode fs.FileMode) error {
	return d.whole(d.root.Chmod(filepath.FromSlash(name), mode))
}

func (d *osDir) SetTime(name string, at time.Time) error {
	return d.whole(d.setTime(filepath.FromSlash(name), at))
}

func (d *osDir) SyncDir(name string) error {
	return d.whole(syncDir(d.root.Open(filepath.FromSlash(name))))
}

func (d *osDir) SyncAll() error {
	f, err := d.root.Open(".")
	if err != nil {
		return d.whole(err)
	}
	return errors.Join(syncAll(f), f.Close())
}

func (d *osDir) Close() error { return d.root.Close() }

// A Holder is who has a lock.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Verb  string    `json:"verb"`
	Since time.Time `json:"since"`
	Run   string    `json:"run"` // a name that the processes of one run share
	Rank  int       `json:"rank"`
}

// HolderOf returns the holder that this process is.
func HolderOf(verb, run string) Holder {
	host, _ := os.Hostname()
	return Holder{PID: os.Getpid(), Host: host, Verb: verb, Since: time.Now().Truncate(time.Second), Run: run}
}

// A BusyError says that another run has a lock.
type BusyError struct {
	Path   string // of the directory that it uses
	Holder Holder // zero where that is not known
}

func (e *BusyError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("%s is busy: another run of volley uses it; wait until that has ended", e.Path)
	}
	return fmt.Sprintf("%s is busy: volley %s uses it since %s (process %d on %s); wait until that has ended, or end it",
		e.Path, e.Holder.Verb, e.Holder.Since.Format(time.DateTime), e.Holder.PID, e.Holder.Host)
}

// A SharedError says that two ranks of one run have a directory.
type SharedError struct {
	Path  string
	Ranks [2]int
}

func (e *SharedError) Error() string {
	return fmt.Sprintf("ranks %d and %d have one directory, %s: give each its own", e.Ranks[0], e.Ranks[1], e.Path)
}

// Confirm returns an error where a file that this process has locked says that another has
// locked it since: a [*SharedError] where that is of the same run, else a [*BusyError]. File
// systems allow that whose locks do not reach other machines.
func Confirm(d Dir, name string, mine Holder) error {
	text, err := ReadFile(d, name, 1<<12)
	var now Holder
	switch {
	case err != nil || json.Unmarshal(text, &now) != nil: // it says nothing
		return nil
	case now.Run != mine.Run:
		return &BusyError{Path: d.Path(), Holder: now}
	case now.PID != mine.PID || now.Host != mine.Host || now.Rank != mine.Rank:
		return &SharedError{d.Path(), [2]int{min(mine.Rank, now.Rank), max(mine.Rank, now.Rank)}}
	}
	return nil
}

// alive reports whether a holder may still run.
func alive(h Holder) bool {
	host, err := os.Hostname()
	return err != nil || host != h.Host || running(h.PID)
}

// holderTime is how long a run may take from the lock to its name in it, and from its name to
// the end of the lock.
const holderTime = 500 * time.Millisecond

func (d *osDir) Lock(name string, shared bool, holder Holder) (func(remove bool), error) {
	file := filepath.Join(d.path, filepath.FromSlash(name))
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "lock", Path: file, Err: errNotRegular}
	}
	start := time.Now()
	for {
		l := flock.New(file, flock.SetPermissions(0o600))
		try := l.TryLock
		if shared {
			try = l.TryRLock
		}
		ok, err := try()
		if err != nil {
			return nil, err
		}
		if !ok {
			l.Close()
			busy := &BusyError{Path: d.path}
			text, err := os.ReadFile(file)
			if known := err == nil && json.Unmarshal(text, &busy.Holder) == nil && alive(busy.Holder); !known {
				busy.Holder = Holder{}
				if time.Since(start) < holderTime { // it is about to say who it is, or to end
					time.Sleep(holderTime / 50)
					continue
				}
			}
			return nil, busy
		}
		// Its file may have been removed by the run that had the lock before.
		mine, err := l.Stat()
		there, err2 := os.Lstat(file)
		if err != nil || err2 != nil || !os.SameFile(mine, there) {
			l.Close()
			continue
		}
		text, err := json.Marshal(holder)
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil && !shared { // who only reads may not be able to write
			l.Close()
			return nil, err
		}
		return func(remove bool) {
			if shared && remove { // as long as nobody else has it
				l.Unlock()
				l = flock.New(file, flock.SetFlag(os.O_RDWR))
				if remove, _ = l.TryLock(); remove {
					mine, err := l.Stat()
					there, err2 := os.Lstat(file)
					remove = err == nil && err2 == nil && os.SameFile(mine, there)
				}
			}
			switch {
			case remove:
				os.Remove(file)
			case !shared:
				os.Truncate(file, 0)
			}
			l.Close()
		}, nil
	}
}
