package explore

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"volley/field"
	"volley/matrix"
)

// trees are the two trees of a DFT (paper, section "Computing a DFT Matrix"): that of the
// polynomials, which the rounds fold from the leaves to the root, and that of the field
// elements at which they are evaluated. A node of level h has h digits of base p+1.
type trees struct {
	Height      int          `json:"height"`
	Radix       int          `json:"radix"`
	Beta        string       `json:"root_of_unity"` // β, of order K
	Polynomials [][]treeNode `json:"polynomials"`   // by level
	Elements    [][]treeNode `json:"elements"`      // by level
}

type treeNode struct {
	Digits string `json:"digits"` // as the paper writes them
	Parent int    `json:"parent"` // its place in the level before, -1 at the root
	Text   string `json:"text"`
	Rows   []int  `json:"rows,omitempty"`  // of a polynomial: the packets that are its coefficients
	Power  int    `json:"power,omitempty"` // of an element: the exponent of β
}

// dftTrees answers with the trees of the DFT that the flags select.
func dftTrees(ctx context.Context, request planRequest, _ func(any) error) (*trees, error) {
	q, err := request.Flags.ask(ctx)
	if err != nil {
		return nil, err
	}
	if spec, err := matrix.ParseSpec(q.Matrix); err != nil || spec.Family != "dft" {
		return nil, at("matrix", fmt.Errorf("%s: the two trees are those of a dft", q.Matrix))
	}
	k, radix := q.Processors, q.Ports+1
	height := 0
	for n := 1; n < k; n *= radix {
		height++
	}
	if power(radix, height) != k || height == 0 || k > mostDetailed {
		return nil, at("processors", fmt.Errorf("%d processors: the trees need a power of p+1 = %d, %d at most", k, radix, mostDetailed))
	}
	f := q.matrix.Field()
	exponent := new(big.Int).Sub(f.Order(), big.NewInt(1))
	beta := field.ExpInt(f, f.Generator(), exponent.Div(exponent, big.NewInt(int64(k))))
	t := &trees{Height: height, Radix: radix, Beta: beta.String()}
	for h := range height + 1 {
		var polynomials, elements []treeNode
		for node := range power(radix, h) {
			polynomials = append(polynomials, polynomial(node, h, height, radix))
			exponent := node * power(radix, height-h)
			name := digits(node, h, radix)
			slices.Reverse(name)
			e := treeNode{
				Digits: index(name, radix), Parent: -1, Power: exponent,
				Text: field.Exp(f, beta, uint64(exponent)).String(),
			}
			if h > 0 {
				e.Parent = node % power(radix, h-1) // without the most significant digit
			}
			elements = append(elements, e)
		}
		t.Polynomials, t.Elements = append(t.Polynomials, polynomials), append(t.Elements, elements)
	}
	return t, nil
}

// polynomial returns the node of level h of the tree of polynomials: those coefficients of
// f whose indices end with its digits, which are written in the order in which they were
// split off, the least significant first.
func polynomial(node, h, height, radix int) treeNode {
	n := treeNode{Digits: index(digits(node, h, radix), radix), Parent: -1}
	if h > 0 {
		n.Parent = node % power(radix, h-1)
	}
	var terms []string
	for i := range power(radix, height-h) {
		row := node + i*power(radix, h)
		n.Rows = append(n.Rows, row)
		switch i {
		case 0:
			terms = append(terms, fmt.Sprintf("x%d", row))
		case 1:
			terms = append(terms, fmt.Sprintf("x%d·z", row))
		default:
			terms = append(terms, fmt.Sprintf("x%d·z^%d", row, i))
		}
	}
	n.Text = strings.Join(terms, " + ")
	return n
}

// digits writes n in h digits of the base, the least significant first.
func digits(n, h, base int) []string {
	list := make([]string, h)
	for i := range list {
		list[i] = strconv.Itoa(n % base)
		n /= base
	}
	return list
}

// index writes digits as an index: next to one another, or apart where some have two
// figures.
func index(digits []string, base int) string {
	if base > 10 {
		return strings.Join(digits, ",")
	}
	return strings.Join(digits, "")
}

func power(base, n int) int {
	x := 1
	for range n {
		x *= base
	}
	return x
}
