package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"volley/executor"
	"volley/field"
	"volley/group"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/report"
	"volley/internal/selection"
	"volley/transport"
)

type groupOptions struct {
	choice // of which only the network is used
	joining
	json    bool
	key     string
	believe string
	meta    string
	step    int64
	reads   string // bytes a second of each node; "": no limit
}

// addSnapshots adds the flags that make roots of snapshots of the directories.
func (o *groupOptions) addSnapshots(cmd *cobra.Command, name, usage string) {
	f := cmd.Flags()
	f.Bool(name, false, usage)
	f.Int64Var(&o.step, "step", group.Latest, "each DIR is a root: take its snapshot step-`N`")
	f.Lookup("step").DefValue = "0" // not shown
}

// ofRoots reports whether the directories that a verb is given are roots of snapshots.
func ofRoots(cmd *cobra.Command) bool {
	on := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f != nil && f.Changed && f.Value.String() != "false"
	}
	return on("root") || on("latest") || on("step") || cmd.Name() == snapshotsVerb
}

const snapshotsVerb = "snapshots"

const latestUsage = "each DIR is a root of snapshots, directories step-N in it: take the newest that is in force or can be recovered"

func (o *groupOptions) add(cmd *cobra.Command) {
	forOperators(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.String(metricsFlag, "", "`FILE` for metrics of the run as OpenMetrics, such as in a node exporter's textfile directory")
	f.StringVar(&o.key, "key", "", "`FILE` with the key of the group; none: do not check keys, and protect without one")
	f.StringVar(&o.meta, "meta", "", "`DIR` in which everything of Volley's lies, in place of the .volley of each node: that of node 3 in DIR/node.3")
	end := flagGroup(cmd, "Override")
	f.StringVar(&o.believe, "believe", "", "`NODE`, by DIR or number, whose newest generation counts where that cannot be told")
	end()
	end = flagGroup(cmd, "Run")
	o.sets.add(f)
	o.joining.add(f, "node")
	f.StringVar(&o.reads, readsFlag, "", "`BYTES` a second that are read of each node at most, such as 20MB")
	o.AddNetwork(f)
	end()
	o.addElsewhere(cmd)
	o.addFile(cmd)
}

const readsFlag = "limit-read"

// readRate returns how many bytes a second may be read of each node; 0: no limit.
func (o *groupOptions) readRate() (int64, error) {
	if o.reads == "" {
		return 0, nil
	}
	rate, err := selection.ParseSize(o.reads)
	if err != nil || rate < leastRate {
		return 0, exit.Usagef("--%s %q: want bytes a second such as 20MB, 1MiB or more", readsFlag, o.reads)
	}
	return rate, nil
}

// begin joins the others, and returns the directories of the nodes here and the options of all verbs.
func (o *groupOptions) begin(cmd *cobra.Command, args []string) (dirs []string, options group.Options, err error) {
	o.dirs, o.roots = args, ofRoots(cmd)
	if err := o.join(cmd.Context()); err != nil {
		return nil, options, err
	}
	if err := o.sets.check(cmd); err != nil {
		return nil, options, err
	}
	if flag := cmd.Flags().Lookup("step"); flag != nil && flag.Changed && o.step < 0 {
		return nil, options, exit.Usagef("--step %d: want 0 or more", o.step)
	}
	if flag := cmd.Flags().Lookup("latest"); flag != nil && flag.Changed && o.step != group.Latest {
		return nil, options, exit.Usagef("--latest, --step %d: leave one of both out", o.step)
	}
	if options, err = o.common(cmd, len(args)); err != nil {
		return nil, options, err
	}
	if options.ReadRate, err = o.readRate(); err != nil {
		return nil, options, err
	}
	if len(args) == 0 {
		return nil, options, exit.Usagef("no directories: name that of every node, in order; under mpirun each process its own, such as '/local/ckpt.{rank}'")
	}
	options.Believe, options.Meta, options.Roots, options.Step = o.believe, o.meta, o.roots, o.step
	if s := o.session; s.at != nil {
		options.Names, options.Absent, options.From = []string{s.at.Start.Name}, []string{s.at.Absent}, s.at.From
	}
	if o.dir != "" {
		return []string{o.dir}, options, nil
	}
	dirs = slices.Clone(args)
	if o.party.job() && len(args) > 1 && !strings.Contains(args[0], rankWord) { // those of all
		first, end := executor.Hosted(len(args), o.party.Rank(), o.party.Size())
		dirs = dirs[first:end]
	}
	for i := range dirs {
		dirs[i] = strings.ReplaceAll(dirs[i], rankWord, fmt.Sprint(o.party.Rank()))
	}
	return dirs, options, nil
}

// common returns what verbs for directories and for memory have in common, once the others have joined. There are so many
// nodes, or as many as processes.
func (o *groupOptions) common(cmd *cobra.Command, nodes int) (options group.Options, err error) {
	s := o.session
	if s.own && o.party.job() { // beside what else runs here; garbage would take more than half of the memory
		debug.SetGCPercent(50)
	}
	memory, err := o.memoryBytes()
	if err != nil {
		return options, err
	}
	bytes, err := field.Parse(selection.UsualField)
	if err != nil {
		return options, err
	}
	o.Log = s.log
	o.Place, o.Process, o.Lenient = o.party.place(max(o.party.Size(), nodes)), !o.party.job(), true
	m, err := o.Model(bytes, 1)
	if err != nil {
		return options, err
	}
	options = group.Options{Memory: memory, Timeout: o.timeout, Network: m.Network, Gamma: m.Gamma, Progress: o.progress(s), Log: o.Log}
	return options, options.UseKey(o.key)
}

// waysOn says with which flag a verb does what it has refused.
var waysOn = map[group.Way]string{
	group.WayBelieve:      "name with --believe DIR the node to go by",
	group.WayForce:        "--force protects the group as it is",
	group.WayAllowDeleted: "if it was meant, --allow-deleted",
	group.WayAllowChanged: "recover --revert --deleted brings it back; if it was meant, --allow-changed",
	group.WayBeyond:       "--beyond does it",
	group.WayPartly:       "--partly leaves out the largest files",
	group.WayGiveUp:       "--force gives it up",
	group.WayKey:          "--key FILE names it, --key none goes without",
	group.WaySets:         "--group-size N takes all, where protect cut them into sets",
}

// wayOn adds to an error what the command line can do about it.
func wayOn(err error) error {
	var way group.Way
	few, input := new(group.TooManyError), new(group.InputError)
	switch {
	case errors.As(err, &few) && few.Possible:
		way = group.WayBeyond
	case errors.As(err, &input):
		way = input.Way
	}
	text := waysOn[way]
	if down := new(group.UnreachedError); errors.As(err, &down) && !down.Since.IsZero() {
		text = fmt.Sprintf("or take it out, and give its files up: volley resize --remove %s --force, with the same nodes", strings.Join(down.Nodes, " --remove "))
	}
	if text == "" && errors.As(err, new(*group.NotLostError)) {
		text = "or name another snapshot with --step N"
	}
	if text != "" {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}

// A groupVerb is what a verb does on the nodes that a rank of a transport has.
type groupVerb[R any] func(ctx context.Context, t transport.Transport, dirs []string, options group.Options) (R, error)

// onSets runs a verb on each set of the nodes of the group file, or of the arguments: here, or by ranks at their hosts.
// It prints the reports. verdict, unless nil, says after that what a report comes to.
func onSets[R any](o *groupOptions, cmd *cobra.Command, args []string, verb groupVerb[R], print func(w io.Writer, r R, all bool) error, verdict func(R) error) error {
	args, err := o.fromFile(cmd, args)
	if err != nil {
		return err
	}
	return o.spread(cmd, args, func() error { return onSetsHere(o, cmd, args, verb, print, verdict) })
}

// onSetsHere is onSets for the nodes here.
func onSetsHere[R any](o *groupOptions, cmd *cobra.Command, args []string, verb groupVerb[R], print func(w io.Writer, r R, all bool) error, verdict func(R) error) error {
	dirs, options, err := o.begin(cmd, args)
	if err != nil {
		return err
	}
	return o.inSets(cmd, dirs, func(t transport.Transport, dirs []string, _ group.Part, w io.Writer) error {
		r, err := verb(cmd.Context(), t, dirs, options)
		if err := finish(o, cmd, w, r, err, print); err != nil || verdict == nil {
			return err
		}
		return verdict(r)
	})
}

// finish prints the report of a verb at rank 0, as JSON if asked, or what can be done about the error that ended it.
func finish[R any](o *groupOptions, cmd *cobra.Command, w io.Writer, report R, err error, print func(w io.Writer, r R, all bool) error) error {
	switch {
	case err != nil:
		return wayOn(err)
	case o.party.Rank() > 0:
		return nil
	}
	o.session.note(values(report))
	if o.json {
		return writeJSON(w, report)
	}
	return print(w, report, verbose(cmd))
}

const strictHelp = "end with exit code 3 where files in use are protected torn, or not at all, or a host or disk has more than R nodes"

func newProtect(s *session) *cobra.Command {
	o := &groupOptions{joining: joining{session: s}}
	p := group.ProtectOptions{}
	one := false
	cmd := &cobra.Command{
		Use:   "protect --tolerate R [flags] DIR...",
		Short: "Protect the files of a group of nodes by parity at each of them",
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs, err := o.fromFile(cmd, args)
			if err != nil {
				return err
			}
			o.sets.forget = p.Force
			if !p.DryRun { // the other verbs read what was protected
				o.ordered()
			}
			return o.spread(cmd, dirs, func() error { return o.protect(cmd, dirs, p, one) })
		},
	}
	f := cmd.Flags()
	f.IntVar(&p.Tolerate, "tolerate", 0, "`R`, the nodes that may be lost at a time")
	f.StringVar(&p.Layout, "layout", "", "`LAYOUT` full or striped (default: that of the last run, or the better one)")
	f.StringVar(&p.Matrix, "matrix", "", "`MATRIX` cauchy, or fti for parity as FTI's level 3 writes it, with layout full (default: that of the last run, or cauchy)")
	f.StringVar(&p.Digest, "digest", "", "`DIGEST` of files and parity: sha256, blake3, or xxh3 against accidents only (default: that of the last run, or sha256)")
	f.StringArrayVar(&p.Exclude, "exclude", nil, "`PATTERN` of what is not protected, as in .gitignore, once for each; '': nothing (default: those of the last run)")
	f.BoolVar(&one, "one-file-system", false, "leave out what other file systems have, which are mounted below a node (default: as in the last run)")
	f.BoolVar(&p.Full, "full", false, "read also what has not changed, and compare it with what was protected")
	f.BoolVar(&p.Strict, "strict", false, strictHelp)
	f.BoolVar(&p.DryRun, "dry-run", false, "say what protecting would take, with -v file by file, and write nothing")
	o.addSnapshots(cmd, "root", "each DIR is a root of snapshots, directories step-N in it: protect the newest that all roots have")
	f.IntVar(&p.Retain, "retain", 0, "then remove snapshots older than the newest `M` that can be recovered; 0: none")
	end := flagGroup(cmd, "Override")
	f.BoolVar(&p.Force, "force", false, "protect although nodes are lost or files damaged")
	addAccidents(f, &p)
	end()
	o.add(cmd)
	return cmd
}

// protect protects the nodes here.
func (o *groupOptions) protect(cmd *cobra.Command, args []string, p group.ProtectOptions, one bool) error {
	dirs, options, err := o.begin(cmd, args)
	if err != nil {
		return err
	}
	switch {
	case !cmd.Flags().Changed("tolerate"):
		return exit.Usagef("say with --tolerate R how many nodes may be lost")
	case len(o.commanders(o.file.Dirs)) > 0 && o.party.job():
		return exit.Usagef("--%s: pre and post of a member run over ssh, and where one process has all nodes: start them beside the processes of this run", groupFlag)
	case p.Retain < 0 || p.Retain > 0 && !o.roots:
		return exit.Usagef("--retain %d: want how many snapshots of roots stay, with --root or --step", p.Retain)
	}
	if cmd.Flags().Changed("exclude") { // or else nil
		p.Exclude = slices.DeleteFunc(append([]string{}, p.Exclude...), func(pattern string) bool { return pattern == "" })
	}
	if cmd.Flags().Changed("one-file-system") {
		p.OneFileSystem = &one
	}
	return o.inSets(cmd, dirs, func(t transport.Transport, dirs []string, of group.Part, w io.Writer) error {
		p := p
		p.Part = of
		var r *group.ProtectReport
		err := launch.Between(cmd.Context(), o.commanders(dirs), func() (string, error) {
			var err error
			r, err = group.Over(t, dirs, options).Protect(cmd.Context(), p)
			return o.session.cameTo(r != nil, err), err
		})
		var strict error // of a group that is protected, as the report tells, too
		if r != nil {
			strict, err = err, nil
		}
		if err == nil && o.Assumed != "" && (o.json || p.DryRun || verbose(cmd)) {
			r.Notes = append(r.Notes, o.Assumed)
		}
		if err := finish(o, cmd, w, r, err, func(w io.Writer, r *group.ProtectReport, all bool) error { return printProtect(w, r, p.DryRun, all) }); err != nil {
			return err
		}
		return strict
	})
}

func printProtect(w io.Writer, r *group.ProtectReport, dry, all bool) error {
	size := func(n int64) string { return humanize.IBytes(uint64(n)) }
	text := ofGroup(r.Nodes, r.Layout, r.Tolerate)
	if all {
		text += fmt.Sprintf(", matrix %s over %s", r.Matrix, r.Field)
	}
	printable.Fprintf(w, "%s\n", text)
	if dry || all {
		for _, c := range r.Costs {
			if !c.Possible {
				printable.Fprintf(w, "%-10s not possible: %s\n", c.Layout, c.Why)
				continue
			}
			text := fmt.Sprintf("%s of parity at each node; the busiest node sends %s; about %s", size(c.StoredBytes), size(c.SentBytes), report.Seconds(c.Seconds))
			if all {
				text += fmt.Sprintf(" by the model (%s of plan %s)", printable.Count(c.Rounds, "round"), c.Plan)
			}
			printable.Fprintf(w, "%-10s %s\n", c.Layout, text)
		}
	}
	printNotes(w, r.Notes)
	printStep(w, r.Step)
	printable.Fprintf(w, "data       %s in %s%s\n", size(r.DataBytes), printable.Count(r.Files, "file"), since(r))
	if len(r.Exclude) > 0 {
		printable.Fprintf(w, "excluded   %s\n", printable.List(r.Exclude))
	}
	if dry {
		for n, x := range r.Plan {
			what := counts(x.Changes)
			if what != "" {
				what = ": " + what
			}
			printable.Fprintf(w, "node %d  %s in %s, %s to code%s  %s\n", n, size(x.Bytes), printable.Count(x.Files, "file"), size(x.Coded), what, r.Places[n])
			if all {
				printFindings(w, x.Changes, all)
			}
		}
		return printable.Fprintf(w, "parity     %s at each node\nnothing written: a dry run\n", size(r.ParityBytes))
	}
	for _, step := range r.Removed {
		printable.Fprintf(w, "removed    step-%d\n", step)
	}
	coded := "all of it"
	switch {
	case r.Coded == 0:
		coded = "nothing, as nothing has changed"
	case r.Coded < r.Blocks:
		coded = fmt.Sprintf("%.2g %% of it, as the rest has not changed", 100*float64(r.Coded)/float64(r.Blocks))
	}
	if all := r.ParityBytes * int64(r.Nodes); all > r.DataBytes && all > 1<<20 {
		printNotes(w, []string{fmt.Sprintf("all parity has %s, more than the data: more nodes, or fewer that may be lost, take less", size(all))})
	}
	return printable.Fprintf(w, `parity     %s at each node, and %s of records
coded      %s
read       %s
traffic    %s sent by the busiest node
time       %.3f s
protected, generation %d
`, size(r.ParityBytes), size(r.RecordBytes), coded, size(r.Read),
		size(r.Traffic.MostSent), r.Seconds, r.Generation)
}

// since says what users have done to files since they were protected.
func since(r *group.ProtectReport) string {
	var list []string
	if r.Changed > 0 {
		list = append(list, printable.Count(r.Changed, "file")+" changed")
	}
	if r.Deleted > 0 {
		list = append(list, printable.Count(r.Deleted, "file")+" deleted or emptied")
	}
	if list == nil {
		return ""
	}
	return "; " + strings.Join(list, ", ") + " since the last run"
}

func printStep(w io.Writer, step *int64) {
	if step != nil {
		printable.Fprintf(w, "snapshot   step-%d\n", *step)
	}
}

func newVerify(s *session) *cobra.Command {
	part := percent(1)
	cmd := &cobra.Command{
		Use:   "verify [flags] DIR...",
		Short: "Say which nodes and files of a protected group are whole",
	}
	cmd.Flags().Var(&part, "share", "`SHARE` of each node to read, such as 10%; the next run goes on where this one ends")
	cmd.Flags().Lookup("share").DefValue = "" // not shown
	return newExamining(s, cmd, func(g *group.Group, ctx context.Context) (*group.VerifyReport, error) {
		return g.VerifyShare(ctx, float64(part))
	}, printVerify, brokenOf)
}

// newExamining makes cmd a verb that examines the nodes.
func newExamining(s *session, cmd *cobra.Command, verb func(*group.Group, context.Context) (*group.VerifyReport, error), print func(io.Writer, *group.VerifyReport, bool) error, verdict func(*group.VerifyReport) error) *cobra.Command {
	o := &groupOptions{joining: joining{session: s}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return onSets(o, cmd, args, func(ctx context.Context, t transport.Transport, dirs []string, options group.Options) (*group.VerifyReport, error) {
			return verb(group.Over(t, dirs, options), ctx)
		}, print, verdict)
	}
	o.addSnapshots(cmd, "latest", latestUsage)
	o.add(cmd)
	return cmd
}

func printVerify(w io.Writer, r *group.VerifyReport, all bool) error {
	head, tail := "", ""
	of := fmt.Sprintf("%.3g %% of each node, %s", 100*r.Share, humanize.IBytes(uint64(r.ReadBytes)))
	switch {
	case r.Share > 0 && r.Whole:
		head = "nothing is wrong in " + of + ": "
	case r.Share > 0:
		head = "read " + of + ": "
	case r.Whole:
		head = "whole: "
	}
	if r.Whole {
		var findings []group.Finding
		for _, n := range r.Nodes {
			findings = append(findings, n.Findings...)
		}
		if findings != nil {
			tail = "; files: " + counts(findings)
		}
	}
	if all || !r.Whole {
		printNodes(w, r.Nodes, "", all)
	}
	printNotes(w, r.Notes)
	if !r.Protected {
		return nil
	}
	if r.Step != nil {
		head += fmt.Sprintf("step-%d, ", *r.Step)
	}
	err := printable.Fprintf(w, "%s%s, generation %d, compared by %s%s\n",
		head, ofGroup(len(r.Nodes), r.Layout, r.Tolerate), r.Generation, r.Digest, tail)
	if !r.Whole {
		printMayLose(w, r, all)
	}
	return err
}

func newStatus(s *session) *cobra.Command {
	return newExamining(s, &cobra.Command{
		Use:   "status [flags] DIR...",
		Short: "Say at a glance how the nodes of a group are",
	}, (*group.Group).Status, printStatus, brokenOf)
}

func printStatus(w io.Writer, r *group.VerifyReport, all bool) error {
	whole := 0
	for _, n := range r.Nodes {
		if n.Status == group.Whole && n.Findings == nil && len(r.Nodes) > mostLines && !all {
			whole++
			continue
		}
		of := counts(n.Findings)
		if of != "" {
			of = "  files: " + of
		}
		if all && n.Read != nil {
			of += "  read whole " + printable.Time(n.Read.To)
		}
		printable.Fprintf(w, "node %d  %s  %s%s\n", n.Node, n.Status, n.Dir, of)
	}
	if whole > 0 {
		printable.Fprintf(w, "%s whole\n", printable.Count(whole, "node"))
	}
	printNotes(w, r.Notes)
	if !r.Protected {
		return nil
	}
	err := printable.Fprintf(w, "%s, generation %d, protected %s\n", ofGroup(len(r.Nodes), r.Layout, r.Tolerate), r.Generation, printable.Time(r.Since))
	printMayLose(w, r, all)
	printUnread(w, r)
	return err
}

// longestUnread returns when the node that was read whole longest ago was; zero: it never was. Of a node that cannot be
// read nobody knows.
func longestUnread(r *group.VerifyReport) (at time.Time, node *group.NodeReport) {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if slices.Contains([]string{group.Lost, group.Failing, group.Unreachable, group.Foreign}, n.Status) {
			continue
		}
		read := time.Time{}
		if n.Read != nil {
			read = n.Read.To
		}
		if node == nil || read.Before(at) {
			at, node = read, n
		}
	}
	return at, node
}

