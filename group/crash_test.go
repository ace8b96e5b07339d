package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"volley/group/internal/store"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// A scene is a verb on a group in some state.
type scene struct {
	name     string
	rolls    bool         // to a generation that is pending
	protects bool         // else it recovers or verifies
	written  bool         // somebody has written in a directory that files come back in: its time is lost with an interruption
	first    bool         // nothing was protected
	ranks    int          // where it is not one, whose calls come in order
	prepare  func(*world) // what happens after the first protection
	befalls  func(*world) // and to what was protected last
	changed  int          // node at which files are not those of the generation before; 0: none
	damaged  []int
	verb     func(*world, *disktest.Process) (done bool, err error)
	keep     map[int][]string // by node: what is to be in some file of it whatever happens

	world         *world
	was           []string // trees as protected by the generation before; nil: there is none
	before, after []string // trees
	oldest        int64    // generations
	newest        int64
	calls         []disktest.Call
}

// protecting is protect as a verb of a scene.
func protecting(o ProtectOptions) func(*world, *disktest.Process) (bool, error) {
	return func(w *world, p *disktest.Process) (bool, error) {
		_, err := w.protectBy(p, o)
		return err == nil, err
	}
}

// recoveringWith is recover as a verb of a scene. It is done where it leaves nothing.
func recoveringWith(o RecoverOptions) func(*world, *disktest.Process) (bool, error) {
	return func(w *world, p *disktest.Process) (bool, error) {
		r, err := w.recoverBy(p, o)
		if err != nil {
			return false, err
		}
		failing := slices.ContainsFunc(r.Nodes, func(n NodeReport) bool { return n.Status == Failing })
		return r.Unrecovered == nil && !failing, nil
	}
}

// sceneList is the scenes, once they were asked for.
var sceneList struct {
	once sync.Once
	list []*scene
}

// scenes returns the verbs that are interrupted, in all states that matter. All tests have the same, and clone their
// worlds.
func scenes(t testing.TB) []*scene {
	sceneList.once.Do(func() { sceneList.list = makeScenes(t) })
	if sceneList.list == nil {
		t.Fatal("there are no scenes, which another test says why")
	}
	return sceneList.list
}

func makeScenes(t testing.TB) []*scene {
	protect, recover := protecting(ProtectOptions{}), recoveringWith(RecoverOptions{})
	list := []*scene{
		{name: "protect first", protects: true, first: true, verb: protect},
		{name: "protect changed", protects: true, changed: 1, befalls: func(w *world) { change(w, "/n1") }, verb: protect},
		{name: "protect changed at three ranks", protects: true, ranks: 3, changed: 1, befalls: func(w *world) { change(w, "/n1") }, verb: protect},
		{name: "protect again", protects: true, verb: protect},
		{name: "protect with another digest", protects: true, verb: protecting(ProtectOptions{Digest: BLAKE3})},
		{name: "recover lost nodes", damaged: []int{1, 2}, befalls: func(w *world) { w.lose(0, 1, 2) }, verb: recover},
		{name: "recover damaged files", damaged: []int{1, 2}, befalls: damage, verb: recover},
		{name: "recover a stale node", written: true, damaged: []int{1}, verb: recover, prepare: func(w *world) {
			w.CopyTree("/n1", "/old1")
			change(w, "/n1")
			must(t, w.protect())
		}, befalls: func(w *world) {
			w.RemoveAll("/n1")
			w.Rename("/old1", "/n1")
		}, keep: map[int][]string{1: {contentOf(newWorld(4, 2), "/n1/plain")}}},
		{name: "recover what is pending", rolls: true, verb: recover, prepare: func(w *world) { change(w, "/n1") }, befalls: func(w *world) {
			p := w.Process()
			p.Hook = func(c disktest.Call) error {
				if c.Op == "rename" && strings.HasPrefix(path.Base(c.Path), store.PendingName) {
					p.Kill()
				}
				return nil
			}
			if _, err := w.protectBy(p, ProtectOptions{}); err == nil {
				t.Fatal("protect was not killed")
			}
		}},
		{name: "recover and revert", written: true, damaged: []int{1, 2}, befalls: func(w *world) {
			w.WriteFile("/n1/plain", []byte("written since"), 0o600)
			w.WriteFile("/n1/closed/inner/z", []byte("this too"), 0o600)
			w.Overwrite("/n2/big", 3, []byte("rot"), true)
		}, verb: recoveringWith(RecoverOptions{Revert: protection.Edits{Changed: true}}), keep: map[int][]string{1: {"written since", "this too"}}},
	}
	for _, name := range []string{"verify", "status"} {
		list = append(list, &scene{name: name, verb: func(w *world, p *disktest.Process) (bool, error) {
			r, err := w.examineBy(p, name == "status")
			return err == nil && r.Intact, err
		}})
	}
	for _, s := range list {
		s.set(t)
	}
	return list
}

