package group_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"volley/executor"
	"volley/group"
	"volley/group/protection"
	"volley/transport"
	"volley/transport/local"
)

// trees makes K directories of files of all kinds, of up to most bytes each.
func trees(t testing.TB, k, files, most int, seed uint64) []string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	base := t.TempDir()
	var dirs []string
	for n := range k {
		dir := filepath.Join(base, fmt.Sprintf("node.%d", n))
		dirs = append(dirs, dir)
		must(t, os.MkdirAll(filepath.Join(dir, "sub", "deep er"), 0o755))
		must(t, os.MkdirAll(filepath.Join(dir, "nothing in it"), 0o700))
		for i := range files {
			name := []string{"plain", "sub/x", "sub/deep er/with space", "odd \xff\xfe name", "new\nline", "ünïcode", "base64:x"}[i%7] + fmt.Sprint(i/7)
			size := rng.IntN(most + 1)
			if i%5 == 3 {
				size = 0
			}
			content := make([]byte, size)
			for j := range content {
				content[j] = byte(rng.Uint32())
			}
			path := filepath.Join(dir, name)
			must(t, os.WriteFile(path, content, 0o644))
			must(t, os.Chmod(path, []fs.FileMode{0o644, 0o600, 0o755, 0o444}[i%4]))
			at := time.Unix(1_600_000_000+int64(rng.IntN(1_000_000)), int64(rng.IntN(1_000_000_000)))
			must(t, os.Chtimes(path, at, at))
		}
		must(t, os.Symlink("sub/x0", filepath.Join(dir, "link")))
		must(t, os.Symlink("no/such/file", filepath.Join(dir, "sub", "broken")))
	}
	return dirs
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listing describes everything below a directory but for the time of .volley.
func listing(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if rel == ".volley/lock" { // which differs from run to run
			return nil
		}
		if rel == ".volley/scrub" { // verify says there when it ran
			return fs.SkipDir
		}
		at := info.ModTime().UnixNano()
		if rel == ".volley" || strings.HasPrefix(rel, ".volley/") {
			at = 0
		}
		fmt.Fprintf(&b, "%q %v %d", rel, info.Mode(), at)
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %d %x", len(content), sha256.Sum256(content))
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			fmt.Fprintf(&b, " %q", target)
		}
		b.WriteByte('\n')
		return nil
	})
	must(t, err)
	return b.String()
}

// everywhere runs a verb at that many ranks and returns rank 0's result, and the first error
// that is not another rank's.
func everywhere[T any](ranks int, dirs []string, f func(context.Context, transport.Transport, []string) (T, error)) (T, error) {
	ts := local.New(ranks)
	results, errs := make([]T, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for r, x := range ts {
		wg.Go(func() {
			first, end := executor.Hosted(len(dirs), r, ranks)
			results[r], errs[r] = f(context.Background(), x, dirs[first:end])
			x.Close()
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.As(err, new(*transport.AbortError)) {
			return results[0], err
		}
	}
	for _, err := range errs {
		if err != nil {
			return results[0], err
		}
	}
	return results[0], nil
}

var options = protection.Settings{Timeout: time.Minute}

func protect(ranks int, dirs []string, o group.ProtectOptions) (*group.ProtectReport, error) {
	return everywhere(ranks, dirs, func(ctx context.Context, t transport.Transport, dirs []string) (*group.ProtectReport, error) {
		return group.Join(t, dirs, options).Protect(ctx, o)
	})
}

func recoverAll(ranks int, dirs []string) (*group.RecoverReport, error) {
	return everywhere(ranks, dirs, func(ctx context.Context, t transport.Transport, dirs []string) (*group.RecoverReport, error) {
		return group.Join(t, dirs, options).Recover(ctx, group.RecoverOptions{})
	})
}

func verify(ranks int, dirs []string) (*group.VerifyReport, error) {
	return everywhere(ranks, dirs, func(ctx context.Context, t transport.Transport, dirs []string) (*group.VerifyReport, error) {
		return group.Join(t, dirs, options).Verify(ctx, group.VerifyOptions{})
	})
}

// whole fails the test unless verify finds nothing.
func whole(t testing.TB, ranks int, dirs []string) {
	t.Helper()
	r, err := verify(ranks, dirs)
	must(t, err)
	if !r.Intact {
		t.Fatalf("%+v", r)
	}
}

// lose removes nodes, by turns their directories and what is in them.
func lose(t testing.TB, dirs []string, nodes []int) {
	t.Helper()
	for i, n := range nodes {
		must(t, filepath.WalkDir(dirs[n], func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		}))
		must(t, os.RemoveAll(dirs[n]))
		if i%2 == 1 {
			must(t, os.Mkdir(dirs[n], 0o755))
		}
	}
}

// TestLosses protects small groups in all ways and loses all sets of nodes that they
// tolerate, and one more.
func TestLosses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k, r, ranks, most int
	}{
		{2, 1, 1, 3000}, {4, 2, 1, 100_000}, {5, 2, 5, 20_000}, {2, 1, 2, 3000}, {4, 1, 1, 300_000}, {5, 2, 3, 20_000}, {5, 4, 1, 5000}, {6, 3, 6, 5000},
	} {
		t.Run(fmt.Sprintf("K=%d,R=%d,ranks=%d", c.k, c.r, c.ranks), func(t *testing.T) {
			t.Parallel()
			dirs := trees(t, c.k, 12, c.most, uint64(c.k*10+c.r))
			r, err := protect(c.ranks, dirs, group.ProtectOptions{Tolerate: c.r})
			must(t, err)
			if r.Coded == 0 {
				t.Errorf("%+v", r)
			}
			whole(t, c.ranks, dirs)
			before := listings(t, dirs)
			for set := range 1 << c.k {
				var nodes []int
				for n := range c.k {
					if set>>n&1 == 1 {
						nodes = append(nodes, n)
					}
				}
				switch {
				case len(nodes) == 0 || len(nodes) > c.r+1 || len(nodes) == c.k:
				case len(nodes) == c.r+1:
					if set%5 == 0 {
						refused(t, c.ranks, dirs, nodes)
					}
				default:
					lose(t, dirs, nodes)
					if _, err := recoverAll(c.ranks, dirs); err != nil {
						t.Fatalf("lost %v: %v", nodes, err)
					}
					compare(t, fmt.Sprint("lost ", nodes), before, listings(t, dirs))
				}
			}
			whole(t, c.ranks, dirs)
		})
	}
}