// longUnread is how long a node may go without being read whole before status says so. A group that is protected each
// night, and was never read, has as many generations by then.
const longUnread = 30 * 24 * time.Hour

// printUnread says which node was not read for long.
func printUnread(w io.Writer, r *group.VerifyReport) {
	at, node := longestUnread(r)
	switch {
	case node == nil:
	case at.IsZero() && (time.Since(r.Since) > longUnread || r.Generation > int64(longUnread/(24*time.Hour))):
		printable.Fprintf(w, "node %d was never read whole: volley verify does it, and volley verify --share by and by\n", node.Node)
	case !at.IsZero() && time.Since(at) > longUnread:
		printable.Fprintf(w, "node %d was last read whole %s, %d days ago: volley verify does it\n", node.Node, printable.Time(at), int(time.Since(at).Hours()/24))
	}
}

// ofGroup says what a group is, in every report.
func ofGroup(nodes int, layout string, tolerate int) string {
	return fmt.Sprintf("%s, layout %s, any %d may be lost", printable.Count(nodes, "node"), layout, tolerate)
}

// shown are the findings that are called otherwise than in the report.
var shown = map[string]string{group.Metadata: "other metadata"}

func counts(findings []group.Finding) string {
	of := map[string]int{}
	for _, f := range findings {
		of[f.What]++
	}
	var list []string
	for _, what := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%d %s", of[what], cmp.Or(shown[what], what)))
	}
	return strings.Join(list, ", ")
}

func printNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		printable.Fprintf(w, "note: %s\n", note)
	}
}

func verbose(cmd *cobra.Command) bool { return cmd.Flag("verbose").Value.String() == "true" }

// mostLines is how many lines of a kind are printed without -v.
const mostLines = 20

// printLines prints a line for each of a list, or for the first ones.
func printLines[T any](w io.Writer, list []T, all bool, line func(T) string) {
	for i, x := range list {
		if i == mostLines && !all {
			printable.Fprintf(w, "        and %d more: -v prints all\n", len(list)-i)
			return
		}
		printable.Fprintf(w, "%s\n", line(x))
	}
}

// printNodes prints what was found at each node, or that something came back there.
func printNodes(w io.Writer, nodes []group.NodeReport, came string, all bool) {
	denied := false
	for _, n := range nodes {
		denied = denied || slices.ContainsFunc(n.Findings, func(f group.Finding) bool { return strings.Contains(f.Why, "permission denied") })
		if n.Recovered == nil {
			printable.Fprintf(w, "node %d  %s  %s\n", n.Node, n.Status, n.Dir)
		} else {
			printable.Fprintf(w, "%s node %d: %s  %s\n", came, n.Node, recovered(n.Recovered), n.Dir)
		}
		printFindings(w, n.Findings, all)
	}
	if denied {
		printable.Fprintf(w, "note: run it as who may read what permission denies: the owner of the files, or root\n")
	}
}

