package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley"
	"volley/engine"
	"volley/group"
	"volley/group/site"
	"volley/internal/printable"
	"volley/internal/sets"
	"volley/internal/ssh"
)

// hostWord stands for each host in a path that all hosts have.
const hostWord = "{host}"

// launchable has a verb start its ranks by ssh where arguments are host:path.
func launchable(cmd *cobra.Command) { launchableBy(cmd, (*launch).run) }

// launchableBy is launchable for a verb that does with its ranks what run does.
func launchableBy(cmd *cobra.Command, run func(*launch, *cobra.Command) error) {
	f := cmd.Flags()
	end := flagGroup(cmd, "Run")
	command := f.String("ssh", "ssh", "`CMD` that reaches hosts named as HOST:PATH, with its arguments")
	program := f.String("remote-path", "volley", "`FILE` of volley on these hosts")
	copied := f.Bool("copy-binary", false, "copy this volley to these hosts for the run")
	step := new(string)
	if f.Lookup("comm") != nil {
		f.StringVar(step, "launch", "", "`CMD` that starts the processes of the run, such as 'srun -N8 --ntasks-per-node=1': it gets this command without --launch, and a secret in the environment")
	}
	end()
	here := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s := sessionOf(cmd.Context())
		if s.at != nil { // a rank starts no others, whatever its paths look like
			return here(cmd, args)
		}
		at, err := addresses(args, cmd.Name() == tuneVerb)
		switch output := cmd.Flags().Lookup("output"); {
		case err != nil:
			return err
		case at == nil && output != nil && strings.HasPrefix(output.Value.String(), hostWord+":"):
			return usagef("-o %s: name the packets as HOST:FILE", output.Value)
		case *step != "" && at == nil:
			return runStep(cmd, words(*step), *program, args)
		case *step != "":
			return usagef("--launch: %s is reached by ssh, which starts the processes: leave one of both out", at[0])
		case at == nil:
			return here(cmd, args)
		}
		for _, name := range []string{"comm", "rank", "size", "meet", "secret", "advertise"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s: %s is reached by ssh, which settles that: leave the flag out", name, at[0])
			}
		}
		for _, name := range launchers {
			if n, _ := strconv.Atoi(s.getenv(name)); n > 1 {
				return usagef("%s is reached by ssh, and this is one of several processes that would all do so (%s=%d): run volley once, or name directories of the processes' own hosts", at[0], name, n)
			}
		}
		self, err := s.self()
		if err != nil {
			return err
		}
		l := &launch{stdout: cmd.OutOrStdout(), session: s, speaks: true}
		if quiet, _ := cmd.Flags().GetBool("quiet"); !quiet {
			every, _ := cmd.Flags().GetDuration("progress")
			l.meter = newMeter(s, every)
		}
		l.Client = ssh.Client{Command: words(*command), Program: *program, Copy: *copied, Here: []string{self}, Verb: rankVerb, Env: s.environ, Stderr: l.say}
		l.Limit, _ = cmd.Flags().GetDuration("timeout")
		if l.Asks = s.askable(); cmd.Flags().Changed("timeout") {
			l.Greeting = l.Limit
		}
		if len(l.Command) == 0 {
			return usagef("--ssh %q: want a command, and what has blanks in quotes", *command)
		}
		if err := cmp.Or(l.deal(cmd, at), l.agree(cmd)); err != nil {
			return err
		}
		l.commanded(cmd)
		return run(l, cmd)
	}
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
			return nil, usage(err)
		}
		if a.Host != "" && !strings.HasPrefix(arg, "ssh://") {
			if _, err := os.Lstat(arg); err == nil {
				return nil, usagef("%s is a file here, and may be %s at host %s: write ./%s or ssh://%s/…", arg, a.Path, a.Host, arg, a.Host)
			}
		}
		list, remote = append(list, a), remote || a.Host != ""
	}
	if !remote {
		return nil, nil
	}
	return list, nil
}

