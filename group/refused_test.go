package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/sim"
	"volley/transport"
)

// TestDirectoriesRefused gives verbs directories that are not those of a group: each error
// names them, and nothing is written.
func TestDirectoriesRefused(t *testing.T) {
	t.Parallel()
	protect := func(w *world) error { return w.protect() }
	recover := func(w *world) error { return w.recover() }
	verify := func(w *world) error { _, err := w.verifyBy(w.Process()); return err }
	all := []func(*world) error{protect, recover, verify}
	for _, x := range []struct {
		what  string
		do    func(w *world)
		verbs []func(*world) error
		want  string
	}{
		{"one", func(w *world) { w.dirs = w.dirs[:1] }, all, "need at least 2 directories, got 1"},
		{"fewer than processes", func(w *world) { w.ranks = 4 }, all, "need at least 4 directories, got 3: name those of all nodes"},
		{"one twice", func(w *world) { w.dirs[2] = "/n1" }, all, "/n1 and /n1 are the same directory"},
		{"one twice, by another name", func(w *world) { w.dirs[2] = "/n0/../n1" }, all, "are the same directory"},
		{"one twice, at two processes", func(w *world) { w.dirs[2], w.ranks = "/n1", 3 }, all[:2], "ranks 1 and 2 have one directory, /n1"},
		{"one in another", func(w *world) { w.dirs[2] = "/n0/sub" }, all, "/n0/sub lies in /n0"},
		{"one in another, with a name of dots", func(w *world) { w.MkdirAll("/n0/..x", 0o755); w.dirs[0], w.dirs[2] = "/n0/..x", "/n0" }, all, "/n0/..x lies in /n0"},
		{"a missing one in another", func(w *world) { w.dirs[2] = "/n0/sub/none/at/all" }, all, "/n0/sub/none/at/all lies in /n0"},
		{"a missing one twice", func(w *world) { w.dirs[1], w.dirs[2] = "/none", "/sub/../none" }, all, "/none and /sub/../none are the same directory"},
		{"missing", func(w *world) { w.dirs[1] = "/none" }, all[:1], "/none: no such directory"},
		{"a file", func(w *world) { w.dirs[1] = "/n1/plain" }, all, "/n1/plain is not a directory: name the directory of a node"},
		{"a file named .volley", func(w *world) { w.WriteFile("/n1/.volley", nil, 0o600) }, all, "/n1/.volley: it is not a directory, and the name is Volley's own: move it away"},
		{"not protected", func(*world) {}, all[1:2], "the group is not protected: no node has a valid manifest in its .volley"},
		{"all lost", func(w *world) { w.lose(0, 0, 1, 2) }, all[1:2], "all nodes are lost"},
		{"in another order, at three processes", func(w *world) { must(t, w.protect()); slices.Reverse(w.dirs); w.ranks = 3 }, all, "is node 2 of its group and was given as node 0"},
		{"node 2 twice", func(w *world) {
			must(t, w.protect())
			id, _ := w.ReadFile("/n2/.volley/generation.1/node.json")
			w.WriteFile("/n0/.volley/generation.1/node.json", id, 0o600)
		}, all[1:], "/n0 is node 2 of its group and was given as node 0"},
		{"too few, without one in the middle", func(w *world) { must(t, w.protect()); w.dirs = []string{"/n0", "/n2"} }, all, "/n2 is node 2 of its group, and 2 directories were given: give them all, lost ones too"},
		{"too few", func(w *world) { must(t, w.protect()); w.dirs = w.dirs[:2] }, all, "/n0 is of a group of 3 nodes, and 2 were given"},
		{"strangers", func(w *world) {
			must(t, w.protect())
			w.RemoveAll("/n1")
			w.MkdirAll("/n1", 0o755)
			w.WriteFile("/n1/a", []byte("of somebody else"), 0o600)
		}, all[1:2], "/n1 has other files than node 1 of the group had"},
		{"lost", func(w *world) { must(t, w.protect()); w.lose(1, 1) }, all[:1], "/n1 is missing what was protected: recover it first"},
		{"a recovery", func(w *world) { must(t, w.protect()); w.MkdirAll("/n1/.volley/tmp-stage", 0o700) }, all[:1], "a recovery of /n1 has not ended: recover it first"},
		{"a node cannot be read", func(w *world) { w.Deny("/n1", syscall.EIO) }, all[1:2], "/n1"},
		{"no manifest is good", func(w *world) { must(t, w.protect()); w.spoil(3, true, "generation.1", "manifest.json") }, all[1:2], "manifest"},
		{"lost beyond R", func(w *world) { must(t, w.protect()); w.lose(0, 0, 1) }, all[1:2], "2 nodes are lost, and the group tolerates the loss of 1: /n0, /n1"},
	} {
		for i, verb := range x.verbs {
			w := newWorld(3, 1)
			x.do(w)
			before, err := w.Tree("/", store.LockFile), verb(w)
			none, isNone := new(protection.NoneError), x.what == "not protected" || x.what == "all lost" // whose exit code is its own
			if !IsInputError(err) || !strings.Contains(err.Error(), x.want) || errors.As(err, &none) != isNone || isNone && none.ExitCode() != 5 {
				t.Errorf("%s, verb %d: %v: want %q", x.what, i, err, x.want)
			}
			after := w.Tree("/", store.LockFile)
			if !strings.Contains(x.want, "lies in") { // which is refused before anything is made, even a lock
				before, after = withoutTimes(before), withoutTimes(after)
			}
			if err := diff(x.what, before, after); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestArgumentsRefused starts one process with other arguments than the rest, and all with numbers that will not do.
func TestArgumentsRefused(t *testing.T) {
	t.Parallel()
	type given struct { // to rank 1; all others have what is usual
		split int // directories of rank 0
		set   func(o *protection.Settings)
		all   ProtectOptions
	}
	for want, x := range map[string]given{
		"rank 1 differs from rank 0 in memory (":  {2, func(o *protection.Settings) { o.Memory = 1 << 21 }, ProtectOptions{Tolerate: 1}},
		"rank 1 differs from rank 0 in believe (": {2, func(o *protection.Settings) { o.Believe = "/n1" }, ProtectOptions{Tolerate: 1}},
		"": {2, func(o *protection.Settings) { o.Timeout *= 2; o.Network = sim.Network{Latency: 1} }, ProtectOptions{Tolerate: 3}},
		"process 0 has 3 of 4 directories: give every process the same number": {3, nil, ProtectOptions{Tolerate: 1}},
		"cannot tolerate the loss of 4 of 4 nodes: want 1 to 3":                {2, nil, ProtectOptions{Tolerate: 4}},
		"cannot tolerate the loss of -1 of 4 nodes":                            {2, nil, ProtectOptions{Tolerate: -1}},
	} {
		w := newWorld(4, 1)
		w.ranks = 2
		p := w.Process()
		_, err := onRanks(w, func(ctx context.Context, t transport.Transport, _ []string) (any, error) {
			o, dirs := w.options(p, protection.Settings{}), w.dirs[:x.split]
			if t.Rank() == 1 {
				dirs = w.dirs[x.split:]
			}
			if t.Rank() == 1 && x.set != nil {
				x.set(&o.Settings)
			}
			return overSetup(t, dirs, o).Protect(ctx, x.all)
		})
		if IsInputError(err) != (want != "") || want != "" && !strings.Contains(err.Error(), want) || want == "" && err != nil {
			t.Errorf("%v: want %q", err, want)
		}
	}
	w := newWorld(4, 1)
	if _, err := w.with(protection.Settings{Believe: "/n7"}).protectBy(w.Process(), ProtectOptions{}); !IsInputError(err) || !strings.Contains(err.Error(), `"/n7" is no node of the group`) {
		t.Errorf("believe: %v", err)
	}
}

// TestUnrecorded removes the record of a node wherever it lies: recover refuses, and neither status nor verify advises it.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 1)
	must(t, w.protect())
	w.Remove("/n2/.volley/generation.1/record")
	for _, dir := range w.dirs {
		w.RemoveAll(dir + "/.volley/generation.1/record.2")
	}
	const want = "too much is lost: no node has the record of /n2 any more"
	for _, glance := range []bool{true, false} {
		r, err := w.examineBy(w.Process(), glance)
		must(t, err)
		broken := new(BrokenError)
		if !errors.As(r.Broken(), &broken) || broken.Comes || !strings.Contains(fmt.Sprint(r.Notes), want) {
			t.Errorf("glance %v: %v, %q", glance, r.Broken(), r.Notes)
		}
	}
	if _, err := w.recoverBy(w.Process(), RecoverOptions{}); !IsInputError(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("recover: %v", err)
	}
}
