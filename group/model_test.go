package group

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk/disktest"
)

// A model is a group to which everything happens, with its oracle.
type model struct {
	oracle
	t         *rapid.T
	log       []string
	before    *picture            // what lay there before the verb, and was written meanwhile
	copies    map[string][]string // of directories, from before
	resizing  *resizingCase
	apart     bool // a rank for each node resizes
	damaged   bool // something has rotted since protect has read all
	unsettled bool // a recovery has begun, and none has ended since
	both      bool // two runs have had the group

	timer   bool            // verbs are run by one, and deletions are meant
	accepts ProtectOptions  // that somebody has chosen
	away    string          // directory that cannot be reached
	lost    map[string]bool // directories, and nobody has said so yet

	next  int64 // step that the job saves
	ended bool  // the job has, and goes on after the latest snapshot has come back
}

// pick draws one of a list.
func pick[T any](m *model, label string, list ...T) T {
	return rapid.SampledFrom(list).Draw(m.t, label)
}

// random returns random numbers for details, others at each step.
func (m *model) random(label string) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(m.t, label), uint64(len(m.log))))
}

func (m *model) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("K=%d, R=%d, %d ranks\n%s\n%s", len(m.dirs), m.r, m.ranks, strings.Join(m.log, "\n"), fmt.Sprintf(format, args...))
}

func (m *model) check(err error) {
	m.t.Helper()
	if err != nil {
		m.fail("%v", err)
	}
}

// TestModel lets users, disks, losses, writers and runs do what they do to a group, in any order, and interrupts the runs.
// What must be is said by the oracle.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, copies: map[string][]string{}, lost: map[string]bool{}, next: 1}
		m.oracle = oracle{promises: map[int64]*promise{}, rotten: map[string]string{}}
		switch pick(m, "group", "directories", "directories", "directories", "directories", "snapshots", "snapshots", "timer") {
		case "directories":
			m.directories()
		case "snapshots":
			m.snapshots()
		default:
			m.days()
		}
	})
}

// directories are nodes with files of all kinds.
func (m *model) directories() {
	k := pick(m, "K", 2, 3, 4)
	m.world = newWorld(k, rapid.IntRange(1, k-1).Draw(m.t, "R")).ordered()
	if pick(m, "big files", false, false, false, true) == false {
		for _, dir := range m.dirs {
			m.WriteFile(dir+"/big", []byte("a few bytes"), 0o600)
		}
	}
	m.all = slices.Clone(m.dirs)
	m.common.Meta = pick(m, "meta", "", "", "", "", "/meta")
	m.ranks, m.together = pick(m, "ranks", 1, 1, 1, 2), pick(m, "together", false, true)
	m.Remount("/", func(o *disktest.Mount) {
		o.Links, o.NoExchange = pick(m, "links", 0, 0, 0, 3), pick(m, "no exchange", false, false, true)
	})
	if pick(m, "protected first", true, true, true, true, false) {
		m.verb("protect", nil)
	}
	for range rapid.IntRange(1, 8).Draw(m.t, "steps") {
		for range pick(m, "actions", 0, 1, 2) {
			m.act(anyAction)
		}
		verb := pick(m, "verb", "protect", "protect", "protect", "recover", "recover", "recover", "verify", "resize", "unprotect", "recover to")
		m.verb(verb, m.accident(verb))
		m.safe()
	}
	m.end()
}

// snapshots are roots in which a job saves its steps.
func (m *model) snapshots() {
	k := pick(m, "K", 2, 3, 4)
	m.roots = true
	m.world = &world{Machine: disktest.NewMachine(), r: rapid.IntRange(1, k-1).Draw(m.t, "R"), ranks: pick(m, "ranks", 1, 1, 1, 2), inTurn: true}
	for n := range k {
		m.dirs = append(m.dirs, fmt.Sprint("/r", n))
		m.MkdirAll(m.dirs[n], 0o755)
	}
	m.SyncAll()
	m.all = []string{"/r0", "/r1", "/r2", "/r3", "/r4", "/r5"}
	for range rapid.IntRange(2, 14).Draw(m.t, "steps") {
		switch event := pick(m, "event", "save", "save", "protect", "protect", "protect", "lose", "lose", "recover", "recover", "rot", "restart"); event {
		case "save":
			m.save()
		case "restart":
			m.restart()
		case "protect", "recover":
			m.verb(event, m.accident(event))
		default:
			m.harm(event)
		}
		m.safe()
	}
}

