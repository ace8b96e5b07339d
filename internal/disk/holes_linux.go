package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

func (f osFile) Hole(offset, n int64) bool {
	data, err := f.Seek(offset, unix.SEEK_DATA)
	return err == nil && data >= offset+n || errors.Is(err, unix.ENXIO) // no data follows
}
