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
			if err := w.whole(); err == nil {
				t.Errorf("%s, %s: is whole", name, x)
			}
			for verb, run := range map[string]func(c *world) (noted []string, want string){
				"recover": func(c *world) (noted []string, want string) {
					r, err := c.recoverBy(c.Process(), RecoverOptions{})
					must(t, err, r.Incomplete(), c.whole(), c.tidy(1))
					for _, p := range r.Replaced {
						noted = append(noted, string(p))
					}
					return noted, "/n1/.volley/replaced/generation.1/" + name
				},
				"protect": func(c *world) ([]string, string) {
					p, err := c.protectBy(c.Process(), ProtectOptions{Force: true})
					must(t, err, c.whole(), c.tidy(2))
					return p.Notes, "is a directory, and no regular file"
				},
				"unprotect": func(c *world) ([]string, string) {
					u, err := c.unprotectBy(c.Process(), UnprotectOptions{Force: true})
					must(t, err, c.bare())
					return u.Notes, "is a directory, and no regular file"
				},
			} {
				c := w.clone()
				noted, want := run(c)
				to := "/n1/.volley/replaced/generation.1/" + name
				kept := c.Exists("/n1/.volley/replaced")
				if x == "full" {
					kept = contentOf(c, to+"/theirs/file") == "mine" && contentOf(c, to+"/file") == "mine" && strings.Contains(strings.Join(noted, "\n"), want)
				}
				if !slices.Equal(c.trees(), before) || kept != (x == "full") {
					t.Errorf("%s, %s: %s: files are others, or what lay there is not kept, or not noted: %q", name, x, verb, noted)
				}
				must(t, c.protect(), c.whole())
			}
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
