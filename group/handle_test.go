package group

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/group/protection"
)

// TestOpenRefused opens directories that are no nodes of a group: an input error says why, and nothing is made.
func TestOpenRefused(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	a, b := filepath.Join(at, "a"), filepath.Join(at, "b")
	for _, x := range []struct {
		dirs []string
		o    protection.Settings
		want string
	}{
		{[]string{a, b, a}, protection.Settings{}, "are the same directory"},
		{[]string{a, filepath.Join(a, "inner")}, protection.Settings{}, "lies in " + a},
		{[]string{a, b}, protection.Settings{Meta: filepath.Join(b, "meta")}, "lies in " + b},
		{[]string{a, a}, protection.Settings{Names: []string{"one", "two"}}, "one and two are the same directory"},
		{[]string{a, b}, protection.Settings{Names: []string{"one"}}, "1 names for 2 directories"},
		{[]string{a, b}, protection.Settings{Absent: []string{"", "", "off"}}, "3 reasons of absence for 2 directories"},
	} {
		if g, err := Open(x.dirs, x.o); g != nil || !IsInputError(err) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q, %+v: %v: want %q", x.dirs, x.o, err, x.want)
		}
	}
	if g, err := Open([]string{a, a}, protection.Settings{Names: []string{"one:a", "two:a"}, Absent: []string{"", "off"}}); err != nil || g == nil {
		t.Errorf("a directory of the same name at a host that is off: %v", err)
	}
	if left, err := filepath.Glob(at + "/*"); err != nil || left != nil {
		t.Errorf("%q, %v", left, err)
	}
}

// TestGroup opens a group in memory once: one verb that is refused leaves it as good as before.
func TestGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 1)
	dirs := slices.Clone(w.dirs)
	g, err := open(dirs, w.options(w.Process(), protection.Settings{}))
	must(t, err)
	clear(dirs) // it has its own
	if _, err := g.Protect(t.Context(), ProtectOptions{Tolerate: 4}); !IsInputError(err) {
		t.Errorf("%v", err)
	}
	if _, err := g.Protect(t.Context(), ProtectOptions{Tolerate: 1}); err != nil {
		t.Fatal(err)
	}
	if r, err := g.Verify(t.Context(), VerifyOptions{}); err != nil || !r.Intact {
		t.Errorf("%+v, %v", r, err)
	}
}
