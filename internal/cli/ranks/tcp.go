package ranks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/collective"
	"volley/engine"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/launch"
)

// Flags is the flags that make this process a rank of --comm tcp.
type Flags struct {
	engine.Run
	secret string // the file of that of the run
}

// FlagNames are those of [Flags].
var FlagNames = []string{"rank", "size", "meet", "secret", "bind", "advertise", "port"}

// Add adds the flags, which topic ranks lists.
func (o *Flags) Add(f *pflag.FlagSet) {
	f.IntVar(&o.Rank, "rank", -1, "`R`, the rank of this process, from 0")
	f.IntVar(&o.Size, "size", 0, "`K`, the number of processes of the run")
	f.StringVar(&o.Meet, "meet", "", "`HOST:PORT` at which rank 0 listens and all meet")
	f.StringVar(&o.secret, "secret", "", "`FILE` with the secret of the run: 64 hexadecimal digits, as openssl rand -hex 32 prints; - is standard input (default: "+engine.SecretVariable+")")
	f.StringVar(&o.Bind, "bind", "", "`HOST` to listen at (default: all interfaces, or loopback where --meet is)")
	f.StringVar(&o.Advertise, "advertise", "", "`HOST` or HOST:PORT at which others reach this process (default: that of the route to --meet)")
	f.TextVar(&o.Ports, "port", engine.UsualPorts, "`PORTS` to listen at")
}

// launchers are the variables that tell each process how many there are in its step, not in a whole allocation.
const (
	ofOpenMPI = "OMPI_COMM_WORLD_SIZE"
	ofPMI     = "PMI_SIZE"
	ofSlurm   = "SLURM_STEP_NUM_TASKS"
)

var launchers = []string{ofOpenMPI, ofPMI, ofSlurm}

// engine returns the comm that the flags and the variables of launchers call for.
func (o *Joining) engine(getenv func(string) string) (string, error) {
	if o.Ranks.Meet != "" || o.Ranks.Rank >= 0 || o.Ranks.Size > 0 {
		return "tcp", nil
	}
	several := func(name string) bool { // it has started several processes
		n, err := strconv.Atoi(getenv(name))
		return err == nil && n > 1
	}
	say := func(name, ways string) error {
		return exit.Usagef("this is one of several processes that would do the same (%s=%s): %s; --comm local lets each run by itself", name, getenv(name), ways)
	}
	mpirun, byMPI := ofOpenMPI, several(ofOpenMPI)
	if !byMPI {
		mpirun, byMPI = ofPMI, several(ofPMI) && !several(ofSlurm)
	}
	switch built := slices.Contains(Names(), "mpi"); {
	case byMPI && built:
		return "mpi", nil
	case byMPI:
		return "", say(mpirun, "--comm mpi would make them one run, but "+noMPI)
	case several(ofPMI) && built:
		return "", say(ofSlurm, "--comm mpi makes them one run by MPI, and --comm tcp without it")
	case several(ofSlurm) && o.Ranks.secret == "" && getenv(engine.SecretVariable) == "":
		return "", say(ofSlurm, "with a secret they are one run: --secret FILE, or "+engine.SecretVariable)
	case several(ofSlurm):
		return "tcp", nil
	}
	if _, pod := engine.Pod(getenv); pod {
		return "", say("JOB_COMPLETION_INDEX", "--meet HOST:PORT and --size K make the pods of the Job one run")
	}
	return "local", nil
}

// run returns the place of this process: flags count before what launchers say.
func (o *Flags) run(getenv func(string) string) (run engine.Run, err error) {
	step, slurm, err := engine.Slurm(getenv, cmp.Or(o.Ports, engine.UsualPorts))
	if err != nil {
		return run, err
	}
	run = o.Run
	rank, pod := engine.Pod(getenv)
	switch {
	case run.Rank >= 0:
	case slurm:
		run.Rank = step.Rank
	case pod:
		run.Rank = rank
	default:
		return run, exit.Usagef("--comm tcp: no rank: start the processes with srun, or give each --rank, --size and --meet")
	}
	run.Size, run.Meet = cmp.Or(run.Size, step.Size), cmp.Or(run.Meet, step.Meet)
	if run.Meet == "" || run.Size == 0 {
		return run, exit.Usagef("--comm tcp: rank %d does not know how many ranks there are or where they meet: --size and --meet say it", run.Rank)
	}
	if run.Secret, err = engine.ReadSecret(o.secret); err != nil {
		return run, exit.AsUsage(err)
	}
	return run, nil
}

