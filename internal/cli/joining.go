package cli

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley"
	"volley/collective"
	"volley/internal/delay"
	"volley/internal/exit"
	"volley/internal/groupfile"
	"volley/internal/launch"
	"volley/internal/selection"
	"volley/internal/ssh"
	"volley/transport"
	"volley/transport/local"
	"volley/tune"
)

// A comm is a way for processors to talk.
type comm struct {
	name string // as --comm takes it
	doc  string

	// join returns this process's place, or an error where the others do not come within the time of the flags.
	join func(ctx context.Context, o *joining) (*party, error)
}

// autoComm takes the comm that the environment and the flags call for.
const autoComm = "auto"

// comms are the values of --comm, the default first.
var comms = []comm{
	{autoComm, "what started this process decides", nil},
	{"local", "in this process", func(context.Context, *joining) (*party, error) { return &party{Transport: local.New(1)[0]}, nil }},
	{"grpc", "by gRPC, in processes on any machines", joinGRPC},
}

// missing says of values of --comm why this program has not got them.
var missing = map[string]string{}

func findComm(name string) (comm, error) {
	for _, c := range comms {
		if c.name == name {
			return c, nil
		}
	}
	if why := missing[name]; why != "" {
		return comm{}, exit.Usagef("--comm %s: %s", name, why)
	}
	return comm{}, exit.Usagef("--comm %q: want %s", name, strings.Join(commNames(), " or "))
}

func commNames() (list []string) {
	for _, c := range comms {
		list = append(list, c.name)
	}
	return list
}

func commUsage() string {
	var list []string
	for _, c := range comms {
		list = append(list, c.name+", "+c.doc)
	}
	return "how processors talk: " + strings.Join(list, "; ")
}

// rankWord stands for a number in the names of files: of a processor, or of a process.
const rankWord = "{rank}"

// join joins the others of --comm, once in a session, who are to do the same.
func (o *joining) join(ctx context.Context) (err error) {
	s := o.session
	if s.party == nil {
		err = o.enter(ctx)
		s.alone = s.party == nil
		if err == nil && o.probes && s.party.here != nil {
			o.pairs, err = o.probe(ctx)
		}
		if err == nil && s.verb != "" {
			err = volley.Greet(ctx, s.party.Transport, s.verb, o.timeout)
		}
		if err == nil {
			s.party.hosts, err = hostsOf(ctx, s.party.Transport, o.timeout)
			s.log.Info("joined", "comm", s.party.name, "rank", s.party.Rank(), "of", s.party.Size(), "hosts", s.party.hosts)
		}
	}
	o.party = s.party
	return err
}

// enter makes this process one of those of --comm, which it settles.
func (o *joining) enter(ctx context.Context) (err error) {
	s := o.session
	c := comm{name: "grpc"}
	if s.at != nil {
		c.join = joinLaunch
	} else {
		if o.comm == autoComm {
			if o.comm, err = o.engine(s.getenv); err != nil {
				return err
			}
		}
		if c, err = findComm(o.comm); err != nil {
			return err
		}
	}
	o.comm = c.name
	if s.own {
		if err := o.limits.apply(); err != nil {
			return err
		}
	}
	if s.party, err = c.join(ctx, o); err == nil {
		s.party.name = c.name
		err = o.limits.slow(ctx, s.party)
		if o.nodes != nil {
			var none error
			s.party.set, none = o.nodes.settled()
			err = cmp.Or(err, none)
		}
	}
	return err
}

// joining is the flags of how this process takes part in a run.
type joining struct {
	session *session
	comm    string
	ranks   rankFlags
	nodes   nodes  // nil: ranks have none
	probes  bool   // connects all pairs first
	rates   bool   // and measures their rates
	pairs   []pair // that were measured
	quiet   bool
	every   time.Duration // between lines of progress; 0: a bar on a terminal
	limits  limits
	party   *party // of comm, once join has returned
	memory  string
	timeout time.Duration
	elsewhere

	fileName string         // of a group
	file     groupfile.File // of that name
}

// nodes are what ranks have in a verb on nodes.
type nodes interface {
	// says returns what this rank tells all others of its node. By that, share returns the ranks of each set, or of all as
	// one, in the order of their nodes. Then settled returns the name of this rank's set, "" without sets, or why there are none.
	says(rank, size int) []byte
	share(said [][]byte, rank int) [][]int
	settled() (set string, err error)

	// splits reports whether ranks may come into another order, or into several sets.
	splits() bool

	// deal gives each address to a rank of the launch, which has started when meet is called, to have the ranks meet.
	deal(l *launch.Launch, cmd *cobra.Command, start launch.Start, at []ssh.Address) error
	meet(l *launch.Launch, cmd *cobra.Command) error
}

// add adds the flags; whose the memory is stands in the help.
func (o *joining) add(f *pflag.FlagSet, whose string) {
	o.addComm(f)
	f.StringVar(&o.memory, "memory", "64MiB", "packet memory of each "+whose)
	o.limits.add(f)
	o.addProgress(f)
}

func (o *joining) addProgress(f *pflag.FlagSet) {
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print errors and warnings only, and --json")
	f.Var(selection.Interval{Value: &o.every}, "progress", "`TIME` between lines of progress of each process (default: a bar on a terminal, else none)")
}

// addComm adds the flags that bring processes together.
func (o *joining) addComm(f *pflag.FlagSet) {
	f.StringVar(&o.comm, "comm", autoComm, commUsage())
	o.timeout = volley.DefaultTimeout
	f.Var(selection.Interval{Value: &o.timeout}, "timeout", "give up when no message comes for this long; 0: never")
	o.ranks.add(f)
}

