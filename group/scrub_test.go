package group

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk/disktest"
)

const scrubPath = tree.MetaName + "/" + store.ScrubName

func (w *world) partBy(p *disktest.Process, part, parts int) (*VerifyReport, error) {
	return overRanks(w, p, func(ctx context.Context, g *Group) (*VerifyReport, error) {
		return g.Verify(ctx, VerifyOptions{part, parts})
	})
}

// digested lists the files of all nodes that have digests: those of users, but for other names, and the parity.
func (w *world) digested() (list []string) {
	for n, dir := range w.dirs {
		files := slices.DeleteFunc(w.filesOf(n), func(p string) bool { return strings.HasSuffix(p, "/twin") })
		list = append(append(list, files...), dir+"/plain", dir+"/"+parityPath(1))
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
	for _, x := range []struct{ parts, ranks int }{{1, 1}, {2, 2}, {7, 1}} {
		parts := x.parts
		w := newWorld(4, 1)
		w.ranks = x.ranks
		w.WriteFile("/n3/large", []byte(strings.Repeat("large", 200_000)), 0o644)
		must(t, w.protect())
		sum, all := map[string]int64{}, int64(0)
		for i := range parts {
			read := map[string]int64{}
			p := w.Process()
			p.Hook = func(c disktest.Call) error {
				if c.Op == "readat" || c.Op == "read" {
					read[c.Path] += int64(c.Bytes)
				}
				return nil
			}
			r, err := w.partBy(p, parts-i, parts)
			if err != nil || !r.Intact || parts > 1 && (r.Part != parts-i || r.Parts != parts) {
				t.Fatalf("part %d of %d: %+v, %v", parts-i, parts, r, err)
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

// TestReadWhole says since when nodes were read whole: by verify, and no other verb. Nodes that are lost, and what is
// noted at them, count for nothing, nobody else's files are in the way, and unprotect removes it.
func TestReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 1)
	must(t, w.protect())
	read := func(what string, want bool) {
		t.Helper()
		r, err := w.statusBy(w.Process())
		must(t, err)
		if is := everRead(r); !slices.Equal(is, slices.Repeat([]bool{want}, 3)) {
			t.Errorf("%s: %v", what, is)
		}
	}
	read("protected", false)
	begun := time.Now().Add(-time.Second)
	v, err := w.verifyBy(w.Process())
	must(t, err)
	if v.Nodes[2].Read == nil || v.Nodes[2].Read.Since.Before(begun) || v.Nodes[2].Read.Since.After(time.Now()) || v.ReadBytes == 0 {
		t.Errorf("verified: %+v", v.Nodes[2])
	}
	read("verified", true)
	must(t, w.protect())
	read("protected again", true)
	c := w.clone()
	c.RemoveAll("/n1/" + scrubPath)
	c.WriteFile("/n1/"+scrubPath, []byte("somebody's"), 0o600)
	if r, err := c.verifyBy(c.Process()); err != nil || !r.Intact || everRead(r)[1] {
		t.Errorf("somebody's file: %+v, %v", r, err)
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
	_, err = w.unprotectBy(w.Process(), UnprotectOptions{})
	must(t, err)
	if w.Exists("/n0/" + tree.MetaName) {
		t.Errorf("%s", w.Tree("/n0/"+tree.MetaName))
	}
	for _, o := range []VerifyOptions{{0, 1}, {1, 0}, {3, 2}, {1, 1001}} {
		if _, err := w.partBy(w.Process(), o.Part, o.Parts); !IsInputError(err) {
			t.Errorf("%v: %v", o, err)
		}
	}
}