func listings(t testing.TB, dirs []string) []string {
	t.Helper()
	var list []string
	for _, dir := range dirs {
		list = append(list, listing(t, dir))
	}
	return list
}

func compare(t testing.TB, what string, want, got []string) {
	t.Helper()
	for n := range want {
		if want[n] != got[n] {
			t.Fatalf("%s: node %d was\n%s\nand is\n%s", what, n, want[n], got[n])
		}
	}
}

// refused checks that too much is refused, by name, and nothing written.
func refused(t *testing.T, ranks int, dirs []string, nodes []int) {
	t.Helper()
	for _, n := range nodes {
		must(t, os.Rename(dirs[n], dirs[n]+".away"))
	}
	_, err := recoverAll(ranks, dirs)
	few := new(protection.TooManyError)
	if !errors.As(err, &few) {
		t.Fatalf("lost %v: %v: want a TooManyError", nodes, err)
	}
	for _, n := range nodes {
		if !slices.Contains(few.Nodes, dirs[n]) {
			t.Errorf("lost %v: %v", nodes, err)
		}
		if _, err := os.Lstat(dirs[n]); err == nil {
			t.Errorf("%s was made", dirs[n])
		}
		must(t, os.Rename(dirs[n]+".away", dirs[n]))
	}
}

// TestAlike makes errors that all ranks find: each returns its own, and not that another
// rank has stopped.
func TestAlike(t *testing.T) {
	t.Parallel()
	const k = 4
	dirs := trees(t, k, 2, 1000, 9)
	protecting := func(tolerate func(rank int) int) func(context.Context, transport.Transport, []string) error {
		return func(ctx context.Context, t transport.Transport, dirs []string) error {
			_, err := group.Join(t, dirs, options).Protect(ctx, group.ProtectOptions{Tolerate: tolerate(t.Rank())})
			return err
		}
	}
	recovering := func(ctx context.Context, t transport.Transport, dirs []string) error {
		_, err := group.Join(t, dirs, options).Recover(ctx, group.RecoverOptions{})
		return err
	}
	all := func(what string, f func(context.Context, transport.Transport, []string) error) {
		t.Helper()
		for range 20 {
			ts, errs := local.New(k), make([]error, k)
			var wg sync.WaitGroup
			for r, x := range ts {
				wg.Go(func() {
					errs[r] = f(context.Background(), x, dirs[r:r+1])
					x.Close()
				})
			}
			wg.Wait()
			for r, err := range errs {
				if !group.IsInputError(err) || errors.As(err, new(*transport.AbortError)) {
					t.Fatalf("%s: rank %d: %v", what, r, err)
				}
			}
		}
	}
	all("other numbers", protecting(func(rank int) int { return 1 + rank%2 }))
	all("a number for all", protecting(func(int) int { return k }))
	all("not protected", recovering)
	_, err := protect(k, dirs, group.ProtectOptions{Tolerate: 1})
	must(t, err)
	dirs[0], dirs[1] = dirs[1], dirs[0]
	all("another order", recovering)
	dirs[0], dirs[1] = dirs[1], dirs[0]
	for _, dir := range dirs[1:] { // more than parity replaces
		must(t, os.RemoveAll(dir))
	}
	all("too much lost", recovering)
}

