package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	errTooLong  = errors.New("longer than such a file can be")
	errNoText   = errors.New("holds bytes that are zero, and is no text")
	errNames    = errors.New("is another name of a file elsewhere: remove it")
	errReplaced = errors.New("has been replaced meanwhile")
	errOutside  = errors.New("leads out of the directory")
)

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// OS is the file system of the machine.
var OS Disk = System{}

// A System is the file system of the machine, with options.
type System struct {
	// HolderTime is how long a run may take from a lock to its name in it, and from its name to the end of the lock.
	// Lock tries again for so long before it says that a directory is busy. 0 is 500 ms.
	HolderTime time.Duration
}

const defaultHolderTime = 500 * time.Millisecond

// Open follows a symbolic link that is the directory itself, as who gave the path means the directory behind it.
func (s System) Open(path string) (Dir, error) {
	resolved, err := filepath.Abs(path)
	if err == nil {
		resolved, err = filepath.EvalSymlinks(resolved)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	root, err := os.OpenRoot(resolved)
	if err != nil {
		return nil, err
	}
	return &osDir{root: &opened{Root: root}, path: resolved, holderTime: cmp.Or(s.HolderTime, defaultHolderTime)}, nil
}

// An opened directory gets a descriptor for what os.Root has no calls for.
type opened struct {
	*os.Root
	turn sync.Mutex
	file *os.File // nil: none was needed yet
}

func (o *opened) descriptor() (int, error) {
	o.turn.Lock()
	defer o.turn.Unlock()
	var err error
	if o.file == nil {
		o.file, err = o.Open(".")
	}
	if err != nil {
		return -1, err
	}
	return int(o.file.Fd()), nil
}

func (o *opened) Close() error {
	if o.file != nil {
		o.file.Close()
	}
	return o.Root.Close()
}

type osDir struct {
	root       *opened
	path       string
	holderTime time.Duration

	turn   sync.Mutex
	recent *opened // the directory that was read in last, as most names follow others of their directory
	name   string  // of it
}

func (d *osDir) Path() string { return d.path }

// errLink says that a part of a name is a symbolic link. os.Root follows those that stay inside, to other nodes' files.
var errLink = fmt.Errorf("is a symbolic link: %w", syscall.ENOTDIR)

// withParent calls f with the directory that a name lies in, through no symbolic links, and its last part.
func (d *osDir) withParent(name string, f func(parent *opened, last string) error) error {
	d.forget()
	dirName, last, err := d.split(name)
	if err != nil {
		return err
	}
	parent := d.root
	if dirName != "." {
		if parent, err = d.walk(dirName); err != nil {
			return d.withPath(name, err)
		}
		defer parent.Close()
	}
	return d.withPath(name, f(parent, last))
}

// reading is withParent, for what changes nothing.
func (d *osDir) reading(name string, f func(parent *opened, last string) error) error {
	dirName, last, err := d.split(name)
	if err != nil {
		return err
	}
	if dirName == "." {
		return d.withPath(name, f(d.root, last))
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.recent == nil || d.name != dirName {
		recent, err := d.walk(dirName)
		if err != nil {
			return d.withPath(name, err)
		}
		d.drop()
		d.recent, d.name = recent, dirName
	}
	return d.withPath(name, f(d.recent, last))
}

// forget closes what reading has kept open: it may have another name soon.
func (d *osDir) forget() {
	d.turn.Lock()
	defer d.turn.Unlock()
	d.drop()
}

func (d *osDir) drop() {
	if d.recent != nil {
		d.recent.Close()
		d.recent = nil
	}
}

// split returns the directory that a name lies in, and the last part.
func (d *osDir) split(name string) (dirName, last string, err error) {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return "", "", &fs.PathError{Op: "open", Path: filepath.Join(d.path, name), Err: errOutside}
	}
	return filepath.Dir(name), filepath.Base(name), nil
}

func (d *osDir) walk(name string) (*opened, error) {
	current := d.root
	walked := ""
	for part := range strings.SplitSeq(name, string(filepath.Separator)) {
		walked = filepath.Join(walked, part)
		next, err := openDir(current, part)
		if current != d.root {
			current.Close()
		}
		if errors.Is(err, syscall.ENOTDIR) { // which part it is tells what to do
			return nil, d.withPath(walked, err)
		}
		if err != nil {
			return nil, err
		}
		current = next
	}
	return current, nil
}

// openDir opens a directory that is no symbolic link, also not one that takes its place just now.
func openDir(parent *opened, name string) (*opened, error) {
	expected, err := parent.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case expected.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: errLink}
	case !expected.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	dir := &opened{Root: root}
	info, err := dir.Stat(".")
	if err == nil && !os.SameFile(info, expected) {
		err = &fs.PathError{Op: "open", Path: name, Err: errLink}
	}
	if err != nil { // such as that of a directory that may be read, and not entered
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// inDir calls f with a directory.
func (d *osDir) inDir(name string, f func(*opened) error) error {
	return d.withParent(name, func(parent *opened, last string) error {
		if last == "." {
			return f(parent)
		}
		dir, err := openDir(parent, last)
		if err != nil {
			return err
		}
		defer dir.Close()
		return f(dir)
	})
}

func (d *osDir) Sub(name string) (sub Dir, err error) {
	return sub, d.withParent(name, func(parent *opened, last string) error {
		root, err := openDir(parent, last)
		if err == nil {
			sub = &osDir{root: root, path: filepath.Join(d.path, filepath.FromSlash(name)), holderTime: d.holderTime}
		}
		return err
	})
}

func (d *osDir) OpenFile(name string, flag int, perm fs.FileMode) (file File, err error) {
	visit := d.withParent
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC) == 0 {
		visit = d.reading
	}
	return file, visit(name, func(parent *opened, last string) error {
		var expected fs.FileInfo
		if flag&os.O_EXCL == 0 {
			switch expected, err = parent.Lstat(last); {
			case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
				expected = nil
				flag |= os.O_EXCL
			case err != nil:
				return err
			case !expected.Mode().IsRegular():
				return &fs.PathError{Op: "open", Path: last, Err: NotRegular(expected.Mode())}
			default:
				flag &^= os.O_CREATE
			}
		}
		f, err := parent.OpenFile(last, flag|nonblock, perm)
		if err != nil {
			return err
		}
		if expected != nil {
			opened, err := f.Stat()
			if err == nil && !os.SameFile(opened, expected) {
				err = &fs.PathError{Op: "open", Path: last, Err: errReplaced}
			}
			if err != nil {
				f.Close()
				return err
			}
		}
		file = osFile{f, filepath.Join(d.path, name)}
		return nil
	})
}

// osFile has its whole path for a name.
type osFile struct {
	*os.File
	path string
}

func (f osFile) Name() string { return f.path }

// withPath gives an error of a part of a name the whole path.
func (d *osDir) withPath(name string, err error) error {
	if e := new(fs.PathError); errors.As(err, &e) && !filepath.IsAbs(e.Path) {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(d.path, name), Err: e.Err}
	}
	return err
}

