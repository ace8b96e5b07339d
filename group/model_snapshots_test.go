package group

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"volley/group/internal/judge"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk/disktest"
)

// A snapshotsModel is what the roots of a group have been promised.
type snapshotsModel struct {
	*roots
	t       *rapid.T
	certain map[int64]store.Current // snapshots in force for certain: protect has said so, or a node has committed it
	rotten  map[int64]bool          // snapshots that hold something else: manifests and records do not tell
	next    int64                   // step that the job saves
	saves   uint64
	down    bool // the job has ended, and goes on after the latest snapshot has come back
	lines   []string
}

// TestModelSnapshots has a job save steps, users protect and recover them, and nodes lose them, in any order, and
// interrupts the runs. The newest snapshot that R allows to come back does, as it was, or the run is refused: no older one
// takes its place.
func TestModelSnapshots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &snapshotsModel{t: t, certain: map[int64]store.Current{}, rotten: map[int64]bool{}, next: 1}
		k := rapid.IntRange(2, 4).Draw(t, "K")
		m.roots = &roots{&world{Machine: disktest.NewMachine(), r: rapid.IntRange(1, k-1).Draw(t, "R"), ranks: rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "ranks")}, map[int64][]string{}}
		m.ordered()
		for n := range k {
			m.dirs = append(m.dirs, fmt.Sprint("/r", n))
			m.MkdirAll(m.dirs[n], 0o755)
		}
		m.SyncAll()
		for range rapid.IntRange(2, 14).Draw(t, "steps") {
			switch what := rapid.SampledFrom([]string{"save", "save", "protect", "protect", "protect", "lose", "lose", "recover", "recover", "damage"}).Draw(t, "what"); what {
			case "save":
				m.saveNext()
			case "protect":
				m.protectOne()
			case "recover":
				m.recoverLatest()
			default:
				m.damage(what)
			}
			m.safe()
		}
	})
}

func (m *snapshotsModel) step(format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

func (m *snapshotsModel) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("K=%d, R=%d, %d ranks\n%s\n%s", len(m.dirs), m.r, m.ranks, strings.Join(m.lines, "\n"), fmt.Sprintf(format, args...))
}

// dirsOf are those of a snapshot.
func (m *snapshotsModel) dirsOf(step int64) (list []string) {
	for _, root := range m.dirs {
		list = append(list, root+"/"+session.StepName(step))
	}
	return list
}

// there returns the snapshots of which any node has a directory.
func (m *snapshotsModel) there() (list []int64) {
	for n := range m.dirs {
		for _, name := range m.names(n) {
			if step, ok := session.StepOf(name); ok && name == session.StepName(step) {
				list = append(list, step)
			}
		}
	}
	slices.SortFunc(list, session.NewestFirst)
	return slices.Compact(list)
}

func (m *snapshotsModel) treesOf(step int64) (list []string) {
	for _, dir := range m.dirsOf(step) {
		list = append(list, m.Tree(dir, tree.MetaName))
	}
	return list
}

// saveNext saves a step, at all nodes or, as the job ends meanwhile, at some of them.
func (m *snapshotsModel) saveNext() {
	if m.down {
		return
	}
	nodes := len(m.dirs)
	if rapid.IntRange(0, 4).Draw(m.t, "the job ends") == 0 {
		nodes = rapid.IntRange(0, nodes-1).Draw(m.t, "nodes")
		m.down = true
	}
	m.saves++
	rng := rand.New(rand.NewPCG(m.saves, 2))
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
	m.was[m.next] = m.treesOf(m.next)
	delete(m.certain, m.next)
	delete(m.rotten, m.next)
	m.step("save step %d at %d nodes", m.next, nodes)
	m.next++
}

