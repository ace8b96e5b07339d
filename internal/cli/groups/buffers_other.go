//go:build !unix

package groups

import "errors"

var errNoSharing = errors.New("this system does not share memory with the caller by descriptors")

func duplicate(int) (int, error)              { return 0, errNoSharing }
func grow(int, int64) error                   { return errNoSharing }
func mapSpans([]span, bool) ([][]byte, error) { return nil, errNoSharing }
