package groups

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"volley"
	"volley/group/protection"
	"volley/group/site"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/grouptext"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
	"volley/internal/ssh"
)

const (
	checkTime = 10 * time.Second // after which a host or a connection counts as dead
	mostClock = 2 * time.Second  // by which clocks may differ
)

// A groupCheck is volley group check: what it is told, and what it has found.
type groupCheck struct {
	*groupOptions
	site.Options
	exclude       []string
	oneFileSystem *bool // see site.Directory

	client ssh.Client // what reaches hosts
	nodes  []*launch.Far
	failed error // why the connections could not be tried
	report checkReport
}

// A checkReport says whether the hosts of a group can work.
type checkReport struct {
	Well  bool         `json:"well"`
	Hosts []hostReport `json:"hosts"`
	Pairs []ranks.Pair `json:"pairs,omitempty"`
	*site.Judgement
	Wrong []wrong `json:"wrong,omitempty"`
}

type hostReport struct {
	Host    string           `json:"host"`
	Version string           `json:"version,omitempty"` // of volley there
	SSH     *float64         `json:"ssh_seconds,omitempty"`
	Clock   *float64         `json:"clock_seconds,omitempty"` // by which it is ahead of this machine's
	State   []site.FaultKind `json:"state,omitempty"`         // what is wrong with it; none: it is good
	Nodes   []nodeReport     `json:"nodes,omitempty"`
}

type nodeReport struct {
	Dir string `json:"dir"`
	*site.Inspection
}

// A wrong is why a group cannot work, and what to do next.
type wrong struct {
	Subject string `json:"at"`
	site.Fault
	Next string `json:"next"`
}

// Kinds of faults of hosts, beside those of directories.
const (
	noSSH        site.FaultKind = "no ssh"
	noVolley     site.FaultKind = "no volley"
	otherVersion site.FaultKind = "other version"
	noConnection site.FaultKind = "no connection"
)

func newGroupCheck(s *session.Invocation) *cobra.Command {
	o := &groupCheck{groupOptions: newOptions(s)}
	var oneFileSystem bool
	cmd := &cobra.Command{
		Use:   "check [flags] DIR...",
		Short: "Say whether the hosts of a group can work, and change nothing",
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.LaunchRank != nil {
				return o.beRank(cmd)
			}
			if cmd.Flags().Changed("one-file-system") {
				o.oneFileSystem = &oneFileSystem
			}
			dirs, err := o.directories(cmd, args)
			if err != nil {
				return err
			}
			o.roots = ofRoots(cmd)
			l, err := o.Launch(cmd, dirs)
			switch {
			case err != nil:
				return err
			case l != nil:
				return o.checkHosts(l, cmd)
			}
			return o.checkHere(cmd, dirs)
		},
	}
	session.ForOperators(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Tolerate, "tolerate", 0, "`R`, the nodes that may be lost at a time (default: that of the last run)")
	f.StringArrayVar(&o.exclude, "exclude", nil, "`PATTERN` of what is not protected, once for each (default: those of the last run)")
	f.BoolVar(&oneFileSystem, "one-file-system", false, "leave out what is mounted below a node (default: as in the last run)")
	f.StringVar(&o.meta, "meta", "", "`DIR` in which everything of Volley's lies, in place of the .volley of each node")
	o.step.addStep(f, "the newest at each")
	f.IntVar(&o.Size, "group-size", 0, "the nodes are to be cut into sets of at most `N`")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	end := session.FlagGroup(cmd, "Run")
	o.Timeout = checkTime
	f.Var(selection.Interval{Value: &o.Timeout}, "timeout", "a host or a connection that takes longer counts as dead")
	o.Ranks.Add(f)
	for _, name := range ranks.RankFlagNames { // those that a launch does not settle
		if slices.Contains([]string{"bind", "port", "tls-cert", "tls-key", "tls-ca"}, name) {
			f.Lookup(name).Annotations = nil
		} else {
			f.MarkHidden(name)
		}
	}
	end()
	o.Comm = ranks.AutoComm
	o.AddElsewhere(cmd)
	o.AddFile(cmd)
	return cmd
}

