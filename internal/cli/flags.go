package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"volley/group"
	"volley/internal/delay"
	"volley/internal/exit"
	"volley/internal/selection"
)

// rankGroup is the group of flags that the topic ranks lists, and no verb.
const rankGroup = "Rank"

// flagGroups are the headings of flags that verbs have in common, in the order of --help, after the verb's own.
var flagGroups = []string{"Override", "Matrix", "Plan", "Limit", "Cost model", "Run"}

// groupKey is the annotation that names the group of a flag.
const groupKey = "group"

// flagGroup puts the flags that are added until the function it returns is called into a group.
func flagGroup(cmd *cobra.Command, name string) (end func()) {
	cmd.Flags().SortFlags = false // the usual ones first
	before := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	return func() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !before[f.Name] && f.Annotations[groupKey] == nil {
				f.Annotations = map[string][]string{groupKey: {name}}
			}
		})
	}
}

const helpWidth = 80

// tuningGroups are the groups of flags that few runs need: the verbs for operators leave them to the topic tuning.
var tuningGroups = []string{"Limit", "Cost model"}

// forOperators leaves the flags of tuning out of the verb's help.
func forOperators(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{groupKey: "operators"}
}

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
		name := strings.Join(f.Annotations[groupKey], "")
		if sets[name] == nil {
			sets[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
			sets[name].SortFlags = false
		}
		sets[name].AddFlag(f)
	})
	var parts []string
	for _, name := range slices.Concat([]string{""}, flagGroups) {
		if sets[name] == nil || cmd.Annotations[groupKey] != "" && slices.Contains(tuningGroups, name) {
			continue
		}
		heading := strings.TrimSpace(name + " flags:")
		parts = append(parts, strings.ToUpper(heading[:1])+heading[1:]+"\n"+flagUsages(sets[name]))
	}
	var topics []string
	if cmd.Annotations[groupKey] != "" && cmd.Flags().Lookup("network") != nil {
		topics = append(topics, "volley help tuning")
	}
	if sets[rankGroup] != nil {
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

// NoArguments refuses arguments behind the flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s takes no argument, got %q: see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// addAccidents adds the flags of what may be gone, or have changed, since a group was last protected.
func addAccidents(f *pflag.FlagSet, o *group.ProtectOptions) {
	o.MaxDeleted, o.MaxChanged = group.DefaultMaxDeleted, group.DefaultMaxChanged
	f.Var((*share)(&o.MaxDeleted), "max-deleted", "`SHARE` of a node's files, or of their bytes, that may be gone")
	f.BoolVar(&o.AllowDeleted, "allow-deleted", false, "protect although more than that is gone")
	f.Var((*share)(&o.MaxChanged), "max-changed", "`SHARE` of a node's files that may have other content")
	f.BoolVar(&o.AllowChanged, "allow-changed", false, "protect although more than that has changed")
}

// A share is a flag from 0 to 1. What it sets is never 0, which the library takes for its default.
type share float64

// Set takes a number from 0 to 1. NaN is none.
func (s *share) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return errors.New("want a share from 0 to 1")
	}
	*s = share(max(x, math.SmallestNonzeroFloat64))
	return nil
}

// String returns the number.
func (s *share) String() string {
	if *s == math.SmallestNonzeroFloat64 {
		return "0"
	}
	return fmt.Sprint(float64(*s))
}

// Type returns "float".
func (s *share) Type() string { return "float" }

// A percent is a flag above 0 and up to 1, or from that to 100 with a percent sign.
type percent float64

// Set takes 10% or 0.1.
func (p *percent) Set(text string) error {
	number, of := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if of {
		x /= 100
	}
	if err != nil || !(x > 0 && x <= 1) {
		return errors.New("want a share such as 10%, up to 100%")
	}
	*p = percent(x)
	return nil
}

// String returns the number.
func (p *percent) String() string { return fmt.Sprint(float64(*p)) }

// Type returns "percent".
func (p *percent) Type() string { return "percent" }

// limits are the flags of what a run may take from what else runs beside it.
type limits struct {
	rate  string // bytes a second; "": no limit
	cores int    // 0: all
	nice  int
}

// leastRate is the least value of --limit-rate and --limit-read: with less, messages, or what they wait for, would take
// longer than others wait for them.
const leastRate = 1 << 20

func (o *limits) add(f *pflag.FlagSet) {
	f.StringVar(&o.rate, "limit-rate", "", "`BYTES` a second that each process sends at most, such as 100MB")
	f.Var(selection.AtLeast{Value: &o.cores, Least: 1, Unset: 0}, "cores", "`N`, how many cores each process uses at most")
	f.Var(selection.AtLeast{Value: &o.nice}, "nice", "`N`, by how much each process lowers its priority, up to 19 in all, as nice does")
}

// apply lowers what this process may take.
func (o *limits) apply() error {
	if o.cores > 0 {
		runtime.GOMAXPROCS(min(o.cores, runtime.GOMAXPROCS(0)))
	}
	if o.nice > 0 {
		return lowerPriority(o.nice)
	}
	return nil
}

// slow has a party send no faster than it may.
func (o *limits) slow(ctx context.Context, p *party) error {
	if o.rate == "" {
		return nil
	}
	rate, err := selection.ParseSize(o.rate)
	switch {
	case err != nil || rate < leastRate:
		return exit.Usagef("--limit-rate %q: want bytes a second such as 100MB, 1MiB or more", o.rate)
	case !p.job():
		return exit.Usagef("--limit-rate %s: all is in this process, which sends nothing: leave it out", o.rate)
	}
	p.Transport = delay.Limit(ctx, p.Transport, rate)
	return nil
}
