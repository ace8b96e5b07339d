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
	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/transport"
)

const scrubPath = tree.MetaName + "/" + store.ScrubName

func (w *world) partBy(p *disktest.Process, part, parts int) (*VerifyReport, error) {
	return overRanks(w, p, func(ctx context.Context, g *Group) (*VerifyReport, error) {
		return g.Verify(ctx, VerifyOptions{part, parts})
	})
}

// readsOf verifies a part, and returns its report and the bytes that it has read, by file.
func (w *world) readsOf(t *testing.T, part, parts int) (*VerifyReport, map[string]int64) {
	t.Helper()
	read := map[string]int64{}
	p := w.Process()
	p.Hook = func(c disktest.Call) error {
		if c.Op == "readat" || c.Op == "read" {
			read[c.Path] += int64(c.Bytes)
		}
		return nil
	}
	r, err := w.partBy(p, part, parts)
	must(t, err)
	return r, read
}

// digested lists the files of all nodes that have digests: those of users, but for other names, and the parity.
func (w *world) digested() (list []string) {
	for n, dir := range w.dirs {
		files := slices.DeleteFunc(w.filesOf(n), func(p string) bool { return strings.HasSuffix(p, "/twin") })
		list = append(append(list, files...), dir+"/plain", dir+"/"+tree.MetaName+"/"+store.GenerationDir(1)+"/"+store.ParityFile)
	}
	return list
}

// everRead reports of each node whether the report says since when all of it was read.
func everRead(r *VerifyReport) (list []bool) {
	for _, n := range r.Nodes {
		list = append(list, n.Read != nil)
	}
	return list
}

// TestParts reads a quiet group in parts. Together they read everything of a node, each byte once, and they cut large
// files. With the last one, whichever it is, all was read.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, parts := range []int{1, 2, 7, 30} {
		for _, ranks := range []int{1, 2} {
			w := newWorld(4, 1)
			w.ranks = ranks
			w.WriteFile("/n3/large", []byte(strings.Repeat("large", 200_000)), 0o644)
			must(t, w.protect())
			sum, all := map[string]int64{}, int64(0)
			for i := range parts {
				r, read := w.readsOf(t, parts-i, parts)
				if !r.Intact || parts > 1 && (r.Part != parts-i || r.Parts != parts) {
					t.Fatalf("part %d of %d: %+v", parts-i, parts, r)
				}
				for path, bytes := range read {
					sum[path] += bytes
				}
				all += r.ReadBytes
				if want := slices.Repeat([]bool{i == parts-1}, 4); !slices.Equal(everRead(r), want) {
					t.Errorf("%d of %d parts: read whole: %v", i+1, parts, everRead(r))
				}
				if large := read["/n3/large"]; parts > 1 && large == 1_000_000 {
					t.Errorf("part %d of %d has all of the large file", parts-i, parts)
				}
			}
			want := int64(0)
			for _, path := range w.digested() {
				info, err := w.Lstat(path)
				must(t, err)
				if want += info.Size(); sum[path] != info.Size() {
					t.Errorf("%d parts: %d bytes were read of %s, which has %d", parts, sum[path], path, info.Size())
				}
			}
			if all != want {
				t.Errorf("%d parts: reports say that %d bytes were read: want %d", parts, all, want)
			}
		}
	}
}

// TestPartsDamage damages a byte of each file and of the parity, first, last and in between. Verify finds it, and so does
// exactly one of the parts, at that node alone.
func TestPartsDamage(t *testing.T) {
	t.Parallel()
	const parts = 3
	whole := newWorld(3, 1)
	must(t, whole.protect())
	in := map[int]int{} // damaged bytes, by the part that finds them
	for _, path := range whole.digested() {
		text, err := whole.ReadFile(path)
		must(t, err)
		for at := 0; at < len(text); at = max(at+1, min(at+20_000, len(text)-1)) {
			w := whole.clone()
			w.Overwrite(path, int64(at), []byte{text[at] ^ 1}, true)
			finds := func(part, parts int) bool {
				r, err := w.partBy(w.Process(), part, parts)
				must(t, err)
				for _, n := range r.Nodes {
					mine := strings.HasPrefix(path, n.Dir+"/")
					if n.Status != Intact && (!mine || n.Status != Damaged || n.Dir+"/"+string(n.Findings[0].Path) != path) {
						t.Errorf("byte %d of %s: %+v", at, path, n)
					}
				}
				return !r.Intact
			}
			if !finds(1, 1) {
				t.Errorf("byte %d of %s is damaged, and verify finds nothing", at, path)
			}
			found := 0
			for part := 1; part <= parts; part++ {
				if finds(part, parts) {
					found++
					in[part]++
				}
			}
			if found != 1 {
				t.Errorf("byte %d of %s is damaged, and %d parts find it", at, path, found)
			}
		}
	}
	if in[1] < 5 || in[2] < 5 || in[3] < 5 {
		t.Errorf("damaged bytes by the parts that have found them: %v", in)
	}
}

