package group

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"volley/group/protection"
)

// reasons are why a verb of the timer is to raise an alarm, by what has happened alone.
type reasons struct {
	protect, verify []string // at once
	rot             []string // for verify, and for protect where it reads that
	doubt           []string // for verify, if nothing has mended it
	deleted         int      // files that were removed or emptied
}

func (r *reasons) both(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.protect, r.verify = append(r.protect, text), append(r.verify, text)
}

// A stamp is by what a file is known without reading.
type stamp struct {
	bytes int
	time  string
}

// stamps returns those of the files of a listing.
func stamps(listing string) map[string]stamp {
	list := map[string]stamp{}
	for name, line := range lines(listing) {
		if fields := fieldsOf(line); fields[0] == "-" {
			size, _ := strconv.Atoi(fields[2])
			list[name] = stamp{size, fields[1]}
		}
	}
	return list
}

// A loss of files is what a node has and had.
type shortage struct{ files, bytes, formerFiles, formerBytes, vanished, changed int }

// reasons says what is wrong. A node is lost or away; a file has gone from a directory that has not changed since; much is
// deleted or changed at fewer than half of the nodes; a node is empty; something has rotted.
func (m *model) reasons() (r reasons) {
	if m.away != "" {
		r.both("%s is away", m.away)
	}
	var fewer, other []string
	p := m.promises[noStep]
	for _, dir := range m.dirs {
		if dir == m.away {
			continue
		}
		certain, lacks := p.lacks[dir]
		switch {
		case m.lost[dir]:
			r.both("%s is lost", dir)
			continue
		case lacks && certain:
			r.rot = append(r.rot, fmt.Sprintf("the parity of %s has rotted", dir))
		case lacks:
			r.doubt = append(r.doubt, fmt.Sprintf("the parity of %s has rotted", dir))
		}
		s := m.shortage(&r, p, dir)
		switch {
		case s.formerFiles > 0 && s.files == 0:
			r.protect = append(r.protect, dir+" is empty")
			fallthrough
		case 2*s.files < s.formerFiles || 2*s.bytes < s.formerBytes:
			fewer = append(fewer, fmt.Sprintf("%s has less: %+v", dir, s))
		}
		if s.formerFiles >= 8 && 2*s.changed > s.formerFiles {
			other = append(other, fmt.Sprintf("%s has other content: %+v", dir, s))
		}
		if 2*s.vanished > s.formerFiles {
			r.verify = append(r.verify, fmt.Sprintf("%s: %d of %d files are gone", dir, s.vanished, s.formerFiles))
		}
		for name, line := range lines(m.Tree(dir)) {
			if m.rotten[hashOf(line)] != "" {
				r.rot = append(r.rot, fmt.Sprintf("%s/%s has rotted", dir, name))
			}
		}
	}
	for _, list := range [][]string{fewer, other} {
		if len(list) < max(2, (len(m.dirs)+1)/2) { // else it was meant
			r.protect = append(r.protect, list...)
		}
	}
	return r
}

// shortage compares a node with what was promised.
func (m *model) shortage(r *reasons, p *promise, dir string) (s shortage) {
	listing := m.Tree(dir)
	former, present := stamps(p.trees[0][dir]), stamps(m.treesOf([]string{dir})[dir])
	moved := func(x stamp) bool { // to a name that is not that of the same file
		for name, y := range present {
			if was, old := former[name]; y == x && !(old && was == y) {
				return true
			}
		}
		return false
	}
	fresh, replaced, renamed := 0, 0, 0
	for name, file := range present {
		was, old := former[name]
		if !old || was.bytes == 0 || file.bytes > 0 {
			s.files, s.bytes = s.files+1, s.bytes+file.bytes
		}
		if !old {
			fresh++
		}
	}
	for name, was := range former {
		s.formerFiles, s.formerBytes = s.formerFiles+1, s.formerBytes+was.bytes
		file, there := present[name]
		switch {
		case there && was.bytes > 0 && file.bytes == 0:
			r.deleted++
		case there && file != was && !moved(was):
			s.changed++
		case there:
		case moved(was):
			renamed++
		default:
			s.vanished, replaced, r.deleted = s.vanished+1, replaced+1, r.deleted+1
			if m.untouched(p, dir, name, lines(listing)) {
				r.both("%s/%s is gone, and nobody has deleted it", dir, name)
			}
		}
	}
	s.changed += min(replaced, max(0, fresh-renamed))
	return s
}

