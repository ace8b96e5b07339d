package group

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
)

// TestDirectoriesInPlace has directories where files of Volley's belong, and files where its directories do. They are
// damage like any other. Whatever lies in them is kept.
func TestDirectoriesInPlace(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"manifest.json", "node.json", "record", "record.2", "parity", ""} {
		for _, x := range []string{"file", "empty", "full"} {
			if (name == "") != (x == "file") {
				continue
			}
			w := newWorld(4, 2)
			must(t, w.protect())
			before := w.trees()
			at := "/n1/.volley/generation.1"
			if name != "" {
				at += "/" + name
			}
			w.RemoveAll(at)
			switch x {
			case "file":
				w.WriteFile(at, []byte("x"), 0o600)
			default:
				w.MkdirAll(at, 0o700)
			}
			if x == "full" {
				w.MkdirAll(at+"/theirs", 0o700)
				w.WriteFile(at+"/theirs/file", []byte("mine"), 0o600)
				w.WriteFile(at+"/file", []byte("mine"), 0o600)
			}
			kept := func(c *world, verb, want string, noted []string) {
				t.Helper()
				if !slices.Equal(c.trees(), before) {
					t.Errorf("%s, %s: %s: files are others", name, x, verb)
				}
				to := "/n1/.volley/replaced/generation.1/" + name
				if x != "full" {
					if c.Exists("/n1/.volley/replaced") {
						t.Errorf("%s, %s: %s: something is kept", name, x, verb)
					}
					return
				}
				if contentOf(c, to+"/theirs/file") != "mine" || contentOf(c, to+"/file") != "mine" || !strings.Contains(strings.Join(noted, "\n"), want) {
					t.Errorf("%s, %s: %s: what lay there is not kept, or not noted: %q", name, x, verb, noted)
				}
			}
			if err := w.whole(); err == nil {
				t.Errorf("%s, %s: is whole", name, x)
			}
			c := w.clone()
			r, err := c.recoverBy(c.Process(), RecoverOptions{})
			must(t, err, r.Incomplete())
			var noted []string
			for _, p := range r.Replaced {
				noted = append(noted, string(p))
			}
			kept(c, "recover", "/n1/.volley/replaced/generation.1/"+name, noted)
			must(t, c.whole(), c.tidy(1), c.protect(), c.whole())
			c = w.clone()
			p, err := c.protectBy(c.Process(), ProtectOptions{Force: true})
			must(t, err)
			kept(c, "protect", "is a directory, and no regular file", p.Notes)
			must(t, c.whole(), c.tidy(2))
			c = w.clone()
			u, err := c.unprotectBy(c.Process(), UnprotectOptions{Force: true})
			must(t, err, c.bare())
			kept(c, "unprotect", "is a directory, and no regular file", u.Notes)
		}
	}
}

// TestLockInPlace has what is no file in the place of a lock: every verb names it.
func TestLockInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	must(t, w.protect())
	w.RemoveAll("/n1/.volley/lock")
	for kind, make := range map[string]func(c *world){
		"directory":     func(c *world) { c.MkdirAll("/n1/.volley/lock", 0o700) },
		"symbolic link": func(c *world) { c.Symlink("/n1/plain", "/n1/.volley/lock") },
	} {
		c := w.clone()
		make(c)
		_, verify := c.verifyBy(c.Process())
		for _, err := range []error{verify, c.recover(), c.protect()} {
			if err == nil || !IsInputError(err) || !strings.Contains(err.Error(), "/n1/.volley/lock is a "+kind+", and the name is that of Volley's lock: move it away") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	w.MkdirAll("/n1/.volley/"+store.EndingName+"/theirs/file", 0o700) // nor is that in the way
	_, err := w.unprotectBy(w.Process(), UnprotectOptions{})
	must(t, err, w.bare())
}

// TestImmutableGeneration has an earlier generation that nobody may remove: what is new is in force, and a note says what
// is left. The next run that may removes it.
func TestImmutableGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	w.ranks = 2
	must(t, w.protect())
	w.Deny("/n3/.volley/generation.1", syscall.EPERM, "rename", "remove")
	for g := int64(2); g < 4; g++ {
		r, err := w.protectBy(w.Process(), ProtectOptions{})
		must(t, err, w.whole())
		if want := fmt.Sprintf("generation %d is in force, and what was there before could not be removed: ", g); len(r.Notes) != 2 || !strings.Contains(r.Notes[1], want) || !strings.Contains(r.Notes[1], "/n3/.volley/generation.1") {
			t.Errorf("%q", r.Notes)
		}
	}
	w.lose(0, 0)
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err, r.Incomplete(), w.whole())
	if !strings.Contains(strings.Join(r.Notes, ""), "/n3/.volley/generation.1") {
		t.Errorf("%q", r.Notes)
	}
	w.Lift("/n3/.volley/generation.1")
	must(t, w.protect(), w.tidy(4))
}
