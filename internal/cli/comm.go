package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley"
	"volley/collective"
	"volley/internal/selection"
	"volley/transport"
	"volley/transport/local"
	"volley/tune"
)

// A comm is a way for processors to talk.
type comm struct {
	name string // as --comm takes it
	doc  string

	// join returns this process's place, or an error where the others do not come within
	// a time; 0 is any.
	join func(limit time.Duration) (*party, error)
}

// comms are the values of --comm, the default first.
var comms = []comm{
	{"local", "in this process", func(time.Duration) (*party, error) { return &party{Transport: local.New(1)[0]}, nil }},
}

// missing says of values of --comm why this program has not got them.
var missing = map[string]string{}

// findComm returns the comm of that name.
func findComm(name string) (comm, error) {
	var names []string
	for _, c := range comms {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	if why := missing[name]; why != "" {
		return comm{}, usagef("--comm %s: %s", name, why)
	}
	return comm{}, usagef("--comm %q: want %s", name, strings.Join(names, " or "))
}

// commUsage is the help of --comm.
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

	// part, unless nil, tells the processes how each of them ended, so that one of them says
	// it for all. It returns what this one is to say, and the exit code. If some do not
	// come, it ends the whole job and does not return.
	part func(mine ending, say func(string)) (code int)
}

// rankWord stands for a number in the names of files: of a processor, or of a process.
const rankWord = "{rank}"

// job reports whether there may be other processes: then each has its own files.
func (p *party) job() bool { return p.part != nil }

// An ending is how a verb ended in a process.
type ending struct {
	Text  string // the error, empty where there was none
	Heard bool   // another process failed
	Code  int    // for exit
}

// A session is a run of the command line. The verb that joins others leaves the party
// there, and errors come out by it.
type session struct {
	verb  string // what this process does
	party *party
	alone bool   // the others did not come
	at    *place // in a launch; nil: there is none
}

type sessionKey struct{}

// join joins the others of a comm, once in a session, who are to do the same.
func join(ctx context.Context, name string, limit time.Duration) (*party, error) {
	c, err := findComm(name)
	if err != nil {
		return nil, err
	}
	s, ok := ctx.Value(sessionKey{}).(*session)
	if ok && s.at != nil {
		c = comm{name: "grpc", join: s.at.join}
	}
	if ok && s.party != nil {
		return s.party, nil
	}
	p, err := c.join(limit)
	if ok {
		s.party, s.alone = p, err != nil
	}
	if err != nil {
		return p, err
	}
	if ok {
		if err := volley.Greet(ctx, p.Transport, s.verb, limit); err != nil {
			return p, err
		}
	}
	host, _ := os.Hostname() // or no name, which is one as well
	p.name = c.name
	if p.hosts, err = collective.AllgatherValues(ctx, p.Transport, host, limit); err != nil {
		return p, err
	}
	slices.Sort(p.hosts)
	p.hosts = slices.Compact(p.hosts)
	return p, nil
}

// place returns where a run of k processors is.
func (p *party) place(k int) tune.Place {
	return tune.Place{Transport: p.name, Hosts: p.hosts, Ranks: k}
}

// joining is the flags of how this process takes part in a run.
type joining struct {
	comm    string
	party   *party // of comm, once join has returned
	memory  string
	timeout time.Duration
}

// add adds the flags; whose the memory is stands in the help.
func (o *joining) add(f *pflag.FlagSet, whose string) {
	f.StringVar(&o.comm, "comm", comms[0].name, commUsage())
	f.StringVar(&o.memory, "memory", "64MiB", "packet memory of each "+whose)
	f.DurationVar(&o.timeout, "timeout", volley.DefaultTimeout, "give up when no message comes for this long; 0: never")
}

// join joins the others.
func (o *joining) join(ctx context.Context) (err error) {
	o.party, err = join(ctx, o.comm, o.timeout)
	return err
}

// launchers are the variables in which a launcher of processes tells each of them how many
// there are in the step it is of. Others tell what a whole allocation has.
var launchers = []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}

// refuseCopies returns an error where this process is one of several that a launcher has
// started and --comm does not say whether they are one run. Verbs that write the
// user's files call it before they join: each process would write the same ones.
func (o *joining) refuseCopies(cmd *cobra.Command) error {
	if cmd.Flags().Changed("comm") {
		return nil
	}
	for _, name := range launchers {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil || n < 2 {
			continue
		}
		job := "--comm mpi makes them one run"
		if why := missing["mpi"]; why != "" {
			job = "--comm mpi would make them one run, but " + why
		}
		return usagef("cannot run %s: it is one of %d copies that write the same files (%s=%d): %s; --comm local lets each run by itself",
			cmd.CommandPath(), n, name, n, job)
	}
	return nil
}

// memoryBytes returns the value of --memory.
func (o *joining) memoryBytes() (int64, error) {
	n, err := selection.ParseSize(o.memory)
	if err != nil || n == 0 {
		return 0, usagef("--memory %q: want a size such as 64MiB", o.memory)
	}
	return n, nil
}

// commOf returns the value of --comm among arguments that may be wrong otherwise.
func commOf(args []string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--comm="); ok {
			return value
		}
		if arg == "--comm" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// worst returns the exit code for all: that of the first who failed by himself.
func worst(all []*ending) int {
	code := exitOK
	for _, heard := range []bool{true, false} {
		for r := len(all) - 1; r >= 0; r-- {
			if x := all[r]; x != nil && x.Code != exitOK && x.Heard == heard {
				code = x.Code
			}
		}
	}
	return code
}

// sayings returns what failed, each once and with the ranks where it did, unless at all.
func sayings(all []*ending) []string {
	var texts []string
	ranks := map[string][]int{}
	for _, heard := range []bool{false, true} {
		for r, x := range all {
			if x == nil || x.Text == "" || x.Heard != heard {
				continue
			}
			if ranks[x.Text] == nil {
				texts = append(texts, x.Text)
			}
			ranks[x.Text] = append(ranks[x.Text], r)
		}
		if len(texts) > 0 {
			break // what others only heard of has been said
		}
	}
	for i, text := range texts {
		switch list := ranks[text]; {
		case len(list) == len(all) || len(all) == 1:
		case len(list) == 1:
			texts[i] = fmt.Sprintf("rank %d: %s", list[0], text)
		default:
			texts[i] = fmt.Sprintf("ranks %s: %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ", "), text)
		}
	}
	return texts
}
