// Package ranks makes a process one of those that run a verb together: by --comm, by a launcher, or at hosts by ssh.
package ranks

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley"
	"volley/internal/cli/session"
	"volley/internal/delay"
	"volley/internal/exit"
	"volley/internal/groupfile"
	"volley/internal/launch"
	"volley/internal/selection"
	"volley/internal/ssh"
	"volley/transport/local"
)

// A comm is a way for processors to talk.
type comm struct {
	name string // as --comm takes it

	// join returns this process's party, or an error where the others do not come within the time of the flags.
	join func(ctx context.Context, o *Joining) (*session.Party, error)
}

// autoComm takes the comm that the environment and the flags call for.
const autoComm = "auto"

// comms are the values of --comm, the default first.
var comms = []comm{
	{autoComm, nil},
	{"local", func(context.Context, *Joining) (*session.Party, error) {
		return &session.Party{Transport: local.New(1)[0]}, nil
	}},
	{"tcp", joinTCP},
}

// noMPI says why a program has not got --comm mpi.
const noMPI = "this volley was built without MPI: build it with go build -tags mpi ./cmd/volley"

func findComm(name string) (comm, error) {
	if i := slices.IndexFunc(comms, func(c comm) bool { return c.name == name }); i >= 0 {
		return comms[i], nil
	}
	if name == "mpi" {
		return comm{}, exit.Usagef("--comm mpi: %s", noMPI)
	}
	return comm{}, exit.Usagef("--comm %q: want %s", name, strings.Join(Names(), " or "))
}

// Names are the values of --comm, the default first.
func Names() (list []string) {
	for _, c := range comms {
		list = append(list, c.name)
	}
	return list
}

// RankWord stands for a number in the names of files: of a processor, or of a process.
const RankWord = "{rank}"

// Join joins the others of --comm, or those of the session before, once in a session. They are to do the same.
func (o *Joining) Join(ctx context.Context) (err error) {
	s := o.Session
	if s.Party == nil {
		err = o.enter(ctx)
	}
	if err == nil {
		err = o.slow(ctx, s.Party)
	}
	if err == nil && s.Verb != "" {
		err = volley.Greet(ctx, s.Party.Transport, s.Verb, o.Timeout)
	}
	if err == nil {
		s.Log.Info("joined", "comm", s.Party.Name, "rank", s.Party.Rank(), "of", s.Party.Size())
	}
	return err
}

// enter makes this process one of those of --comm, which it settles.
func (o *Joining) enter(ctx context.Context) (err error) {
	s := o.Session
	defer func() { s.Alone = s.Party == nil }()
	c := comm{name: "tcp"}
	if s.LaunchRank != nil {
		c.join = joinLaunch
	} else {
		if o.Comm == autoComm {
			if o.Comm, err = o.engine(s.Getenv); err != nil {
				return err
			}
		}
		if c, err = findComm(o.Comm); err != nil {
			return err
		}
	}
	o.Comm = c.name
	if s.Party, err = c.join(ctx, o); err == nil {
		s.Party.Name = c.name
		if o.Nodes != nil {
			s.Party.Set, err = o.Nodes.Settled()
		}
	}
	return err
}

// Joining is the flags of how this process takes part in a run.
type Joining struct {
	Session  *session.Invocation
	Comm     string
	Ranks    Flags
	Nodes    Nodes // nil: ranks have none
	Quiet    bool
	interval time.Duration  // between lines of progress; 0: one line, on a terminal
	sends    int64          // bytes a second; 0: no limit
	Party    *session.Party // of comm, once join has returned
	Memory   int64
	Timeout  time.Duration
	ssh      string // --ssh
	program  string // --remote-path

	FileName string             // of a group
	File     groupfile.Document // of that name
}

// Nodes are what ranks have in a verb on nodes.
type Nodes interface {
	// Says returns what this rank tells all others of its node. By that, Share returns the ranks of each set, or of all as
	// one, in the order of their nodes. Then Settled returns the name of this rank's set, "" without sets, or why there are none.
	Says(rank, size int) []byte
	Share(texts [][]byte, rank int) [][]int
	Settled() (set string, err error)

	// Splits reports whether ranks may come into another order, or into several sets.
	Splits() bool

	// Deal gives each address to a rank of the launch, which has started when Meet is called, to have the ranks meet.
	Deal(l *launch.Launch, cmd *cobra.Command, start launch.Start, addresses []ssh.Address) error
	Meet(l *launch.Launch, cmd *cobra.Command) error
}

