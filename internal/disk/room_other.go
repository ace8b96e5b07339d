//go:build !linux && !darwin && !freebsd

package disk

import "errors"

// Room knows nothing.
func Room(string) (free, used int64, err error) { return 0, 0, errors.ErrUnsupported }
