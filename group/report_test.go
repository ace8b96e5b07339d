package group

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// found writes what is the matter with each node, a line for each thing.
func found(nodes []NodeReport) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, fmt.Sprintf("%d %s %s", n.Node, n.Dir, n.Status))
		for _, f := range n.Findings {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s: %s %s", n.Node, f.Path, f.Kind, f.Reason)))
		}
	}
	return list
}

// same fails the test unless two lists are the same.
func same[T ~string](t *testing.T, what string, is, want []T) {
	t.Helper()
	lines := func(list []T) string {
		var text strings.Builder
		for _, x := range list {
			text.WriteString(string(x) + "\n")
		}
		return text.String()
	}
	if err := diff(what, lines(want), lines(is)); err != nil {
		t.Errorf("%v: is\n%s", err, lines(is))
	}
}

// failing has calls on some paths fail.
func failing(p *disktest.Process, err error, op string, paths ...string) *disktest.Process {
	p.Hook = func(c disktest.Call) error {
		if c.Op == op && slices.Contains(paths, c.Path) {
			return err
		}
		return nil
	}
	return p
}

// TestFindings does to a group what users and disks do, and checks what verify says of each
// file, and what recover does about it.
func TestFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(5, 3)
	must(t, w.protect())
	was := w.trees()
	w.Wait(1e9)
	at, err := w.Lstat("/n1/plain")
	must(t, err)
	w.WriteFile("/n1/plain", []byte("rewritten"), 0o644)
	w.Overwrite("/n1/big", 5, []byte("rot"), true)
	w.Remove("/n1/sub/x")
	w.WriteFile("/n1/sub/new", []byte("new"), 0o600)
	w.Chmod("/n1/sub/deep/y", 0o600)
	w.SetTime("/n1/closed/inner/z", at.ModTime().Add(1))
	w.Remove("/n1/link")
	w.Symlink("plain", "/n1/link")
	w.Remove("/n1/nothing")
	w.WriteFile("/n1/nothing", nil, 0o600)
	w.Chmod("/n1/sub/void", 0o750)
	w.Remove("/n1/empty")
	w.MkdirAll("/n1/empty", 0o700)
	w.AppendFile("/n2/empty", []byte("more"))
	w.WriteFile("/n3/new", nil, 0o600)
	w.Chmod("/n3/plain", 0o600)
	w.lose(1, 4)
	r, err := w.verifyBy(w.Process())
	must(t, err)
	first := []string{
		"0 /n0 whole", "1 /n1 damaged", "1 big: damaged", "1 closed/inner/z: metadata", "1 empty: changed", "1 link: changed", "1 nothing: changed", "1 plain: changed",
		"1 sub/deep/y: metadata", "1 sub/new: new", "1 sub/void: metadata", "1 sub/x: deleted",
		"2 /n2 changed", "2 empty: changed", "3 /n3 whole", "3 new: new", "3 plain: metadata", "4 /n4 lost",
	}
	same(t, "verify", found(r.Nodes), first)
	if !r.Protected || r.Intact || r.Generation != 1 || r.Tolerate != 3 || r.Notes != nil {
		t.Errorf("%+v", r)
	}
	before := everything(&world{Machine: w.Machine, dirs: w.dirs[:4]})
	rec, err := w.recoverBy(w.Process(), RecoverOptions{DryRun: true})
	must(t, err)
	same(t, "dry run", found(rec.Nodes), first)
	kept := []tree.Name{"/n1/empty", "/n1/link", "/n1/nothing", "/n1/plain", "/n2/empty"}
	same(t, "dry run: kept", rec.Kept, kept)
	if !slices.Equal(before, everything(&world{Machine: w.Machine, dirs: w.dirs[:4]})) || rec.Files != 0 || rec.Traffic.Plan != "none" || rec.Blocks == 0 {
		t.Errorf("the dry run has done something: %+v", rec)
	}
	blocks := rec.Blocks
	rec, err = w.recoverBy(w.Process(), RecoverOptions{})
	must(t, err)
	same(t, "recover", found(rec.Nodes), first)
	same(t, "kept", rec.Kept, kept)
	same(t, "replaced", rec.Replaced, []tree.Name{"/n1/.volley/replaced/1/big"}) // somebody may have written it
	if rec.Files != 2+7 || rec.Unrecovered != nil || rec.Blocks != blocks || rec.Generation != 1 || rec.Incomplete() != nil || rec.Notes != nil {
		t.Errorf("%+v", rec)
	}
	must(t, diff("node 4", was[4], w.tree(4)))
	// With Revert.Changed, what is changed comes back, too, unless a directory is in its place.
	rec, err = w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
	must(t, err)
	const inTheWay = "/n1/empty is a directory, and was a file when it was protected: move it away"
	same(t, "revert", found(rec.Nodes), []string{
		"0 /n0 whole", "1 /n1 changed", "1 closed/inner/z: metadata", "1 empty: changed", "1 link: changed", "1 nothing: changed", "1 plain: changed",
		"1 sub/deep/y: metadata", "1 sub/new: new", "1 sub/void: metadata",
		"2 /n2 changed", "2 empty: changed", "3 /n3 whole", "3 new: new", "3 plain: metadata", "4 /n4 whole",
	})
	same(t, "revert: left", rec.Unrecovered, []string{inTheWay})
	same(t, "revert: replaced", rec.Replaced, []tree.Name{"/n1/.volley/replaced/1/nothing", "/n1/.volley/replaced/1/link", "/n1/.volley/replaced/1/plain", "/n2/.volley/replaced/1/empty"})
	if rec.Kept != nil || rec.Files != 2 || rec.Incomplete() == nil || rec.Incomplete().Error() != "not everything is recovered: "+inTheWay {
		t.Errorf("%+v, %v", rec, rec.Incomplete())
	}
	// And again: earlier copies stay.
	w.WriteFile("/n1/plain", []byte("rewritten again"), 0o644)
	rec, err = w.recoverBy(w.Process(), RecoverOptions{Revert: protection.Edits{Changed: true}})
	must(t, err)
	same(t, "again: replaced", rec.Replaced, []tree.Name{"/n1/.volley/replaced/1/plain.1"})
	if contentOf(w, "/n1/.volley/replaced/1/plain") != "rewritten" || contentOf(w, "/n1/.volley/replaced/1/plain.1") != "rewritten again" {
		t.Error("what was written is not kept")
	}
}