// joinTCP makes this process a rank of a run.
func joinTCP(ctx context.Context, o *Joining) (*session.Party, error) {
	run, err := o.Ranks.run(o.Session.Getenv)
	if err != nil {
		return nil, err
	}
	run.Log = o.Session.Log
	listener, err := engine.Listen(run)
	if err != nil {
		return nil, err
	}
	if o.Nodes != nil {
		listener.Says = o.Nodes.Says(run.Rank, run.Size)
		listener.Sets = func(texts [][]byte) [][]int { return o.Nodes.Share(texts, listener.Rank()) }
	}
	e, err := listener.Join(ctx, nil, o.Timeout)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	p := &session.Party{Transport: e, Listener: listener, Apart: func(work func()) { work() }}
	p.Part = func(mine launch.Ending, s *session.Invocation) int {
		if s.Stays && goOn(p, mine, s, o.Timeout) {
			return exit.OK
		}
		defer listener.Close()
		defer e.Close()
		return partTCP(listener, mine, s)
	}
	return p, nil
}

// goOn reports whether all ranks of a session whose party stays have ended well. Else it has them all come to partTCP.
func goOn(p *session.Party, mine launch.Ending, s *session.Invocation, limit time.Duration) bool {
	if mine.Code != exit.OK {
		p.Abort(exit.ErrSaid)
		return false
	}
	endings, err := collective.AllgatherValues(context.Background(), p.Transport, &mine, limit)
	if err == nil && p.Rank() == 0 {
		s.Hear(endings)
	}
	return err == nil
}

// partTCP gathers the endings. Rank 0 says what went wrong, and all take the exit code from it.
func partTCP(listener *engine.Listener, mine launch.Ending, s *session.Invocation) int {
	rank := listener.Rank()
	limit := s.Limits.Ending
	if mine.Set != "" { // others may take longer
		limit = 0
	}
	text, _ := json.Marshal(mine)
	texts, err := listener.Gather(context.Background(), "end", text, limit)
	endings := make([]*launch.Ending, len(texts))
	for r, text := range texts {
		if text != nil && json.Unmarshal(text, &endings[r]) != nil {
			endings[r] = nil
		}
	}
	if rank == 0 {
		s.Hear(endings)
	}
	switch {
	case rank == 0 && len(launch.Sayings(endings)) > 0:
	case len(texts) == 0 && mine.Text != "": // rank 0 cannot
		s.Say(slog.LevelError, launch.Saying{Text: mine.Text, Ranks: []int{rank}, Host: mine.Host})
	case len(texts) == 0, rank == 0 && err != nil:
		s.Say(slog.LevelError, launch.Saying{Text: fmt.Sprintf("does not hear how others ended: %v", err), Ranks: []int{rank}, Host: mine.Host})
	}
	if err != nil {
		return max(mine.Code, launch.Worst(endings), exit.Failed)
	}
	return launch.Worst(endings)
}

// JoinAnyhow joins the others of a verb that has failed before, to tell them so. They hear of nodes as any rank tells
// of them. set sets what it can of the flags, some of which may be wrong.
func JoinAnyhow(s *session.Invocation, verb *cobra.Command, nodes Nodes, set func(*pflag.FlagSet)) {
	if s.Party != nil || s.Alone || verb.Flags().Lookup("comm") == nil {
		return
	}
	o := Joining{Session: s, Nodes: nodes}
	f := session.LooseFlags()
	o.Add(f, "")
	set(f)
	o.enter(context.Background())
}
