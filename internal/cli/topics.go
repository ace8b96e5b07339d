package cli

import (
	"embed"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/internal/printable"
	"volley/internal/selection"
	"volley/matrix"
)

// newTopics returns what "volley help TOPIC" explains: commands that do nothing.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "files", Short: "What encode and decode read and write", Long: topic("files", "")},
		{Use: "groups", Short: "How directories of nodes are protected", Long: topic("groups", "")},
		{Use: "tuning", Short: "Flags that decide which schedule is chosen", Long: topic("tuning", tuningFlags())},
		{Use: "ranks", Short: "How processes on several machines make one run", Long: topic("ranks", rankUsages())},
		{Use: "costs", Short: "The tables of volley cost", Long: topic("costs", "")},
		{Use: "matrices", Short: "The matrices there are", Long: topic("matrices", families())},
		{Use: "measuring", Short: "How volley tune measures", Long: topic("measuring", "")},
	}
}

//go:embed topics
var topics embed.FS

// topic returns the text of a topic, and a list after it.
func topic(name, list string) string {
	text, err := topics.ReadFile("topics/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(text) + list)
}

// tuningFlags lists the flags of tuning.
func tuningFlags() string {
	var s selection.Selection
	var parts []string
	model := func(set *pflag.FlagSet) { s.AddModel(set, selection.NetworkModel) }
	for i, add := range []func(*pflag.FlagSet){s.AddLimits, model} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = false
		add(set)
		parts = append(parts, tuningGroups[i]+" flags:\n"+flagUsages(set))
	}
	return strings.Join(parts, "\n\n")
}

// rankUsages lists the flags of ranks.
func rankUsages() string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	new(rankFlags).add(set)
	return "Flags:\n" + flagUsages(set)
}

// families explains the matrices there are.
func families() string {
	var text strings.Builder
	for _, f := range matrix.Families() {
		printable.Fprintf(&text, "%s\n  %s\n  %s\n", f, printable.Lines(wrapped(f.Formula, 2)), printable.Lines(wrapped(f.Doc, 2)))
	}
	return strings.TrimSpace(text.String())
}

// wrapped breaks text that begins in a column into lines that all begin there.
func wrapped(text string, column int) string {
	var b strings.Builder
	at := column
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && at+1+n > helpWidth:
			b.WriteString("\n" + strings.Repeat(" ", column))
			at = column
		case i > 0:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
