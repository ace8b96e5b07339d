package deps

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPublicTypes looks at what public packages export: no alias, function, method, field, variable or constant has a type
// of an internal package, so that go doc prints every type with its fields and comments.
func TestPublicTypes(t *testing.T) {
	packages(t, func(name string, pkg *build.Package) {
		if pkg.Name == "main" || hidden(name) {
			return
		}
		for _, file := range slices.Concat(pkg.GoFiles, pkg.CgoFiles) {
			tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			internal := map[string]bool{} // by the names that the file has for them
			for _, i := range tree.Imports {
				imported, err := strconv.Unquote(i.Path.Value)
				if err == nil && hidden(imported) {
					internal[filepath.Base(imported)] = true
					if i.Name != nil {
						internal[i.Name.Name] = true
					}
				}
			}
			for _, part := range exported(tree) {
				for n := range ast.Preorder(part) {
					if of, selected := calledOf(n); of.Obj == nil && internal[of.Name] && token.IsExported(selected) {
						t.Errorf("%s/%s exports what is %s.%s", name, file, of.Name, selected)
					}
				}
			}
		}
	})
}

// hidden reports whether a package is internal.
func hidden(name string) bool { return slices.Contains(strings.Split(name, "/"), "internal") }

var receiver = regexp.MustCompile(`\w+`)

// exported returns the types that a file exports, and those that it gives functions, methods, fields, variables and constants.
func exported(tree *ast.File) (parts []ast.Node) {
	public := func(fields *ast.FieldList) {
		for _, f := range fields.List {
			if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
				parts = append(parts, f.Type)
			}
		}
	}
	for n := range ast.Preorder(tree) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() && (n.Recv == nil || ast.IsExported(receiver.FindString(types.ExprString(n.Recv.List[0].Type)))) {
				parts = append(parts, n.Type)
			}
		case *ast.TypeSpec:
			structure, isStruct := n.Type.(*ast.StructType)
			if isStruct && n.Name.IsExported() {
				public(structure.Fields)
			} else if n.Name.IsExported() {
				parts = append(parts, n.Type)
			}
		case *ast.ValueSpec:
			if slices.ContainsFunc(n.Names, (*ast.Ident).IsExported) && n.Type != nil {
				parts = append(parts, n.Type)
			}
		}
	}
	return parts
}
