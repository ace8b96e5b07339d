package group_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/group"
	"volley/group/protection"
	"volley/transport"
)

// ofVolley matches the lines of a listing that are not about what the user has.
var ofVolley = regexp.MustCompile(`(?m)^"(\.volley.*)" .*\n`)

// TestRecoverTo copies lost nodes out, in one process and in one for each node, where lost ones are not
// reached, and looks for changes elsewhere.
func TestRecoverTo(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(32, 3))
	for _, ranks := range []int{1, 5} {
		dirs := trees(t, 5, 7, 90_000, rng.Uint64())
		_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 2})
		must(t, err)
		before := listings(t, dirs)
		lost := rng.Perm(5)[:2]
		for _, n := range lost {
			must(t, os.RemoveAll(dirs[n]))
		}
		to := filepath.Join(t.TempDir(), "out")
		copyOut := func() (*group.RecoverReport, error) {
			return everywhere(ranks, dirs, func(ctx context.Context, x transport.Transport, mine []string) (*group.RecoverReport, error) {
				o := options
				for _, dir := range mine {
					o.Names = append(o.Names, "host:"+dir)
					absent := ""
					if _, err := os.Stat(dir); err != nil && ranks > 1 {
						absent = "no route to host"
					}
					o.Absent = append(o.Absent, absent)
				}
				return group.Join(x, mine, o).Recover(ctx, group.RecoverOptions{OutDir: to})
			})
		}
		r, err := copyOut()
		must(t, err)
		for n, dir := range dirs {
			if r.Nodes[n].Dir != "host:"+dir {
				t.Errorf("node %d is called %s", n, r.Nodes[n].Dir)
			}
			if !slices.Contains(lost, n) {
				compare(t, fmt.Sprintf("%d ranks, node %d", ranks, n), before[n:n+1], []string{listing(t, dir)})
				continue
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s was made", dir)
			}
			out := listing(t, filepath.Join(to, fmt.Sprint("node.", n)))
			compare(t, fmt.Sprintf("%d ranks, copy of node %d", ranks, n),
				[]string{ofVolley.ReplaceAllString(before[n], "")}, []string{ofVolley.ReplaceAllString(out, "")})
		}
		r, err = copyOut() // once more: nothing is left to do
		if err != nil || r.Files != 0 || r.Incomplete() != nil {
			t.Errorf("a second time to the same place: %+v, %v", r, err)
		}
		must(t, os.RemoveAll(to))
		must(t, os.RemoveAll(dirs[slices.Index([]bool{slices.Contains(lost, 0), slices.Contains(lost, 1), slices.Contains(lost, 2)}, false)]))
		if _, err := copyOut(); !group.IsInputError(err) || !strings.Contains(err.Error(), "tolerates the loss of 2") {
			t.Errorf("3 lost: %v", err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s was made", to)
		}
	}
}

// TestRecoverToPlaces names places to copy out to that are, or lie in, nodes or hold files, and one in which a copy
// was interrupted.
func TestRecoverToPlaces(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 3} {
		base := t.TempDir()
		var dirs []string
		for n, dir := range trees(t, 3, 7, 30_000, 5) { // node 0 in node.1, and so on
			dirs = append(dirs, filepath.Join(base, fmt.Sprint("node.", (n+1)%3)))
			must(t, os.Rename(dir, dirs[n]))
		}
		_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 1})
		must(t, err)
		was := ofVolley.ReplaceAllString(listing(t, dirs[0]), "")
		must(t, os.RemoveAll(dirs[0]))
		volatile := regexp.MustCompile(`(?m)^(".*/.volley" d\S+) \d+$|^".*/lock" .*\n`) // times of .volley, who had the locks
		now := func() []string { return []string{volatile.ReplaceAllString(listing(t, base), "$1")} }
		before := now()
		copyOut := func(to string) error {
			_, err := everywhere(ranks, dirs, func(ctx context.Context, x transport.Transport, mine []string) (*group.RecoverReport, error) {
				return group.Join(x, mine, protection.Settings{}).Recover(ctx, group.RecoverOptions{OutDir: to})
			})
			return err
		}
		full, out := t.TempDir(), t.TempDir()
		must(t, os.MkdirAll(filepath.Join(full, "node.0/x"), 0o700))
		refused := map[string]string{full: "has something else than"}
		if ranks == 1 { // those of other processes may be on other machines
			refused[base] = "are the same directory"
			refused[dirs[1]] = "lies in"
			refused[filepath.Join(dirs[2], "a/b")] = "lies in"
		}
		for to, want := range refused {
			if err := copyOut(to); !group.IsInputError(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%d ranks, to %s: %v: want %q", ranks, to, err, want)
			}
			compare(t, to, before, now())
		}
		must(t, os.MkdirAll(filepath.Join(out, "node.0/.volley/tmp-stage"), 0o700))
		must(t, os.WriteFile(filepath.Join(out, "node.0/.volley/tmp-stage/0"), []byte("half"), 0o600))
		must(t, copyOut(out))
		compare(t, "the copy", []string{was}, []string{ofVolley.ReplaceAllString(listing(t, filepath.Join(out, "node.0")), "")})
	}
}

// TestGlance looks at groups of which files and nodes are missing.
func TestGlance(t *testing.T) {
	t.Parallel()
	dirs := trees(t, 4, 7, 3000, 1)
	glance := func() *group.VerifyReport {
		t.Helper()
		r, err := everywhere(2, dirs, func(ctx context.Context, x transport.Transport, dirs []string) (*group.VerifyReport, error) {
			return group.Join(x, dirs, protection.Settings{}).Status(ctx)
		})
		must(t, err)
		return r
	}
	if r := glance(); r.Protected {
		t.Errorf("%+v", r)
	}
	_, err := protect(1, dirs, group.ProtectOptions{Tolerate: 3})
	must(t, err)
	want := func(may int, statuses ...string) {
		t.Helper()
		r := glance()
		var got []string
		for _, n := range r.Nodes {
			got = append(got, n.Status)
		}
		if !slices.Equal(got, statuses) || r.MayLose != may || r.Intact != (may == 3) || r.Since.IsZero() {
			t.Errorf("%+v: want %v, %d may be lost", r, statuses, may)
		}
	}
	before := listings(t, dirs)
	want(3, group.Intact, group.Intact, group.Intact, group.Intact)
	must(t, os.Remove(filepath.Join(dirs[1], "sub/x0")))
	want(2, group.Intact, group.Changed, group.Intact, group.Intact)
	must(t, os.RemoveAll(dirs[3]))
	want(1, group.Intact, group.Changed, group.Intact, group.Lost)
	must(t, os.Truncate(filepath.Join(dirs[2], ".volley/generation.1/parity"), 1))
	want(0, group.Intact, group.Changed, group.Damaged, group.Lost)
	compare(t, "node 0", before[:1], []string{listing(t, dirs[0])})
}
