package tree

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// modes are the modes that files of a directory have, by name, whatever the disk says.
type modes struct {
	disk.Dir
	is map[string]fs.FileMode
}

type moded struct {
	fs.FileInfo
	mode fs.FileMode
}

func (i moded) Mode() fs.FileMode { return i.mode }

func (d modes) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := d.Dir.ReadDir(name)
	for i, e := range list {
		if mode, odd := d.is[e.Name()]; odd {
			info, _ := e.Info()
			list[i] = fs.FileInfoToDirEntry(moded{info, mode})
		}
	}
	return list, err
}

// told is what a listing has, a line for each thing.
func told(l *Listing, err error) (lines []string) {
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range l.Entries {
		lines = append(lines, strings.TrimSpace(fmt.Sprint(e.Path, " ", e.Type, " ", e.Target)))
	}
	for p, err := range l.Bad {
		lines = append(lines, fmt.Sprint(p, ": ", disk.Reason(err)))
	}
	for _, p := range l.Mounts {
		lines = append(lines, fmt.Sprint(p, " is mounted"))
	}
	return append(lines, l.Special...)
}

// TestScan lists a directory in which there is something of everything, strictly and not.
func TestScan(t *testing.T) {
	t.Parallel()
	long := "/n/" + strings.Repeat(strings.Repeat("d", 200)+"/", 21)
	longError := strings.TrimSuffix(long, "/"+strings.Repeat("d", 200)+"/") + ": the path has more than 4096 bytes below the node: move it up"
	all := []string{". dir", "a file", "d dir", "d/x file", "l symlink a", "z link a"}
	for _, x := range []struct {
		what             string
		change           func(m *disktest.Machine)
		strict, anything []string // what is listed; nil: as the other
	}{
		{"files", nil, all, nil},
		{"what is Volley's", func(m *disktest.Machine) { m.MkdirAll("/n/.volley/generation.1", 0o700) }, all, nil},
		{"a file with Volley's name", func(m *disktest.Machine) { m.WriteFile("/n/.volley", nil, 0o600) },
			[]string{"/n/.volley: it is not a directory, and the name is Volley's own: move it away"}, nil},
		{"a directory that may not be listed", func(m *disktest.Machine) { m.Deny("/n/d", syscall.EACCES, "readdir") },
			append(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s[0] == 'd' }), "d: permission denied", "/n/d cannot be listed: permission denied"),
			append(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "d/x file" }), "d: permission denied")},
		{"a directory that cannot be read", func(m *disktest.Machine) { m.Deny("/n/d", syscall.EIO, "readdir") },
			[]string{"readdir /n/d: input/output error"}, append(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "d/x file" }), "d: input/output error")},
		{"a link that cannot be read", func(m *disktest.Machine) { m.Deny("/n/l", syscall.EIO, "readlink") },
			[]string{"readlink /n/l: input/output error"}, append(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s[0] == 'l' }), "l: input/output error")},
		{"the directory itself", func(m *disktest.Machine) { m.Deny("/n", syscall.ENOENT, "readdir") }, []string{"readdir /n: no such file or directory"}, nil},
		{"what goes meanwhile", func(m *disktest.Machine) { m.Deny("/n/d", syscall.ENOENT, "readdir") }, slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "d/x file" }), nil},
		{"another file system", func(m *disktest.Machine) { m.Mount("/n/d", disktest.Mount{}); m.WriteFile("/n/d/y", nil, 0o600) },
			[]string{". dir", "a file", "d dir", "d/y file", "l symlink a", "z link a", "d is mounted"}, nil},
		{"a long path", func(m *disktest.Machine) { m.RemoveAll("/n/d"); m.MkdirAll(long, 0o700) }, []string{longError}, []string{}},
	} {
		m := disktest.NewMachine()
		m.MkdirAll("/n/d", 0o755)
		m.WriteFile("/n/a", []byte("a"), 0o600)
		m.WriteFile("/n/d/x", []byte("x"), 0o600)
		m.Link("/n/a", "/n/z")
		m.Symlink("a", "/n/l")
		if x.change != nil {
			x.change(m)
		}
		d, err := m.Process().Open("/n")
		if err != nil {
			t.Fatal(err)
		}
		if x.anything == nil {
			x.anything = x.strict
		}
		if is := told(Scan(d, true, Rules{})); !slices.Equal(is, x.strict) {
			t.Errorf("%s: strictly: %q, want %q", x.what, is, x.strict)
		}
		if is := told(Scan(d, false, Rules{})); len(x.anything) > 0 && !slices.Equal(is, x.anything) {
			t.Errorf("%s: %q, want %q", x.what, is, x.anything)
		}
		one := told(Scan(d, false, Rules{OneFileSystem: true, Exclude: Excludes{"z"}}))
		if slices.Contains(one, "d/y file") || slices.ContainsFunc(one, func(s string) bool { return s[0] == 'z' }) {
			t.Errorf("%s: one file system, without z: %q", x.what, one)
		}
	}
}