// set makes the world of a scene, and finds out what the verb does.
func (s *scene) set(t testing.TB) {
	w := newWorld(4, 2).ordered()
	s.world = w
	if !s.first {
		must(t, w.protect())
		if s.prepare != nil {
			s.prepare(w)
		}
		s.was = w.trees()
	}
	if s.befalls != nil {
		s.befalls(w)
	}
	if s.ranks > 1 {
		w.ranks, w.inTurn = s.ranks, false
	}
	s.before = w.trees()
	c := w.clone()
	generation := func() int64 {
		r, err := c.verifyBy(c.Process())
		must(t, err)
		return r.Generation
	}
	s.oldest = generation()
	done, err := s.verb(c, c.Process())
	if err != nil || !done {
		t.Fatalf("%s: done %v, %v", s.name, done, err)
	}
	s.after, s.newest = c.trees(), generation()
	s.calls = s.run(t)
}

// run returns the calls to the disk of the verb.
func (s *scene) run(t testing.TB) []disktest.Call {
	return s.world.Calls(func(p *disktest.Process) {
		c := s.world.clone()
		c.Machine = nil // which is that of the process
		_, err := s.verb(c, p)
		must(t, err)
	})
}

// change changes a node as its user does: a file is rewritten, others grow, come and go.
func change(w *world, dir string) {
	w.WriteFile(dir+"/plain", []byte("another content, of another length"), 0o644)
	w.AppendFile(dir+"/big", []byte(strings.Repeat("more", 1000)))
	w.AppendFile(dir+"/empty", []byte("no more"))
	w.Remove(dir + "/sub/x")
	w.Remove(dir + "/link")
	w.Symlink("plain", dir+"/link")
	w.WriteFile(dir+"/sub/new", []byte("new"), 0o600)
	w.Wait(1e9)
}

