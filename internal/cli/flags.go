package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups are the headings under which --help lists flags that verbs have in common,
// in this order, after those of the verb itself.
var flagGroups = []string{"Override", "Matrix", "Plan", "Limit", "Cost model", "Run", "Simulation"}

// groupKey is the annotation that names the group of a flag.
const groupKey = "group"

// flagGroup puts the flags that are added until the function it returns is called into a
// group.
func flagGroup(cmd *cobra.Command, name string) (end func()) {
	before := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	return func() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !before[f.Name] {
				f.Annotations = map[string][]string{groupKey: {name}}
			}
		})
	}
}

// usageTemplate is cobra's with flags in groups.
func usageTemplate(of *cobra.Command) string {
	cobra.AddTemplateFunc("flagsInGroups", flagsInGroups)
	return strings.Replace(of.UsageTemplate(), "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", "{{flagsInGroups .LocalFlags}}", 1)
}

// flagsInGroups lists flags as --help does.
func flagsInGroups(all *pflag.FlagSet) string {
	sets := map[string]*pflag.FlagSet{}
	all.VisitAll(func(f *pflag.Flag) {
		name := strings.Join(f.Annotations[groupKey], "")
		if sets[name] == nil {
			sets[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
		}
		sets[name].AddFlag(f)
	})
	var parts []string
	for _, name := range slices.Concat([]string{""}, flagGroups) {
		if sets[name] != nil {
			heading := strings.TrimSpace(name + " flags:")
			parts = append(parts, strings.ToUpper(heading[:1])+heading[1:]+"\n"+strings.TrimRight(sets[name].FlagUsages(), " \n"))
		}
	}
	return strings.Join(parts, "\n\n")
}

// stringValue is a flag that is a string.
type stringValue struct{ s *string }

func (v *stringValue) String() string     { return *v.s }
func (v *stringValue) Set(s string) error { *v.s = s; return nil }
func (v *stringValue) Type() string       { return "string" }
