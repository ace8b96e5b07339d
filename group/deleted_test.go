package group

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"volley/group/protection"
)

// TestLostAhead has a disk lose a file, or a recovery not bring one back: protect refuses to make that final. What users have
// deleted stays so when recover brings something else back in the same directory.
func TestLostAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	w.deletes = true
	must(t, w.protect())
	w.Wait(1e9)
	w.Lose("/n1/sub/x")
	input := new(protection.RefusedError)
	if err := w.protect(); !errors.As(err, &input) || input.Option != protection.OptionForce || !strings.Contains(err.Error(), "/n1/sub/x") {
		t.Errorf("%v", err)
	}
	must(t, w.recover())
	must(t, w.protect())

	w.RemoveAll("/n1")
	w.Deny("/n1/plain", syscall.EACCES, "rename", "link")
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	if err != nil || r.Incomplete() == nil {
		t.Errorf("%+v, %v", r, err)
	}
	w.Lift("/n1/plain")
	if err := w.protect(); !errors.As(err, &input) || !strings.Contains(err.Error(), "/n1/plain") {
		t.Errorf("a file that recover could not bring back: %v", err)
	}
	must(t, w.recover())
	must(t, w.whole())

	w.Wait(1e9)
	must(t, w.protect())
	w.Remove("/n1/plain")
	w.Overwrite("/n1/big", 3, []byte("rot"), true)
	r, err = w.recoverBy(w.Process(), RecoverOptions{})
	if err != nil || r.Files != 1 || len(r.Deleted) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, w.protect())
	if _, err := w.Lstat("/n1/plain"); err == nil {
		t.Error("what users have deleted is there again")
	}
}