// untouched reports whether the directory in which a file was, or what is left above it, has not changed since.
func (m *model) untouched(p *promise, dir, name string, present map[string]string) bool {
	up := path.Dir(name)
	for up != "." && present[up] == "" {
		up = path.Dir(up)
	}
	if up == "." {
		info, err := m.Lstat(dir)
		return err == nil && info.ModTime().Equal(p.tops[dir])
	}
	was := fieldsOf(lines(p.trees[0][dir])[up])
	return was != nil && was[1] == fieldsOf(present[up])[1]
}

// alarmed returns an error where a run of the timer has raised an alarm without a reason, or none for one.
func alarmed(alarm bool, told string, reasons, doubts []string) error {
	if !alarm && reasons != nil {
		return fmt.Errorf("no alarm is raised: %q", reasons)
	}
	if alarm && reasons == nil && doubts == nil {
		return fmt.Errorf("an alarm is raised without a reason: %s", told)
	}
	return nil
}

// day is one of a timer, which looks, or verifies once a week, and then protects. Who is told something does what the
// message says.
func (m *model) day(glance bool) {
	m.Wait(12 * time.Hour)
	m.examine(glance)
	r := m.reasons()
	x := m.verb("protect", nil)
	if x.err == nil && x.protect.Deleted != r.deleted {
		m.fail("protect says that %d files are gone, and %d are", x.protect.Deleted, r.deleted)
	}
	m.check(alarmed(x.err != nil, fmt.Sprint(x.err), r.protect, slices.Concat(r.rot, r.doubt)))
	for try := 0; x.err != nil; try++ {
		if try > 2 {
			m.fail("what the messages say does not help")
		}
		if errors.As(x.err, new(*protection.RefusedError)) {
			m.accepts = ProtectOptions{Accept: protection.Edits{Changed: true, Deleted: true}} // somebody has looked
		}
		m.mend()
		x = m.verb("protect", nil)
	}
	m.accepts = ProtectOptions{}
}

// examine has the timer look, or verify.
func (m *model) examine(glance bool) {
	verb, r := "status", m.reasons()
	reasons, doubts := r.verify, []string(nil)
	if !glance {
		verb, reasons, doubts = "verify", append(reasons, r.rot...), r.doubt
	}
	x := m.verb(verb, nil)
	m.check(x.err)
	var alarms []string
	for _, n := range x.verify.Nodes {
		if n.Status != Intact && n.Status != Changed {
			alarms = append(alarms, fmt.Sprintf("%s is %s %v", n.Dir, n.Status, n.Findings))
		}
	}
	m.check(alarmed(alarms != nil, fmt.Sprint(alarms), reasons, doubts))
	if alarms != nil {
		m.mend()
	}
}

// mend brings back what is lost, and gives up what does not come back.
func (m *model) mend() {
	m.away, m.common.Absent = "", nil
	p := m.promises[noStep]
	hurt := m.hurt(noStep, p)
	x := m.verb("recover", nil)
	m.check(x.err)
	if x.recover.Incomplete() != nil {
		if len(hurt) <= m.r {
			m.fail("%d nodes are hurt, %d may be, and not all is back: %q", len(hurt), m.r, x.recover.Unrecovered)
		}
		m.accepts = ProtectOptions{Force: true, Accept: protection.Edits{Changed: true, Deleted: true}}
		m.check(m.verb("protect", nil).err)
	} else {
		for n, dir := range m.dirs {
			if m.lost[dir] {
				m.check(diff(dir, p.trees[0][dir], m.tree(n)))
			}
			for name, line := range lines(m.tree(n)) {
				if was := lines(p.trees[0][dir])[name]; m.rotten[hashOf(line)] != "" && was != "" && fieldsOf(was)[1] == fieldsOf(line)[1] {
					m.fail("%s/%s has rotted, and is not as it was: %q, was %q, rotten %v, %+v", dir, name, line, was, m.rotten, *x.recover)
				}
			}
		}
	}
	m.lost = map[string]bool{}
	for hash := range m.rotten { // what has rotted under other names is theirs now
		m.rotten[hash] = ""
	}
}
