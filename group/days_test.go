package group

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
)

// A kept file is one as it is, or as it was protected.
type kept struct {
	text string
	at   time.Time
}

func (k kept) same(o kept) bool { return len(k.text) == len(o.text) && k.at.Equal(o.at) }

// A diary is what has happened to a group whose verbs a timer runs.
type diary struct {
	*world
	t      *testing.T
	rng    *rand.Rand
	was    []map[string]kept      // that was protected, by node
	dirsAt []map[string]time.Time // of directories, when it was
	rotten map[string]string      // what was protected of files that have rotted since, by path
	parity map[int]bool           // of nodes has rotted; false: and may have been coded anew since
	lost   map[int]bool           // nodes
	away   int                    // node; -1: none
	log    []string
	alarms map[string]int // by verb
}

func (d *diary) note(format string, args ...any) { d.log = append(d.log, fmt.Sprintf(format, args...)) }

func (d *diary) fail(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("%s\n%s", strings.Join(d.log, "\n"), fmt.Sprintf(format, args...))
}

// look returns the files and the times of directories at a node.
func (d *diary) look(n int) (files map[string]kept, dirs map[string]time.Time) {
	files, dirs = map[string]kept{}, map[string]time.Time{}
	for name, line := range lines(d.Tree(d.dirs[n], tree.MetaName)) {
		at := path.Join(d.dirs[n], name)
		info, err := d.Lstat(at)
		must(d.t, err)
		if line[0] == 'd' {
			dirs[name] = info.ModTime()
			continue
		}
		text, err := d.ReadFile(at)
		must(d.t, err)
		files[name] = kept{string(text), info.ModTime()}
	}
	return files, dirs
}

// protected notes that all nodes are protected as they are: of what has rotted, as it was.
func (d *diary) protected() {
	for n := range d.dirs {
		if d.parity[n] {
			d.parity[n] = false
		}
		d.was[n], d.dirsAt[n] = d.look(n)
		for name, is := range d.was[n] {
			if text, ok := d.rotten[path.Join(d.dirs[n], name)]; ok {
				d.was[n][name] = kept{text, is.at}
			}
		}
	}
}

// user does something to a file of a node, or to one of its directories.
func (d *diary) user(n int) {
	files, _ := d.look(n)
	names := slices.Sorted(maps.Keys(files))
	dir := fmt.Sprintf("%s/d%d", d.dirs[n], d.rng.IntN(4))
	d.Wait(time.Duration(1+d.rng.IntN(600)) * time.Second)
	if len(names) == 0 || d.rng.IntN(4) == 0 {
		d.MkdirAll(dir, 0o755)
		at := fmt.Sprintf("%s/new%d", dir, d.rng.IntN(1000))
		d.WriteFile(at, random(d.rng, d.rng.IntN(20_000)), 0o644)
		delete(d.rotten, at)
		d.note("%s is written", at)
		return
	}
	at := path.Join(d.dirs[n], names[d.rng.IntN(len(names))])
	is := []byte(files[strings.TrimPrefix(at, d.dirs[n]+"/")].text)
	what := []string{"rewritten", "overwritten", "appended to", "renamed", "deleted", "emptied", "replaced", "moved with its directory"}[d.rng.IntN(8)]
	rot, rots := d.rotten[at]
	delete(d.rotten, at)
	switch what {
	case "rewritten":
		d.WriteFile(at, random(d.rng, d.rng.IntN(30_000)), 0o644)
	case "overwritten":
		if len(is) > 0 {
			d.Overwrite(at, int64(d.rng.IntN(len(is))), []byte{byte(d.rng.Uint32())}, false)
		}
	case "appended to":
		d.AppendFile(at, random(d.rng, 1+d.rng.IntN(5000)))
	case "renamed":
		to := fmt.Sprintf("%s/renamed%d", path.Dir(at), d.rng.IntN(1000))
		if d.Rename(at, to); rots {
			d.rotten[to] = rot
		}
	case "deleted":
		d.Remove(at)
	case "emptied":
		d.WriteFile(at, nil, 0o644)
	case "replaced": // as editors save
		d.Remove(at)
		d.WriteFile(at, random(d.rng, 1+d.rng.IntN(20_000)), 0o644)
	case "moved with its directory":
		from := path.Dir(at)
		if from == d.dirs[n] {
			return
		}
		to := fmt.Sprintf("%s/moved%d", d.dirs[n], d.rng.IntN(1000))
		if d.Exists(to) {
			return
		}
		if d.Rename(from, to); rots {
			d.rotten[at] = rot
		}
		for old, text := range maps.Clone(d.rotten) {
			if rest, in := strings.CutPrefix(old, from+"/"); in {
				delete(d.rotten, old)
				d.rotten[to+"/"+rest] = text
			}
		}
	}
	d.note("%s is %s", at, what)
}

