package group

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
)

// The oracle of TestModel knows what has happened to nodes, and what verbs have said. It looks at the files of users, but at
// none of Volley's: only at the names of generations. These are its rules.
//
//  1. What users have stays. Recover alone writes to their directories, and no content of theirs is lost: what gives way
//     to another one lies in .volley/replaced.
//  2. A refusal changes nothing. Where nothing has happened meanwhile, a verb succeeds or is refused.
//  3. What protect or resize says is promised, and what a node has committed is. It holds while no more than R nodes are
//     hurt: a node is where a file of it is not as it was protected, or where its .volley may lack something.
//  4. Status names the generation that is promised, or a newer one, or cannot tell where nodes are hurt. When all nodes that are hurt are lost, and others until
//     R are, recover brings them back as they were when that generation was made.
//  5. Verify says "whole" where no node is hurt, and not where a node is for certain.
//  6. What comes back beside the group is as it was, and nothing else changes. Unprotect takes all or nothing. A resized
//     group is the one before or the one after.
//  7. Of snapshots the newest that may come back does. No older one takes its place, nothing sets it aside, and protect
//     removes it only for as many newer ones that are protected as are retained. So it
//     is where a job begins with another number of roots.
//  8. A timer raises an alarm for a reason, and for each reason: see alarms_test.go.
//  9. In the end protect succeeds by force: no state is a dead end.
type oracle struct {
	*world
	roots     bool               // the directories are roots of snapshots
	all       []string           // directories that are nodes, were or may be
	promises  map[int64]*promise // by step; that of directories is no step's
	rotten    map[string]string  // what each content was that nobody wrote, by their hashes in listings
	meanwhile *busyFile          // nil: nobody writes while a verb runs
}

// A promise is what verbs have said of a group, or of a snapshot.
type promise struct {
	generation int64                // that is in force for certain; 0: none is
	dirs       []string             // of the nodes of a snapshot
	trees      []map[string]string  // what lay in directories when it was made: it is one of these
	lacks      map[string]bool      // directories whose .volley may lack something; true: lacks it for certain
	tops       map[string]time.Time // of the last change of directories themselves
	made       time.Time            // when it was
	next       *promise             // of runs that have not ended, each of whose trees may come into force
}

// noStep is what the promise of directories is kept by.
const noStep = -1

// dirsOf are those of a snapshot, or of all nodes.
func (o *oracle) dirsOf(step int64) []string {
	if step == noStep {
		return o.dirs
	}
	var list []string
	for _, root := range o.dirs {
		list = append(list, root+"/"+session.StepName(step))
	}
	return list
}

// placesOf are where a snapshot lies: in roots, and in spares below them.
func (o *oracle) placesOf(step int64) (list []string) {
	for _, root := range o.dirs {
		for name := range lines(o.Tree(root)) {
			if above, base := path.Split(name); base == session.StepName(step) && (above == "" || strings.HasPrefix(above, session.SparePrefix)) {
				list = append(list, root+"/"+name)
			}
		}
	}
	return list
}

// steps are those of snapshots of which any node has a directory, the newest first.
func (o *oracle) steps() (list []int64) {
	for _, root := range o.dirs {
		for name := range lines(o.Tree(root)) {
			if step, ok := session.StepOf(path.Base(name)); ok && o.roots && slices.Contains(o.placesOf(step), root+"/"+name) {
				list = append(list, step)
			}
		}
	}
	slices.SortFunc(list, session.NewestFirst)
	return slices.Compact(list)
}

// has reports whether any place has what a directory had when a snapshot was saved. By its .volley it may count as lost.
func (o *oracle) has(p *promise, dir string, places map[string]string) bool {
	for place, listing := range places {
		if _, lacks := p.lacks[place]; p.trees[0][dir] == listing && !(lacks && p.generation > 0) {
			return true
		}
	}
	return false
}

// staged reports whether a name is what a recovery has left that did not end, on another file system than .volley is on.
func staged(name string) bool {
	return strings.HasPrefix(name, tree.MetaName+"-") || strings.Contains(name, "/"+tree.MetaName+"-")
}

