// Package groups has the verbs for groups of nodes.
package groups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/executor"
	"volley/group"
	"volley/group/protection"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/gauges"
	"volley/internal/grouptext"
	"volley/internal/launch"
	"volley/internal/ssh"
	"volley/transport"
)

type groupOptions struct {
	ranks.Joining
	sets     setOptions
	json     bool
	key      string
	believe  string
	meta     string
	step     step
	reads    int64                // bytes a second of each node; 0: no limit
	flags    string               // by which the command line names the nodes
	named    string               // the same, and the directories
	dirs     []string             // that this process is given: its own, or those of all
	rank     int                  // of all, where that of the party is one of a set
	dir      string               // of the one node that this process has; empty: none, or several
	roots    bool                 // directories are roots of snapshots
	resizing *group.ResizeOptions // nil: a group stays as large as it is
}

func newOptions(s *session.Invocation) *groupOptions {
	o := &groupOptions{Joining: ranks.Joining{Session: s}, step: step(group.Latest)}
	o.Nodes = o
	return o
}

// directories returns those of the group file, if one is named, or else the arguments, and those that a resize adds.
func (o *groupOptions) directories(cmd *cobra.Command, args []string) ([]string, error) {
	dirs, err := o.FromFile(cmd, args)
	o.sets.domains = o.File.Domains
	if err != nil || o.resizing == nil || o.Session.LaunchRank != nil { // the launch has added them
		return dirs, err
	}
	return o.resized(dirs)
}

// A step is the snapshot of roots that a verb takes: its number, or group.Latest.
type step int64

// UnmarshalText takes a number or latest.
func (s *step) UnmarshalText(text []byte) error {
	*s = step(group.Latest)
	if string(text) == latest {
		return nil
	}
	number, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return fmt.Errorf("%q: want latest, or a number, 0 or more", text)
	}
	*s = step(number)
	return nil
}

