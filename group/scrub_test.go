package group

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk/disktest"
	"volley/transport"
)

const scrubPath = tree.MetaName + "/" + store.ScrubName + "/read.json"

func (w *world) shareBy(p *disktest.Process, share float64) (*VerifyReport, error) {
	return overRanks(w, p, func(ctx context.Context, g *Group) (*VerifyReport, error) { return g.VerifyShare(ctx, share) })
}

// readsOf runs a share, and returns its report and the bytes that it has read, by file.
func (w *world) readsOf(t *testing.T, share float64) (*VerifyReport, map[string]int64) {
	t.Helper()
	read := map[string]int64{}
	p := w.Process()
	p.Before = func(c disktest.Call) error {
		if c.Op == "readat" || c.Op == "read" {
			read[c.Path] += int64(c.Bytes)
		}
		return nil
	}
	r, err := w.shareBy(p, share)
	must(t, err)
	return r, read
}

// scrubOf returns what is noted at a node.
func (w *world) scrubOf(t *testing.T, n int) string {
	t.Helper()
	text, err := w.ReadFile(w.dirs[n] + "/" + scrubPath)
	must(t, err)
	return string(text)
}

// TestShares reads a quiet group in shares. Together they read everything of a node, each byte once; then it is noted that
// all was read, and the next ones do the same.
func TestShares(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.1, 0.3, 0.5, 0.999} {
		for _, ranks := range []int{1, 2} {
			w := newWorld(4, 1, Striped)
			w.ranks = ranks
			must(t, w.protect())
			for round := range 2 {
				sum := make([]map[string]int64, len(w.dirs))
				done := make([]bool, len(w.dirs))
				for i := range sum {
					sum[i] = map[string]int64{}
				}
				most := int(1/share + 0.999)
				for range most {
					r, read := w.readsOf(t, share)
					if r.Share != share || !r.Whole {
						t.Fatalf("share %v: %+v", share, r)
					}
					for n, dir := range w.dirs {
						if done[n] {
							continue
						}
						for path, bytes := range read {
							if strings.HasPrefix(path, dir+"/") && (!strings.Contains(path, tree.MetaName) || strings.HasSuffix(path, "/"+store.ParityFile)) {
								sum[n][path] += bytes
							}
						}
						done[n] = !strings.Contains(w.scrubOf(t, n), `"next"`)
						if done[n] && r.Nodes[n].Read == nil {
							t.Errorf("share %v: node %d was read, and the report does not say so: %+v", share, n, r.Nodes[n])
						}
					}
					if round > 0 { // each begins anew where it has ended
						break
					}
				}
				for n, dir := range w.dirs {
					if round == 0 && !done[n] {
						t.Errorf("share %v: %d shares have not read all of node %d: %s", share, most, n, w.scrubOf(t, n))
					}
					files := slices.DeleteFunc(w.filesOf(n), func(p string) bool { return strings.HasSuffix(p, "/twin") }) // another name
					for _, path := range append(files, dir+"/"+tree.MetaName+"/"+store.GenerationDir(1)+"/"+store.ParityFile) {
						info, err := w.Lstat(path)
						must(t, err)
						if is := sum[n][path]; round == 0 && is != info.Size() {
							t.Errorf("share %v: %d bytes were read of %s, which has %d", share, is, path, info.Size())
						}
					}
				}
			}
		}
	}
}

