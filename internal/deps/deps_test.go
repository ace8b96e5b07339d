package deps

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed says which packages of the module a package may import, besides those
// below it in its own folder. Reasons: verify is independent of the algorithms
// it checks; a transport moves bytes and knows no plans; the executor knows
// plans and no algorithms; what people look at needs plans only.
var allowed = map[string][]string{
	"field":                   {},
	"field/fieldtest":         {"field"},
	"matrix":                  {"field"},
	"plan":                    {"field"},
	"sim":                     {"plan"},
	"algo":                    {"field", "matrix", "plan", "sim"},
	"verify":                  {"field", "matrix", "plan"},
	"transport":               {},
	"transport/local":         {"transport"},
	"transport/faulty":        {"transport"},
	"transport/transporttest": {"transport"},
	"executor":                {"field", "plan", "transport"},
	"draw":                    {"plan"},
	"draw/plot":               {},
	"report":                  {},
	"tune":                    {"field", "internal/atomicfile", "transport"},
	"":                        {"algo", "executor", "field", "matrix", "plan", "sim", "transport", "verify"},
	"internal/atomicfile":     {},
	"internal/codeddir":       {},
	"internal/claims":         {},
	"internal/deps":           {},
	"internal/mutation":       {},
	"internal/cli": {
		"", "algo", "draw", "draw/plot", "field", "internal/atomicfile", "internal/codeddir", "matrix", "plan", "report", "sim",
		"transport", "transport/local", "tune", "verify",
	},
	"cmd/volley": {"internal/cli"},

	"examples/lcc":     {"", "field", "matrix", "transport", "transport/local"},
	"examples/peerdas": {"", "algo", "field", "matrix", "plan", "sim", "transport", "transport/local"},
}

// TestImports compares the table with the imports there are, without those of
// tests. An import that the table lacks is an error, and so is a row that no
// import needs.
func TestImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "volley/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := short(pkg.ImportPath)
		seen[name] = true
		may, ok := allowed[name]
		if !ok {
			t.Errorf("package %s is not in the table: add it with what it may import", pkg.ImportPath)
			continue
		}
		var does []string
		for _, path := range pkg.Imports {
			if path == "volley" || strings.HasPrefix(path, "volley/") {
				does = append(does, short(path))
			}
		}
		for _, x := range does {
			if !slices.Contains(may, x) {
				t.Errorf("%s imports %q: the table does not allow it", pkg.ImportPath, x)
			}
		}
		for _, x := range may {
			if !slices.Contains(does, x) {
				t.Errorf("%s may import %q and does not: take it out of the table", pkg.ImportPath, x)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("the table has %q: there is no such package", name)
		}
	}
}

// short returns the path below the module; the root package is "".
func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "volley"), "/")
}
