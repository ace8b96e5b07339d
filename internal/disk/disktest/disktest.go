// Package disktest is disks for tests. A [Machine] is a file system in memory: it shows what is left when a program, or the
// machine, ends at any call, and what a program does when a call fails. A [Committer] is a row of the sweep that all goes
// through that commits something. [Lockless] has locks that nobody else sees.
package disktest

import (
	"encoding/json"
	"os"
	"path/filepath"

	"volley/files"
	"volley/internal/disk"
)

// Lockless is a disk of the machine whose locks reach nobody else, as on some shared file systems.
type Lockless struct{ disk.Disk }

// Open implements [disk.Disk].
func (d Lockless) Open(path string) (disk.Dir, error) {
	dir, err := d.Disk.Open(path)
	if err != nil {
		return nil, err // and no directory around none
	}
	return locklessDir{dir}, nil
}

type locklessDir struct{ disk.Dir }

func (d locklessDir) Lock(name string, _ bool, holder files.Holder) (func(bool), error) {
	text, err := json.Marshal(holder)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Path(), name), text, 0o600)
	}
	return func(bool) {}, err
}
