package groups

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"volley/group/protection"
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
		{&protection.TooManyError{Nodes: []string{"a"}, Tolerate: 0}, ""},
		{&fs.PathError{Op: "read", Path: "/n1/b", Err: syscall.EIO}, ""},
	} {
		got := wayOn(c.err)
		text, advice, _ := strings.Cut(got.Error(), "; ")
		if text != c.err.Error() || advice != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v: %v, want %q", c.err, got, c.want)
		}
	}
}