func (o *joining) memoryBytes() (int64, error) {
	n, err := selection.ParseSize(o.memory)
	if err != nil || n == 0 {
		return 0, exit.Usagef("--memory %q: want a size such as 64MiB", o.memory)
	}
	return n, nil
}

// hostsOf finds the hosts of all processes.
func hostsOf(ctx context.Context, t transport.Transport, limit time.Duration) ([]string, error) {
	host, _ := os.Hostname() // or no name, which is one as well
	list, err := collective.AllgatherValues(ctx, t, host, limit)
	slices.Sort(list)
	return slices.Compact(list), err
}

// place returns where k processors are measured, or run by what was measured.
func (o *joining) place(k int) tune.Place {
	return tune.Place{Transport: o.party.name, Hosts: o.party.hosts, Ranks: k}
}

// progress returns what hears how far this rank is, or nil: nobody does.
func (o *joining) progress() func(done, more int64) {
	s := o.session
	switch leads := o.party.Rank() == 0 && (o.party.here == nil || o.party.here.Rank() == 0); {
	case s.at != nil && s.at.Watch:
		return s.at.Progress
	case s.at != nil, o.quiet, !leads && o.every == 0:
		return nil
	}
	return s.progress(o.every)
}

// groupFlag is the flag that names a group file: what a user would type for a group in every run.
const groupFlag = "group"

func (o *joining) addFile(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.fileName, groupFlag, "", "`FILE` with the directories of the group and its flags: volley group init writes one")
}

// fromFile returns the directories of the group file, if one is named, or else the arguments. Flags of the file count
// where the command line has none of them.
func (o *joining) fromFile(cmd *cobra.Command, args []string) ([]string, error) {
	if o.session.at != nil { // a launch has done so
		return args, nil
	}
	if err := named(cmd.Flags(), args); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(groupFlag) {
		return args, nil
	}
	if len(args) > 0 {
		return nil, exit.Usagef("--%s %s: it has the directories: leave %s out", groupFlag, o.fileName, args[0])
	}
	g, err := groupfile.Read(o.fileName)
	if err != nil {
		return nil, err
	}
	for _, key := range groupfile.Keys {
		f := cmd.Flags().Lookup(key)
		if key == "root" && f == nil {
			f = cmd.Flags().Lookup("latest")
		}
		if f == nil || f.Changed || key == "root" && cmd.Flags().Changed("step") {
			continue
		}
		for _, value := range g.Flags[key] {
			if err := cmd.Flags().Set(f.Name, value); err != nil {
				return nil, exit.Usagef("%s:%d: %w", o.fileName, g.Lines[key], flagError(cmd, err))
			}
		}
	}
	o.file = *g
	return g.Dirs, nil
}

// named returns an error where a directory or file has an empty name, as by a variable of a script that is not set.
func named(f *pflag.FlagSet, dirs []string) (err error) {
	if slices.Contains(dirs, "") {
		return exit.Usagef("a directory has an empty name: is a variable not set?")
	}
	f.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, many := f.Value.(pflag.SliceValue); many {
			values = list.GetSlice()
		}
		if what, _ := pflag.UnquoteUsage(f); slices.Contains(values, "") && slices.Contains([]string{"DIR", "FILE", "NODE"}, what) {
			err = exit.Usagef("--%s: the %s has an empty name: is a variable not set?", f.Name, what)
		}
	})
	return err
}

// limits are the flags of what a run may take from what else runs beside it.
type limits struct {
	rate  string // bytes a second; "": no limit
	cores int    // 0: all
	nice  int
}

// leastRate is the least value of --limit-rate and --limit-read: with less, messages, or what they wait for, would take
// longer than others wait for them.
const leastRate = 1 << 20

func (o *limits) add(f *pflag.FlagSet) {
	f.StringVar(&o.rate, "limit-rate", "", "`BYTES` a second that each process sends at most, such as 100MB")
	f.Var(selection.AtLeast{Value: &o.cores, Least: 1, Unset: 0}, "cores", "`N`, how many cores each process uses at most")
	f.Var(selection.AtLeast{Value: &o.nice}, "nice", "`N`, by how much each process lowers its priority, up to 19 in all, as nice does")
}

// apply lowers what this process may take.
func (o *limits) apply() error {
	if o.cores > 0 {
		runtime.GOMAXPROCS(min(o.cores, runtime.GOMAXPROCS(0)))
	}
	if o.nice > 0 {
		return lowerPriority(o.nice)
	}
	return nil
}

// slow has a party send no faster than it may.
func (o *limits) slow(ctx context.Context, p *party) error {
	n, err := rate("--limit-rate", o.rate)
	switch {
	case err != nil || n == 0:
		return err
	case !p.job():
		return exit.Usagef("--limit-rate %s: all is in this process, which sends nothing: leave it out", o.rate)
	}
	p.Transport = delay.Limit(ctx, p.Transport, n)
	return nil
}

// rate returns the bytes a second that a flag says; 0: it says none.
func rate(flag, value string) (int64, error) {
	if value == "" {
		return 0, nil
	}
	n, err := selection.ParseSize(value)
	if err != nil || n < leastRate {
		return 0, exit.Usagef("%s %q: want bytes a second such as 20MB, 1MiB or more", flag, value)
	}
	return n, nil
}
