package deps

import (
	"fmt"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestPublicTypes walks what public packages export: no alias, function, method, field, variable or constant has a type
// of an internal package, so that go doc prints every type with its fields and comments.
func TestPublicTypes(t *testing.T) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	module := moduleName(t)
	packages(t, func(name string, pkg *build.Package) { // this reads the files, so that the go command keeps no result for too long
		if pkg.Name == "main" || hidden(name) {
			return
		}
		loaded, err := from.Import(path.Join(module, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range loaded.Scope().Names() {
			object := loaded.Scope().Lookup(what)
			if !object.Exported() {
				continue
			}
			for _, x := range internals(object) {
				t.Errorf("%s.%s", loaded.Path(), x)
			}
		}
	})
}

// hidden reports whether a package is internal.
func hidden(name string) bool { return slices.Contains(strings.Split(name, "/"), "internal") }

// internals returns where an exported object of a package shows a type of an internal package.
func internals(object types.Object) []string {
	var found []string
	var walk func(where string, x types.Type)
	exported := func(where string, x *types.Var) {
		if x.Exported() {
			walk(where+"."+x.Name(), x.Type())
		}
	}
	walk = func(where string, x types.Type) {
		switch x := x.(type) {
		case interface{ Obj() *types.TypeName }: // named, an alias or a type parameter
			if pkg := x.Obj().Pkg(); pkg != nil && hidden(pkg.Path()) {
				found = append(found, fmt.Sprintf("%s is %v", where, x))
			}
			if generic, ok := x.(interface{ TypeArgs() *types.TypeList }); ok {
				for argument := range generic.TypeArgs().Types() {
					walk(where, argument)
				}
			}
		case *types.Map:
			walk(where, x.Key())
			walk(where, x.Elem())
		case interface{ Elem() types.Type }:
			walk(where, x.Elem())
		case *types.Signature:
			walk(where, x.Params())
			walk(where, x.Results())
		case *types.Tuple:
			for value := range x.Variables() {
				walk(where, value.Type())
			}
		case *types.Struct:
			for field := range x.Fields() {
				exported(where, field)
			}
		case *types.Interface:
			for method := range x.Methods() {
				walk(where+"."+method.Name(), method.Type())
			}
		}
	}
	typed, ok := object.(*types.TypeName)
	switch {
	case !ok:
		walk(object.Name(), object.Type())
	case typed.IsAlias():
		walk(object.Name(), types.Unalias(object.Type()))
	default:
		named := object.Type().(*types.Named)
		walk(object.Name(), named.Underlying())
		for method := range named.Methods() {
			if method.Exported() {
				walk(object.Name()+"."+method.Name(), method.Type())
			}
		}
	}
	return found
}
