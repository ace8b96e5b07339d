package group

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

var (
	testKey  = []byte("a key for tests, no more")
	otherKey = []byte("another key, for others")
)

// keyed returns the options of a run with a key.
func keyed(key []byte) protection.Settings { return protection.Settings{Key: key} }

// a verbal runs a verb in a world, and returns its error.
type verbal func(w *world, o protection.Settings) error

var verbs = map[string]verbal{
	"protect": func(w *world, o protection.Settings) error {
		_, err := w.with(o).protectBy(w.Process(), ProtectOptions{})
		return err
	},
	"verify": func(w *world, o protection.Settings) error {
		r, err := w.with(o).verifyBy(w.Process())
		if err == nil && !r.Intact {
			err = fmt.Errorf("not whole: %+v", *r)
		}
		return err
	},
	"recover": func(w *world, o protection.Settings) error {
		_, err := w.with(o).recoverBy(w.Process(), RecoverOptions{})
		return err
	},
}

// TestKey goes through what a key lets, and does not let, verbs do.
func TestKey(t *testing.T) {
	t.Parallel()
	none := protection.Settings{NoKey: true}
	want := func(w *world, names string, o protection.Settings, text string) {
		t.Helper()
		files := func() string { // without directories, whose times change where a lock was made and removed
			var b strings.Builder
			for line := range strings.Lines(w.Tree("/", "lock")) {
				if _, mode, _ := strings.Cut(line, " "); !strings.HasPrefix(mode, "d") {
					b.WriteString(line)
				}
			}
			return b.String()
		}
		for _, verb := range strings.Fields(names) {
			before := files()
			err := verbs[verb](w, o)
			switch {
			case text == "" && err != nil:
				t.Errorf("%s: %v", verb, err)
			case text != "" && (err == nil || !strings.Contains(err.Error(), text) || !IsInputError(err)):
				t.Errorf("%s: %v: want %q", verb, err, text)
			case text != "":
				if wrong := diff(verb, before, files()); wrong != nil {
					t.Errorf("refused: %v", wrong)
				}
			}
		}
	}
	for _, ranks := range []int{1, 2} {
		w := newWorld(4, 2)
		w.ranks = ranks
		want(w, "protect", keyed(testKey), "")
		want(w, "verify recover protect", keyed(testKey), "")
		want(w, "verify recover protect", protection.Settings{}, "was protected with a key, as /n0, /n1, /n2, /n3 says: give the key")
		want(w, "verify recover protect", keyed(otherKey), "no manifest in force was made with this key")
		want(w, "verify recover", none, "")
		before := w.trees()
		w.lose(0, 1, 2)
		want(w, "recover", keyed(testKey), "")
		for n, wrong := range w.trees() {
			if wrong := diff(w.dirs[n], before[n], wrong); wrong != nil {
				t.Error(wrong)
			}
		}
		want(w, "verify", keyed(testKey), "")
		want(w, "protect", none, "")
		want(w, "verify recover protect", protection.Settings{}, "")
		want(w, "verify recover", keyed(testKey), "protect it with the key first, or give no key")

		// A group that has none gets one where all agree.
		c := w.clone()
		c.RemoveAll(c.dirs[2])
		c.MkdirAll(c.dirs[2], 0o700)
		want(c, "protect", keyed(testKey), "is missing what was protected")
		c = w.clone()
		c.Remove(c.dirs[2] + "/" + manifestPath(generationIn(t, c, 2)))
		want(c, "protect", keyed(testKey), "/n2 does not hold generation")
		want(c, "recover", protection.Settings{}, "")
		want(c, "protect verify", keyed(testKey), "")
		c = w.clone()
		m := newWorld(4, 2)
		want(m, "protect", keyed(otherKey), "")
		text, _ := m.ReadFile("/n1/" + manifestPath(1))
		c.MkdirAll("/n1/"+path.Dir(manifestPath(1)), 0o700)
		c.WriteFile("/n1/"+manifestPath(1), text, 0o600)
		want(c, "protect", keyed(testKey), "/n1 has one that was made with another")
		want(w, "protect verify recover", keyed(testKey), "")
		want(w, "verify", protection.Settings{}, "give the key")
	}
}