// damage damages and removes what lies in nested directories, and what is Volley's.
func damage(w *world) {
	w.Overwrite("/n1/big", 5, []byte("rot"), true)
	w.Overwrite("/n1/closed/inner/z", 5, []byte("rot"), true)
	w.Remove("/n1/closed/broken")
	w.Remove("/n1/link")
	w.Remove("/n1/sub/void")
	w.RemoveAll("/n1/sub/deep")
	w.RemoveAll("/n2/closed")
	w.Remove("/n2/nothing")
	w.Overwrite("/n2/.volley/generation.1/parity", 9, []byte("rot"), true)
	w.Remove("/n2/.volley/generation.1/manifest.json")
	w.Remove("/n2/.volley/generation.1/record")
	w.Remove("/n1/.volley/generation.1/node.json")
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func contentOf(w *world, name string) string {
	text, err := w.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// interruptions are those that a verb of a group can tell from each other.
var interruptions = []disktest.Interruption{
	disktest.Kill, disktest.CutAll, disktest.CutSome,
	{Name: "EIO", Matters: fails, Strike: disktest.Failing(syscall.EIO)},
	{Name: "ENOSPC", Matters: func(c disktest.Call) bool { return writes(c) && fails(c) }, Strike: disktest.Failing(syscall.ENOSPC)},
	{Name: "full disk", Matters: writes, Strike: func(p *disktest.Process, _ disktest.Call, rng *rand.Rand) error {
		p.Deny(fmt.Sprintf("/n%d", rng.IntN(4)), syscall.ENOSPC, disktest.Growing...)
		return nil
	}},
	diskDies,
}

// writes reports whether an interruption at a call leaves something else than one before.
func writes(c disktest.Call) bool { return c.Writes }

// fails reports whether an error of a call keeps a verb from its end. What cannot be set is only noted, which
// TestUnset checks.
func fails(c disktest.Call) bool { return c.Op != "chown" && c.Op != "setxattr" }

// errLeft is that of a verb that has left something undone.
var errLeft = errors.New("not all is done")

// committer is the scene as a row of the sweep.
func (s *scene) committer() *disktest.Committer {
	return &disktest.Committer{
		Name: s.name, Machine: s.world.Machine, Concurrent: s.world.ranks > 1, Seconds: seconds(s.world),
		Run: func(p *disktest.Process) error {
			done, err := s.verb(s.world.on(p.Machine()), p)
			if err == nil && !done {
				err = errLeft
			}
			return err
		},
		Holds: s.holds,
		Tidy:  func(m *disktest.Machine) error { return s.world.on(m).wholeAndTidy() },
	}
}

// wholeAndTidy returns an error unless verify finds nothing, and protect leaves nothing else than what it makes.
func (w *world) wholeAndTidy() error {
	if err := w.whole(); err != nil {
		return err
	}
	r, err := w.protectBy(w.Process(), ProtectOptions{})
	if err != nil {
		return err
	}
	return w.tidy(r.Generation)
}

// holds names the generation in force, from which lost nodes come back, and checks that nothing of the user's is lost.
func (s *scene) holds(x *disktest.Interrupted) (string, error) {
	c, done := s.world.on(x.Machine), x.Err == nil
	y := c.clone()
	r, err := y.verifyBy(y.Process())
	if err != nil {
		return "", fmt.Errorf("verify: %w", err)
	}
	is := fmt.Sprint("generation ", r.Generation)
	if done && s.protects && r.Generation > s.newest { // protected once more
		is = fmt.Sprint("generation ", s.newest)
	}
	if s.rolls && r.Generation < s.newest { // nobody was told that the newer one is in force
		return is, nil
	}
	if !done && !x.Ends && s.protects && r.Generation == s.newest && !errors.As(x.Err, new(*UnsettledError)) {
		return is, errors.New("the new generation is in force, and the error does not say so")
	}
	if err := s.checkUser(c, done, x.Name != "" && (!x.Ends || s.written)); err != nil {
		return is, err
	}
	if done && s.protects {
		if err := c.tidy(r.Generation); err != nil {
			return is, err
		}
	}
	if x.Name == diskDies.Name && !done {
		if err := s.goesOn(c, nodeOf(x.Call), x.Rand); err != nil {
			return is, fmt.Errorf("without %s: %w", nodeOf(x.Call), err)
		}
	}
	if r.Generation == 0 {
		return is, nil
	}
	lost := x.Rand.Perm(len(c.dirs))[:2]
	switch {
	case s.changed > 0 && r.Generation == s.oldest: // what was changed counts as lost
		lost = []int{s.changed, (s.changed + 1 + x.Rand.IntN(len(c.dirs)-1)) % len(c.dirs)}
	case !done && s.damaged != nil:
		lost = s.damaged
	}
	err = comesBack(c, func(g int64) []string {
		if s.was != nil && g == s.oldest {
			return s.was
		}
		return s.before
	}, lost, x.Rand.IntN(2))
	if err != nil {
		err = fmt.Errorf("generation %d: %w", r.Generation, err)
	}
	return is, err
}

// checkUser checks that nothing is lost that the verb was not asked to change.
func (s *scene) checkUser(c *world, done, loose bool) error {
	for n := range c.dirs {
		switch is := c.tree(n); {
		case done:
			want := s.after[n]
			if loose && slices.Contains(s.damaged, n) { // a directory that could not be read came back, too
				want, is = withoutTimes(want), withoutTimes(is)
			}
			if err := diff(fmt.Sprintf("node %d, after it is done", n), want, is); err != nil {
				return err
			}
		case !slices.Contains(s.damaged, n):
			if err := diff(fmt.Sprintf("node %d", n), s.before[n], is); err != nil {
				return err
			}
		default: // every file is there as it was, or is to be, or was missing
			if err := s.between(n, is); err != nil {
				return err
			}
		}
		for _, text := range s.keep[n] {
			if !holds(c, c.dirs[n], text) {
				return fmt.Errorf("no file of node %d has %q any more", n, text)
			}
		}
	}
	return nil
}

var dirTime = regexp.MustCompile(`(?m) (d[-rwxt]{9}) .*$`)

// withoutTimes takes those of directories out of a tree.
func withoutTimes(tree string) string { return dirTime.ReplaceAllString(tree, " $1") }

// between checks that every file of a node is as it was or as it is to be.
func (s *scene) between(n int, is string) error {
	before, after := lines(s.before[n]), lines(s.after[n])
	for name, line := range lines(is) {
		if strings.HasPrefix(line, "d") { // a directory
			continue
		}
		content, _, _ := strings.Cut(after[name], " = ") // its other name may not be there yet
		if line != before[name] && line != after[name] && line != content {
			return fmt.Errorf("node %d: %q is %q: it was %q, and is to be %q", n, name, line, before[name], after[name])
		}
	}
	for name, line := range before {
		if _, ok := lines(is)[name]; !ok && strings.HasPrefix(line, "-") {
			return fmt.Errorf("node %d: %q is gone", n, name)
		}
	}
	return nil
}

var treeLine = regexp.MustCompile(`^(.*?) ([-dLugt]+[-rwx]{9}.*)$`)

// lines returns those of a tree by path.
func lines(tree string) map[string]string {
	of := map[string]string{}
	for line := range strings.Lines(tree) {
		if m := treeLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			of[m[1]] = m[2]
		}
	}
	return of
}

// holds reports whether a file below a directory has a content.
func holds(w *world, dir, text string) bool {
	for name := range lines(w.Tree(dir)) {
		if is, err := w.ReadFile(dir + "/" + name); err == nil && string(is) == text {
			return true
		}
	}
	return false
}

// comesBack checks that nodes come back when they are lost.
func comesBack(w *world, trees func(generation int64) []string, lost []int, how int) error {
	x := w.clone()
	x.lose(how, lost...)
	r, err := x.recoverBy(x.Process(), RecoverOptions{})
	if err != nil {
		return fmt.Errorf("lost %v: %w", lost, err)
	}
	if r.Unrecovered != nil {
		return fmt.Errorf("lost %v: left %q", lost, r.Unrecovered)
	}
	for _, n := range lost {
		if err := diff(fmt.Sprintf("lost %v: node %d", lost, n), trees(r.Generation)[n], x.tree(n)); err != nil {
			return err
		}
	}
	return nil
}

// madeUp is a part of a name that differs from run to run.
var madeUp = regexp.MustCompile(`-[0-9A-Za-z]+`)

// TestInTurn runs the verbs of all scenes with one core and with many: the calls to the disk are the same, in one order.
func TestInTurn(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, s := range scenes(t) {
		if !s.world.inTurn {
			continue
		}
		for _, cores := range []int{1, 8} {
			runtime.GOMAXPROCS(cores)
			for n, c := range s.run(t) {
				if is, was := madeUp.ReplaceAllString(c.String(), "-"), madeUp.ReplaceAllString(s.calls[n].String(), "-"); is != was {
					t.Errorf("%s, %d cores: %s, and it was %s", s.name, cores, is, was)
					break
				}
			}
		}
	}
}
