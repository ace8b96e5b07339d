package deps

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
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
	"field/curves":            {"field"},
	"matrix":                  {"field", "internal/pointset", "internal/poll", "internal/printable"},
	"matrix/matrices":         {"field", "internal/pointset", "internal/printable", "matrix"},
	"plan":                    {"field", "internal/poll", "internal/printable"},
	"sim":                     {"plan"},
	"algo":                    {"algo/internal/exchange", "algo/internal/layers", "algo/internal/relay", "algo/internal/universal", "algo/internal/windows", "algo/schedule", "internal/poll", "matrix", "plan", "sim"},
	"algo/schedule":           {"field", "internal/poll", "matrix", "plan", "sim"},
	"algo/internal/universal": {"algo/schedule", "field", "internal/poll", "plan", "sim"},
	"algo/internal/windows":   {"algo/internal/universal", "algo/schedule", "field", "plan", "sim"},
	"algo/internal/layers":    {"algo/internal/universal", "algo/schedule", "field", "internal/pointset", "internal/poll", "matrix", "plan", "sim"},
	"algo/internal/exchange":  {"algo/internal/layers", "algo/internal/universal", "algo/schedule", "field", "internal/poll", "matrix", "plan", "sim"},
	"algo/internal/relay":     {"algo/schedule", "field", "plan", "sim"},
	"algo/algotest":           {"algo", "field/fieldtest", "matrix/matrices", "plan"},
	"matrix/matrixtest":       {"field", "matrix"},
	"verify":                  {"field", "internal/poll", "matrix", "plan"},
	"transport":               {"internal/printable"},
	"transport/waits":         {"transport"},
	"transport/local":         {"transport", "transport/waits"},
	"transport/mpi":           {"transport"},
	"transport/tcp":           {"transport", "transport/waits"},
	"transport/transporttest": {"transport"},
	"engine":                  {"internal/disk", "transport", "transport/tcp"},
	"executor":                {"executor/internal/compile", "executor/internal/cores", "executor/internal/run", "internal/hugepage", "plan", "transport"},
	"executor/internal/cores": {},
	"executor/internal/run":   {"executor/internal/compile"},
	"collective":              {"internal/printable", "internal/sharedmemory", "transport"},
	"":                        {"algo", "collective", "executor", "field", "internal/code", "internal/memo", "internal/poll", "internal/runcheck", "matrix", "plan", "sim", "transport", "transport/local", "verify"},
	"group":                   {"collective", "files", "group/internal/content", "group/internal/judge", "group/internal/erasure", "group/internal/guard", "group/internal/pass", "group/internal/restore", "group/internal/scrub", "group/internal/session", "group/internal/store", "group/internal/survey", "group/internal/tree", "group/protection", "internal/disk", "internal/printable", "sim", "transport", "transport/local"},
	"group/buffers":           {"group/internal/content", "group/internal/judge", "group/internal/erasure", "group/internal/guard", "group/internal/pass", "group/internal/session", "group/internal/store", "group/internal/survey", "group/internal/tree", "group/protection", "internal/disk", "transport"},
	"group/internal/content":  {"group/internal/store", "group/internal/tree", "group/protection", "internal/disk", "internal/twosums"},
	"group/internal/judge":    {"group/internal/content", "group/internal/store", "group/internal/tree", "group/protection", "internal/printable"},
	"group/internal/erasure":  {"algo", "collective", "executor", "field", "group/internal/content", "group/internal/store", "group/protection", "internal/code", "matrix", "plan", "sim", "transport", "verify"},
	"group/internal/guard":    {"group/internal/content", "group/internal/pass", "group/internal/session", "group/internal/store", "group/internal/tree", "group/protection", "internal/disk", "internal/printable"},
	"group/internal/pass":     {"collective", "executor", "group/internal/content", "group/internal/erasure", "group/internal/session", "group/internal/store", "group/internal/tree", "group/protection", "internal/disk", "internal/hugepage", "transport", "verify"},
	"group/internal/restore":  {"group/internal/content", "group/internal/store", "group/internal/tree", "group/protection", "internal/disk"},
	"group/internal/session":  {"", "collective", "executor", "field", "files", "group/internal/content", "group/internal/judge", "group/internal/erasure", "group/internal/store", "group/internal/tree", "group/protection", "internal/disk", "internal/printable", "matrix", "sim", "transport", "verify"},
	"group/internal/store":    {"files", "group/internal/tree", "group/protection", "internal/disk"},
	"group/internal/scrub":    {"group/internal/content", "group/internal/session", "group/internal/store", "group/internal/tree", "group/protection"},
	"group/internal/survey":   {"group/internal/content", "group/internal/erasure", "group/internal/judge", "group/internal/pass", "group/internal/restore", "group/internal/scrub", "group/internal/session", "group/internal/store", "group/internal/tree", "group/protection", "internal/disk"},
	"group/internal/tree":     {"files", "internal/disk"},
	"group/protection":        {"files", "internal/printable", "sim"},
	"coded":                   {"", "algo", "coded/manifest", "collective", "executor", "field", "files", "internal/code", "internal/disk", "internal/poll", "internal/printable", "matrix", "matrix/matrices", "transport"},
	"coded/manifest":          {"field", "files", "internal/disk", "internal/printable", "matrix", "matrix/matrices"},
	"internal/disk":           {"files", "internal/pace"},
	"internal/powercut":       {},
	"internal/sharedmemory":   {},
	"internal/disk/disktest":  {"files", "internal/disk"},
	"internal/claims":         {},
	"internal/code":           {"field", "internal/poll", "matrix"},
	"internal/deps":           {},
	"internal/faulty":         {"transport"},
	"internal/fuzzlimit":      {},
	"internal/delay":          {"internal/pace", "transport"},
	"internal/memo":           {},
	"internal/pace":           {},
	"internal/poll":           {},
	"internal/pointset":       {"field", "internal/poll"},
	"files":                   {"internal/printable"},
	"internal/printable":      {},
	"internal/report":         {},
	"internal/runcheck":       {"algo", "collective", "executor", "field", "internal/poll", "matrix", "plan", "transport", "verify"},
	"internal/sets":           {"group", "group/protection"},
	"internal/ssh":            {},
	"internal/verifyall":      {},
	"internal/twosums":        {},
	"internal/hugepage":       {},
	"internal/race":           {},
	"internal/rapidseed":      {},
	"internal/testprogram":    {"internal/disk"},
	"internal/comparison":     {"algo", "field", "internal/printable", "internal/report", "internal/selection", "matrix", "matrix/matrices", "plan", "sim"},
	"internal/selection":      {"", "algo", "field", "internal/printable", "matrix", "matrix/matrices", "sim"},
	"internal/exit":           {""},
	"internal/launch":         {"", "engine", "group", "group/protection", "internal/exit", "internal/printable", "internal/ssh", "transport/tcp"},
	"internal/grouptext":      {"files", "group", "group/protection", "internal/exit", "internal/printable", "internal/report"},
	"internal/gauges":         {"group", "internal/disk", "internal/exit", "internal/grouptext", "internal/printable"},
	"internal/groupfile":      {"internal/disk", "internal/exit", "internal/ssh"},
	"internal/cli": {
		"", "engine", "field", "internal/cli/groups", "internal/cli/ranks", "internal/cli/schedules", "internal/cli/session", "internal/exit", "internal/launch", "internal/printable", "internal/selection",
		"matrix/matrices",
	},
	"internal/cli/session": {
		"", "algo", "coded", "engine", "executor", "field", "internal/disk", "internal/exit", "internal/gauges", "internal/launch", "internal/poll", "internal/printable", "internal/selection", "internal/ssh",
		"transport", "transport/tcp",
	},
	"internal/cli/ranks": {
		"", "collective", "engine", "internal/cli/session", "internal/delay", "internal/exit", "internal/groupfile", "internal/launch", "internal/selection", "internal/ssh", "transport/local",
		"transport/mpi",
	},
	"internal/cli/schedules": {
		"", "algo", "coded", "field", "internal/cli/ranks", "internal/cli/session", "internal/comparison", "internal/exit", "internal/launch", "internal/printable", "internal/report", "internal/selection",
		"matrix", "matrix/matrices", "plan", "sim", "verify",
	},
	"internal/cli/groups": {
		"executor", "files", "group", "group/protection", "internal/cli/ranks", "internal/cli/session", "internal/exit", "internal/gauges", "internal/groupfile",
		"internal/grouptext", "internal/launch", "internal/printable", "internal/sets", "internal/ssh", "transport", "transport/local",
	},
	"cmd/volley":                {"internal/cli"},
	"executor/internal/compile": {"executor/internal/cores", "field", "internal/poll", "plan"},
	"cmd/libvolley":             {"", "coded", "collective", "field", "field/curves", "group", "group/buffers", "group/protection", "internal/exit", "internal/memo", "internal/printable", "internal/sets", "matrix", "matrix/matrices", "sim", "transport", "transport/mpi"},
}

