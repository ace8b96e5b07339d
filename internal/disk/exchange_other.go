//go:build !linux

package disk

import (
	"errors"
	"os"
)

// exchange swaps nothing: there is no portable call.
func exchange(*os.Root, string, *os.Root, string) error { return errors.ErrUnsupported }