// TestMetaFindings damages what is Volley's at a node.
func TestMetaFindings(t *testing.T) {
	t.Parallel()
	const of = "/n1/.volley/generation.1/"
	none := func(*world) {}
	denied := func(op, p string) func(p *disktest.Process) {
		return func(q *disktest.Process) { failing(q, syscall.EIO, op, p) }
	}
	for _, x := range []struct {
		do    func(w *world)
		fails func(p *disktest.Process) // the disk, nil: it does not
		want  string                    // of node 1
		left  bool                      // recover cannot mend it
	}{
		{func(w *world) { w.Remove(of + "node.json") }, nil, ".volley/generation.1/node.json: damaged", false},
		{func(w *world) { w.Remove(of + "record") }, nil, ".volley/generation.1/record: damaged", false},
		{func(w *world) { w.Overwrite(of+"record.0", 9, []byte("#"), true) }, nil, ".volley/generation.1/record.0: damaged", false},
		{func(w *world) { w.Remove(of + "parity") }, nil, ".volley/generation.1/parity: missing", false},
		{func(w *world) { w.AppendFile(of+"parity", []byte("#")) }, nil, ".volley/generation.1/parity: damaged", false},
		{func(w *world) { w.Remove(of + "parity"); w.MkdirAll(of+"parity", 0o700) }, nil, ".volley/generation.1/parity: damaged is a directory, and no regular file", true},
		{none, denied("open", of+"parity"), ".volley/generation.1/parity: damaged input/output error", false},
		{none, denied("read", "/n1/plain"), "plain: damaged input/output error", false},
		{none, denied("readdir", "/n1/closed"), "closed/broken: damaged input/output error; closed/inner: damaged input/output error; closed/inner/z: damaged input/output error", true},
		{none, denied("readdir", "/n1"), "", true},
	} {
		w := newWorld(4, 2)
		must(t, w.protect())
		was := w.trees()
		x.do(w)
		process := func() *disktest.Process {
			p := w.Process()
			if x.fails != nil {
				x.fails(p)
			}
			return p
		}
		is, err := w.verifyBy(process())
		must(t, err)
		want := []string{"0 /n0 whole", "1 /n1 failing"}
		if x.want != "" {
			want[1] = "1 /n1 damaged"
			for _, f := range strings.Split(x.want, "; ") {
				want = append(want, "1 "+f)
			}
		}
		same(t, x.want, found(is.Nodes), append(want, "2 /n2 whole", "3 /n3 whole"))
		if is.Intact || x.left {
			continue
		}
		r, err := w.recoverBy(process(), RecoverOptions{})
		if err != nil || r.Incomplete() != nil {
			t.Errorf("%s: recover: %+v, %v", x.want, r, err)
		}
		must(t, diff(x.want, strings.Join(was, ""), strings.Join(w.trees(), "")), w.tidy(1), w.whole())
	}
}

