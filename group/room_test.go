package group

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/internal/verifyall"
)

const roomBlock = 4096

// A roomCase is a recovery that needs room on a small file system.
type roomCase struct {
	name  string
	small string            // where that is mounted
	lose  func(w *world)    // with that in place; nil: the file /n0/big rots
	o     RecoverOptions    //
	nodes []string          // that the error names
	back  map[string]string // what is to be the same afterwards, by where it was
}

var roomCases = []roomCase{
	{"a lost node", "/n0", func(w *world) {}, RecoverOptions{}, []string{"/n0"}, map[string]string{"/n0": "/n0"}},
	{"two lost nodes on one file system", "/two", func(w *world) {
		w.RemoveAll("/n0")
		w.RemoveAll("/n1")
		w.MkdirAll("/two/a", 0o755)
		w.MkdirAll("/two/b", 0o755)
		w.dirs[0], w.dirs[1] = "/two/a", "/two/b"
	}, RecoverOptions{}, []string{"/two/a", "/two/b"}, map[string]string{"/n0": "/two/a", "/n1": "/two/b"}},
	{"a lost node, elsewhere", "/out", func(w *world) { w.RemoveAll("/n0") }, RecoverOptions{OutDir: "/out", Files: []string{"*"}}, []string{"/out/node.0"}, map[string]string{"/n0": "/out/node.0"}},
	{"files of all, elsewhere", "/out", func(w *world) { w.RemoveAll("/n0") }, RecoverOptions{OutDir: "/out", Files: []string{"/big"}}, []string{"/out/node.0", "/out/node.1"}, map[string]string{"/n1/big": "/out/node.1/big", "/n0/big": "/out/node.0/big"}},
	{"a file that has rotted", "/n0", nil, RecoverOptions{}, []string{"/n0"}, map[string]string{"/n0": "/n0"}},
	{"a file that has rotted, alone", "/n0", nil, RecoverOptions{Files: []string{"/big"}}, []string{"/n0"}, map[string]string{"/n0": "/n0"}},
}

// begin returns a group that is protected, with files of node 0 on a disk of its own where one is to rot.
func (x *roomCase) begin(t *testing.T) *world {
	w, full := newWorld(5, 2), newWorld(5, 2)
	w.MkdirAll("/two", 0o755)
	w.MkdirAll("/out", 0o755)
	w.WriteFile("/n0/more", random(rand.New(rand.NewPCG(1, 2)), 50_000), 0o600)
	if x.lose == nil { // the disk has what is there, and little more
		w.RemoveAll("/n0")
		w.MkdirAll("/n0", 0o755)
		w.Mount("/n0", disktest.Mount{Bytes: 1 << 30})
		for _, f := range []string{"plain", "big", "empty"} {
			w.WriteFile("/n0/"+f, []byte(contentOf(full, "/n0/"+f)), 0o600)
		}
	}
	must(t, w.protect())
	return w
}

// befall returns the group when something is lost, with so much room.
func (x *roomCase) befall(first *world, size int64) *world {
	w := first.clone()
	if x.lose == nil {
		w.Overwrite("/n0/big", 10, []byte("rotten"), true)
		w.Remount("/n0", func(m *disktest.Mount) { m.Bytes = size })
		return w
	}
	if x.small == "/n0" {
		w.RemoveAll("/n0")
		w.MkdirAll("/n0", 0o755)
	}
	w.Mount(x.small, disktest.Mount{Bytes: size})
	x.lose(w)
	return w
}

// TestRecoverRoom recovers on disks that are larger by a block each time. Where one is too small, nothing is written, and
// the error says what is needed. The first one that is not refused has room for all, and the last one that is refused has
// room for a small file.
func TestRecoverRoom(t *testing.T) {
	t.Parallel()
	for i, x := range roomCases {
		first, last := x.begin(t), (*world)(nil)
		for size := int64(4 * roomBlock); ; size += int64(verifyall.Pick(4, 1)) * roomBlock {
			w := x.befall(first, size)
			w.ranks = 1 + 4*(i%2)
			before, others := below(w.Tree(x.small)), below(w.Tree("/n2"))
			r, err := w.recoverBy(w.Process(), x.o)
			if input := new(protection.RefusedError); errors.As(err, &input) {
				last = w
				if (input.Option == protection.OptionFiles) != (x.o.Files == nil) {
					t.Fatalf("%s: the way on is %q", x.name, input.Option)
				}
				for _, want := range append(x.nodes, "the file system of "+x.small, " has room for ", " bytes)") {
					if !strings.Contains(err.Error(), want) {
						t.Fatalf("%s: %v: no %s", x.name, err, want)
					}
				}
				must(t, diff(x.name, before, below(w.Tree(x.small))), diff(x.name, others, below(w.Tree("/n2"))))
				continue
			}
			if err != nil || r.Incomplete() != nil || last == nil {
				t.Fatalf("%s, %d ranks, %d bytes, refused before %v: %v: %v", x.name, w.ranks, size, last != nil, err, r)
			}
			for was, is := range x.back {
				must(t, diff(x.name, textOf(first, was), textOf(w, is)))
			}
			break
		}
		r, err := last.recoverBy(last.Process(), RecoverOptions{Files: []string{"/plain"}, OutDir: x.o.OutDir})
		must(t, err, r.Incomplete())
		for was, is := range x.back {
			if !strings.HasSuffix(was, "/big") {
				must(t, diff(x.name, textOf(first, was+"/plain"), textOf(last, is+"/plain")))
			}
		}
	}
}

