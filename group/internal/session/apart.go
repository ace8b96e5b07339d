package session

import (
	"path/filepath"
	"strings"

	"volley/group/internal/store"
	"volley/internal/disk"
)

// Apart returns an error where one of directories here is, or lies in, another. It makes and changes none of them.
func Apart(dirs []string) error { return apart(disk.OS, dirs, dirs) }

func (s *Session) Apart() error {
	var dirs, given []string
	for _, n := range s.Nodes {
		if n.Absent == "" {
			dirs, given = append(dirs, n.At), append(given, n.Given)
		}
	}
	if s.Meta != "" { // or the next run would protect it
		dirs, given = append(dirs, s.Meta), append(given, s.Meta)
	}
	return apart(s.Disk, dirs, given)
}

func apart(d disk.Disk, dirs, given []string) error {
	paths := make([]string, len(dirs))
	for i, dir := range dirs {
		paths[i], _ = disk.Whole(d, dir) // one that cannot be opened is failing
	}
	for i, a := range paths {
		for j, b := range paths {
			if i == j || a == "" || b == "" {
				continue
			}
			switch rel, err := filepath.Rel(a, b); {
			case err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)):
			case rel == ".":
				return store.Inputf("%s and %s are the same directory: give every node its own", given[i], given[j])
			default:
				return store.Inputf("%s lies in %s: give directories that lie apart", given[j], given[i])
			}
		}
	}
	return nil
}

// Identify returns what a directory says. A verb reads it anew, once it has the lock.
func Identify(dir string) store.Identity { return store.Identify(disk.OS, dir) }