// directory returns how a directory is looked at.
func (o *groupCheck) directory(dir string) *site.Directory {
	d := &site.Directory{Dir: dir, Meta: o.meta, Exclude: o.exclude, OneFileSystem: o.oneFileSystem}
	if o.roots {
		d.Step = (*int64)(&o.step)
	}
	return d
}

// check refuses what no group can have.
func (o *groupCheck) check(dirs int) error {
	switch {
	case dirs < 2:
		return exit.Usagef("need at least 2 directories, got %d", dirs)
	case o.Tolerate < 0 || o.Size < 0:
		return exit.Usagef("--tolerate %d, --group-size %d: want 0 or more", o.Tolerate, o.Size)
	}
	return exit.AsUsage(o.directory("").Validate())
}

// checkHere checks nodes that all are directories of this machine.
func (o *groupCheck) checkHere(cmd *cobra.Command, dirs []string) error {
	for _, name := range []string{"rank", "size", "meet", "secret", "advertise"} {
		if cmd.Flags().Changed(name) {
			return exit.Usagef("--%s: check reaches hosts by ssh, which settles that: leave the flag out", name)
		}
	}
	if err := o.check(len(dirs)); err != nil {
		return err
	}
	o.nodes = make([]*launch.Far, len(dirs))
	var looking sync.WaitGroup
	for i, dir := range dirs {
		looking.Go(func() {
			found := site.Look(cmd.Context(), *o.directory(dir))
			a, _ := ssh.Parse(dir)
			o.nodes[i] = &launch.Far{Address: a, Hello: launch.Hello{Found: &found}}
		})
	}
	looking.Wait()
	return o.conclude(cmd)
}

// checkHosts checks nodes on hosts: each rank looks before it answers, and those that have answered connect.
func (o *groupCheck) checkHosts(l *launch.Launch, cmd *cobra.Command) error {
	if err := o.check(len(l.Ranks)); err != nil {
		return err
	}
	l.Missing, l.Greeting = true, l.Limit
	o.client, o.nodes = l.Client, l.Ranks
	for _, x := range l.Ranks {
		x.Watch, x.Look = false, o.directory(x.Dir)
	}
	defer l.End()
	l.GreetAll(cmd.Context())
	var body bytes.Buffer
	var ranks []*launch.Far
	for _, x := range l.Ranks {
		if err := x.Found.Validate(); err != nil && x.Refused == nil {
			x.Refused = fmt.Errorf("%s does not say what it has: %w", x.Label(), err)
		}
		if x.Refused != nil {
			x.Found = nil
		} else {
			ranks = append(ranks, x)
		}
	}
	if err := cmd.Context().Err(); err != nil {
		return context.Cause(cmd.Context())
	}
	if len(ranks) > 1 {
		joint := l.Set(ranks, protection.SetIndex{}, &body)
		o.failed = joint.Meet(cmd.Context())
		if errors.Is(o.failed, exit.ErrSaid) {
			o.failed = errors.New(joint.EndingText())
		}
		if o.failed == nil {
			o.failed = json.Unmarshal(body.Bytes(), &o.report.Pairs)
		}
		if cmd.Context().Err() != nil {
			return context.Cause(cmd.Context())
		}
	}
	return o.conclude(cmd)
}

// beRank has a rank connect with all others. The first one prints how.
func (o *groupCheck) beRank(cmd *cobra.Command) error {
	pairs, err := o.Pairs(cmd.Context())
	if err != nil || o.Session.Party.Rank() > 0 {
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(pairs)
}

func (o *groupCheck) addFault(subject string, kind site.FaultKind, text, next string) {
	o.report.Wrong = append(o.report.Wrong, wrong{subject, site.Fault{Kind: kind, Text: text}, next})
}

// commandAt returns a command as it is typed here to run at a host.
func (o *groupCheck) commandAt(a ssh.Address, words ...string) string {
	return o.client.Line(a, shellLine(words))
}

// shellLine returns a command as a shell takes it.
func shellLine(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, ssh.Quote(word))
	}
	return strings.Join(quoted, " ")
}

