package cli

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/launch"
)

// Verbs and flags that a rank takes whose key permits few paths: every other one is refused. What --add, --believe and
// --remove name is compared, and not opened.
var confined = launch.Confinement{
	Verbs: []string{"protect", "verify", "status", "recover", "resize", "unprotect", "snapshots"},
	Flags: []string{"accept", "add", "at-least", "believe", "digest", "dry-run", "exclude", "file", "force", "full",
		"group-size", "json", "limit-rate", "limit-read", "log-format", "memory", "one-file-system", "part", "progress", "quiet",
		"remove", "retain", "revert", "step", "timeout", "tolerate", "verbose", "yes"},
	Paths: []string{"key", "meta", "to"},
}

// newRank returns the verb of one rank of a launch, which tells it on standard input what to do.
func newRank(s *session.Invocation) *cobra.Command {
	confinement := confined
	cmd := &cobra.Command{
		Use:    launch.Verb,
		Short:  "Be one rank of a run that volley starts elsewhere",
		Hidden: true,
		Args:   session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(ranks.Named(cmd.Flags(), confinement.Permitted), confinement.Asked(s.Getenv("SSH_ORIGINAL_COMMAND"))); err != nil {
				return err
			}
			r := &launch.Rank{
				Input: s.Stdin, Output: cmd.OutOrStdout(), Environ: s.Environ, Confinement: confinement, Interval: s.Limits.Progress, Limit: s.Limits.End,
				LogTo: s.LogTo, Message: session.Message,
				Verb: func(ctx context.Context, r *launch.Rank) { runSent(ctx, s.RankOf(r), cmd.ErrOrStderr()) },
			}
			if s.OwnsProcess {
				signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write then fails, and the run ends in order
				r.Exit = func() { os.Exit(exit.Failed) }
			}
			return r.Serve(cmd.Context())
		},
	}
	cmd.Flags().StringSliceVar(&confinement.Permitted, launch.OnlyFlag, nil, "refuse everything outside these `DIR`s and files, separated by commas")
	return cmd
}
