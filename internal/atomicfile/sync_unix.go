//go:build unix

package atomicfile

import "os"

// SyncDir makes renames in the directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
