package group_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group"
)

// random returns n bytes.
func random(seed uint64, n int) []byte {
	content := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 3}).Read(content)
	return content
}

// TestRotRenamed renames a file with another content and its time, by itself and as one of several of its length and time:
// it is named, however the data is cut. A file that holds what one of them held is not, nor one whose time is a whole second.
func TestRotRenamed(t *testing.T) {
	t.Parallel()
	const size = 150_000
	at := time.Unix(1_700_000_000, 123_456_789)
	for _, x := range []struct {
		what     string
		time     time.Time
		tolerate int // of the second run
		rot      bool
		named    bool
	}{
		{"rotten", at, 1, true, true},
		{"rotten, and coded in another way", at, 2, true, true},
		{"sound", at, 1, false, false},
		{"sound, and coded in another way", at, 2, false, false},
		{"a time that may be made up", at.Truncate(time.Second), 1, true, false},
	} {
		for _, names := range [][]string{{"b>sub"}, {"b>z", "c>y", "d>x"}, {"c>z", "d>gone"}} {
			base := t.TempDir()
			var dirs []string
			for n := range 4 {
				dirs = append(dirs, filepath.Join(base, fmt.Sprint("n", n)))
				must(t, os.Mkdir(dirs[n], 0o755))
				for i, name := range []string{"a", "b", "c", "d"} {
					path := filepath.Join(dirs[n], name)
					must(t, os.WriteFile(path, random(uint64(4*n+i), size), 0o644))
					must(t, os.Chtimes(path, x.time, x.time))
				}
			}
			_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
			must(t, err)
			for i, name := range names {
				from, to, _ := strings.Cut(name, ">")
				from, to = filepath.Join(dirs[0], from), filepath.Join(dirs[0], to)
				if x.rot && i == 0 {
					f, err := os.OpenFile(from, os.O_WRONLY, 0)
					must(t, err)
					_, err = f.WriteAt([]byte("rot"), size-100)
					must(t, err)
					must(t, f.Close())
					must(t, os.Chtimes(from, x.time, x.time))
				}
				if must(t, os.Rename(from, to)); strings.HasSuffix(to, "gone") {
					must(t, os.Remove(to))
				}
			}
			r, err := protect(1, dirs, group.ProtectOptions{Tolerate: x.tolerate, Full: true})
			must(t, err)
			_, first, _ := strings.Cut(names[0], ">")
			if named := slices.Equal(r.Doubtful, []string{filepath.Join(dirs[0], first)}); named != x.named || r.Doubtful != nil && !named {
				t.Errorf("%s: %v: %q", x.what, names, r.Doubtful)
			}
			whole(t, 1, dirs)
		}
	}
}
