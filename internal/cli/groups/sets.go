package groups

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"volley/files"
	"volley/group"
	"volley/group/protection"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/grouptext"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/sets"
	"volley/internal/ssh"
	"volley/transport"
	"volley/transport/local"
)

// setOptions is the flags that cut nodes into sets.
type setOptions struct {
	size    int               // 0: the nodes are one group
	domains map[string]string // by directory, of the group file; nil: it has none
	mine    *setReport        // the set of this rank
	lost    []*setReport      // sets of no rank, which rank 0 reports
	forget  bool              // sets of which no directory is named
	err     error             // all ranks find it
}

func (o *setOptions) add(f *pflag.FlagSet) {
	f.IntVar(&o.size, "group-size", 0, "cut the nodes into sets of at most `N`, each a group of its own; they run side by side")
}

// check refuses flags that do not go with sets, and sets what others say of them.
func (o *setOptions) check(cmd *cobra.Command) error {
	f := cmd.Flags()
	force, _ := f.GetBool("force") // or the verb has no such flag
	o.forget = force && cmd.Name() == "protect"
	if o.size != 0 && ofRoots(cmd) {
		return exit.Usagef("--group-size: snapshots are of one group: leave it out, and name the roots of one set")
	}
	for _, name := range []string{"believe", "to", "meta"} {
		if flag := f.Lookup(name); o.size != 0 && flag != nil && flag.Changed {
			return exit.Usagef("--%s is for one group: leave --group-size out, and name the directories of one set", name)
		}
	}
	return nil
}

// apart reports whether somebody has said what fails together.
func (o *setOptions) apart() bool { return o.domains != nil }

// domainOf returns the domain of a directory at a host.
func (o *setOptions) domainOf(dir, host string) string {
	if o.apart() {
		return o.domains[dir]
	}
	return host
}

// choose returns what to report of each set of members: of a lost one an error.
func (o *setOptions) choose(members []sets.Member) (reports []*setReport, err error) {
	list, err := sets.Choose(members, o.size, o.apart())
	if o.forget {
		list = slices.DeleteFunc(list, func(s sets.NodeSet) bool { return s.Members == nil })
	}
	for n, s := range list {
		r := &setReport{Set: n, Sets: len(list), Dirs: []string{}, Notes: s.Notes, members: s.Members}
		if s.Lost && !o.forget {
			r.err = exit.Wrongf("none of its directories is named, or all are empty: name them; protect --force gives up what they had")
		}
		for _, i := range s.Members {
			r.Dirs = append(r.Dirs, members[i].Name)
			if o.apart() {
				r.Domains = append(r.Domains, members[i].Domain)
			}
		}
		reports = append(reports, r)
	}
	return reports, err
}

// A setReport says what a verb has done with a set.
type setReport struct {
	Set     int             `json:"set"`
	Sets    int             `json:"sets"`
	Dirs    []string        `json:"dirs"` // by node
	Domains []string        `json:"domains,omitempty"`
	Notes   []string        `json:"notes,omitempty"`
	Report  json.RawMessage `json:"report,omitempty"` // the verb's
	Error   string          `json:"error,omitempty"`

	members []int        // by node
	body    bytes.Buffer // what the verb prints
	err     error
}

func (r *setReport) part() protection.SetIndex { return protection.SetIndex{Set: r.Set, Sets: r.Sets} }

// print prints the report in one go.
func (r *setReport) print(w io.Writer, asJSON bool) error {
	if r.err != nil && r.Error == "" {
		r.Error = session.Message(r.err)
	}
	var b bytes.Buffer
	if asJSON {
		r.Report = r.body.Bytes()
		if err := session.WriteJSON(&b, r); err != nil {
			return err
		}
	} else {
		var list []string
		for i, dir := range r.Dirs {
			if r.Domains != nil {
				dir += " (" + r.Domains[i] + ")"
			}
			list = append(list, dir)
		}
		printable.Fprintf(&b, "set %d of %d: %s\n", r.Set, r.Sets, cmp.Or(strings.Join(list, ", "), "no directory"))
		grouptext.Notes(&b, r.Notes)
		b.Write(r.body.Bytes())
	}
	_, err := w.Write(b.Bytes())
	return err
}

