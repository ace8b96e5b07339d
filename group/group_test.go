package group_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	ts := local.NewHosts(ranks)
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

func compare(t testing.TB, what string, want, got []string) {
	t.Helper()
	for n := range want {
		if want[n] != got[n] {
			t.Fatalf("%s: node %d was\n%s\nand is\n%s", what, n, want[n], got[n])
		}
	}
}