// damage loses what nodes have, or has it rot.
func (m *snapshotsModel) damage(what string) {
	n := rapid.IntRange(0, len(m.dirs)-1).Draw(m.t, "node")
	steps := m.there()
	step := int64(0)
	if len(steps) > 0 {
		step = rapid.SampledFrom(steps).Draw(m.t, "step")
	}
	dir := m.dirsOf(step)[n]
	if what == "lose" {
		m.down = true
		switch how := rapid.SampledFrom([]string{"root", "what lies in the root", "snapshot", ".volley"}).Draw(m.t, "loses"); how {
		case "root":
			m.RemoveAll(m.dirs[n])
		case "what lies in the root":
			m.RemoveAll(m.dirs[n])
			m.MkdirAll(m.dirs[n], 0o755)
		case "snapshot":
			m.RemoveAll(dir)
		case ".volley":
			m.RemoveAll(dir + "/" + tree.MetaName)
		}
		m.step("lose %s, step %d, %v", m.dirs[n], step, m.names(n))
		return
	}
	var files []string
	for name, line := range lines(m.Tree(dir)) {
		if strings.HasPrefix(line, "-") && !strings.HasSuffix(name, store.LockFile) {
			files = append(files, name)
		}
	}
	if slices.Sort(files); len(files) == 0 {
		return
	}
	name := dir + "/" + rapid.SampledFrom(files).Draw(m.t, "file")
	if is, _ := m.ReadFile(name); len(is) > 0 {
		at := rapid.IntRange(0, len(is)-1).Draw(m.t, "at")
		m.Overwrite(name, int64(at), []byte{is[at] ^ 1}, true)
		m.rotten[step] = true
		m.step("damage %s", name)
	}
}

// interruption draws what happens to a run.
func (m *snapshotsModel) interruption() (p *disktest.Process, name string) {
	p = m.Process()
	name = rapid.SampledFrom([]string{"", "", "", "kill", "cut", "cut some", "EIO", "ENOSPC", "full", "dying", "EACCES", "EACCES"}).Draw(m.t, "accident")
	n, seed := rapid.IntRange(0, 700).Draw(m.t, "call"), rapid.Uint64().Draw(m.t, "which")
	root := m.dirs[seed%uint64(len(m.dirs))]
	switch name {
	case "kill":
		p.KillAt(n)
	case "cut":
		p.CallAt(n, func() { m.PowerCut(nil) })
	case "cut some":
		rng := rand.New(rand.NewPCG(seed, 0))
		p.CallAt(n, func() { m.PowerCut(func(string) bool { return rng.IntN(2) == 0 }) })
	case "EIO":
		p.FailAt(n, syscall.EIO)
	case "ENOSPC":
		p.Hook = func(c disktest.Call) error {
			if c.N == n && c.Grows() {
				return syscall.ENOSPC
			}
			return nil
		}
	case "full":
		p.CallAt(n, func() { p.Deny(root, syscall.ENOSPC, disktest.Growing...) })
	case "dying":
		dying(p, n, root, syscall.EIO)
	case "EACCES":
		at := root
		if steps := m.there(); len(steps) > 0 && seed%5 > 0 {
			at += "/" + session.StepName(steps[seed/5%uint64(len(steps))])
			at += []string{"", "", "/" + tree.MetaName, "/rank0", "/sub"}[seed/99%5]
		}
		p.Deny(at, syscall.EACCES)
		return p, name + " at " + at
	}
	if name != "" {
		name += fmt.Sprintf(" at %d, %s", n, root)
	}
	return p, name
}

// may reports of each snapshot whether it may come back: it is in force, and R nodes or fewer lack something of it, or it is
// not protected, and every node has it as it was.
func (m *snapshotsModel) may() map[int64]bool {
	list := map[int64]bool{}
	for _, step := range m.there() {
		c, in := m.certain[step]
		bad, trees := 0, m.treesOf(step)
		states, nodes := m.look(m.dirsOf(step))
		for n := range m.dirs {
			if trees[n] != m.was[step][n] || strings.HasPrefix(trees[n], "lstat ") || in && !m.hasMeta(states[n], nodes[n], c) {
				bad++
			}
		}
		list[step] = bad == 0 || in && bad <= m.r
	}
	return list
}

