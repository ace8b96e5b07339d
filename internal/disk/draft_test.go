package disk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestWrite checks that a file is written and replaced, and that what fails leaves
// everything as it was, and nothing beside it.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, want := range []string{"first, the longer one", "second"} {
		if err := disk.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%q: want %q", got, want)
		}
	}

	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := disk.WriteFile(folder, []byte("x"), 0o666); err == nil {
		t.Error("a directory was replaced")
	}
	var open *fs.PathError
	if err := disk.WriteFile(filepath.Join(dir, "none", "file"), nil, 0o666); !errors.As(err, &open) || open.Op != "open" {
		t.Errorf("no directory: %v: want a PathError of Op open", err)
	}
	failed := errors.New("failed")
	if err := disk.WriteStream(disk.OS, path, 0o666, false, func(w io.Writer) error {
		io.WriteString(w, "half")
		return failed
	}); err != failed {
		t.Errorf("a write that failed: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "second" {
		t.Errorf("%q, %v after a write that failed", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("%v: want file and folder", entries)
	}
}

// TestInterrupted interrupts a write at each of its calls: the file is there whole or as it was, with its mode, and
// nothing stays beside it but what a killed run has left. It lasts when the write has ended well.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	const path, text = "/d/file", "the new text of the file"
	for _, old := range []string{"", "the old one"} {
		for _, exactly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, exactly %v", old, exactly), func(t *testing.T) {
				m := disktest.NewMachine()
				m.MkdirAll("/d", 0o755)
				if old != "" {
					m.WriteFile(path, []byte(old), 0o600)
				}
				mode := fs.FileMode(0o644) // less the umask
				if exactly {
					mode = 0o666
				}
				is := func(m *disktest.Machine) (string, error) {
					if !m.Exists(path) {
						return "", nil
					}
					data, err := m.ReadFile(path)
					info, err2 := m.Lstat(path)
					want := mode
					if string(data) == old {
						want = 0o600
					}
					if err = errors.Join(err, err2); err == nil && info.Mode() != want {
						err = fmt.Errorf("%q has mode %v, want %v", data, info.Mode(), want)
					}
					return string(data), err
				}
				sweep := disktest.Sweep{
					Machine: m,
					Run: func(p *disktest.Process) error {
						return disk.WriteStream(p, path, 0o666, exactly, func(w io.Writer) error {
							for part := range strings.SplitAfterSeq(text, " ") {
								if _, err := io.WriteString(w, part); err != nil {
									return err
								}
							}
							return nil
						})
					},
					Check: func(x *disktest.Interrupted) error {
						got, err := is(x.Machine)
						if err != nil || got != text && (got != old || x.Err == nil) {
							return fmt.Errorf("it holds %q, %v", got, err)
						}
						if x.Err != nil && got == text && x.Call.Op != "syncdir" && !x.Ends {
							return errors.New("it holds the new text after an error")
						}
						if !x.Ends && x.Name != disktest.TurnReadOnly.Name && strings.Contains(x.Machine.Tree("/d"), disk.Hidden) {
							return fmt.Errorf("left: %s", x.Machine.Tree("/d"))
						}
						x.Machine.PowerCut(nil)
						if now, err := is(x.Machine); err != nil || now != got && (x.Err == nil || now != old) {
							return fmt.Errorf("it held %q, after a power cut %q: %v", got, now, err)
						}
						return nil
					},
				}
				if n := sweep.Test(t); n < 50 {
					t.Errorf("%d runs were interrupted", n)
				}
			})
		}
	}
}
