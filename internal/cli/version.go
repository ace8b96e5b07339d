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
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and how it was built",
		Args:  session.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := struct {
				Version string   `json:"version"`
				Commit  string   `json:"commit"`
				Go      string   `json:"go"`
				System  string   `json:"system"`
				Kernels string   `json:"kernels"`
				Comm    []string `json:"comm"`
			}{volley.Version, "unknown", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, field.Kernels(), ranks.Names()[1:]}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					switch {
					case s.Key == "vcs.revision":
						v.Commit = s.Value
					case s.Key == "vcs.modified" && s.Value == "true":
						v.Commit += ", with changes"
					}
				}
			}
			if asJSON {
				return session.WriteJSON(cmd.OutOrStdout(), v)
			}
			return printable.Fprintf(cmd.OutOrStdout(), "volley %s\ncommit   %s\ngo       %s, %s\nkernels  %s\ncomm     %s\n",
				v.Version, v.Commit, v.Go, v.System, v.Kernels, strings.Join(v.Comm, ", "))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}