// TestImports compares the table with the imports there are, without those of
// tests. An import that the table lacks is an error, and so is a row that no
// import needs. It reads the files itself: the go command then knows when a result
// that it has kept is out of date.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	module := moduleName(t)
	packages(t, func(name string, pkg *build.Package) {
		seen[name] = true
		check(t, module, name, pkg.Imports)
		if tests := slices.Concat(pkg.TestImports, pkg.XTestImports); slices.Contains(tests, "pgregory.net/rapid") && !slices.Contains(tests, module+"/internal/rapidseed") {
			t.Errorf("the tests of %s import rapid: import internal/rapidseed, too, or a failure writes into the source tree", name)
		}
	})
	for name := range allowed {
		if !seen[name] {
			t.Errorf("the table has %q: there is no such package", name)
		}
	}
}

// moduleName returns the module's path.
func moduleName(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(strings.SplitN(string(file), "\n", 2)[0], "module"))
}

// root is where the module is.
const root = "../.."

// packages calls f for each package of the module.
func packages(t *testing.T, f func(name string, pkg *build.Package)) {
	t.Helper()
	tagged := build.Default
	tagged.BuildTags, tagged.CgoEnabled = []string{"mpi"}, true
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name == "testdata" || name == "node_modules" || path != root && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
			return filepath.SkipDir // another module
		}
		pkg, err := tagged.ImportDir(path, 0)
		if errors.As(err, new(*build.NoGoError)) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); name == "." {
			name = ""
		}
		f(name, pkg)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources calls f for each node of each source file of each package of the module.
