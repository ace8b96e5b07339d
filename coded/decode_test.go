package coded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"volley"
	"volley/coded/manifest"
	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/disk"
	"volley/matrix/matrices"
	"volley/transport"
	"volley/transport/local"
)

// encodedFiles encodes k inputs in one process. It returns the directory of the inputs, one of which
// has a long name and one a mode of its own, and that of the coded files.
func encodedFiles(t *testing.T, k int) (in, coded string) {
	t.Helper()
	in, coded = t.TempDir(), filepath.Join(t.TempDir(), "coded")
	for n := range k {
		name := fmt.Sprint("input.", n)
		if n == 1 {
			name += strings.Repeat("x", disk.LongestName-len(name))
		}
		writeText(t, filepath.Join(in, name), strings.Repeat(fmt.Sprint(n), 70_000+n))
	}
	if err := os.Chmod(filepath.Join(in, "input.0"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Encode(t.Context(), local.New(1)[0], Encoding{
		Options: Options{Dir: coded}, Field: fieldtest.Parse(t, "2^8"), Matrix: matrices.Spec{Family: "cauchy"}, Files: []string{in},
	})
	if err != nil {
		t.Fatal(err)
	}
	return in, coded
}

// TestDecodeRanks decodes at several ranks what is left: survivors at any of them, coded files at
// any of them, and the manifest at one. They write one directory or their own.
func TestDecodeRanks(t *testing.T) {
	t.Parallel()
	const k = 6
	for _, c := range []struct {
		ranks int
		lost  []int // inputs and their coded files
		own   bool  // directories for the results
	}{{6, []int{1, 4}, false}, {6, []int{0, 2, 5}, true}, {4, []int{1}, false}, {2, []int{3, 4, 5}, true}, {1, []int{5}, false}} {
		t.Run(fmt.Sprintf("%d ranks, lost %v, own %v", c.ranks, c.lost, c.own), func(t *testing.T) {
			in, coded := encodedFiles(t, k)
			want := map[string]string{}
			inputs, err := os.ReadDir(in)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			move := func(from string, rank int) {
				to := filepath.Join(dir, fmt.Sprint("rank.", rank))
				if err := errors.Join(os.MkdirAll(to, 0o777), os.Rename(from, filepath.Join(to, filepath.Base(from)))); err != nil {
					t.Fatal(err)
				}
			}
			for n, e := range inputs {
				text, err := os.ReadFile(filepath.Join(in, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				want[e.Name()] = string(text)
				if slices.Contains(c.lost, n) {
					continue
				}
				move(filepath.Join(in, e.Name()), (n*n+1)%c.ranks)
				move(filepath.Join(coded, manifest.CodedName(n, k, 0)), n/2%c.ranks)
			}
			move(filepath.Join(coded, manifest.FileName), c.ranks-1)
			err = local.Run(t.Context(), c.ranks, func(ctx context.Context, tr transport.Transport) error {
				back := filepath.Join(dir, "back")
				if c.own {
					back = filepath.Join(back, fmt.Sprint(tr.Rank()))
				}
				own := filepath.Join(dir, "rank.{rank}")
				var survivors []string
				files, _ := filepath.Glob(strings.ReplaceAll(own, rankWord, fmt.Sprint(tr.Rank())) + "/input*")
				survivors = append(survivors, files...)
				_, err := Decode(ctx, tr, Decoding{Options: Options{Dir: back, Timeout: time.Minute}, Coded: own, Survivors: survivors})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			err = filepath.WalkDir(filepath.Join(dir, "back"), func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				got[e.Name()] = string(text)
				if info, err := e.Info(); err != nil || info.Mode() != 0o600 { // as one of the inputs, of which all may tell
					t.Errorf("%.20s has the mode %v, %v", e.Name(), info.Mode(), err)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != k {
				t.Errorf("%d files, want %d", len(got), k)
			}
			for name, text := range want {
				if got[name] != text {
					t.Errorf("%.20s comes back otherwise", name)
				}
			}
		})
	}
}

// TestDecodeRankFails has one of the ranks fail at each moment at which it can: all fail, and no
// file has a name.
func TestDecodeRankFails(t *testing.T) {
	t.Parallel()
	_, coded := encodedFiles(t, 4)
	bad := errors.New("bad")
	for name, spoil := range map[string]func(d *Decoding, cancel context.CancelCauseFunc){
		"encoder": func(d *Decoding, _ context.CancelCauseFunc) {
			d.Encoder = func(field.Field, int64) ([]volley.Option, error) { return nil, bad }
		},
		"written": func(d *Decoding, cancel context.CancelCauseFunc) {
			d.Progress = func(finished, _ int64) {
				if finished > 0 {
					cancel(bad)
				}
			}
		},
		"directory": func(d *Decoding, _ context.CancelCauseFunc) { d.Dir = filepath.Join(coded, "coded.0", "x") },
		"coded":     func(d *Decoding, _ context.CancelCauseFunc) { d.Coded = "" },
	} {
		back := filepath.Join(t.TempDir(), "back")
		errs := make([]error, 3)
		local.Run(t.Context(), 3, func(ctx context.Context, tr transport.Transport) error {
			d := Decoding{Options: Options{Dir: back, Timeout: time.Minute}, Coded: coded}
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if tr.Rank() == 1 {
				spoil(&d, cancel)
			}
			_, errs[tr.Rank()] = Decode(ctx, tr, d)
			return nil
		})
		for rank, err := range errs {
			if aborted := new(transport.AbortError); err == nil || rank != 1 && (!errors.As(err, &aborted) || aborted.Rank != 1) {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
		if text := listing(t, back); strings.Contains(text, "input") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
