package group

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"volley/group/internal/content"
	"volley/group/internal/erasure"
	"volley/group/internal/guard"
	"volley/group/internal/pass"
	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
	"volley/internal/printable"
)

// ProtectOptions say how to protect.
type ProtectOptions struct {
	Tolerate int    // nodes that may be lost; 0: as many as in the last run
	Digest   string // SHA256, BLAKE3, XXH3, or "" for that of an earlier run, else SHA256; XXH3 not with a key
	Force    bool   // protect what is there, although nodes are lost or files damaged
	DryRun   bool   // write nothing

	// Exclude are patterns of what is not protected, as of .gitignore at the top of a node; nil: as in an earlier run.
	Exclude []string

	// OneFileSystem leaves out what other file systems have that are mounted below a node; nil: as in an earlier run.
	OneFileSystem *bool

	// Accept says which edits were meant that look like an accident: more than half of a node's files, or of their bytes,
	// are gone since the last run, or more than half of 8 files or more have other content, by size and time. They do not look
	// so where as much has happened at half of the nodes or more, and at two of them, unless no file is left at a node.
	Accept protection.Edits

	// Part of many nodes that the group is, to be noted at its nodes; the zero one keeps what is noted.
	Part protection.SetIndex

	// Retain is how many snapshots in force or recoverable stay when this one is in force everywhere. 0: all.
	Retain int

	// Full reads also what has not changed, by size, times and inode, and compares it with what was protected.
	Full bool
}

// A ProtectReport says what Protect has done.
type ProtectReport struct {
	Step        *int64                 `json:"step,omitempty"`    // of the snapshot
	Removed     []int64                `json:"removed,omitempty"` // older snapshots
	Nodes       int                    `json:"nodes"`
	Dirs        []string               `json:"places"` // directories, by node
	Tolerate    int                    `json:"tolerate"`
	Field       string                 `json:"field"`
	Digest      string                 `json:"digest"`
	Generation  int64                  `json:"generation"`
	Files       int                    `json:"files"`
	Deleted     int                    `json:"deleted_files"`      // since the last run, of all nodes; those emptied are among them
	Changed     int                    `json:"changed_files"`      // of all nodes, too: their names have other content, by size and time
	DataBytes   int64                  `json:"data_bytes"`         // of all nodes
	ParityBytes int64                  `json:"parity_bytes"`       // at each node
	RecordBytes int64                  `json:"record_bytes"`       // of manifest and records, at the node that has most
	Blocks      int                    `json:"blocks"`             // of all codewords, row by row
	Coded       int                    `json:"coded_blocks"`       // of these: those that were not as before
	Read        int64                  `json:"read_bytes"`         // of files, at all nodes
	Torn        []string               `json:"torn,omitempty"`     // files that were written to each time they were read
	Vanished    []string               `json:"gone,omitempty"`     // files that went while they were read: they are not protected
	Doubtful    []string               `json:"doubtful,omitempty"` // files with other content under the length and time that they had: somebody has set that back, or they have rotted
	Notes       []string               `json:"notes,omitempty"`
	Traffic     protection.PlanTraffic `json:"traffic"`
	Cost        *protection.CodingCost `json:"cost"` // by the model of the network, as if all were coded

	Special []string `json:"special,omitempty"` // what is neither file, directory nor symbolic link, or a directory that may not be listed: it is not protected
	Mounts  []string `json:"mounts,omitempty"`  // directories below nodes in which other file systems begin
	Exclude []string `json:"exclude,omitempty"` // patterns of what is not protected
	Seconds float64  `json:"seconds"`

	Losses []protection.Accident `json:"losses,omitempty"` // files that were gone at a node, a tenth or more, unless o.Accept has it
}

// Protect makes the parity of all nodes: with it and the records, both in .volley, [Group.Recover] brings back any
// o.Tolerate of them. Blocks in which no node has changed since it was last called keep their parity, and are not read.
// What is lost or damaged has to be recovered before, unless o.Force is set. Where most is gone or has
// changed at a node, it refuses to make that final, unless o.Accept has it.
//
// A file has changed where its size, inode or one of its times has, ctime among them. What it shares blocks with is read,
// too, and every byte once: what is coded is what its digest is of. Rot elsewhere is found by [Group.Verify], or with o.Full
// or o.Force. A file that changes meanwhile is read once more; if it changes again, it is protected torn, as the report says.
//
// An earlier protection is in force until the new one is complete at all nodes. After an error, or the end of a process
// at any moment, a new call completes it. It returns a [*protection.RefusedError] for directories that cannot be protected so, and a
// [*files.BusyError] where another run uses a node.
func (g *Group) Protect(ctx context.Context, o ProtectOptions) (*ProtectReport, error) {
	return run(ctx, g, session.Verb{Name: "protect", Args: o, Access: store.Access{Writes: !o.DryRun, Needs: true}}, func(ctx context.Context, s *session.Session) (*ProtectReport, error) {
		return protect(ctx, s, o)
	})
}