func sources(t *testing.T, f func(name, file string, pkg *build.Package, n ast.Node)) {
	t.Helper()
	packages(t, func(name string, pkg *build.Package) {
		for _, file := range slices.Concat(pkg.GoFiles, pkg.CgoFiles) {
			tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for n := range ast.Preorder(tree) {
				f(name, file, pkg, n)
			}
		}
	})
}

// calledOf returns the package, or other name, and what is selected of it.
func calledOf(n ast.Node) (of *ast.Ident, selected string) {
	if x, ok := n.(*ast.SelectorExpr); ok {
		if of, ok := x.X.(*ast.Ident); ok {
			return of, x.Sel.Name
		}
	}
	return &ast.Ident{}, ""
}

// TestErrorNames checks that each type of error of an internal package has a name in a package that others can import,
// so that their errors.As finds it.
func TestErrorNames(t *testing.T) {
	inside, named := map[string]bool{}, map[string]bool{}
	sources(t, func(name, _ string, pkg *build.Package, n ast.Node) {
		x, ok := n.(*ast.TypeSpec)
		switch {
		case !ok || !strings.HasSuffix(x.Name.Name, "Error") || !x.Name.IsExported() || slices.Contains(commandLine, name):
		case hidden(name) && !x.Assign.IsValid():
			inside[pkg.Name+"."+x.Name.Name] = true
		case !hidden(name) && x.Assign.IsValid():
			if of, selected := calledOf(x.Type); selected != "" {
				named[of.Name+"."+selected] = true
			}
		}
	})
	for x := range inside {
		if reason := unnamed[x]; (reason == "") == !named[x] {
			t.Errorf("%s: named outside: %v, in the list of those that no caller gets: %q", x, named[x], reason)
		}
	}
	for x := range unnamed {
		if !inside[x] {
			t.Errorf("%s is in the list of errors without a name outside: there is no such type", x)
		}
	}
}

