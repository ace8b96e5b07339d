package groups

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/disk"
	"volley/internal/exit"
	"volley/internal/groupfile"
)

func newGroup(s *session.Invocation) *cobra.Command {
	var output string
	init := &cobra.Command{
		Use:   "init [flags] -o FILE DIR...",
		Short: "Write a group file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return exit.Usagef("say with -o FILE where the group file comes")
			}
			if _, err := os.Lstat(output); err == nil && output != session.Standard {
				return exit.Usagef("-o %s: it is there: remove it, or choose another name", output)
			}
			text, err := groupText(cmd.Flags(), args)
			if err != nil {
				return err
			}
			if output == session.Standard {
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			return session.Placed("-o", disk.WriteFile(output, text, 0o644)) // others may not write it: see readGroup
		},
	}
	verb := newProtect(s)
	for _, key := range groupfile.Keys {
		if f := verb.Flags().Lookup(key); f != nil {
			init.Flags().AddFlag(f)
		}
	}
	init.Flags().StringVarP(&output, "output", "o", "", "`FILE` that is written; - is stdout")
	cmd := &cobra.Command{Use: "group", Short: "Write the file that names the nodes of a group", Args: session.NoArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(init)
	return cmd
}

// groupText returns a group file with the flags that were given.
func groupText(f *pflag.FlagSet, dirs []string) ([]byte, error) {
	if err := ranks.Named(f, dirs); err != nil {
		return nil, err
	}
	if len(dirs) < 2 {
		return nil, exit.Usagef("need at least 2 directories, got %d", len(dirs))
	}
	if r, _ := f.GetInt("tolerate"); f.Changed("tolerate") && (r < 1 || r >= len(dirs)) {
		return nil, exit.Usagef("cannot tolerate the loss of %d of %d nodes: want 1 to %d", r, len(dirs), len(dirs)-1)
	}
	flags := map[string][]string{}
	f.Visit(func(f *pflag.Flag) {
		flags[f.Name] = []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			flags[f.Name] = list.GetSlice()
		}
	})
	return groupfile.Text(flags, dirs)
}
