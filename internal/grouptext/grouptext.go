// Package grouptext writes reports of groups as text, and says what errors of groups come to.
package grouptext

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"volley/files"
	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/internal/printable"
	"volley/internal/report"
)

// A Style says how reports are written.
type Style struct {
	Verbose bool
	Dry     bool   // they say what would be done
	Nodes   string // the flags and directories by which the command line names the nodes of the run
}

// Next returns a command for the same nodes.
func (s Style) Next(words string) string { return strings.TrimSpace("volley " + words + " " + s.Nodes) }

// Undo are the words of the command that brings back what users have done, whether or not by accident.
const Undo = "recover --revert changed,deleted"

// Warnings returns what somebody has to look at, although a verb has done what it was to do.
func Warnings(report any, style Style) []string {
	r := &group.ProtectReport{}
	switch x := report.(type) {
	case *group.ResizeReport:
		r = x.ProtectReport
	case *group.ProtectReport:
		r = x
	}
	return append(r.Warnings(), losses(r.Losses, !style.Dry, style)...)
}

// losses says what protect has made permanent, or the next one will.
func losses(list []protection.Accident, permanent bool, style Style) (texts []string) {
	text := "%s. The next protect makes that permanent: %s brings them back if it is run first"
	if permanent {
		text = "%s, which do not come back any more. Before protect, %s would have brought them back"
	}
	for _, x := range list {
		texts = append(texts, fmt.Sprintf(text, x, style.Next(Undo)))
	}
	return texts
}

