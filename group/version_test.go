package group

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// everything lists what is the user's at all nodes, and all files of Volley's but for locks.
func (w *world) everything() string {
	list := w.trees()
	for _, dir := range w.dirs {
		for line := range strings.Lines(w.Tree(dir+"/"+tree.MetaName, store.ScrubName)) {
			if name, _, _ := strings.Cut(line, " "); name != "." && name != store.LockFile {
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
			if info, err := w.Lstat(dir + "/.volley/" + name); err == nil && info.IsDir() {
				continue
			}
			fmt.Fprintf(&b, "%s/%s %s\n", dir, name, disk.Sum([]byte(contentOf(w, dir+"/.volley/"+name))))
		}
	}
	return b.String()
}

// TestOtherVersion has every verb refuse groups in which a single node has a manifest of another version. Nothing of it is
// touched.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	other := func(head string) *world {
		w := newWorld(3, 1)
		must(t, w.protect())
		text, err := w.ReadFile("/n1/.volley/generation.1/manifest.json")
		must(t, err)
		line, _, _ := bytes.Cut(bytes.Replace(text, fmt.Appendf(nil, `"version":%d`, store.Version), []byte(head), 1), []byte("\n"))
		w.WriteFile("/n1/.volley/generation.1/manifest.json", disk.Seal(line), 0o600)
		return w
	}
	for _, x := range []struct {
		w    *world
		want string
	}{{other(`"version":5,"layout":"full"`), "/n1 has a manifest of version 5"}, {other(`"version":9`), "/n1 has a manifest of version 9"}} {
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
