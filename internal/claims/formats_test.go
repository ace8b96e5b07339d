package claims

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/coded"
	"volley/group"
	"volley/sim"
	"volley/tune"
)

// TestFormats compares the keys in docs/format.md with those of the program.
func TestFormats(t *testing.T) {
	text := read(t, filepath.Join(repository(t), "docs", "format.md"))
	section := func(name string) string {
		_, rest, ok := strings.Cut(text, "\n## "+name+"\n")
		if !ok {
			t.Fatalf("docs/format.md has no section %q", name)
		}
		rest, _, _ = strings.Cut(rest, "\n## ")
		return rest
	}
	check := func(what string, got, want []string) {
		slices.Sort(got)
		slices.Sort(want)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: docs/format.md has the keys\n%v, the program\n%v", what, got, want)
		}
	}

	manifest, within := keyTable(section("The directory of coded packets"))
	check("manifest", manifest, keysOf(reflect.TypeFor[coded.Manifest](), map[string]bool{"matrix": true}))
	check("manifest, files", within["files"], keysOf(reflect.TypeFor[coded.Entry](), nil))
	check("manifest, inputs", within["inputs"], keysOf(reflect.TypeFor[coded.Entry](), nil))
	for _, key := range keysOf(reflect.TypeFor[coded.PointSet](), nil) {
		if !slices.Contains(within["matrix.points"], key) {
			t.Errorf("manifest, matrix.points: docs/format.md does not name %s", key)
		}
	}

	protected, within := keyTable(section("Groups of nodes"))
	want := keysOf(reflect.TypeFor[group.Manifest](), nil)
	want = append(want, keysOf(reflect.TypeFor[group.Record](), nil)...)
	for _, key := range keysOf(reflect.TypeFor[group.Entry](), nil) {
		want = append(want, "entries."+key)
	}
	if record := keysOf(reflect.TypeFor[group.RecordSum](), nil); !slices.Equal(within["members"], record) {
		t.Errorf("group, members: docs/format.md has the keys %v, the program %v", within["members"], record)
	}
	check("group, replaces", within["replaces"], keysOf(reflect.TypeFor[group.Predecessor](), nil))
	check("group", protected, want)
	if format := []string{group.Format}; !slices.Equal(within["format"], format) {
		t.Errorf("group: docs/format.md has the format %v, the program %v", within["format"], format)
	}

	noted, within := keyTable(section("How far nodes were read"))
	check("scrub", noted, keysOf(reflect.TypeFor[group.Scrub](), nil))
	for _, key := range keysOf(reflect.TypeFor[group.Spot](), nil) {
		if !slices.Contains(slices.Concat(within["next"], within["wrong"]), key) {
			t.Errorf("scrub, next and wrong: docs/format.md does not name %s", key)
		}
	}
	check("scrub, whole", within["whole"], keysOf(reflect.TypeFor[group.Period](), nil))

	measured, within := keyTable(section("What was measured"))
	for _, key := range []string{"latency_ns", "overhead_ns"} {
		if !slices.Contains(within["network"], key) {
			t.Errorf("tune, network: docs/format.md does not name %s", key)
		}
	}
	measured = slices.DeleteFunc(measured, func(key string) bool { return key == "gaps" }) // of network
	check("tune", measured, keysOf(reflect.TypeFor[tune.Result](), nil))
	check("tune, gaps", within["gaps"], keysOf(reflect.TypeFor[sim.Gap](), nil))
	check("tune, points", within["points"], keysOf(reflect.TypeFor[tune.Point](), nil))
	check("tune, coding", within["coding"], keysOf(reflect.TypeFor[tune.Coding](), nil))

	// Plans that together have all keys: layers and notes, pieces, and neither.
	keys := map[string]bool{}
	for _, command := range []string{
		"plan -k 4 --algorithm exchange", "plan --model paper -k 64", "plan --model paper -k 16 --field 257 --matrix dft",
	} {
		var plan any
		if err := json.Unmarshal([]byte(volley(t, append(strings.Fields(command), "--format", "json")...)), &plan); err != nil {
			t.Fatal(err)
		}
		collect(plan, keys)
	}
	var named []string
	for line := range strings.Lines(section("Plans")) {
		if strings.HasPrefix(line, "    ") {
			for _, m := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(line, -1) {
				named = append(named, m[1])
			}
		}
	}
	check("plan", named, slices.Collect(maps.Keys(keys)))
}

// collect adds all keys of JSON, at any depth.
func collect(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			keys[key] = true
			collect(x, keys)
		}
	case []any:
		for _, x := range v {
			collect(x, keys)
		}
	}
}

// keyTable returns the keys in the first column of a table, and for each those that the second
// one names.
func keyTable(section string) (keys []string, within map[string][]string) {
	within = map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 {
			continue
		}
		for _, key := range code.FindAllStringSubmatch(cells[1], -1) {
			keys = append(keys, key[1])
			for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
				within[key[1]] = append(within[key[1]], m[1])
			}
		}
	}
	return keys, within
}

// keysOf returns the JSON keys of a struct, and for those inside, which are structs, theirs
// behind a dot.
func keysOf(kind reflect.Type, inside map[string]bool) []string {
	var list []string
	for i := range kind.NumField() {
		f := kind.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || key == "-" {
			continue
		}
		if f.Anonymous && key == "" {
			list = append(list, keysOf(f.Type, nil)...)
			continue
		}
		if !inside[key] {
			list = append(list, key)
			continue
		}
		for _, sub := range keysOf(f.Type, nil) {
			list = append(list, key+"."+sub)
		}
	}
	return list
}
