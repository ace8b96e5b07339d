package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"volley/group"
	"volley/group/internal/session"
	"volley/group/protection"
	"volley/internal/disk/disktest"
	"volley/transport/local"
)

// A fake is a machine in memory.
type fake struct {
	*disktest.Machine
	t      *testing.T
	denied map[string]error // by path
	free   int64
	root   bool // all lies on the file system of /
}

func newFake(t *testing.T) *fake {
	return &fake{Machine: disktest.NewMachine(), t: t, denied: map[string]error{}, free: 1 << 30}
}

// add writes a file of so many bytes.
func (f *fake) add(name string, bytes int) {
	f.t.Helper()
	dir, base := name[:strings.LastIndex(name, "/")], name[strings.LastIndex(name, "/")+1:]
	f.MkdirAll(dir, 0o755)
	if base == "" {
		return
	}
	f.WriteFile(name, make([]byte, bytes), 0o644)
}

// mount mounts another file system in the node, with a file.
func (f *fake) mount() {
	f.MkdirAll("/n/m", 0o755)
	f.Mount("/n/m", disktest.Mount{})
	f.add("/n/m/x", 50)
}

func (f *fake) look(ctx context.Context, p Directory) Inspection {
	return look(ctx, &machine{
		f.Process(), "m1",
		func(path string, write bool) error {
			if err := f.denied[path]; err != nil && (write || !errors.Is(err, syscall.EROFS)) {
				return &fs.PathError{Op: "access", Path: path, Err: err}
			}
			return nil
		},
		func(string) (int64, int64, error) { return f.free, 5000, nil },
		func(fs.FileInfo) string { return "sda" },
		func(fs.FileInfo) bool { return f.root },
	}, p)
}

// TestLook looks at directories that have a fault each, and at what counts as data.
func TestLook(t *testing.T) {
	yes, latest, first, lost := true, session.Latest, int64(1), int64(7)
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, c := range []struct {
		name  string
		set   func(f *fake)
		dir   Directory
		ctx   context.Context
		bytes int64
		kind  FaultKind
		text  string
	}{
		{name: "well", bytes: 300},
		{name: "no directory", dir: Directory{Dir: "/none"}, kind: NoDirectory, text: "no such directory"},
		{name: "a file", dir: Directory{Dir: "/n/a"}, kind: Unreadable, text: "not a directory"},
		{name: "read-only", set: func(f *fake) { f.denied["/n"] = syscall.EROFS }, kind: NoPermission, text: "may not read and write /n: read-only"},
		{name: "read-only, with its parity elsewhere", set: func(f *fake) { f.denied["/n"] = syscall.EROFS }, dir: Directory{Dir: "/n", Meta: "/meta/new"}, bytes: 300},
		{name: "parity where nobody may write", set: func(f *fake) { f.denied["/"] = syscall.EACCES }, dir: Directory{Dir: "/n", Meta: "/meta"}, kind: NoPermission, text: "write /: permission"},
		{name: "nobody may enter", set: func(f *fake) { f.denied["/n"] = syscall.EACCES }, kind: NoPermission, text: "permission denied"},
		{name: "a file that nobody may read", set: func(f *fake) { f.denied["/n/d/b"] = syscall.EACCES; f.denied["/n/a"] = syscall.EACCES }, kind: Closed, text: "/n/a: permission denied, and 1 more such"},
		{name: "what is excluded", dir: Directory{Dir: "/n", Exclude: []string{"d/"}}, bytes: 100},
		{name: "what nobody may read and is excluded", set: func(f *fake) { f.denied["/n/d/b"] = syscall.EACCES }, dir: Directory{Dir: "/n", Exclude: []string{"b"}}, bytes: 100},
		{name: "what is mounted below", set: func(f *fake) { f.mount() }, bytes: 350},
		{name: "one file system", set: func(f *fake) { f.mount() }, dir: Directory{Dir: "/n", OneFileSystem: new(bool)}, bytes: 350},
		{name: "one file system, which is asked for", set: func(f *fake) { f.mount() }, dir: Directory{Dir: "/n", OneFileSystem: &yes}, bytes: 300},
		{name: "no time", ctx: over, bytes: 5000},
		{name: "a root of snapshots", set: func(f *fake) { f.add("/s/step-1/x", 7); f.add("/s/step-10/x", 9) }, dir: Directory{Dir: "/s", Step: &latest}, bytes: 9},
		{name: "a snapshot", set: func(f *fake) { f.add("/s/step-1/x", 7); f.add("/s/step-10/x", 9) }, dir: Directory{Dir: "/s", Step: &first}, bytes: 7},
		{name: "a lost snapshot", set: func(f *fake) { f.add("/s/step-1/x", 7) }, dir: Directory{Dir: "/s", Step: &lost}},
		{name: "a root without any", dir: Directory{Dir: "/n", Step: &latest}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.add("/n/a", 100)
			f.add("/n/d/b", 200)
			f.add("/n/.volley/generation.1/parity", 1000)
			if c.set != nil {
				c.set(f)
			}
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			if c.dir.Dir == "" {
				c.dir.Dir = "/n"
			}
			n := f.look(c.ctx, c.dir)
			if c.kind == "" && n.Faults != nil || c.kind != "" && (len(n.Faults) != 1 || n.Faults[0].Kind != c.kind || !strings.Contains(n.Faults[0].Text, c.text)) {
				t.Errorf("%+v: want %s: %s", n.Faults, c.kind, c.text)
			}
			if c.kind == "" && (n.Bytes != c.bytes || n.AtMost != (c.ctx == over) || *n.Free != f.free || n.Room == "" || n.Protected) {
				t.Errorf("%+v: want %d bytes", n, c.bytes)
			}
		})
	}
}