func (d *osDir) Mkdir(name string, perm fs.FileMode) error {
	return d.withParent(name, func(parent *opened, last string) error { return parent.Mkdir(last, perm) })
}

// read returns what f does of the directory that a name lies in, and of its last part. It changes nothing.
func read[T any](d *osDir, name string, f func(parent *opened, last string) (T, error)) (result T, err error) {
	err = d.reading(name, func(parent *opened, last string) error {
		result, err = f(parent, last)
		return err
	})
	return result, err
}

func (d *osDir) Lstat(name string) (fs.FileInfo, error) { return read(d, name, (*opened).Lstat) }

func (d *osDir) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = d.inDir(name, func(dir *opened) error {
		list, err = fs.ReadDir(dir.FS(), ".")
		return err
	})
	return list, err
}

func (d *osDir) Readlink(name string) (string, error) { return read(d, name, (*opened).Readlink) }

func (d *osDir) Symlink(target, name string) error {
	return d.linkError(target, name, d.withParent(name, func(parent *opened, last string) error { return parent.Symlink(target, last) }))
}

// linkError is the error of two names.
func (d *osDir) linkError(old, name string, err error) error {
	if err == nil {
		return nil
	}
	linkErr := &os.LinkError{Op: "link", Old: old, New: filepath.Join(d.path, name), Err: err}
	if e := new(os.LinkError); errors.As(err, &e) {
		linkErr.Op, linkErr.Err = e.Op, e.Err
	} else if e := new(fs.PathError); errors.As(err, &e) && !errors.Is(err, syscall.ENOTDIR) {
		linkErr.Err = e.Err
	}
	return linkErr
}

// withParents calls f with the directories that two names lie in, and their last parts.
func (d *osDir) withParents(old, name string, f func(source *opened, old string, target *opened, last string) error) error {
	err := d.withParent(old, func(source *opened, first string) error {
		return d.withParent(name, func(target *opened, last string) error { return f(source, first, target, last) })
	})
	return d.linkError(filepath.Join(d.path, old), name, err)
}

func (d *osDir) Link(old, name string) error { return d.withParents(old, name, d.link) }

