package main

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// alias is the name that rewritten files import the runtime package by.
const alias = "mutantrt"

// A mutator rewrites one file: each of its mutation points calls package mutant.
type mutator struct {
	rewrite
	pkg      *types.Package
	info     *types.Info
	tree     *ast.File
	name     string // of the file, in points
	sum      string
	next     uint32 // the last id given
	function string
	seen     map[string]int
	stack    []ast.Node // the nodes above the one visited
	points   []*Point
}

// mutate returns the text of the file rewritten; its points, whose ids follow next, are
// in the mutator then.
func (m *mutator) mutate(runtime string) string {
	m.sum = fmt.Sprintf("%x", sha256.Sum256(m.src))[:12]
	m.seen = map[string]int{}
	for _, d := range m.tree.Decls {
		m.function = declared(d)
		m.walk(d)
	}
	if len(m.points) > 0 {
		m.close(m.tree.Name.End(), fmt.Sprintf("; import %s %q", alias, runtime))
	}
	return m.apply()
}

// declared returns what a declaration is called in reports.
func declared(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	switch {
	case !ok:
		return "package"
	case f.Recv == nil || len(f.Recv.List) == 0:
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// walk visits a tree. Edits that open are made on the way down, and those that close,
// which enter returns, on the way up.
func (m *mutator) walk(root ast.Node) {
	var leave [][]func()
	call := func(list []func()) {
		for _, f := range list {
			f()
		}
	}
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			last := len(m.stack) - 1
			call(leave[last])
			m.stack, leave = m.stack[:last], leave[:last]
			return true
		}
		closes, down := m.enter(n)
		if !down {
			call(closes)
			return false
		}
		m.stack, leave = append(m.stack, n), append(leave, closes)
		return true
	})
}

// parent returns the node so many above the one visited, 0 being next to it.
func (m *mutator) parent(up int) ast.Node {
	if i := len(m.stack) - 1 - up; i >= 0 {
		return m.stack[i]
	}
	return nil
}

// enter makes the points of one node. It returns what to do after the nodes below it,
// and whether to visit those.
func (m *mutator) enter(n ast.Node) (leave []func(), down bool) {
	switch x := n.(type) {
	case *ast.GenDecl:
		return nil, x.Tok == token.VAR
	case *ast.FuncType, *ast.FieldList:
		return nil, false
	case ast.Stmt:
		if t, ok := m.parent(0).(*ast.TypeSwitchStmt); ok && t.Assign == x {
			return nil, false
		}
		return m.statement(x), true
	case ast.Expr:
		tv, ok := m.info.Types[x]
		switch {
		case ok && tv.IsType():
			return nil, false
		case ok && tv.Value != nil:
			return m.constant(x, tv), false
		}
		return m.expression(x)
	}
	return nil, true
}

// add makes a point and returns its id.
func (m *mutator) add(at token.Pos, operator, original, mutated string) uint32 {
	m.next++
	position := m.file.Position(at)
	p := &Point{
		ID: m.next, Package: m.pkg.Path(), File: m.name, Line: position.Line, Column: position.Column,
		Function: m.function, Operator: operator, Original: original, Mutated: mutated, Sum: m.sum,
	}
	key := p.Key() // of the first of its kind
	m.seen[key]++
	p.N = m.seen[key]
	m.points = append(m.points, p)
	return p.ID
}

// call returns the beginning of a call of the runtime package.
func call(function string, id uint32) string {
	return fmt.Sprintf("%s.%s(%d, ", alias, function, id)
}

// is returns the condition that a point is the mutant.
func is(id uint32) string { return fmt.Sprintf("%s.Is(%d)", alias, id) }

// flip makes a boolean expression the opposite in the mutant.
func (m *mutator) flip(x ast.Expr, id uint32) func() {
	m.open(x.Pos(), "((")
	return func() { m.close(x.End(), ") != "+is(id)+")") }
}

// typeText returns how the source can write a type at a place, "" if it cannot.
func (m *mutator) typeText(t types.Type, at token.Pos) string {
	var object types.Object
	switch t := types.Unalias(types.Default(t)).(type) {
	case *types.Basic:
		object = types.Universe.Lookup(t.Name())
	case *types.Named:
		if t.TypeArgs().Len() > 0 {
			return ""
		}
		object = t.Obj()
	case *types.TypeParam:
		object = t.Obj()
	}
	scope := m.pkg.Scope().Innermost(at)
	if object == nil || scope == nil {
		return ""
	}
	if _, found := scope.LookupParent(object.Name(), at); found == object {
		return object.Name()
	}
	for _, spec := range m.tree.Imports {
		p, ok := m.info.Implicits[spec].(*types.PkgName)
		if spec.Name != nil {
			p, ok = m.info.Defs[spec.Name].(*types.PkgName)
		}
		if ok && p.Imported() == object.Pkg() {
			if _, found := scope.LookupParent(p.Name(), at); found == p {
				return p.Name() + "." + object.Name()
			}
		}
	}
	return ""
}

// plainBool reports whether an expression is a bool, and not of a type that the program
// declares: only such ones compare with what package mutant returns.
func (m *mutator) plainBool(x ast.Expr) bool {
	t := m.info.TypeOf(x)
	return t == types.Typ[types.Bool] || t == types.Typ[types.UntypedBool]
}

// numeric returns what kind of number an expression is, 0 if none or one of a type
// parameter.
func (m *mutator) numeric(x ast.Expr) types.BasicInfo {
	t := m.info.TypeOf(x)
	if t == nil {
		return 0
	}
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return 0
	}
	if b, ok := t.Underlying().(*types.Basic); ok {
		return b.Info() & (types.IsInteger | types.IsFloat)
	}
	return 0
}

// silent reports whether a call only makes a message, which no test has to pin.
func (m *mutator) silent(c *ast.CallExpr) bool {
	switch m.callee(c) {
	case "panic", "fmt.Errorf", "errors.New", "fmt.Sprintf":
		return true
	}
	return false
}

// callee returns the name of a function of another package, or of a builtin.
func (m *mutator) callee(c *ast.CallExpr) string {
	switch f := ast.Unparen(c.Fun).(type) {
	case *ast.Ident:
		if b, ok := m.info.Uses[f].(*types.Builtin); ok {
			return b.Name()
		}
	case *ast.SelectorExpr:
		if o, ok := m.info.Uses[f.Sel].(*types.Func); ok && o.Pkg() != nil && o.Signature().Recv() == nil {
			return o.Pkg().Path() + "." + o.Name()
		}
	}
	return ""
}

// literals reports whether an expression is made of integer literals only.
func literals(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Kind == token.INT
	case *ast.ParenExpr:
		return literals(x.X)
	case *ast.UnaryExpr:
		return literals(x.X)
	case *ast.BinaryExpr:
		return literals(x.X) && literals(x.Y)
	}
	return false
}

// oneMore returns the text of a literal expression plus 1.
func oneMore(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n+1, 10)
	}
	return text + " + 1"
}
