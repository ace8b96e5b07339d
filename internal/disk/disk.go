// Package disk is the file system for packages that keep data: directories, and relative names below them. Every call
// that can fail or be the last before a crash goes through [Disk] and [Dir], so that tests can make each of them fail.
package disk

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"volley/files"
)

// A Disk opens directories by their paths.
type Disk interface {
	// Open opens a directory. The error is fs.ErrNotExist where there is none.
	Open(path string) (Dir, error)
}

// A Dir is an open directory. Names are relative, their parts separated by slashes; "." is the directory itself. No
// name leads out of it, and none is followed through a symbolic link: where a part of a name is one, the error is
// syscall.ENOTDIR. Errors are those of package os.
type Dir interface {
	// Path returns the path without symbolic links in it.
	Path() string

	// Sub opens a directory below. It stays the same one whatever has its name later.
	Sub(name string) (Dir, error)

	// OpenFile opens a regular file, and nothing else.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)

	Mkdir(name string, perm fs.FileMode) error
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Readlink(name string) (string, error)
	Symlink(target, name string) error
	Link(old, name string) error
	Rename(old, name string) error

	// Exchange gives each of two the other's name, in one step. The error is errors.ErrUnsupported where the system or
	// the file system cannot.
	Exchange(first, second string) error

	Remove(name string) error
	Chmod(name string, mode fs.FileMode) error

	// Chown sets the user and the group, of a symbolic link those of the link itself.
	Chown(name string, uid, gid int) error

	// Attributes returns the extended attributes that this process may read, access control lists and capabilities
	// among them. SetAttribute sets one, RemoveAttribute takes one away. They are bytes.
	Attributes(name string) (map[string]string, error)
	SetAttribute(name, attribute, value string) error
	RemoveAttribute(name, attribute string) error

	// SetTime sets the time of the last change, of a symbolic link that of the link itself.
	SetTime(name string, modified time.Time) error

	// WriteBack writes to the disk what programs have written to mappings of a file, so that the next such write moves
	// the file's times: it does so once between two write-backs. Without wait another call has to follow. The error is
	// errors.ErrUnsupported where the file system writes nothing back, as it is in memory: there no such write need move a
	// time.
	WriteBack(name string, wait bool) error

	// SyncDir makes the names in a directory last, and its mode and time.
	SyncDir(name string) error

	// SyncAll makes everything written to the directory's file system last, symbolic links, too.
	SyncAll() error

	// Lock takes a lock on a file, which it makes if need be. It does not wait: the error is a [*files.BusyError] where
	// another run has it. The kernel drops it with the process. Unlock removes the file if asked to.
	Lock(name string, shared bool, holder files.Holder) (unlock func(remove bool), err error)

	// Room returns how many bytes this user may write yet to the file system that a directory is on, and how many a file
	// there takes at least if it has any; 1: nobody knows.
	Room(name string) (free, block int64, err error)

	Close() error
}

// A File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	Sync() error
	Truncate(size int64) error

	// Hole reports whether n bytes lie in a hole, or behind the end: they are zeros, and need not be read. It says no where
	// nobody knows. It moves where Read reads.
	Hole(offset, n int64) bool
}

// Zeros reports whether all bytes are zero.
func Zeros(p []byte) bool { return len(p) == 0 || p[0] == 0 && bytes.Equal(p[1:], p[:len(p)-1]) }

// A FileID tells a file from all others of a machine, whatever its name.
type FileID struct{ device, inode uint64 }

// Volume returns what all files of its file system share; zero: nobody knows.
func (f FileID) Volume() FileID { return FileID{device: f.device} }

// SharesFileSystem reports whether two lie on one file system, or nobody knows.
func (f FileID) SharesFileSystem(o FileID) bool {
	return f.device == o.device || f == (FileID{}) || o == (FileID{})
}

// FileSystem returns what tells the file system of a file from all others of a machine; "": nobody knows.
func (f FileID) FileSystem() string {
	if f == (FileID{}) {
		return ""
	}
	return fmt.Sprintf("%x", f.device)
}

// A HostID is a machine, or what looks like one to its programs, since it was started.
type HostID struct {
	Name string
	Boot string `json:",omitempty"` // tells hosts of one name apart; "": it is not known
}

