package explore

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"volley/algo"
	"volley/field"
	"volley/group/protection"
	"volley/matrix/matrices"
)

// answers are the types that the page knows by name.
var answers = map[string]any{
	"Catalog": catalogue{}, "FlagEntry": flagEntry{}, "FieldEntry": field.Kind{}, "MatrixEntry": matrices.Family{}, "AlgorithmEntry": algo.Algorithm{},
	"Plan": planAnswer{}, "Info": planInfo{}, "Cost": planCost{}, "Candidate": candidate{}, "Detail": detail{}, "Message": message{}, "Slot": slot{},
	"Aggregate": aggregate{}, "AggregateRound": roundFigure{},
	"Mix": mixAnswer{}, "Mixture": mixture{}, "Product": product{}, "CostTable": costAnswer{}, "CostRow": costRow{},
	"Protection": protectAnswer{}, "GroupCost": protection.CodingCost{},
}

// TestTypes compares the types of the page with those of the engine, key by key.
func TestTypes(t *testing.T) {
	t.Parallel()
	source := must(os.ReadFile("../web/src/lib/api.ts"))(t)
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?ms)^export interface (\w+) \{\n(.*?)^\}`).FindAllStringSubmatch(string(source), -1) {
		name := m[1]
		seen[name] = true
		value, ok := answers[name]
		if !ok {
			t.Errorf("api.ts has %s: the engine has no such answer", name)
			continue
		}
		var page, engine []string
		for _, key := range regexp.MustCompile(`(?m)^  (\w+)\??:`).FindAllStringSubmatch(m[2], -1) {
			page = append(page, key[1])
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(value)) {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if key != "-" && !field.Anonymous && field.IsExported() {
				engine = append(engine, key)
			}
		}
		slices.Sort(page)
		slices.Sort(engine)
		if !slices.Equal(page, engine) {
			t.Errorf("%s: the page has %v\nthe engine %v", name, page, engine)
		}
	}
	for name := range answers {
		if !seen[name] {
			t.Errorf("api.ts has no %s", name)
		}
	}
	var flags []string
	list := regexp.MustCompile(`(?s)flagNames = \[(.*?)\]`).FindStringSubmatch(string(source))
	if list == nil {
		t.Fatal("api.ts has no flagNames")
	}
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list[1], -1) {
		flags = append(flags, m[1])
	}
	set, _ := newFlagSet()
	set.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(flags, f.Name) {
			t.Errorf("flagNames lacks %s", f.Name)
		}
	})
	for _, name := range flags {
		if set.Lookup(name) == nil {
			t.Errorf("flagNames has %s, which the engine does not take", name)
		}
	}
}