// TestPartsMeanwhile protects a group anew after each part, in which files have come, gone and changed. What stays is
// read in one part.
func TestPartsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	for n := range w.dirs {
		for i := range 30 {
			w.WriteFile(fmt.Sprintf("%s/keep%02d", w.dirs[n], i), []byte(strings.Repeat("k", 1000+i)), 0o644)
		}
	}
	must(t, w.protect())
	read := map[string]int64{}
	var last *VerifyReport
	for i := range 12 {
		r, of := w.readsOf(t, i+1, 12)
		for path, bytes := range of {
			read[path] += bytes
		}
		last = r
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
	for _, dir := range w.dirs {
		for i := range 30 {
			if path := fmt.Sprintf("%s/keep%02d", dir, i); read[path] != int64(1000+i) {
				t.Errorf("%d bytes of %s were read", read[path], path)
			}
		}
	}
	if slices.Contains(everRead(last), false) {
		t.Errorf("nodes were read whole: %v", everRead(last))
	}
}

// TestLastRead has what is noted be anything else. Verify goes on, and what is not noted counts as never read. Of several
// numbers of parts the one counts by which all was read last, and of its parts the one that was read the longest ago.
func TestLastRead(t *testing.T) {
	t.Parallel()
	whole := newWorld(3, 1)
	must(t, whole.protect())
	for part := range 4 {
		_, err := whole.partBy(whole.Process(), part+1, 4)
		must(t, err)
	}
	for name, do := range map[string]func(w *world){
		"missing":  func(w *world) { w.Remove("/n1/" + scrubPath + "/2-4") },
		"all gone": func(w *world) { w.RemoveAll("/n1/" + scrubPath) },
		"a directory": func(w *world) {
			w.Remove("/n1/" + scrubPath + "/2-4")
			w.MkdirAll("/n1/"+scrubPath+"/2-4/of somebody", 0o700)
		},
		"somebody's": func(w *world) {
			w.RemoveAll("/n1/" + scrubPath)
			w.WriteFile("/n1/"+scrubPath, []byte("somebody's"), 0o600)
		},
		"other names": func(w *world) {
			w.Rename("/n1/"+scrubPath+"/2-4", "/n1/"+scrubPath+"/02-4")
			for _, name := range []string{"2-4 ", "0-4", "5-4", "-1-4", "2-", "1-1001", "x"} {
				w.WriteFile("/n1/"+scrubPath+"/"+name, nil, 0o600)
			}
		},
	} {
		w := whole.clone()
		do(w)
		r, err := w.partBy(w.Process(), 3, 4)
		if want := []bool{true, name == "a directory", true}; err != nil || !r.Intact || !slices.Equal(everRead(r), want) {
			t.Errorf("%s: read whole: %v: %+v, %v", name, everRead(r), r, err)
		}
		if r, err = w.verifyBy(w.Process()); err != nil || !r.Intact || everRead(r)[1] != (name != "somebody's") {
			t.Errorf("%s: verify: %+v, %v", name, r, err)
		}
		must(t, w.protect())
	}
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 4 {
		whole.SetTime(fmt.Sprintf("/n1/%s/%d-4", scrubPath, i+1), now.Add(time.Duration((i+2)%4)*time.Hour))
	}
	for _, at := range []time.Duration{-time.Hour, time.Hour} {
		want := protection.Reading{Since: now, Part: 3, Parts: 4}
		if whole.WriteFile("/n1/"+scrubPath+"/1-1", nil, 0o600); at > 0 {
			want = protection.Reading{Since: now.Add(at), Part: 1, Parts: 1}
		}
		whole.SetTime("/n1/"+scrubPath+"/1-1", now.Add(at))
		if r, err := whole.statusBy(whole.Process()); err != nil || r.Nodes[1].Read == nil || *r.Nodes[1].Read != want {
			t.Errorf("%v: %+v, %v: want %v", at, r.Nodes[1].Read, err, want)
		}
	}
}