// MarshalText returns what UnmarshalText takes.
func (s step) MarshalText() ([]byte, error) {
	if int64(s) == group.Latest {
		return []byte(latest), nil
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

const latest = "latest"

// addStep adds the flag that makes roots of snapshots of the directories.
func (s *step) addStep(f *pflag.FlagSet, taken string) {
	f.TextVar(s, "step", step(group.Latest), "each DIR is a root of snapshots, directories step-N in it: take `N`, or latest: "+taken)
	f.Lookup("step").DefValue = "" // without the flag each DIR is a node
}

const recoverable = "the newest that is in force or can be recovered"

func (o *groupOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.String("metrics", "", "`FILE` for metrics of the run as OpenMetrics, such as in a node exporter's textfile directory")
	f.StringVar(&o.key, "key", "", "`FILE` with the key of the group; none: do not check keys, and protect without one")
	f.StringVar(&o.meta, "meta", "", "`DIR` in which everything of Volley's lies, in place of the .volley of each node: that of node 3 in DIR/node.3")
	f.StringVar(&o.believe, "believe", "", "`NODE`, by DIR or number, whose newest generation counts where that cannot be told")
	o.sets.add(f)
	o.Joining.Add(f, "node")
	f.Var(ranks.Rate(&o.reads), "limit-read", "`BYTES` a second that are read of each node at most, such as 20MB")
	o.AddElsewhere(cmd)
	f.StringVar(&o.FileName, ranks.GroupFlag, "", "`FILE` with the directories of the group and its flags: volley help groups")
}

// begin joins the others, and returns the directories of the nodes here and the options of all verbs.
func (o *groupOptions) begin(cmd *cobra.Command, args []string) (dirs []string, options protection.Settings, err error) {
	o.dirs, o.roots = args, ofRoots(cmd)
	if err := o.Join(cmd.Context()); err != nil {
		return nil, options, err
	}
	if err := o.sets.check(cmd); err != nil {
		return nil, options, err
	}
	if r, err := cmd.Flags().GetInt("tolerate"); err == nil && r < 1 && cmd.Flags().Changed("tolerate") {
		return nil, options, exit.Usagef("--tolerate %d: want 1 or more", r)
	}
	s := o.Session
	if s.OwnsProcess && o.Party.Job() { // beside what else runs here; garbage would take more than half of the memory
		debug.SetGCPercent(50)
	}
	options = protection.Settings{Memory: o.Memory, Timeout: o.Timeout, Progress: o.Progress(), Log: s.Log, ReadRate: o.reads}
	if err := group.UseKey(&options, o.key); err != nil {
		return nil, options, err
	}
	if len(args) == 0 {
		return nil, options, exit.Usagef("no directories: name that of every node, in order; under mpirun each process its own, such as '/local/ckpt.{rank}'")
	}
	options.Believe, options.Meta, options.Roots, options.Step = o.believe, o.meta, o.roots, int64(o.step)
	if s.LaunchRank != nil {
		options.Names, options.Absent, options.Origin = []string{s.LaunchRank.Start.Name}, []string{s.LaunchRank.Absent}, s.LaunchRank.LaunchHost
	}
	if o.dir != "" {
		return []string{o.dir}, options, nil
	}
	dirs = slices.Clone(args)
	if o.Party.Job() && len(args) > 1 && !strings.Contains(args[0], ranks.RankWord) { // those of all
		first, end := executor.Hosted(len(args), o.Party.Rank(), o.Party.Size())
		dirs = dirs[first:end]
	}
	for i := range dirs {
		dirs[i] = strings.ReplaceAll(dirs[i], ranks.RankWord, fmt.Sprint(o.Party.Rank()))
	}
	return dirs, options, nil
}

// waysOn says with which flag a verb does what it has refused.
var waysOn = map[protection.Option]string{
	protection.OptionBelieve:       "name with --believe DIR the node to go by",
	protection.OptionForce:         "--force protects the group as it is",
	protection.OptionAcceptDeleted: "if it was meant, --accept deleted",
	protection.OptionAcceptChanged: "if it was meant, --accept changed",
	protection.OptionTolerate:      "say it with --tolerate R",
	protection.OptionFiles:         "--file PATTERN brings back what matters",
	protection.OptionGiveUp:        "--force gives it up",
	protection.OptionKey:           "--key FILE names it, --key none goes without",
	protection.OptionSets:          "--group-size N takes all, where protect cut them into sets",
}

// wayOn adds to an error what the command line can do about it.
func wayOn(err error, style grouptext.Style) error {
	var advice protection.Option
	if input := new(protection.RefusedError); errors.As(err, &input) {
		advice = input.Option
	}
	text := waysOn[advice]
	if advice == protection.OptionAcceptDeleted || advice == protection.OptionAcceptChanged {
		text = fmt.Sprintf("%s brings it back; %s", style.Next(grouptext.Undo), text)
	}
	if down := new(protection.UnreachableError); errors.As(err, &down) && !down.Since.IsZero() {
		words := "resize --force"
		for _, dir := range down.Nodes {
			words += " --remove " + ssh.QuoteWord(dir)
		}
		text = "or take it out, and give its files up: " + style.Next(words)
	}
	if text == "" && errors.As(err, new(*group.NotLostError)) {
		text = "or name another snapshot with --step N"
	}
	if text == "" && errors.Is(err, fs.ErrPermission) {
		text = "run the verb as the owner of the files"
	}
	if text != "" {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}

// A part is the nodes here of a group, or of one set of the nodes.
type part struct {
	*group.Group
	dirs  []string
	index protection.SetIndex
}

// A groupVerb is what a verb does on the nodes here of a group.
type groupVerb[R any] func(g part, ctx context.Context) (R, error)

// onSets runs a verb on each set of the nodes of the group file, or of the arguments: here, or by ranks at their hosts.
// It prints the reports. verdict, unless nil, says after that what a report comes to.
func onSets[R any](o *groupOptions, cmd *cobra.Command, args []string, verb groupVerb[R], print func(w io.Writer, r R, style grouptext.Style) error, verdict func(R, grouptext.Style) error) error {
	o.flags, o.named = namesOf(cmd, nil), namesOf(cmd, args)
	args, err := o.directories(cmd, args)
	if err != nil {
		return err
	}
	return o.Spread(cmd, args, func() error {
		dirs, options, err := o.begin(cmd, args)
		if err != nil {
			return err
		}
		return o.inSets(cmd, dirs, func(t transport.Transport, dirs []string, index protection.SetIndex, w io.Writer) error {
			r, err := verb(part{group.Join(t, dirs, options), dirs, index}, cmd.Context())
			if err != nil {
				return wayOn(err, o.style(cmd))
			}
			if err := finish(o, cmd, w, r, print); err != nil || verdict == nil {
				return err
			}
			return verdict(r, o.style(cmd))
		})
	})
}

// finish prints the report of a verb at rank 0, as JSON if asked.
func finish[R any](o *groupOptions, cmd *cobra.Command, w io.Writer, report R, print func(w io.Writer, r R, style grouptext.Style) error) error {
	if o.Party.Rank() > 0 {
		return nil
	}
	o.Session.Gauges.Note(gauges.FromReport(report))
	for _, text := range grouptext.Warnings(report, o.style(cmd)) {
		o.Session.Say(slog.LevelWarn, launch.Saying{Text: text})
	}
	if o.json {
		return session.WriteJSON(w, report)
	}
	return print(w, report, o.style(cmd))
}

// style returns how reports are written.
func (o *groupOptions) style(cmd *cobra.Command) grouptext.Style {
	dry, _ := cmd.Flags().GetBool("dry-run") // or the verb has no such flag
	named := o.named
	if rank := o.Session.LaunchRank; rank != nil {
		named = rank.Named
	} else if o.Party.Job() { // each process has directories of its own
		named = o.flags
	}
	return grouptext.Style{Verbose: session.Verbose(cmd), Dry: dry, Nodes: named}
}

// namesOf returns the flags and directories by which a command line names nodes, before a group file adds to the flags.
func namesOf(cmd *cobra.Command, dirs []string) string {
	var words []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{ranks.GroupFlag, "group-size", "key", "meta", "step", "ssh", "remote-path", "bind", "port", "comm"}, f.Name) && f.Value.String() != "" {
			words = append(words, "--"+f.Name, ssh.QuoteWord(f.Value.String()))
		}
	})
	for _, dir := range dirs {
		words = append(words, ssh.QuoteWord(dir))
	}
	return strings.Join(words, " ")
}

