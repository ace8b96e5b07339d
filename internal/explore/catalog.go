package explore

import (
	"context"

	"github.com/spf13/pflag"

	"volley"
	"volley/algo"
	"volley/field"
	"volley/matrix"
)

// The most processors of which the page shows every message, 3^4, with so many
// coefficients in all memories, the most processors it takes, and the most rows of a matrix
// that it inverts.
const (
	mostDetailed     = 81
	mostCoefficients = 1 << 21
	mostProcessors   = 1024
	mostInverted     = 256
)

// catalogue is what there is to choose from.
type catalogue struct {
	Version      string           `json:"version"`
	Flags        []flagEntry      `json:"flags"`
	Fields       []field.Kind     `json:"fields"`
	Matrices     []matrixEntry    `json:"matrices"`
	Algorithms   []algo.Algorithm `json:"algorithms"`
	MostDetailed int              `json:"most_detailed"`
}

type flagEntry struct {
	Name    string `json:"name"`
	Short   string `json:"short,omitempty"`
	Default string `json:"default"`
	Usage   string `json:"usage"`
}

type matrixEntry struct {
	Name     string   `json:"name"`     // with its argument, such as "random:SEED"
	Family   string   `json:"family"`   // without
	Argument string   `json:"argument"` // what follows the colon; empty where nothing may
	Formula  string   `json:"formula"`
	Doc      string   `json:"doc"`
	Field    string   `json:"field"` // the field to take where none is named; empty: any is as good
	Takes    []string `json:"takes"` // which of points, omega, alpha, base and order it may have
	Square   bool     `json:"square"`
}

// catalog answers with the registries.
func catalog(context.Context, struct{}, func(any) error) (*catalogue, error) {
	c := &catalogue{
		Version: volley.Version, MostDetailed: mostDetailed,
		Fields: field.Kinds(), Algorithms: algo.Algorithms(),
	}
	set, _ := newFlagSet()
	set.VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		c.Flags = append(c.Flags, flagEntry{f.Name, f.Shorthand, f.DefValue, usage})
	})
	for _, m := range matrix.Families() {
		c.Matrices = append(c.Matrices, matrixEntry{m.String(), m.Name, m.Argument, m.Formula, m.Doc, m.Field, list(m.Takes), m.Square})
	}
	return c, nil
}