// accident has somebody, or a program, do something to much of a node, or to all.
func (d *diary) accident(n int) {
	files, dirs := d.look(n)
	what := []string{"deletes", "encrypts", "encrypts, and renames", "removes a directory at"}[d.rng.IntN(4)]
	share := d.rng.Float64()
	d.note("somebody %s %s, %.2f of it", what, d.dirs[n], share)
	if what == "removes a directory at" {
		names := slices.Sorted(maps.Keys(dirs))
		if name := names[d.rng.IntN(len(names))]; name != "." {
			d.RemoveAll(path.Join(d.dirs[n], name))
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if d.rng.Float64() > share {
			continue
		}
		at := path.Join(d.dirs[n], name)
		delete(d.rotten, at)
		if what != "deletes" {
			d.WriteFile(at, random(d.rng, len(files[name].text)), 0o644)
		}
		switch what {
		case "deletes":
			d.Remove(at)
		case "encrypts, and renames":
			d.Rename(at, at+".locked")
		}
	}
}

// disk has a file of a node rot, or go.
func (d *diary) disk(n int) {
	if d.rng.IntN(5) == 0 {
		for line := range strings.Lines(d.Tree(d.own(n))) {
			if name, _, _ := strings.Cut(line, " "); path.Base(name) == store.ParityFile {
				at := path.Join(d.own(n), name)
				is, _ := d.ReadFile(at)
				place := d.rng.IntN(len(is))
				d.Overwrite(at, int64(place), []byte{is[place] ^ 1}, true)
				d.parity[n] = true
				d.note("%s rots", at)
			}
		}
		return
	}
	files, _ := d.look(n)
	names := slices.Sorted(maps.Keys(files))
	if len(names) == 0 {
		return
	}
	name := names[d.rng.IntN(len(names))]
	at, is := path.Join(d.dirs[n], name), files[name]
	if d.rng.IntN(2) == 0 {
		d.Lose(at)
		delete(d.rotten, at)
		d.note("%s is lost", at)
		return
	}
	if len(is.text) == 0 {
		return
	}
	place := d.rng.IntN(len(is.text))
	d.Overwrite(at, int64(place), []byte{is.text[place] ^ 1}, true)
	for _, was := range d.was[n] {
		if _, twice := d.rotten[at]; was.same(is) && !twice {
			d.rotten[at] = was.text
		}
	}
	if d.rotten[at] != "" {
		d.note("%s rots", at)
	}
}

// lose has a node lost, with an empty directory in its place.
func (d *diary) lose(n int) {
	d.RemoveAll(d.dirs[n])
	d.MkdirAll(d.dirs[n], 0o755)
	for at := range maps.Clone(d.rotten) {
		if strings.HasPrefix(at, d.dirs[n]+"/") {
			delete(d.rotten, at)
		}
	}
	delete(d.parity, n)
	d.lost[n] = true
	d.note("%s is lost, and replaced", d.dirs[n])
}

// reasons are why a verb is to raise an alarm.
type reasons struct {
	protect, verify []string // at once
	rot             []string // for verify, and for protect where it reads that
	may             []string // for verify, if nothing has mended it
	deleted         int      // files that are gone, or were emptied
}

// reasons says what is wrong, by what has happened alone.
func (d *diary) reasons() (r reasons) {
	both := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		r.protect, r.verify = append(r.protect, text), append(r.verify, text)
	}
	if d.away >= 0 {
		both("%s is away", d.dirs[d.away])
	}
	var less, other, none []string
	for n, dir := range d.dirs {
		if n == d.away {
			continue
		}
		if d.lost[n] {
			both("%s is lost", dir)
			continue
		}
		files, dirs := d.look(n)
		there := func(k kept) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool {
				was, old := d.was[n][name]
				return files[name].same(k) && !(old && was.same(files[name])) // which is itself
			})
		}
		gone, bytes, wereBytes, left, changed, fresh := 0, 0, 0, 0, 0, 0
		for name, is := range files {
			was, old := d.was[n][name]
			if !old || len(was.text) == 0 || len(is.text) > 0 {
				left, bytes = left+1, bytes+len(is.text)
			}
			if !old {
				fresh++
			}
		}
		replaced, moved := 0, 0
		for name, was := range d.was[n] {
			wereBytes += len(was.text)
			is, same := files[name]
			switch {
			case same && len(was.text) > 0 && len(is.text) == 0:
				r.deleted++
			case same && !is.same(was) && !there(was):
				changed++
			case same:
			case there(was):
				moved++
			default:
				gone, replaced, r.deleted = gone+1, replaced+1, r.deleted+1
				up := path.Dir(name)
				for up != "." && dirs[up].IsZero() {
					up = path.Dir(up)
				}
				if dirs[up].Equal(d.dirsAt[n][up]) {
					both("%s/%s is gone, and nobody has deleted it", dir, name)
				}
			}
		}
		were := len(d.was[n])
		changed += min(replaced, max(0, fresh-moved))
		if were > 0 && left == 0 {
			none = append(none, dir+" is empty")
		}
		if 2*left < were || 2*bytes < wereBytes {
			less = append(less, fmt.Sprintf("%s has %d of %d files, %d of %d bytes left", dir, left, were, bytes, wereBytes))
		}
		if were >= 8 && 2*changed > were {
			other = append(other, fmt.Sprintf("%s has %d of %d files changed", dir, changed, were))
		}
		if 2*gone > were {
			r.verify = append(r.verify, fmt.Sprintf("%s: %d of %d files are gone", dir, gone, were))
		}
	}
	many := max(2, (len(d.dirs)+1)/2)
	for _, list := range [][]string{less, other} {
		if len(list) < many {
			r.protect = append(r.protect, list...)
		}
	}
	r.protect = append(r.protect, none...)
	for _, at := range slices.Sorted(maps.Keys(d.rotten)) {
		if d.Exists(at) {
			r.rot = append(r.rot, at+" has rotted")
		}
	}
	for n, sure := range d.parity {
		if text := fmt.Sprintf("the parity of %s has rotted", d.dirs[n]); sure {
			r.rot = append(r.rot, text)
		} else {
			r.may = append(r.may, text)
		}
	}
	return r
}