// ThisHost returns the host that runs this process.
func ThisHost() HostID {
	name, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // which other systems than Linux do not have
	return HostID{Name: name, Boot: strings.TrimSpace(string(boot))}
}

// Kind returns what has a mode.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// NotRegular is the error of what is to be a regular file.
func NotRegular(m fs.FileMode) error { return fmt.Errorf("is a %s, and no regular file", Kind(m)) }

// OpenInput opens a regular file of any directory, without waiting where it is none.
func OpenInput(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: NotRegular(info.Mode())}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Among reports whether one of the files of these names is the one.
func Among(file fs.FileInfo, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && os.SameFile(info, file)
	})
}

// ReadText returns a regular file of at most that many bytes, none of them zero: a hole costs its maker nothing.
func ReadText(d Dir, name string, limit int64) ([]byte, error) {
	var text bytes.Buffer
	err := readText(d, name, limit, &text)
	return text.Bytes(), err
}

// SumText returns the SHA-256, in hexadecimal, of what ReadText returns, without holding it.
func SumText(d Dir, name string, limit int64) (string, error) {
	h := sha256.New()
	err := readText(d, name, limit, h)
	return hex.EncodeToString(h.Sum(nil)), err
}

// Sum returns the SHA-256 of data, in hexadecimal.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Seal adds a line with the SHA-256 to a line of JSON.
func Seal(line []byte) []byte {
	return fmt.Appendf(slices.Clip(line), "\n{\"sha256\":%q}\n", Sum(line))
}

// Unseal returns the line of JSON if it is what was sealed.
func Unseal(data []byte) ([]byte, error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	if !bytes.Equal(data, Seal(line)) {
		return nil, errors.New("line 2 is not the SHA-256 of line 1: the file is damaged")
	}
	return line, nil
}

