package groups

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"volley/group/protection"
	"volley/internal/grouptext"
)

// TestWayOn looks for what errors advise, at most once.
func TestWayOn(t *testing.T) {
	denied := &fs.PathError{Op: "openat", Path: "/n1/b", Err: syscall.EACCES}
	for _, c := range []struct {
		err  error
		want string
	}{
		{denied, "run the verb as the owner of the files"},
		{fmt.Errorf("n1: %w", denied), "run the verb as the owner of the files"},
		{&protection.RefusedError{Err: denied, Option: protection.OptionForce}, "--force protects the group as it is"},
		{&protection.RefusedError{Err: errors.New("none"), Option: protection.OptionTolerate}, "say it with --tolerate R"},
		{&protection.RefusedError{Err: denied, Option: protection.OptionAcceptDeleted}, "volley recover --revert changed,deleted --group g brings it back; if it was meant, --accept deleted"},
		{&protection.UnreachableError{Nodes: []string{"h7:/a b"}, Since: time.Now()}, "or take it out, and give its files up: volley resize --force --remove 'h7:/a b' --group g"},
		{&protection.TooManyError{Nodes: []string{"a"}, Tolerate: 0}, ""},
		{&fs.PathError{Op: "read", Path: "/n1/b", Err: syscall.EIO}, ""},
	} {
		got := wayOn(c.err, grouptext.Style{Nodes: "--group g"})
		advice, whole := strings.CutPrefix(got.Error(), c.err.Error())
		if advice = strings.TrimPrefix(advice, "; "); !whole || advice != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v: %v, want %q", c.err, got, c.want)
		}
	}
}
