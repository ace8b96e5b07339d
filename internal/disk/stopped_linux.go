package disk

import (
	"bytes"
	"fmt"
	"os"
)

// stopped reports whether a signal has stopped a process of this host.
func stopped(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, ok := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return err == nil && ok && len(after) > 0 && after[0] == 'T'
}
