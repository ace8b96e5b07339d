package session

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"volley/files"
	"volley/group/protection"
)

// TestOrder compares places with what they have to be.
func TestOrder(t *testing.T) {
	t.Parallel()
	id := func(nodes ...int) (list []protection.Identity) {
		for _, n := range nodes {
			list = append(list, protection.Identity{Group: "g", Node: n})
		}
		return list
	}
	// named gives directories names: a letter, or those of all in a group
	named := func(ids []protection.Identity, names ...string) []protection.Identity {
		for i, text := range names {
			if ids[i].Node < 0 {
				ids[i].Name = files.Name(text)
				continue
			}
			for _, name := range text {
				ids[i].Names = append(ids[i].Names, files.Name(name))
			}
		}
		return ids
	}
	// at gives roots the steps and the numbers of nodes of their newest snapshots.
	at := func(ids []protection.Identity, of ...[2]int64) []protection.Identity {
		for i, x := range of {
			ids[i].Step, ids[i].Nodes = x[0], int(x[1])
		}
		return ids
	}
	strange := id(1, 0, 2)
	strange[1].Group = "h"
	for _, c := range []struct {
		ids  []protection.Identity
		want []int
	}{
		{id(-1, -1, -1), []int{0, 1, 2}},
		{id(2, 0, 1), []int{1, 2, 0}},
		{id(2, -1, 0, -1), []int{2, 1, 0, 3}},
		{id(-1, -1, 1, 0), []int{3, 2, 0, 1}},
		{named(id(0, -1, -1, 3), "abcd", "", "", "abcd"), []int{0, 1, 2, 3}},
		{named(id(3, -1, -1, 0), "abcd", "c", "b", "abcd"), []int{3, 2, 1, 0}},
		{named(id(0, -1, -1, 3, 4), "axbxe", "c", "x", "axbxe", "axbxe"), []int{0, 1, 2, 3, 4}}, // two of one name
		{named(id(0, -1, -1, 3, 4), "acbde", "b", "c", "abcde", "abcde"), []int{0, 1, 2, 3, 4}}, // one against two
		{named(id(0, -1, -1, 3), "abcde", "c", "b", "abc"), []int{0, 1, 2, 3}},                  // of another size
		{id(1, 1, -1), []int{0, 1, 2}},                                                          // contradictions
		{id(3, 1, 0), []int{0, 1, 2}},
		{strange, []int{0, 1, 2}},
		{at(id(2, 0, 0), [2]int64{9, 3}, [2]int64{9, 3}, [2]int64{8, 3}), []int{1, 2, 0}}, // an older one is taken
		{at(id(2, 0, 4), [2]int64{9, 3}, [2]int64{9, 3}, [2]int64{8, 5}), []int{1, 2, 0}}, // of more nodes
		{at(id(1, 2, -1), [2]int64{8, 3}, [2]int64{9, 3}, [2]int64{}), []int{2, 0, 1}},    // an older one is free
		{at(id(0, 0, 1), [2]int64{9, 3}, [2]int64{9, 3}, [2]int64{8, 3}), []int{0, 1, 2}}, // contradictions of the newest
		{at(id(-1, 1, 0), [2]int64{}, [2]int64{9, 3}, [2]int64{8, 2}), []int{0, 1, 2}},    // an older one of fewer nodes
	} {
		if got := Order(c.ids); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.ids, got, c.want)
		}
	}
}

// TestReadKey checks which files are keys.
func TestReadKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		must(t, os.Chmod(path, mode))
		return path
	}
	for _, c := range []struct {
		path, key, want string
	}{
		{file("good", "0123456789abcdef\n", 0o600), "0123456789abcdef", ""},
		{file("line", "0123456789abcde\n\n", 0o400), "0123456789abcde\n", ""},
		{file("long", strings.Repeat("x", MostKey)+"\n", 0o600), strings.Repeat("x", MostKey), ""},
		{file("longer", strings.Repeat("x", MostKey+1), 0o600), "", "want 16 to 4096"},
		{file("longest", strings.Repeat("x", MostKey+100), 0o600), "", "want 16 to 4096"},
		{file("short", "0123456789abcde\n", 0o600), "", "want 16 to 4096"},
		{file("empty", "", 0o600), "", "head -c 32 /dev/urandom"},
		{file("group", "0123456789abcdef\n", 0o640), "", "chmod 600"},
		{file("all", "0123456789abcdef\n", 0o602), "", "chmod 600"},
		{dir, "", "regular"},
		{filepath.Join(dir, "no"), "", "head -c 32 /dev/urandom"},
	} {
		key, err := ReadKey(c.path)
		if c.want == "" && (err != nil || string(key) != c.key) || c.want != "" && (err == nil || !IsInputError(err) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v: want %q", c.path, key, err, c.want)
		}
	}
	if os.Geteuid() == 0 {
		path := file("theirs", "0123456789abcdef\n", 0o600)
		must(t, os.Chown(path, 12345, -1))
		if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), "user 12345's") {
			t.Errorf("another user's: %v", err)
		}
	}
	if err := checkKey([]byte("short")); !IsInputError(err) {
		t.Errorf("%v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
