package store

import (
	"bytes"
	"fmt"
	"math"
	"path"
	"strings"
	"testing"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// FuzzUnsealKeyed checks that what is taken is what was sealed, with one HMAC or none, and that
// nothing is taken for what was made with a key and was not.
func FuzzUnsealKeyed(f *testing.F) {
	text := []byte(`{"a":1}`)
	f.Add(disk.Seal(text))
	f.Add(SealKeyed(text, MacOf([]byte("a key for tests, no more"), OfManifest, text)))
	f.Add(SealKeyed(text, MacOf([]byte("a key for tests, no more"), OfRun, text)))
	f.Add([]byte("{}\n{\"hmac_sha256\":\"\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, mac, err := UnsealKeyed(data)
		if err == nil && !bytes.Equal(data, disk.Seal(text)) && !bytes.Equal(data, SealKeyed(text, mac)) {
			t.Errorf("%q is %q, %q", data, text, mac)
		}
		if made := MadeWith([]byte("a key for tests, no more"), data); made != (err == nil && mac == MacOf([]byte("a key for tests, no more"), OfManifest, text)) {
			t.Errorf("%q: made with the key: %v", data, made)
		}
	})
}

// nodeWith returns a directory that holds a generation of a small group, and its machine.
func nodeWith(t *testing.T, index int) (*disktest.Machine, *Node) {
	t.Helper()
	m := disktest.NewMachine()
	m.MkdirAll("/n/.volley", 0o700)
	d, err := m.Process().Open("/n")
	must(t, err)
	n := &Node{Index: index, DirPath: "/n", DirName: "/n", Dir: d}
	manifest := smallManifest()
	text, err := manifest.Encode(nil)
	must(t, err)
	must(t, n.Dir.Mkdir(MetaPath(PendingDir(1)), 0o700))
	_, err = n.Complement(PendingDir(1), manifest, text)
	must(t, err)
	must(t, n.RollForward(1, disk.Sum(text)))
	return m, n
}

// TestIdentify looks at directories that are there, are not, and have something in them.
func TestIdentify(t *testing.T) {
	t.Parallel()
	m, _ := nodeWith(t, 1)
	const file = "/n/.volley/generation.1/node.json"
	is := Identify(m.Process(), "/n")
	if is.Node != 1 || is.Empty || is.Group != "g" || is.Nodes != 2 {
		t.Errorf("%+v", is)
	}
	for what, text := range map[string]string{
		"damaged":        "x",
		"far too large":  fmt.Sprintf(`{"format":"volley-group","group":"g","node":%d}`, math.MaxInt),
		"below 0":        `{"format":"volley-group","group":"g","node":-7,"nodes":2}`,
		"of few":         `{"format":"volley-group","group":"g","node":2,"nodes":2}`,
		"of other nodes": `{"format":"volley-group","group":"other","node":0,"nodes":2}`,
	} {
		m.WriteFile(file, disk.Seal([]byte(text)), 0o600)
		if got := Identify(m.Process(), "/n"); got.Node == 0 || got.Empty {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for name, empty := range map[string]bool{"none": true, "new/": true, "begun/.volley/": true, "locked/.volley/lock": true, "cut/.volley/.volley-tmp-x": true, "data/x": false, "odd/.volley/journal": false} {
		dir, file := path.Split("/" + name)
		if dir != "/" {
			m.MkdirAll(strings.TrimSuffix(dir, "/"), 0o700)
		}
		if file != "" && dir != "/" {
			m.WriteFile("/"+name, nil, 0o600)
		}
		first, _, _ := strings.Cut(name, "/")
		if is := Identify(m.Process(), "/"+first); is.Node != -1 || is.Empty != empty {
			t.Errorf("%s: %+v", name, is)
		}
	}
}
