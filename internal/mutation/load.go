package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A listed is a package as go list describes it.
type listed struct {
	Dir, ImportPath, Export, ForTest string
	GoFiles, Deps                    []string
	DepOnly                          bool
	Module                           *struct{ Path, Dir, GoVersion string }
}

// list runs go list in a folder.
func list(dir string, args ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,Export,ForTest,GoFiles,Deps,DepOnly,Module"}, args...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// A program is the packages to mutate, rewritten.
type program struct {
	root, module string            // the module's folder and path
	packages     []string          // import paths
	files        map[string]string // rewritten, by path from the root
	points       []*Point          // by id - 1
}

// runtimePath returns the import path of package mutant.
func (p *program) runtimePath() string { return p.module + "/" + runtimeDir }

// runtimeDir is where package mutant is.
const runtimeDir = "internal/mutation/mutant"

// modulePath returns the path of the module in a folder, by its go.mod.
func modulePath(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", fmt.Errorf("%s has no line that begins with module", filepath.Join(dir, "go.mod"))
}

// load type-checks packages of the module at root, and of modules in its folders that
// go.work ties to it, and rewrites them.
func load(root string, patterns []string) (*program, error) {
	all, err := list(root, append([]string{"-deps", "-export", "--"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	prog := &program{root: root, files: map[string]string{}}
	if prog.module, err = modulePath(root); err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.DepOnly {
			continue
		}
		if p.Module == nil || p.Module.Dir != root && !strings.HasPrefix(p.Module.Dir, root+string(filepath.Separator)) {
			return nil, fmt.Errorf("package %s is not in %s", p.ImportPath, root)
		}
		prog.packages = append(prog.packages, p.ImportPath)
		if err := prog.rewrite(fset, imports, p); err != nil {
			return nil, fmt.Errorf("package %s: %w", p.ImportPath, err)
		}
	}
	return prog, nil
}

// rewrite rewrites the files of one package.
func (prog *program) rewrite(fset *token.FileSet, imports types.Importer, p listed) error {
	var trees []*ast.File
	var sources [][]byte
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		trees, sources = append(trees, tree), append(sources, src)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
	}
	config := types.Config{Importer: imports, GoVersion: "go" + p.Module.GoVersion}
	pkg, err := config.Check(p.ImportPath, fset, trees, info)
	if err != nil {
		return err
	}
	for i, tree := range trees {
		name, err := filepath.Rel(prog.root, filepath.Join(p.Dir, p.GoFiles[i]))
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		m := &mutator{
			rewrite: rewrite{file: fset.File(tree.Pos()), src: sources[i]},
			pkg:     pkg, info: info, tree: tree, name: name, next: uint32(len(prog.points)),
		}
		if text := m.mutate(prog.runtimePath()); len(m.points) > 0 {
			prog.files[name] = text
			prog.points = append(prog.points, m.points...)
		}
	}
	return nil
}

// A testBinary is the tests of one package.
type testBinary struct {
	Package string
	dir     string // of the package, in the copy of the module
	rapid   bool   // it has the flags of pgregory.net/rapid
	path    string // of the binary
	reach   string // of the one that records points
}

// testsOf returns the packages that patterns name whose tests depend on one of the mutated.
func (prog *program) testsOf(patterns []string) ([]*testBinary, error) {
	all, err := list(prog.root, append([]string{"-test", "--"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	mutated := map[string]bool{}
	for _, p := range prog.packages {
		mutated[p] = true
	}
	found := map[string]*testBinary{}
	for _, p := range all {
		name, ok := strings.CutSuffix(p.ImportPath, ".test")
		if !ok {
			continue
		}
		b := &testBinary{Package: name, dir: p.Dir}
		needs := false
		for _, dep := range p.Deps {
			dep, _, _ = strings.Cut(dep, " ") // "a [b.test]" is a built for the tests of b
			needs = needs || mutated[dep]
			b.rapid = b.rapid || dep == "pgregory.net/rapid"
		}
		if needs {
			found[name] = b
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *testBinary) int { return strings.Compare(a.Package, b.Package) }), nil
}