func printFindings(w io.Writer, findings []group.Finding, all bool) {
	printLines(w, findings, all, func(f group.Finding) string {
		text := fmt.Sprintf("        %s: %q", cmp.Or(shown[f.What], f.What), string(f.Path))
		if f.To != "" {
			text += fmt.Sprintf(" is %q now", string(f.To))
		}
		if f.Why != "" {
			text += ": " + f.Why
		}
		return text
	})
}

// recovered says what has come back at a node.
func recovered(r *group.Recovered) string {
	var list []string
	if r.Files > 0 {
		list = append(list, printable.Count(r.Files, "file"))
	}
	if r.Others > 0 {
		what := "directories and links"
		if r.Others == 1 {
			what = "directory or link"
		}
		list = append(list, fmt.Sprintf("%d %s", r.Others, what))
	}
	if r.Parity > 0 {
		list = append(list, humanize.IBytes(uint64(r.Parity))+" of parity")
	}
	if r.Records {
		list = append(list, "records")
	}
	return strings.Join(list, ", ")
}

// brokenOf returns an error where something is lost or damaged, with the next command.
func brokenOf(r *group.VerifyReport) error {
	err := r.Broken()
	broken := new(group.BrokenError)
	switch {
	case !errors.As(err, &broken) || !broken.Comes:
		return err
	case broken.Unprotected:
		return exit.Wrongf("%w; next: volley protect", err)
	}
	return exit.Wrongf("%w; next: volley recover", err)
}

