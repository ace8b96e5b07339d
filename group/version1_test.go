package group

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"volley/internal/disk"
)

// version1 returns a group that was protected by the program that wrote version 1.
func version1(t testing.TB, layout string) *world { return archived(t, "version1", layout, 3, 1) }

// archived returns a group of k nodes that an earlier program has protected.
func archived(t testing.TB, name, layout string, k, r int) *world {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".tar.gz")
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	w := &world{Machine: newMachine(), r: r, layout: layout, ranks: 1}
	for n := range k {
		w.dirs = append(w.dirs, fmt.Sprint("/n", n))
	}
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
			if strings.Contains(h.Name, metaName) {
				h.Mode &^= 0o077 // as every verb makes what is in there
			}
			w.WriteFile(h.Name, text, fs.FileMode(h.Mode))
		}
	}
	for _, h := range headers {
		w.SetTime(h.Name, h.ModTime)
	}
	return w
}

// everything lists what is the user's at all nodes, and all files of Volley's but for locks.
func (w *world) everything() string {
	list := w.trees()
	for _, dir := range w.dirs {
		for line := range strings.Lines(w.Tree(dir + "/" + metaName)) {
			if name, _, _ := strings.Cut(line, " "); name != "." && name != lockFile {
				list = append(list, line)
			}
		}
	}
	return strings.Join(list, "")
}

// stored lists what Volley has stored at all nodes, but for locks and what tells when files were written.
func (w *world) stored() string {
	var b strings.Builder
	for n, dir := range w.dirs {
		for _, name := range w.meta(n) {
			if name != touchFile {
				fmt.Fprintf(&b, "%s/%s %s\n", dir, name, disk.Sum([]byte(content(w, dir+"/.volley/"+name))))
			}
		}
	}
	return b.String()
}

// version2 gives the manifests of a group of version 3 version 2, which differs from it in its number.
func version2(t *testing.T, w *world) *world {
	for _, dir := range w.dirs {
		text, err := w.ReadFile(dir + "/.volley/manifest.1.json")
		must(t, err)
		line, _, _ := bytes.Cut(bytes.Replace(text, []byte(`"version":3`), []byte(`"version":2`), 1), []byte("\n"))
		w.WriteFile(dir+"/.volley/manifest.1.json", disk.Seal(line), 0o600)
	}
	return w
}

// TestVersions verifies, recovers and protects groups that have version 3, and version 2, which differs from it
// in its number and has one digest only. What recover writes is what the earlier program wrote. What has not
// changed is not coded again, and the records are coded.
func TestVersions(t *testing.T) {
	for _, x := range []struct {
		layout, digest string
		version        int
	}{{Full, SHA256, 3}, {Full, SHA256, 2}, {Striped, XXH3, 3}} {
		const k, r = 4, 2
		for _, ranks := range []int{1, 2, 4} {
			w := archived(t, "version3", x.layout, k, r)
			w.ranks = ranks
			if x.version == 2 {
				version2(t, w)
			}
			v, err := w.verifyBy(w.Process(), VerifyOptions{})
			must(t, err)
			if !v.Whole || v.Digest != x.digest || v.Tolerate != r {
				t.Errorf("%+v: %+v", x, v)
			}
			was, trees := w.stored(), w.trees()
			for _, lost := range [][]int{{0}, {3}, {0, 1}, {0, 2}, {1, 2}, {2, 3}, {3, 0}} {
				what := fmt.Sprintf("%+v, %d ranks, %v lost", x, ranks, lost)
				w.lose(len(lost)%2, lost...)
				if len(lost) == 1 { // of three copies of its record two are gone
					w.Remove(fmt.Sprintf("/n%d/.volley/member.1.%d.json", (lost[0]+1)%k, lost[0]))
				}
				must(t, w.recover())
				must(t, diff(what, was, w.stored()))
				for n := range w.dirs {
					must(t, diff(what, trees[n], w.tree(n)))
				}
			}
			report, err := w.protectBy(w.Process(), ProtectOptions{})
			must(t, err)
			if report.Coded != 0 || report.Generation != 2 || report.Digest != x.digest {
				t.Errorf("%+v: %+v", x, report)
			}
			must(t, w.tidy(2))
			must(t, w.whole())
		}
	}
}

// TestOtherVersion has every verb refuse a group of version 1, and one in which a single node has
// a manifest of a version to come. Nothing of it is touched.
func TestOtherVersion(t *testing.T) {
	later := newWorld(3, 1, Striped)
	must(t, later.protect())
	text, err := later.ReadFile("/n1/.volley/manifest.1.json")
	must(t, err)
	line, _, _ := bytes.Cut(bytes.Replace(text, fmt.Appendf(nil, `"version":%d`, Version), []byte(`"version":9`), 1), []byte("\n"))
	later.WriteFile("/n1/.volley/manifest.1.json", disk.Seal(line), 0o600)
	for _, x := range []struct {
		w    *world
		want string
	}{{version1(t, Full), "version 1"}, {version1(t, Striped), "version 1"}, {later, "/n1 has a manifest of version 9"}} {
		for _, ranks := range []int{1, 3} {
			x.w.ranks = ranks
			x.w.lose(0, 0) // an empty directory
			was := x.w.everything()
			for verb, f := range map[string]func() error{
				"protect": x.w.protect, "forced": func() error { _, err := x.w.protectBy(x.w.Process(), ProtectOptions{Force: true}); return err }, "recover": x.w.recover, "verify": x.w.whole,
			} {
				if err := f(); !IsInputError(err) || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "release that protected it") {
					t.Errorf("%s: %v", verb, err)
				}
				if err := diff(verb, was, x.w.everything()); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