// A launch is a run whose ranks this process starts at hosts.
type launch struct {
	ssh.Client
	session  *session
	stdout   io.Writer
	speaks   bool         // it says how ranks have ended: of a set, the report does
	meter    *meter       // nil: nobody looks
	group    bool         // each rank has one node of a group
	recovers bool         // the verb is recover
	missing  bool         // it goes on where nodes cannot be reached
	down     bool         // and where their hosts do not answer: the verb says what that means
	to       *ssh.Address // where files of lost nodes come; nil: where they were
	sets     setOptions
	part     group.Part // the group is
	terms    engine.Run // what all ranks have in common
	ranks    []*far

	asking sync.Mutex // is held while ssh may ask the user: for one host at a time

	mu      sync.Mutex // guards what follows, and stderr
	stopped bool
	cause   error // that the launch found first
}

type far struct {
	ssh.Address
	host string // that the user has named
	*ssh.Child
	start
	hello
	greeting
	address  string
	order    *order          // of the commands of its node; nil: it has none
	patience time.Duration   // beyond that of every rank, until its process is ended
	record   json.RawMessage // for all
	ending   *ending
}

// A greeting is how the greeting of a rank went.
type greeting struct {
	refused error         // why there was none
	took    time.Duration // from the start of ssh until the rank answered
	clock   time.Duration // by which its clock is ahead
}

// A start is what a rank is told first.
type start struct {
	Args   []string
	Dir    string      // of the node, "" where there is none
	Roots  bool        // it is a root of snapshots
	Name   string      // what the user calls it
	Absent string      // why the node cannot be reached
	From   string      // the host of the launch
	Watch  bool        // somebody looks at the progress
	Look   *site.Place `json:",omitempty"` // it looks at that before it answers

	Commanded bool `json:",omitempty"` // an order comes once it has answered

	Variable string // which has the failure domain; "": none
}

// A table is what a rank is told last.
type table struct {
	Addresses []string // of all ranks
	group.Part
}

// A hello is what a rank answers.
type hello struct {
	Version string
	PID     int
	Node    group.Identity
	Address string     // by which ssh has reached the host; "": not by ssh
	Domain  string     // what the variable says
	Found   *site.Node `json:",omitempty"` // what there was to look at
	Build   string     `json:",omitempty"` // of volley, where it has looked
	Clock   time.Time  // when it said so
}

// said is any message of a rank.
type said struct {
	Hello  *hello
	Listen string
	Record json.RawMessage `json:",omitempty"` // for all ranks, which get the list of all records once all have come
	Out    []byte
	End    *ending
	Done   int64 // bytes more
	More   int64 // that have to be; fewer below 0
}