// TestFlips flips one byte anywhere, of data, parity and manifest: verify names the node and
// the file, and recover mends it.
func TestFlips(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 5, 10, 60_000, 3)
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 2})
	must(t, err)
	before := listings(t, dirs)
	for n, dir := range dirs {
		var files []string
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch d.Name() { // of what protects nothing
			case "lock":
				return err
			case "scrub":
				return fs.SkipDir
			}
			if info, e := d.Info(); e == nil && info.Mode().IsRegular() && info.Size() > 0 {
				files = append(files, path)
			}
			return err
		}))
		for i, path := range files {
			if (i+n)%3 != 0 && !strings.Contains(path, ".volley") {
				continue
			}
			info, err := os.Stat(path)
			must(t, err)
			content, err := os.ReadFile(path)
			must(t, err)
			at := (i*7919 + n*31) % len(content)
			content[at] ^= 1 << (i % 8)
			must(t, os.Chmod(path, 0o644))
			must(t, os.WriteFile(path, content, 0o644))
			if i%2 == 0 {
				must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
			}
			must(t, os.Chmod(path, info.Mode()))
			r, err := verify(1, dirs)
			must(t, err)
			name := filepath.Base(path)
			want := group.Damaged
			if !strings.Contains(path, ".volley") { // somebody has written to it
				want = group.Changed
			}
			if r.Intact || r.Nodes[n].Status != want {
				t.Fatalf("%s, byte %d: %+v", path, at, r)
			}
			if !strings.Contains(path, ".volley") && !slices.ContainsFunc(r.Nodes[n].Findings, func(f protection.Finding) bool { return strings.HasSuffix(string(f.Path), name) && f.Kind == want }) {
				t.Fatalf("%s is not named: %+v", path, r.Nodes[n])
			}
			_, err = everywhere(1, dirs, func(ctx context.Context, t transport.Transport, dirs []string) (*group.RecoverReport, error) {
				return group.Join(t, dirs, options).Recover(ctx, group.RecoverOptions{Revert: protection.Edits{Changed: want == group.Changed}})
			})
			must(t, err)
			must(t, os.RemoveAll(filepath.Join(dir, ".volley", "replaced")))
			compare(t, "flipped "+path, before, listings(t, dirs))
		}
	}
	whole(t, 1, dirs)
}

// TestUpdate changes files and protects again: only what has changed is coded.
func TestUpdate(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 4, 8, 2_000_000, 11)
	first, err := protect(1, dirs, group.ProtectOptions{Tolerate: 2})
	must(t, err)
	again, err := protect(2, dirs, group.ProtectOptions{Tolerate: 2})
	must(t, err)
	if again.Coded != 0 || again.Generation <= first.Generation {
		t.Errorf("nothing has changed: %+v", again)
	}
	small := smallest(t, dirs) // where there is room for more in its chunks
	lost := 3
	if small == lost {
		lost = 2
	}
	path := filepath.Join(dirs[1], "plain0")
	content, err := os.ReadFile(path)
	must(t, err)
	content[len(content)/2]++
	must(t, os.WriteFile(path, content, 0o644))
	must(t, os.WriteFile(filepath.Join(dirs[small], "another"), bytes.Repeat([]byte("x"), 1000), 0o600))
	// Until then, what has not changed is as safe as before.
	whatWas := listing(t, dirs[lost])
	lose(t, dirs, []int{lost})
	_, err = recoverAll(1, dirs)
	must(t, err)
	if now := listing(t, dirs[lost]); now != whatWas {
		t.Errorf("node %d was\n%s\nand is\n%s", lost, whatWas, now)
	}
	update, err := protect(1, dirs, group.ProtectOptions{Tolerate: 2})
	must(t, err)
	if update.Coded == 0 || update.Coded > first.Blocks/2 {
		t.Errorf("%d of %d blocks were coded again", update.Coded, first.Blocks)
	}
	must(t, os.RemoveAll(filepath.Join(dirs[1], ".volley", "replaced")))
	before := filesOf(t, dirs)
	lose(t, dirs, []int{1, 2})
	_, err = recoverAll(1, dirs)
	must(t, err)
	compare(t, "after the update", before, filesOf(t, dirs))
	whole(t, 1, dirs)
}

// smallest returns the node that has least.
func smallest(t testing.TB, dirs []string) int {
	least, most := 0, int64(1)<<62
	for n, dir := range dirs {
		var size int64
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if info, e := d.Info(); e == nil && info.Mode().IsRegular() && !strings.Contains(path, ".volley") {
				size += info.Size()
			}
			return err
		}))
		if size < most {
			least, most = n, size
		}
	}
	return least
}

// TestPrivate opens what Volley keeps of a group to everybody: protect closes it again, the
// folder and the files in it.
func TestPrivate(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 3, 4, 1000, 1)
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
	must(t, err)
	var opened []string
	for _, dir := range dirs {
		kept := filepath.Join(dir, ".volley")
		entries, err := os.ReadDir(kept)
		must(t, err)
		must(t, os.Chmod(kept, 0o755))
		opened = append(opened, kept)
		for _, e := range entries {
			if e.Type().IsRegular() {
				must(t, os.Chmod(filepath.Join(kept, e.Name()), 0o644))
				opened = append(opened, filepath.Join(kept, e.Name()))
			}
		}
	}
	_, err = protect(1, dirs, group.ProtectOptions{Tolerate: 1})
	must(t, err)
	for _, name := range opened {
		if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is still open: %v", name, info.Mode())
		}
	}
}
