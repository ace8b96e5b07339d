package claims

import (
	"reflect"
	"slices"
	"testing"

	"volley/coded/manifest"
)

// TestFormats compares the keys of manifests in docs/format.md with those of the program. Those of plans are in docs/execute.py.
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
}