// Reason says in few words why something cannot be read, or made.
func Reason(err error) string {
	if e := new(fs.PathError); errors.As(err, &e) {
		return e.Err.Error()
	}
	if e := new(os.LinkError); errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// Failed reports whether an error says that the disk does not give what is there, and not that there is nothing.
func Failed(err error) bool {
	failed := syscall.Errno(0)
	return errors.As(err, &failed) && failed != syscall.ENOENT
}

// RemoveAll removes a file, or a directory with everything in it. One that is missing is no error.
func RemoveAll(d Dir, name string) error {
	info, err := d.Lstat(name)
	if err == nil && info.IsDir() {
		if info.Mode()&0o700 != 0o700 {
			d.Chmod(name, 0o700) // or removing fails
		}
		var entries []fs.DirEntry
		entries, err = d.ReadDir(name)
		for _, e := range entries {
			err = cmp.Or(err, RemoveAll(d, name+"/"+e.Name()))
		}
	}
	if err == nil {
		err = d.Remove(name)
	}
	return ignoreMissing(err)
}

func readText(d Dir, name string, limit int64, writer io.Writer) error {
	f, err := d.OpenFile(name, 0, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > limit {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: errTooLong}
	}
	if err != nil {
		return err
	}
	part := make([]byte, min(info.Size()+1, 256<<10))
	for remaining := limit; remaining > 0; {
		n, err := f.Read(part[:min(int64(len(part)), remaining)])
		if bytes.IndexByte(part[:n], 0) >= 0 {
			return &fs.PathError{Op: "read", Path: f.Name(), Err: errNoText}
		}
		remaining -= int64(n)
		writer.Write(part[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nearest opens a directory, or the nearest one above it that is there, and returns its path and the missing names.
func nearest(d Disk, dir string) (base Dir, above string, missing []string, err error) {
	above = filepath.Clean(dir)
	base, err = d.Open(above)
	for ; (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && above != filepath.Dir(above); base, err = d.Open(above) {
		missing, above = append(missing, filepath.Base(above)), filepath.Dir(above)
	}
	slices.Reverse(missing)
	return base, above, missing, err
}

// RealPath returns the path of a directory without symbolic links in it, or the one that a missing directory would get.
func RealPath(d Disk, dir string) (string, error) {
	base, _, missing, err := nearest(d, dir)
	if err != nil {
		return "", err
	}
	defer base.Close()
	return filepath.Join(append([]string{base.Path()}, missing...)...), nil
}

// Above returns the identities of a directory and of all that it lies in, itself first; zero where one is not known. A
// directory may have several paths, as by a mount.
func Above(d Disk, dir string) (ids []FileID) {
	for {
		ids = append(ids, identityAt(d, dir))
		if dir == filepath.Dir(dir) {
			return ids
		}
		dir = filepath.Dir(dir)
	}
}

func identityAt(d Disk, dir string) FileID {
	opened, err := d.Open(dir)
	if err != nil {
		return FileID{}
	}
	defer opened.Close()
	info, err := opened.Lstat(".")
	if err != nil {
		return FileID{}
	}
	return Identity(info)
}

// Unmake returns what removes a directory, and those above it, that are missing now and are made later, by whomever, as
// far as they are empty then.
func Unmake(d Disk, dir string) (undo func()) {
	base, above, missing, err := nearest(d, dir)
	if err != nil {
		return func() {}
	}
	base.Close()
	for i := range missing[min(1, len(missing)):] {
		missing[i+1] = path.Join(missing[i], missing[i+1])
	}
	return func() { removeEmpty(d, above, missing) }
}

// removeEmpty removes directories below another one, the last first, as far as they are empty.
func removeEmpty(d Disk, above string, names []string) {
	base, err := d.Open(above)
	if err != nil {
		return
	}
	defer base.Close()
	for _, name := range slices.Backward(names) {
		if info, err := base.Lstat(name); err == nil && info.IsDir() {
			base.Remove(name) // fails, as it should, where something lies in it
		}
	}
}

// Make makes a directory and those missing above it, lastingly. Undo removes those it has made, while empty.
func Make(d Disk, dir string, perm fs.FileMode) (undo func(), err error) {
	base, above, missing, err := nearest(d, dir)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	if err := lasts(d, base.Path()); err != nil {
		return nil, err
	}
	var created []string
	undo = func() { removeEmpty(d, above, created) }
	name := "."
	for _, part := range missing {
		name = path.Join(name, part)
		err := base.Mkdir(name, perm)
		if err == nil {
			created = append(created, name)
			err = base.SyncDir(path.Dir(name))
		} else if info, statErr := base.Lstat(name); statErr == nil && info.IsDir() {
			err = nil // another process has made it meanwhile
		} else if statErr == nil {
			reason := error(syscall.ENOTDIR)
			if info.Mode()&fs.ModeSymlink != 0 {
				reason = nowhere{}
			}
			err = &fs.PathError{Op: "mkdir", Path: filepath.Join(above, filepath.FromSlash(name)), Err: reason}
		}
		if err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}

// Nowhere is why there is no directory where a symbolic link leads to none.
type nowhere struct{}

func (nowhere) Error() string {
	return "it is a symbolic link that leads nowhere: mount what it leads to, or remove the link"
}

func (nowhere) Unwrap() error { return syscall.ENOTDIR }

// lasts makes the name of a directory last: a run may have made it, and been killed before it could. A directory whose
// parent it cannot read or sync it has not made.
func lasts(d Disk, dir string) error {
	if dir == filepath.Dir(dir) {
		return nil
	}
	parent, err := d.Open(filepath.Dir(dir))
	if err == nil {
		err = parent.SyncDir(".")
		parent.Close()
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// MkdirAll makes a directory below d and those above it that are missing, and makes their names last.
func MkdirAll(d Dir, name string, perm fs.FileMode) error {
	if info, err := d.Lstat(name); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		if name == "." {
			return nil
		}
		return d.SyncDir(path.Dir(name)) // a run that was killed may have made it
	} else if !errors.Is(err, fs.ErrNotExist) || name == "." {
		return err
	}
	parent := path.Dir(name)
	if err := MkdirAll(d, parent, perm); err != nil {
		return err
	}
	if err := d.Mkdir(name, perm); err != nil {
		return err
	}
	return d.SyncDir(parent)
}

// Discard removes a file, or a directory with the files in it. A directory in it that is not empty stays, and so does
// the directory itself: somebody may have moved there what only others may remove.
func Discard(d Dir, name string) error {
	info, err := d.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	if info.IsDir() {
		entries, err := d.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := d.Remove(name + "/" + e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	if err := d.Remove(name); !errors.Is(err, fs.ErrExist) { // which is that of a directory that is not empty
		return ignoreMissing(err)
	}
	return nil
}