// TestLookProtected looks at nodes of a group, whose manifest says what is not protected.
func TestLookProtected(t *testing.T) {
	dirs := make([]string, 3)
	for i := range dirs {
		dirs[i] = t.TempDir()
	}
	tr := local.New(1)[0]
	defer tr.Close()
	if _, err := group.Join(tr, dirs, protection.Settings{}).Protect(t.Context(), group.ProtectOptions{Tolerate: 1, Exclude: []string{"*.tmp"}}); err != nil {
		t.Fatal(err)
	}
	if n := Look(t.Context(), Directory{Dir: dirs[0]}); !n.Protected || n.Tolerate != 1 || n.Faults != nil || n.Bytes != 0 {
		t.Errorf("%+v", n)
	}
}

// TestJudge compares nodes.
func TestJudge(t *testing.T) {
	const gib = 1 << 30
	node := func(bytes, free int64, change ...func(*Inspection)) *Inspection {
		n := &Inspection{Machine: "m", Disk: "sda", Bytes: bytes, Free: &free}
		for _, f := range change {
			f(n)
		}
		return n
	}
	onRoot := func(n *Inspection) { n.OnRoot = true }
	protected := func(n *Inspection) { n.Protected, n.Tolerate = true, 2 }
	at := func(machine, disk string) func(*Inspection) {
		return func(n *Inspection) { n.Machine, n.Disk = machine, disk }
	}
	in := func(room string) func(*Inspection) { return func(n *Inspection) { n.Room = room } }
	for _, c := range []struct {
		name   string
		nodes  []*Inspection
		o      Options
		parity int64 // GiB
		faults string
		notes  []string
		roomy  string
	}{
		{name: "room", nodes: []*Inspection{node(gib, 9*gib), node(2*gib, 2*gib), node(0, 4*gib)}, o: Options{Tolerate: 1}, parity: 1, roomy: "0 2", notes: []string{"all nodes are on one disk, and lost with it: give each node a disk of its own"}},
		{name: "too little", nodes: []*Inspection{node(gib, 9*gib), node(2*gib, gib/2), node(0, 2*gib)}, o: Options{Tolerate: 1}, parity: 1, roomy: "0", faults: "1: no room"},
		{name: "too little to recover", nodes: []*Inspection{node(gib, 9*gib, protected), node(2*gib, 2*gib, protected), node(0, 2*gib), nil}, parity: 2, roomy: "0", faults: "2: no room"},
		{name: "another R", nodes: []*Inspection{node(3*gib, 9*gib, protected), node(0, 9*gib), node(0, 9*gib), node(0, 9*gib)}, o: Options{Tolerate: 1}, parity: 1, roomy: "0 1 2 3"},
		{name: "one file system", nodes: []*Inspection{node(2*gib, 2*gib, in("x")), node(0, 2*gib, in("x")), node(0, 2*gib, in("x"), at("n", "a")), node(0, 2*gib, in("y"))}, o: Options{Tolerate: 2}, parity: 2, faults: "0: no room; 1: no room"},
		{name: "sets", nodes: []*Inspection{node(gib, 9*gib), nil, nil, nil, nil, nil}, o: Options{Tolerate: 1, Size: 4}, parity: 0, roomy: "0"},
		{name: "no R", nodes: []*Inspection{node(gib, 9), node(0, 9), node(0, 9)}, notes: []string{"nothing says how many"}},
		{name: "no mount", nodes: []*Inspection{node(gib, 9*gib), node(gib, 9*gib), node(0, 9*gib, onRoot)}, o: Options{Tolerate: 1}, parity: -1, roomy: "0 1", faults: "2: no mount"},
		{name: "files on /", nodes: []*Inspection{node(gib, 9*gib), node(gib, 9*gib), node(1, 9*gib, onRoot)}, o: Options{Tolerate: 1}, parity: -1, roomy: "0 1 2"},
		{name: "most on /", nodes: []*Inspection{node(gib, 9*gib), node(gib, 9*gib, onRoot), node(0, 9*gib, onRoot)}, o: Options{Tolerate: 1}, parity: -1, roomy: "0 1 2"},
		{name: "a machine", nodes: []*Inspection{node(0, gib, at("m", "a")), node(0, gib, at("m", "b")), node(0, gib, at("n", "a"))}, o: Options{Tolerate: 1}, roomy: "0 1 2",
			notes: []string{"h0, h1 are one machine", "2 nodes are lost with h0, h1, and the group tolerates the loss of 1"}},
		{name: "a disk", nodes: []*Inspection{node(0, gib, at("m", "a")), node(0, gib, at("m", "a")), node(0, gib, at("n", "a"))}, o: Options{Tolerate: 2}, roomy: "0 1 2",
			notes: []string{"0, 1 are on one disk (a), and lost together"}},
		{name: "machines", nodes: []*Inspection{node(0, gib, at("m", "a")), node(0, gib, at("n", "a")), node(0, gib, at("o", "a"))}, o: Options{Tolerate: 1}, roomy: "0 1 2"},
		{name: "many files", nodes: []*Inspection{node(gib, 9*gib, func(n *Inspection) { n.AtMost = true }), nil, nil}, o: Options{Tolerate: 1}, parity: -1, roomy: "0", notes: []string{"at most 1.0 GiB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []Placement
			for i, n := range c.nodes {
				all = append(all, Placement{Name: fmt.Sprint(i), Host: fmt.Sprint("h", i), Inspection: n})
			}
			j, err := Judge(all, c.o)
			if err != nil {
				t.Fatal(err)
			}
			var faults []string
			for _, x := range all {
				if x.Inspection != nil {
					for _, f := range x.Faults {
						faults = append(faults, fmt.Sprintf("%s: %s", x.Name, f.Kind))
					}
				}
			}
			if got := strings.Join(faults, "; "); got != c.faults || strings.Join(j.Roomy, " ") != c.roomy {
				t.Errorf("faults %q, want %q; room at %q, want %q", got, c.faults, j.Roomy, c.roomy)
			}
			if c.parity > 0 && (j.Parity < c.parity*gib || j.Parity > c.parity*gib+gib/8 || j.Recovery <= j.Parity) {
				t.Errorf("%+v: want %d GiB", j, c.parity)
			}
			for _, want := range c.notes {
				if !slices.ContainsFunc(j.Notes, func(note string) bool { return strings.Contains(note, want) }) {
					t.Errorf("no %q in %q", want, j.Notes)
				}
			}
			if c.name == "machines" && j.Notes != nil {
				t.Errorf("%q", j.Notes)
			}
		})
	}
	if _, err := Judge(make([]Placement, 3), Options{Tolerate: 3}); !group.IsInputError(err) {
		t.Errorf("%v", err)
	}
}
