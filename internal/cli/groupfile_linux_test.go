package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestGroupFileUmask writes a group file where the umask lets others write files: it can be read again.
func TestGroupFileUmask(t *testing.T) {
	dir := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o002))
	file := filepath.Join(dir, "group.yaml")
	mustRun(t, "group", "init", "--tolerate", "1", "-o", file, "/none/a", "/none/b")
	if r := volleyRun("status", "--group", file); strings.Contains(r.stderr, "chmod") {
		t.Errorf("%+v", r)
	}
}