// generationIn returns the one of which a node has the manifest.
func generationIn(t *testing.T, w *world, n int) int64 {
	t.Helper()
	for _, name := range w.meta(n) {
		if kind, g, ok := store.NameOf(name); ok && kind == store.GenerationName {
			return g
		}
	}
	t.Fatalf("node %d has no manifest", n)
	return 0
}

// TestKeyInterrupted ends the run that gives a group its key at calls: the same command
// completes it, and until then what was there comes back, with the key or without.
func TestKeyInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1).ordered()
	must(t, w.protect())
	keyedWins := 0
	(&disktest.Sweep{
		Machine: w.Machine, Tries: 12 * *mostCalls, Interruptions: []disktest.Interruption{disktest.Kill, disktest.CutSome},
		Run: func(p *disktest.Process) error {
			_, err := w.on(p.Machine()).with(keyed(testKey)).protectBy(p, ProtectOptions{})
			return err
		},
		Check: func(i *disktest.Interrupted) error {
			c := w.on(i.Machine)
			lost := c.clone()
			lost.lose(i.Call.N, 1)
			err := lost.recover()
			if input := new(protection.RefusedError); errors.As(err, &input) && input.Option == protection.OptionKey {
				keyedWins++
				err = verbs["recover"](lost, keyed(testKey))
			}
			if err != nil {
				return fmt.Errorf("node 1 lost: %w", err)
			}
			return cmp.Or(diff("node 1", w.tree(1), lost.tree(1)), verbs["protect"](c, keyed(testKey)), verbs["verify"](c, keyed(testKey)))
		},
	}).Test(t)
	if keyedWins == 0 {
		t.Error("no run had put the key in force")
	}
}

// TestKeyForged gives one node of a group with a key what another group of the same files has:
// it is named, and nothing else comes of it.
func TestKeyForged(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{nil, otherKey} {
		w := newWorld(3, 1)
		must(t, verbs["protect"](w, keyed(testKey)))
		before := w.trees()
		m := w.clone()
		for n := range m.dirs {
			m.RemoveAll(m.dirs[n] + "/" + tree.MetaName)
		}
		m.WriteFile("/n0/plain", []byte("#!/bin/sh"), 0o4755)
		m.WriteFile("/n1/plain", []byte("#!/bin/sh"), 0o4755)
		must(t, verbs["protect"](m, keyed(key)))
		must(t, verbs["protect"](m, keyed(key)))
		w.RemoveAll("/n2/" + tree.MetaName)
		m.CopyTree("/n2/"+tree.MetaName, "/copy")
		for _, name := range m.meta(2) {
			if info, err := m.Lstat("/n2/" + tree.MetaName + "/" + name); err == nil && info.IsDir() {
				w.MkdirAll("/n2/"+tree.MetaName+"/"+name, 0o700)
				continue
			}
			text, _ := m.ReadFile("/n2/" + tree.MetaName + "/" + name)
			if path.Base(name) != store.NodeFile {
				w.WriteFile("/n2/"+tree.MetaName+"/"+name, text, 0o600)
			}
		}
		r, err := w.with(keyed(testKey)).verifyBy(w.Process())
		must(t, err)
		if !strings.Contains(strings.Join(r.Notes, "\n"), "/n2/.volley/generation.2: was not made with the key") || r.Generation != 1 {
			t.Errorf("%+v", r)
		}
		must(t, verbs["recover"](w, keyed(testKey)))
		for n, is := range w.trees() {
			if wrong := diff(w.dirs[n], before[n], is); wrong != nil {
				t.Error(wrong)
			}
		}
		must(t, verbs["verify"](w, keyed(testKey)))
	}
}
