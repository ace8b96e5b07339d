package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"volley"
	"volley/collective"
	"volley/engine"
	"volley/group"
	"volley/internal/exit"
	"volley/internal/groupfile"
	"volley/internal/launch"
	"volley/internal/selection"
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

func commNames() []string { return names(comms, func(c comm) string { return c.name }) }

func commUsage() string {
	var list []string
	for _, c := range comms {
		list = append(list, c.name+", "+c.doc)
	}
	return "how processors talk: " + strings.Join(list, "; ")
}

// A party is this process among those that run a verb together.
type party struct {
	transport.Transport
	name  string   // of its comm
	hosts []string // of the processes, each once, sorted

	// Where pairs of processes can be measured, and what each says be told to all:
	here   *engine.Place
	host   string // what the user calls that of this process
	gather func(ctx context.Context, record []byte, limit time.Duration) ([]json.RawMessage, error)

	// part, unless nil, tells the processes how each of them ended, so that one of them says it for all. It returns
	// what this one is to say, and the exit code. If some do not come, it ends the whole job and does not return.
	part func(mine launch.Ending, s *session) (code int)

	// Where the processes are in sets, Transport is that of this one's set, the name of which part says with the
	// ending. apart does the work of it. Over MPI, where processes may not end before others, it waits for all sets.
	set   string
	apart func(work func())
}

// rankWord stands for a number in the names of files: of a processor, or of a process.
const rankWord = "{rank}"

// job reports whether there may be other processes: then each has its own files.
func (p *party) job() bool { return p.part != nil }

// join joins the others of --comm, once in a session, who are to do the same.
func (o *joining) join(ctx context.Context) (err error) {
	s := o.session
	if s.party == nil {
		err = o.enter(ctx)
		s.alone = s.party == nil
		if err == nil {
			err = o.sets.err
		}
		if err == nil && o.probes && s.party.here != nil {
			o.pairs, err = s.party.probe(ctx, o.timeout, o.rates)
		}
		if err == nil && s.verb != "" {
			err = volley.Greet(ctx, s.party.Transport, s.verb, o.timeout)
		}
		if err == nil {
			err = s.party.meet(ctx, o.timeout)
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
		if o.sets.mine != nil {
			s.party.set = fmt.Sprint("set ", o.sets.mine.Set)
		}
	}
	return err
}

// meet finds the hosts of all processes.
func (p *party) meet(ctx context.Context, limit time.Duration) (err error) {
	host, _ := os.Hostname() // or no name, which is one as well
	p.hosts, err = collective.AllgatherValues(ctx, p.Transport, host, limit)
	slices.Sort(p.hosts)
	p.hosts = slices.Compact(p.hosts)
	return err
}

func (p *party) place(k int) tune.Place {
	return tune.Place{Transport: p.name, Hosts: p.hosts, Ranks: k}
}

// joining is the flags of how this process takes part in a run.
type joining struct {
	session  *session
	comm     string
	ranks    rankFlags
	sets     setOptions
	dirs     []string             // that this process is given: its own, or those of all
	rank     int                  // of all, where that of the party is one of a set
	dir      string               // of the one node that this process has; empty: none, or several
	roots    bool                 // directories are roots of snapshots
	probes   bool                 // connects all pairs first
	rates    bool                 // and measures their rates
	pairs    []pair               // that were measured
	resizing *group.ResizeOptions // nil: a group stays as large as it is
	quiet    bool
	every    time.Duration // between lines of progress; 0: a bar on a terminal
	limits   limits
	party    *party // of comm, once join has returned
	memory   string
	timeout  time.Duration
	elsewhere

	fileName string                   // of a group
	file     groupfile.File           // of that name
	orders   map[string]*launch.Order // by directory: commands of nodes
	removed  []string                 // directories of the nodes that a resize has removed
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
