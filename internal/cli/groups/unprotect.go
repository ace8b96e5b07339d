package groups

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"volley/group"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/grouptext"
)

func newUnprotect(s *session.Session) *cobra.Command {
	o := newOptions(s)
	u := group.UnprotectOptions{}
	var yes bool
	cmd := &cobra.Command{
		Use:   "unprotect [flags] DIR...",
		Short: "End the protection of a group of nodes",
		RunE: func(cmd *cobra.Command, args []string) error {
			u.DryRun = !yes
			run := func(g *group.Group, ctx context.Context) (*group.UnprotectReport, error) { return g.Unprotect(ctx, u) }
			return onSets(o, cmd, args, run, func(w io.Writer, r *group.UnprotectReport, all bool) error {
				return grouptext.Unprotect(w, r, yes, all)
			}, func(r *group.UnprotectReport) error {
				if !yes && r.Protected {
					return exit.Usagef("nothing is removed: --yes removes the protection")
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it")
	end := session.FlagGroup(cmd, "Override")
	cmd.Flags().BoolVar(&u.Force, "force", false, "also where something is lost or damaged, which then never comes back")
	end()
	o.add(cmd)
	return cmd
}