// deal deals the arguments out to ranks: a node of a group each, and packets by their hosts.
func (l *launch) deal(cmd *cobra.Command, at []ssh.Address) error {
	output, bare := cmd.Flags().Lookup("output"), cmd.Name() == tuneVerb
	l.group = output == nil
	var to ssh.Address
	switch {
	case bare && output.Changed:
		to.Path = output.Value.String()
	case !bare && !l.group:
		var err error
		if to, err = ssh.Parse(output.Value.String()); output.Changed && (err != nil || to.Host != hostWord) {
			return usagef("-o %s: each host gets its own files: -o %s:DIR", output.Value, hostWord)
		}
	}
	args := forwarded(cmd, slices.Concat([]string{"ssh", "remote-path", "copy-binary", "output", "to", "group-size", "domain", groupFlag, metricsFlag}, rankFlagNames)...)
	if f := cmd.Flags(); f.Lookup("group-size") != nil {
		l.sets.size, _ = f.GetInt("group-size")
		l.sets.domain, _ = f.GetString("domain")
		l.sets.forget, _ = f.GetBool("force")
		if err := l.sets.check(cmd); err != nil {
			return err
		}
	}
	// One set does not hold up the others. Recover knows a lost node's place only when it has seen all.
	l.missing = cmd.Name() == "status" || cmd.Name() == "verify" || cmd.Name() == snapshotsVerb || l.sets.size != 0 && cmd.Name() != "recover"
	l.recovers = cmd.Name() == "recover"
	l.down = l.missing || (cmd.Name() == "protect" || cmd.Name() == "resize") && !ofRoots(cmd)
	if f := cmd.Flags().Lookup("to"); f != nil && f.Changed {
		a, err := ssh.Parse(f.Value.String())
		if err != nil || a.Host == hostWord {
			return usagef("--to %s: want a directory here, or HOST:DIR", f.Value)
		}
		l.missing, l.down, l.to = true, true, &a
		args = append(args, "--to="+a.Path)
	}
	local, _ := os.Hostname()
	for _, a := range at {
		same := func(x *far) bool { return x.Host == a.Host && x.Port == a.Port }
		if a.Host == hostWord || !l.group && slices.ContainsFunc(l.ranks, same) {
			continue
		}
		x := &far{Address: a, host: cmp.Or(a.Host[strings.Index(a.Host, "@")+1:], local), start: start{Args: slices.Clone(args), Roots: ofRoots(cmd), From: local, Watch: l.meter != nil, Variable: l.sets.variable()}}
		if !l.group && output.Changed {
			x.Args = append(x.Args, "--output="+to.Path)
		}
		switch {
		case l.group:
			x.Args, x.Dir, x.start.Name = append(x.Args, "--", a.Path), a.Path, a.Name
		case bare:
			x.start.Name = a.At()
		default:
			x.Args = append(x.Args, "--")
			for _, b := range at {
				if b.Host == hostWord || same(&far{Address: b}) {
					x.Args = append(x.Args, b.Path)
				}
			}
		}
		l.ranks = append(l.ranks, x)
	}
	if len(l.ranks) == 0 || l.group && len(l.ranks) < len(at) {
		return usagef("%s: name the hosts", hostWord)
	}
	return nil
}

// agree settles how the ranks listen, and who may connect.
func (l *launch) agree(cmd *cobra.Command) error {
	value := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	l.terms = engine.Run{Bind: value("bind"), Certificate: value("tls-cert"), Key: value("tls-key"), Authority: value("tls-ca")}
	if l.terms.Certificate+l.terms.Key+l.terms.Authority == "" {
		l.terms.Secret = engine.NewSecret()
	}
	if cmd.Flags().Changed("port") {
		return cmd.Flags().GetText("port", &l.terms.Ports)
	}
	return nil
}