// days are up to fourteen of five nodes with plain files, whose verbs a timer runs.
func (m *model) days() {
	m.timer = true
	m.world = &world{Machine: disktest.NewMachine(), r: 2, ranks: 1, deletes: true}
	rng := m.random("files")
	for n := range 5 {
		dir := fmt.Sprintf("/day%d", n)
		m.dirs = append(m.dirs, dir)
		for i := range 4 + rng.IntN(10) {
			m.MkdirAll(fmt.Sprintf("%s/d%d", dir, i%4), 0o755)
			m.WriteFile(fmt.Sprintf("%s/d%d/f%d", dir, i%4, i), random(rng, rng.IntN(5000)), 0o644)
		}
	}
	m.all = m.dirs
	m.Wait(3600e9)
	m.verb("protect", nil)
	for day := range rapid.IntRange(1, 14).Draw(m.t, "days") {
		m.note("day %d", day+1)
		if pick(m, "at night", loss, nil, nil, nil, nil, nil, nil, nil) != nil { // before anybody works
			m.act(loss)
			m.examine(true)
		}
		for range pick(m, "work", 0, 3, 8, 30) {
			m.act(work)
		}
		for range pick(m, "accidents", 0, 0, 0, 0, 1, 2, 3) { // from half of the nodes on it was meant
			m.act(mishap)
		}
		for _, kind := range [][]action{pick(m, "disk", decay, nil, nil, nil), pick(m, "by day", loss, nil, nil, nil, nil, nil), pick(m, "network", absence, nil, nil, nil, nil, nil)} {
			if kind != nil {
				m.act(kind)
			}
		}
		m.day(day%7 < 6)
		m.safe()
	}
	m.examine(false)
}

// restart has the job begin with other roots, more or fewer, in any order. Those that it had before and has no more are lost.
func (m *model) restart() {
	roots := m.random("roots").Perm(len(m.all))[:rapid.IntRange(m.r+1, len(m.all)-1).Draw(m.t, "roots")]
	earlier := m.dirs
	m.dirs, m.ended = nil, true
	for _, i := range roots {
		m.dirs = append(m.dirs, m.all[i])
	}
	for _, root := range earlier {
		if !slices.Contains(m.dirs, root) {
			m.RemoveAll(root)
		}
	}
	m.note("restart with %q", m.dirs)
}

// save saves a step, at all nodes or, as the job ends meanwhile, at some of them.
func (m *model) save() {
	if m.ended {
		return
	}
	nodes := len(m.dirs)
	if pick(m, "the job ends", true, false, false, false) {
		nodes = rapid.IntRange(0, nodes-1).Draw(m.t, "nodes")
		m.ended = true
	}
	rng := m.random("data")
	for _, root := range m.dirs[:nodes] {
		m.RemoveAll(root + "/.new")
		m.MkdirAll(root+"/.new/sub", 0o755)
		m.WriteFile(root+"/.new/rank0", random(rng, 300), 0o644)
		m.WriteFile(root+"/.new/sub/rank1", random(rng, 70_000), 0o600)
		m.RemoveAll(root + "/" + session.StepName(m.next))
		m.Rename(root+"/.new", root+"/"+session.StepName(m.next))
	}
	m.SyncAll()
	m.Wait(1e9)
	m.promises[m.next] = &promise{dirs: m.dirsOf(m.next), trees: []map[string]string{m.promised(m.next, true)}, lacks: map[string]bool{}}
	m.note("save step %d at %d nodes", m.next, nodes)
	m.next++
}

// asTheyAre notes that snapshots which nobody has promised anything of are protected as they are.
func (m *model) asTheyAre() {
	for _, step := range m.steps() {
		if p := m.promises[step]; p.generation == 0 {
			p.dirs, p.trees, p.lacks = m.dirsOf(step), []map[string]string{m.promised(step, true)}, map[string]bool{}
		}
	}
}

// A result is what a verb says.
type result struct {
	protect    *ProtectReport
	recover    *RecoverReport
	verify     *VerifyReport
	generation int64 // that it has found or made
	done       bool  // and nothing is left
	retain     int   // snapshots
	err        error
}

