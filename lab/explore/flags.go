package explore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/internal/comparison"
	"volley/internal/selection"
	"volley/matrix/matrices"
)

// flags are the flags of the command line, by their long names. An empty text stands for the default.
type flags map[string]string

// newFlagSet returns the flags that the page has, with their defaults.
func newFlagSet() (*pflag.FlagSet, *selection.Selection) {
	s, set := new(selection.Selection), pflag.NewFlagSet("", pflag.ContinueOnError)
	s.AddMatrix(set)
	s.AddProcessors(set)
	s.AddPlan(set, selection.PaperModel) // whose figures the page shows
	s.AddSize(set)
	return set, s
}

// mostText is the length of the longest text of a flag.
const mostText = 200

// parse returns what the flags select. The error is a *selection.Error.
func (f flags) parse() (*selection.Selection, error) {
	set, s := newFlagSet()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		text := strings.TrimSpace(f[name])
		if text == "" {
			continue
		}
		if len(text) > mostText {
			return nil, selection.Markf(name[:min(len(name), mostText)], "%d characters: the page takes %d at most", len(text), mostText)
		}
		flag := set.Lookup(name)
		if flag == nil {
			return nil, selection.Markf(name, "there is no flag --%s here", name)
		}
		if err := set.Set(name, text); err != nil {
			return nil, selection.Markf(name, "%q: want %s", text, selection.Wanted(flag))
		}
	}
	if strings.HasPrefix(s.Matrix, "file:") {
		return nil, selection.Mark("matrix", errors.New("the page reads no files; volley plan does"))
	}
	for name, points := range map[string]string{"points": s.Points, "omega": s.Omega, "alpha": s.Alpha} {
		if !slices.Contains([]string{"", "coset", "powers", "codes"}, points) {
			return nil, selection.Markf(name, "%q: want coset, powers or codes; files of points are for the command line", points)
		}
	}
	for _, name := range []string{"ports", "beta", "tau"} {
		if s.ByModel == selection.NetworkModel && set.Changed(name) {
			return nil, selection.Mark(name, errors.New("a network has a rate and a latency, and the planner chooses p: leave it empty, or take no network"))
		}
	}
	if s.ByModel == selection.PaperModel && set.Changed("network") {
		return nil, selection.Mark("network", errors.New("it is of a network, and none is taken: take one, or leave it empty"))
	}
	s.SetDefaults()
	return s, nil
}

// command returns the command line of a verb with the flags that are not at their defaults, as a shell takes it, and
// more arguments. A field or points that are given are other than the default of some matrix. The command is volley-lab,
// which has the algorithms and fields of the page: volley lacks some.
func (f flags) command(verb string, arguments ...string) string {
	set, _ := newFlagSet()
	words := []string{"volley-lab", verb}
	if model := strings.TrimSpace(f["model"]); verb != "cost" && (model == "" || model == selection.PaperModel) {
		words = append(words, "--model", selection.PaperModel) // the verb's default is another
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		text, flag := strings.TrimSpace(f[name]), set.Lookup(name)
		switch {
		case text == "" || flag == nil || text == flag.DefValue && name != "field" && name != "points":
		case flag.Value.Type() == "bool":
			if enabled, err := strconv.ParseBool(text); err == nil && !enabled {
				continue // another way to write the default
			}
			words = append(words, "--"+name)
		case flag.Shorthand != "":
			words = append(words, "-"+flag.Shorthand, quoted(text))
		default:
			words = append(words, "--"+name, quoted(text))
		}
	}
	for _, word := range arguments {
		words = append(words, quoted(word))
	}
	return strings.Join(words, " ")
}

// quoted returns a word as a shell takes it.
func quoted(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./^@%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// The most coefficients in all memories of a plan of which the page shows every message, the most processors it takes, and
// the most rows of a matrix that it inverts.
const (
	mostCoefficients = 1 << 21
	mostProcessors   = 1024
	mostInverted     = 256
)

type catalogue struct {
	Version      string            `json:"version"`
	Flags        []flagEntry       `json:"flags"`
	Fields       []field.Kind      `json:"fields"`
	Matrices     []matrices.Family `json:"matrices"`
	Algorithms   []algo.Algorithm  `json:"algorithms"`
	MostDetailed int               `json:"most_detailed"`
}

type flagEntry struct {
	Name    string `json:"name"`
	Short   string `json:"short,omitempty"`
	Default string `json:"default"`
	Usage   string `json:"usage"`
}

func catalog(context.Context, struct{}) (*catalogue, error) {
	c := &catalogue{
		Version: volley.Version, MostDetailed: comparison.MostDrawn,
		Fields: field.Kinds(), Matrices: matrices.Families(), Algorithms: algo.Parts(),
	}
	set, _ := newFlagSet()
	set.VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		c.Flags = append(c.Flags, flagEntry{f.Name, f.Shorthand, f.DefValue, usage})
	})
	return c, nil
}
