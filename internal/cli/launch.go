package cli

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/engine"
	"volley/group"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/sets"
	"volley/internal/ssh"
)

// usualGreeting is how long a rank may take to start once ssh is let in, unless --timeout says otherwise.
const usualGreeting = 30 * time.Second

// hostWord stands for each host in a path that all hosts have.
const hostWord = "{host}"

// elsewhere is the flags by which a verb has ranks elsewhere.
type elsewhere struct {
	ssh, program string
	copied       bool
	step         string // --launch
}

func (o *joining) addElsewhere(cmd *cobra.Command) {
	defer flagGroup(cmd, "Run")()
	f := cmd.Flags()
	f.StringVar(&o.elsewhere.ssh, "ssh", "ssh", "`CMD` that reaches hosts named as HOST:PATH, with its arguments")
	f.StringVar(&o.program, "remote-path", "volley", "`FILE` of volley on these hosts")
	f.BoolVar(&o.copied, "copy-binary", false, "copy this volley to these hosts for the run")
	if f.Lookup("comm") != nil {
		f.StringVar(&o.step, "launch", "", "`CMD` that starts the processes of the run, such as 'srun -N8 --ntasks-per-node=1': it gets this command without --launch, and a secret in the environment")
	}
}

// spread runs a verb on what arguments name: here, or by ranks at the hosts of the arguments, or in processes that
// --launch starts.
func (o *joining) spread(cmd *cobra.Command, args []string, here func() error) error {
	l, err := o.launch(cmd, args)
	switch {
	case err != nil:
		return err
	case l != nil:
		return o.atHosts(l, cmd)
	case o.step != "" && o.session.at == nil:
		return o.runStep(cmd, words(o.step), o.program, args)
	}
	return here()
}

