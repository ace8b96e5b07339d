package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"volley/group"
	"volley/internal/printable"
	"volley/report"
)

const snapshotsHelp = `List the snapshots of the nodes of a group: directories step-N in their roots.

Each DIR is a root, one for each node. A snapshot is in force where every node
has it as it was protected, and recoverable where lost nodes can be recovered:
volley recover --latest takes the newest of both. Whoever writes a snapshot
gives it the name step-N when it is complete; other names do not count. More:
volley help groups`

func newSnapshots() *cobra.Command {
	o := &groupOptions{step: group.Latest}
	cmd := &cobra.Command{
		Use:   snapshotsVerb + " [flags] DIR...",
		Short: "List the snapshots of a group of nodes",
		Long:  snapshotsHelp,
		Example: `  volley snapshots a:/ckpt b:/ckpt c:/ckpt
  volley snapshots --json a:/ckpt b:/ckpt c:/ckpt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var options group.Options
			return onSets(o, cmd, args, &options, &options, group.Snapshots, printSnapshots, nil)
		},
	}
	o.add(cmd)
	for _, name := range []string{"group-size", "domain", "believe"} { // which are for one snapshot, or none
		cmd.Flags().MarkHidden(name)
	}
	return cmd
}

func printSnapshots(w io.Writer, r *group.SnapshotsReport, _ bool) error {
	printNotes(w, r.Notes)
	if len(r.Snapshots) == 0 {
		return printable.Fprintf(w, "no root has a directory step-N (N a number without leading zeros)\n")
	}
	return report.Text(w, []report.Column[group.Snapshot]{
		{Name: "step", Value: func(x group.Snapshot) any { return x.Step }},
		{Name: "protected", Value: func(x group.Snapshot) any {
			if x.Since.IsZero() {
				return "no"
			}
			return x.Since.Format(time.DateTime)
		}},
		{Name: "nodes", Value: func(x group.Snapshot) any { return fmt.Sprintf("%d of %d", len(x.Present), r.Nodes) }},
		{Name: "state", Value: func(x group.Snapshot) any {
			if x.Why == "" {
				return x.State
			}
			return x.State + ": " + x.Why
		}},
	}, r.Snapshots)
}
