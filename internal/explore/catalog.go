package explore

import (
	"context"

	"github.com/spf13/pflag"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/matrix"
)

// The most processors of which the page shows every message, 3^4, with so many coefficients in all memories, the most
// processors it takes, and the most rows of a matrix that it inverts.
const (
	mostDetailed     = 81
	mostCoefficients = 1 << 21
	mostProcessors   = 1024
	mostInverted     = 256
)

type catalogue struct {
	Version      string           `json:"version"`
	Flags        []flagEntry      `json:"flags"`
	Fields       []field.Kind     `json:"fields"`
	Matrices     []matrix.Family  `json:"matrices"`
	Algorithms   []algo.Algorithm `json:"algorithms"`
	MostDetailed int              `json:"most_detailed"`
}

type flagEntry struct {
	Name    string `json:"name"`
	Short   string `json:"short,omitempty"`
	Default string `json:"default"`
	Usage   string `json:"usage"`
}

func catalog(context.Context, struct{}, func(any) error) (*catalogue, error) {
	c := &catalogue{
		Version: volley.Version, MostDetailed: mostDetailed,
		Fields: field.Kinds(), Matrices: matrix.Families(), Algorithms: algo.Algorithms(),
	}
	set, _ := newFlagSet()
	set.VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		c.Flags = append(c.Flags, flagEntry{f.Name, f.Shorthand, f.DefValue, usage})
	})
	return c, nil
}