// now is the world as the timer finds it.
func (d *diary) now() *world {
	if d.away < 0 {
		return d.world
	}
	absent := make([]string, len(d.dirs))
	absent[d.away] = "no route to host"
	return d.with(protection.Settings{Absent: absent})
}

// protectNightly is what the timer does at night. Where it raises an alarm, somebody looks, and does what the message says.
func (d *diary) protectNightly() {
	r := d.reasons()
	report, err := d.now().protectBy(d.Process(), ProtectOptions{})
	d.note("protect: %v", err)
	switch {
	case err == nil && report.Deleted != r.deleted:
		d.fail("protect says that %d files are gone, and %d are", report.Deleted, r.deleted)
	case err == nil && r.protect != nil:
		d.fail("protect has raised no alarm: %q", r.protect)
	case err != nil && r.protect == nil && r.rot == nil && r.may == nil:
		d.fail("protect has raised an alarm without a reason")
	case err == nil:
		d.protected()
		return
	}
	d.alarms["protect"]++
	d.mend()
	input := new(protection.RefusedError)
	for try := 0; ; try++ {
		o := ProtectOptions{}
		if errors.As(err, &input) {
			o.Accept = protection.Edits{Changed: true, Deleted: true} // somebody has looked
		}
		if _, err = d.protectBy(d.Process(), o); err == nil {
			break
		}
		d.note("protect again: %v", err)
		if try > 1 {
			d.fail("what the messages say does not help")
		}
		d.mend()
	}
	d.protected()
}

// mend brings back what is lost.
func (d *diary) mend() {
	if d.away >= 0 {
		d.note("%s is there again", d.dirs[d.away])
		d.away = -1
	}
	changes := 0 // nodes that cannot give all that was protected
	for n := range d.dirs {
		files, _ := d.look(n)
		if d.lost[n] || !maps.EqualFunc(files, d.was[n], func(a, b kept) bool { return a == b }) {
			changes++
		}
	}
	before := make([]map[string]kept, len(d.dirs))
	for n := range d.dirs {
		before[n], _ = d.look(n)
	}
	r, err := d.recoverBy(d.Process(), RecoverOptions{})
	if err != nil {
		d.fail("recover: %v", err)
	}
	d.note("recover: %d files, left %q", r.Files, r.Unrecovered)
	if r.Incomplete() != nil {
		if changes <= d.r {
			d.fail("recover: %d nodes have changed or are lost, %d may, and not all is back: %q", changes, d.r, r.Unrecovered)
		}
		_, err := d.protectBy(d.Process(), ProtectOptions{Force: true, Accept: protection.Edits{Changed: true, Deleted: true}})
		d.note("protect --force: %v", err)
		must(d.t, err)
		d.rotten, d.parity, d.lost = map[string]string{}, map[int]bool{}, map[int]bool{}
		d.protected()
		return
	}
	for n := range d.dirs {
		files, _ := d.look(n)
		for name, was := range d.was[n] {
			at := path.Join(d.dirs[n], name)
			if _, rots := d.rotten[at]; (rots || d.lost[n]) && files[name].text != was.text {
				d.fail("%s is not as it was protected", at)
			}
		}
		for name, was := range before[n] { // what users have is theirs
			if is := files[name]; d.rotten[path.Join(d.dirs[n], name)] == "" && is.text != was.text {
				d.fail("%s/%s was %d bytes, and recover has changed it", d.dirs[n], name, len(was.text))
			}
		}
	}
	d.rotten, d.parity, d.lost = map[string]string{}, map[int]bool{}, map[int]bool{}
}

