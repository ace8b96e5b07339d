package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/cli/session"
)

const helpWidth = 80

func init() {
	cobra.AddTemplateFunc("flagsInGroups", flagsInGroups)
	cobra.EnableCommandSorting = false // the usual ones first
}

// usageTemplate is cobra's with flags in groups.
func usageTemplate(of *cobra.Command) string {
	t := strings.Replace(of.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", "{{flagsInGroups .}}", 1)
	return strings.Replace(t, "Additional help topics:", "Topics:", 1)
}

// flagsInGroups lists the flags of a verb as --help does, in the order in which they were added.
func flagsInGroups(cmd *cobra.Command) string {
	sets := map[string]*pflag.FlagSet{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name := strings.Join(f.Annotations[session.GroupKey], "")
		if sets[name] == nil {
			sets[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
			sets[name].SortFlags = false
		}
		sets[name].AddFlag(f)
	})
	var parts []string
	for _, name := range slices.Concat([]string{""}, flagGroups) {
		if sets[name] == nil || cmd.Annotations[session.GroupKey] != "" && slices.Contains(tuningGroups, name) {
			continue
		}
		heading := strings.TrimSpace(name + " flags:")
		parts = append(parts, strings.ToUpper(heading[:1])+heading[1:]+"\n"+flagUsages(sets[name]))
	}
	var topics []string
	if cmd.Annotations[session.GroupKey] != "" && cmd.Flags().Lookup("network") != nil {
		topics = append(topics, "volley help tuning")
	}
	if sets[session.RankGroup] != nil {
		topics = append(topics, "volley help ranks")
	}
	if topics != nil {
		parts = append(parts, "More flags: "+strings.Join(topics, ", "))
	}
	return strings.Join(parts, "\n\n")
}

func flagUsages(set *pflag.FlagSet) string {
	return strings.TrimRight(set.FlagUsagesWrapped(helpWidth), " \n")
}

// flagGroups are the headings of flags that verbs have in common, in the order of --help, after the verb's own.
var flagGroups = []string{"Override", "Matrix", "Plan", "Limit", "Cost model", "Run"}

// tuningGroups are the groups of flags that few runs need: the verbs for operators leave them to the topic tuning.
var tuningGroups = []string{"Limit", "Cost model"}