// treesOf lists what users have in directories.
func (o *oracle) treesOf(dirs []string) map[string]string {
	list := map[string]string{}
	for _, dir := range dirs {
		var text strings.Builder
		for line := range strings.Lines(o.Tree(dir, tree.MetaName)) {
			if !staged(line) {
				text.WriteString(line)
			}
		}
		list[dir] = text.String()
	}
	return list
}

// unrotten is a listing in which rotten files have what they had.
func (o *oracle) unrotten(listing string) string {
	for bad, good := range o.rotten {
		if good == "" {
			continue
		}
		listing = strings.ReplaceAll(listing, bad, good)
	}
	return listing
}

// promised are the trees that a run protects: of what has rotted unread, as it was.
func (o *oracle) promised(step int64, full bool) map[string]string {
	dirs := o.dirsOf(step)
	if step == noStep {
		dirs = o.all
	}
	trees := o.treesOf(dirs)
	for dir, listing := range trees {
		if !full {
			trees[dir] = o.unrotten(listing)
		}
	}
	return trees
}

// attempt notes that a run begins which protects what lies there.
func (o *oracle) attempt(step int64) {
	p := o.promises[step]
	if p == nil {
		p = &promise{lacks: map[string]bool{}}
		o.promises[step] = p
	}
	if !o.holds(step) { // a group may begin anew
		p.generation = 0
	}
	if p.next == nil {
		p.next = &promise{lacks: map[string]bool{}}
	}
	p.next.trees, p.next.made = append(p.next.trees, o.promised(step, true)), o.Now()
}

// succeed notes that a run has protected what lies there. One that does not read everything may leave what is hurt.
func (o *oracle) succeed(step, generation int64, full bool) {
	old := o.promises[step]
	p := &promise{generation: generation, trees: []map[string]string{o.promised(step, full)}, lacks: map[string]bool{}, tops: map[string]time.Time{}, made: o.Now()}
	for _, dir := range o.dirsOf(step) {
		if info, err := o.Lstat(dir); err == nil {
			p.tops[dir] = info.ModTime()
		}
	}
	if !full && old != nil {
		p.lacks = old.lacks
	}
	o.promises[step] = p
	o.doubt(step)
}

// settle makes what nodes have committed the promise.
func (o *oracle) settle(step int64) {
	p := o.promises[step]
	if newest := o.committed(o.dirsOf(step)); p != nil && newest > p.generation && p.next != nil && (p.generation > 0 || o.roots) {
		o.came(step, newest)
	}
}

// came notes that a generation is in force for certain.
func (o *oracle) came(step, generation int64) {
	if p := o.promises[step]; p.next != nil && generation != p.generation {
		p.next.generation, p.next.next = generation, &promise{trees: p.next.trees, lacks: maps.Clone(p.next.lacks), made: p.next.made}
		o.promises[step] = p.next
	}
}

// committed returns the newest generation that a node has committed.
func (o *oracle) committed(dirs []string) (newest int64) {
	group := o.of(dirs)
	for n := range dirs {
		for _, name := range group.meta(n) {
			if number, ok := strings.CutPrefix(name, store.GenerationName); ok {
				g, _ := strconv.ParseInt(number, 10, 64)
				newest = max(newest, g)
			}
		}
	}
	return newest
}

// lose notes that the .volley of a directory may lack something: for certain, or perhaps.
func (o *oracle) hurts(dir string, certain bool) {
	for _, p := range o.promises {
		for ; p != nil; p = p.next {
			p.lacks[dir] = certain
		}
	}
}

// doubt notes that a run may have mended what it has found.
func (o *oracle) doubt(step int64) {
	for p := o.promises[step]; p != nil; p = p.next {
		for dir := range p.lacks {
			p.lacks[dir] = false
		}
	}
}

// heal notes that a run has brought back what could be.
func (o *oracle) heal(step int64) {
	for p := o.promises[step]; p != nil; p = p.next {
		clear(p.lacks)
	}
}