// examine is what the timer does once a week, and status in between.
func (d *diary) examine(glance bool) {
	name := map[bool]string{true: "status", false: "verify"}[glance]
	r := d.reasons()
	v, err := d.now().examineBy(d.Process(), glance)
	if err != nil {
		d.fail("%s: %v", name, err)
	}
	want := r.verify
	if !glance {
		want = append(slices.Clone(want), r.rot...)
	}
	var alarm []string
	for _, n := range v.Nodes {
		if n.Status != Intact && n.Status != Changed {
			alarm = append(alarm, fmt.Sprintf("%s is %s %v", n.Dir, n.Status, n.Findings))
		}
	}
	d.note("%s: %q", name, alarm)
	switch {
	case alarm == nil && want != nil:
		d.fail("%s has raised no alarm: %q", name, want)
	case alarm != nil && want == nil && (glance || r.may == nil):
		d.fail("%s has raised an alarm without a reason", name)
	case alarm != nil:
		d.alarms[name]++
		d.mend()
	}
}

// TestDays has users and disks do what they do to five nodes for fourteen days, while a timer protects every night, looks
// every day and verifies every week. Each alarm has a reason, and each reason raises an alarm.
func TestDays(t *testing.T) {
	t.Parallel()
	runs := 8 * *mostCalls
	if runs == 0 {
		runs = 2000
	}
	alarms := map[string]int{}
	for i := range runs {
		seed := *callSeed + uint64(i)
		w := &world{Machine: newWorld(2, 1).Machine, r: 2, ranks: 1, deletes: true}
		d := &diary{world: w, t: t, rng: rand.New(rand.NewPCG(seed, 14)), away: -1, rotten: map[string]string{}, parity: map[int]bool{}, lost: map[int]bool{}, alarms: alarms}
		d.note("seed %d", seed)
		for n := range 5 {
			dir := fmt.Sprintf("/day%d", n)
			w.dirs = append(w.dirs, dir)
			w.MkdirAll(dir, 0o755)
			for i := range 4 + d.rng.IntN(16) {
				in := fmt.Sprintf("%s/d%d", dir, i%4)
				w.MkdirAll(in, 0o755)
				w.WriteFile(fmt.Sprintf("%s/f%d", in, i), random(d.rng, d.rng.IntN(20_000)), 0o644)
			}
		}
		w.Wait(time.Hour)
		d.was, d.dirsAt = make([]map[string]kept, 5), make([]map[string]time.Time, 5)
		must(t, w.protect())
		d.protected()
		for day := range 14 {
			d.note("day %d", day+1)
			if d.rng.IntN(12) == 0 { // at night, before anybody works
				d.lose(d.rng.IntN(5))
				d.examine(true)
			}
			busy := []int{0, 1, 3, 12}[d.rng.IntN(4)] // things that a user does
			for n := range 5 {
				for range d.rng.IntN(busy + 1) {
					d.user(n)
				}
			}
			if d.rng.IntN(5) == 0 {
				for range 1 + d.rng.IntN(3) { // from half of the nodes on it was meant
					d.accident(d.rng.IntN(5))
				}
			}
			if d.rng.IntN(4) == 0 {
				d.disk(d.rng.IntN(5))
			}
			if d.rng.IntN(12) == 0 { // by day: what others have changed does not serve to bring it back
				d.lose(d.rng.IntN(5))
			}
			if d.rng.IntN(10) == 0 {
				d.away = d.rng.IntN(5)
				d.note("%s is away", w.dirs[d.away])
			}
			w.Wait(12 * time.Hour)
			if day%7 == 6 {
				d.examine(false)
			} else {
				d.examine(true)
			}
			d.protectNightly()
		}
		d.examine(false)
	}
	t.Logf("alarms %v", alarms)
}