// Warnings returns what somebody has to look at, although all is protected.
func (r *ProtectReport) Warnings() []string {
	return pass.DoubtNotes(r.Doubtful)
}

// An UnsettledError is why a run has ended while its generation came into force, or after that: the next run completes it.
// After any other error of Protect the earlier protection is in force.
type UnsettledError struct{ Err error }

func (e *UnsettledError) Error() string { return e.Err.Error() }

func (e *UnsettledError) Unwrap() error { return e.Err }

// A protectRun is a run of protect, at the nodes here.
type protectRun struct {
	s     *session.Session
	o     ProtectOptions
	r     *ProtectReport
	m     *store.Manifest // that it makes
	code  *erasure.Code
	works []*pass.Work // of the nodes here
	found []scanned    // of all nodes
}

func protect(ctx context.Context, s *session.Session, o ProtectOptions) (*ProtectReport, error) {
	start := time.Now()
	if s.Manifest != nil {
		o.Tolerate = cmp.Or(o.Tolerate, s.Manifest.Tolerate)
	}
	x := &protectRun{s: s, o: o, m: nextManifest(s, &o)}
	if err := x.chooseCode(); err != nil {
		return nil, s.SharedError(ctx, err)
	}
	if err := x.scan(ctx); err != nil {
		return nil, err
	}
	defer func() {
		for _, w := range x.works {
			w.Data.Close()
		}
	}()
	if err := x.report(ctx); err != nil {
		return nil, err
	}
	if err := x.settle(ctx); err != nil {
		return nil, err
	}
	p, err := pass.NewPass(s, x.m, x.works)
	if err == nil && !o.DryRun {
		err = x.clear(ctx)
	}
	if err == nil {
		err = guard.CheckParity(ctx, s, p)
	}
	if err != nil {
		return nil, err
	}
	if o.DryRun {
		return x.r, nil
	}
	root, err := x.write(ctx, p)
	if err != nil {
		for _, n := range s.Nodes { // nobody has committed it, as this rank has not come so far
			n.Drop(x.m.Generation)
		}
		return nil, err
	}
	if err := x.putInForce(ctx, root); err != nil { // others may have
		return nil, &UnsettledError{err}
	}
	x.r.Seconds = time.Since(start).Seconds()
	return x.r, nil
}

// nextManifest returns the manifest of the generation that is to be made. What the options do not say is as it was.
func nextManifest(s *session.Session, o *ProtectOptions) *store.Manifest {
	earlier := s.Manifest
	m := &store.Manifest{
		Format: store.Format, Version: store.Version, Generation: s.Newest + 1, Nodes: s.K, Tolerate: o.Tolerate,
		Group: s.Run, Digest: o.Digest, Exclude: o.Exclude, SetIndex: o.Part,
	}
	if earlier != nil {
		m.Group, m.Epoch, m.Replaces, m.SetIndex = earlier.Group, earlier.Epoch, earlier.Replaces, cmp.Or(m.SetIndex, earlier.SetIndex)
		if earlier.Nodes != s.K {
			m.Epoch, m.Replaces = earlier.Epoch+1, &store.Predecessor{Epoch: earlier.Epoch, Nodes: earlier.Nodes, Names: earlier.Names}
		}
		m.Digest = cmp.Or(m.Digest, earlier.Digest)
		if o.Exclude == nil {
			m.Exclude = earlier.Exclude
		}
		m.OneFileSystem = earlier.OneFileSystem
	}
	if o.OneFileSystem != nil {
		m.OneFileSystem = *o.OneFileSystem
	}
	m.Digest = cmp.Or(m.Digest, SHA256)
	return m
}

