package cli

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
			lay(t, filepath.Join(dir, name), content, 0o644)
		}
	}
	return dirs
}

func rewrite(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path, content, 0o644))
}

// described tells of everything below a directory but for a name, and but for what there is nothing to tell of.
func described(t testing.TB, dir, but string, tell func(path string, info fs.FileInfo) string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.Name() == but && d.IsDir():
			return fs.SkipDir
		case d.Name() == but:
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if text := tell(path, info); text != "" {
			all[rel] = text
		}
		return nil
	}))
	return all
}

// sumOf is the digest of a regular file.
func sumOf(path string, info fs.FileInfo) string {
	if !info.Mode().IsRegular() {
		return ""
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

// inLines has a line for each name.
func inLines(all map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintln(&b, name, all[name])
	}
	return b.String()
}

// dataOf describes everything below a directory but for .volley.
func dataOf(t *testing.T, dir string) string {
	t.Helper()
	return inLines(described(t, dir, ".volley", func(path string, info fs.FileInfo) string {
		if sum := sumOf(path, info); sum != "" {
			return fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), sum)
		}
		return info.Mode().String()
	}))
}

// TestGroup protects, loses, verifies and recovers by the command line.
func TestGroup(t *testing.T) {
	t.Parallel()
	dirs := writeNodes(t, 6, 100_000)
	var report group.ProtectReport
	if err := json.Unmarshal([]byte(expect(t, exit.OK, "protect --tolerate 2 --dry-run --json", dirs)), &report); err != nil || report.Cost == nil || report.Cost.Rounds != 5 {
		t.Errorf("%v: %+v", err, report)
	}
	bare(t, dirs...)
	expect(t, exit.OK, "protect --tolerate 2", dirs, "protected, generation 1")
	before := dataOf(t, dirs[2])
	removeAll(t, dirs[2])
	r := volleyRun(append([]string{"verify", "--json"}, dirs...)...)
	var verified group.VerifyReport
	if err := json.Unmarshal([]byte(r.stdout), &verified); err != nil || r.code != exit.Wrong || verified.Intact || verified.Nodes[2].Status != group.Lost {
		t.Errorf("%v: %+v", err, r)
	}
	expect(t, exit.Usage, "protect --tolerate 2", dirs, "no such directory")
	expect(t, exit.OK, "recover --dry-run", dirs)
	must(t, os.Mkdir(dirs[2], 0o755)) // as the dry run has made none
	expect(t, exit.Usage, "protect --tolerate 2", dirs, dirs[2]+" is missing what was protected: recover it first")
	expect(t, exit.OK, "recover", dirs)
	equal(t, dataOf(t, dirs[2]), before)

	// What a disk has lost stays protected. What gets other content and its old time is protected, and named.
	path := filepath.Join(dirs[3], "sub", "b")
	vanish(t, path)
	expect(t, exit.Usage, "protect --tolerate 2", dirs, "recover first", path)
	expect(t, exit.OK, "recover", dirs)
	damage(t, path)
	expect(t, exit.OK, "protect --tolerate 2 -q", dirs, "look whether they are as they should be: "+path)
	expect(t, exit.OK, "verify", dirs)

	// Too much.
	for _, n := range []int{0, 3, 5} {
		removeAll(t, dirs[n])
	}
	expect(t, exit.Usage, "recover", dirs, dirs[0]+", "+dirs[3]+", "+dirs[5])
	removeAll(t, dirs...)
	expect(t, exit.Wrong, "verify", dirs, "all nodes are lost")
	expect(t, exit.Absent, "recover", dirs, "all nodes are lost")
	for _, dir := range dirs {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s is there", dir)
		}
	}
}

// TestGroupErrors checks what is refused, and that it is said what is wrong. Nothing is written.
func TestGroupErrors(t *testing.T) {
	t.Parallel()
	dirs, other, none := writeNodes(t, 4, 1000), writeNodes(t, 4, 1000), writeNodes(t, 3, 1000)
	expect(t, exit.OK, "protect --tolerate 1", dirs)
	expect(t, exit.OK, "protect --tolerate 1", other)
	file := writeGroup(t, dirs, nil)
	for _, c := range []struct {
		words string
		dirs  []string
		code  int
		want  string
	}{
		{"protect", dirs, exit.OK, "any 1 may be lost"}, // as in the last run
		{"protect", none, exit.Usage, "no run has said yet how many nodes may be lost; say it with --tolerate R"},
		{"protect --tolerate 4", dirs, exit.Usage, "loss of 4 of 4 nodes: want 1 to 3"},
		{"protect --tolerate 0", dirs, exit.Usage, "--tolerate 0: want 1 or more"},
		{"protect --tolerate 1", nil, exit.Usage, "no directories"},
		{"protect --tolerate 1", dirs[:1], exit.Usage, "need at least 2 directories, got 1"},
		{"protect --tolerate 1", []string{dirs[0], dirs[0]}, exit.Usage, "are the same directory"},
		{"protect --tolerate 1", []string{dirs[0], filepath.Join(dirs[0], "sub")}, exit.Usage, "lies in"},
		{"protect --tolerate 1", []string{dirs[1], file}, exit.Usage, "is not a directory: name the directory of a node"},
		{"protect --tolerate 1 --accept deleted,", dirs, exit.Usage, `--accept: "deleted,": want changed, deleted`},
		{"protect --tolerate 1 --accept deleted --accept=changed", dirs, exit.OK, ""},
		{"protect --tolerate 1 --retain 2", dirs, exit.Usage, "--retain 2: want how many snapshots of roots stay"},
		{"status", []string{dirs[1], dirs[0], dirs[2], dirs[3]}, exit.OK, "node 0  whole  " + dirs[0]},
		{"verify", dirs[:3], exit.Usage, "a group of 4 nodes, and 3 were given"},
		{"verify", []string{dirs[0], dirs[1], dirs[2], other[3]}, exit.Usage, "belongs to another group"},
		{"verify", none, exit.Wrong, "the group is not protected"},
		{"recover", none, exit.Absent, "not protected"},
		{"verify --limit-rate 100MB", dirs, exit.Usage, "--limit-rate: all is in this process"},
		{"verify --limit-rate 1kB", dirs, exit.Usage, "1MiB or more"},
		{"verify --limit-read x", dirs, exit.Usage, `--limit-read "x"`},
		{"protect --limit-read 20M", dirs, exit.OK, ""},
	} {
		expect(t, c.code, c.words, c.dirs, c.want)
	}
	bare(t, none...)
}

// sealed adds the line with the SHA-256 that manifests end with.
func sealed(line []byte) []byte {
	return fmt.Appendf(append([]byte{}, line...), "\n{\"sha256\":\"%x\"}\n", sha256.Sum256(line))
}

// filesOf returns the digests of the files below a directory but for .volley.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	return described(t, dir, ".volley", sumOf)
}

// vanish removes a file, and its directory keeps its time: the disk has lost it, and nobody has deleted it.
func vanish(t *testing.T, path string) {
	t.Helper()
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err == nil {
		err = errors.Join(os.RemoveAll(path), os.Chtimes(dir, info.ModTime(), info.ModTime()))
	}
	must(t, err)
}

// damage changes some bytes in the middle of a file and leaves its time.
func damage(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("rot"), info.Size()/2)
	must(t, errors.Join(err, f.Close(), os.Chtimes(path, info.ModTime(), info.ModTime())))
}

func dataOfAll(t *testing.T, dirs []string) (list []string) {
	t.Helper()
	for _, dir := range dirs {
		list = append(list, dataOf(t, dir))
	}
	return list
}