// Add adds the flags; the help names the owner of the memory.
func (o *Joining) Add(f *pflag.FlagSet, owner string) {
	f.StringVar(&o.Comm, "comm", autoComm, "how processors talk: auto, what started this process decides; local, in this process; tcp, by TCP, in processes on any machines; mpi, by MPI, where it is built in, in the processes that mpirun starts")
	o.Timeout = volley.DefaultTimeout
	f.Var(selection.Interval(&o.Timeout), "timeout", "give up when no message comes for this long; 0: never")
	o.Ranks.Add(f)
	f.Var(selection.Bytes(&o.Memory, "64MiB", 1, "a size such as 64MiB"), "memory", "packet memory of each "+owner)
	f.Var(Rate(&o.sends), "limit-rate", "`BYTES` a second that each process sends at most, such as 100MB")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print errors and warnings only, and --json")
	f.Var(selection.Interval(&o.interval), "progress", "`TIME` between lines of progress of each process (default: one line, rewritten, on a terminal, else none)")
}

// Progress returns what hears how far this rank is, or nil: nobody does.
func (o *Joining) Progress() func(finished, added int64) {
	s := o.Session
	switch leads := o.Party.Rank() == 0 && (o.Party.Listener == nil || o.Party.Listener.Rank() == 0); {
	case s.LaunchRank != nil && s.LaunchRank.Watch:
		return s.LaunchRank.Progress
	case s.LaunchRank != nil, o.Quiet, !leads && o.interval == 0:
		return nil
	}
	return s.Progress(o.interval)
}

// GroupFlag is the flag that names a group file: what a user would type for a group in every run.
const GroupFlag = "group"

// FromFile returns the directories of the group file, if one is named, or else the arguments. Flags of the file count
// where the command line has none of them.
func (o *Joining) FromFile(cmd *cobra.Command, args []string) ([]string, error) {
	if o.Session.LaunchRank != nil { // a launch has done so
		return args, nil
	}
	if err := Named(cmd.Flags(), args); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(GroupFlag) {
		return args, nil
	}
	if len(args) > 0 {
		return nil, exit.Usagef("--%s %s: it has the directories: leave %s out", GroupFlag, o.FileName, args[0])
	}
	g, err := groupfile.Read(o.FileName)
	if err != nil {
		return nil, err
	}
	for _, key := range groupfile.Keys {
		f := cmd.Flags().Lookup(key)
		if f == nil || f.Changed {
			continue
		}
		for _, value := range g.Flags[key] {
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				return nil, exit.Usagef("%s:%d: %w", o.FileName, g.Lines[key], session.FlagError(cmd, err))
			}
		}
	}
	o.File = *g
	return g.Dirs, nil
}

// Named returns an error where a directory or file has an empty name, as by a variable of a script that is not set.
func Named(f *pflag.FlagSet, dirs []string) (err error) {
	if slices.Contains(dirs, "") {
		return exit.Usagef("a directory has an empty name: is a variable not set?")
	}
	f.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, repeatable := f.Value.(pflag.SliceValue); repeatable {
			values = list.GetSlice()
		}
		if kind, _ := pflag.UnquoteUsage(f); slices.Contains(values, "") && slices.Contains([]string{"DIR", "FILE", "NODE"}, kind) {
			err = exit.Usagef("--%s: the %s has an empty name: is a variable not set?", f.Name, kind)
		}
	})
	return err
}

// slow makes a party this process's own that sends no faster than it may: those of later sessions have other limits.
func (o *Joining) slow(ctx context.Context, p *session.Party) error {
	o.Party = p
	switch {
	case o.sends == 0:
		return nil
	case !p.Job():
		return exit.Usagef("--limit-rate: all is in this process, which sends nothing: leave it out")
	}
	slowed := *p
	slowed.Transport = delay.Limit(ctx, p.Transport, o.sends)
	o.Party = &slowed
	return nil
}

// Rate is a flag of bytes a second: with fewer, messages, or what they wait for, would take longer than others wait for
// them.
func Rate(value *int64) pflag.Value {
	return selection.Bytes(value, "", 1<<20, "bytes a second such as 20MB, 1MiB or more")
}