// Protect writes the report of Protect, or of what it would do.
func Protect(w io.Writer, r *group.ProtectReport, style Style) error {
	size := func(n int64) string { return humanize.IBytes(uint64(n)) }
	text := ofGroup(r.Nodes, r.Tolerate)
	if style.Verbose {
		text += ", over " + r.Field
	}
	printable.Fprintf(w, "%s\n", text)
	if style.Dry || style.Verbose {
		c := r.Cost
		text := fmt.Sprintf("%s of parity at each node; the busiest node sends %s; about %s", size(c.StoredBytes), size(c.SentBytes), report.Seconds(c.Seconds))
		if style.Verbose {
			text += fmt.Sprintf(" by the model (%s of plan %s)", printable.Count(c.Rounds, "round"), c.Plan)
		}
		printable.Fprintf(w, "estimate   %s\n", text)
	}
	Notes(w, r.Notes)
	printStep(w, r.Step)
	printable.Fprintf(w, "data       %s in %s%s\n", size(r.DataBytes), printable.Count(r.Files, "file"), since(r))
	if len(r.Exclude) > 0 {
		printable.Fprintf(w, "excluded   %s\n", printable.List(r.Exclude))
	}
	if style.Dry {
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
		coded = fmt.Sprintf("%.2g %% of it, as the rest has not changed, or is holes", 100*float64(r.Coded)/float64(r.Blocks))
	}
	if total := r.ParityBytes * int64(r.Nodes); total > r.DataBytes && total > 1<<20 {
		Notes(w, []string{fmt.Sprintf("all parity has %s, more than the data: more nodes, or fewer that may be lost, take less", size(total))})
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

// Verify writes that of Verify, and all findings if asked.
func Verify(w io.Writer, r *group.VerifyReport, style Style) error {
	head, tail := "", ""
	portion := fmt.Sprintf("part %d/%d of each node, %s", r.Part, r.Parts, humanize.IBytes(uint64(r.ReadBytes)))
	switch {
	case r.Parts > 0 && r.Intact:
		head = "nothing is wrong in " + portion + ": "
	case r.Parts > 0:
		head = "read " + portion + ": "
	case r.Intact:
		head = "whole: "
	}
	if r.Intact {
		var findings []protection.Finding
		for _, n := range r.Nodes {
			findings = append(findings, n.Findings...)
		}
		if findings != nil {
			tail = "; files: " + counts(findings)
		}
	}
	if style.Verbose || !r.Intact {
		printNodes(w, r.Nodes, "", style.Verbose)
	}
	Notes(w, slices.Concat(r.Notes, losses(r.Losses, false, style)))
	if !r.Protected {
		return nil
	}
	if r.Step != nil {
		head += fmt.Sprintf("step-%d, ", *r.Step)
	}
	text := ofGroup(len(r.Nodes), r.Tolerate)
	if !r.Intact { // how many more may be lost now comes below
		text = printable.Count(len(r.Nodes), "node")
	}
	err := printable.Fprintf(w, "%s%s, generation %d, compared by %s%s\n", head, text, r.Generation, r.Digest, tail)
	if !r.Intact {
		printMayLose(w, r, style)
	}
	return err
}

// Status writes that of Status.
func Status(w io.Writer, r *group.VerifyReport, style Style) error {
	intact := 0
	for _, n := range r.Nodes {
		if n.Status == group.Intact && n.Findings == nil && len(r.Nodes) > mostLines && !style.Verbose {
			intact++
			continue
		}
		files := counts(n.Findings)
		if files != "" {
			files = "  files: " + files
		}
		if style.Verbose && n.Read != nil {
			files += "  all read since " + printable.Time(n.Read.Since)
		}
		printable.Fprintf(w, "node %d  %s  %s%s\n", n.Node, n.Status, n.Dir, files)
	}
	if intact > 0 {
		printable.Fprintf(w, "%s whole\n", printable.Count(intact, "node"))
	}
	Notes(w, slices.Concat(r.Notes, losses(r.Losses, false, style)))
	if !r.Protected {
		return nil
	}
	err := printable.Fprintf(w, "%s, generation %d, protected %s\n", printable.Count(len(r.Nodes), "node"), r.Generation, printable.Time(r.Since))
	printMayLose(w, r, style)
	printUnread(w, r, style)
	return err
}

// LongestUnread returns since when all of every node was read, and the node of which something was not read since; zero:
// something never was. Of a node that cannot be read nobody knows.
func LongestUnread(r *group.VerifyReport) (oldest time.Time, node *group.NodeReport) {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if slices.Contains([]string{group.Lost, group.Failing, group.Unreachable, group.Foreign}, n.Status) {
			continue
		}
		read := time.Time{}
		if n.Read != nil {
			read = n.Read.Since
		}
		if node == nil || read.Before(oldest) {
			oldest, node = read, n
		}
	}
	return oldest, node
}

// longUnread is how long any of a node may go without being read before status says so. A group that is protected each
// night, and was never read, has as many generations by then. Where verify --part today/30 reads it by and by, a part is
// as old before it is read again, and a run may be delayed.
const (
	longUnread = 30 * 24 * time.Hour
	delay      = 5 * 24 * time.Hour
)

// printUnread says what was not read for long.
func printUnread(w io.Writer, r *group.VerifyReport, style Style) {
	oldest, node := LongestUnread(r)
	switch {
	case node == nil:
	case oldest.IsZero() && (time.Since(r.Since) > longUnread || r.Generation > int64(longUnread/(24*time.Hour))):
		printable.Fprintf(w, "node %d was never read whole. next: %s\n", node.Node, style.Next("verify"))
	case !oldest.IsZero() && time.Since(oldest) > longUnread+delay:
		printable.Fprintf(w, "part %d/%d of node %d was last read %s, %d days ago. next: %s\n",
			node.Read.Part, node.Read.Parts, node.Node, printable.Time(oldest), int(time.Since(oldest).Hours()/24),
			style.Next(fmt.Sprintf("verify --part %d/%d", node.Read.Part, node.Read.Parts)))
	}
}

// ofGroup says what a group is that is whole.
func ofGroup(nodes, tolerate int) string {
	return fmt.Sprintf("%s, any %d may be lost", printable.Count(nodes, "node"), tolerate)
}

// shown are the findings that are called otherwise than in the report.
var shown = map[string]string{group.Metadata: "other metadata"}

func counts(findings []protection.Finding) string {
	numbers := map[string]int{}
	for _, f := range findings {
		numbers[f.Kind]++
	}
	var list []string
	for _, finding := range slices.Sorted(maps.Keys(numbers)) {
		list = append(list, fmt.Sprintf("%d %s", numbers[finding], cmp.Or(shown[finding], finding)))
	}
	return strings.Join(list, ", ")
}

// Notes writes a line for each note.
func Notes(w io.Writer, notes []string) {
	for _, note := range notes {
		printable.Fprintf(w, "note: %s\n", note)
	}
}

// mostLines is how many lines of a kind are printed without -v.
const mostLines = 20

// printLines prints a line for each of a list, or for the first ones.
func printLines[T any](w io.Writer, list []T, verbose bool, line func(T) string) {
	for i, x := range list {
		if i == mostLines && !verbose {
			printable.Fprintf(w, "        and %d more: -v prints all\n", len(list)-i)
			return
		}
		printable.Fprintf(w, "%s\n", line(x))
	}
}

// printNodes prints what was found at each node, or that something came back there.
func printNodes(w io.Writer, nodes []group.NodeReport, came string, verbose bool) {
	denied := false
	for _, n := range nodes {
		denied = denied || slices.ContainsFunc(n.Findings, func(f protection.Finding) bool { return strings.Contains(f.Reason, "permission denied") })
		if n.Recovered == nil {
			printable.Fprintf(w, "node %d  %s  %s\n", n.Node, n.Status, n.Dir)
		} else {
			printable.Fprintf(w, "%s node %d: %s  %s\n", came, n.Node, recovered(n.Recovered), n.Dir)
		}
		printFindings(w, n, verbose)
	}
	if denied {
		printable.Fprintf(w, "note: run it as who may read what permission denies: the owner of the files, or root\n")
	}
}

func printFindings(w io.Writer, n group.NodeReport, verbose bool) {
	printLines(w, n.Findings, verbose, func(f protection.Finding) string {
		text := fmt.Sprintf("        %s: %q", cmp.Or(shown[f.Kind], f.Kind), n.Path(f.Path))
		if f.Target != "" {
			text += fmt.Sprintf(" is %q now", string(f.Target))
		}
		if f.Reason != "" {
			text += ": " + f.Reason
		}
		return text
	})
}

// recovered says what has come back at a node.
func recovered(r *protection.Recovered) string {
	var list []string
	if r.Files > 0 {
		list = append(list, printable.Count(r.Files, "file"))
	}
	if r.NonFiles > 0 {
		list = append(list, fmt.Sprintf("%d %s", r.NonFiles, printable.Plural(r.NonFiles, "directory or link", "directories and links")))
	}
	if r.Parity > 0 {
		list = append(list, humanize.IBytes(uint64(r.Parity))+" of parity")
	}
	if r.Records {
		list = append(list, "records")
	}
	return strings.Join(list, ", ")
}

// Broken returns an error where something is lost or damaged, or looks like an accident, with the next command.
func Broken(r *group.VerifyReport, style Style) error {
	err := r.Broken()
	broken := new(group.BrokenError)
	switch {
	case !errors.As(err, &broken) || !broken.Comes && (broken.Unprotected || r.TooMany() || r.Unrecorded):
		return err
	case r.Beyond:
		return exit.Wrongf("%w; next: %s, which brings back what it can", err, style.Next("recover"))
	case !broken.Comes:
		return exit.Wrongf("%w; next, when that is mended: %s", err, style.Next("status"))
	case broken.Unprotected && !strings.Contains(style.Nodes, "--group "): // else the file says it
		return exit.Wrongf("%w; next: %s", err, style.Next("protect --tolerate R"))
	case broken.Unprotected:
		return exit.Wrongf("%w; next: %s", err, style.Next("protect"))
	case broken.Nodes == nil:
		return exit.Wrongf("%w; next: %s", err, style.Next(Undo))
	}
	return exit.Wrongf("%w; next: %s", err, style.Next("recover"))
}

// Margin returns an error where something is wrong, as Broken does, or fewer more nodes may be lost than there have to be.
func Margin(r *group.VerifyReport, least int, style Style) error {
	err := Broken(r, style)
	if err != nil || r.MayLose >= least {
		return err
	}
	if least >= len(r.Nodes) {
		return exit.Wrongf("%s may be lost now, and %d is asked for, which takes a group of %d nodes", printable.Count(r.MayLose, "more node"), least, least+1)
	}
	next := "protect"
	if least > r.Tolerate {
		next = fmt.Sprintf("protect --tolerate %d", least)
	}
	return exit.Wrongf("%s may be lost now, and %d is asked for; next: %s", printable.Count(r.MayLose, "more node"), least, style.Next(next))
}

// printMayLose says how many more nodes may be lost now, what would not come back where one more is than may be, and what
// to do.
func printMayLose(w io.Writer, r *group.VerifyReport, style Style) {
	if r.TooMany() {
		printable.Fprintf(w, "%d nodes are lost, and the group tolerates the loss of %d: find a copy of one of them\n", r.Lost(), r.Tolerate)
	} else if r.Beyond {
		printable.Fprintf(w, "too much is lost, damaged or changed for all of it to come back; to see what does not: %s\n", style.Next("recover --dry-run"))
	} else if r.MayLose == 0 {
		printable.Fprintf(w, "no more nodes may be lost now\n")
	} else {
		printable.Fprintf(w, "%s may be lost now\n", printable.Count(r.MayLose, "more node"))
	}
	if len(r.Risks) > 0 {
		fatal := r.MayLose + 1
		printable.Fprintf(w, "if %s %s lost, these files may not come back:\n", printable.Count(fatal, "more node"), printable.Plural(fatal, "is", "are"))
	}
	for _, x := range r.Risks {
		printable.Fprintf(w, "node %d  %s, %s  %s\n", x.Node, printable.Count(x.Files, "file"), humanize.IBytes(uint64(x.Bytes)), x.Dir)
		if style.Verbose {
			printLines(w, x.Names, style.Verbose, func(p files.Name) string { return fmt.Sprintf("        %q", string(p)) })
		}
	}
	if r.Protected && !r.Intact && Broken(r, style) == nil {
		if slices.ContainsFunc(r.Nodes, doubtful) {
			printable.Fprintf(w, "if nobody wrote to a file that is changed under its old time, it has rotted, which protect would make permanent: %s\n", style.Next("recover --revert changed"))
		}
		printable.Fprintf(w, "next: %s\n", style.Next("protect"))
	}
}

// doubtful reports whether a node has a file with other content under its old time.
func doubtful(n group.NodeReport) bool {
	return slices.ContainsFunc(n.Findings, func(f protection.Finding) bool { return f.Kind == group.Changed && f.Reason != "" })
}

// printLeft says that what users have done stays. The findings of the nodes have the names.
func printLeft(w io.Writer, n int, edit string, style Style) {
	if n > 0 {
		printable.Fprintf(w, "left as it is: %s; to bring back what was protected: %s\n", printable.Count(n, edit+" file"), style.Next("recover --revert "+edit))
	}
}

// Recover writes that of Recover: of a dry run, or of files copied out.
func Recover(w io.Writer, r *group.RecoverReport, copiedOut bool, style Style) error {
	printStep(w, r.Step)
	nodes := r.Nodes
	if !style.Dry && !style.Verbose {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n group.NodeReport) bool {
			moved := slices.ContainsFunc(n.Findings, func(f protection.Finding) bool { return f.Kind == group.Moved })
			return n.Status == group.Intact && n.Recovered == nil && !moved
		})
	}
	came := "recovered"
	if copiedOut {
		came = "copied out of" // which itself stays as it is
	}
	printNodes(w, nodes, came, style.Verbose)
	Notes(w, r.Notes)
	printLeft(w, len(r.Kept), "changed", style)
	printLeft(w, len(r.Deleted), "deleted", style)
	printLines(w, r.Replaced, style.Verbose, func(p files.Name) string { return "what was there is in " + string(p) })
	for _, text := range r.Unrecovered {
		printable.Fprintf(w, "not recovered: %s\n", text)
	}
	printLines(w, r.Reverts, style.Verbose, func(p files.Name) string { return "would be reverted: " + string(p) })
	if r.Matched > 0 {
		printable.Fprintf(w, "matched    %d %s; nothing else was compared\n", r.Matched, printable.Plural(r.Matched, "file or directory", "files and directories"))
	}
	if style.Dry {
		return printable.Fprintf(w, "nothing written: a dry run\n")
	}
	switch {
	case r.Matched == 0 && !slices.ContainsFunc(r.Nodes, func(n group.NodeReport) bool { return n.Status != group.Intact }):
		printable.Fprintf(w, "all nodes are whole\n")
	case r.Incomplete() == nil && !slices.ContainsFunc(r.Nodes, func(n group.NodeReport) bool { return n.Recovered != nil }):
		printable.Fprintf(w, "nothing to recover\n")
	}
	return printable.Fprintf(w, "time       %.3f s; the busiest node sent %s\n", r.Seconds, humanize.IBytes(uint64(r.Traffic.MostSent)))
}

