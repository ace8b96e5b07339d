package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"volley/internal/exit"
)

// TestUnprotect ends a protection: asked first, refused where something is lost, and with nothing left but the files.
func TestUnprotect(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 9000)
	before := contents(t, dirs)
	do := func(code int, args ...string) string {
		t.Helper()
		r := volleyRun(append(args, dirs...)...)
		if r.code != code {
			t.Fatalf("volley %v: %+v", args, r)
		}
		return r.stdout + r.stderr
	}
	for _, args := range [][]string{{"unprotect", "--yes"}, {"unprotect"}} {
		wants(t, do(exit.OK, args...), "not protected: there is nothing to remove")
	}
	do(exit.OK, "protect", "--tolerate", "2")
	wants(t, do(exit.Usage, "unprotect"), "in force: generation 1, any 2 may be lost", "nothing is removed: --yes")
	do(exit.OK, "verify")
	lose(t, filepath.Join(dirs[1], "ckpt"))
	wants(t, do(exit.Usage, "unprotect", "--yes"), dirs[1]+" is missing: ", "recover it first", "--force gives it up")
	do(exit.OK, "recover")
	wants(t, do(exit.OK, "unprotect", "--yes"), "the protection is removed")
	wants(t, do(exit.OK, "unprotect", "--yes", "--json"), `"protected": false`)
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(dir, ".volley")); err == nil {
			t.Errorf("%s has a .volley", dir)
		}
	}
	if got := contents(t, dirs); !slices.Equal(got, before) {
		t.Errorf("%q, want %q", got, before)
	}
	// A user's own file in .volley stays, and the next protect begins anew.
	do(exit.OK, "protect", "--tolerate", "1")
	mine := filepath.Join(dirs[2], ".volley", "mine")
	rewrite(t, mine, []byte("mine"))
	do(exit.OK, "unprotect", "--yes")
	if text, err := os.ReadFile(mine); err != nil || !strings.Contains(string(text), "mine") {
		t.Errorf("%q, %v", text, err)
	}
	wants(t, do(exit.OK, "protect", "--tolerate", "1"), "protected, generation 1")
}
