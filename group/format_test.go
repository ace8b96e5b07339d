package group

import (
	"reflect"
	"slices"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/claims"
)

// TestFormats compares the keys in docs/format.md with those of what lies in .volley.
func TestFormats(t *testing.T) {
	t.Parallel()
	check := func(what string, got, want []string) {
		slices.Sort(got)
		slices.Sort(want)
		if got, want = slices.Compact(got), slices.Compact(want); !slices.Equal(got, want) {
			t.Errorf("%s: docs/format.md has the keys\n%v, the program\n%v", what, got, want)
		}
	}
	protected, within := claims.KeyTable(claims.Section(t, "Groups of nodes"))
	want := claims.KeysOf(reflect.TypeFor[store.Manifest](), nil)
	want = append(want, claims.KeysOf(reflect.TypeFor[store.Record](), nil)...)
	want = append(want, claims.KeysOf(reflect.TypeFor[tree.Entry](), nil)...)
	if record := claims.KeysOf(reflect.TypeFor[store.RecordSum](), nil); !slices.Equal(within["members"], record) {
		t.Errorf("group, members: docs/format.md has the keys %v, the program %v", within["members"], record)
	}
	want = append(want, claims.KeysOf(reflect.TypeFor[store.Changes](), nil)...)
	for _, key := range claims.KeysOf(reflect.TypeFor[store.ChangedBlocks](), nil) {
		want = append(want, "files."+key)
	}
	check("group, replaces", within["replaces"], claims.KeysOf(reflect.TypeFor[store.Predecessor](), nil))
	check("group", protected, want)
	if format := []string{store.Format, store.Format}; !slices.Equal(within["format"], format) {
		t.Errorf("group: docs/format.md has the format %v, the program %v", within["format"], format)
	}
}