// run runs a verb.
func (m *model) run(verb string, p *disktest.Process, step int64) (x result) {
	full := m.damaged && !m.timer
	switch verb {
	case "protect":
		o := m.accepts
		o.Full = full
		w := m.world
		if m.roots {
			m.asTheyAre()
			x.retain = pick(m, "retain", 0, 1, 2, 3)
			w, o.Retain = m.with(protection.Settings{Roots: true, Step: step}), x.retain
		} else {
			m.attempt(noStep)
		}
		if x.protect, x.err = w.protectBy(p, o); x.err == nil {
			x.generation, x.done = x.protect.Generation, true
		}
	case "resize":
		m.attempt(noStep)
		r, err := m.resizing.run(m.world, p, m.apart, ResizeOptions{})
		if x.err = err; err == nil {
			m.resizing.is, x.protect, x.generation, x.done = r.Dirs, r.ProtectReport, r.Generation, true
		}
	case "recover", "recover to":
		o, w := RecoverOptions{}, m.world
		if verb == "recover to" {
			o.Files, o.OutDir = []string{"*"}, beside
		}
		if m.roots {
			w = m.with(protection.Settings{Roots: true, Step: Latest})
		}
		if x.recover, x.err = w.recoverBy(p, o); x.err == nil {
			failing := slices.ContainsFunc(x.recover.Nodes, func(n NodeReport) bool { return n.Status == Failing })
			x.generation, x.done = x.recover.Generation, x.recover.Unrecovered == nil && !failing
		}
	case "unprotect":
		r, err := m.unprotectBy(p, UnprotectOptions{})
		if x.err = err; err == nil {
			x.generation, x.done = r.Generation, r.Protected
		}
	default:
		if x.verify, x.err = m.examineBy(p, verb == "status"); x.err == nil {
			x.generation, x.done = x.verify.Generation, x.verify.Intact
		}
	}
	return x
}

// verb runs a verb, with an accident or without, and checks what it did.
func (m *model) verb(verb string, a *accident) result {
	p, name := m.Process(), ""
	if a != nil {
		a.set(p)
		name = a.name
	}
	m.note("%s %s", verb, name)
	step := m.chooses(verb)
	if verb == "resize" {
		m.resize()
	}
	before, may, steps := m.picture(!m.timer), m.may(), m.steps()
	m.before = before
	hurt, sure := m.wounds()
	x := m.run(verb, p, step)
	if x.err == nil && p.Killed() {
		x.err = disktest.ErrKilled
	}
	p.Kill()
	m.note("  generation %d, done %v, %v", x.generation, x.done, x.err)
	if m.both {
		m.fail("two runs have had the group at once")
	}
	after, alone := m.picture(!m.timer), a == nil || m.meanwhile != nil
	another, cut := strings.HasPrefix(name, "another"), strings.HasPrefix(name, "cut")
	recovers := verb == "recover" || strings.Contains(name, "recover")
	if !m.roots && !(cut && m.unsettled) { // a recovery that did not end has made nothing last
		m.check(m.kept(before, after, recovers))
	}
	if recovers {
		m.unsettled = verb != "recover" || !x.done
	}
	switch refused := IsInputError(x.err) || isBusy(x.err) || errors.As(x.err, new(*NotLostError)); {
	case x.err != nil && alone && !refused:
		m.fail("nothing has gone wrong")
	case refused && alone && !(m.roots && (verb == "protect" || errors.As(x.err, new(*NotLostError)) || errors.As(x.err, new(*protection.NoneError)))):
		m.check(m.unchanged(before, after))
	}
	switch verb {
	case "protect", "resize":
		m.protected(verb, x, step, another)
	case "recover":
		m.recovered(x, may, steps)
	case "recover to":
		for _, dir := range m.all {
			if !cut && !another && !slices.Equal(after.metas[dir], before.metas[dir]) {
				m.fail("%s has %q, and had %q", dir, after.metas[dir], before.metas[dir])
			}
		}
		m.besides(x, alone)
	case "unprotect":
		m.unprotected(x)
	case "verify":
		m.check(m.examined(x, hurt))
		if p := m.promises[noStep]; x.err == nil && a == nil && m.away == "" && p != nil && p.generation > 0 && x.generation == p.generation && (x.done && sure || !x.done && !hurt && len(p.trees) == 1) {
			m.fail("verify says whole: %v; nodes are hurt: %v, for certain %v", x.done, hurt, sure)
		}
	}
	m.settled(verb, x, alone, may, steps)
	return x
}

// examined returns an error where verify has taken what a program writes for damage.
func (m *model) examined(x result, hurt bool) error {
	if m.meanwhile == nil || hurt || x.err != nil {
		return nil
	}
	for _, n := range x.verify.Nodes {
		for _, f := range n.Findings {
			if !slices.Contains([]string{Changed, Deleted, New, Moved, Metadata}, f.Kind) {
				return fmt.Errorf("%s is %+v", n.Dir, f)
			}
		}
	}
	return nil
}