// conclude judges, and prints the report.
func (o *groupCheck) conclude(cmd *cobra.Command) error {
	var list []site.Placement
	for _, x := range o.nodes {
		list = append(list, site.Placement{Name: x.Address.Name, Host: x.Label(), Inspection: x.Found})
	}
	var err error
	if o.report.Judgement, err = site.Judge(list, o.Options); err != nil {
		return exit.AsUsage(err)
	}
	for _, x := range o.nodes {
		o.add(x)
	}
	if o.failed != nil {
		o.addFault("all", noConnection, "the connections could not be tried: "+session.Message(o.failed), "mend that, and run volley group check again")
	}
	o.addPairs()
	if o.report.Well = o.report.Wrong == nil; o.json {
		err = session.WriteJSON(cmd.OutOrStdout(), o.report)
	} else {
		err = printCheck(cmd.OutOrStdout(), &o.report)
	}
	if err == nil && !o.report.Well {
		err = exit.WithCode(exit.ErrSaid, exit.Wrong)
	}
	return err
}

// host returns the report of a host, and whether it is the first time.
func (o *groupCheck) host(a ssh.Address) (h *hostReport, first bool) {
	name := a.Label()
	if a.Port != "" {
		name += ":" + a.Port
	}
	i := slices.IndexFunc(o.report.Hosts, func(h hostReport) bool { return h.Host == name })
	if first = i < 0; first {
		i, o.report.Hosts = len(o.report.Hosts), append(o.report.Hosts, hostReport{Host: name})
	}
	return &o.report.Hosts[i], first
}

// addState notes what is wrong with a host, and reports whether that is new.
func (h *hostReport) addState(kind site.FaultKind) bool {
	if slices.Contains(h.State, kind) {
		return false
	}
	h.State = append(h.State, kind)
	return true
}

// add adds a node to the report of its host.
func (o *groupCheck) add(x *launch.Far) {
	h, first := o.host(x.Address)
	if first && x.Refused == nil {
		h.Version = volley.Version
	}
	if first && x.Refused == nil && x.Host != "" {
		took, clock := x.Took.Seconds()-x.Found.Seconds, x.Ahead.Seconds()
		h.SSH, h.Clock = &took, &clock
		if x.Ahead.Abs() > mostClock {
			direction := "ahead"
			if clock < 0 {
				direction = "behind"
			}
			o.report.Notes = append(o.report.Notes, fmt.Sprintf("the clock of %s is %s %s: times of files and logs do not compare", h.Host, report.Seconds(math.Abs(clock)), direction))
		}
		if mine := session.Build(); x.Build != "" && mine != "" && x.Build != mine && strings.Fields(x.Build)[0] == strings.Fields(mine)[0] {
			o.report.Notes = append(o.report.Notes, fmt.Sprintf("%s runs another build of volley %s", h.Host, volley.Version))
		}
	}
	if h.Nodes = append(h.Nodes, nodeReport{x.Address.Name, x.Found}); x.Refused != nil {
		if kind, next := o.refusal(x); h.addState(kind) { // not once more for each node
			o.addFault(h.Host, kind, x.Refused.Error(), next)
		}
		return
	}
	for _, f := range x.Found.Faults {
		h.addState(f.Kind)
		remedy, known := remedies[f.Kind]
		if !known {
			remedy = []string{"ls", "-la"}
		}
		o.addFault(x.Address.Name, f.Kind, f.Text, o.commandAt(x.Address, append(slices.Clip(remedy), x.Path)...))
	}
}

// refusal returns why a host has not answered, and the next command.
func (o *groupCheck) refusal(x *launch.Far) (site.FaultKind, string) {
	target := o.client.Program
	if !strings.Contains(target, "/") {
		target = "/usr/local/bin/" + target
	}
	line := []string{"scp"}
	if x.Port != "" {
		line = append(line, "-P", x.Port)
	}
	copying := shellLine(append(line, o.client.LocalProgram[0], x.Host+":"+target))
	switch {
	case errors.As(x.Refused, new(*launch.HostVersionError)):
		return otherVersion, copying
	case errors.As(x.Refused, new(*ssh.StartError)):
		return noVolley, copying
	}
	return noSSH, o.commandAt(x.Address, "true")
}