// settle notes which snapshots nodes have committed, and which are no more.
func (m *snapshotsModel) settle() {
	there := m.there()
	for step := range m.certain {
		if !slices.Contains(there, step) {
			delete(m.certain, step)
		}
	}
	for _, step := range there {
		states, _ := m.look(m.dirsOf(step))
		c, err := judge.Decide(states, "")
		if err == nil && c.Generation > m.certain[step].Generation && slices.ContainsFunc(states, func(s *store.State) bool { h := s.Holding(c); return h != nil && h.Committed }) {
			m.certain[step] = c
		}
	}
}

// everything lists what is in all roots, but for what locks change.
func (m *snapshotsModel) everything() string {
	return lockLine.ReplaceAllString(m.Tree("/", tree.MetaName), "")
}

// protectOne protects the newest snapshot, or one of them.
func (m *snapshotsModel) protectOne() {
	step, retain := Latest, rapid.IntRange(0, 3).Draw(m.t, "retain")
	for _, step := range m.there() { // what was not promised to anybody is protected as it is
		if _, in := m.certain[step]; !in {
			m.was[step] = m.treesOf(step)
		}
	}
	if list := m.there(); len(list) > 0 && rapid.IntRange(0, 4).Draw(m.t, "protects one") == 0 {
		step = rapid.SampledFrom(list).Draw(m.t, "which step")
	}
	may, before, trees := m.may(), m.there(), map[int64][]string{}
	for _, step := range before {
		trees[step] = m.treesOf(step)
	}
	p, accident := m.interruption()
	r, err := m.protectStep(p, step, retain)
	p.Kill()
	m.settle()
	if m.step("protect step %d, retain %d, %s: %v", step, retain, accident, err); err == nil {
		m.step("  step %d, removed %d, notes %q", *r.Step, r.Removed, r.Notes)
		may[*r.Step] = true
		if c, in := m.certain[*r.Step]; !in || c.Generation < r.Generation {
			m.fail("step %d is protected, and not in force: %+v", *r.Step, c)
		}
	} else if accident == "" && !IsInputError(err) {
		m.fail("nothing has gone wrong")
	}
	for _, step := range before {
		for n, dir := range m.dirsOf(step) {
			if wrong := diff(dir, trees[step][n], m.treesOf(step)[n]); wrong != nil && m.Exists(dir) {
				m.fail("%v", wrong)
			}
		}
	}
	for _, gone := range before {
		left := 0
		for _, step := range m.there() {
			if step > gone && (may[step] || m.rotten[step]) {
				left++
			}
		}
		all := true // nodes that had it have it yet
		for _, dir := range m.dirsOf(gone) {
			all = all && (m.Exists(dir) || m.was[gone] == nil || !may[gone])
		}
		if may[gone] && !all && (retain == 0 || left < retain) && m.lacks(gone) {
			m.fail("step %d is removed, and %d newer ones are left that may come back", gone, left)
		}
	}
}

// lacks reports whether more nodes lack a snapshot than may.
func (m *snapshotsModel) lacks(step int64) bool {
	gone := 0
	for _, dir := range m.dirsOf(step) {
		if !m.Exists(dir) {
			gone++
		}
	}
	return gone > m.r
}

// rootless is a listing without the lines of the roots: a directory that was made in one and removed again changes its time.
func rootless(listing string) string {
	lines := strings.Split(listing, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		name, _, _ := strings.Cut(line, " ")
		return !strings.Contains(strings.Trim(name, "/"), "/")
	}), "\n")
}

// recoverLatest recovers the latest snapshot.
func (m *snapshotsModel) recoverLatest() {
	may, before, steps := m.may(), m.everything(), m.there()
	p, accident := m.interruption()
	r, err := m.latest(p)
	if err == nil && p.Killed() {
		err = disktest.ErrKilled
	}
	p.Kill()
	if m.step("recover, %s: %v", accident, err); err == nil {
		m.step("  step %d, notes %q", *r.Step, r.Notes)
	}
	m.came(m.roots, r, err, may, steps)
	m.settle()
	switch {
	case err == nil:
		m.down, m.next = false, *r.Step+1
	case accident == "" && !IsInputError(err) && !errors.As(err, new(*NotLostError)):
		m.fail("nothing has gone wrong")
	case accident == "" || strings.HasPrefix(accident, "EACCES"):
		if IsInputError(err) && !errors.As(err, new(*NotLostError)) {
			if wrong := diff("refused", rootless(before), rootless(m.everything())); wrong != nil {
				m.fail("%v", wrong)
			}
		}
	}
	if IsInputError(err) && len(steps) == 0 && !slices.ContainsFunc(m.dirs, func(dir string) bool { return !m.Exists(dir) }) { // it begins anew
		m.down = false
	}
}