// wounds reports whether any node is hurt, perhaps or for certain.
func (m *model) wounds() (hurt, sure bool) {
	p := m.promises[noStep]
	if p == nil {
		return false, false
	}
	trees := m.treesOf(m.dirs)
	for _, n := range m.hurt(noStep, p) {
		hurt, sure = true, sure || p.lacks[m.dirs[n]] || !m.hasFiles(p, m.dirs[n], trees[m.dirs[n]], true)
	}
	return hurt, sure
}

// chooses draws the snapshot that a verb is for.
func (m *model) chooses(verb string) int64 {
	if !m.roots {
		return noStep
	}
	if list := m.steps(); verb == "protect" && len(list) > 0 && pick(m, "one of them", true, false, false, false) {
		return pick(m, "step", list...)
	}
	return Latest
}

// settled notes what has come into force, whatever a verb has said.
func (m *model) settled(verb string, x result, alone bool, may map[int64]bool, steps []int64) {
	if !m.roots {
		m.settle(noStep)
		if x.err != nil && !alone {
			m.doubt(noStep)
		}
		return
	}
	for step, p := range m.promises {
		p.generation = max(p.generation, m.committed(m.placesOf(step)))
	}
	if verb == "protect" {
		m.retained(x, may, steps)
	}
	left := m.steps()
	maps.DeleteFunc(m.promises, func(step int64, _ *promise) bool { return !slices.Contains(left, step) && step < m.next-1 })
}

// protected checks what has protected, and notes it.
func (m *model) protected(verb string, x result, step int64, another bool) {
	if m.roots {
		if x.err == nil {
			m.promises[*x.protect.Step].generation = x.protect.Generation
		}
		return
	}
	if verb == "resize" {
		m.resized(x.err)
	}
	if x.err != nil {
		return
	}
	full := m.damaged && !m.timer
	for _, file := range x.protect.Doubtful { // which is protected as it is
		m.rotten[m.hash(file)] = ""
	}
	m.succeed(noStep, x.generation, full || !m.timer)
	p := m.promises[noStep]
	if now, err := m.inForce(noStep); err != nil || !another && now != p {
		m.fail("generation %d was protected, and %+v is in force, %v", x.generation, now, err)
	}
	m.damaged = false
	if another {
		return
	}
	m.check(m.tidy(x.generation))
	switch {
	case m.meanwhile != nil:
		p.trees[0] = m.protectedAs(x)
	case !m.timer:
		m.check(m.whole())
	}
}

// recovered checks what a recovery says.
func (m *model) recovered(x result, may map[int64]bool, steps []int64) {
	if m.roots {
		m.check(m.latestCame(m.world, x.recover, x.err, may, steps))
		if x.err == nil {
			m.heal(*x.recover.Step)
			m.ended, m.next = false, *x.recover.Step+1
		} else if errors.As(x.err, new(*protection.NoneError)) || IsInputError(x.err) && len(steps) == 0 && !slices.ContainsFunc(m.dirs, func(dir string) bool { return !m.Exists(dir) }) {
			m.ended = false // it begins anew
		}
		return
	}
	if p := m.promises[noStep]; x.err == nil && p != nil && p.generation > 0 {
		if held := len(m.hurt(noStep, p)) <= m.r; x.generation < p.generation && held {
			m.fail("generation %d is promised", p.generation)
		}
		if m.came(noStep, x.generation); x.done {
			m.heal(noStep)
		}
	}
}

// resize draws how the nodes change: by one that is new, or was one of them before, or by one that leaves.
func (m *model) resize() {
	x := &resizingCase{was: slices.Clone(m.dirs)}
	m.resizing, m.apart = x, pick(m, "a rank each", true, false)
	if len(m.dirs) > 2 && pick(m, "leave", true, false) {
		x.remove = []string{pick(m, "leaves", m.dirs...)}
		if pick(m, "by number", true, false) {
			x.remove[0] = fmt.Sprint(slices.Index(m.dirs, x.remove[0]))
		}
	} else {
		others := slices.DeleteFunc(slices.Clone(m.all), func(dir string) bool { return slices.Contains(m.dirs, dir) })
		dir := pick(m, "joins", append(others, "/new")...)
		if dir == "/new" {
			dir = fmt.Sprint("/n", len(m.all))
			m.all = append(m.all, dir)
			m.MkdirAll(dir+"/sub", 0o755)
			m.WriteFile(dir+"/sub/"+dir[1:], []byte(dir), 0o600)
		}
		x.add = []string{dir}
	}
	names, p := slices.Concat(x.was, x.add), m.Process()
	defer p.Kill()
	var ids []protection.Identity
	var added []bool
	for _, dir := range names {
		ids, added = append(ids, store.Identify(p, dir)), append(added, slices.Contains(x.add, dir))
	}
	order, err := Resized(names, ids, added, x.remove)
	for n := 0; err == nil && n < len(names)-len(x.remove); n++ {
		x.is = append(x.is, names[order[n]])
	}
	m.note("  add %q, remove %q, a rank each %v, to %q", x.add, x.remove, m.apart, x.is)
}

