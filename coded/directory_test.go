package coded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"volley/coded/manifest"
	"volley/files"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
	"volley/transport"
	"volley/transport/local"
)

// listing returns the names in a directory, with spaces between them, or "none" when
// there is no directory. Of hidden names it shows only how they begin.
func listing(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, hidden) {
			name = hidden
		}
		if e.Name() != LockName {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// write creates the coded files of a run, each of which holds the text.
func write(t *testing.T, d *directory, processors int, text string) *manifest.Manifest {
	t.Helper()
	m := &manifest.Manifest{Format: "volley-manifest", Version: 1, Processors: processors}
	number, err := d.next()
	if err != nil {
		t.Fatal(err)
	}
	for k := range processors {
		f, err := d.Create(manifest.CodedName(k, processors, number))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		size, sum := f.Sum()
		m.Files = append(m.Files, manifest.CodedFile{Name: files.Name(f.name), Processor: k, Bytes: size, SHA256: sum})
	}
	return m
}

// open prepares a directory at one rank.
func open(on disk.Disk, path string, files []string, replace bool) (*directory, error) {
	r := newRun(context.Background(), local.New(1)[0], Options{Dir: path, Replace: replace, disk: on}, "encode")
	return r.open(files, func() error { return r.check(nil, files) })
}

func mustCreate(t *testing.T, path string, replace bool) *directory {
	t.Helper()
	d, err := open(disk.OS, path, nil, replace)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fill makes a directory with a result.
func fill(t *testing.T, path string, processors int, text string) {
	t.Helper()
	d := mustCreate(t, path, true)
	if err := d.Commit(write(t, d, processors, text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, text string, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestReplace replaces a result by a smaller one.
func TestReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	fill(t, path, 12, "old")
	put(t, "left over", path, hidden+"coded.3")
	put(t, "theirs", path, "coded.x")
	if _, err := open(disk.OS, path, nil, false); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second result: %v, want an ErrExists that names %s", err, path)
	}
	if !strings.Contains(listing(t, path), hidden) {
		t.Error("a refused Create has removed a file")
	}

	d := mustCreate(t, path, true)
	write(t, d, 2, "new")
	d.Discard()
	if got := listing(t, path); !strings.HasPrefix(got, "coded.00 coded.01") || !strings.HasSuffix(got, " coded.11 coded.x manifest.copy.json manifest.json") {
		t.Errorf("after a run that failed: %s, want the old result", got)
	}

	d = mustCreate(t, path, true)
	m := write(t, d, 2, "new")
	if err := d.Commit(m, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, path); got != "coded.0.1 coded.1.1 coded.x manifest.copy.json manifest.json" {
		t.Errorf("after a smaller result: %s", got)
	}
}

// TestReplaceBroken replaces a result whose manifest says nothing: its files stay until another result is there.
func TestReplaceBroken(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", `{"format":"volley-manifest","version":1,"files":[{"name":"../victim"}]}`} {
		root := t.TempDir()
		path := filepath.Join(root, "out")
		fill(t, path, 3, "old")
		put(t, text, path, manifest.FileName)
		put(t, text, path, manifest.CopyName)
		put(t, "", root, "victim")
		d := mustCreate(t, path, true)
		write(t, d, 1, "failed")
		d.Discard()
		if got := listing(t, path); got != "coded.0 coded.1 coded.2 manifest.copy.json manifest.json" {
			t.Errorf("manifest %q: a failed run leaves %s", text, got)
		}
		fill(t, path, 1, "new")
		if got := listing(t, path); got != "coded.0.1 manifest.copy.json manifest.json" {
			t.Errorf("manifest %q: %s", text, got)
		}
		if got := listing(t, root); got != "out victim" {
			t.Errorf("manifest %q: beside it %s", text, got)
		}
	}
}

// TestForeign encodes beside coded files that no manifest lists: their manifest may be elsewhere, so they stay unless the
// caller lets the run replace a result.
func TestForeign(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	fill(t, path, 3, "old")
	for _, name := range manifests {
		if err := os.Remove(filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(disk.OS, path, nil, false); !errors.Is(err, ErrFileExists) || !strings.HasPrefix(err.Error(), filepath.Join(path, "coded.0")) {
		t.Errorf("%v: want an ErrFileExists that names coded.0", err)
	}
	if got := listing(t, path); got != "coded.0 coded.1 coded.2" {
		t.Errorf("a refused run leaves %s", got)
	}
	fill(t, path, 1, "new")
	if got := listing(t, path); got != "coded.0 manifest.copy.json manifest.json" {
		t.Errorf("with replace: %s", got)
	}
}

// TestTakes checks that a run refuses inputs that it would take away, and none but these.
func TestTakes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	fill(t, path, 3, "old")
	names := []string{hidden + "x", "coded.new", "coded.7", "coded.1.12", "coded.1.0", "coded.1.x", "notes"}
	for _, name := range names {
		put(t, name, path, name)
	}
	taken := func(files []string) string {
		var taken []string
		for _, name := range append(names, "coded.0", manifest.FileName, manifest.CopyName) {
			r := newRun(t.Context(), local.New(1)[0], Options{Dir: path, Replace: true}, "encode")
			if err := r.check([]string{filepath.Join(path, name)}, files); err != nil {
				taken = append(taken, name)
			}
		}
		return strings.Join(taken, " ")
	}
	if got := taken(nil); got != ".volley-x coded.7 coded.1.12 coded.0 manifest.json manifest.copy.json" {
		t.Errorf("%s", got)
	}
	if got := taken([]string{"notes", "coded.0"}); got != ".volley-x notes coded.0" {
		t.Errorf("of files: %s", got)
	}
}

// TestSharedDirectory lets two ranks write one directory. Where its locks reach both, they do;
// else nothing is written, and both ranks are named.
func TestSharedDirectory(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]disk.Disk{"locks": disk.OS, "no locks": disktest.Lockless{Disk: disk.OS}} {
		path := filepath.Join(t.TempDir(), "out")
		var errs [2]error
		local.Run(t.Context(), 2, func(ctx context.Context, tr transport.Transport) error {
			r := newRun(ctx, tr, Options{Dir: path, Timeout: time.Minute, disk: on}, "encode")
			d, err := r.open(nil, func() error { return nil })
			if err == nil {
				_, err = d.Create(manifest.CodedName(tr.Rank(), 2, 0))
				err = errors.Join(err, r.atAllRanks(func() error { return nil }))
				d.Discard() // takes the directory away where it is the last
			}
			errs[tr.Rank()] = err
			return err
		})
		for r, err := range errs {
			if on == disk.OS && err != nil || on != disk.OS && (err == nil || !strings.Contains(err.Error(), "ranks 0 and 1 have one directory, "+path)) {
				t.Errorf("%s: rank %d: %v", name, r, err)
			}
		}
	}
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "a b": true, ".a": true, "..a": true, "manifest.json": true, strings.Repeat("x", 255): true,
		"": false, ".": false, "..": false, "/": false, "a/b": false, "/a": false, "a/": false, hidden + "a": false,
		"a\x00": false, strings.Repeat("x", 256): false,
	} {
		if got := validName(name); got != want {
			t.Errorf("validName(%q) = %v", name, got)
		}
	}
}

func TestCreateErrors(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, "", root, "file")
	if err := os.MkdirAll(filepath.Join(root, "odd", manifest.FileName), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	before := listing(t, root)
	for _, name := range []string{"file", "file/out", "odd", "link"} {
		if _, err := open(disk.OS, filepath.Join(root, name), nil, true); err == nil || !strings.Contains(err.Error(), strings.SplitN(name, "/", 2)[0]) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
	if got := listing(t, root); got != before {
		t.Errorf("then there are %s, before %s", got, before)
	}
}

// TestDrafts checks that nobody else can read what is not committed yet, even with an umask that would
// let them, and that it then has the permissions that were asked for.
func TestDrafts(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := mustCreate(t, path, false)
	m := write(t, d, 2, "x")
	modes := func(want fs.FileMode) {
		t.Helper()
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Mode() != want && runtime.GOOS != "windows" {
				t.Errorf("%s is %v, %v: want %v", e.Name(), info.Mode(), err, want)
			}
		}
	}
	modes(0o600)
	if err := d.Commit(m, 0o400); err != nil { // its owner may always
		t.Fatal(err)
	}
	modes(0o600)
}
