package group

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// TestRecoverLeavesOut has a node that cannot be written to while recover prepares what comes
// back: it is named, the other nodes get what they miss, and the next run does the rest.
func TestRecoverLeavesOut(t *testing.T) {
	t.Parallel()
	fails := func(err error, ops ...string) func(*disktest.Process) {
		return func(p *disktest.Process) {
			p.Hook = func(c disktest.Call) error {
				if slices.Contains(ops, c.Op) && strings.HasPrefix(c.Path, "/n1/.volley/tmp-stage/") {
					return err
				}
				return nil
			}
		}
	}
	for _, x := range []struct {
		name, why string
		fail      func(*disktest.Process)
	}{
		{"no space for files", "no space left on device", fails(syscall.ENOSPC, "create", "truncate")},
		{"no space for data", "/plain cannot be made: no space left on device", fails(syscall.ENOSPC, "write")},
		{"a disk that does not sync", "/plain cannot be made: input/output error", fails(syscall.EIO, "sync")},
	} {
		for _, ranks := range []int{1, 3} {
			w := newWorld(5, 2)
			w.ranks = ranks
			must(t, w.protect())
			was := w.trees()
			w.Remove("/n1/plain")
			w.Remove("/n3/big")
			p := w.Process()
			x.fail(p)
			r, err := w.recoverBy(p, RecoverOptions{})
			if err != nil {
				t.Fatalf("%s, %d ranks: %v", x.name, ranks, err)
			}
			if len(r.Unrecovered) != 1 || !strings.HasPrefix(r.Unrecovered[0], "/n1") || !strings.Contains(r.Unrecovered[0], x.why) || r.Incomplete() == nil || r.Files != 1 {
				t.Errorf("%s, %d ranks: %+v", x.name, ranks, *r)
			}
			must(t, diff("the other node", was[3], w.tree(3)))
			if w.Exists("/n1/plain") {
				t.Errorf("%s: node 1 was written to", x.name)
			}
			r, err = w.recoverBy(w.Process(), RecoverOptions{})
			must(t, err)
			must(t, r.Incomplete())
			must(t, diff("the node left out", was[1], w.tree(1)))
		}
	}
}

// TestStageKept has a stage with a directory in it that is not empty, as a power cut may leave one: nobody knows whose that
// is, so recover keeps it.
func TestStageKept(t *testing.T) {
	t.Parallel()
	w := newWorld(5, 2)
	must(t, w.protect())
	was := w.tree(1)
	w.Remove("/n1/plain")
	w.MkdirAll("/n1/.volley/tmp-stage/14", 0o700)
	w.WriteFile("/n1/.volley/tmp-stage/14/file", []byte("theirs"), 0o600)
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err)
	must(t, r.Incomplete())
	must(t, diff("the node", was, w.tree(1)))
	const kept = "/n1/.volley/replaced/tmp-stage"
	if len(r.Replaced) != 1 || string(r.Replaced[0]) != kept || contentOf(w, kept+"/14/file") != "theirs" {
		t.Errorf("%+v", r)
	}
}

// TestStaleMalformed has a node that was left behind, whose earlier manifest is no manifest: the
// disk gives what is there, and so the node is not failing.
func TestStaleMalformed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*world){
		"a directory": func(w *world) { w.MkdirAll("/n1/.volley/generation.1/manifest.json", 0o700) },
		"zeros":       func(w *world) { w.WriteFile("/n1/.volley/generation.1/manifest.json", make([]byte, 9), 0o600) },
		"a link": func(w *world) {
			w.Symlink("/n0/.volley/generation.2/manifest.json", "/n1/.volley/generation.1/manifest.json")
		},
	} {
		w := newWorld(4, 2)
		must(t, w.protect())
		w.CopyTree("/n1", "/old")
		w.Wait(1e9)
		w.AppendFile("/n0/plain", []byte("more"))
		must(t, w.protect())
		was := w.trees()
		w.RemoveAll("/n1")
		w.Rename("/old", "/n1")
		w.Remove("/n1/.volley/generation.1/manifest.json")
		spoil(w)
		r, err := w.verifyBy(w.Process())
		must(t, err)
		if r.Nodes[1].Status != Damaged {
			t.Errorf("%s: %+v", name, r.Nodes[1])
		}
		rec, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		must(t, rec.Incomplete())
		must(t, diff(name, was[1], w.tree(1)))
	}
}