// resized finds out which nodes the group has after a resizing, which has ended with an error or not.
func (m *model) resized(err error) {
	x, p := m.resizing, m.promises[noStep]
	if err != nil && (p.generation == 0 || x.is == nil || m.committed(slices.Concat(x.was, x.add)) <= p.generation) {
		return
	}
	m.dirs = x.is
	m.note("  nodes %q", m.dirs)
	if err == nil {
		left := slices.DeleteFunc(slices.Clone(x.was), func(dir string) bool { return slices.Contains(x.is, dir) })
		m.check(m.of(left).bare())
	}
}

// unprotected checks what has ended a protection, or was to: unless all nodes are marked, none has lost anything.
func (m *model) unprotected(x result) {
	marked := 0
	for n := range m.dirs {
		if names := m.meta(n); names == nil || slices.Contains(names, store.EndingName) {
			marked++
		}
	}
	switch {
	case x.err == nil && x.done:
		m.check(m.bare())
	case x.err == nil: // nothing was protected
	case marked < len(m.dirs):
		return // the promise holds as before
	default:
		c := m.clone()
		if _, err := c.unprotectBy(c.Process(), UnprotectOptions{}); err != nil && !IsInputError(err) {
			m.fail("once more: %v", err)
		}
		m.check(c.bare())
	}
	delete(m.promises, noStep)
}

// beside is where what was protected is copied, beside the group.
const beside = "/out"

// besides checks what was copied beside the group.
func (m *model) besides(x result, alone bool) {
	if x.err != nil {
		if IsInputError(x.err) || pick(m, "begin anew", true, false) { // else the next one goes on
			m.RemoveAll(beside)
		}
		return
	}
	if !x.done && !alone {
		return
	}
	defer m.RemoveAll(beside)
	p := m.promises[noStep]
	if !m.holds(noStep) || x.generation != p.generation {
		return
	}
	if !x.done {
		m.fail("not all comes back")
	}
	for n, dir := range m.dirs {
		place := fmt.Sprint(beside, "/node.", n)
		if !m.Exists(place) {
			if strings.Count(p.trees[0][dir], "\n") > 1 {
				m.fail("%s is not in %s", dir, beside)
			}
			continue
		}
		if listing := m.Tree(place, tree.MetaName); !slices.ContainsFunc(p.trees, func(trees map[string]string) bool { return trees[dir] == listing }) {
			m.check(diff(place, p.trees[0][dir], listing))
		}
	}
}

// latestCame returns an error unless the newest snapshot that may come back did, as it was, at every node, and what is newer
// is no snapshot any more. None was set aside that may come back.
func (m *model) latestCame(w *world, r *RecoverReport, err error, may map[int64]bool, steps []int64) error {
	named := func(root string, step int64) bool { return w.Exists(root + "/" + session.StepName(step)) }
	for _, step := range steps {
		if err == nil && step > *r.Step && may[step] {
			return fmt.Errorf("step %d came back, and step %d may", *r.Step, step)
		}
		for _, root := range w.dirs {
			for name := range lines(w.Tree(root)) {
				if aside, known := session.StepOf(name); known && may[step] && aside == step && name != session.StepName(step) && !named(root, step) {
					return fmt.Errorf("step %d may come back, and was set aside at %s", step, root)
				}
			}
		}
	}
	if err != nil {
		return nil
	}
	p, now := m.promises[*r.Step], m.oracle
	now.world = w
	for _, dir := range p.dirs {
		if places := now.treesOf(now.placesOf(*r.Step)); (p.generation > 0 || may[*r.Step]) && !now.has(&promise{trees: p.trees}, dir, places) {
			return fmt.Errorf("%s came back as none of %v, and was %s", dir, places, p.trees[0][dir])
		}
	}
	for _, step := range steps {
		if places := now.placesOf(step); step > *r.Step && places != nil {
			return fmt.Errorf("step %d stays at %s beside step %d", step, places, *r.Step)
		}
	}
	return nil
}

