package main

import (
	"go/ast"
	"go/token"
)

// statement makes the points of one statement of a list. Those elsewhere, before the
// condition of an if, say, cannot be removed.
func (m *mutator) statement(s ast.Stmt) []func() {
	switch p := m.parent(0).(type) {
	case *ast.BlockStmt, *ast.CaseClause:
	case *ast.CommClause:
		if p.Comm == s {
			return nil
		}
	default:
		return nil
	}
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || blank(s.Lhs) {
			return nil
		}
	case *ast.ExprStmt:
		if c, ok := s.X.(*ast.CallExpr); !ok || m.callee(c) == "panic" {
			return nil
		}
	case *ast.IncDecStmt, *ast.SendStmt:
	case *ast.BranchStmt:
		m.branch(s)
		return nil
	default:
		return nil
	}
	id := m.add(s.Pos(), "remove", clip(m.text(s.Pos(), s.End())), removed)
	m.open(s.Pos(), "if !"+is(id)+" { ")
	return []func(){func() { m.close(s.End(), " }") }}
}

// blank reports whether nothing is assigned to.
func blank(list []ast.Expr) bool {
	for _, x := range list {
		if i, ok := x.(*ast.Ident); !ok || i.Name != "_" {
			return false
		}
	}
	return true
}

// branch makes a break a continue and the other way round, where both are legal. The
// statement stays: it may be what makes the function end.
func (m *mutator) branch(s *ast.BranchStmt) {
	becomes := map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}[s.Tok]
	loop, within := m.loop(s.Label)
	if becomes == 0 || loop == nil {
		return
	}
	if f, ok := loop.(*ast.ForStmt); s.Tok == token.CONTINUE && (within && s.Label == nil || ok && f.Cond == nil) {
		return // it would break the switch, or end a loop that the compiler knows not to end
	}
	label := ""
	if s.Label != nil {
		label = " " + s.Label.Name
	}
	id := m.add(s.Pos(), "branch", s.Tok.String()+label, becomes.String()+label)
	m.open(s.Pos(), "if "+is(id)+" { "+becomes.String()+label+" }; ")
}

// loop returns the loop of that label, or the innermost one, around the statement, and
// whether the statement is in a switch or select in it.
func (m *mutator) loop(label *ast.Ident) (loop ast.Stmt, within bool) {
	for up := 0; ; up++ {
		switch x := m.parent(up).(type) {
		case nil, *ast.FuncLit, *ast.FuncDecl:
			return nil, false
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			within = true
		case *ast.ForStmt, *ast.RangeStmt:
			if l, ok := m.parent(up + 1).(*ast.LabeledStmt); label == nil || ok && l.Label.Name == label.Name {
				return x.(ast.Stmt), within
			}
		}
	}
}