// TestReports checks every figure that protect and verify report of a small group.
func TestReports(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 2} {
		w := newWorld(4, 2)
		w.ranks = ranks
		before := w.Tree("/")
		dry, err := w.protectBy(w.Process(), ProtectOptions{DryRun: true})
		must(t, err)
		if before != w.Tree("/") || dry.Coded != 0 || dry.Generation != 1 || dry.Cost == nil {
			t.Errorf("the dry run has done something: %+v", dry)
		}
		r, err := w.protectBy(w.Process(), ProtectOptions{})
		must(t, err)
		const longest = 70_000 + 300 + 100 + 200 + 150 + 40
		const parity, blocks = 2 * ((longest/2 + 7) / 8 * 8), 1
		var most int64
		for n, dir := range w.dirs {
			var sum int64
			for _, name := range w.meta(n) {
				if base := path.Base(name); strings.HasPrefix(base, store.RecordFileName) || base == store.ManifestFile {
					info, err := w.Lstat(dir + "/.volley/" + name)
					must(t, err)
					sum += info.Size()
				}
			}
			most = max(most, sum)
		}
		if r.Nodes != 4 || r.Tolerate != 2 || r.Field != "2^8" || r.Generation != 1 || r.Files != 28 || r.Deleted != 0 ||
			r.DataBytes != 2*longest+2*(longest-69_500) || r.ParityBytes != parity || r.RecordBytes != most || r.Blocks != 4*blocks || r.Coded != 4*blocks || !slices.Equal(r.Notes, []string{oneDisk}) {
			t.Errorf("%+v: want %d bytes of records, %d of parity", r, most, parity)
		}
		cost, x := r.Cost, r.Traffic
		if x.Plan == "" || !strings.Contains(x.Plan, cost.Plan) || x.MostSent < cost.SentBytes*9/10 || x.MostSent > cost.SentBytes*11/10 {
			t.Errorf("%+v, and was to cost %+v", x, cost)
		}
		if cost.StoredBytes != parity || cost.Seconds <= 0 {
			t.Errorf("%+v", cost)
		}
		// Nothing has changed, and a node that is lost comes back.
		r, err = w.protectBy(w.Process(), ProtectOptions{})
		must(t, err)
		if r.Coded != 0 || r.Generation != 2 || r.Traffic.Plan != "none" || r.Traffic.MostSent != 0 {
			t.Errorf("again: %+v", r)
		}
		w.lose(0, 1)
		rec, err := w.recoverBy(w.Process(), RecoverOptions{})
		must(t, err)
		if rec.Blocks != blocks || rec.Files != 7 || rec.Generation != 2 || rec.Traffic.Plan == "none" || rec.Traffic.MostSent == 0 {
			t.Errorf("%+v", rec)
		}
		// Files that are gone are counted.
		if ranks > 1 {
			continue
		}
		w.AppendFile("/n2/plain", []byte("more"))
		w.Remove("/n3/plain")
		r, err = w.protectBy(w.Process(), ProtectOptions{})
		must(t, err)
		if r.Deleted != 1 || r.Files != 27 || r.Coded != 2 {
			t.Errorf("%+v", r)
		}
	}
}

// TestErrors checks what errors and reports say of nodes.
func TestErrors(t *testing.T) {
	t.Parallel()
	few := &protection.TooManyError{Nodes: []string{"/a", "/b"}, Tolerate: 1}
	const text = "2 nodes are lost, and the group tolerates the loss of 1: /a, /b"
	if few.Error() != text {
		t.Error(few)
	}
	for _, x := range []struct {
		r    RecoverReport
		want string
	}{
		{RecoverReport{Nodes: []NodeReport{{Dir: "/a", Status: Damaged}}}, "<nil>"},
		{RecoverReport{Unrecovered: []string{"one"}}, "not everything is recovered: one"},
		{RecoverReport{Unrecovered: []string{"one", "two", "three"}}, "not everything is recovered: one; and 2 more"},
		{RecoverReport{Nodes: []NodeReport{{Dir: "/a", Status: Failing, Reason: "it fails"}, {Dir: "/b", Status: Intact}}, Unrecovered: []string{"one"}}, "not everything is recovered: /a cannot be read: it fails; one"},
	} {
		if err := x.r.Incomplete(); fmt.Sprint(err) != x.want {
			t.Errorf("%v: want %s", err, x.want)
		}
	}
	s := &session.Session{Current: store.Current{Generation: 3, Root: "root 3"}, States: []*store.State{
		{Dir: "/a", Failing: "EIO"},
		{Dir: "/b", Bad: []string{"damaged"}, Leftovers: []string{"tmp-x"}, Held: []store.Held{{Generation: 3, Root: "root 3", Committed: true}, {Generation: 4}, {Generation: 2}}},
		{Dir: "/c", Held: []store.Held{{Generation: 2, Committed: true}}},
		{Dir: "/d", Held: []store.Held{{Generation: 3, Root: "another"}}},
		{Dir: "/e", Held: []store.Held{{Generation: 3, Root: "root 3"}}},
		{Dir: "/f", Failing: "it has another version", Unreachable: true},
	}}
	same(t, "notes", s.Notes(), []string{
		"/a cannot be read: EIO. To recover its data elsewhere, give another, empty directory in its place",
		"damaged",
		"/c has generation 2, and the group is at generation 3",
		"/f cannot be reached: it has another version",
		"/b: an interrupted run has left tmp-x, pending.4, pending.2 in /b/.volley, which the next protect or recover removes",
		"/d: an interrupted run has left pending.3 in /d/.volley, which the next protect or recover removes",
	})
}