func newProtect(s *session.Invocation) *cobra.Command {
	o := newOptions(s)
	p := group.ProtectOptions{}
	oneFileSystem := false
	cmd := &cobra.Command{
		Use:   "protect [--tolerate R] [flags] DIR...",
		Short: "Protect the files of a group of nodes by parity at each of them",
	}
	f := cmd.Flags()
	f.IntVar(&p.Tolerate, "tolerate", 0, "`R`, the nodes that may be lost at a time (default: that of the last run)")
	f.StringVar(&p.Digest, "digest", "", "`DIGEST` of files and parity: sha256, blake3, or xxh3 against accidents only (default: that of the last run, or sha256)")
	f.StringArrayVar(&p.Exclude, "exclude", nil, "`PATTERN` of what is not protected, as in .gitignore, once for each; '': nothing (default: those of the last run)")
	f.BoolVar(&oneFileSystem, "one-file-system", false, "leave out what other file systems have, which are mounted below a node (default: as in the last run)")
	f.BoolVar(&p.Full, "full", false, "read also what has not changed, and compare it with what was protected")
	f.BoolVar(&p.DryRun, "dry-run", false, "say what protecting would take, with -v file by file, and write nothing")
	f.IntVar(&p.Retain, "retain", 0, "then remove snapshots older than the newest `M` that can be recovered; 0: none")
	f.BoolVar(&p.Force, "force", false, "protect although nodes are lost or files damaged")
	addAccept(f, &p)
	return newVerb(o, cmd, "the newest that all roots have", func(g part, ctx context.Context) (*group.ProtectReport, error) {
		if p.Retain < 0 || p.Retain > 0 && !o.roots {
			return nil, exit.Usagef("--retain %d: want how many snapshots of roots stay, with --step", p.Retain)
		}
		p := p
		p.Part = g.index
		if f.Changed("exclude") { // or else nil
			p.Exclude = slices.DeleteFunc(append([]string{}, p.Exclude...), func(pattern string) bool { return pattern == "" })
		}
		if f.Changed("one-file-system") {
			p.OneFileSystem = &oneFileSystem
		}
		return g.Protect(ctx, p)
	}, grouptext.Protect, nil)
}