// TestSharesMeanwhile protects a group anew after each share, in which files have come, gone and changed. What stays is
// read in as many shares as a quiet group takes, and at most two more.
func TestSharesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1, Striped)
	for n := range w.dirs {
		for i := range 30 {
			w.WriteFile(fmt.Sprintf("%s/keep%02d", w.dirs[n], i), []byte(strings.Repeat("k", 1000+i)), 0o644)
		}
	}
	must(t, w.protect())
	read := map[string]bool{}
	for i := range 12 {
		_, of := w.readsOf(t, 0.1)
		for path := range of {
			read[path] = true
		}
		w.Wait(time.Hour)
		for _, dir := range w.dirs {
			w.WriteFile(fmt.Sprintf("%s/aaa%d", dir, i%5), []byte(strings.Repeat("a", 100*i)), 0o644)
			w.WriteFile(fmt.Sprintf("%s/zzz%d", dir, i%3), []byte(strings.Repeat("z", 100*i)), 0o644)
		}
		if i%4 == 3 {
			w.Remove(fmt.Sprintf("%s/aaa%d", w.dirs[1], i%5))
		}
		must(t, w.protect())
	}
	for n, dir := range w.dirs {
		for i := range 30 {
			if path := fmt.Sprintf("%s/keep%02d", dir, i); !read[path] {
				t.Errorf("%s was not read", path)
			}
		}
		if !strings.Contains(w.scrubOf(t, n), `"whole"`) {
			t.Errorf("node %d was never read whole: %s", n, w.scrubOf(t, n))
		}
	}
}

// TestShareRot has files and parity rot. The share that reads them says so, and so do all later ones until they are back.
func TestShareRot(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 2, Striped)
	must(t, w.protect())
	w.Overwrite("/n1/big", 69_000, []byte{0, 1, 2, 3}, true)
	w.Overwrite("/n2/"+tree.MetaName+"/"+store.GenerationDir(1)+"/"+store.ParityFile, 100, []byte{0, 1, 2, 3}, true)
	found := map[int]int{}
	for i := range 12 {
		r, err := w.shareBy(w.Process(), 0.1)
		must(t, err)
		for _, n := range r.Nodes {
			switch is := n.Status == Damaged; {
			case is && found[n.Node] == 0:
				found[n.Node] = i + 1
			case !is && found[n.Node] > 0:
				t.Errorf("share %d: node %d was damaged before, and is %s", i, n.Node, n.Status)
			case is && (len(n.Findings) != 1 || n.Node == 1 && n.Findings[0].Path != "big"):
				t.Errorf("share %d: %+v", i, n)
			}
		}
	}
	if len(found) != 2 || found[1] == 0 || found[2] == 0 {
		t.Fatalf("found after shares, by node: %v", found)
	}
	r, err := w.shareBy(w.Process(), 0.1)
	must(t, err)
	if r.MayLose >= 2 || len(r.Risks) == 0 {
		t.Errorf("blocks have rotted, and %d more nodes may be lost: %+v", r.MayLose, r.Risks)
	}
	must(t, w.recover())
	r, err = w.shareBy(w.Process(), 0.1)
	must(t, err)
	if !r.Whole {
		t.Errorf("recovered: %+v", r)
	}
	if text := w.scrubOf(t, 1); strings.Contains(text, `"wrong"`) {
		t.Errorf("what is back is noted as wrong: %s", text)
	}
}

