package matrix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Family is a row of the table of matrices that can be named.
type Family struct {
	Name     string   `json:"name"`     // as in "random:SEED"
	Argument string   `json:"argument"` // what follows the colon; empty where nothing may
	Formula  string   `json:"formula"`  // the entries
	Doc      string   `json:"doc"`      // what they are for, and the condition on K and R
	Field    string   `json:"-"`        // the field to take where none is named; empty where any is as good
	Takes    []string `json:"-"`        // which of points, omega, alpha and order a [Spec] may have
	Square   bool     `json:"-"`        // for K×K only, not K×R

	build  func(b *builder) (Matrix, error)
	check  func(argument string) error // of its form; nil where any will do
	listed bool                        // the argument is a file that lists the entries
}

// families is the registry, in the order of the command line's help. Each row stands in the file of its matrix.
var families = []Family{
	cauchyFamily,
	ftiFamily,
	rsVandermondeFamily,
	rsCauchyFamily,
	rsPAR1Family,
	rsPAR2Family,
	rsJerasureFamily,
	lagrangeFamily,
	vandermondeFamily,
	dftFamily,
	lchFamily,
	randomFamily,
	fileFamily,
}

// Families returns the table of matrices that [ParseSpec] knows.
func Families() []Family { return slices.Clone(families) }

func findFamily(name string) (Family, error) {
	if i := slices.IndexFunc(families, func(f Family) bool { return f.Name == name }); i >= 0 {
		return families[i], nil
	}
	return Family{}, fmt.Errorf("matrix: unknown matrix %s: want one of %s", quote(name), familiesWith(func(Family) bool { return true }))
}

// familiesWith lists the families with a property, for people.
func familiesWith(property func(f Family) bool) string {
	var names []string
	for _, f := range families {
		if property(f) {
			names = append(names, f.String())
		}
	}
	return strings.Join(names, ", ")
}

// String returns the form that [ParseSpec] reads, such as "random:SEED".
func (f Family) String() string {
	if f.Argument == "" {
		return f.Name
	}
	return f.Name + ":" + f.Argument
}

// checkArgument returns an error when an argument is missing, too much or of another form.
func (f Family) checkArgument(argument string) error {
	switch {
	case f.Argument == "" && argument != "":
		return fmt.Errorf("matrix: %s takes no argument, got %s: want %q", f.Name, quote(argument), f)
	case f.Argument != "" && argument == "":
		return fmt.Errorf("matrix: %s needs an argument: want %q", f.Name, f)
	case f.check != nil:
		return f.check(argument)
	}
	return nil
}

// quote returns s in quotes, shortened where it is long.
func quote(s string) string {
	const most = 40
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:most]) + "…"
}