// Rename replaces no directory, not even an empty one: so does package os.
func (d *osDir) Rename(old, name string) error {
	return d.withParents(old, name, func(source *opened, first string, target *opened, last string) error {
		if info, err := target.Lstat(last); err == nil && info.IsDir() {
			if _, err := source.Lstat(first); err == nil {
				return &os.LinkError{Op: "rename", Err: syscall.EEXIST}
			}
		}
		return d.rename(source, first, target, last)
	})
}

func (d *osDir) Exchange(firstName, secondName string) error {
	return d.withParents(firstName, secondName, func(a *opened, first string, b *opened, second string) error {
		return exchange(a, first, b, second)
	})
}

func (d *osDir) Remove(name string) error {
	return d.withParent(name, func(parent *opened, last string) error { return parent.Remove(last) })
}

// Chmod opens a directory for it. A file's directory is not others' to write to, or they reach its neighbours at most.
func (d *osDir) Chmod(name string, mode fs.FileMode) error {
	return d.withParent(name, func(parent *opened, last string) error {
		info, err := parent.Lstat(last)
		switch {
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return &fs.PathError{Op: "chmod", Path: last, Err: syscall.ELOOP}
		case info.IsDir() && last != ".":
			dir, err := openDir(parent, last)
			if err != nil {
				return err
			}
			defer dir.Close()
			return dir.Chmod(".", mode)
		}
		return parent.Chmod(last, mode)
	})
}

func (d *osDir) Chown(name string, uid, gid int) error {
	return d.withParent(name, func(parent *opened, last string) error { return parent.Lchown(last, uid, gid) })
}

func (d *osDir) SetTime(name string, modified time.Time) error {
	return d.withParent(name, func(parent *opened, last string) error { return setTime(parent, last, modified) })
}

func (d *osDir) Attributes(name string) (map[string]string, error) { return read(d, name, attributes) }

func (d *osDir) SetAttribute(name, attribute, value string) error {
	return d.withParent(name, func(parent *opened, last string) error { return setAttribute(parent, last, attribute, value) })
}

func (d *osDir) RemoveAttribute(name, attribute string) error {
	return d.withParent(name, func(parent *opened, last string) error { return removeAttribute(parent, last, attribute) })
}

func (d *osDir) WriteBack(name string, wait bool) error {
	return d.reading(name, func(parent *opened, last string) error {
		f, err := parent.OpenFile(last, os.O_RDONLY|nonblock, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return writeBack(f, wait)
	})
}

func (d *osDir) SyncDir(name string) error {
	return d.inDir(name, func(dir *opened) error { return syncDir(dir.Open(".")) })
}

func (d *osDir) SyncAll() error {
	f, err := d.root.Open(".")
	if err != nil {
		return d.withPath(".", err)
	}
	return errors.Join(syncAll(f), f.Close())
}

func (d *osDir) Close() error {
	d.forget()
	return d.root.Close()
}

// ReadSecret returns up to limit bytes of a file that only its owner, the caller or root, can read or change.
func ReadSecret(path string, limit int64) ([]byte, error) {
	f, info, err := OpenInput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, _, ok := Owner(info); ok && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %#o, with which others can read or change it: chmod 600 it", path, info.Mode().Perm())
	}
	if err := ofOthers(path, info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// ReadTrusted returns up to limit bytes of a file that only its owner, the caller or root, can change, or replace by
// another one. All may read it.
func ReadTrusted(path string, limit int64) ([]byte, error) {
	f, info, err := OpenInput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if err := changeable(path, info, "change it"); err != nil {
		return nil, err
	}
	for _, dir := range slices.Compact([]string{filepath.Dir(path), filepath.Dir(real)}) {
		info, err := os.Stat(dir)
		if err == nil && info.Mode()&fs.ModeSticky == 0 { // with it, files are their owners' to replace
			err = changeable(dir, info, "replace "+path)
		}
		if err == nil {
			err = ofOthers(dir, info)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := ofOthers(path, info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// changeable returns an error where others than its owner can write a file or a directory, and so do that.
func changeable(path string, info fs.FileInfo, action string) error {
	if _, _, ok := Owner(info); !ok || info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return fmt.Errorf("%s has mode %#o, with which others can %s: chmod go-w %s", path, info.Mode().Perm(), action, path)
}

// ofOthers returns an error where the owner of a file or a directory is neither the caller nor root.
func ofOthers(path string, info fs.FileInfo) error {
	owner, _, ok := Owner(info)
	if !ok || owner == 0 || owner == int64(os.Geteuid()) {
		return nil
	}
	noun := "file"
	if info.IsDir() {
		noun = "directory"
	}
	return fmt.Errorf("%s is user %d's, who can change it: give a %s of your own, or root's", path, owner, noun)
}