// TestScrubFile has what is noted be anything else. Verify begins again, says so once, and finds what it found before.
func TestScrubFile(t *testing.T) {
	t.Parallel()
	scrub := "/n1/" + scrubPath
	for name, do := range map[string]func(w *world){
		"damaged":   func(w *world) { w.Overwrite(scrub, 20, []byte("xx"), true) },
		"cut short": func(w *world) { w.WriteFile(scrub, nil, 0o600) },
		"another's": func(w *world) {
			text, _ := w.ReadFile("/n2/" + scrubPath)
			w.WriteFile(scrub, text, 0o600)
		},
		"a directory": func(w *world) {
			w.Remove(scrub)
			w.MkdirAll(scrub+"/of somebody", 0o700)
		},
		"missing":  func(w *world) { w.Remove(scrub) },
		"all gone": func(w *world) { w.RemoveAll("/n1/" + tree.MetaName + "/" + store.ScrubName) },
	} {
		w := newWorld(3, 1, Striped)
		must(t, w.protect())
		for range 2 {
			_, err := w.shareBy(w.Process(), 0.1)
			must(t, err)
		}
		do(w)
		r, err := w.shareBy(w.Process(), 0.1)
		if err != nil || !r.Whole {
			t.Errorf("%s: %+v, %v", name, r, err)
			continue
		}
		about := func(r *VerifyReport) int {
			return len(slices.DeleteFunc(slices.Clone(r.Notes), func(s string) bool { return !strings.Contains(s, "/n1") || !strings.Contains(s, "first file") }))
		}
		if about(r) != 1 {
			t.Errorf("%s: notes %q", name, r.Notes)
		}
		if r, err = w.shareBy(w.Process(), 0.1); err != nil || about(r) != 0 {
			t.Errorf("%s: once more: notes %q, %v", name, r.Notes, err)
		}
	}
	w := newWorld(3, 1, Striped) // nothing can be noted
	must(t, w.protect())
	w.WriteFile("/n1/"+tree.MetaName+"/"+store.ScrubName, []byte("somebody's"), 0o600)
	r, err := w.shareBy(w.Process(), 0.1)
	if err != nil || !r.Whole || !slices.ContainsFunc(r.Notes, func(s string) bool { return strings.Contains(s, "cannot be noted") }) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := w.verifyBy(w.Process()); err != nil || !r.Whole {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, w.protect())
}

// TestScrubInterrupted interrupts shares at each call. Nothing of the protection changes, what is noted is what was noted
// before or afterwards, and the shares that follow read everything.
func TestScrubInterrupted(t *testing.T) {
	t.Parallel()
	before := newWorld(3, 1, Striped).ordered()
	must(t, before.protect())
	for range 2 {
		_, err := before.shareBy(before.Process(), 0.2)
		must(t, err)
	}
	on := func(m *disktest.Machine) *world {
		c := *before
		c.Machine = m
		return &c
	}
	was, is := before.scrubOf(t, 1), ""
	trees := before.trees()
	tried := (&disktest.Sweep{
		Machine: before.Machine,
		Run: func(p *disktest.Process) error {
			_, err := on(p.Machine()).shareBy(p, 0.2)
			return err
		},
		Check: func(x *disktest.Interrupted) error {
			w := on(x.Machine)
			text, err := w.ReadFile("/n1/" + scrubPath)
			if x.Name == "" {
				is = string(text)
			}
			if next := func(s string) string { _, s, _ = strings.Cut(s, `"next"`); s, _, _ = strings.Cut(s, "}"); return s }; err != nil || next(string(text)) != next(was) && next(string(text)) != next(is) {
				return fmt.Errorf("noted: %v, %q", err, text)
			}
			for n, tree := range w.trees() {
				if err := diff("files", trees[n], tree); err != nil {
					return err
				}
			}
			for range 5 {
				if r, err := w.shareBy(w.Process(), 0.2); err != nil || !r.Whole {
					return fmt.Errorf("the next share: %v, %+v", err, r)
				}
			}
			if text, _ := w.ReadFile("/n1/" + scrubPath); !strings.Contains(string(text), `"whole"`) {
				return fmt.Errorf("not read whole: %s", text)
			}
			if err := w.protect(); err != nil {
				return fmt.Errorf("protect: %w", err)
			}
			if left := w.Tree("/n1/" + tree.MetaName + "/" + store.ScrubName); strings.Count(left, "\n") > 3 {
				return fmt.Errorf("left: %s", left)
			}
			return nil
		},
		Some: 6 * *mostCalls,
	}).Test(t)
	t.Logf("%d runs were interrupted", tried)
}

