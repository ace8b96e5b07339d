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
			if err := w.protect(); !IsInputError(err) || !strings.Contains(err.Error(), "/n1") {
				t.Errorf("%s: protect makes that final: %v", x.name, err)
			}
			r, err = w.recoverBy(w.Process(), RecoverOptions{})
			must(t, err, r.Incomplete())
			must(t, diff("the node left out", was[1], w.tree(1)))
		}
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
	recovers := func(o RecoverOptions) func(w *world) ([]string, error) {
		return func(w *world) ([]string, error) {
			r, err := w.recoverBy(w.Process(), o)
			if err != nil {
				return nil, err
			}
			return r.Notes, nil
		}
	}
	left := 0
	for name, run := range map[string]func(w *world) ([]string, error){
		"verify": func(w *world) ([]string, error) { r, err := w.verifyBy(w.Process()); must(t, err); return r.Notes, err },
		"protect": func(w *world) ([]string, error) {
			r, err := w.protectBy(w.Process(), ProtectOptions{Force: true})
			must(t, err)
			return r.Notes, err
		},
		"unprotect, dry": func(w *world) ([]string, error) {
			r, err := w.unprotectBy(w.Process(), UnprotectOptions{Force: true, DryRun: true})
			must(t, err)
			return r.Notes, err
		},
		"recover":                 recovers(RecoverOptions{}),
		"recover, dry":            recovers(RecoverOptions{DryRun: true}),
		"recover files":           recovers(RecoverOptions{Files: []string{"plain"}}),
		"recover files elsewhere": recovers(RecoverOptions{Files: []string{"plain"}, OutDir: "/to"}),
	} {
		for _, ranks := range []int{1, 4} {
			w := start.clone()
			w.ranks = ranks
			notes, err := run(w)
			must(t, err)
			for n, dir := range w.dirs {
				i := slices.IndexFunc(notes, func(note string) bool { return strings.HasPrefix(note, dir+": an interrupted run has left ") })
				for _, leftover := range []string{"tmp-x", "pending.2"} {
					there := w.Exists(w.own(n) + "/" + leftover)
					if there {
						left++
					}
					if named := i >= 0 && strings.Contains(notes[i], leftover); named != there {
						t.Errorf("%s, %d ranks: %s of %s is there %v, and named %v: %q", name, ranks, leftover, dir, there, named, notes)
					}
				}
			}
		}
	}
	if left == 0 {
		t.Error("nothing is left anywhere")
	}
}
