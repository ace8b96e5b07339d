package cli

import (
	"embed"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/algo"
	"volley/field"
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
		{Use: "algorithms", Short: "The algorithms there are, and what they cost", Long: topic("algorithms", algorithms())},
		{Use: "fields", Short: "The finite fields there are", Long: topic("fields", fields())},
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

// algorithms explains the algorithms there are.
func algorithms() string {
	var text strings.Builder
	for _, a := range algo.Algorithms() {
		printable.Fprintf(&text, "\n%s\n", a.Name)
		for _, x := range [][2]string{
			{"C1", a.C1}, {"C2", a.C2}, {"title", a.Title}, {"for", a.Problem}, {"source", a.Source}, {"example", a.Example},
		} {
			printable.Fprintf(&text, "  %-7s  %s\n", x[0], printable.Lines(wrapped(x[1], 11)))
		}
	}
	return text.String()
}

// fields explains the fields there are.
func fields() string {
	var text strings.Builder
	for _, k := range field.Kinds() {
		name := k.Pattern
		if k.Example != name {
			name += ", such as " + k.Example
		}
		printable.Fprintf(&text, "%s\n  %s\n", name, printable.Lines(wrapped(k.Doc, 2)))
	}
	return text.String()
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
