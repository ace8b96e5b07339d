package group

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// spoil damages two of three files of nodes, and takes or damages what lies in a generation of theirs.
func (w *world) spoil(nodes int, rot bool, dir string, names ...string) {
	for n := range nodes {
		w.Overwrite(fmt.Sprintf("/n%d/big", n), 5, []byte("rot"), true)
		for _, file := range []string{"plain", "sub/x", "closed/inner/z", "sub/deep/y"} {
			w.WriteFile(fmt.Sprintf("/n%d/%s", n, file), nil, 0o600)
		}
		for _, name := range names {
			if p := fmt.Sprintf("/n%d/.volley/%s/%s", n, dir, name); rot {
				w.Overwrite(p, 30, []byte("rot"), true)
			} else {
				w.Remove(p)
			}
		}
	}
}

// TestLostManifest has nodes whose manifest is gone or has rotted, and other files of Volley's with it, beside damaged files
// of the user's. Others have the manifest and copies of the record: everything comes back, and nothing is asked.
func TestLostManifest(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		k, r, nodes int
		names       []string
	}{
		{2, 1, 1, []string{"manifest.json"}},
		{2, 1, 1, []string{"manifest.json", "node.json"}},
		{2, 1, 1, []string{"manifest.json", "record"}},
		{3, 1, 1, []string{"manifest.json", "node.json"}},
		{5, 2, 1, []string{"manifest.json"}},
		{5, 2, 2, []string{"manifest.json"}},
		{5, 2, 2, []string{"manifest.json", "node.json"}},
		{5, 2, 2, []string{"manifest.json", "record"}},
	} {
		for _, rot := range []bool{false, true} {
			w := newWorld(x.k, x.r)
			must(t, w.protect())
			before := w.trees()
			w.spoil(x.nodes, rot, "generation.1", x.names...)
			r, err := w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
			if err != nil || r.Unrecovered != nil || !slices.Equal(w.trees(), before) {
				t.Errorf("%+v, rot %v: %v", x, rot, err)
				continue
			}
			must(t, w.whole(), w.protect(), w.tidy(2))
		}
	}
}

// TestLostManifests has more manifests gone than may be lost, or another group's: what nobody can tell nobody decides.
func TestLostManifests(t *testing.T) {
	t.Parallel()
	other := newWorld(4, 2)
	must(t, other.protect())
	foreign := contentOf(other, "/n0/.volley/generation.1/manifest.json")
	for _, x := range []struct {
		k, r int
		do   func(w *world)
		want string
	}{
		{2, 1, func(w *world) { w.spoil(2, false, "generation.1", "manifest.json") }, "cannot tell whether generation 1 is in force"},
		{3, 1, func(w *world) { w.spoil(2, false, "generation.1", "manifest.json", "node.json") }, "cannot tell which generation is in force"},
		{2, 1, func(w *world) { w.lose(1, 1); w.spoil(1, false, "generation.1", "manifest.json") }, "cannot tell whether generation 1 is in force"},
		{3, 1, func(w *world) { w.WriteFile("/n1/.volley/generation.1/manifest.json", []byte(foreign), 0o600) }, "/n1 belongs to another group than /n0, /n2"},
	} {
		w := newWorld(x.k, x.r)
		must(t, w.protect())
		x.do(w)
		before := w.stored()
		for name, err := range map[string]error{"recover": w.recover(), "protect": w.protect()} {
			if err == nil || !strings.Contains(err.Error(), x.want) || !IsInputError(err) {
				t.Errorf("%s: %v: want %q", name, err, x.want)
			}
		}
		if w.stored() != before {
			t.Errorf("%s: something has changed", x.want)
		}
	}
}

// TestLostManifestOfTwo kills protect at each of its renames in .volley and takes a manifest from one of two nodes, of any
// generation that it has: where a node has committed the newer one, the older one is never in force again.
func TestLostManifestOfTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(2, 1).ordered()
	must(t, w.protect())
	w.WriteFile("/n1/plain", []byte("another content"), 0o600)
	was := w.trees()
	kills := 0
	for _, call := range w.Calls(func(p *disktest.Process) {
		c := w.clone()
		c.Machine = nil
		_, err := c.protectBy(p, ProtectOptions{})
		must(t, err)
	}) {
		if call.Op != "rename" && call.Op != "remove" {
			continue
		}
		x := w.clone()
		p := x.Process()
		p.KillAt(call.N)
		x.protectBy(p, ProtectOptions{})
		p.Kill()
		kills++
		for n, dir := range x.dirs {
			committed := slices.ContainsFunc(x.dirs, func(dir string) bool { return x.Exists(dir + "/.volley/generation.2") })
			for _, name := range x.meta(n) {
				if path.Base(name) != store.ManifestFile || strings.HasPrefix(name, "tmp-") {
					continue
				}
				y := x.clone()
				y.Remove(dir + "/.volley/" + name)
				r, err := y.verifyBy(y.Process())
				if err != nil && !IsInputError(err) || err == nil && (!r.Protected || committed && r.Generation != 2) {
					t.Fatalf("killed at %v, without %s at %s: %+v, %v", call, name, dir, r, err)
				}
				if err != nil && !strings.HasPrefix(name, store.PendingName) {
					t.Errorf("killed at %v, without %s at %s: %v", call, name, dir, err)
				}
				if err := y.recover(); (err == nil) != (r != nil) || !slices.Equal(y.trees(), was) {
					t.Fatalf("killed at %v, without %s at %s: recover: %v", call, name, dir, err)
				}
			}
		}
	}
	if kills < 4 {
		t.Errorf("%d kills", kills)
	}
}
