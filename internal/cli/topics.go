package cli

import (
	"embed"
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
		{Use: "ranks", Short: "How processes on several machines make one run", Long: rankUsages()},
		{Use: "costs", Short: "The tables of volley cost"},
		{Use: "matrices", Short: "The matrices there are", Long: families()},
		{Use: "measuring", Short: "How volley tune measures"},
	}
}

//go:embed help
var helpFiles embed.FS

// document gives a command and those below it the text and the examples that their files have. What a command says
// already comes after the text.
func document(cmd *cobra.Command) {
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
	new(ranks.Flags).Add(set)
	return "Flags:\n" + flagUsages(set)
}

// families explains the matrices there are.
func families() string {
	var text strings.Builder
	for _, f := range matrices.Families() {
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
