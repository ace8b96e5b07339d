package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClosedDirectory has a directory that may be read and not entered: nobody takes it for a symbolic link.
func TestClosedDirectory(t *testing.T) {
	at := t.TempDir()
	for _, dir := range []string{filepath.Dir(at), at} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(at, "closed", "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(at, "closed"), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(at, "closed"), 0o755)
	d, err := OS.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if os.Geteuid() == 0 { // who may enter everything
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		unix.SetfsuidRetUid(65534)
		defer unix.SetfsuidRetUid(0)
	}
	_, read := d.ReadDir("closed")
	_, sub := d.Sub("closed")
	_, stat := d.Lstat("closed/in")
	for _, err := range []error{read, sub, stat} {
		if !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "link") {
			t.Errorf("%v", err)
		}
	}
}