// remedies are commands for a directory that has a fault.
var remedies = map[site.FaultKind][]string{site.NoDirectory: {"mkdir", "-p"}, site.NoMount: {"mount"}, site.NoRoom: {"df", "-h"}}

// addPairs adds the pairs of hosts that cannot connect, each once.
func (o *groupCheck) addPairs() {
	host := func(name string) *hostReport {
		i := slices.IndexFunc(o.nodes, func(x *launch.Far) bool { return x.Address.Name == name })
		h, _ := o.host(o.nodes[i].Address)
		return h
	}
	seen := map[[2]*hostReport]bool{}
	for _, p := range o.report.Pairs {
		if p.Error == "" {
			continue
		}
		if pair := [2]*hostReport{host(p.SourceHost), host(p.TargetHost)}; !seen[pair] {
			seen[pair] = true
			pair[1].addState(noConnection)
			o.addFault(p.SourceHost+" to "+p.TargetHost, noConnection, fmt.Sprintf("%s to %s: %s", p.Source, p.Address, p.Error), p.Open)
		}
	}
}

// cell returns the text of what is known.
func cell[T any](value *T, text func(T) string) string {
	if value == nil {
		return "-"
	}
	return text(*value)
}

// printCheck prints a line for each host, then what is wrong, and at last what that comes to.
func printCheck(w io.Writer, r *checkReport) error {
	bytes := func(n int64) string { return humanize.IBytes(uint64(n)) }
	space := func(h hostReport) (data, free *int64) {
		for _, n := range h.Nodes {
			if n.Inspection == nil {
				continue
			}
			if data == nil {
				data = new(int64)
			}
			*data += n.Bytes
			if n.Free != nil && (free == nil || *n.Free < *free) {
				free = n.Free
			}
		}
		return data, free
	}
	err := report.Text(w, []report.Column[hostReport]{
		{Name: "host", Value: func(h hostReport) any { return h.Host }},
		{Name: "volley", Value: func(h hostReport) any { return cmp.Or(h.Version, "-") }},
		{Name: "ssh", Value: func(h hostReport) any { return cell(h.SSH, func(s float64) string { return report.Seconds(s) }) }},
		{Name: "clock", Value: func(h hostReport) any {
			return cell(h.Clock, func(s float64) string { return fmt.Sprintf("%+.1fs", s) })
		}},
		{Name: "nodes", Value: func(h hostReport) any { return len(h.Nodes) }},
		{Name: "data", Value: func(h hostReport) any { data, _ := space(h); return cell(data, bytes) }},
		{Name: "least free", Value: func(h hostReport) any { _, free := space(h); return cell(free, bytes) }},
		{Name: "state", Value: func(h hostReport) any {
			if h.State == nil {
				return "good"
			}
			return printable.List(h.State)
		}},
	}, r.Hosts)
	if err != nil {
		return err
	}
	printable.Fprintf(w, "\n")
	if r.Parity > 0 {
		nodes := 0
		for _, h := range r.Hosts {
			nodes += len(h.Nodes)
		}
		room := "no node has that much free"
		switch len(r.Roomy) {
		case 0:
		case nodes:
			room = "all nodes have that much free"
		default:
			room = "that much is free at " + printable.List(r.Roomy)
		}
		printable.Fprintf(w, "room       about %s at each node, for parity\n", bytes(r.Parity))
		printable.Fprintf(w, "           %s to recover the largest node: %s\n", bytes(r.Recovery), room)
	}
	if r.Pairs != nil {
		good := 0
		for _, p := range r.Pairs {
			if p.Error == "" {
				good++
			}
		}
		printable.Fprintf(w, "pairs      %d of %d connect\n", good, len(r.Pairs))
	}
	grouptext.Notes(w, r.Notes)
	for _, x := range r.Wrong {
		printable.Fprintf(w, "%-10s %s: %s; next: %s\n", "wrong", x.Subject, x.Text, x.Next)
	}
	if r.Well {
		return printable.Fprintf(w, "all is well\n")
	}
	n := len(r.Wrong)
	return printable.Fprintf(w, "%s %s wrong; next: %s\n", printable.Count(n, "thing"), printable.Plural(n, "is", "are"), r.Wrong[0].Next)
}
