package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/group/internal/content"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/disk/disktest"
)

// A site is a node on a machine in memory, and what was protected of it.
type site struct {
	*disktest.Machine
	record *store.Record
	origin *Origin
	data   []byte            // of the node
	parity []byte            // that it is to have
	was    map[string]string // what there was below the node, by path
	after  func()            // calls between Prepare and the first block that comes back
	wrong  bool              // the blocks that come back are wrong
	meta   string            // where .volley lies, unless in the node
}

var treeLine = regexp.MustCompile(`(?m)^(.*?) ([-dLugt]+[-rwx]{9}) \d+\.\d+(.*)$|^(.*?) (d[-rwx]{9})$`)

// lines returns what lies below the node, by path.
func lines(m *disktest.Machine) map[string]string {
	list := map[string]string{}
	for _, x := range treeLine.FindAllStringSubmatch(m.Tree("/n", tree.MetaName), -1) {
		list[x[1]+x[4]] = x[2] + x[3] + x[5]
	}
	return list
}

// newSite returns a node that has files of all kinds, and more.
func newSite(t *testing.T, more func(m *disktest.Machine)) *site {
	t.Helper()
	s := &site{Machine: disktest.NewMachine()}
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	s.MkdirAll("/n/d/e", 0o755)
	s.MkdirAll("/n/empty", 0o700)
	s.WriteFile("/n/a", random(70_000), 0o640)
	s.Link("/n/a", "/n/d/twin")
	s.WriteFile("/n/d/b", random(500), 0o600)
	s.WriteFile("/n/d/e/c", random(90_000), 0o444)
	s.Symlink("d/b", "/n/l")
	s.Chmod("/n/d/e", 0o500)
	if more != nil {
		more(s.Machine)
	}
	s.SyncAll()
	s.Wait(1e9)
	s.was = lines(s.Machine)
	d, err := s.Process().Open("/n")
	must(t, err)
	l, err := tree.Scan(d, true, tree.Rules{})
	must(t, err)
	m := &store.Manifest{Format: store.Format, Version: store.Version, Group: "g", Generation: 1, Nodes: 2, Tolerate: 1, Field: "2^8", Digest: store.SHA256, DataChunks: 1, ParityChunks: 1}
	s.record = &store.Record{Entries: l.Entries, Bytes: tree.Allocate(l.Entries, nil, store.MostChunk)}
	m.Geometry(s.record.Bytes, nil)
	s.data, s.parity = make([]byte, m.ChunkBytes), random(int(m.ChunkBytes))
	data := content.NewData(d, l.Entries, false)
	_, err = data.ReadAt(s.data, 0)
	must(t, err)
	sums := content.NewSums(m, data.Extents)
	s.record.Parity = make([]byte, m.Rows()*32)
	must(t, m.InOrder(1, func(row, _ int, offset, n int64) error {
		sums.Add(offset, s.data[offset:offset+n])
		sums.Flush()
		block := content.Pairing{M: m}
		block.Add(m.DigestOf(s.record.Parity, row), s.parity[offset:offset+n])
		block.Flush()
		return nil
	}))
	s.record.FileDigests = sums.Digests
	for range 2 { // nodes, which have the same record
		text, err := s.record.Encode()
		must(t, err)
		packed := store.Pack(text)
		m.Records = append(m.Records, store.RecordSum{Bytes: int64(len(packed)), SHA256: disk.Sum(packed)})
	}
	text, err := m.Encode(nil)
	must(t, err)
	s.origin = &Origin{store.Current{Generation: 1, Root: disk.Sum(text)}, m, text, "run"}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// regain brings back what is missing or another, or only its names with entriesOnly; the rest of the node is as it was.
func (s *site) regain(p *disktest.Process, entriesOnly bool) (x *Target, err error) {
	n := &store.Node{DirPath: "/n", DirName: "/n", Meta: s.meta}
	if err := n.Open(p, store.Access{Writes: true, Makes: true}, disk.HolderOf("recover", "")); err != nil {
		return nil, err
	}
	defer n.Close()
	Sweep(n)
	l, err := tree.Scan(n.Dir, false, tree.Rules{})
	if err != nil {
		return nil, err
	}
	c := &content.Condition{Listing: l, IntactNames: map[tree.Name]*tree.Entry{}, Manifest: entriesOnly}
	is := lines(p.Machine())
	for _, e := range s.record.Entries {
		same, _, _ := strings.Cut(s.was[string(e.Path)], " = ")
		now, _, _ := strings.Cut(is[string(e.Path)], " = ")
		if same == now {
			if file := e.FileOf(); file != "" {
				c.IntactNames[file] = l.Find(e.Path)
			}
			continue
		}
		c.Restore = append(c.Restore, e)
		c.Findings = append(c.Findings, protection.Finding{Path: e.Path, Kind: content.Missing})
	}
	m := s.origin.Manifest
	compared, err := content.Compare(context.Background(), m, content.NewData(n.Dir, s.record.Entries, true), s.record, nil, nil)
	if err != nil {
		return nil, err
	}
	state := n.Load(nil, 2)
	c.Touched, c.Parity, c.Remake = compared.Blocks, content.AllRowsByChunk(m, 1), !entriesOnly
	if state.Holding(s.origin.Current) != nil {
		if c.Parity, err = content.CompareParity(context.Background(), m, content.ParityOf(n, m), s.record, nil, nil); err != nil {
			return nil, err
		}
		c.Earlier, c.Remake = true, len(c.Parity[0]) > 0
	}
	records := map[string][]byte{}
	for _, f := range m.RecordFilesAt(0) {
		text, _ := s.record.Encode()
		records[f.Name] = store.Pack(text)
	}
	origin := *s.origin
	origin.Run = fmt.Sprintf("%p", p) // as runs have names of their own
	x = NewTarget(&origin, state, s.record, records, n, c)
	if entriesOnly {
		x.RestoreEntriesOnly(n.Dir)
	}
	defer Discard(map[int]*Target{0: x})
	if err := x.Prepare(context.Background()); err != nil || x.stage == nil {
		return x, err
	}
	if s.after != nil {
		s.after()
	}
	err = m.InOrder(1, func(row, _ int, offset, n int64) error {
		data := bytes.Clone(s.data[offset : offset+n])
		if s.wrong {
			data[0] ^= 1
		}
		err := error(nil)
		if slices.Contains(c.Touched[0], row) { // others come from the files that there are
			err = x.PutOrSkip(content.Symbol{}, row, data)
		}
		if err == nil && slices.Contains(c.Parity[0], row) {
			err = x.PutOrSkip(content.Symbol{Parity: true}, row, s.parity[offset:offset+n])
		}
		return err
	})
	if err == nil {
		err = x.Finish()
	}
	if err == nil {
		err = x.Commit()
	}
	return x, err
}

// differences are the paths at which there is something else than was protected.
func (s *site) differences() (list []string) {
	is := lines(s.Machine)
	for p, line := range s.was {
		if line, _, _ := strings.Cut(line, " = "); p != "." && !strings.HasPrefix(is[p], line) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// clear loses what the node has.
func (s *site) clear() {
	for p := range lines(s.Machine) {
		if p != "." {
			s.RemoveAll("/n/" + p)
		}
	}
}

// own is the path of what has a name in .volley.
func (s *site) own(name string) string {
	return store.PathOf("/n", s.meta, tree.Name(store.MetaPath(name)))
}

// elsewhere has .volley lie on another file system.
func (s *site) elsewhere() {
	s.meta = "/meta"
	s.MkdirAll(s.meta, 0o700)
	s.Mount(s.meta, disktest.Mount{})
}

// replaced are the contents of what has made way, each once.
func (s *site) replaced() (list []string) {
	for line := range strings.Lines(s.Tree(s.own(store.ReplacedName))) {
		name, _, _ := strings.Cut(line, " ")
		if text, err := s.ReadFile(s.own(store.ReplacedName) + "/" + name); err == nil && len(text) < 100 { // and not a copy of what came back
			list = append(list, string(text))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var long = strings.Repeat("x", 254)

// A fault is what may be wrong with a node, or its disk.
type fault struct {
	name  string
	more  func(m *disktest.Machine) // that was protected
	do    func(s *site)
	left  []string // what is said not to be back, and why
	other []string // paths that are not as they were
	kept  []string // contents that are kept
}

const farAway = "it is on another file system than the node's directory, and nothing is made there: copy it out"

var faults = []fault{
	{name: "nothing", do: func(s *site) {}},
	{name: "all is lost", do: (*site).clear},
	{name: "the directory is lost", do: func(s *site) { s.RemoveAll("/n") }},
	{name: "rot", do: func(s *site) { s.WriteFile("/n/d/b", []byte("rot"), 0o600) }, kept: []string{"rot"}},
	{name: "rot in a block of a file", do: func(s *site) { s.Overwrite("/n/a", 66_000, []byte("rot"), false) }},
	{name: "a first name", do: func(s *site) { s.Remove("/n/a") }},
	{name: "another name", do: func(s *site) { s.Remove("/n/d/twin") }},
	{name: "both names", do: func(s *site) { s.Remove("/n/a"); s.Remove("/n/d/twin") }},
	{name: "a closed directory", do: func(s *site) { s.RemoveAll("/n/d/e") }},
	{name: "a file in a closed directory", do: func(s *site) { s.Remove("/n/d/e/c") }},
	{name: "the mode of a directory", do: func(s *site) { s.Chmod("/n/d/e", 0o700) }},
	{name: "a symbolic link", do: func(s *site) { s.Remove("/n/l"); s.WriteFile("/n/l", []byte("mine"), 0o600) }, kept: []string{"mine"}},
	{name: "a directory where a file was", do: func(s *site) { s.Remove("/n/d/b"); s.MkdirAll("/n/d/b/in", 0o700) },
		left: []string{"/n/d/b is a directory, and was a file when it was protected: move it away"}, other: []string{"d/b"}},
	{name: "a file where a directory was", do: func(s *site) { s.RemoveAll("/n/d"); s.WriteFile("/n/d", []byte("mine"), 0o600) }, kept: []string{"mine"}},
	{name: "a name too long for a number", more: func(m *disktest.Machine) { m.WriteFile("/n/"+long, []byte("good"), 0o600) }, do: func(s *site) {
		s.MkdirAll("/n/"+store.MetaPath(store.ReplacedName, "1"), 0o700)
		s.WriteFile("/n/"+store.MetaPath(store.ReplacedName, "1", long), []byte("first"), 0o600)
		s.WriteFile("/n/"+long, []byte("second"), 0o600)
	}, kept: []string{"first", "second"}},
	{name: "one name of a symbolic link", more: func(m *disktest.Machine) { m.Link("/n/l", "/n/d/l") }, do: func(s *site) { s.Remove("/n/d/l"); s.Remove("/n/l") }},
	{name: "a file with holes", more: func(m *disktest.Machine) { m.WriteFile("/n/hole", make([]byte, 200_000), 0o600) }, do: func(s *site) { s.Remove("/n/hole") }},
	{name: "no links", do: func(s *site) { s.poor(disktest.Mount{Links: 1}) }},
	{name: "no exchange", do: func(s *site) {
		s.poor(disktest.Mount{NoExchange: true})
		s.WriteFile("/n/a", []byte("mine"), 0o600)
	}, kept: []string{"mine"}},
	{name: "neither", do: func(s *site) {
		s.poor(disktest.Mount{NoExchange: true, Links: 1})
		s.WriteFile("/n/a", []byte("mine"), 0o600)
	}, kept: []string{"mine"}},
	{name: "two names of a file", more: func(m *disktest.Machine) { m.Link("/n/a", "/n/third") }, do: func(s *site) { s.poor(disktest.Mount{Links: 2}) }},
	{name: "no symbolic links", do: func(s *site) { s.poor(disktest.Mount{NoSymlinks: true}) }, left: []string{"/n/l cannot be made: operation not permitted"}, other: []string{"l"}},
	{name: "short names", more: func(m *disktest.Machine) { m.MkdirAll("/n/"+long, 0o700); m.WriteFile("/n/"+long+"/in", nil, 0o600) },
		do: func(s *site) { s.poor(disktest.Mount{NameBytes: 100}) }, left: []string{"/n/" + long + " cannot be made, nor what lies in it: file name too long"}, other: []string{long, long + "/in"}},
	{name: "one case", more: func(m *disktest.Machine) {
		m.WriteFile("/n/A", []byte("another"), 0o600)
		m.MkdirAll("/n/D", 0o755)
	}, do: func(s *site) { s.poor(disktest.Mount{IgnoreCase: true}) }, left: []string{
		"/n/a cannot be made: to this disk the name is that of /n/A. Recover the node on a disk that tells them apart",
		"/n/d cannot be made, nor what lies in it: to this disk the name is that of /n/D. Recover the node on a disk that tells them apart",
	}, other: []string{"a", "d", "d/b", "d/e", "d/e/c", "d/twin"}},
	{name: "another file system below", do: func(s *site) {
		s.RemoveAll("/n/d")
		s.MkdirAll("/n/d", 0o755)
		s.Mount("/n/d", disktest.Mount{})
		s.WriteFile("/n/d/b", []byte("mine"), 0o600)
		s.Remove("/n/a")
	}, left: []string{"/n/d/b cannot be made: " + farAway, "/n/d/e cannot be made, nor what lies in it: " + farAway, "/n/d/twin cannot be made: " + farAway}, other: []string{"d/b", "d/e", "d/e/c", "d/twin"}},
	{name: ".volley elsewhere", do: func(s *site) { s.elsewhere(); s.clear() }},
	{name: "the directory is lost, and .volley elsewhere", do: func(s *site) { s.elsewhere(); s.RemoveAll("/n") }},
	{name: "others in the way, and .volley elsewhere", do: func(s *site) {
		s.elsewhere()
		s.RemoveAll("/n/d/e")
		s.WriteFile("/n/d/e", []byte("theirs"), 0o600)
		s.WriteFile("/n/d/b", []byte("mine"), 0o600)
		s.Remove("/n/d/twin")
		s.Symlink("mine", "/n/d/twin")
	}, kept: []string{"mine", "theirs"}},
	{name: "no links, and .volley elsewhere", do: func(s *site) { s.poor(disktest.Mount{Links: 1, NoExchange: true}); s.elsewhere() }},
	{name: "wrong blocks", do: func(s *site) { s.Remove("/n/d/b"); s.wrong = true }, left: []string{"/n/d/b cannot be made: data that it comes of has changed meanwhile; run again"}, other: []string{"d/b"}},
	{name: "somebody writes meanwhile", do: func(s *site) {
		s.Remove("/n/d/b")
		s.after = func() { s.WriteFile("/n/d/b", []byte("mine"), 0o600) }
	}, kept: []string{"mine"}},
}

// poor has the node be lost, and its disk be another.
func (s *site) poor(disk disktest.Mount) {
	s.RemoveAll("/n")
	s.MkdirAll("/n", 0o755)
	s.Mount("/n", disk)
}

// TestTarget has anything be wrong with a node and its disk, and brings back what is missing or another: what cannot come back is
// named, and what was in its place is kept. A second time there is nothing to do, and the same is said.
func TestTarget(t *testing.T) {
	t.Parallel()
	for _, x := range faults {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, x.more)
			x.do(s)
			for _, round := range []string{"", "once more: "} {
				r, err := s.regain(s.Process(), true)
				must(t, err)
				left := slices.Sorted(slices.Values(slices.Concat(r.Unfinished, r.Blocked)))
				if !slices.Equal(left, x.left) {
					t.Errorf("%sleft %q: want %q", round, left, x.left)
				}
				if is := s.differences(); !slices.Equal(is, x.other) {
					t.Errorf("%sdifferent: %q, want %q", round, is, x.other)
				}
				if round == "" && len(x.kept) > len(r.Replaced)+1 {
					t.Errorf("%q are kept, and %q is said", x.kept, r.Replaced)
				}
				if is := s.replaced(); !slices.Equal(is, x.kept) {
					t.Errorf("%skept: %q, want %q", round, is, x.kept)
				}
				if round != "" && r.Recovered != (protection.Recovered{}) {
					t.Errorf("once more: %+v", r.Recovered)
				}
				if is := s.Tree(s.own(store.StageName)); !strings.Contains(is, "no such file") {
					t.Errorf("%sleft: %s", round, is)
				}
			}
		})
	}
}

// TestTargetLost brings back all of a node that is lost, with parity and records: the node holds its generation then. Of parity that has
// rotted in a block the rest stays.
func TestTargetLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.RemoveAll("/n")
	const parity = "/n/.volley/generation.1/parity"
	r, err := s.regain(s.Process(), false)
	must(t, err)
	n := &store.Node{DirPath: "/n", DirName: "/n"}
	must(t, n.Open(s.Process(), store.Access{}, disk.HolderOf("verify", "")))
	st := n.Load(nil, 2)
	want := protection.Recovered{Files: 3, NonFiles: 5, Records: true, Parity: int64(len(s.parity))}
	if h := st.Holding(s.origin.Current); h == nil || !h.Complete || len(st.Leftovers) > 0 || s.differences() != nil || r.Recovered != want {
		t.Errorf("%+v, %q, %+v", st, s.differences(), r.Recovered)
	}
	n.Close()
	s.Overwrite(parity, 70_000, []byte("rot"), true)
	r, err = s.regain(s.Process(), false)
	if is, _ := s.ReadFile(parity); err != nil || !bytes.Equal(is, s.parity) || r.Recovered.Parity == 0 {
		t.Errorf("other parity, %v, %+v", err, r.Recovered)
	}
}

// TestTargetWrites says what room the way back takes.
func TestTargetWrites(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.Remove("/n/d/b")
	s.Remove("/n/d/twin") // which becomes a link
	n := &store.Node{DirPath: "/n", DirName: "/n"}
	must(t, n.Open(s.Process(), store.Access{Writes: true}, disk.HolderOf("recover", "")))
	defer n.Close()
	l, err := tree.Scan(n.Dir, false, tree.Rules{})
	must(t, err)
	c := &content.Condition{Listing: l, Remake: true, IntactNames: map[tree.Name]*tree.Entry{"a": l.Find("a")}}
	for _, e := range s.record.Entries {
		if l.Find(e.Path) == nil {
			c.Restore = append(c.Restore, e)
		}
	}
	id := n.Complements(s.origin.Manifest, s.origin.Text)
	for entriesOnly, want := range map[bool][]store.Write{
		true:  {{Bytes: 500}},
		false: {{Bytes: 500}, {Bytes: int64(len(s.parity))}, {Bytes: 3}, id[0], id[1]},
	} {
		x := NewTarget(s.origin, n.Load(nil, 2), s.record, map[string][]byte{"record": []byte("abc")}, n, c)
		x.entriesOnly = entriesOnly
		if is := x.Writes(); !slices.Equal(is.List, want) {
			t.Errorf("entries only %v: %+v, want %+v", entriesOnly, is.List, want)
		}
	}
	if is := (*Target)(nil).Writes(); is.List != nil {
		t.Errorf("no target: %+v", is)
	}
}

// TestTargetInterrupted interrupts the way back at calls, in every way: no name has a part of what it is to have. What is not back
// after an error is named, and the next run completes it, and leaves nothing.
func TestTargetInterrupted(t *testing.T) {
	t.Parallel()
	for name, entriesOnly := range map[string]bool{"all is lost": true, "the directory is lost": false, "others in the way, and .volley elsewhere": true, "the directory is lost, and .volley elsewhere": false, "a file where a directory was": true, "no links": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == name })]
			start := newSite(t, x.more)
			x.do(start)
			start.SyncAll()
			before := lines(start.Machine)
			on := func(m *disktest.Machine) *site {
				s := *start
				s.Machine = m
				return &s
			}
			var last *Target
			(&disktest.Sweep{
				Machine: start.Machine, Tries: 20,
				Run: func(p *disktest.Process) (err error) {
					last, err = on(p.Machine()).regain(p, entriesOnly)
					return err
				},
				Check: func(i *disktest.Interrupted) error {
					s := on(i.Machine)
					for p, line := range lines(s.Machine) {
						if is := dataOf(line); !strings.HasPrefix(line, "d") && is != dataOf(before[p]) && is != dataOf(start.was[p]) && !strings.Contains(p, disk.Hidden) {
							return fmt.Errorf("%s is %q", p, line)
						}
					}
					if i.Name == "" {
						return nil
					}
					named := []string{"-"}
					if i.Err == nil {
						named = slices.Concat(last.Unfinished, last.Notes, last.UnsetNotes())
						for _, p := range s.differences() {
							if unset := last.UnsetNotes(); unset != nil && dataOf(lines(s.Machine)[p]) == dataOf(s.was[p]) {
								continue // a note is of several entries
							}
							if !slices.ContainsFunc(named, func(text string) bool { return above(text, "/n/"+p) }) {
								return fmt.Errorf("%s is not back, and not named in %q", p, named)
							}
						}
					}
					r, err := s.regain(s.Process(), entriesOnly)
					kept := slices.DeleteFunc(s.replaced(), func(text string) bool { // which may be part of a copy
						return text == "" || s.meta != "" && !slices.Contains(x.kept, text)
					})
					if err == nil && !slices.Equal(kept, x.kept) {
						err = fmt.Errorf("kept %q", kept)
					}
					if err == nil && (r.Unfinished != nil || s.differences() != nil && !strings.Contains(fmt.Sprint(named), "restored")) {
						err = fmt.Errorf("once more: %q, %q", r.Unfinished, s.differences())
					}
					return err
				},
			}).Test(t)
		})
	}
}