// TestProtectRoom protects and resizes on disks that are larger by some blocks each time: where there is no room for the
// parity, nothing is written. A dry run says so, too, up to what locks take.
func TestProtectRoom(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 4} {
		resize := ranks == 1
		refused, foreseen := 0, 0
		for size := int64(4 * roomBlock); ; size += int64(verifyall.Pick(2, 1)) * roomBlock {
			w := newWorld(4, 1)
			w.MkdirAll("/two", 0o755)
			w.Mount("/two", disktest.Mount{Bytes: size})
			for _, dir := range []string{"/two/a", "/two/b"} {
				w.MkdirAll(dir, 0o755)
				w.WriteFile(dir+"/file", []byte("text"), 0o600)
			}
			all := []string{"/n0", "/n1", "/two/a", "/two/b"}
			if resize {
				must(t, w.of(all[:2]).protect())
			}
			w.dirs, w.ranks = all, ranks
			before := below(w.Tree("/two")) + below(w.Tree("/n1"))
			run := func(dry bool) error {
				_, err := overRanks(w, w.Process(), func(ctx context.Context, g *Group) (any, error) {
					o := ProtectOptions{Tolerate: w.r, DryRun: dry}
					if resize {
						return g.Resize(ctx, ResizeOptions{Add: all[2:], ProtectOptions: o})
					}
					return g.Protect(ctx, o)
				})
				return err
			}
			forecast, err := run(true), run(false)
			if IsInputError(forecast) {
				foreseen++
			}
			switch {
			case err == nil && forecast != nil:
				t.Errorf("a dry run says %v", forecast)
			case err == nil:
			case !IsInputError(err) && size < 60*roomBlock: // parity fits, and records do not
				continue
			case !strings.Contains(err.Error(), "/two/a, /two/b: the file system of /two/a/.volley has room for "):
				t.Fatalf("%d ranks, %d bytes: %v", ranks, size, err)
			default:
				refused++
				must(t, diff("refused", before, below(w.Tree("/two"))+below(w.Tree("/n1"))))
				continue
			}
			break
		}
		if foreseen == 0 || refused < foreseen {
			t.Errorf("%d ranks: %d were refused, and %d dry runs", ranks, refused, foreseen)
		}
	}
}

// TestForecastElsewhere has a dry run whose parity comes elsewhere, where nothing is yet: the node's own disk may be full.
func TestForecastElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(4, 1)
	w.MkdirAll("/full", 0o755)
	w.Mount("/full", disktest.Mount{Bytes: 4096})
	w.MkdirAll("/meta", 0o700)
	w.dirs[3] = "/full"
	for meta, refused := range map[string]bool{"": true, "/meta": false} {
		_, err := w.with(protection.Settings{Meta: meta}).protectBy(w.Process(), ProtectOptions{DryRun: true})
		if refused != IsInputError(err) || !refused && err != nil {
			t.Errorf("%q: %v", meta, err)
		}
	}
}

// below returns a tree without locks, and without the times of directories in which there was one.
func below(list string) (rest string) {
	for line := range strings.Lines(list) {
		name, is, _ := strings.Cut(line, " ")
		switch {
		case path.Base(name) == store.LockFile:
		case strings.HasPrefix(is, "d"):
			rest += name + "\n"
		default:
			rest += line
		}
	}
	return rest
}

// textOf returns a file's content, or what is the user's in a directory.
func textOf(w *world, at string) string {
	if text, err := w.ReadFile(at); err == nil {
		return string(text)
	}
	return w.Tree(at, ".volley")
}
