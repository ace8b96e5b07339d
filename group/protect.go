package group

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
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

	// Strict returns, with the report, a [*TornError] where files were in use so that they are protected torn, or not, or
	// are doubtful, and a [*CrowdedError] where one host or disk has more nodes than may be lost.
	Strict bool

	// Full reads also what has not changed, by size, times and inode, and compares it with what was protected.
	Full bool
}

// A ProtectReport says what Protect has done.
type ProtectReport struct {
	Step        *int64                 `json:"step,omitempty"`    // of the snapshot
	Removed     []int64                `json:"removed,omitempty"` // older snapshots
	Nodes       int                    `json:"nodes"`
	Dirs        []string               `json:"places"`  // directories, by node
	Hosts       []string               `json:"hosts"`   // that have them, by node
	Devices     []string               `json:"devices"` // that they lie on, by node, as their hosts name them; "": not known
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

	Special []string   `json:"special,omitempty"` // what is neither file, directory nor symbolic link, or a directory that may not be listed: it is not protected
	Mounts  []string   `json:"mounts,omitempty"`  // directories below nodes in which other file systems begin
	Exclude []string   `json:"exclude,omitempty"` // patterns of what is not protected
	Plan    []NodePlan `json:"plan,omitempty"`    // of a dry run, by node
	Seconds float64    `json:"seconds"`

	crowded []string // hosts and disks that have more nodes than may be lost
}

// A NodePlan says what a run would protect at a node.
type NodePlan struct {
	Files   int                  `json:"files"`
	Bytes   int64                `json:"bytes"`             // of these
	Coded   int64                `json:"coded_bytes"`       // of these: of files that are new, have changed, or come to another place
	Changes []protection.Finding `json:"changes,omitempty"` // New, Changed and Deleted
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
	r, err := run(ctx, g, session.Verb{Name: "protect", Args: o, Access: store.Access{Writes: !o.DryRun, Needs: true}}, func(ctx context.Context, s *session.Session, _ *surroundings) (*ProtectReport, error) {
		return protect(ctx, s, o)
	})
	if err != nil {
		return nil, err
	}
	return r, r.strict(o)
}

// Warnings returns what somebody has to look at, although all is protected.
func (r *ProtectReport) Warnings() []string {
	if r == nil {
		return nil
	}
	return pass.DoubtNotes(r.Doubtful)
}

// strict returns what o.Strict asks for, of a run that has put its generation in force.
func (r *ProtectReport) strict(o ProtectOptions) (err error) {
	if r == nil || !o.Strict {
		return nil
	}
	if len(r.Torn)+len(r.Vanished)+len(r.Doubtful) > 0 {
		err = &TornError{Torn: r.Torn, Vanished: r.Vanished, Doubtful: r.Doubtful}
	}
	if r.crowded != nil {
		err = errors.Join(err, &CrowdedError{Domains: r.crowded})
	}
	return err
}

// A TornError names what could not be protected as it was at one moment, where [ProtectOptions.Strict] asks for that. The
// protection is in force.
type TornError struct {
	Torn     []string // files that were written to while they were read, twice
	Vanished []string // files that went while they were read
	Doubtful []string // files with other content under the length and time that they had
}

// ExitCode returns 3, that of a result that is not as it should be.
func (e *TornError) ExitCode() int { return 3 }

func (e *TornError) Error() string {
	return "protected, but not all as it should be: " + strings.Join(slices.Concat(pass.BusyNotes(e.Torn, e.Vanished), pass.DoubtNotes(e.Doubtful)), "; ")
}

// A CrowdedError says that losing one host or disk loses more nodes than may be lost, where Strict of the options asks
// for that. The protection is in force, unless it was a dry run.
type CrowdedError struct {
	Domains []string // which nodes are where, for people
}

// ExitCode returns 3, that of a result that is not as it should be.
func (e *CrowdedError) ExitCode() int { return 3 }

func (e *CrowdedError) Error() string {
	return "more nodes than may be lost are in one place: " + strings.Join(e.Domains, "; ")
}

// An UnsettledError is why a run has ended while its generation came into force, or after that: the next run completes it.
// After any other error of Protect the earlier protection is in force.
type UnsettledError struct{ Err error }

func (e *UnsettledError) Error() string { return e.Err.Error() }

func (e *UnsettledError) Unwrap() error { return e.Err }

