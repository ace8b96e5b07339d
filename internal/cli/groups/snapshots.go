package groups

import (
	"github.com/spf13/cobra"

	"volley/group"
	"volley/internal/cli/session"
	"volley/internal/grouptext"
)

func newSnapshots(s *session.Session) *cobra.Command {
	o := newOptions(s)
	o.step = group.Latest
	cmd := &cobra.Command{
		Use:   "snapshots [flags] DIR...",
		Short: "List the snapshots of a group of nodes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return onSets(o, cmd, args, (*group.Group).Snapshots, grouptext.Snapshots, nil)
		},
	}
	o.add(cmd)
	for _, name := range []string{"group-size", "domain", "believe"} { // which are for one snapshot, or none
		cmd.Flags().MarkHidden(name)
	}
	return cmd
}