// printMayLose says how many more nodes may be lost now, what would not come back where one more is than may be, and what
// to do.
func printMayLose(w io.Writer, r *group.VerifyReport, all bool) {
	if r.TooMany() {
		printable.Fprintf(w, "%d nodes are lost, and the group tolerates the loss of %d: find a copy of one of them\n", r.Lost(), r.Tolerate)
	} else if r.MayLose == 0 {
		printable.Fprintf(w, "no more nodes may be lost now\n")
	} else {
		printable.Fprintf(w, "%s may be lost now\n", printable.Count(r.MayLose, "more node"))
	}
	if r.Risks != nil {
		more := "1 more node is"
		if r.MayLose > 0 {
			more = fmt.Sprintf("%d more nodes are", r.MayLose+1)
		}
		printable.Fprintf(w, "if %s lost, these files may not come back:\n", more)
	}
	for _, x := range r.Risks {
		printable.Fprintf(w, "node %d  %s, %s  %s\n", x.Node, printable.Count(x.Files, "file"), humanize.IBytes(uint64(x.Bytes)), x.Dir)
		if all {
			printLines(w, x.Names, all, func(p group.Name) string { return fmt.Sprintf("        %q", string(p)) })
		}
	}
	if x := r.RiskSince; x != nil && r.Risks != nil {
		printCause(w, x, r.Seconds)
	}
	if r.Protected && !r.Whole && brokenOf(r) == nil {
		printable.Fprintf(w, "next: volley protect, which takes in what has changed\n")
	}
}

