package group_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"volley/files"
	"volley/group"
	"volley/group/protection"
	"volley/internal/disk"
)

// TestOrder recovers groups whose directories are given in another order, lost ones in others' places.
func TestOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 2))
	for range 8 {
		dirs := trees(t, 5, 6, 3000, rng.Uint64())
		_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 2})
		must(t, err)
		before := listings(t, dirs)
		lost := rng.Perm(5)[:2]
		slices.Sort(lost)
		given := slices.Clone(dirs)
		for _, n := range lost {
			must(t, os.RemoveAll(dirs[n]))
			dirs[n] = filepath.Join(t.TempDir(), "new")
			given[n] = dirs[n]
		}
		rng.Shuffle(5, func(i, j int) { given[i], given[j] = given[j], given[i] })
		if slices.Index(given, dirs[lost[0]]) > slices.Index(given, dirs[lost[1]]) { // places are taken in their order
			dirs[lost[0]], dirs[lost[1]] = dirs[lost[1]], dirs[lost[0]]
		}
		r, err := recoverAll(1, given)
		must(t, err)
		for n, x := range r.Nodes {
			if x.Dir != dirs[n] {
				t.Errorf("node %d is %s, want %s", n, x.Dir, dirs[n])
			}
		}
		compare(t, "in another order", before, listings(t, dirs))
		whole(t, 1, given)
	}
}

// TestOrderOfNames recovers lost nodes, and an unreadable one, whose directories are given in another order under the
// names that they had: each gets its own files back, also where another node says that the names were others.
func TestOrderOfNames(t *testing.T) {
	at := trees(t, 5, 6, 3000, 7)
	_, err := protect(1, at, group.ProtectOptions{Tolerate: 3})
	must(t, err)
	before := listings(t, at)
	t.Chdir(filepath.Dir(at[1]))
	for _, n := range []int{1, 2, 3} {
		must(t, os.RemoveAll(at[n]))
	}
	r, err := recoverAll(1, []string{at[0], at[3], at[2], filepath.Base(at[1]), at[4]})
	must(t, err)
	for n, x := range r.Nodes {
		if filepath.Base(x.Dir) != filepath.Base(at[n]) {
			t.Errorf("node %d is %s, want %s", n, x.Dir, at[n])
		}
	}
	compare(t, "in another order", before, listings(t, at))
	whole(t, 1, at)
}

// TestIdentify looks at directories that are there, are not, and have something in them.
func TestIdentify(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 3, 2, 100, 1)
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
	must(t, err)
	is := group.Identify(dirs[2])
	if is.Node != 2 || is.Empty || is.Group == "" {
		t.Errorf("%+v", is)
	}
	file := filepath.Join(dirs[2], ".volley", "node.json")
	for what, c := range map[string]struct {
		text string
		want protection.Identity
	}{
		"damaged":        {"x", is},
		"far too large":  {fmt.Sprintf(`{"format":"volley-group","group":%q,"node":%d}`, is.Group, math.MaxInt), is},
		"below 0":        {fmt.Sprintf(`{"format":"volley-group","group":%q,"node":-7,"nodes":3}`, is.Group), is},
		"of few":         {fmt.Sprintf(`{"format":"volley-group","group":%q,"node":3,"nodes":3}`, is.Group), is},
		"of other nodes": {`{"format":"volley-group","group":"other","node":1,"nodes":3}`, is},
	} {
		must(t, os.WriteFile(file, disk.Seal([]byte(c.text)), 0o600))
		if got := group.Identify(dirs[2]); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v: want %+v", what, got, c.want)
		}
	}
	at := t.TempDir()
	for _, c := range []struct {
		name  string // of a file in a directory of that name
		empty bool
	}{{"none", true}, {"new/", true}, {"begun/.volley/", true}, {"locked/.volley/lock", true}, {"cut/.volley/.volley-tmp-x", true}, {"data/x", false}, {"odd/.volley/journal", false}} {
		first, _, _ := strings.Cut(c.name, "/")
		if c.name != first {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(at, c.name+"x")), 0o700))
		}
		if !strings.HasSuffix(c.name, "/") && c.name != first {
			must(t, os.WriteFile(filepath.Join(at, c.name), nil, 0o600))
		}
		if is := group.Identify(filepath.Join(at, first)); !reflect.DeepEqual(is, protection.Identity{Node: -1, Empty: c.empty, Name: is.Name}) {
			t.Errorf("%s: %+v", c.name, is)
		}
	}
}

// TestOrderOf compares places with what they have to be.
func TestOrderOf(t *testing.T) {
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
		if got := group.Order(c.ids); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.ids, got, c.want)
		}
	}
}