// dataOf returns what a line says of data: the length and digest of a file, or the target of a link.
func dataOf(line string) string {
	line, _, _ = strings.Cut(line, " = ")
	_, data, _ := strings.Cut(line, " ")
	data, _, _ = strings.Cut(data, " of ")
	return data
}

// above reports whether a text is of a path, or of a directory that it lies in.
func above(text, p string) bool {
	name, _, _ := strings.Cut(text, ":")
	name, _, _ = strings.Cut(name, " ")
	return p == name || strings.HasPrefix(p, name+"/")
}

// TestTry leaves a node out after an error that is its own, and no other.
func TestTry(t *testing.T) {
	t.Parallel()
	own, wrong := errors.New("its own"), &protection.CorruptError{Reason: "wrong"}
	x := &Target{}
	fails := func(err error) func() error { return func() error { return err } }
	if err := x.Try(t.Context(), fails(wrong)); err != wrong || x.Failed != nil {
		t.Errorf("%v, %v", err, x.Failed)
	}
	if err := x.Try(t.Context(), fails(own)); err != nil || x.Failed != own {
		t.Errorf("%v, %v", err, x.Failed)
	}
	if err := x.Try(t.Context(), fails(wrong)); err != nil {
		t.Errorf("left out, and %v", err)
	}
}