func newVerify(s *session.Invocation) *cobra.Command {
	x := group.VerifyOptions{}
	cmd := &cobra.Command{
		Use:   "verify [flags] DIR...",
		Short: "Say which nodes and files of a protected group are whole",
	}
	cmd.Flags().TextVar((*portion)(&x), "part", portion{}, "`PART` of each node to read: 3/30, or today/30 for another one each day")
	return newVerb(newOptions(s), cmd, recoverable, func(g part, ctx context.Context) (*group.VerifyReport, error) {
		return g.Verify(ctx, x)
	}, grouptext.Verify, grouptext.Broken)
}

// A portion is a flag. Its text is the part of one day, which hosts get in place of today.
type portion group.VerifyOptions

// UnmarshalText takes 3/30 or, for the day since 1970 by UTC modulo 30, plus 1, today/30.
func (p *portion) UnmarshalText(text []byte) error {
	number, parts, _ := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(parts)
	i := 0
	if err == nil && n > 0 && number == "today" {
		i = int(time.Now().Unix()/(24*60*60)%int64(n)) + 1
	} else if err == nil {
		i, err = strconv.Atoi(number)
	}
	if err != nil || i < 1 || i > n {
		return fmt.Errorf("part %q: want one such as 3/30 or today/30", text)
	}
	*p = portion{Part: i, Parts: n}
	return nil
}

// MarshalText returns what UnmarshalText takes.
func (p portion) MarshalText() ([]byte, error) {
	if p.Parts == 0 {
		return nil, nil
	}
	return fmt.Appendf(nil, "%d/%d", p.Part, p.Parts), nil
}

// newVerb makes cmd what onSets runs. Its own flags are there. taken, unless empty, is which snapshot of roots it takes.
func newVerb[R any](o *groupOptions, cmd *cobra.Command, taken string, verb groupVerb[R], print func(w io.Writer, r R, style grouptext.Style) error, verdict func(R, grouptext.Style) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return onSets(o, cmd, args, verb, print, verdict) }
	if taken != "" {
		o.step.addStep(cmd.Flags(), taken)
	}
	o.add(cmd)
	return cmd
}

func newStatus(s *session.Invocation) *cobra.Command {
	least := uint(0)
	cmd := &cobra.Command{
		Use:   "status [flags] DIR...",
		Short: "Say at a glance how the nodes of a group are",
	}
	cmd.Flags().UintVar(&least, "at-least", 0, "end with exit code 3, too, where fewer than `N` more nodes may be lost now")
	return newVerb(newOptions(s), cmd, recoverable, part.Status, grouptext.Status, func(r *group.VerifyReport, style grouptext.Style) error {
		return grouptext.Margin(r, int(least), style)
	})
}