// inSets runs a verb on the nodes here: on each set of them side by side, or with the other ranks of this rank's set.
func (o *groupOptions) inSets(cmd *cobra.Command, dirs []string, verb func(t transport.Transport, dirs []string, part protection.SetIndex, w io.Writer) error) error {
	stdout := cmd.OutOrStdout()
	switch mine := o.sets.mine; {
	case o.sets.size == 0:
		part := protection.SetIndex{}
		if rank := o.Session.LaunchRank; rank != nil {
			part = rank.SetIndex
		}
		return verb(o.Party.Transport, dirs, part, stdout)
	case mine != nil:
		o.Party.Apart(func() {
			if mine.err == nil {
				mine.err = verb(o.Party.Transport, dirs, mine.part(), &mine.body)
			}
		})
		if o.Party.Rank() == 0 {
			mine.err = errors.Join(mine.err, mine.print(stdout, o.json))
		}
		if o.rank == 0 {
			return cmp.Or(mine.err, o.printSets(cmd.Context(), stdout, o.sets.lost))
		}
		return mine.err
	}
	if err := group.Apart(dirs); err != nil {
		return err
	}
	var members []sets.Member
	for _, dir := range dirs {
		members = append(members, sets.Member{Name: dir, Domain: o.sets.domains[dir], Identity: group.Identify(dir)})
	}
	reports, err := o.sets.choose(members)
	if err != nil {
		return err
	}
	return o.runSets(cmd.Context(), stdout, reports, runtime.GOMAXPROCS(0), func(r *setReport) error {
		return verb(local.New(1)[0], r.Dirs, r.part(), &r.body)
	})
}

// runSets runs the sets that are there side by side, so many at a time, and prints their reports.
func (o *groupOptions) runSets(ctx context.Context, stdout io.Writer, reports []*setReport, limit int, run func(r *setReport) error) error {
	var running errgroup.Group
	running.SetLimit(limit)
	for _, r := range reports {
		if r.err == nil {
			running.Go(func() error { r.err = run(r); return nil })
		}
	}
	running.Wait()
	return o.printSets(ctx, stdout, reports)
}