// printCause says since when files would not come back, unless the run has only found it.
func printCause(w io.Writer, x *group.Cause, seconds float64) {
	what := "was " + x.What
	if x.What == group.Damaged { // when that happened nobody knows
		if time.Since(x.Time).Seconds() < seconds+2 { // times are whole seconds
			return
		}
		what = "was found damaged"
	}
	printable.Fprintf(w, "because of what %s since %s at %s\n", what, printable.Time(x.Time), x.Dir)
}

func newRecover(s *session) *cobra.Command {
	o := &groupOptions{joining: joining{session: s}}
	x := group.RecoverOptions{}
	cmd := &cobra.Command{
		Use:   "recover [flags] DIR...",
		Short: "Recover lost nodes and damaged files of a protected group",
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("file") && slices.Contains(x.Files, "") {
				return exit.Usagef("--file '': want a file as it lies below a node's directory, or a pattern as in .gitignore")
			}
			run := func(ctx context.Context, t transport.Transport, dirs []string, options group.Options) (*group.RecoverReport, error) {
				return group.Over(t, dirs, options).Recover(ctx, x)
			}
			return onSets(o, cmd, args, run, func(w io.Writer, r *group.RecoverReport, all bool) error {
				return printRecover(w, r, x.DryRun, x.To != "", all)
			}, (*group.RecoverReport).Incomplete)
		},
	}
	f := cmd.Flags()
	o.addSnapshots(cmd, "latest", latestUsage)
	f.BoolVar(&x.Revert, "revert", false, "bring back changed files, too")
	f.BoolVar(&x.Deleted, "deleted", false, "bring back, too, what users have deleted")
	f.StringArrayVar(&x.Files, "file", nil, "`PATTERN` of what alone comes back, as in .gitignore, once for each; deleted files, too")
	f.StringVar(&x.To, "to", "", "`DIR` that gets the files of lost nodes, with --file those of all, as DIR/node.<k>; nothing else is written")
	f.BoolVar(&x.DryRun, "dry-run", false, "say what would be done, and write nothing")
	end := flagGroup(cmd, "Override")
	f.BoolVar(&x.Beyond, "beyond", false, "recover more nodes than the group tolerates to lose, where the parity allows that")
	f.BoolVar(&x.Partly, "partly", false, "start where there is no room for all: the largest files are left out, and named")
	end()
	o.add(cmd)
	return cmd
}

