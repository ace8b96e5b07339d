package ranks

import (
	"cmp"
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/engine"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/ssh"
)

// HostWord stands for each host in a path that all hosts have.
const HostWord = "{host}"

// AddElsewhere adds the flags by which ranks start elsewhere.
func (o *Joining) AddElsewhere(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.ssh, "ssh", "ssh", "`CMD` that reaches hosts named as HOST:PATH, with its arguments")
	f.StringVar(&o.program, "remote-path", "volley", "`FILE` of volley on these hosts")
}

// Spread runs a verb on what arguments name: here, or by ranks at the hosts of the arguments.
func (o *Joining) Spread(cmd *cobra.Command, args []string, local func() error) error {
	l, err := o.launchOf(cmd, args)
	if err != nil {
		return err
	}
	if l == nil {
		return local()
	}
	defer l.End()
	if err := l.Begin(cmd.Context()); err != nil {
		return err
	}
	if o.Nodes != nil {
		return o.Nodes.Meet(l, cmd)
	}
	return l.Meet(cmd.Context())
}

// launchOf returns the launch of the ranks at the hosts of the arguments; nil: all are here. A rank starts no others,
// whatever its paths look like.
func (o *Joining) launchOf(cmd *cobra.Command, args []string) (*launch.Launch, error) {
	s := o.Session
	if s.LaunchRank != nil {
		return nil, nil
	}
	hosts, err := addresses(args)
	switch output := cmd.Flags().Lookup("output"); {
	case err != nil:
		return nil, err
	case hosts == nil && output != nil && strings.HasPrefix(output.Value.String(), HostWord+":"):
		return nil, exit.Usagef("-o %s: name the packets as HOST:FILE", output.Value)
	case hosts == nil:
		return nil, nil
	}
	for _, name := range []string{"comm", "rank", "size", "meet", "secret", "advertise"} {
		if cmd.Flags().Changed(name) {
			return nil, exit.Usagef("--%s: %s is reached by ssh, which settles that: leave the flag out", name, hosts[0])
		}
	}
	for _, name := range launchers {
		if n, _ := strconv.Atoi(s.Getenv(name)); n > 1 {
			return nil, exit.Usagef("%s is reached by ssh, and this is one of several processes that would all do so (%s=%d): run volley once, or name directories of the processes' own hosts", hosts[0], name, n)
		}
	}
	self, err := s.Self()
	if err != nil {
		return nil, err
	}
	l := &launch.Launch{Output: cmd.OutOrStdout(), Patience: s.Limits.End, Note: s.Gauges.Note, Say: s.Fails, JSON: s.JSON}
	if !o.Quiet {
		l.Progress = s.Progress(o.interval)
	}
	l.Client = ssh.Client{Command: words(o.ssh), Program: o.program, LocalProgram: []string{self}, Verb: launch.Verb, Env: s.Environ,
		Stderr: s.Hears, Limit: o.Timeout, Greeting: 30 * time.Second}
	if cmd.Flags().Changed("timeout") {
		l.Greeting = o.Timeout
	}
	if len(l.Command) == 0 {
		return nil, exit.Usagef("--ssh %q: want a command, and what has blanks in quotes", o.ssh)
	}
	l.Terms = o.Ranks.Run
	l.Terms.Secret = engine.NewSecret()
	if !cmd.Flags().Changed("port") {
		l.Terms.Ports = engine.Ports{}
	}
	_, verb, _ := strings.Cut(cmd.CommandPath(), " ") // behind the name of this program
	start := launch.Start{Verb: verb, Watch: l.Progress != nil,
		Flags: flagsOf(cmd, slices.Concat([]string{"ssh", "remote-path", "output", "to", "group-size", GroupFlag, "metrics"}, FlagNames)...)}
	start.LaunchHost, _ = os.Hostname()
	if o.Nodes != nil {
		return l, o.Nodes.Deal(l, cmd, start, hosts)
	}
	return l, deal(l, cmd, start, hosts)
}

var (
	word   = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)
	quoted = regexp.MustCompile(`"([^"]*)"|'([^']*)'`)
)

// words splits a command at blanks that are not in quotes, or returns nil where quotes have no end.
func words(command string) (list []string) {
	if strings.TrimSpace(word.ReplaceAllString(command, "")) != "" {
		return nil
	}
	for _, text := range word.FindAllString(command, -1) {
		list = append(list, quoted.ReplaceAllString(text, "$1$2"))
	}
	return list
}

// addresses returns what arguments name on hosts, or nil where they are all here.
func addresses(args []string) (list []ssh.Address, err error) {
	remote := false
	for _, arg := range args {
		a, err := ssh.Parse(arg)
		if err != nil {
			return nil, exit.AsUsage(err)
		}
		if _, err := os.Lstat(arg); err == nil && a.Host != "" {
			return nil, exit.Usagef("%s is a file here, and may be %s at host %s: write ./%s, or USER@%s:%s", arg, a.Path, a.Host, arg, a.Host, a.Path)
		}
		list, remote = append(list, a), remote || a.Host != ""
	}
	if !remote {
		return nil, nil
	}
	return list, nil
}

// flagsOf returns the flags that a verb was given, without the excluded ones, as others get them.
func flagsOf(cmd *cobra.Command, excluded ...string) (list []launch.Flag) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch values, repeatable := f.Value.(pflag.SliceValue); {
		case slices.Contains(excluded, f.Name):
		case repeatable:
			for _, value := range values.GetSlice() {
				list = append(list, launch.Flag{Name: f.Name, Value: value})
			}
		default:
			list = append(list, launch.Flag{Name: f.Name, Value: f.Value.String()})
		}
	})
	return list
}

// joinLaunch is the join of a comm for the ranks of a launch.
func joinLaunch(_ context.Context, o *Joining) (*session.Party, error) {
	rank := o.Session.LaunchRank
	t, err := rank.Join(o.Timeout)
	if err != nil {
		return nil, err
	}
	part := func(mine launch.Ending, _ *session.Invocation) int {
		rank.Report(mine)
		return mine.Code
	}
	return &session.Party{Transport: t, Listener: rank.Listener, Part: part}, nil
}

// Far returns a rank that is to be at an address.
func Far(a ssh.Address, start launch.Start) *launch.Far {
	return &launch.Far{Address: a, HostName: cmp.Or(a.Host[strings.Index(a.Host, "@")+1:], start.LaunchHost), Start: start}
}

// deal deals packets out to ranks by their hosts.
func deal(l *launch.Launch, cmd *cobra.Command, start launch.Start, addresses []ssh.Address) error {
	if output := cmd.Flags().Lookup("output"); output.Changed {
		target, err := ssh.Parse(output.Value.String())
		if err != nil || target.Host != HostWord {
			return exit.Usagef("-o %s: each host gets its own files: -o %s:DIR", output.Value, HostWord)
		}
		start.Flags = append(start.Flags, launch.Flag{Name: "output", Value: target.Path})
	}
	for _, a := range addresses {
		sameHost := func(b ssh.Address) bool { return b.Host == a.Host }
		if a.Host == HostWord || slices.ContainsFunc(l.Ranks, func(x *launch.Far) bool { return sameHost(x.Address) }) {
			continue
		}
		x := Far(a, start)
		for _, b := range addresses {
			if b.Host == HostWord || sameHost(b) {
				x.Paths = append(x.Paths, b.Path)
			}
		}
		l.Ranks = append(l.Ranks, x)
	}
	if len(l.Ranks) == 0 {
		return exit.Usagef("%s: name the hosts", HostWord)
	}
	return nil
}