// printSets prints the reports of all sets, and says which have failed. It returns the exit code of the first of these.
func (o *groupOptions) printSets(ctx context.Context, stdout io.Writer, reports []*setReport) error {
	code := exit.OK
	for _, r := range reports {
		if err := r.print(stdout, o.json); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, r := range reports {
		if r.err != nil {
			o.Session.Fails(launch.Saying{Text: fmt.Sprintf("set %d: %s", r.Set, r.Error)})
		}
		code = cmp.Or(code, exit.Code(r.err))
	}
	if code == exit.OK {
		return nil
	}
	return exit.WithCode(exit.ErrSaid, code)
}

// Deal gives each rank a node.
func (o *groupOptions) Deal(l *launch.Launch, cmd *cobra.Command, start launch.Start, addresses []ssh.Address) error {
	if err := o.sets.check(cmd); err != nil {
		return err
	}
	start.Roots, start.Named = ofRoots(cmd), o.named
	verb := cmd.Name()
	// One set does not hold up the others. Recover knows a lost node's place only when it has seen all.
	l.Missing = verb == "status" || verb == "verify" || verb == "snapshots" || o.sets.size != 0 && verb != "recover"
	l.Advises = slices.Contains([]string{"status", "verify", "recover"}, verb)
	l.Down = l.Missing || (verb == "protect" || verb == "resize") && !start.Roots
	if f := cmd.Flags().Lookup("to"); f != nil && f.Changed {
		a, err := ssh.Parse(f.Value.String())
		if err != nil || a.Host == ranks.HostWord {
			return exit.Usagef("--to %s: want a directory here, or HOST:DIR", f.Value)
		}
		l.Missing, l.Down, l.Target = true, true, &a
		start.Flags = append(start.Flags, launch.Flag{Name: "to", Value: a.Path})
	}
	for _, a := range addresses {
		if a.Host == ranks.HostWord {
			return exit.Usagef("%s: name the hosts", ranks.HostWord)
		}
		x := ranks.Far(a, start)
		x.Paths, x.Dir, x.Start.Name = []string{a.Path}, a.Path, a.Name
		l.Ranks = append(l.Ranks, x)
	}
	return nil
}

// Meet has the ranks meet in the order of their nodes, or those of each set.
func (o *groupOptions) Meet(l *launch.Launch, cmd *cobra.Command) error {
	if o.sets.size != 0 {
		return o.setsAtHosts(l, cmd)
	}
	var ids []protection.Identity
	var names []string
	var added []bool
	for _, x := range l.Ranks {
		x.Node.Name = files.Name(x.Start.Name)
		ids, names = append(ids, x.Node), append(names, x.Start.Name)
		added = append(added, o.resizing != nil && slices.Contains(o.resizing.Add, x.Start.Name))
	}
	order := group.Order(ids)
	if o.resizing != nil {
		var err error
		if order, err = group.Resized(names, ids, added, o.resizing.Remove); err != nil {
			return err
		}
	}
	l.Order(order)
	return l.Meet(cmd.Context())
}

// Splits reports whether ranks are cut into sets, or come into the order of a resized group.
func (o *groupOptions) Splits() bool { return o.sets.size != 0 || o.resizing != nil }

// Settled returns the name of the set of this rank, once its nodes are shared.
func (o *groupOptions) Settled() (set string, err error) {
	if o.sets.mine != nil {
		set = fmt.Sprint("set ", o.sets.mine.Set)
	}
	return set, o.sets.err
}

// A rankSays is what a rank says of its node when the ranks meet.
type rankSays struct {
	sets.Member
	Size  int
	Apart bool
	Added bool // to a group that is resized
	Error string
}

// Says returns what this rank says. It settles which directory is its own.
func (o *groupOptions) Says(rank, size int) []byte {
	host, _ := os.Hostname()
	o.rank = rank
	switch len(o.dirs) {
	case 1:
		o.dir = o.dirs[0]
	case size:
		o.dir = o.dirs[rank]
	}
	o.dir = strings.ReplaceAll(o.dir, ranks.RankWord, fmt.Sprint(rank))
	x := rankSays{Size: o.sets.size, Apart: o.sets.apart(), Member: sets.Member{Name: host + ":" + o.dir, Identity: protection.Identity{Node: -1}}}
	if o.dir != "" {
		x.Identity = launch.Identify(o.dir, o.roots)
	}
	if o.resizing != nil {
		for i, dir := range o.resizing.Add {
			o.resizing.Add[i] = strings.ReplaceAll(dir, ranks.RankWord, fmt.Sprint(rank))
		}
		x.Added = slices.Contains(o.resizing.Add, o.dir)
	}
	if o.sets.size != 0 {
		if x.Domain = o.sets.domainOf(o.dir, host); o.dir == "" {
			x.Error = "--group-size: give each process one directory, its own, or as many as there are processes"
		}
	}
	text, _ := json.Marshal(x)
	return text
}

// Share returns the ranks of each set, or of all as one, by what ranks have said, in the order of their nodes.
func (o *groupOptions) Share(texts [][]byte, rank int) (ranks [][]int) {
	answers, members, ids := make([]rankSays, len(texts)), make([]sets.Member, len(texts)), make([]protection.Identity, len(texts))
	for r, text := range texts {
		if json.Unmarshal(text, &answers[r]) != nil {
			answers[r].Node = -1
		}
		x := answers[r]
		members[r], ids[r] = x.Member, x.Identity
		switch {
		case o.sets.err != nil:
		case x.Error != "":
			o.sets.err = exit.Usagef("rank %d: %s", r, x.Error)
		case x.Size != answers[0].Size || x.Apart != answers[0].Apart:
			o.sets.err = exit.Usagef("ranks 0 and %d were started with different --group-size or group files: give all the same", r)
		}
	}
	if o.sets.err == nil && o.sets.size != 0 {
		var reports []*setReport
		if reports, o.sets.err = o.sets.choose(members); o.sets.err == nil {
			for _, r := range reports {
				if r.members == nil {
					o.sets.lost = append(o.sets.lost, r)
					continue
				}
				if ranks = append(ranks, r.members); slices.Contains(r.members, rank) {
					o.sets.mine = r
				}
			}
			return ranks
		}
	}
	if o.resizing == nil || o.dir == "" { // where a process has several nodes they are in order
		return [][]int{group.Order(ids)}
	}
	names, added := make([]string, len(answers)), make([]bool, len(answers))
	for r, x := range answers {
		_, names[r], _ = strings.Cut(x.Name, ":")
		added[r] = x.Added
	}
	order, err := group.Resized(names, ids, added, o.resizing.Remove)
	if err != nil {
		o.sets.err, order = cmp.Or(o.sets.err, err), group.Order(ids)
	}
	return [][]int{order}
}

// setsAtHosts has the ranks of each set meet, and prints how the sets have ended.
func (o *groupOptions) setsAtHosts(l *launch.Launch, cmd *cobra.Command) error {
	var members []sets.Member
	for _, x := range l.Ranks {
		x.Node.Name = files.Name(x.Start.Name)
		m := sets.Member{Name: x.Start.Name, Domain: o.sets.domainOf(x.Start.Name, x.HostName), Identity: x.Node}
		if slices.ContainsFunc(members, func(o sets.Member) bool { return o.Name == m.Name }) {
			return exit.Usagef("%s is there twice: give every node its own", m.Name)
		}
		members = append(members, m)
	}
	reports, err := o.sets.choose(members)
	if err != nil {
		return err
	}
	return o.runSets(cmd.Context(), l.Output, reports, -1, func(r *setReport) error {
		var ranks []*launch.Far
		for _, i := range r.members {
			ranks = append(ranks, l.Ranks[i])
		}
		set := l.Set(ranks, r.part(), &r.body)
		err := set.Meet(cmd.Context())
		if errors.Is(err, exit.ErrSaid) {
			r.Error = set.EndingText()
		}
		return err
	})
}

// ofRoots reports whether the directories that a verb is given are roots of snapshots.
func ofRoots(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("step") || cmd.Name() == "snapshots"
}