// TestPartInterrupted interrupts the reading of a part at each call. Nothing of the protection changes, and the parts are
// noted when they are read again.
func TestPartInterrupted(t *testing.T) {
	t.Parallel()
	before := newWorld(3, 1).ordered()
	must(t, before.protect())
	_, err := before.partBy(before.Process(), 1, 2)
	must(t, err)
	on := func(m *disktest.Machine) *world {
		c := *before
		c.Machine = m
		return &c
	}
	trees := before.trees()
	tried := (&disktest.Sweep{
		Machine: before.Machine,
		Run: func(p *disktest.Process) error {
			_, err := on(p.Machine()).partBy(p, 2, 2)
			return err
		},
		Check: func(x *disktest.Interrupted) error {
			w := on(x.Machine)
			for n, tree := range w.trees() {
				if err := diff("files", trees[n], tree); err != nil {
					return err
				}
			}
			for part := 1; part <= 2; part++ {
				r, err := w.partBy(w.Process(), part, 2)
				if err != nil || !r.Intact || part == 2 && slices.Contains(everRead(r), false) {
					return fmt.Errorf("part %d once more: %v, %+v", part, err, r)
				}
			}
			if err := w.protect(); err != nil {
				return fmt.Errorf("protect: %w", err)
			}
			if left := w.Tree("/n1/" + scrubPath); strings.Count(left, "\n") != 3 {
				return fmt.Errorf("left: %s", left)
			}
			return nil
		},
		Tries: 6 * *mostCalls,
	}).Test(t)
	t.Logf("%d runs were interrupted", tried)
}

// TestTwoParts has a run read a part while another one reads the same, or another. All parts that were read are noted.
func TestTwoParts(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	calls := w.clone().Calls(func(p *disktest.Process) { w.partBy(p, 1, 2) })
	for at := range calls {
		if at%7 > 0 && !strings.Contains(calls[at].Path, "/"+store.ScrubName) {
			continue
		}
		for other := 1; other <= 2; other++ {
			c := w.clone()
			p := c.Process()
			var inner error
			p.CallAt(at, func() {
				var r *VerifyReport
				if r, inner = c.partBy(c.Process(), other, 2); inner == nil && !r.Intact {
					inner = fmt.Errorf("%+v", r)
				}
			})
			r, err := c.partBy(p, 1, 2)
			if err != nil || inner != nil || !r.Intact {
				t.Fatalf("at %v: %v, %v, %+v", calls[at], err, inner, r)
			}
			r, err = c.partBy(c.Process(), 3-other, 2)
			if err != nil || slices.Contains(everRead(r), false) {
				t.Errorf("at %v: nodes were read whole: %v, %v", calls[at], everRead(r), err)
			}
		}
	}
}

// TestReadWhole says since when nodes were read whole: by verify, and no other verb. Nodes that are lost, and what is
// noted at them, count for nothing, and unprotect removes it.
func TestReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	read := func() []bool {
		t.Helper()
		r, err := w.statusBy(w.Process())
		must(t, err)
		return everRead(r)
	}
	if is := read(); slices.Contains(is, true) {
		t.Errorf("protected: %v", is)
	}
	begun := time.Now().Add(-time.Second)
	v, err := w.verifyBy(w.Process())
	must(t, err)
	if is := read(); slices.Contains(is, false) || v.Nodes[2].Read == nil || v.Nodes[2].Read.Since.Before(begun) || v.Nodes[2].Read.Since.After(time.Now()) || v.ReadBytes == 0 {
		t.Errorf("verified: %v, %+v", is, v.Nodes[2])
	}
	must(t, w.protect())
	if is := read(); slices.Contains(is, false) {
		t.Errorf("protected again: %v", is)
	}
	for path := range lines(w.Tree("/n1")) { // all but what is noted
		if path != "." && !strings.HasPrefix(path, scrubPath) && path != tree.MetaName {
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

// TestPartRefused refuses parts that there are not, and ranks that are to read several.
func TestPartRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	for _, o := range []VerifyOptions{{0, 1}, {1, 0}, {-1, 2}, {3, 2}, {1, 1001}} {
		if _, err := w.partBy(w.Process(), o.Part, o.Parts); !IsInputError(err) {
			t.Errorf("%v: %v", o, err)
		}
	}
	w.ranks = 3
	for _, parts := range [][]VerifyOptions{{{1, 3}, {1, 3}, {2, 3}}, {{}, {}, {1, 2}}, {{1, 2}, {1, 3}, {1, 2}}} {
		o := w.options(w.Process(), protection.Settings{})
		_, err := onRanks(w, func(ctx context.Context, t transport.Transport, dirs []string) (*VerifyReport, error) {
			return overSetup(t, dirs, o).Verify(ctx, parts[t.Rank()])
		})
		if !IsInputError(err) || !strings.Contains(err.Error(), "part (") && !strings.Contains(err.Error(), "parts (") {
			t.Errorf("%v: %v", parts, err)
		}
	}
}
