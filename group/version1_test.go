package group

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"volley/internal/disk/disktest"
)

// version1 returns a group that was protected by the program that wrote version 1.
func version1(t testing.TB, layout string) *world {
	t.Helper()
	f, err := os.Open("testdata/version1.tar.gz")
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	w := &world{Machine: disktest.New(), r: 1, layout: layout, ranks: 1, dirs: []string{"/n0", "/n1", "/n2"}}
	var headers []*tar.Header
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		rest, ok := strings.CutPrefix(strings.TrimSuffix(h.Name, "/"), layout+"/")
		if !ok {
			continue
		}
		h.Name = "/" + rest
		headers = append(headers, h)
		switch h.Typeflag {
		case tar.TypeDir:
			w.MkdirAll(h.Name, 0o700)
			w.Chmod(h.Name, fs.FileMode(h.Mode))
		case tar.TypeSymlink:
			w.Symlink(h.Linkname, h.Name)
		default:
			text, err := io.ReadAll(r)
			must(t, err)
			w.WriteFile(h.Name, text, fs.FileMode(h.Mode))
		}
	}
	for _, h := range headers {
		w.SetTime(h.Name, h.ModTime)
	}
	return w
}

// TestVersion1 verifies and recovers what an earlier program has protected, and protects it
// anew, which writes version 2.
func TestVersion1(t *testing.T) {
	for _, layout := range []string{Full, Striped} {
		for _, ranks := range []int{1, 3} {
			w := version1(t, layout)
			w.ranks = ranks
			must(t, w.whole())
			was := w.trees()
			back := func(what string) {
				t.Helper()
				for n := range w.dirs {
					if err := diff(what, was[n], w.tree(n)); err != nil {
						t.Fatalf("%s, %d ranks: node %d: %v", layout, ranks, n, err)
					}
				}
				must(t, w.whole())
			}
			for n := range w.dirs {
				w.lose(n/2, n)
				must(t, w.recover())
				back("lost")
			}
			// One byte of a file, in each of its blocks; parity; the manifest.
			for _, at := range []int64{0, 70_000, 140_000, 199_999} {
				w.Overwrite("/n1/big", at, []byte("#"), true)
				r, err := w.verifyBy(w.Process(), VerifyOptions{})
				must(t, err)
				if n := r.Nodes[1]; n.Status != Damaged || len(n.Findings) != 1 || n.Findings[0].Path != "big" {
					t.Errorf("%s: %+v", layout, n)
				}
				must(t, w.recover())
				back("damaged")
			}
			for n, name := range []string{"parity.1", "manifest.1.json", "node.json"} {
				w.Overwrite(w.dirs[n]+"/.volley/"+name, 3, []byte("#"), true)
				r, err := w.verifyBy(w.Process(), VerifyOptions{})
				must(t, err)
				if r.Whole || r.Nodes[n].Status != Damaged {
					t.Errorf("%s: %s: %+v", layout, name, r.Nodes[n])
				}
				must(t, w.recover())
				back(name)
			}
			// What has rotted is not protected anew.
			c := w.clone()
			c.Overwrite("/n2/plain", 3, []byte("#"), true)
			if err := c.protect(); !IsInputError(err) || !strings.Contains(err.Error(), "/n2/plain is damaged") {
				t.Errorf("%s: %v", layout, err)
			}
			must(t, c.recover())
			if err := diff("rotten", was[2], c.tree(2)); err != nil {
				t.Error(err)
			}
			// Version 2 follows, and is what comes back.
			w.WriteFile("/n0/plain", []byte(strings.Repeat("changed", 50)), 0o600)
			was = w.trees()
			must(t, w.protect())
			must(t, w.tidy(2))
			back("protected")
			text, err := w.ReadFile("/n1/.volley/manifest.2.json")
			must(t, err)
			m, err := DecodeManifest(text)
			must(t, err)
			if m.Version != Version || m.Layout != layout {
				t.Errorf("%s: version %d, layout %s", layout, m.Version, m.Layout)
			}
			for n := range w.dirs {
				w.lose(n, n)
				must(t, w.recover())
				back("lost from version 2")
			}
		}
	}
}

// TestVersion1Stale protects a group of version 1 anew, and puts a node of version 1 back: its
// files come to the generation of the group.
func TestVersion1Stale(t *testing.T) {
	w := version1(t, Striped)
	w.CopyTree("/n1", "/old")
	w.WriteFile("/n1/plain", []byte("changed"), 0o600)
	was := w.trees()
	must(t, w.protect())
	w.RemoveAll("/n1")
	w.CopyTree("/old", "/n1")
	r, err := w.verifyBy(w.Process(), VerifyOptions{})
	must(t, err)
	if r.Nodes[1].Status != Stale {
		t.Errorf("%+v", r.Nodes[1])
	}
	must(t, w.recover())
	must(t, w.whole())
	if err := diff("node 1", withoutTimes(was[1]), withoutTimes(w.tree(1))); err != nil {
		t.Error(err)
	}
}
