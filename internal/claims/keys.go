package claims

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Section returns a section of docs/format.md.
func Section(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no repository here")
		}
		dir = filepath.Dir(dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+name+"\n")
	if !ok {
		t.Fatalf("docs/format.md has no section %q", name)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// quotedKey is a key in a table.
var quotedKey = regexp.MustCompile("`([^`]+)`")

// KeyTable returns the keys in the first column of a table, and for each those that the second
// one names.
func KeyTable(section string) (keys []string, inner map[string][]string) {
	inner = map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 {
			continue
		}
		for _, key := range quotedKey.FindAllStringSubmatch(cells[1], -1) {
			keys = append(keys, key[1])
			for _, m := range quotedKey.FindAllStringSubmatch(cells[2], -1) {
				inner[key[1]] = append(inner[key[1]], m[1])
			}
		}
	}
	return keys, inner
}

// KeysOf returns the JSON keys of a struct, and for those inside, which are structs, theirs
// behind a dot.
func KeysOf(kind reflect.Type, inside map[string]bool) []string {
	var list []string
	for i := range kind.NumField() {
		f := kind.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || key == "-" {
			continue
		}
		if f.Anonymous && key == "" {
			list = append(list, KeysOf(f.Type, nil)...)
			continue
		}
		if !inside[key] {
			list = append(list, key)
			continue
		}
		for _, sub := range KeysOf(f.Type, nil) {
			list = append(list, key+"."+sub)
		}
	}
	return list
}