// came checks what a recovery has done: the newest snapshot that may come back did, as it was, at every node, and what is
// newer is no snapshot any more. None was set aside that may come back.
func (m *snapshotsModel) came(w *roots, r *RecoverReport, err error, may map[int64]bool, steps []int64) {
	m.t.Helper()
	for _, step := range steps {
		if !may[step] {
			continue
		}
		if err == nil && step > *r.Step {
			m.fail("step %d came back, and step %d may", *r.Step, step)
		}
		for n := range w.dirs {
			if slices.ContainsFunc(w.names(n), func(name string) bool {
				s, ok := session.StepOf(name)
				return ok && s == step && name != session.StepName(step)
			}) && !w.Exists(w.dirs[n]+"/"+session.StepName(step)) {
				m.fail("step %d may come back, and was set aside at %s", step, w.dirs[n])
			}
		}
	}
	if err != nil {
		return
	}
	_, in := m.certain[*r.Step]
	for n, root := range w.dirs {
		if wrong := diff(fmt.Sprintf("step %d at %s", *r.Step, root), m.was[*r.Step][n], w.Tree(root+"/"+session.StepName(*r.Step), tree.MetaName)); wrong != nil && (in || may[*r.Step]) {
			m.fail("%v", wrong)
		}
		for _, name := range w.names(n) {
			if step, ok := session.StepOf(name); ok && name == session.StepName(step) && step > *r.Step {
				m.fail("%s stays at %s beside step %d", name, root, *r.Step)
			}
		}
	}
}

// safe checks that the newest snapshot in force comes back when more nodes are lost, as many as R allows.
func (m *snapshotsModel) safe() {
	may, steps := m.may(), m.there()
	at := slices.IndexFunc(steps, func(step int64) bool { _, in := m.certain[step]; return in && may[step] })
	if at < 0 {
		return
	}
	step := steps[at]
	trees := m.treesOf(step)
	states, nodes := m.look(m.dirsOf(step))
	var bad, good []int
	for n := range m.dirs {
		if trees[n] != m.was[step][n] || strings.HasPrefix(trees[n], "lstat ") || !m.hasMeta(states[n], nodes[n], m.certain[step]) {
			bad = append(bad, n)
		} else {
			good = append(good, n)
		}
	}
	for len(bad) < m.r && len(good) > 0 {
		i := rapid.IntRange(0, len(good)-1).Draw(m.t, "lost too")
		bad, good = append(bad, good[i]), slices.Delete(good, i, i+1)
	}
	c := m.clone()
	c.lose(len(m.lines), bad...)
	r, err := c.latest(c.Process())
	newer := false // one that is not protected at all nodes, or not as it was, nobody has promised anything of
	for _, s := range c.there(steps) {
		newer = newer || s > step
	}
	switch {
	case err != nil && !newer:
		m.fail("step %d, lost %v: %v", step, bad, err)
	case err == nil && *r.Step < step:
		m.fail("step %d, lost %v: step %d came back", step, bad, *r.Step)
	case err == nil && *r.Step == step:
		m.came(c, r, nil, map[int64]bool{step: true}, nil)
	}
}

// there returns those of some snapshots of which any node has a directory.
func (w *roots) there(steps []int64) (list []int64) {
	for _, step := range steps {
		for _, root := range w.dirs {
			if w.Exists(root + "/" + session.StepName(step)) {
				list = append(list, step)
				break
			}
		}
	}
	return list
}
