package store

import (
	"fmt"

	"volley/group/protection"
)

func Inputf(format string, args ...any) error {
	return &protection.RefusedError{Err: fmt.Errorf(format, args...)}
}
