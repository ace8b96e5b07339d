package group_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"volley/files"
	"volley/group"
	"volley/group/protection"
	"volley/transport"
	"volley/transport/local"
)

// TestErrorNames finds each error of the verbs by its name in this package, as programs elsewhere do.
func TestErrorNames(t *testing.T) {
	t.Parallel()
	protected := func(t *testing.T) []string {
		dirs := nodesIn(t)
		if _, err := protectThese(t, dirs, protection.Settings{}, group.ProtectOptions{Tolerate: 1}); err != nil {
			t.Fatal(err)
		}
		return dirs
	}
	for name, x := range map[string]struct {
		is   any // a pointer to the error's type
		make func(t *testing.T) error
	}{
		"RefusedError": {new(*protection.RefusedError), func(t *testing.T) error {
			_, err := protectThese(t, nodesIn(t), protection.Settings{}, group.ProtectOptions{Tolerate: 9})
			return err
		}},
		"BusyError": {new(*files.BusyError), func(t *testing.T) (err error) {
			dirs := nodesIn(t)
			var once sync.Once
			beside := func(done, _ int64) {
				if done > 0 { // the nodes are locked
					once.Do(func() { _, err = protectThese(t, dirs, protection.Settings{}, group.ProtectOptions{Tolerate: 1}) })
				}
			}
			if _, err := protectThese(t, dirs, protection.Settings{Progress: beside}, group.ProtectOptions{Tolerate: 1}); err != nil {
				t.Fatal(err)
			}
			return err
		}},
		"SharedError": {new(*files.SharedError), func(t *testing.T) error {
			dir := nodesIn(t)[:1]
			errs := make([]error, 2)
			local.Run(t.Context(), 2, func(ctx context.Context, end transport.Transport) error {
				_, errs[end.Rank()] = group.Join(end, dir, protection.Settings{}).Protect(ctx, group.ProtectOptions{Tolerate: 1})
				return nil
			})
			return errors.Join(errs...)
		}},
		"UnclearError": {new(*protection.UnclearError), func(t *testing.T) error {
			dirs := protected(t)
			old := t.TempDir()
			for i, dir := range dirs[:2] { // these two go back to an earlier time
				copyTo(t, filepath.Join(dir, ".volley"), filepath.Join(old, fmt.Sprint(i)))
			}
			note(t, dirs[3], "what node 3 knows later")
			if _, err := protectThese(t, dirs, protection.Settings{}, group.ProtectOptions{Tolerate: 1}); err != nil {
				t.Fatal(err)
			}
			for i, dir := range dirs[:2] {
				copyTo(t, filepath.Join(old, fmt.Sprint(i)), filepath.Join(dir, ".volley"))
			}
			_, err := protectThese(t, dirs, protection.Settings{}, group.ProtectOptions{Tolerate: 1})
			return err
		}},
		"NoneError": {new(*protection.NoneError), func(t *testing.T) error {
			_, err := recoverThese(t, nodesIn(t), protection.Settings{})
			return err
		}},
		"TooManyError": {new(*protection.TooManyError), func(t *testing.T) error {
			dirs := protected(t)
			loseThese(t, dirs[1], dirs[2])
			_, err := recoverThese(t, dirs, protection.Settings{})
			return err
		}},
		"UnreachableError": {new(*protection.UnreachableError), func(t *testing.T) error {
			dirs := protected(t)
			_, err := protectThese(t, dirs, protection.Settings{Absent: []string{"", "its host is down", "", ""}}, group.ProtectOptions{Tolerate: 1})
			return err
		}},
		"IncompleteError": {new(*protection.IncompleteError), func(t *testing.T) error {
			dirs := protected(t)
			for _, dir := range dirs[:2] {
				note(t, dir, "changed by somebody")
			}
			loseThese(t, dirs[2])
			r, err := recoverThese(t, dirs, protection.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Incomplete()
		}},
		"StrictError": {new(*group.StrictError), func(t *testing.T) error {
			_, err := protectThese(t, nodesIn(t), protection.Settings{}, group.ProtectOptions{Tolerate: 1, Strict: true})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := x.make(t); !errors.As(err, x.is) {
				t.Errorf("%T: %v", err, err)
			}
		})
	}
}

// nodesIn makes the directories of four nodes.
func nodesIn(t *testing.T) (dirs []string) {
	at := t.TempDir()
	for n := range 4 {
		dirs = append(dirs, filepath.Join(at, fmt.Sprint("node", n)))
		note(t, dirs[n], fmt.Sprint("what node ", n, " knows"))
	}
	return dirs
}

func note(t *testing.T, dir, text string) {
	if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, "notes"), []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

// copyTo puts a copy of a directory in the place of another.
func copyTo(t *testing.T, from, to string) {
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		t.Fatal(err)
	}
}

func loseThese(t *testing.T, dirs ...string) {
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func protectThese(t *testing.T, dirs []string, o protection.Settings, p group.ProtectOptions) (*group.ProtectReport, error) {
	o.Timeout = time.Minute
	g, err := group.Open(dirs, o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	return g.Protect(t.Context(), p)
}

func recoverThese(t *testing.T, dirs []string, o protection.Settings) (*group.RecoverReport, error) {
	g, err := group.Open(dirs, o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	return g.Recover(t.Context(), group.RecoverOptions{})
}
