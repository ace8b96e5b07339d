package disk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// TestSweep interrupts, at every call, what writes a file and what makes directories: see [disktest.Committer].
func TestSweep(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/d", 0o755)
	for _, c := range []*disktest.Committer{
		writing(m, "", false), writing(m, "", true), writing(m, "the old one", false), writing(m, "the old one", true),
		making(m, "Make", func(p *disktest.Process) error {
			_, err := disk.Make(p, "/d/a/b", 0o755)
			return err
		}),
		making(m, "MkdirAll", func(p *disktest.Process) error {
			d, err := p.Open("/d")
			if err != nil {
				return err
			}
			return disk.MkdirAll(d, "a/b", 0o755)
		}),
	} {
		t.Run(c.Name, func(t *testing.T) {
			if n := c.Test(t, disktest.Interruptions(), 0, nil); n < 30 {
				t.Errorf("%d runs were interrupted", n)
			}
		})
	}
}

// writing is the writing of a file, in the place of a text. It is there whole or as it was, with its mode. Nothing stays
// beside it but what a killed run has left.
func writing(m *disktest.Machine, old string, exactly bool) *disktest.Committer {
	const path, text = "/d/file", "the new text of the file"
	m, mode := m.Clone(), fs.FileMode(0o644) // less the umask
	if exactly {
		mode = 0o666
	}
	if old != "" {
		m.WriteFile(path, []byte(old), 0o600)
	}
	return &disktest.Committer{
		Name: fmt.Sprintf("write over %q, exactly %v", old, exactly), Machine: m,
		Run: func(p *disktest.Process) error {
			if exactly {
				return disk.WriteMode(p, path, []byte(text), 0o666)
			}
			d, err := p.Open("/d")
			if err != nil {
				return err
			}
			return disk.WriteIn(d, "file", []byte(text), 0o666)
		},
		Holds: func(x *disktest.Interrupted) (string, error) {
			if !x.Ends && x.Name != disktest.TurnReadOnly.Name && strings.Contains(x.Machine.Tree("/d"), disk.Hidden) {
				return "", fmt.Errorf("left: %s", x.Machine.Tree("/d"))
			}
			if old == "" && !x.Machine.Exists(path) {
				return "", nil
			}
			data, err := x.Machine.ReadFile(path)
			info, err2 := x.Machine.Lstat(path)
			switch {
			case errors.Join(err, err2) != nil:
				return "", errors.Join(err, err2)
			case string(data) == text && x.Err != nil && !x.Ends && x.Call.Op != "syncdir":
				return "", errors.New("it holds the new text after an error")
			case string(data) == old && info.Mode() == 0o600, string(data) == text && info.Mode() == mode:
				return string(data), nil
			}
			return "", fmt.Errorf("%q has mode %v", data, info.Mode())
		},
	}
}

// making is the making of directories: whoever finds them made, by itself or by another run, has them last.
func making(m *disktest.Machine, name string, run func(*disktest.Process) error) *disktest.Committer {
	return &disktest.Committer{Name: name, Machine: m, Run: run, Holds: func(x *disktest.Interrupted) (string, error) {
		return fmt.Sprint(x.Machine.Exists("/d/a/b")), nil
	}}
}
