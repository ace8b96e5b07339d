// Package testprogram writes programs that tests run.
package testprogram

import (
	"syscall"

	"volley/internal/disk"
)

// Write writes a program or a script. Meanwhile this process starts no other: that one would have the file open for writing
// until it is another program itself, and until then nobody can run the file ("text file busy").
func Write(name string, text []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return disk.WriteMode(disk.OS, name, text, 0o755)
}
