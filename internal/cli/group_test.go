package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"volley/group"
	"volley/internal/exit"
)

// writeNodes makes the directories of K nodes, with some files of up to size bytes.
func writeNodes(t *testing.T, k, size int) []string {
	t.Helper()
	base := t.TempDir()
	rng := rand.NewChaCha8([32]byte{9})
	var dirs []string
	for n := range k {
		dir := filepath.Join(base, fmt.Sprintf("node.%d", n))
		dirs = append(dirs, dir)
		for i, name := range []string{"ckpt", "sub/b", "sub/c", "empty"} {
			content := make([]byte, max(0, size-i*size/3-n*7))
			rng.Read(content)
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dirs
}

func rewrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// dataOf describes everything below a directory but for .volley.
func dataOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".volley" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %v %x", info.ModTime().UnixNano(), sha256.Sum256(content))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGroup protects, loses, verifies and recovers by the command line.
func TestGroup(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 100_000)
	with := func(args ...string) []string { return append(args, dirs...) }
	if r := volleyRun(with("verify")...); r.code != exit.Wrong || !strings.Contains(r.stderr, "the group is not protected") {
		t.Errorf("never protected: %+v", r)
	}
	dry := mustRun(t, with("protect", "--tolerate", "2", "--dry-run", "--json")...)
	var report group.ProtectReport
	if err := json.Unmarshal([]byte(dry), &report); err != nil || report.Cost == nil || report.Cost.Rounds != 5 {
		t.Errorf("%v: %s", err, dry)
	}
	if _, err := os.Lstat(filepath.Join(dirs[0], ".volley")); err == nil {
		t.Error("a dry run has written")
	}
	if out := mustRun(t, with("protect", "--tolerate", "2")...); !strings.Contains(out, "protected, generation 1") {
		t.Error(out)
	}
	mustRun(t, with("verify")...)
	before := dataOf(t, dirs[2])
	if err := os.RemoveAll(dirs[2]); err != nil {
		t.Fatal(err)
	}
	r := volleyRun(with("verify", "--json")...)
	var verified group.VerifyReport
	if err := json.Unmarshal([]byte(r.stdout), &verified); err != nil || r.code != exit.Wrong || verified.Intact || verified.Nodes[2].Status != group.Lost {
		t.Errorf("%v: %+v", err, r)
	}
	if r := volleyRun(with("protect", "--tolerate", "2")...); r.code != exit.Usage || !strings.Contains(r.stderr, "no such directory") {
		t.Errorf("%+v", r)
	}
	if err := os.Mkdir(dirs[2], 0o755); err != nil {
		t.Fatal(err)
	}
	if r := volleyRun(with("protect", "--tolerate", "2")...); r.code != exit.Usage || !strings.Contains(r.stderr, dirs[2]+" is missing what was protected: recover it first") {
		t.Errorf("%+v", r)
	}
	if err := os.Remove(dirs[2]); err != nil {
		t.Fatal(err)
	}
	mustRun(t, with("recover", "--dry-run")...)
	if _, err := os.Lstat(dirs[2]); err == nil {
		t.Error("a dry run has made a directory")
	}
	mustRun(t, with("recover")...)
	if after := dataOf(t, dirs[2]); after != before {
		t.Errorf("recovered\n%s\nof\n%s", after, before)
	}
	mustRun(t, with("verify")...)

	// What a disk has lost stays protected.
	path := filepath.Join(dirs[3], "sub", "b")
	vanish(t, path)
	if r := volleyRun(with("protect", "--tolerate", "2")...); r.code != exit.Usage || !strings.Contains(r.stderr, "recover first") || !strings.Contains(r.stderr, path) {
		t.Errorf("%+v", r)
	}
	mustRun(t, with("recover")...)
	mustRun(t, with("verify")...)

	// What gets other content and its old time is protected, and named.
	damage(t, path)
	if r := volleyRun(with("protect", "--tolerate", "2", "-q")...); r.code != exit.OK || r.stdout != "" || !strings.Contains(r.stderr, "look whether they are as they should be: "+path) {
		t.Errorf("%+v", r)
	}
	mustRun(t, with("verify")...)

	// A file that was changed on purpose stays, unless asked.
	if err := os.WriteFile(filepath.Join(dirs[1], "ckpt"), []byte("shorter"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := volleyRun(with("verify")...); r.code != exit.OK || !strings.Contains(r.stdout, `changed: "ckpt"`) {
		t.Errorf("%+v", r)
	}
	if out := mustRun(t, with("recover")...); !strings.Contains(out, "\nleft as it is: 1 changed file; recover --revert changed ") {
		t.Error(out)
	}
	if content, _ := os.ReadFile(filepath.Join(dirs[1], "ckpt")); string(content) != "shorter" {
		t.Errorf("%d bytes", len(content))
	}
	mustRun(t, with("recover", "--revert", "changed")...)
	mustRun(t, with("verify")...)

	// Too much.
	for _, n := range []int{0, 3, 5} {
		if err := os.Rename(dirs[n], dirs[n]+".away"); err != nil {
			t.Fatal(err)
		}
	}
	if r := volleyRun(with("recover")...); r.code != exit.Usage || !strings.Contains(r.stderr, dirs[0]+", "+dirs[3]+", "+dirs[5]) {
		t.Errorf("%+v", r)
	}
}

// TestGroupErrors checks what is refused, and that it is said what is wrong.
func TestGroupErrors(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 4, 1000)
	other := writeNodes(t, 4, 1000)
	mustRun(t, append([]string{"protect", "--tolerate", "1"}, dirs...)...)
	mustRun(t, append([]string{"protect", "--tolerate", "1"}, other...)...)
	file := filepath.Join(dirs[0], "ckpt")
	newer := writeNodes(t, 2, 1000)
	mustRun(t, append([]string{"protect", "--tolerate", "1"}, newer...)...)
	for _, dir := range newer { // as a later version would write it
		path := filepath.Join(dir, ".volley/generation.1/manifest.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		line = bytes.Replace(line, []byte(`"version":6`), []byte(`"version":9`), 1)
		if err := os.WriteFile(path, sealed(line), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{append([]string{"protect"}, dirs...), 0, "any 1 may be lost"}, // as in the last run
		{append([]string{"protect"}, writeNodes(t, 2, 1000)...), 2, "no run has said yet how many nodes may be lost; say it with --tolerate R"},
		{append([]string{"protect", "--tolerate", "4"}, dirs...), 2, "loss of 4 of 4 nodes: want 1 to 3"},
		{append([]string{"protect", "--tolerate", "0"}, dirs...), 2, "--tolerate 0: want 1 or more"},
		{[]string{"protect", "--tolerate", "1"}, 2, "no directories"},
		{[]string{"protect", "--tolerate", "1", dirs[0]}, 2, "need at least 2 directories, got 1"},
		{[]string{"protect", "--tolerate", "1", dirs[0], dirs[0]}, 2, "are the same directory"},
		{[]string{"protect", "--tolerate", "1", dirs[0], filepath.Join(dirs[0], "sub")}, 2, "lies in"},
		{[]string{"protect", "--tolerate", "1", dirs[0], dirs[0] + "-none"}, 2, "no such directory"},
		{[]string{"protect", "--tolerate", "1", dirs[1], file}, 2, "is not a directory: name the directory of a node"},
		{[]string{"status", dirs[1], dirs[0], dirs[2], dirs[3]}, 0, "node 0  whole  " + dirs[0]},
		{[]string{"verify", dirs[0], dirs[1], dirs[2]}, 2, "a group of 4 nodes, and 3 were given"},
		{[]string{"verify", dirs[0], dirs[1], dirs[2], other[3]}, 2, "belongs to another group"},
		{append([]string{"recover"}, writeNodes(t, 2, 1000)...), exit.Absent, "not protected"},
		{append([]string{"verify"}, newer...), 2, "this program knows version 6"},
		{append([]string{"verify", "--memory", "x"}, dirs...), 2, "--memory"},
		{append([]string{"recover", "--comm", "smoke"}, dirs...), 2, "--comm"},
	} {
		r := volleyRun(c.args...)
		if r.code != c.code || !strings.Contains(r.stderr+r.stdout, c.want) {
			t.Errorf("volley %s: %+v: want exit %d and %q", strings.Join(c.args, " "), r, c.code, c.want)
		}
	}
}

// sealed adds the line with the SHA-256 that manifests end with.
func sealed(line []byte) []byte {
	return fmt.Appendf(append([]byte{}, line...), "\n{\"sha256\":\"%x\"}\n", sha256.Sum256(line))
}

// filesOf returns the digests of the files below a directory but for .volley.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.Name() == ".volley":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		list[rel] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// vanish removes a file, and its directory keeps its time: the disk has lost it, and nobody has deleted it.
func vanish(t *testing.T, path string) {
	t.Helper()
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err == nil {
		err = errors.Join(os.Remove(path), os.Chtimes(dir, info.ModTime(), info.ModTime()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// damage changes some bytes in the middle of a file and leaves its time.
func damage(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("rot"), info.Size()/2)
	if err := errors.Join(err, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}
