package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"volley/group/internal/pass"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
)

// A shrinkage is how much a node has now of what was protected.
type shrinkage struct {
	Files, Were      int      `json:",omitempty"`
	Bytes, WereBytes int64    `json:",omitempty"`
	Deleted, Shorter int      `json:",omitempty"`
	First            []string `json:",omitempty"` // of what was deleted, or is shorter
	Empty, Less      bool     `json:",omitempty"`
}

// checkMost returns an error unless a share of files may be gone. NaN is no share: it compares as less with none.
func checkMost(share float64) error {
	if share >= 0 && share <= 1 {
		return nil
	}
	return store.Inputf("a share of %v of the files: want 0 to 1", share)
}

// shrunk compares the files of a node with those that were protected. A file that was emptied counts as deleted.
func shrunk(was, now []*tree.Entry, most float64) shrinkage {
	var x shrinkage
	sizes := map[tree.Name]int64{}
	emptied, shorter := map[tree.Name]bool{}, map[tree.Name]bool{}
	for _, e := range was {
		if e.Type == tree.TypeFile {
			x.Were++
			x.WereBytes += e.Size
			sizes[e.Path] = e.Size
		}
	}
	for _, e := range now {
		size, known := sizes[e.Path]
		if e.Type != tree.TypeFile && (e.Type != tree.TypeLink || !known) {
			continue
		}
		delete(sizes, e.Path)
		if known && size > 0 && e.Size == 0 {
			emptied[e.Path] = true
			continue
		}
		if known && e.Size < size {
			shorter[e.Path] = true
		}
		x.Files++
		x.Bytes += e.Size
	}
	x.Deleted, x.Shorter = len(sizes)+len(emptied), len(shorter)
	for _, names := range [][]tree.Name{slices.Sorted(maps.Keys(sizes)), slices.Sorted(maps.Keys(emptied)), slices.Sorted(maps.Keys(shorter))} {
		for _, p := range names[:min(len(names), pass.MostNamed)] {
			x.First = append(x.First, string(p))
		}
	}
	x.Empty = x.Were > 0 && x.Files == 0
	x.Less = float64(x.Files) < (1-most)*float64(x.Were) || float64(x.Bytes) < (1-most)*float64(x.WereBytes)
	return x
}

// compareDeleted returns an error where more is gone than is usual: to protect the rest would make an accident final.
func compareDeleted(ctx context.Context, s *session.Session, found []scanned, o *ProtectOptions, r *ProtectReport) error {
	less := 0
	for _, x := range found {
		r.Deleted += x.Left.Deleted
		if x.Left.Less {
			less++
		}
	}
	var list []string
	for n, x := range found {
		x := x.Left
		if !x.Empty && (!x.Less || 2*less >= s.K) || o.Force && s.States[n].Of(s.Current) == nil {
			continue
		}
		text := fmt.Sprintf("%s has %d of %d files and %d of %d bytes left (gone or shorter: %s", s.Name(n), x.Files, x.Were, x.Bytes, x.WereBytes, strings.Join(quoted(x.First), ", "))
		if more := x.Deleted + x.Shorter - len(x.First); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		text += ")"
		list = append(list, text)
	}
	if list == nil || o.AllowDeleted {
		return nil
	}
	return s.Alike(ctx, &InputError{Way: WayAllowDeleted, Err: fmt.Errorf("this looks like an accident, which protect would make permanent: %s. If it is one, recover the files first", strings.Join(list, "; "))})
}

func quoted(names []string) []string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("%q", name))
	}
	return list
}