// unnamed are errors that no caller of a package outside gets, and why.
var unnamed = map[string]string{
	"session.LostError":  "Recover takes another snapshot",
	"session.SeatsError": "verbs run with the nodes at their seats",
	"store.VersionError": "a verb says it as a RefusedError",
}

// commandLine are packages whose errors only the command line and its page get.
var commandLine = []string{"internal/cli/session", "internal/launch", "internal/selection", "internal/ssh"}

// TestLogs checks that a package logs where its caller says, and never to the default log of the program.
func TestLogs(t *testing.T) {
	sources(t, func(name, file string, pkg *build.Package, n ast.Node) {
		of, selected := calledOf(n)
		if slices.Contains(programs, name) || of.Obj != nil {
			return
		}
		if of.Name == "slog" && slices.Contains(defaultLog, selected) || of.Name == "log" && slices.Contains(pkg.Imports, "log") {
			t.Errorf("%s/%s uses %s.%s: log to a *slog.Logger of the options", name, file, of.Name, selected)
		}
	})
}

// defaultLog are the functions of package slog that use the default log.
var defaultLog = strings.Fields("Debug DebugContext Default Error ErrorContext Info InfoContext Log LogAttrs SetDefault Warn WarnContext With")

// programs may use the default log, as they own it.
var programs = []string{"internal/cli/session", "cmd/volley", "cmd/libvolley"}

// changing are the functions of package os that change what a directory holds.
var changing = strings.Fields("Chmod Chown Chtimes CopyFS Create CreateTemp Lchown Link Mkdir MkdirAll MkdirTemp OpenFile Remove RemoveAll Rename Symlink Truncate WriteFile")

// TestWrites checks that what the product writes it writes by package disk, so that the tests of commits interrupt
// each of its calls. Package disk has such a test for whole files.
func TestWrites(t *testing.T) {
	found := map[string]bool{}
	sources(t, func(name, file string, _ *build.Package, n ast.Node) {
		of, selected := calledOf(n)
		if of.Name != "os" || !slices.Contains(changing, selected) {
			return
		}
		found[name] = true
		if !slices.Contains(writers, name) {
			t.Errorf("%s/%s calls os.%s: write by package disk", name, file, selected)
		}
	})
	for _, name := range writers {
		if !found[name] {
			t.Errorf("%s writes nothing by package os: take it out of the list", name)
		}
	}
}

// writers are packages that may write by package os: the disk itself, and what is for tests and builds.
var writers = []string{"internal/disk", "internal/disk/disktest"}

// check compares the imports of a package with its row.
func check(t *testing.T, module, name string, imports []string) {
	t.Helper()
	may, ok := allowed[name]
	if !ok {
		t.Errorf("package %s is not in the table: add it with what it may import", name)
		return
	}
	var does []string
	for _, path := range imports {
		if below, ok := strings.CutPrefix(path+"/", module+"/"); ok {
			does = append(does, strings.TrimSuffix(below, "/"))
		}
	}
	for _, x := range does {
		if !slices.Contains(may, x) {
			t.Errorf("%s imports %q: the table does not allow it", name, x)
		}
	}
	for _, x := range may {
		if !slices.Contains(does, x) {
			t.Errorf("%s may import %q and does not: take it out of the table", name, x)
		}
	}
}