// chooseCode sets the code of the generation, or returns why it cannot be made.
func (x *protectRun) chooseCode() (err error) {
	s, m, o := x.s, x.m, &x.o
	code, err := erasure.NewCode(s.K, o.Tolerate)
	wrong := m.Exclude.Validate()
	switch {
	case o.Tolerate == 0:
		return &protection.RefusedError{Option: protection.OptionTolerate, Err: errors.New("no run has said yet how many nodes may be lost")}
	case err != nil:
		return &protection.RefusedError{Err: err}
	case o.Retain < 0:
		return store.Inputf("%d snapshots to retain: want 0 or more", o.Retain)
	case wrong != nil:
		return store.Inputf("%w", wrong)
	case m.Generation > store.MostGeneration:
		return store.Inputf("the group is at generation %d, after which there is no other: recover what is missing, remove %s, and protect it as a new group", s.Newest, s.MetaText("the %s of every node"))
	}
	x.code, m.Field, m.DataChunks, m.ParityChunks = code, code.Field.Name(), code.Data, code.Parity
	return cmp.Or(guard.CheckDigest(m.Digest, s.Key), s.Complete(o.Force))
}

// scanned is what a node has to protect.
type scanned struct {
	Location guard.Location
	Balance  guard.Balance
	End      int64 // where the data ends
	Files    int
	Bytes    int64 // of these

	Special, Mounts []string // see tree.Listing
}

// scan lists the files of the local nodes, and gathers a summary of every node. It refuses names that are too long, nodes
// within each other, what hides data and, unless forced, files that are lost.
func (x *protectRun) scan(ctx context.Context) (err error) {
	x.works = make([]*pass.Work, len(x.s.Nodes))
	x.found, err = session.Collect(ctx, x.s, func(_ context.Context, i int, n *store.Node) (found scanned, err error) {
		l, err := tree.Scan(n.Dir, true, x.m.Rules())
		w := &pass.Work{Node: n, Listing: l, Data: &content.Data{}}
		if x.works[i] = w; errors.Is(err, tree.ErrLong) {
			return found, &protection.RefusedError{Err: err}
		}
		if err == nil {
			err = cmp.Or(x.s.Nested(n, l), guard.HidingData(n, l))
		}
		if err == nil {
			found.Location, err = guard.Locate(x.s, n)
		}
		if err != nil {
			return found, err
		}
		found.Special = printable.Texts(l.Special)
		for _, p := range l.Mounts {
			found.Mounts = append(found.Mounts, printable.Text(n.Path(p)))
		}
		return found, x.compare(w, &found)
	})
	return err
}

// compare compares the files of a node with those that were protected.
func (x *protectRun) compare(w *pass.Work, found *scanned) error {
	var recorded []*tree.Entry // that were protected
	if earlier := x.s.RecordOf[w.Index]; earlier != nil {
		recorded = earlier.Entries
	}
	l := w.Listing
	kept := guard.Kept(recorded, l, x.m.Exclude)
	if i := slices.IndexFunc(kept, func(e *tree.Entry) bool { return l.Unreadable(e.Path) != nil }); i >= 0 {
		return l.Unreadable(kept[i].Path) // it was protected
	}
	if err := guard.Lost(w.Node, l, kept); err != nil && !x.o.Force {
		return err
	}
	found.Balance = guard.BalanceOf(kept, l.Entries)
	limit := int64(0) // all is coded again: places are made afresh
	if x.m.Follows(x.s.Manifest) {
		limit = store.MostChunk
	}
	found.End = tree.Allocate(l.Entries, recorded, limit)
	for _, e := range l.Entries {
		if e.Type == tree.TypeFile {
			found.Files++
			found.Bytes += e.Size
		}
	}
	return nil
}

// report begins the report, and refuses what looks like an accident.
func (x *protectRun) report(ctx context.Context) error {
	s, m := x.s, x.m
	r := &ProtectReport{
		Step: s.Taken, Nodes: s.K, Tolerate: m.Tolerate, Field: m.Field, Digest: m.Digest, Generation: m.Generation,
		Exclude: m.Exclude, Notes: s.Notes(),
	}
	x.r = r
	for _, state := range s.States {
		r.Dirs, m.Names = append(r.Dirs, state.Dir), append(m.Names, state.Name)
	}
	var locations []guard.Location
	var bare []string
	for n, found := range x.found {
		if found.Files == 0 {
			bare = append(bare, s.Name(n))
		}
		locations = append(locations, found.Location)
		r.Deleted += found.Balance.Deleted
		r.Changed += found.Balance.Changed
		r.Files += found.Files
		r.DataBytes += found.Bytes
		r.Special, r.Mounts = append(r.Special, found.Special...), append(r.Mounts, found.Mounts...)
	}
	shared := guard.CheckDomains(locations, m.Tolerate)
	if !x.o.Accept.Deleted {
		r.Losses = guard.Losses(s, x.balance)
	}
	below := "other file systems that are protected, too"
	if m.OneFileSystem {
		below = "other file systems that are left out"
	}
	r.Notes = slices.Concat(r.Notes, shared, pass.NoteNames("not protected", r.Special), pass.NoteNames(below, r.Mounts), pass.NoteNames("no file is there, as where a mount is missing", bare))
	return x.checkAccidents(ctx)
}