func newRecover(s *session.Invocation) *cobra.Command {
	x := group.RecoverOptions{}
	cmd := &cobra.Command{
		Use:   "recover [flags] DIR...",
		Short: "Recover lost nodes and damaged files of a protected group",
	}
	f := cmd.Flags()
	f.TextVar((*edits)(&x.Revert), "revert", edits{}, "`EDITS` of users to undo: files that they have changed, deleted or both, with a comma")
	f.StringArrayVar(&x.Files, "file", nil, "`FILE` that alone comes back, of one node as DIR/FILE, or a pattern as in .gitignore, once for each; deleted files, too")
	f.StringVar(&x.OutDir, "to", "", "`DIR` that gets what --file names, as DIR/node.<k>; nothing else is written")
	f.BoolVar(&x.DryRun, "dry-run", false, "say what would be done, and write nothing")
	return newVerb(newOptions(s), cmd, recoverable, func(g part, ctx context.Context) (*group.RecoverReport, error) {
		return g.Recover(ctx, x)
	}, func(w io.Writer, r *group.RecoverReport, style grouptext.Style) error {
		return grouptext.Recover(w, r, x.OutDir != "", style)
	}, func(r *group.RecoverReport, _ grouptext.Style) error { return r.Incomplete() })
}

// Verbs returns those for directories of nodes.
func Verbs(s *session.Invocation) []*cobra.Command {
	return []*cobra.Command{newProtect(s), newRecover(s), newVerify(s), newStatus(s), newResize(s), newUnprotect(s), newSnapshots(s)}
}

// Nodes are what a rank of any verb tells others of the nodes that it has none of.
func Nodes(s *session.Invocation) ranks.Nodes { return newOptions(s) }

// addAccept adds the flag of what was meant, although it looks like an accident.
func addAccept(f *pflag.FlagSet, o *group.ProtectOptions) {
	f.TextVar((*edits)(&o.Accept), "accept", edits{}, "`EDITS` that were meant, although most files of a node are deleted or changed: deleted, changed or both, with a comma")
}

// edits is a flag of edits, with commas between them, or once for each.
type edits protection.Edits

// UnmarshalText adds edits.
func (e *edits) UnmarshalText(text []byte) error {
	for _, name := range strings.Split(string(text), ",") {
		switch name {
		case group.Changed:
			e.Changed = true
		case group.Deleted:
			e.Deleted = true
		default:
			return fmt.Errorf("%q: want changed, deleted, or changed,deleted", text)
		}
	}
	return nil
}

// MarshalText returns what UnmarshalText takes.
func (e edits) MarshalText() ([]byte, error) {
	var list []string
	if e.Changed {
		list = append(list, group.Changed)
	}
	if e.Deleted {
		list = append(list, group.Deleted)
	}
	return []byte(strings.Join(list, ",")), nil
}

func newSnapshots(s *session.Invocation) *cobra.Command {
	cmd := newVerb(newOptions(s), &cobra.Command{
		Use:   "snapshots [flags] DIR...",
		Short: "List the snapshots of a group of nodes",
	}, "", part.Snapshots, grouptext.Snapshots, nil)
	for _, name := range []string{"group-size", "believe"} { // which are for one snapshot, or none
		cmd.Flags().MarkHidden(name)
	}
	return cmd
}

func newUnprotect(s *session.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unprotect [flags] DIR...",
		Short: "End the protection of a group of nodes",
	}
	var yes, force bool
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it")
	cmd.Flags().BoolVar(&force, "force", false, "also where something is lost or damaged, which then never comes back")
	return newVerb(newOptions(s), cmd, "", func(g part, ctx context.Context) (*group.UnprotectReport, error) {
		return g.Unprotect(ctx, group.UnprotectOptions{Force: force, DryRun: !yes})
	}, func(w io.Writer, r *group.UnprotectReport, style grouptext.Style) error {
		return grouptext.Unprotect(w, r, yes, style)
	}, func(r *group.UnprotectReport, _ grouptext.Style) error {
		if !yes && r.Protected {
			return exit.Usagef("nothing is removed: --yes removes the protection")
		}
		return nil
	})
}