// TestReportBytes has names that are no UTF-8 in a report: paths come back as they are, texts have
// escapes.
func TestReportBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2)
	must(t, w.protect())
	const odd = "/n1/odd \xff"
	w.Wait(1e9)
	w.WriteFile(odd, []byte("mine"), 0o644)
	r, err := w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err)
	text, err := json.Marshal(r)
	must(t, err)
	var back RecoverReport
	must(t, json.Unmarshal(text, &back))
	same(t, "kept", back.Kept, []tree.Name{odd})
	r, err = w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
	must(t, err)
	same(t, "replaced", r.Replaced, []tree.Name{"/n1/.volley/replaced/1/odd \xff"})
	w.Remove(odd)
	w.MkdirAll(odd, 0o700)
	r, err = w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
	must(t, err)
	same(t, "left", r.Unrecovered, []string{`/n1/odd \xff is a directory, and was a file when it was protected: move it away`})
}

// TestLeftoversNamed has runs of all kinds where others were interrupted: a report names what is left after it, and nothing
// else.
func TestLeftoversNamed(t *testing.T) {
	t.Parallel()
	start := newWorld(4, 2).ordered()
	must(t, start.protect())
	start.WriteFile("/n1/plain", []byte("changed"), 0o600)
	calls := start.Calls(func(p *disktest.Process) {
		_, err := start.protectBy(p, ProtectOptions{Tolerate: 2})
		must(t, err)
	})
	p := start.Process()
	p.KillAt(calls[slices.IndexFunc(calls, func(c disktest.Call) bool { return c.Op == "rename" && c.New == "/n3/.volley/pending.2/manifest.json" })].N)
	if _, err := start.protectBy(p, ProtectOptions{Tolerate: 2}); err == nil {
		t.Fatal("it was not killed")
	}
	for n := range start.dirs {
		start.WriteFile(start.own(n)+"/tmp-x", []byte("left"), 0o600)
	}
	start.Remove("/n2/plain")
	lost := start.clone()
	lost.RemoveAll("/n0")
	recovers := func(o RecoverOptions) func(w *world) []string {
		return func(w *world) []string {
			r, err := w.recoverBy(w.Process(), o)
			must(t, err)
			return r.Notes
		}
	}
	ends := func(o UnprotectOptions) func(w *world) []string {
		return func(w *world) []string {
			r, err := w.unprotectBy(w.Process(), o)
			must(t, err)
			return r.Notes
		}
	}
	left := 0
	for name, run := range map[string]func(w *world) []string{
		"status": func(w *world) []string { r, err := w.statusBy(w.Process()); must(t, err); return r.Notes },
		"verify": func(w *world) []string { r, err := w.verifyBy(w.Process()); must(t, err); return r.Notes },
		"protect": func(w *world) []string {
			r, err := w.protectBy(w.Process(), ProtectOptions{Tolerate: 2, Force: true})
			must(t, err)
			return r.Notes
		},
		"unprotect":                ends(UnprotectOptions{Force: true}),
		"unprotect, dry":           ends(UnprotectOptions{Force: true, DryRun: true}),
		"recover":                  recovers(RecoverOptions{}),
		"recover, dry":             recovers(RecoverOptions{DryRun: true}),
		"recover elsewhere":        recovers(RecoverOptions{OutDir: "/to"}),
		"recover files":            recovers(RecoverOptions{Files: []string{"plain"}}),
		"recover files, dry":       recovers(RecoverOptions{Files: []string{"plain"}, DryRun: true}),
		"recover files elsewhere":  recovers(RecoverOptions{Files: []string{"plain"}, OutDir: "/to"}),
		"recover what nobody lost": recovers(RecoverOptions{Files: []string{"big"}}),
	} {
		for _, from := range []*world{start, lost} {
			if name == "protect" && from == lost {
				continue // it is refused
			}
			for _, ranks := range []int{1, 4} {
				w := from.clone()
				w.ranks = ranks
				notes := run(w)
				for n, dir := range w.dirs {
					i := slices.IndexFunc(notes, func(note string) bool { return strings.HasPrefix(note, dir+": an interrupted run has left ") })
					for _, what := range []string{"tmp-x", "pending.2"} {
						is := w.Exists(w.own(n) + "/" + what)
						if is {
							left++
						}
						if named := i >= 0 && strings.Contains(notes[i], what); named != is {
							t.Errorf("%s, %d ranks: %s of %s is there %v, and named %v: %q", name, ranks, what, dir, is, named, notes)
						}
					}
				}
			}
		}
	}
	if left == 0 {
		t.Error("nothing is left anywhere")
	}
}
