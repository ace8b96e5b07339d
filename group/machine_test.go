package group

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"volley/executor"
	"volley/files"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/transport"
	"volley/transport/local"
)

var (
	mostCalls = flag.Int("group.calls", 1, "calls of each verb at which TestCrash interrupts it, in each way; 0: all")
	callSeed  = flag.Uint64("group.seed", 1, "which calls these are")
)

// A world is a group of nodes on a machine in memory.
type world struct {
	*disktest.Machine
	dirs   []string
	r      int
	ranks  int
	inTurn bool

	together bool                // ranks share memory
	common   protection.Settings // of all verbs
	hosts    []string            // by rank; nil: all are on this one

	deletes bool // what is gone was deleted by users; else it is to come back
}

// newWorld returns a group that is not protected, whose nodes have files of all kinds.
func newWorld(k, r int) *world {
	w := &world{Machine: disktest.NewMachine(), r: r, ranks: 1}
	rng := rand.New(rand.NewPCG(uint64(k), uint64(r)))
	for n := range k {
		dir := fmt.Sprintf("/n%d", n)
		w.dirs = append(w.dirs, dir)
		for _, p := range []string{"", "/sub", "/sub/deep", "/closed", "/closed/inner", "/nothing", "/sub/void"} {
			w.MkdirAll(dir+p, 0o755)
		}
		big := 500
		if n < 2 {
			big = 70_000
		}
		for _, f := range []struct {
			name string
			size int
			mode fs.FileMode
		}{
			{"plain", 300, 0o644}, {"big", big, 0o600}, {"sub/x", 100, 0o444}, {"sub/deep/y", 200, 0o755},
			{"closed/inner/z", 150, 0o640}, {"empty", 0, 0o644}, {"odd \xff", 40, 0o644},
		} {
			w.WriteFile(dir+"/"+f.name, random(rng, f.size), f.mode)
		}
		w.Link(dir+"/sub/deep/y", dir+"/twin")
		w.Chown(dir+"/plain", 1000, 1001, "user.note", "of \xff")
		w.Chmod(dir+"/plain", 0o644|fs.ModeSetuid)
		w.Chown(dir+"/sub", 1000, 0, "system.posix_acl_default", "of all")
		w.Symlink("sub/x", dir+"/link")
		w.Chown(dir+"/link", 0, 1002, "trusted.note", "of a link")
		w.Symlink("no/such/file", dir+"/closed/broken")
		w.Chmod(dir+"/closed/inner", 0o700)
		w.Chmod(dir+"/closed", 0o500)
		w.Chmod(dir+"/sub/void", 0o700)
	}
	w.Wait(time.Hour)
	return w
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// clone returns a copy.
func (w *world) clone() *world {
	c := *w
	c.Machine = w.Machine.Clone()
	c.dirs = slices.Clone(w.dirs)
	return &c
}

// on returns the same world on another machine.
func (w *world) on(m *disktest.Machine) *world {
	c := *w
	c.Machine = m
	return &c
}

// onRanks runs a verb at all ranks of a group and returns rank 0's result, and the first error
// that is not another rank's.
func onRanks[T any](w *world, f func(context.Context, transport.Transport, []string) (T, error)) (T, error) {
	ts := local.New(w.ranks)
	if w.together {
		ts = local.NewHosts(w.ranks)
	}
	results, errs := make([]T, w.ranks), make([]error, w.ranks)
	var wg sync.WaitGroup
	for r, x := range ts {
		wg.Go(func() {
			first, end := executor.Hosted(len(w.dirs), r, w.ranks)
			results[r], errs[r] = f(context.Background(), x, w.dirs[first:end])
			x.Close()
		})
	}
	wg.Wait()
	var err error
	for _, e := range errs {
		if e != nil && (err == nil || errors.As(err, new(*transport.AbortError))) {
			err = e
		}
	}
	return results[0], err
}

// ordered has calls to the disk come in the same order at each run, by one rank.
func (w *world) ordered() *world {
	w.inTurn = true
	return w
}

// with returns the same world, whose verbs have options.
func (w *world) with(o protection.Settings) *world {
	x := *w
	x.common = o
	return &x
}

// options are those of a run by a process.
func (w *world) options(p *disktest.Process, o protection.Settings) session.Setup {
	o.Timeout, o.Memory = time.Minute, 1<<20
	return session.Setup{Settings: o, Disk: p, InTurn: w.inTurn}
}

// overSetup is Over with more than settings.
func overSetup(t transport.Transport, dirs []string, o session.Setup) *Group {
	return &Group{dirs: slices.Clone(dirs), options: o, t: t}
}

// overRanks runs a verb by a process at all ranks of a group, as onRanks does.
func overRanks[T any](w *world, p *disktest.Process, verb func(context.Context, *Group) (T, error)) (T, error) {
	o := w.options(p, w.common)
	return onRanks(w, func(ctx context.Context, t transport.Transport, dirs []string) (T, error) {
		o := o
		if w.hosts != nil {
			o.HostName = w.hosts[t.Rank()]
		}
		return verb(ctx, overSetup(t, dirs, o))
	})
}

func (w *world) protectBy(p *disktest.Process, o ProtectOptions) (*ProtectReport, error) {
	if o.Tolerate == 0 {
		o.Tolerate = w.r
	}
	return overRanks(w, p, func(ctx context.Context, g *Group) (*ProtectReport, error) { return g.Protect(ctx, o) })
}

func (w *world) recoverBy(p *disktest.Process, o RecoverOptions) (*RecoverReport, error) {
	o.Revert.Deleted = !w.deletes
	return overRanks(w, p, func(ctx context.Context, g *Group) (*RecoverReport, error) { return g.Recover(ctx, o) })
}

func (w *world) verifyBy(p *disktest.Process) (*VerifyReport, error) {
	return overRanks(w, p, func(ctx context.Context, g *Group) (*VerifyReport, error) { return g.Verify(ctx, VerifyOptions{}) })
}

func (w *world) statusBy(p *disktest.Process) (*VerifyReport, error) {
	return overRanks(w, p, func(ctx context.Context, g *Group) (*VerifyReport, error) { return g.Status(ctx) })
}

// examineBy is statusBy, for a glance, or verifyBy.
func (w *world) examineBy(p *disktest.Process, glance bool) (*VerifyReport, error) {
	if glance {
		return w.statusBy(p)
	}
	return w.verifyBy(p)
}

func (w *world) protect() error {
	_, err := w.protectBy(w.Process(), ProtectOptions{})
	return err
}

func (w *world) recover() error {
	_, err := w.recoverBy(w.Process(), RecoverOptions{})
	return err
}

// whole returns an error unless verify finds nothing. It runs on a copy, as
// verify makes files to lock.
func (w *world) whole() error {
	c := w.clone()
	r, err := c.verifyBy(c.Process())
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if !r.Intact {
		return fmt.Errorf("verify: %+v", *r)
	}
	return nil
}

// tree lists what is the user's at a node.
func (w *world) tree(n int) string { return w.Tree(w.dirs[n], tree.MetaName) }

func (w *world) trees() []string {
	var list []string
	for n := range w.dirs {
		list = append(list, w.tree(n))
	}
	return list
}

// everything lists what is at the nodes, but for locks, replaced files and notes of what was read, which need not last,
// and the times of .volley and what is in it.
func everything(w *world) []string {
	var list []string
	for n, dir := range w.dirs {
		info, err := w.Lstat(dir)
		if err != nil {
			panic(err)
		}
		text := fmt.Sprint(info.ModTime(), "\n", w.tree(n))
		for name, line := range lines(w.Tree(dir+"/"+tree.MetaName, store.LockFile, store.ReplacedName, store.ScrubName)) {
			if fields := strings.Fields(line); len(fields) == 4 {
				text += fmt.Sprintf("%s %s %s %s\n", name, fields[0], fields[2], fields[3])
			}
		}
		list = append(list, sortLines(text))
	}
	return list
}

// lose removes nodes, each in one of some ways.
func (w *world) lose(how int, nodes ...int) {
	for _, n := range nodes {
		w.RemoveAll(w.dirs[n])
		if w.common.Meta != "" {
			if (how+n)%3 == 0 {
				continue // its .volley is left
			}
			w.RemoveAll(w.own(n))
		}
		if (how+n)%2 == 0 {
			w.MkdirAll(w.dirs[n], 0o700)
		}
	}
}

// own returns where a node's .volley lies.
func (w *world) own(n int) string {
	if w.common.Meta != "" {
		return fmt.Sprint(w.common.Meta, "/node.", n)
	}
	return w.dirs[n] + "/" + tree.MetaName
}

// meta returns what lies in a node's .volley, but for the lock, replaced files and what says when it was read.
func (w *world) meta(n int) []string {
	var list []string
	for line := range strings.Lines(w.Tree(w.own(n))) {
		name, _, _ := strings.Cut(line, " ")
		top, _, _ := strings.Cut(name, "/")
		if slices.Contains([]string{".", store.LockFile, store.ReplacedName, store.ScrubName}, top) || strings.HasPrefix(name, "lstat") {
			continue
		}
		list = append(list, name)
	}
	return list
}

// earlierSpans finds the lines of a record file that name an earlier one.
var earlierSpans = regexp.MustCompile(`(?m)^=([0-9]+) [0-9]+ [0-9]+$`)

// tidy returns an error where a node's .volley has anything but the files of the generation in
// force.
func (w *world) tidy(g int64) error {
	for n := range w.dirs {
		text, err := w.ReadFile(w.own(n) + strings.TrimPrefix(manifestPath(g), tree.MetaName))
		if err != nil {
			return err
		}
		m, err := store.DecodeManifest(text)
		if err != nil {
			return err
		}
		dir := store.GenerationDir(g)
		want := []string{dir, path.Join(dir, store.NodeFile), path.Join(dir, store.ManifestFile), path.Join(dir, store.ParityFile)}
		for _, f := range m.RecordFilesAt(n) {
			want = append(want, path.Join(dir, f.Name))
			text, _ := w.ReadFile(w.own(n) + "/" + dir + "/" + f.Name)
			for _, piece := range earlierSpans.FindAllSubmatch(text, -1) {
				want = append(want, path.Join(dir, fmt.Sprintf("%s@%s", f.Name, piece[1])))
			}
		}
		if text, err := w.ReadFile(w.own(n) + "/" + dir + "/" + store.ChangesFile); err == nil {
			x, err := store.DecodeChanges(text, m.BlockBytes)
			if err != nil {
				return err
			}
			want = append(want, path.Join(dir, store.ChangesFile))
			for _, c := range x.Files {
				want = append(want, path.Join(dir, fmt.Sprint(store.ChangesFile, ".", c.Generation)))
			}
		}
		slices.Sort(want)
		if is := w.meta(n); !slices.Equal(is, slices.Compact(want)) {
			return fmt.Errorf("node %d has %q in its .volley: want %q", n, is, want)
		}
	}
	return nil
}

// diff returns an error that shows the first line in which two trees differ.
func diff(what string, want, is string) error {
	if want == is {
		return nil
	}
	a, b := strings.Split(want, "\n"), strings.Split(is, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Errorf("%s: line %d was %q and is %q", what, i, x, y)
		}
	}
	return fmt.Errorf("%s: differs", what)
}

// dying makes all calls in a directory fail from call n on.
func dying(p *disktest.Process, n int, dir string, err error) {
	p.Hook = func(c disktest.Call) error {
		if c.N >= n && (c.Path == dir || strings.HasPrefix(c.Path, dir+"/")) {
			return err
		}
		return nil
	}
}

func isBusy(err error) bool { return errors.As(err, new(*files.BusyError)) }

// sortLines sorts the lines of a text.
func sortLines(text string) string {
	list := strings.SplitAfter(text, "\n")
	slices.Sort(list)
	return strings.Join(list, "")
}