// forwarded returns the verb and its flags, without some, as the ranks get them.
func forwarded(cmd *cobra.Command, without ...string) []string {
	args := strings.Fields(cmd.CommandPath())
	if cmd.HasParent() {
		args = args[1:] // volley
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch list, many := f.Value.(pflag.SliceValue); {
		case slices.Contains(without, f.Name):
		case many:
			for _, value := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+value)
			}
		default:
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// run starts the ranks, and has them meet, or those of each set.
func (l *launch) run(cmd *cobra.Command) error {
	defer context.AfterFunc(cmd.Context(), l.stop)()
	defer l.end()
	l.greetAll(cmd.Context())
	if l.down && !l.over() {
		if err := l.standIn(); err != nil {
			return err
		}
	}
	if !l.over() {
		l.prepare()
	}
	if l.over() {
		return l.verdict(cmd.Context())
	}
	if l.sets.size != 0 {
		return l.inSets(cmd)
	}
	if l.group {
		var ids []group.Identity
		var names []string
		var added []bool
		add, _ := cmd.Flags().GetStringArray("add")
		for _, x := range l.ranks {
			x.Node.Name = group.Name(x.start.Name)
			ids, names, added = append(ids, x.Node), append(names, x.start.Name), append(added, slices.Contains(add, x.start.Name))
		}
		order := group.Order(ids)
		if remove, err := cmd.Flags().GetStringArray("remove"); err == nil { // the group is resized
			if order, err = group.Resized(names, ids, added, remove); err != nil {
				return err
			}
			for _, i := range order[len(order)-len(remove):] {
				l.session.removed = append(l.session.removed, names[i])
			}
		}
		var ranks []*far
		for _, i := range order {
			ranks = append(ranks, l.ranks[i])
		}
		l.mu.Lock()
		l.ranks = ranks
		l.mu.Unlock()
	}
	return l.meet(cmd.Context())
}

// end ends all ranks, and waits for that.
func (l *launch) end() {
	l.stop()
	l.each(func(x *far) error {
		if x.Child != nil {
			x.Child.End(l.session.limits.end + x.patience)
		}
		return nil
	})
	for _, x := range l.ranks {
		if x.Child == nil || !x.Child.Left() || x.ending != nil || x.hello.PID <= 0 {
			continue
		}
		text := fmt.Sprintf("volley at %s does not end: process %d there", x.At(), x.hello.PID)
		if x.Dir != "" {
			text += fmt.Sprintf(" holds the lock of %s until it has, if it has come so far", x.start.Name)
		}
		l.session.say(slog.LevelError, saying{Text: fmt.Sprintf("%s. A signal may have stopped it, or the host is cut off. To end it: %s", text, l.Line(x.Address, fmt.Sprintf("kill -KILL %d", x.hello.PID))), Host: x.At()})
	}
}

// greetAll starts all ranks, one after the other at each host.
func (l *launch) greetAll(ctx context.Context) {
	type login struct {
		sync.Mutex
		hangs error
	}
	logins := map[string]*login{}
	at := func(x *far) string { return x.Host + " " + x.Port }
	for _, x := range l.ranks {
		logins[at(x)] = new(login)
	}
	l.each(func(x *far) error {
		host := logins[at(x)]
		host.Lock() // an sshd refuses many at once
		defer host.Unlock()
		err := host.hangs
		if err == nil {
			err = l.greet(x)
		}
		if errors.As(err, new(*ssh.HangError)) {
			host.hangs = err // not once more for each node
		}
		dead := errors.As(err, new(*ssh.DownError)) || errors.As(err, new(*ssh.HangError))
		switch {
		case err != nil && (l.missing || l.down && dead) && ctx.Err() == nil:
			x.Absent, x.refused, err = err.Error(), err, nil
		case dead && l.recovers:
			err = fmt.Errorf("%w. %s", err, group.Elsewhere)
		}
		return err
	})
}

// inSets has the ranks of each set meet, and prints how the sets have ended.
func (l *launch) inSets(cmd *cobra.Command) error {
	var members []sets.Member
	for _, x := range l.ranks {
		x.Node.Name = group.Name(x.start.Name)
		m := sets.Member{Name: x.start.Name, Identity: x.Node}
		if slices.ContainsFunc(members, func(o sets.Member) bool { return o.Name == m.Name }) {
			return usagef("%s is there twice: give every node its own", m.Name)
		}
		if x.Absent == "" || x.Variable == "" { // else nobody knows
			var err error
			if m.Domain, err = l.sets.domainOf(x.Domain, x.start.Name, x.host); err != nil {
				return err
			}
		}
		members = append(members, m)
	}
	list, reports, err := l.sets.choose(members)
	if err != nil {
		return err
	}
	asJSON, _ := cmd.Flags().GetBool("json")
	return runSets(cmd.Context(), l.stdout, asJSON, reports, -1, func(n int, r *setReport) error {
		set := &launch{Client: l.Client, session: l.session, stdout: &r.body, meter: l.meter, group: true, terms: l.terms, part: r.part()}
		for _, i := range list[n].Members {
			set.ranks = append(set.ranks, l.ranks[i])
		}
		err := set.meet(cmd.Context())
		if errors.Is(err, errSaid) {
			list, _ := set.ended()
			r.Error = strings.Join(names(list, saying.String), "; ")
		}
		return err
	})
}

// meet has the ranks meet, and waits for their ends.
func (l *launch) meet(ctx context.Context) error {
	here, table := l.route(), table{Part: l.part}
	l.eachRank(func(rank int, x *far) error {
		run := l.terms
		run.Rank, run.Size, run.Advertise = rank, len(l.ranks), x.hello.Address
		if ip := net.ParseIP(x.hello.Address); ip == nil || ip.IsLoopback() {
			run.Advertise = here
		}
		run.Bind = cmp.Or(run.Bind, run.Advertise)
		if err := x.Child.Send(run); err != nil {
			return err
		}
		m, err := l.next(x)
		x.address = m.Listen
		return err
	})
	for _, x := range l.ranks {
		table.Addresses = append(table.Addresses, x.address)
	}
	if !l.over() {
		l.each(func(x *far) error { return x.Child.Send(table) })
		l.each(func(x *far) error {
			if _, err := l.next(x); !errors.Is(err, errEnd) {
				return cmp.Or(err, errors.New("a message that does not belong here"))
			}
			return nil
		})
	}
	result, after := l.after()
	err := l.verdict(ctx)
	if errors.Is(err, errSaid) && after != nil {
		l.session.say(slog.LevelError, saying{Text: after.Error()})
		return err
	}
	return afterwards(result, err, after)
}

// standIn starts ranks in place of nodes that cannot be reached or are empty: where their files are to come, or at any host.
func (l *launch) standIn() error {
	at := l.to
	if at == nil {
		i := slices.IndexFunc(l.ranks, func(x *far) bool { return x.Absent == "" })
		if i < 0 {
			return errors.New(l.ranks[0].Absent)
		}
		at = &l.ranks[i].Address
	}
	l.each(func(x *far) error {
		if l.to != nil && x.hello.Node.Empty {
			x.Absent = "it is empty"
		}
		if x.Absent == "" {
			return nil
		}
		if x.Child != nil {
			x.Child.End(l.session.limits.end)
		}
		x.Address, x.Dir = *at, ""
		return l.greet(x)
	})
	return nil
}

// route returns the address by which other hosts reach this machine, where there are any.
func (l *launch) route() string {
	for _, x := range l.ranks {
		if ip := net.ParseIP(x.hello.Address); ip != nil && !ip.IsLoopback() {
			if c, err := net.Dial("udp", net.JoinHostPort(x.hello.Address, "1")); err == nil { // sends nothing
				defer c.Close()
				return c.LocalAddr().(*net.UDPAddr).IP.String()
			}
		}
	}
	return "127.0.0.1"
}

// greet starts a rank, which says who it is. Where ssh has to ask the user, it does so in a second try.
func (l *launch) greet(x *far) error {
	err := l.begin(x, l.Start)
	if l.Asks && errors.As(err, new(*ssh.AskError)) {
		l.asking.Lock()
		defer l.asking.Unlock()
		err = l.begin(x, l.Ask)
	}
	return err
}

// begin is greet for one try.
func (l *launch) begin(x *far, start func(ssh.Address) (*ssh.Child, error)) (err error) {
	begun := time.Now()
	l.mu.Lock()
	if x.Child = nil; !l.stopped {
		x.Child, err = start(x.Address)
	}
	l.mu.Unlock()
	if err != nil || x.Child == nil {
		return err
	}
	var m said
	if err = x.Child.Send(x.start); err == nil {
		m, err = l.next(x)
	}
	if errors.Is(err, errEnd) { // it refuses
		err, x.ending = exitError{fmt.Errorf("%s: %s", x.At(), x.ending.Text), x.ending.Code}, nil
	}
	if err != nil {
		if missing := new(ssh.MissingError); errors.As(err, &missing) {
			how := "--remote-path says where volley is there, --copy-binary copies this one"
			if missing.Restricted {
				how = "a restricted login shell runs only what its PATH has: put volley there, and use --remote-path volley, without --copy-binary"
			}
			err = fmt.Errorf("%w; %s", err, how)
		}
		return err
	}
	if m.Hello == nil {
		return &versionError{fmt.Sprintf("volley at %s says what volley %s, which runs here, does not: install the same version at both, or --copy-binary", x.At(), volley.Version)}
	}
	if m.Hello.Version != volley.Version {
		here, _ := os.Hostname()
		return &versionError{fmt.Sprintf("%s runs volley %s, and this machine, %s, runs volley %s: install the same version at both, or --copy-binary", x.At(), m.Hello.Version, here, volley.Version)}
	}
	x.hello, x.took, x.clock = *m.Hello, time.Since(begun), time.Until(m.Hello.Clock)
	return nil
}

// A versionError says that a host has another volley.
type versionError struct{ text string }

func (e *versionError) Error() string { return e.text }

// errEnd says that a rank has said how it ended.
var errEnd = errors.New("the rank has ended")

// next returns the next message of a rank which is not output.
func (l *launch) next(x *far) (m said, err error) {
	for {
		m = said{}
		if err := x.Child.Receive(&m); err != nil {
			return m, err
		}
		switch {
		case m.End != nil:
			x.ending = m.End
			return m, errEnd
		case m.Done != 0 || m.More != 0:
			l.meter.add(m.Done, m.More)
			continue
		case m.Record != nil:
			if err := l.gather(x, m.Record); err != nil {
				return m, err
			}
			continue
		case m.Out == nil:
			return m, nil
		}
		l.mu.Lock()
		err := printable.Fprintf(l.stdout, "%s", printable.Lines(string(m.Out)))
		l.mu.Unlock()
		if err != nil {
			return m, err
		}
	}
}

// gather notes the record of a rank. All ranks get those of all when the last one has come.
func (l *launch) gather(x *far, record json.RawMessage) error {
	l.mu.Lock()
	x.record = record
	var all []json.RawMessage
	for _, y := range l.ranks {
		if y.record != nil {
			all = append(all, y.record)
		}
	}
	l.mu.Unlock()
	if len(all) < len(l.ranks) {
		return nil
	}
	for _, y := range l.ranks {
		if err := y.Child.Send(all); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for all ranks at once. The first error is the cause for all to stop.
func (l *launch) each(f func(x *far) error) { l.eachRank(func(_ int, x *far) error { return f(x) }) }

func (l *launch) eachRank(f func(rank int, x *far) error) {
	var wg sync.WaitGroup
	for rank, x := range l.ranks {
		wg.Go(func() {
			if err := f(rank, x); err != nil {
				l.mu.Lock()
				if !l.stopped && !errors.Is(err, errEnd) {
					l.cause = cmp.Or(l.cause, err)
				}
				l.mu.Unlock()
				l.stop()
			}
		})
	}
	wg.Wait()
}

// over reports whether the ranks have to end.
func (l *launch) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// stop ends all ranks, and does not wait.
func (l *launch) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for _, x := range l.ranks {
		if x.Child != nil {
			x.Child.Stop(l.session.limits.end + x.patience)
		}
	}
}

// verdict says how the ranks ended, and returns the error of all.
func (l *launch) verdict(ctx context.Context) error {
	for _, x := range l.ranks {
		if x.ending != nil {
			l.session.note(x.ending.Values)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.cause != nil {
		return l.cause
	}
	list, code := l.ended()
	for _, x := range list {
		if !l.speaks {
			break
		}
		l.session.say(slog.LevelError, x)
	}
	if code == exitOK {
		return nil
	}
	return exitError{errSaid, code}
}

// ended returns what ranks have said of their ends, and the exit code.
func (l *launch) ended() (list []saying, code int) {
	all := make([]*ending, len(l.ranks))
	for rank, x := range l.ranks {
		all[rank] = x.ending
	}
	for _, x := range sayings(all) {
		if x.Ranks != nil {
			x.Host = l.ranks[x.Ranks[0]].At()
		}
		if !l.speaks || !l.session.json {
			x = saying{Text: l.named(x.String())}
		}
		list = append(list, x)
	}
	return list, worst(all)
}

var rankNumber = regexp.MustCompile(`\b(?:[Rr]ank|process) (\d+)\b`)

// named adds to the numbers of ranks which hosts they are.
func (l *launch) named(text string) string {
	return rankNumber.ReplaceAllStringFunc(text, func(match string) string {
		rank, err := strconv.Atoi(rankNumber.FindStringSubmatch(match)[1])
		if err != nil || rank >= len(l.ranks) {
			return match
		}
		return fmt.Sprintf("%s (%s)", match, l.ranks[rank].At())
	})
}

// say prints what a host has on its stderr.
func (l *launch) say(host, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meter.clear()
	if l.session.json {
		l.session.pass(host, line)
	} else {
		printable.Fprintf(l.session.stderr, "%s: %s\n", host, line)
	}
}