// hurt returns the numbers of the nodes that are.
func (o *oracle) hurt(step int64, p *promise) (list []int) {
	if o.roots {
		places := o.treesOf(o.placesOf(step))
		for n, dir := range p.dirs {
			if !o.has(p, dir, places) {
				list = append(list, n)
			}
		}
		return list
	}
	dirs := o.dirsOf(step)
	trees := o.treesOf(dirs)
	for n, dir := range dirs {
		if _, lacks := p.lacks[dir]; lacks && p.generation > 0 || !o.hasFiles(p, dir, trees[dir], false) {
			list = append(list, n)
		}
	}
	return list
}

// hasFiles reports whether a directory has all files of a promise. For certain it lacks something else than directories,
// which may have been moved.
func (o *oracle) hasFiles(p *promise, dir, listing string, certain bool) bool {
	return slices.ContainsFunc(p.trees, func(trees map[string]string) bool {
		was, known := trees[dir] // else it has joined since
		return known && hasAll(lines(was), lines(listing), certain)
	})
}

// holds reports whether a promise does.
func (o *oracle) holds(step int64) bool {
	p := o.promises[step]
	return p != nil && p.generation > 0 && len(o.hurt(step, p)) <= o.r
}

// may reports of each snapshot whether it may come back: its promise holds, or all nodes have it as it was saved, of as many as
// there were before.
func (o *oracle) may() map[int64]bool {
	list := map[int64]bool{}
	most := len(o.dirs)
	for _, step := range slices.Backward(o.steps()) {
		p := o.promises[step]
		if list[step] = p != nil && o.holds(step); p != nil {
			list[step] = list[step] || len(p.dirs) == len(o.dirs) && most == len(o.dirs) && len(o.hurt(step, p)) == 0
			most = max(most, len(p.dirs))
		}
	}
	return list
}

// fieldsOf is what a listing says of a file, a directory or a link: its kind, time, size and hash, or target.
func fieldsOf(line string) []string {
	line, _, _ = strings.Cut(line, " = ")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return nil
	}
	return append([]string{fields[0][:1]}, fields[1:]...)
}

// hashOf returns the hash of a file in a listing, or "".
func hashOf(line string) string {
	if fields := fieldsOf(line); fields != nil && fields[0] == "-" {
		return fields[3]
	}
	return ""
}

// sameContent reports whether two have it, whatever their modes and times.
func sameContent(a, b []string) bool {
	return len(a) > 0 && len(b) > 0 && a[0] == b[0] && (a[0] == "d" || slices.Equal(a[2:], b[2:]))
}

// hasAll reports whether all files, directories and links are there. A file may have moved to a name that is not that of
// another as it was, and has kept its time.
func hasAll(want, present map[string]string, butDirectories bool) bool {
	var missing [][]string
	free := maps.Clone(present)
	for name, line := range want {
		if sameContent(fieldsOf(line), fieldsOf(present[name])) {
			delete(free, name)
		} else if line[0] != 'd' || !butDirectories {
			missing = append(missing, fieldsOf(line))
		}
	}
	for _, file := range missing {
		moved := ""
		for name, line := range free {
			if other := fieldsOf(line); file[0] == "-" && sameContent(file, other) && file[1] == other[1] {
				moved = name
			}
		}
		if moved == "" {
			return false
		}
		delete(free, moved)
	}
	return true
}

// A picture is what lies there before a verb runs, or after.
type picture struct {
	trees    map[string]string
	contents map[string]map[string]string // by directory, the name of a file of each content, by its hash
	metas    map[string][]string          // names in .volley, by directory
}

// picture takes one: in it is what recover has set aside, and, where it matters, what lies in .volley.
func (o *oracle) picture(metas bool) *picture {
	x := &picture{o.treesOf(o.all), map[string]map[string]string{}, map[string][]string{}}
	group := o.of(o.all)
	for n, dir := range o.all {
		x.contents[dir] = map[string]string{}
		for _, listing := range []string{x.trees[dir], o.Tree(group.own(n) + "/" + store.ReplacedName), o.Tree(dir + "/" + tree.MetaName + "/" + store.ReplacedName)} {
			for name, line := range lines(listing) {
				if hash := hashOf(line); hash != "" {
					x.contents[dir][hash] = name
				}
			}
		}
		if metas {
			x.metas[dir] = group.meta(n)
		}
	}
	return x
}

