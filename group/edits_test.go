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

// TestPlacesKept counts the blocks that are coded again after a file was renamed, has grown, shrunk or gone.
func TestPlacesKept(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	base := t.TempDir()
	var dirs []string
	for n := range 4 {
		dirs = append(dirs, filepath.Join(base, fmt.Sprint("n", n)))
		must(t, os.Mkdir(dirs[n], 0o755))
		must(t, os.WriteFile(filepath.Join(dirs[n], "log"), random(uint64(n), 20*mib), 0o644))
		must(t, os.WriteFile(filepath.Join(dirs[n], "other"), random(uint64(9+n), 5*mib), 0o644))
	}
	log, other := filepath.Join(dirs[0], "log"), filepath.Join(dirs[0], "other")
	more := func(n int) func() {
		return func() {
			f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.Write(random(7, n))
			must(t, err)
			must(t, f.Close())
		}
	}
	before := int64(0)
	const block = 64 << 10
	for i, x := range []struct {
		what string
		do   func()
		most int // blocks of codewords that are coded
	}{
		{"at first", func() {}, 4 * (25*mib/(3*block) + 1)},
		{"nothing", func() {}, 0},
		{"renamed", func() { must(t, os.Rename(other, other+".old")) }, 0},
		{"a copy in its place", func() {
			must(t, os.WriteFile(other, random(9, 5*mib), 0o644))
			must(t, os.Remove(other+".old"))
		}, 0},
		{"10 bytes more, the first time", more(10), 5*mib/block + 8},
		{"and again", more(10), 1}, {"and again", more(10), 1}, {"and again", more(60_000), 2}, {"more than there is room for", more(10_000), 5*mib/block + 8}, {"and again", more(100_000), 2},
		{"a MiB shorter", func() { must(t, os.Truncate(log, 19*mib)) }, mib/block + 4},
		{"the first MiB is other data", func() {
			f, err := os.OpenFile(log, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.Write(random(8, mib))
			must(t, err)
			must(t, f.Close())
		}, mib/block + 1},
		{"deleted", func() { must(t, os.Remove(other)) }, 5*mib/block + 4},
	} {
		x.do()
		r, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
		must(t, err)
		if t.Logf("%s: %d of %d blocks coded, %d bytes of parity", x.what, r.Coded, r.Blocks, r.ParityBytes); r.Coded > x.most {
			t.Errorf("%s: %d blocks were coded: want %d at most", x.what, r.Coded, x.most)
		}
		if i == 0 {
			before = r.ParityBytes
		} else if r.ParityBytes > before+before/20 {
			t.Errorf("%s: %d bytes of parity became %d", x.what, before, r.ParityBytes)
		}
	}
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1, Full: true}) // which writes all parity, as recover does
	must(t, err)
	was := listings(t, dirs)
	lose(t, dirs, []int{0})
	_, err = recoverAll(1, dirs)
	must(t, err)
	compare(t, "after all", was, listings(t, dirs))
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
