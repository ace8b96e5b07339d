package groups

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"volley/group"
	"volley/internal/cli/ranks"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/sets"
	"volley/internal/ssh"
)

// deal gives each rank a node.
func (o *groupOptions) Deal(l *launch.Launch, cmd *cobra.Command, start launch.Start, at []ssh.Address) error {
	if err := o.sets.check(cmd); err != nil {
		return err
	}
	start.Roots, start.Variable = ofRoots(cmd), o.sets.variable()
	verb := cmd.Name()
	// One set does not hold up the others. Recover knows a lost node's place only when it has seen all.
	l.Missing = verb == "status" || verb == "verify" || verb == "snapshots" || o.sets.size != 0 && verb != "recover"
	l.Recovers = verb == "recover"
	l.Down = l.Missing || (verb == "protect" || verb == "resize") && !start.Roots
	if f := cmd.Flags().Lookup("to"); f != nil && f.Changed {
		a, err := ssh.Parse(f.Value.String())
		if err != nil || a.Host == ranks.HostWord {
			return exit.Usagef("--to %s: want a directory here, or HOST:DIR", f.Value)
		}
		l.Missing, l.Down, l.To = true, true, &a
		start.Flags = append(start.Flags, launch.Flag{Name: "to", Value: a.Path})
	}
	for _, a := range at {
		if a.Host == ranks.HostWord {
			return exit.Usagef("%s: name the hosts", ranks.HostWord)
		}
		x := ranks.Far(a, start)
		x.Paths, x.Dir, x.Start.Name = []string{a.Path}, a.Path, a.Name
		x.Order = o.orders[a.Name]
		x.Commanded = x.Order != nil
		l.Ranks = append(l.Ranks, x)
	}
	return nil
}

// meet has the ranks meet in the order of their nodes, or those of each set.
func (o *groupOptions) Meet(l *launch.Launch, cmd *cobra.Command) error {
	if o.sets.size != 0 {
		return o.setsAtHosts(l, cmd)
	}
	var ids []group.Identity
	var names []string
	var added []bool
	for _, x := range l.Ranks {
		x.Node.Name = group.Name(x.Start.Name)
		ids, names = append(ids, x.Node), append(names, x.Start.Name)
		added = append(added, o.resizing != nil && slices.Contains(o.resizing.Add, x.Start.Name))
	}
	order := group.Order(ids)
	if o.resizing != nil {
		var err error
		if order, err = group.Resized(names, ids, added, o.resizing.Remove); err != nil {
			return err
		}
		for _, i := range order[len(order)-len(o.resizing.Remove):] {
			o.removed = append(o.removed, names[i])
		}
	}
	l.Order(order)
	return l.Meet(cmd.Context())
}

// splits reports whether ranks are cut into sets, or come into the order of a resized group.
func (o *groupOptions) Splits() bool { return o.sets.size != 0 || o.resizing != nil }

// settled returns the name of the set of this rank, once its nodes are shared.
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

// says returns what this rank says. It settles which directory is its own.
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
	x := rankSays{Size: o.sets.size, Apart: o.sets.apart(), Member: sets.Member{Name: host + ":" + o.dir, Identity: group.Identity{Node: -1}}}
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
		var err error
		if x.Domain, err = o.sets.domainOf(o.Session.Getenv(o.sets.variable()), o.dir, host); err == nil && o.dir == "" {
			err = exit.Usagef("--group-size: give each process one directory, its own, or as many as there are processes")
		}
		if err != nil {
			x.Error = err.Error()
		}
	}
	text, _ := json.Marshal(x)
	return text
}

// share returns the ranks of each set, or of all as one, by what ranks have said, in the order of their nodes.
func (o *groupOptions) Share(said [][]byte, rank int) (ranks [][]int) {
	all, members, ids := make([]rankSays, len(said)), make([]sets.Member, len(said)), make([]group.Identity, len(said))
	for r, text := range said {
		if json.Unmarshal(text, &all[r]) != nil {
			all[r].Node = -1
		}
		x := all[r]
		members[r], ids[r] = x.Member, x.Identity
		switch {
		case o.sets.err != nil:
		case x.Error != "":
			o.sets.err = exit.Usagef("rank %d: %s", r, x.Error)
		case x.Size != all[0].Size || x.Apart != all[0].Apart:
			o.sets.err = exit.Usagef("ranks 0 and %d were started with different --group-size or --domain: give all the same", r)
		}
	}
	if o.sets.err == nil && o.sets.size != 0 {
		var list []sets.Set
		var reports []*setReport
		if list, reports, o.sets.err = o.sets.choose(members); o.sets.err == nil {
			for n, s := range list {
				if s.Members == nil {
					o.sets.lost = append(o.sets.lost, reports[n])
					continue
				}
				if ranks = append(ranks, s.Members); slices.Contains(s.Members, rank) {
					o.sets.mine = reports[n]
				}
			}
			return ranks
		}
	}
	if o.resizing == nil || o.dir == "" { // where a process has several nodes they are in order
		return [][]int{group.Order(ids)}
	}
	names, added := make([]string, len(all)), make([]bool, len(all))
	for r, x := range all {
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
		x.Node.Name = group.Name(x.Start.Name)
		m := sets.Member{Name: x.Start.Name, Identity: x.Node}
		if slices.ContainsFunc(members, func(o sets.Member) bool { return o.Name == m.Name }) {
			return exit.Usagef("%s is there twice: give every node its own", m.Name)
		}
		if x.Absent == "" || x.Variable == "" { // else nobody knows
			var err error
			if m.Domain, err = o.sets.domainOf(x.Domain, x.Start.Name, x.HostName); err != nil {
				return err
			}
		}
		members = append(members, m)
	}
	list, reports, err := o.sets.choose(members)
	if err != nil {
		return err
	}
	return o.runSets(cmd.Context(), l.Out, reports, -1, func(n int, r *setReport) error {
		var ranks []*launch.Far
		for _, i := range list[n].Members {
			ranks = append(ranks, l.Ranks[i])
		}
		set := l.Set(ranks, r.part(), &r.body)
		err := set.Meet(cmd.Context())
		if errors.Is(err, exit.ErrSaid) {
			r.Error = set.Said()
		}
		return err
	})
}

// ofRoots reports whether the directories that a verb is given are roots of snapshots.
func ofRoots(cmd *cobra.Command) bool {
	on := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f != nil && f.Changed && f.Value.String() != "false"
	}
	return on("root") || on("latest") || on("step") || cmd.Name() == "snapshots"
}