// retained checks which snapshots protect has removed.
func (m *model) retained(x result, may map[int64]bool, steps []int64) {
	if x.err == nil {
		may[*x.protect.Step] = true
	}
	removed := func(step int64) bool { return len(m.promises[step].dirs)-len(m.placesOf(step)) > m.r }
	left := m.steps()
	for _, step := range steps {
		newer := 0
		for _, other := range left {
			if p := m.promises[other]; other > step && (may[other] || p != nil && p.generation > 0 && !removed(other)) {
				newer++
			}
		}
		if may[step] && removed(step) && (x.retain == 0 || newer < x.retain) {
			m.fail("step %d is removed, and %d newer ones are left that are protected", step, newer)
		}
	}
}

// safe checks that everything comes back when all nodes are lost that are hurt, and some more, as many as R allows.
func (m *model) safe() {
	step := int64(noStep)
	if m.roots {
		may, steps := m.may(), m.steps()
		i := slices.IndexFunc(steps, func(step int64) bool { return may[step] && m.promises[step].generation > 0 })
		if i < 0 {
			return
		}
		step = steps[i]
	}
	if !m.holds(step) || m.away != "" {
		return
	}
	p, err := m.inForce(step)
	m.check(err)
	lost := m.hurt(step, p)
	if len(lost) > m.r {
		return
	}
	for len(lost) < m.r && !m.roots {
		if n := rapid.IntRange(0, len(m.dirs)-1).Draw(m.t, "lost too"); !slices.Contains(lost, n) {
			lost = append(lost, n)
		}
	}
	if !m.roots {
		m.check(m.comesBack(p, len(m.log), lost))
		return
	}
	c := m.clone()
	for _, n := range m.random("lost too").Perm(len(m.dirs)) {
		x := m.oracle
		x.world = c.clone()
		if x.lose(len(m.log), n); len(x.hurt(step, p)) <= m.r {
			c, lost = x.world, append(lost, n)
		}
	}
	r, err := c.with(protection.Settings{Roots: true, Step: Latest}).recoverBy(c.Process(), RecoverOptions{})
	newer := false // one that is not protected at all nodes, or not as it was, nobody has promised anything of
	for _, other := range m.steps() {
		newer = newer || other > step && slices.ContainsFunc(c.dirs, func(root string) bool { return c.Exists(root + "/" + session.StepName(other)) })
	}
	switch {
	case err != nil && !newer:
		m.fail("step %d, lost %v: %v", step, lost, err)
	case err == nil && *r.Step < step:
		m.fail("step %d, lost %v: step %d came back", step, lost, *r.Step)
	case err == nil && *r.Step == step:
		m.check(m.latestCame(c, r, nil, map[int64]bool{step: true}, nil))
	}
}

// end protects what there is, whatever has happened: the group is never wedged.
func (m *model) end() {
	for _, dir := range m.dirs {
		m.MkdirAll(dir, 0o755)
	}
	o := ProtectOptions{Force: true, Accept: protection.Edits{Deleted: true}}
	r, err := m.protectBy(m.Process(), o)
	if err != nil && m.resizing != nil && strings.Contains(err.Error(), "is of a group of") { // what was to be is not complete any more
		m.dirs = m.resizing.was
		r, err = m.protectBy(m.Process(), o)
	}
	for n := 0; err != nil && n < len(m.dirs); n++ {
		refusal := new(protection.RefusedError)
		if !errors.As(err, &refusal) || refusal.Option != protection.OptionBelieve && n == 0 {
			break
		}
		with := m.common
		with.Believe = m.dirs[n]
		r, err = m.with(with).protectBy(m.Process(), o)
	}
	wedged := func(text string) bool { return err != nil && strings.Contains(err.Error(), text) }
	// Nobody has a manifest that is right, or a node that was rolled back is of an earlier group, or has other nodes.
	if wedged("cannot tell whether generation") || wedged("belongs to another group") || m.resizing != nil && wedged("the group was resized") {
		for n := range m.dirs {
			m.RemoveAll(m.own(n))
		}
		r, err = m.protectBy(m.Process(), o)
	}
	if err != nil {
		m.fail("in the end: %v", err)
	}
	m.check(m.whole())
	m.check(m.tidy(r.Generation))
}