// launch returns the launch of the ranks at the hosts of the arguments; nil: all are here. A rank starts no others,
// whatever its paths look like.
func (o *joining) launch(cmd *cobra.Command, args []string) (*launch.Launch, error) {
	s := o.session
	if s.at != nil {
		return nil, nil
	}
	at, err := addresses(args, cmd.Name() == tuneVerb)
	switch output := cmd.Flags().Lookup("output"); {
	case err != nil:
		return nil, err
	case at == nil && output != nil && strings.HasPrefix(output.Value.String(), hostWord+":"):
		return nil, exit.Usagef("-o %s: name the packets as HOST:FILE", output.Value)
	case at == nil:
		return nil, nil
	case o.step != "":
		return nil, exit.Usagef("--launch: %s is reached by ssh, which starts the processes: leave one of both out", at[0])
	}
	for _, name := range []string{"comm", "rank", "size", "meet", "secret", "advertise"} {
		if cmd.Flags().Changed(name) {
			return nil, exit.Usagef("--%s: %s is reached by ssh, which settles that: leave the flag out", name, at[0])
		}
	}
	for _, name := range launchers {
		if n, _ := strconv.Atoi(s.getenv(name)); n > 1 {
			return nil, exit.Usagef("%s is reached by ssh, and this is one of several processes that would all do so (%s=%d): run volley once, or name directories of the processes' own hosts", at[0], name, n)
		}
	}
	self, err := s.self()
	if err != nil {
		return nil, err
	}
	if !o.quiet {
		newMeter(s, o.every)
	}
	l := &launch.Launch{Out: cmd.OutOrStdout(), Patience: s.limits.end, Progress: s.meter.add, Note: s.gauges.Note, Say: s.fails, Records: s.json}
	l.Client = ssh.Client{Command: words(o.elsewhere.ssh), Program: o.program, Copy: o.copied, Here: []string{self}, Verb: launch.Verb, Env: s.environ,
		Stderr: s.hears, Limit: o.timeout, Greeting: usualGreeting, Asks: s.askable()}
	if cmd.Flags().Changed("timeout") {
		l.Greeting = o.timeout
	}
	if len(l.Command) == 0 {
		return nil, exit.Usagef("--ssh %q: want a command, and what has blanks in quotes", o.elsewhere.ssh)
	}
	l.Terms = engine.Run{Bind: o.ranks.Bind, Certificate: o.ranks.Certificate, Key: o.ranks.Key, Authority: o.ranks.Authority}
	if l.Terms.Certificate+l.Terms.Key+l.Terms.Authority == "" {
		l.Terms.Secret = engine.NewSecret()
	}
	if cmd.Flags().Changed("port") {
		l.Terms.Ports = o.ranks.Ports
	}
	return l, o.deal(l, cmd, at)
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

// addresses returns what arguments name on hosts, or nil where they are all here. Bare hosts have no path.
func addresses(args []string, bare bool) (list []ssh.Address, err error) {
	remote := false
	for _, arg := range args {
		a, err := ssh.Parse(arg)
		if err != nil && !(bare && errors.Is(err, ssh.ErrNoPath)) {
			return nil, exit.AsUsage(err)
		}
		if a.Host != "" && !strings.HasPrefix(arg, "ssh://") {
			if _, err := os.Lstat(arg); err == nil {
				return nil, exit.Usagef("%s is a file here, and may be %s at host %s: write ./%s or ssh://%s/…", arg, a.Path, a.Host, arg, a.Host)
			}
		}
		list, remote = append(list, a), remote || a.Host != ""
	}
	if !remote {
		return nil, nil
	}
	return list, nil
}

// deal deals the arguments out to ranks: a node of a group each, and packets by their hosts.
func (o *joining) deal(l *launch.Launch, cmd *cobra.Command, at []ssh.Address) error {
	output, bare := cmd.Flags().Lookup("output"), cmd.Name() == tuneVerb
	nodes := output == nil
	var to ssh.Address
	switch {
	case bare && output.Changed:
		to.Path = output.Value.String()
	case !bare && !nodes:
		var err error
		if to, err = ssh.Parse(output.Value.String()); output.Changed && (err != nil || to.Host != hostWord) {
			return exit.Usagef("-o %s: each host gets its own files: -o %s:DIR", output.Value, hostWord)
		}
	}
	start := launch.Start{Verb: verbOf(cmd), Roots: ofRoots(cmd), Watch: o.session.meter != nil, Variable: o.sets.variable(),
		Flags: flagsOf(cmd, slices.Concat([]string{"ssh", "remote-path", "copy-binary", "output", "to", "group-size", "domain", groupFlag, metricsFlag}, rankFlagNames)...)}
	if cmd.Flags().Lookup("group-size") != nil {
		if err := o.sets.check(cmd); err != nil {
			return err
		}
	}
	verb := cmd.Name()
	// One set does not hold up the others. Recover knows a lost node's place only when it has seen all.
	l.Missing = verb == "status" || verb == "verify" || verb == snapshotsVerb || o.sets.size != 0 && verb != "recover"
	l.Recovers = verb == "recover"
	l.Down = l.Missing || (verb == "protect" || verb == resizeVerb) && !start.Roots
	if f := cmd.Flags().Lookup("to"); f != nil && f.Changed {
		a, err := ssh.Parse(f.Value.String())
		if err != nil || a.Host == hostWord {
			return exit.Usagef("--to %s: want a directory here, or HOST:DIR", f.Value)
		}
		l.Missing, l.Down, l.To = true, true, &a
		start.Flags = append(start.Flags, launch.Flag{Name: "to", Value: a.Path})
	}
	if !nodes && output.Changed {
		start.Flags = append(start.Flags, launch.Flag{Name: "output", Value: to.Path})
	}
	start.From, _ = os.Hostname()
	for _, a := range at {
		same := func(b ssh.Address) bool { return b.Host == a.Host && b.Port == a.Port }
		if a.Host == hostWord || !nodes && slices.ContainsFunc(l.Ranks, func(x *launch.Far) bool { return same(x.Address) }) {
			continue
		}
		x := &launch.Far{Address: a, HostName: cmp.Or(a.Host[strings.Index(a.Host, "@")+1:], start.From), Start: start}
		switch {
		case nodes:
			x.Paths, x.Dir, x.Start.Name = []string{a.Path}, a.Path, a.Name
		case bare:
			x.Start.Name = a.At()
		default:
			for _, b := range at {
				if b.Host == hostWord || same(b) {
					x.Paths = append(x.Paths, b.Path)
				}
			}
		}
		x.Order = o.orders[x.Start.Name]
		x.Commanded = x.Order != nil
		l.Ranks = append(l.Ranks, x)
	}
	if len(l.Ranks) == 0 || nodes && len(l.Ranks) < len(at) {
		return exit.Usagef("%s: name the hosts", hostWord)
	}
	return nil
}

// verbOf returns the name of a verb, without that of this program.
func verbOf(cmd *cobra.Command) string {
	_, verb, _ := strings.Cut(cmd.CommandPath(), " ")
	return verb
}

// flagsOf returns the flags that a verb was given, without some, as others get them.
func flagsOf(cmd *cobra.Command, without ...string) (list []launch.Flag) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch values, many := f.Value.(pflag.SliceValue); {
		case slices.Contains(without, f.Name):
		case many:
			for _, value := range values.GetSlice() {
				list = append(list, launch.Flag{Name: f.Name, Value: value})
			}
		default:
			list = append(list, launch.Flag{Name: f.Name, Value: f.Value.String()})
		}
	})
	return list
}

// atHosts starts the ranks, and has them meet, or those of each set.
func (o *joining) atHosts(l *launch.Launch, cmd *cobra.Command) error {
	defer l.End()
	if err := l.Begin(cmd.Context()); err != nil {
		return err
	}
	if o.sets.size != 0 {
		return o.setsAtHosts(l, cmd)
	}
	if cmd.Flags().Lookup("output") == nil { // each has a node
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
	}
	return l.Meet(cmd.Context())
}

// setsAtHosts has the ranks of each set meet, and prints how the sets have ended.
func (o *joining) setsAtHosts(l *launch.Launch, cmd *cobra.Command) error {
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
	asJSON, _ := cmd.Flags().GetBool("json")
	return o.session.runSets(cmd.Context(), l.Out, asJSON, reports, -1, func(n int, r *setReport) error {
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

// fails says what failed.
func (s *session) fails(x launch.Saying) { s.say(slog.LevelError, x) }

// hears prints what a host has on its stderr.
func (s *session) hears(host, line string) {
	s.saying.Lock()
	defer s.saying.Unlock()
	s.meter.clear()
	if s.json {
		s.pass(host, line)
	} else {
		printable.Fprintf(s.stderr, "%s: %s\n", host, line)
	}
}
