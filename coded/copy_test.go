package coded

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"volley/coded/manifest"
)

// TestManifestCopy damages every byte of the manifest, and cuts it everywhere: the copy takes
// its place.
func TestManifestCopy(t *testing.T) {
	t.Parallel()
	m := machine(t, newCoding(t, "x"))
	const name, other = out + "/" + manifest.FileName, out + "/" + manifest.CopyName
	good, err := m.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := m.ReadFile(other); err != nil || string(text) != string(good) {
		t.Errorf("the copy is %q, %v", text, err)
	}
	read := func(text string) {
		t.Helper()
		m.WriteFile(name, []byte(text), 0o644)
		r, err := readStored(m.Process(), out)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if r.Damage == nil {
			t.Errorf("%q: no damage", text)
		} else if !strings.HasPrefix(r.Damage.Error(), name) {
			t.Errorf("%v: want an error that begins with the path", r.Damage)
		}
		if r.Manifest.Processors != len(packetNames) {
			t.Errorf("%q: %+v", text, r.Manifest)
		}
	}
	for i := range good {
		for _, bit := range []byte{1, 0x20} {
			bad := []byte(string(good))
			bad[i] ^= bit
			if strings.TrimSpace(string(bad)) != strings.TrimSpace(string(good)) {
				read(string(bad))
			}
		}
		if i < len(good)-2 {
			read(string(good[:i]))
		}
	}
	m.Remove(name)
	if r, err := readStored(m.Process(), out); err != nil || !errors.Is(r.Damage, fs.ErrNotExist) {
		t.Errorf("without the manifest: %v", err)
	}
	if err := func() error { _, err := open(m.Process(), out, nil, false); return err }(); !errors.Is(err, ErrExists) {
		t.Errorf("only the copy: %v", err)
	}
	m.WriteFile(name, []byte("{"), 0o644)
	m.WriteFile(other, []byte("{"), 0o644)
	if _, err := readStored(m.Process(), out); err == nil || !strings.Contains(err.Error(), manifest.FileName) || !strings.Contains(err.Error(), manifest.CopyName) {
		t.Errorf("both damaged: %v", err)
	}
}
