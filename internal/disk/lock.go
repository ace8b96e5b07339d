package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"volley/files"

	"github.com/gofrs/flock"
)

// HolderOf returns the holder that this process is.
func HolderOf(verb, run string) files.Holder {
	host, _ := os.Hostname()
	return files.Holder{PID: os.Getpid(), User: userName(), Host: host, Verb: verb, Since: time.Now().Truncate(time.Second), Run: run}
}

// userName returns what the user of this process is called.
var userName = sync.OnceValue(func() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint(os.Geteuid())
})

// Confirm returns an error where a file that this process has locked says that another has
// locked it since: a [*files.SharedError] where that is of the same run, else a [*files.BusyError]. File
// systems allow that whose locks do not reach other machines.
func Confirm(d Dir, name string, mine files.Holder) error {
	text, err := ReadText(d, name, mostHolder)
	var current files.Holder
	switch {
	case err != nil || json.Unmarshal(text, &current) != nil: // it says nothing
		return nil
	case current.Run == mine.Run && current.Rank == mine.Rank && current.PID == mine.PID && current.Host == mine.Host:
		return nil
	}
	return (&files.BusyError{Path: d.Path(), Holder: current}).SeenBy(mine)
}

// alive reports whether a holder may still run, and notes whether it is stopped.
func alive(h *files.Holder) bool {
	host, err := os.Hostname()
	if err != nil || host != h.Host {
		return true
	}
	h.Stopped = stopped(h.PID)
	return running(h.PID)
}

func (d *osDir) Lock(name string, shared bool, holder files.Holder) (func(remove bool), error) {
	pause, waited := d.holderTime/1000, time.Duration(0) // what it has slept: a machine that stood still meanwhile has not tried
	for {
		unlock, patience, err := d.tryLock(name, shared, holder)
		if err == nil || waited >= patience {
			return unlock, err
		}
		time.Sleep(pause)
		waited += pause
		pause = min(2*pause, d.holderTime/50)
	}
}

// tryLock is Lock, once. Patience is for how long an error may be that of a run just taking or giving back the lock.
func (d *osDir) tryLock(name string, shared bool, holder files.Holder) (unlock func(remove bool), patience time.Duration, err error) {
	file := filepath.Join(d.path, filepath.FromSlash(name))
	access := os.O_RDWR
	if shared {
		access = os.O_RDONLY
	}
	// The lock goes by a path, which may lead elsewhere by now: nothing is made there.
	f, err := d.OpenFile(name, access|os.O_CREATE, 0o600)
	if err != nil {
		_, missing := d.Lstat(path.Dir(name))
		if missing == nil && (errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errReplaced)) {
			patience = 4 * d.holderTime
		}
		return nil, patience, err
	}
	f.Close()
	l := flock.New(file, flock.SetFlag(access|nofollow|nonblock))
	try := l.TryLock
	if shared {
		try = l.TryRLock
	}
	ok, err := try()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 4 * d.holderTime, err
	}
	if err != nil {
		return nil, 0, &fs.PathError{Op: "lock", Path: file, Err: notLocked(err)}
	}
	if !ok {
		l.Close()
		busy := &files.BusyError{Path: d.path}
		text, err := ReadText(d, name, mostHolder)
		if err != nil || json.Unmarshal(text, &busy.Holder) != nil || !alive(&busy.Holder) || busy.Holder.Matches(holder) {
			return nil, d.holderTime, &files.BusyError{Path: d.path} // it is about to say who it is, or to end
		}
		if shared { // another reader has the lock for a moment, to remove its file
			patience = d.holderTime
		}
		return nil, patience, busy
	}
	if !d.isNamed(l, name) { // its file has been removed by the run that had the lock before
		l.Close()
		return nil, 4 * d.holderTime, &fs.PathError{Op: "lock", Path: file, Err: errReplaced}
	}
	text, err := json.Marshal(holder)
	if err == nil {
		err = d.overwrite(name, text)
	}
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) // it can be read, and its lock goes without a name
	if err != nil && !full && (!shared || errors.Is(err, errNames)) {        // who only reads may not be able to write
		l.Close()
		return nil, 0, err
	}
	return func(remove bool) {
		if shared && remove { // as long as nobody else has it
			l.Unlock()
			l = flock.New(file, flock.SetFlag(os.O_RDWR|nofollow|nonblock))
			if remove, _ = l.TryLock(); remove {
				remove = d.isNamed(l, name)
			}
		}
		switch {
		case remove:
			d.Remove(name)
		case !shared:
			d.overwrite(name, nil)
		}
		l.Close()
	}, 0, nil
}

// notLocked is why the kernel gives no lock.
func notLocked(err error) error {
	if cause := new(fs.PathError); errors.As(err, &cause) {
		err = cause.Err
	}
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK) {
		return fmt.Errorf("its file system has no locks (flock: %w): mount it with them, or keep .volley elsewhere by --meta", err)
	}
	return fmt.Errorf("its lock is not given (flock: %w)", err)
}

// mostHolder bounds the bytes of a lock.
const mostHolder = 4 << 10

// isNamed reports whether a name is that of the file of a lock.
func (d *osDir) isNamed(l *flock.Flock, name string) bool {
	mine, err := l.Stat()
	present, err2 := d.Lstat(name)
	return err == nil && err2 == nil && os.SameFile(mine, present)
}

// overwrite writes the file of a lock. One of several names is not a lock: it may be another's file.
func (d *osDir) overwrite(name string, text []byte) error {
	f, err := d.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && Linked(info) != (FileID{}) {
		err = &fs.PathError{Op: "lock", Path: f.Name(), Err: errNames}
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.Write(text)
	}
	return errors.Join(err, f.Close())
}
