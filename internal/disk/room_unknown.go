//go:build !linux

package disk

import "path/filepath"

func (d *osDir) Room(name string) (free, block int64, err error) {
	free, _, err = Room(filepath.Join(d.path, filepath.FromSlash(name)))
	return free, 1, err
}
