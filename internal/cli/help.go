package cli

import (
	"cmp"
	"embed"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/cli/ranks"
	"volley/internal/printable"
	"volley/internal/selection"
	"volley/matrix/matrices"
)

// newTopics returns what "volley help TOPIC" explains: commands that do nothing.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "files", Short: "What encode and decode read and write"},
		{Use: "groups", Short: "How directories of nodes are protected"},
		{Use: "tuning", Short: "Flags that decide which schedule is chosen", Long: tuningFlags()},
		{Use: "ranks", Short: "How processes on several machines make one run", Long: listed("Flags", new(ranks.Flags).Add)},
		{Use: "costs", Short: "The tables of volley cost"},
		{Use: "matrices", Short: "The matrices there are", Long: families()},
	}
}

//go:embed help
var helpFiles embed.FS

// document gives a command and those below it the text and the examples that their files have. What a command says
// already comes after the text. Flags stay in the order in which they were added: the usual ones first.
func document(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	_, below, _ := strings.Cut(cmd.CommandPath(), " ")
	text, err := helpFiles.ReadFile("help/" + strings.TrimSuffix("volley-"+strings.ReplaceAll(below, " ", "-"), "-") + ".txt")
	if err == nil { // the others have no more to say than their flags
		long, examples, _ := strings.Cut(string(text), "\nExamples:\n")
		cmd.Long, cmd.Example = strings.TrimSpace(long+cmd.Long), strings.TrimRight(examples, "\n")
	}
	for _, verb := range cmd.Commands() {
		document(verb)
	}
}

// tuningFlags lists the flags of tuning.
func tuningFlags() string {
	var s selection.Selection
	model := func(set *pflag.FlagSet) { s.AddModel(set, selection.NetworkModel) }
	return listed("Limit flags", s.AddLimits) + "\n\n" + listed("Cost model flags", model)
}

// listed lists flags below a heading.
func listed(heading string, add func(*pflag.FlagSet)) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	add(set)
	return heading + ":\n" + flagUsages(set)
}

// families explains the matrices there are.
func families() string {
	var text strings.Builder
	for _, f := range matrices.Families() {
		printable.Fprintf(&text, "%s\n  %s\n  %s\n", f, printable.Lines(wrapped(f.Formula, "  ")), printable.Lines(wrapped(f.Doc, "  ")))
	}
	return strings.TrimSpace(text.String())
}

// wrapped breaks text into lines that all are indented as the first one is.
func wrapped(text, indent string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(indent+line+" "+word) > helpWidth:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n"+indent)
}

const helpWidth = 80

func init() {
	cobra.EnableCommandSorting = false // the usual ones first
}

// showHelp prints what cobra does, with flags in groups. A template of ours would have the linker keep every method.
func showHelp(cmd *cobra.Command, _ []string) {
	text := cmp.Or(cmd.Long, cmd.Short) + "\n\n"
	if cmd.Runnable() || cmd.HasSubCommands() {
		flags := "Flags:\n" + strings.TrimRight(cmd.LocalFlags().FlagUsages(), " \n")
		text += strings.NewReplacer(flags, flagsInGroups(cmd), "Additional help topics:", "Topics:").Replace(cmd.UsageString())
	}
	printable.Fprintf(cmd.OutOrStdout(), "%s", printable.Lines(text))
}

// flagsInGroups lists the flags of a verb as --help does, in the order in which they were added.
func flagsInGroups(cmd *cobra.Command) string {
	sets := map[string]*pflag.FlagSet{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		i := slices.IndexFunc(flagGroups, func(g flagGroup) bool {
			return slices.Contains(g.names, f.Name) && (g.topic != "ranks" || cmd.Flags().Lookup("comm") != nil)
		})
		name := flagGroups[max(i, 0)].name
		if sets[name] == nil {
			sets[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
			sets[name].SortFlags = false
		}
		sets[name].AddFlag(f)
	})
	var parts []string
	var topics []string
	for _, g := range flagGroups {
		switch topic := "volley help " + g.topic; {
		case sets[g.name] == nil:
		case g.topic == "" || g.topic == "tuning" && !forOperators(cmd):
			parts = append(parts, g.name+":\n"+flagUsages(sets[g.name]))
		case !slices.Contains(topics, topic):
			topics = append(topics, topic)
		}
	}
	if topics != nil {
		parts = append(parts, "More flags: "+strings.Join(topics, ", "))
	}
	return strings.Join(parts, "\n\n")
}

func flagUsages(set *pflag.FlagSet) string {
	return strings.TrimRight(set.FlagUsagesWrapped(helpWidth), " \n")
}

// forOperators reports whether a verb is for operators, as those are that reach hosts. They leave tuning to its topic.
func forOperators(cmd *cobra.Command) bool { return cmd.Flags().Lookup("ssh") != nil }

// A flagGroup is flags below a heading of --help, or those that a topic lists in place of the verbs.
type flagGroup struct {
	name, topic string
	names       []string
}

// flagGroups are the groups of flags in the order of --help. In the first one are all that are in no other.
var flagGroups = []flagGroup{
	{name: "Flags"},
	{"Override flags", "", []string{"believe", "force", "accept"}},
	{"Matrix flags", "", []string{"field", "matrix", "points", "omega", "alpha", "order", "inverse", "sinks", "separate"}},
	{"Plan flags", "", []string{"algorithm", "plan"}},
	{"Limit flags", "tuning", []string{"rounds-over", "max-memory", "max-compute", "whole"}},
	{"Cost model flags", "tuning", []string{"model", "network", "gamma", "ports", "beta", "tau"}},
	{"Run flags", "", []string{"group-size", "comm", "timeout", "memory", "limit-rate", "quiet", "progress", "limit-read",
		"check", "ssh", "remote-path"}},
	{"", "ranks", ranks.FlagNames},
}