// Unprotect writes that of Unprotect: yes where it has removed the protection.
func Unprotect(w io.Writer, r *group.UnprotectReport, yes bool, style Style) error {
	if !r.Protected {
		return printable.Fprintf(w, "not protected: there is nothing to remove\n")
	}
	printNodes(w, r.Nodes, "", style.Verbose)
	Notes(w, r.Notes)
	if !yes {
		return printable.Fprintf(w, "in force: generation %d, any %d may be lost, %s of parity at each node\n", r.Generation, r.Tolerate, humanize.IBytes(uint64(r.ParityBytes)))
	}
	return printable.Fprintf(w, "the protection is removed: nothing comes back any more\n")
}

// Snapshots writes a table of snapshots.
func Snapshots(w io.Writer, r *group.SnapshotsReport, _ Style) error {
	Notes(w, r.Notes)
	if len(r.Snapshots) == 0 {
		return printable.Fprintf(w, "no root has a directory step-N (N a number without leading zeros): snapshots are for roots of such, and status for nodes\n")
	}
	return report.Text(w, []report.Column[group.Snapshot]{
		{Name: "step", Value: func(x group.Snapshot) any { return x.Step }},
		{Name: "protected", Value: func(x group.Snapshot) any {
			if x.Since.IsZero() {
				return "no"
			}
			return printable.Time(x.Since)
		}},
		{Name: "nodes", Value: func(x group.Snapshot) any { return fmt.Sprintf("%d of %d", len(x.Present), cmp.Or(x.Nodes, r.Nodes)) }},
		{Name: "state", Value: func(x group.Snapshot) any {
			if x.Reason == "" {
				return x.State
			}
			return x.State + ": " + x.Reason
		}},
	}, r.Snapshots)
}

// Resize writes the report of Resize, or of what it would do.
func Resize(w io.Writer, r *group.ResizeReport, style Style) error {
	for _, dir := range r.Added {
		printable.Fprintf(w, "added      %s\n", dir)
	}
	for _, dir := range r.Removed {
		fate := "whose files stay"
		switch {
		case slices.Contains(r.Lost, dir):
			fate = "which is lost"
		case slices.Contains(r.Remains, dir):
			fate = "which cannot be read: what it has stays, its .volley too"
		}
		printable.Fprintf(w, "removed    %s, %s\n", dir, fate)
	}
	err := Protect(w, r.ProtectReport, style)
	if !style.Dry {
		printable.Fprintf(w, "next: name the nodes that there are now, also in the group file\n")
	}
	return err
}
