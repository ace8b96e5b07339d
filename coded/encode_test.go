package coded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"volley"
	"volley/coded/manifest"
	"volley/field/fieldtest"
	"volley/internal/disk"
	"volley/transport/local"
)

// opened returns the packets of two files, of 10 and 20 bytes.
func opened(t *testing.T) (*encodeJob, string) {
	t.Helper()
	in := t.TempDir()
	for k, n := range []int{10, 20} {
		writeText(t, filepath.Join(in, fmt.Sprint("packet.", k)), strings.Repeat("x", n))
	}
	j := &encodeJob{run: run{ctx: t.Context(), t: local.New(1)[0]}, e: Encoding{Field: fieldtest.Parse(t, "2^8"), Files: []string{in}}}
	if err := j.openInputs(); err != nil {
		t.Fatal(err)
	}
	return j, in
}

// TestChangedInput changes an input after it was opened, in every way, also when all of it has
// been read: the run fails by its name.
func TestChangedInput(t *testing.T) {
	t.Parallel()
	changed := func(path string) time.Time {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return disk.Changed(info)
	}
	later := func(path string) {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(path string){
		"grows":     func(path string) { writeText(t, path, strings.Repeat("y", 30)) },
		"shrinks":   func(path string) { writeText(t, path, "y") },
		"rewritten": func(path string) { writeText(t, path, strings.Repeat("y", 20)); later(path) },
		"its time is put back": func(path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			for disk.Changed(info).Equal(changed(path)) { // until the clock of the file system ticks
				writeText(t, path, strings.Repeat("y", 20))
				if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
					t.Fatal(err)
				}
			}
		},
		"removed": func(path string) { os.Remove(path) },
		"replaced": func(path string) {
			writeText(t, path+".new", strings.Repeat("x", 20))
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, when := range []int64{0, 20} {
			p, in := opened(t)
			read := func(most int64) {
				for k := range 2 {
					var x volley.Packet
					p.source(k, &x)
					x.Source.ReadAt(make([]byte, min(most, x.Size)), 0)
				}
			}
			read(when)
			path := filepath.Join(in, "packet.1")
			change(path)
			read(20)
			err := p.addFiles(new(manifest.Manifest))
			if changed := new(ChangedError); !errors.As(err, &changed) || !strings.HasPrefix(err.Error(), "packet "+path+": ") || !strings.Contains(err.Error(), "changed while it was read") {
				t.Errorf("%s after %d bytes: %v", name, when, err)
			}
			p.close()
		}
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
