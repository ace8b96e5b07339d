package cli

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"volley"
	"volley/field"
	"volley/internal/cli/ranks"
	"volley/internal/cli/session"
	"volley/internal/printable"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and how it was built",
		Args:  session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					switch {
					case s.Key == "vcs.revision":
						commit = s.Value
					case s.Key == "vcs.modified" && s.Value == "true":
						commit += ", with changes"
					}
				}
			}
			return printable.Fprintf(cmd.OutOrStdout(), "volley %s\ncommit   %s\ngo       %s, %s/%s\nkernels  %s\ncomm     %s\n",
				volley.Version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, field.Kernels(), strings.Join(ranks.Names()[1:], ", "))
		},
	}
}