// kept returns an error where a verb has taken from users what is theirs: by rule 1.
func (o *oracle) kept(before, after *picture, recovers bool) error {
	for _, dir := range o.all {
		if !recovers {
			if strings.HasPrefix(before.trees[dir], "lstat ") && strings.Count(after.trees[dir], "\n") == 1 {
				continue // an empty directory that was made for it, and was not to stay
			}
			if wrong := diff(dir, before.trees[dir], after.trees[dir]); wrong != nil {
				return wrong
			}
		}
		for hash, name := range before.contents[dir] {
			if _, rotten := o.rotten[hash]; after.contents[dir][hash] == "" && !rotten && o.meanwhile == nil {
				return fmt.Errorf("what was in %s of %s is lost", name, dir)
			}
		}
	}
	if b := o.meanwhile; b != nil && !b.hidden {
		last := disk.Sum(b.versions[len(b.versions)-1])[:16]
		if after.contents[b.dir][last] == "" {
			return fmt.Errorf("what a program has written to %s is lost", b.name)
		}
	}
	return nil
}

// unchanged returns an error where a refused verb has changed something: by rule 2.
func (o *oracle) unchanged(before, after *picture) error {
	for _, dir := range o.all {
		was, present := before.trees[dir], after.trees[dir]
		if o.roots { // whose snapshots have their times from what was made in them, and taken away
			was, present = withoutTimes(was), withoutTimes(present)
		}
		if wrong := diff("refused: "+dir, was, present); wrong != nil {
			return wrong
		}
		for _, name := range after.metas[dir] {
			if !slices.Contains(before.metas[dir], name) && !strings.HasPrefix(name, store.GenerationName) {
				return fmt.Errorf("refused: %s has %s now", dir, name)
			}
		}
	}
	return nil
}

// inForce returns the promise that the group says is in force, or an error: by rule 4.
func (o *oracle) inForce(step int64) (*promise, error) {
	p := o.promises[step]
	if o.roots {
		return p, nil
	}
	c := o.clone()
	r, err := c.statusBy(c.Process())
	switch {
	case IsInputError(err) && len(o.hurt(step, p)) > 0: // it cannot tell, until they are lost
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("generation %d is promised: %w", p.generation, err)
	case r.Generation < p.generation || r.Generation > p.generation && p.next == nil:
		return nil, fmt.Errorf("generation %d is promised, and %d is in force", p.generation, r.Generation)
	case r.Generation > p.generation:
		next := *p.next
		next.generation = r.Generation
		return &next, nil
	}
	return p, nil
}

// comesBack loses nodes, and returns an error unless they come back as a promise says.
func (o *oracle) comesBack(p *promise, how int, lost []int) error {
	c := o.clone()
	if c.common.Meta != "" {
		for _, n := range o.hurt(noStep, p) {
			c.RemoveAll(c.own(n))
		}
	}
	c.lose(how, lost...)
	r, err := c.recoverBy(c.Process(), RecoverOptions{})
	if err != nil || r.Unrecovered != nil {
		return fmt.Errorf("generation %d, lost %v: %+v, %w", p.generation, lost, r, err)
	}
	trees := p.trees
	if r.Generation != p.generation && p.next != nil {
		trees = p.next.trees
	}
	wrong := fmt.Errorf("nobody knows generation %d", r.Generation)
	for _, tree := range trees {
		wrong = nil
		for _, n := range lost {
			if wrong == nil {
				wrong = diff(o.dirs[n], tree[o.dirs[n]], c.tree(n))
			}
		}
		if wrong == nil {
			return nil
		}
	}
	return fmt.Errorf("generation %d, then %d, lost %v: %w", p.generation, r.Generation, lost, wrong)
}