func protect(ctx context.Context, s *session.Session, o ProtectOptions) (*ProtectReport, error) {
	start := time.Now()
	earlier := s.Manifest
	if earlier != nil {
		o.Tolerate = cmp.Or(o.Tolerate, earlier.Tolerate)
	}
	m := nextManifest(s, &o)
	code, err := checkManifest(s, m, &o)
	if err != nil {
		return nil, s.SharedError(ctx, err)
	}
	works, found, err := scan(ctx, s, m, &o)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, w := range works {
			w.Data.Close()
		}
	}()
	r := &ProtectReport{Step: s.Taken, Nodes: s.K, Tolerate: o.Tolerate, Digest: m.Digest, Generation: m.Generation, Notes: s.Notes()}
	for _, x := range s.States {
		r.Dirs, m.Names = append(r.Dirs, x.Dir), append(m.Names, x.Name)
	}
	var locations []guard.Location
	var balances []guard.Balance
	for _, x := range found {
		locations, balances = append(locations, x.Location), append(balances, x.Balance)
		r.Deleted += x.Balance.Deleted
		r.Changed += x.Balance.Changed
	}
	domains := guard.CheckDomains(locations, o.Tolerate)
	r.Hosts, r.Devices, r.crowded = domains.Hosts, domains.Devices, domains.Crowded
	unusual, err := guard.CheckAccidents(ctx, s, balances, o.Accept, o.Force)
	if err != nil {
		return nil, err
	}
	r.Notes = slices.Concat(r.Notes, domains.Notes, unusual)
	if err := settle(ctx, s, m, works, found, code, r); err != nil {
		return nil, err
	}
	r.Field, r.ParityBytes, r.Blocks = m.Field, m.ParityBytes(), m.Rows()*m.Nodes
	r.Exclude = m.Exclude
	if o.DryRun {
		for _, x := range found {
			r.Plan = append(r.Plan, x.NodePlan)
		}
		p, err := pass.NewPass(s, m, works)
		if err == nil {
			err = guard.CheckParity(ctx, s, p)
		}
		return r, err
	}
	if err := dropPending(s); err != nil {
		return nil, err
	}
	if err := s.RollForward(ctx, s.Generation, s.Root); err != nil {
		return nil, err
	}
	s.Log.DebugContext(ctx, "protecting", "files", r.Files, "bytes", r.DataBytes)
	root, err := write(ctx, s, m, works, balances, &o, r)
	if err != nil {
		for _, n := range s.Nodes { // nobody has committed it, as this rank has not come so far
			n.Drop(m.Generation)
		}
		return nil, err
	}
	s.Log.DebugContext(ctx, "written, and not in force yet", "generation", m.Generation, "coded_blocks", r.Coded)
	if err := s.Barrier(ctx); err != nil { // others may commit it
		return nil, &UnsettledError{err}
	}
	kept, err := s.Commit(ctx, m, root)
	if err != nil {
		return nil, &UnsettledError{err}
	}
	r.Notes = append(r.Notes, kept...)
	if s.Taken != nil && o.Retain > 0 {
		var notes []string
		if r.Removed, notes, err = retire(ctx, s, o.Retain); err != nil {
			return nil, &UnsettledError{err}
		}
		r.Notes = append(r.Notes, notes...)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
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

// checkManifest returns the code of a generation, or why it cannot be made.
func checkManifest(s *session.Session, m *store.Manifest, o *ProtectOptions) (code *erasure.Code, err error) {
	code, err = erasure.NewCode(s.K, o.Tolerate)
	switch wrong := m.Exclude.Validate(); {
	case o.Tolerate == 0:
		err = &protection.RefusedError{Option: protection.OptionTolerate, Err: errors.New("no run has said yet how many nodes may be lost")}
	case err != nil:
		err = &protection.RefusedError{Err: err}
	case o.Retain < 0:
		err = store.Inputf("%d snapshots to retain: want 0 or more", o.Retain)
	case wrong != nil:
		err = store.Inputf("%w", wrong)
	case m.Generation > store.MostGeneration:
		err = store.Inputf("the group is at generation %d, after which there is no other: recover what is missing, remove %s, and protect it as a new group", s.Newest, s.MetaText("the %s of every node"))
	default:
		err = cmp.Or(guard.CheckDigest(m.Digest, s.Key), s.Complete(o.Force))
	}
	return code, err
}

// dropPending removes what interrupted runs have left at the nodes here: generations that cannot come into force any more.
func dropPending(s *session.Session) error {
	return s.EachLocal(func(_ int, n *store.Node) error {
		err := n.Tidy(s.States[n.Index])
		for _, h := range s.States[n.Index].Held {
			if err == nil && h.Generation > s.Generation {
				err = n.Drop(h.Generation)
			}
		}
		return err
	})
}

// scanned is what a node has to protect.
type scanned struct {
	Location guard.Location
	Balance  guard.Balance
	End      int64 // where the data ends

	Special, Mounts []string // see tree.Listing
	NodePlan
}

// scan lists the files of the local nodes, and gathers a summary of every node. It refuses names that are too long, nodes
// within each other, what hides data and, unless forced, files that are lost.
func scan(ctx context.Context, s *session.Session, m *store.Manifest, o *ProtectOptions) ([]*pass.Work, []scanned, error) {
	works := make([]*pass.Work, len(s.Nodes))
	lists, err := session.Collect(ctx, s, func(_ context.Context, i int, n *store.Node) (x scanned, err error) {
		l, err := tree.Scan(n.Dir, true, m.Rules())
		works[i] = &pass.Work{Node: n, Listing: l, Data: &content.Data{}}
		if errors.Is(err, tree.ErrLong) {
			return x, &protection.RefusedError{Err: err}
		}
		if err == nil {
			err = cmp.Or(s.Nested(n, l), guard.HidingData(n, l))
		}
		if err != nil {
			return x, err
		}
		if x.Location, err = guard.Locate(s, n); err != nil {
			return x, err
		}
		x.Special = printable.Texts(l.Special)
		for _, p := range l.Mounts {
			x.Mounts = append(x.Mounts, printable.Text(n.Path(p)))
		}
		var recorded []*tree.Entry // that were protected
		if x := s.RecordOf[n.Index]; x != nil {
			recorded = x.Entries
		}
		kept := slices.DeleteFunc(slices.Clone(recorded), func(e *tree.Entry) bool { return m.Exclude.Entry(e) || l.LeftOut(e.Path) })
		if i := slices.IndexFunc(kept, func(e *tree.Entry) bool { return l.Unreadable(e.Path) != nil }); i >= 0 {
			return x, l.Unreadable(kept[i].Path) // it was protected
		}
		if err := guard.Lost(n, l, kept); err != nil && !o.Force {
			return x, err
		}
		x.Balance = guard.BalanceOf(kept, l.Entries)
		limit := int64(0) // all is coded again: places are made afresh
		if m.Follows(s.Manifest) {
			limit = store.MostChunk
		}
		x.End = tree.Allocate(l.Entries, recorded, limit)
		if o.DryRun {
			x.Coded, x.Changes = guard.Changes(l.Entries, recorded)
		}
		for _, e := range l.Entries {
			if e.Type == tree.TypeFile {
				x.Files++
				x.Bytes += e.Size
			}
		}
		if limit == 0 {
			x.Coded = x.Bytes
		}
		return x, nil
	})
	return works, lists, err
}

// settle decides where everything lies.
func settle(ctx context.Context, s *session.Session, m *store.Manifest, works []*pass.Work, found []scanned, code *erasure.Code, r *ProtectReport) (err error) {
	var dataBytes int64
	for _, x := range found {
		dataBytes = max(dataBytes, x.End)
		r.Files += x.Files
		r.DataBytes += x.Bytes
		r.Special, r.Mounts = append(r.Special, x.Special...), append(r.Mounts, x.Mounts...)
	}
	below := "other file systems that are protected, too"
	if m.OneFileSystem {
		below = "other file systems that are left out"
	}
	r.Notes = slices.Concat(r.Notes, pass.NoteNames("not protected", r.Special), pass.NoteNames(below, r.Mounts))
	if r.Cost, err = code.Cost(ctx, s.Setting(), dataBytes); err != nil {
		return err
	}
	m.Field, m.DataChunks, m.ParityChunks = code.Field.Name(), code.Data, code.Parity
	m.Geometry(dataBytes, s.Manifest)
	for _, w := range works {
		w.Data = content.NewData(w.Dir, w.Listing.Entries, false)
		w.Record = store.Record{Bytes: found[w.Index].End, Entries: w.Listing.Entries}
	}
	return nil
}

// write writes parity, records and manifest of a generation, which is not in force yet. It returns its root.
func write(ctx context.Context, s *session.Session, m *store.Manifest, works []*pass.Work, balances []guard.Balance, o *ProtectOptions, r *ProtectReport) (root string, err error) {
	p, err := pass.NewPass(s, m, works)
	if err != nil {
		return "", err
	}
	defer p.Close()
	if err := guard.CheckParity(ctx, s, p); err != nil {
		return "", err
	}
	if err := p.Open(o.Full, o.Force); err != nil {
		return "", err
	}
	text, files, err := p.Make(ctx, func(w *pass.Work) ([]byte, error) {
		if err := w.File.Finish(); err != nil {
			return nil, err
		}
		if p.Reread != nil {
			if _, err := w.Rescan(ctx, m, p.Reread, nil); err != nil {
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
		balances[n].AddChanged(names)
		r.Changed += len(names)
		for _, name := range names {
			r.Doubtful = append(r.Doubtful, tree.JoinPath(s.States[n].Dir, name))
		}
	}
	if _, err := guard.CheckAccidents(ctx, s, balances, o.Accept, o.Force); err != nil { // some programs set times back
		return "", err
	}
	slices.Sort(p.Coded)
	r.Coded, r.Read, r.Traffic = len(slices.Compact(p.Coded)), p.ReadAll, p.Traffic
	r.Torn, r.Vanished, r.Notes = p.Torn, p.Vanished, append(r.Notes, pass.BusyNotes(p.Torn, p.Vanished)...)
	r.Notes = append(r.Notes, pass.NoteNames("parity was copied, as files there cannot have another name by a hard link", p.Unlinked)...)
	for _, list := range m.RecordFiles() {
		bytes := int64(len(text))
		for _, f := range list {
			bytes += f.Bytes
		}
		r.RecordBytes = max(r.RecordBytes, bytes)
	}
	return disk.Sum(text), s.EachSteady(ctx, func(_ context.Context, i int, n *store.Node) error {
		return n.Finish(s.Generation, m, files[i], text)
	})
}