// TestScanSpecial names what is neither file, directory nor link, and leaves it out of a strict listing alone.
func TestScanSpecial(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/n", 0o755)
	m.WriteFile("/n/a", nil, 0o600)
	d, err := m.Process().Open("/n")
	if err != nil {
		t.Fatal(err)
	}
	for mode, kind := range map[fs.FileMode]string{fs.ModeSocket: "socket", fs.ModeNamedPipe: "named pipe", fs.ModeDevice | fs.ModeCharDevice: "device", fs.ModeIrregular: "special file"} {
		odd := modes{d, map[string]fs.FileMode{"a": mode}}
		if is := told(Scan(odd, true, Rules{})); !slices.Equal(is, []string{". dir", "/n/a is a " + kind}) {
			t.Errorf("%v, strictly: %q", mode, is)
		}
		if is := told(Scan(odd, false, Rules{})); !slices.Equal(is, []string{". dir", "a " + kind}) {
			t.Errorf("%v: %q", mode, is)
		}
	}
}

// TestScanAgain takes entries over from the last listing where nobody has touched the files.
func TestScanAgain(t *testing.T) {
	t.Parallel()
	m := disktest.NewMachine()
	m.MkdirAll("/n", 0o755)
	for _, name := range []string{"gone", "kept", "linked", "touched"} {
		m.WriteFile("/n/"+name, []byte("text"), 0o600)
	}
	d, err := m.Process().Open("/n")
	if err != nil {
		t.Fatal(err)
	}
	l, err := Scan(d, true, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	m.Remove("/n/gone")
	m.Chmod("/n/touched", 0o644)
	m.Link("/n/linked", "/n/twin")
	again, err := l.Again(d)
	if is := told(again, err); !slices.Equal(is, []string{". dir", "kept file", "linked file", "touched file", "twin link linked"}) {
		t.Errorf("%q", is)
	}
	for name, same := range map[Name]bool{"kept": true, "touched": false, "linked": false} {
		if (again.Find(name) == l.Find(name)) != same {
			t.Errorf("%s has the same entry: %v", name, !same)
		}
	}
}

// TestSetMeta sets what an entry says, an attribute without a value too, and names what this process may not set.
func TestSetMeta(t *testing.T) {
	t.Parallel()
	e := &Entry{Path: "a", Type: TypeFile, Mode: 0o4750, Owner: &Owner{7, 8}, Seconds: 9, Attributes: Attributes{"security.capability": []byte("c"), "user.empty": {}}}
	const all = fs.ModeSetuid | 0o750
	for _, x := range []struct {
		op   string // that is refused
		mode fs.FileMode
		want []string
		has  string
	}{
		{"", all, nil, `map["security.capability":"c" "user.empty":""]`},
		{"chown", 0o750, []string{
			"attribute security.capability not restored: operation not permitted", "owner not restored: operation not permitted", "setuid and setgid not restored, as the owner is not",
		}, `map["user.empty":""]`},
		{"setxattr", all, []string{"attribute security.capability not restored: operation not permitted", "attribute user.empty not restored: operation not permitted"}, "map[]"},
		{"chmod", 0o644, []string{"mode not restored: operation not permitted"}, `map["security.capability":"c" "user.empty":""]`},
	} {
		m := disktest.NewMachine()
		m.MkdirAll("/n", 0o755)
		m.WriteFile("/n/a", nil, 0o644)
		m.Chown("/n/a", 0, 0, "system.posix_acl_access", "of the directory")
		p := m.Process()
		d, err := p.Open("/n")
		if err != nil {
			t.Fatal(err)
		}
		if x.op != "" {
			p.Deny("/n/a", syscall.EPERM, x.op)
		}
		unset, err := SetMeta(d, "a", e)
		info, _ := m.Lstat("/n/a")
		if slices.Sort(unset); err != nil || !slices.Equal(unset, x.want) || info.Mode() != x.mode || !info.ModTime().Equal(e.Time()) {
			t.Errorf("%q: %q, %v, mode %v, %v: want %q", x.op, unset, err, info.Mode(), info.ModTime(), x.want)
		}
		if is, err := d.Attributes("a"); err != nil || fmt.Sprintf("%q", is) != x.has {
			t.Errorf("%q: %q, %v: want %s", x.op, is, err, x.has)
		}
	}
}