func (x *protectRun) checkAccidents(ctx context.Context) error {
	return guard.CheckAccidents(ctx, x.s, x.balance, x.o.Accept, x.o.Force)
}

func (x *protectRun) balance(n int) *guard.Balance { return &x.found[n].Balance }

// settle decides where everything lies.
func (x *protectRun) settle(ctx context.Context) (err error) {
	m, end := x.m, int64(0)
	for _, found := range x.found {
		end = max(end, found.End)
	}
	if x.r.Cost, err = x.code.Cost(ctx, x.s.Setting(), end); err != nil {
		return err
	}
	m.Geometry(end, x.s.Manifest)
	for _, w := range x.works {
		w.Record = store.Record{Bytes: x.found[w.Index].End, Entries: w.Listing.Entries}
		w.Data = content.NewData(w.Dir, w.Listing.Entries, false)
	}
	x.r.ParityBytes, x.r.Blocks = m.ParityBytes(), m.Rows()*m.Nodes
	return nil
}

// clear removes what interrupted runs have left at the nodes here, among it generations that cannot come into force any
// more, and completes the one that is in force.
func (x *protectRun) clear(ctx context.Context) error {
	if err := x.s.EachLocal(func(_ int, n *store.Node) error {
		err := n.Tidy(x.s.States[n.Index])
		for _, h := range x.s.States[n.Index].Held {
			if err == nil && h.Generation > x.s.Generation {
				err = n.Drop(h.Generation)
			}
		}
		return err
	}); err != nil {
		return err
	}
	return x.s.RollForward(ctx, x.s.Generation, x.s.Root)
}

// write writes parity, records and manifest of a generation, which is not in force yet. It returns its root.
func (x *protectRun) write(ctx context.Context, p *pass.Pass) (root string, err error) {
	r := x.r
	x.s.Log.DebugContext(ctx, "protecting", "files", r.Files, "bytes", r.DataBytes)
	defer p.Close()
	if err := p.Open(x.o.Full, x.o.Force); err != nil {
		return "", err
	}
	text, files, err := p.Make(ctx, func(w *pass.Work) ([]byte, error) {
		if err := w.File.Finish(); err != nil {
			return nil, err
		}
		if p.Reread != nil {
			if _, err := w.Rescan(ctx, x.m, p.Reread, nil); err != nil {
				return nil, err
			}
		}
		w.RecordTouches()
		text, err := w.Record.Encode()
		return store.Pack(text), err
	})
	if err != nil {
		return "", err
	}
	for n, names := range p.Doubtful {
		x.found[n].Balance.AddChanged(names)
		r.Changed += len(names)
		for _, name := range names {
			r.Doubtful = append(r.Doubtful, tree.JoinPath(x.s.States[n].Dir, name))
		}
	}
	if err := x.checkAccidents(ctx); err != nil { // some programs set times back
		return "", err
	}
	slices.Sort(p.Coded)
	r.Coded, r.Read, r.Traffic, r.Torn, r.Vanished = len(slices.Compact(p.Coded)), p.ReadAll, p.Traffic, p.Torn, p.Vanished
	r.Notes = slices.Concat(r.Notes, pass.BusyNotes(p.Torn, p.Vanished), pass.NoteNames("parity was copied, as files there cannot have another name by a hard link", p.Unlinked))
	for _, list := range x.m.RecordFiles() {
		bytes := int64(len(text))
		for _, f := range list {
			bytes += f.Bytes
		}
		r.RecordBytes = max(r.RecordBytes, bytes)
	}
	return disk.Sum(text), x.s.EachSteady(ctx, func(_ context.Context, i int, n *store.Node) error {
		return n.Finish(x.s.Generation, x.m, files[i], text)
	})
}

// putInForce puts the generation in force, which all nodes have, and removes what has become too old.
func (x *protectRun) putInForce(ctx context.Context, root string) error {
	s, r := x.s, x.r
	s.Log.DebugContext(ctx, "written, and not in force yet", "generation", x.m.Generation, "coded_blocks", r.Coded)
	if err := s.Barrier(ctx); err != nil {
		return err
	}
	notes, err := s.Commit(ctx, x.m, root)
	r.Notes = append(r.Notes, notes...)
	if err == nil && s.Taken != nil && x.o.Retain > 0 {
		r.Removed, notes, err = retire(ctx, s, x.o.Retain)
		r.Notes = append(r.Notes, notes...)
	}
	return err
}
