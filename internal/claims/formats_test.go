package claims

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/coded/manifest"
)

// TestFormats compares the keys in docs/format.md with those of the program.
func TestFormats(t *testing.T) {
	section := func(name string) string { return Section(t, name) }
	check := func(what string, got, want []string) {
		slices.Sort(got)
		slices.Sort(want)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: docs/format.md has the keys\n%v, the program\n%v", what, got, want)
		}
	}

	keysOfManifest, within := KeyTable(section("The directory of coded packets"))
	check("manifest", keysOfManifest, KeysOf(reflect.TypeFor[manifest.Manifest](), map[string]bool{"matrix": true}))
	check("manifest, files", within["files"], KeysOf(reflect.TypeFor[manifest.CodedFile](), nil))
	check("manifest, inputs", within["inputs"], KeysOf(reflect.TypeFor[manifest.CodedFile](), nil))
	for _, key := range KeysOf(reflect.TypeFor[manifest.PointList](), nil) {
		if !slices.Contains(within["matrix.points"], key) {
			t.Errorf("manifest, matrix.points: docs/format.md does not name %s", key)
		}
	}

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
