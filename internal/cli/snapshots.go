package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"volley/group"
	"volley/group/snapshots"
	"volley/internal/printable"
	"volley/internal/report"
)

func newSnapshots(s *session) *cobra.Command {
	o := &groupOptions{joining: joining{session: s}, step: group.Latest}
	cmd := &cobra.Command{
		Use:   snapshotsVerb + " [flags] DIR...",
		Short: "List the snapshots of a group of nodes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return onSets(o, cmd, args, snapshots.List, printSnapshots, nil)
		},
	}
	o.add(cmd)
	for _, name := range []string{"group-size", "domain", "believe"} { // which are for one snapshot, or none
		cmd.Flags().MarkHidden(name)
	}
	return cmd
}

func printSnapshots(w io.Writer, r *snapshots.Report, _ bool) error {
	printNotes(w, r.Notes)
	if len(r.Snapshots) == 0 {
		return printable.Fprintf(w, "no root has a directory step-N (N a number without leading zeros)\n")
	}
	return report.Text(w, []report.Column[snapshots.Snapshot]{
		{Name: "step", Value: func(x snapshots.Snapshot) any { return x.Step }},
		{Name: "protected", Value: func(x snapshots.Snapshot) any {
			if x.Since.IsZero() {
				return "no"
			}
			return printable.Time(x.Since)
		}},
		{Name: "nodes", Value: func(x snapshots.Snapshot) any { return fmt.Sprintf("%d of %d", len(x.Present), r.Nodes) }},
		{Name: "state", Value: func(x snapshots.Snapshot) any {
			if x.Why == "" {
				return x.State
			}
			return x.State + ": " + x.Why
		}},
	}, r.Snapshots)
}