// printLeft says that what users have done stays. The findings of the nodes have the names.
func printLeft(w io.Writer, n int, what, way string) {
	if n > 0 {
		printable.Fprintf(w, "left as it is: %s; recover %s\n", printable.Count(n, what+" file"), way)
	}
}

func matched(n int) string {
	if n == 1 {
		return "1 file or directory"
	}
	return fmt.Sprintf("%d files and directories", n)
}

func printRecover(w io.Writer, r *group.RecoverReport, dry, out, all bool) error {
	printStep(w, r.Step)
	nodes := r.Nodes
	if !dry && !all {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n group.NodeReport) bool {
			moved := slices.ContainsFunc(n.Findings, func(f group.Finding) bool { return f.What == group.Moved })
			return n.Status == group.Whole && n.Recovered == nil && !moved
		})
	}
	came := "recovered"
	if out {
		came = "copied out of" // which itself stays as it is
	}
	printNodes(w, nodes, came, all)
	printNotes(w, r.Notes)
	printLeft(w, len(r.Kept), "changed", "--revert brings back what was protected")
	printLeft(w, len(r.Gone), "deleted", "--deleted brings back what was deleted")
	printLines(w, r.Replaced, all, func(p group.Name) string { return "what was there is in " + string(p) })
	for _, text := range r.Left {
		printable.Fprintf(w, "not recovered: %s\n", text)
	}
	printLines(w, r.Reverts, all, func(p group.Name) string { return "would be reverted: " + string(p) })
	if r.Matched > 0 {
		printable.Fprintf(w, "matched    %s; nothing else was compared\n", matched(r.Matched))
	}
	if dry {
		return printable.Fprintf(w, "nothing written: a dry run\n")
	}
	switch {
	case r.Matched == 0 && !slices.ContainsFunc(r.Nodes, func(n group.NodeReport) bool { return n.Status != group.Whole }):
		printable.Fprintf(w, "all nodes are whole\n")
	case r.Incomplete() == nil && !slices.ContainsFunc(r.Nodes, func(n group.NodeReport) bool { return n.Recovered != nil }):
		printable.Fprintf(w, "nothing to recover\n")
	}
	return printable.Fprintf(w, "time       %.3f s; the busiest node sent %s\n", r.Seconds, humanize.IBytes(uint64(r.Traffic.MostSent)))
}
