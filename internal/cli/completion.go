package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/algo"
	"volley/field"
	"volley/group"
	"volley/internal/cli/ranks"
	"volley/internal/selection"
	"volley/matrix/matrices"
)

// completeValues has the shell complete the values of a verb's flags, and directories for what names one; of its own
// verbs, too.
func completeValues(cmd *cobra.Command) {
	values := map[string][]string{
		"algorithm": append(names(algo.Parts(), func(a algo.Algorithm) string { return a.Name }), algo.Auto),
		"comm":      ranks.Names(),
		"digest":    {group.SHA256, group.BLAKE3, group.XXH3},
		"field":     names(field.Kinds(), func(k field.Kind) string { return k.Example }),
		"matrix":    names(matrices.Families(), func(f matrices.Family) string { return f.Name }),
		"points":    {"coset", "powers", "codes"},
	}
	if forOperators(cmd) {
		cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if choice, ok := f.Value.(selection.Choice); ok {
			values[f.Name] = choice.Words
		}
		if list := values[f.Name]; list != nil {
			cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		} else if strings.Contains(f.Usage, "`DIR`") {
			cmd.MarkFlagDirname(f.Name)
		}
	})
	for _, verb := range cmd.Commands() {
		completeValues(verb)
	}
}

func names[T any](entries []T, name func(T) string) []string {
	var list []string
	for _, x := range entries {
		list = append(list, name(x))
	}
	return list
}
