package tune_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"volley/tune"
)

// TestSaveReadOnly checks that a directory in which nothing can be written is named, and the
// file in it stays.
func TestSaveReadOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tune.json")
	want := example()
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o777) })
	other := example()
	other.Ranks++
	runtime.LockOSThread() // which alone is nobody, not root
	syscall.Setfsuid(65534)
	err := other.Save(path)
	syscall.Setfsuid(os.Getuid())
	runtime.UnlockOSThread()
	if err == nil || !strings.Contains(err.Error(), dir) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got error %v", err)
	}
	if got := load(t, path); !reflect.DeepEqual(got, []*tune.Result{want}) {
		t.Errorf("got %+v", got)
	}
}