// TestTwoShares has a run take a whole share while another one reads the same. Both say what they have read, and what is
// noted is what one of them has.
func TestTwoShares(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1, Striped)
	must(t, w.protect())
	calls := w.clone().Calls(func(p *disktest.Process) { w.shareBy(p, 0.1) })
	for at := range calls {
		if at%7 > 0 && !strings.Contains(calls[at].Path, "/"+store.ScrubName) {
			continue
		}
		c := w.clone()
		p := c.Process()
		var inner error
		p.At(at, func() {
			var r *VerifyReport
			if r, inner = c.shareBy(c.Process(), 0.1); inner == nil && (!r.Whole || slices.ContainsFunc(r.Notes, func(s string) bool { return strings.Contains(s, "cannot be noted") })) {
				inner = fmt.Errorf("%+v", r)
			}
		})
		r, err := c.shareBy(p, 0.1)
		if err != nil || inner != nil || !r.Whole {
			t.Fatalf("at %v: %v, %v, %+v", calls[at], err, inner, r)
		}
		for range 10 {
			if r, err = c.shareBy(c.Process(), 0.1); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range r.Nodes {
			if n.Read == nil {
				t.Errorf("at %v: node %d was not read whole", calls[at], n.Node)
			}
		}
	}
}

// TestReadWhole says when nodes were read whole: by verify, and no other verb. Nodes that are lost, and what is noted at
// them, count for nothing, and unprotect removes it.
func TestReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1, Striped)
	must(t, w.protect())
	read := func() (list []bool) {
		t.Helper()
		r, err := w.statusBy(w.Process())
		must(t, err)
		for _, n := range r.Nodes {
			list = append(list, n.Read != nil)
		}
		return list
	}
	if is := read(); slices.Contains(is, true) {
		t.Errorf("protected: %v", is)
	}
	begun := time.Now().Add(-time.Second)
	v, err := w.verifyBy(w.Process())
	must(t, err)
	if is := read(); slices.Contains(is, false) || v.Nodes[2].Read == nil || v.Nodes[2].Read.From.Before(begun) || v.Nodes[2].Read.To.Before(v.Nodes[2].Read.From) || v.ReadBytes == 0 {
		t.Errorf("verified: %v, %+v", is, v.Nodes[2])
	}
	must(t, w.protect())
	if is := read(); slices.Contains(is, false) {
		t.Errorf("protected again: %v", is)
	}
	for path := range lines(w.Tree("/n1")) { // all but what is noted
		if path != "." && !strings.HasPrefix(path, tree.MetaName+"/"+store.ScrubName) && path != tree.MetaName {
			w.RemoveAll("/n1/" + path)
		}
	}
	if r, err := w.statusBy(w.Process()); err != nil || r.Nodes[1].Status != Lost {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, w.recover(), w.whole())
	_, err = overRanks(w, w.Process(), func(ctx context.Context, g *Group) (*UnprotectReport, error) {
		return g.Unprotect(ctx, UnprotectOptions{})
	})
	must(t, err)
	for _, dir := range w.dirs {
		if w.Exists(dir + "/" + tree.MetaName) {
			t.Errorf("%s", w.Tree(dir+"/"+tree.MetaName))
		}
	}
}

// TestShareRefused refuses shares that are none.
func TestShareRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1, Striped)
	must(t, w.protect())
	for _, share := range []float64{0, -1, 1.01} {
		if _, err := w.shareBy(w.Process(), share); !IsInputError(err) {
			t.Errorf("%v: %v", share, err)
		}
	}
	w.ranks = 3
	for _, shares := range [][]float64{{0.1, 0.1, 0.2}, {1, 1, 0.5}, {0.5, 1, 1}} {
		o := w.options(w.Process(), Options{})
		_, err := onRanks(w, func(ctx context.Context, t transport.Transport, dirs []string) (*VerifyReport, error) {
			g := Over(t, dirs, o)
			if share := shares[t.Rank()]; share < 1 {
				return g.VerifyShare(ctx, share)
			}
			return g.Verify(ctx)
		})
		if !IsInputError(err) || !strings.Contains(err.Error(), "share is ") {
			t.Errorf("%v: %v", shares, err)
		}
	}
}
