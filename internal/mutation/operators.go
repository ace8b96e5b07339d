package main

import (
	"go/ast"
	"go/token"
	"go/types"
)

// helpers are the operators with a function in package mutant, and what they become.
var helpers = map[token.Token]struct {
	function, operator string
	becomes            token.Token
	only               types.BasicInfo // the operands' kind; 0 for what can be compared
}{
	token.ADD:     {"Add", "arithmetic", token.SUB, types.IsInteger | types.IsFloat},
	token.SUB:     {"Sub", "arithmetic", token.ADD, types.IsInteger | types.IsFloat},
	token.MUL:     {"Mul", "arithmetic", token.ADD, types.IsInteger | types.IsFloat},
	token.QUO:     {"Quo", "arithmetic", token.MUL, types.IsInteger | types.IsFloat},
	token.REM:     {"Rem", "arithmetic", token.MUL, types.IsInteger},
	token.AND:     {"And", "bits", token.OR, types.IsInteger},
	token.OR:      {"Or", "bits", token.AND, types.IsInteger},
	token.XOR:     {"Xor", "bits", token.OR, types.IsInteger},
	token.AND_NOT: {"AndNot", "bits", token.AND, types.IsInteger},
	token.SHL:     {"Shl", "bits", token.SHR, types.IsInteger},
	token.SHR:     {"Shr", "bits", token.SHL, types.IsInteger},
	token.LSS:     {"Less", "boundary", token.LEQ, 0},
	token.LEQ:     {"LessEqual", "boundary", token.LSS, 0},
	token.GTR:     {"Greater", "boundary", token.GEQ, 0},
	token.GEQ:     {"GreaterEqual", "boundary", token.GTR, 0},
}

// opposites are the comparisons.
var opposites = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.GEQ, token.GEQ: token.LSS,
	token.GTR: token.LEQ, token.LEQ: token.GTR,
}

// expression makes the points of an expression that is no constant.
func (m *mutator) expression(x ast.Expr) (leave []func(), down bool) {
	switch x := x.(type) {
	case *ast.CallExpr:
		return m.condition(x), !m.silent(x)
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		return m.condition(x), true
	case *ast.UnaryExpr:
		return m.unary(x), true
	case *ast.BinaryExpr:
		return m.binary(x), true
	}
	return nil, true
}

// binary makes the points of an operator.
func (m *mutator) binary(x *ast.BinaryExpr) (leave []func()) {
	with := func(op token.Token) string {
		return clip(m.text(x.X.Pos(), x.X.End())) + " " + op.String() + " " + clip(m.text(x.Y.Pos(), x.Y.End()))
	}
	if x.Op == token.LAND || x.Op == token.LOR {
		return m.logical(x, with)
	}
	if opposite, ok := opposites[x.Op]; ok {
		mutated := with(opposite)
		if m.numeric(x.X)&types.IsFloat != 0 && x.Op != token.EQL && x.Op != token.NEQ {
			mutated = "!(" + with(x.Op) + ")" // not the same for NaN
		}
		leave = append(leave, m.flip(x, m.add(x.OpPos, "negate", with(x.Op), mutated)))
	}
	h, ok := helpers[x.Op]
	if !ok || h.only != 0 && m.numeric(x)&h.only == 0 {
		return leave
	}
	id := m.add(x.OpPos, h.operator, with(x.Op), with(h.becomes))
	m.open(x.Pos(), call(h.function, id))
	m.replace(x.OpPos, x.Op.String(), ",")
	return append([]func(){func() { m.close(x.End(), ")") }}, leave...)
}

// logical makes && an || in the mutant and the other way round: a || b is !(!a && !b),
// so both operands and the result are flipped, and what is evaluated is right, too.
func (m *mutator) logical(x *ast.BinaryExpr, with func(token.Token) string) []func() {
	if !m.plainBool(x.X) || !m.plainBool(x.Y) {
		return nil
	}
	becomes := token.LOR
	if x.Op == token.LOR {
		becomes = token.LAND
	}
	id := m.add(x.OpPos, "logical", with(x.Op), with(becomes))
	whole := m.flip(x, id)
	return []func(){m.flip(x.X, id), m.flip(x.Y, id), whole}
}

// unary makes the points of ! and -.
func (m *mutator) unary(x *ast.UnaryExpr) []func() {
	operand := clip(m.text(x.X.Pos(), x.X.End()))
	switch x.Op {
	case token.NOT:
		if b, ok := ast.Unparen(x.X).(*ast.BinaryExpr); ok && opposites[b.Op] != 0 || !m.plainBool(x) {
			return nil // a comparison is negated already
		}
		return []func(){m.flip(x, m.add(x.OpPos, "unary", "!"+operand, operand))}
	case token.SUB:
		if m.numeric(x) == 0 {
			return nil
		}
		m.open(x.Pos(), call("Minus", m.add(x.OpPos, "unary", "-"+operand, operand)))
		m.replace(x.OpPos, "-", "")
		return []func(){func() { m.close(x.End(), ")") }}
	}
	return nil
}

// condition negates what a statement or a logical operator decides by, if it is no
// operator itself.
func (m *mutator) condition(x ast.Expr) []func() {
	decides := false
	switch p := m.parent(0).(type) {
	case *ast.IfStmt:
		decides = p.Cond == x
	case *ast.ForStmt:
		decides = p.Cond == x
	case *ast.BinaryExpr:
		decides = p.Op == token.LAND || p.Op == token.LOR
	case *ast.CaseClause:
		s, ok := m.parent(2).(*ast.SwitchStmt)
		decides = ok && s.Tag == nil
	}
	if !decides || !m.plainBool(x) {
		return nil
	}
	text := clip(m.text(x.Pos(), x.End()))
	return []func(){m.flip(x, m.add(x.Pos(), "negate", text, "!"+text))}
}

// constant makes the point of an expression that is a constant as a whole.
func (m *mutator) constant(x ast.Expr, tv types.TypeAndValue) []func() {
	text := clip(m.text(x.Pos(), x.End()))
	switch p := m.parent(0).(type) {
	case *ast.ReturnStmt:
		if other := map[string]string{"true": "false", "false": "true"}[text]; other != "" && m.plainBool(x) {
			return []func(){m.flip(x, m.add(x.Pos(), "return", text, other))}
		}
	case *ast.CaseClause:
		return nil
	case *ast.KeyValueExpr:
		if p.Key == x {
			return nil
		}
	}
	name := m.typeText(tv.Type, x.Pos())
	if name == "" {
		return nil
	}
	shifted := false
	if p, ok := m.parent(0).(*ast.BinaryExpr); ok {
		shifted = p.X == x && (p.Op == token.SHL || p.Op == token.SHR)
	}
	switch {
	case literals(x) && m.numeric(x) != 0:
		m.open(x.Pos(), call("Next["+name+"]", m.add(x.Pos(), "constant", text, oneMore(text))))
	case shifted: // an untyped one has its type from around it, where there may be a call now
		m.open(x.Pos(), name+"(")
	default:
		return nil
	}
	return []func(){func() { m.close(x.End(), ")") }}
}
