package draw

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/algo/algotest"
	"volley/field"
)

var update = flag.Bool("update", false, "write the files of the figures for the page")

func figure(t *testing.T, number int) *Picture {
	t.Helper()
	p := must(Figures[number-1].Picture())(t)
	return p
}

// shown returns the texts of a figure, which its SVG has in parts.
func shown(t *testing.T, number int) (list []string) {
	t.Helper()
	for _, s := range figure(t, number).shapes {
		if s.text != "" {
			list = append(list, s.text)
		}
	}
	return list
}

// count returns how many texts of a list are one of the others.
func count(list []string, wanted ...string) (n int) {
	for _, text := range list {
		if slices.Contains(wanted, text) {
			n++
		}
	}
	return n
}

// TestFigureFiles compares the files of the page with what is drawn.
func TestFigureFiles(t *testing.T) {
	files := map[string][]byte{}
	for _, f := range Figures {
		for _, format := range []string{"svg", "pdf", "tex"} {
			files[fmt.Sprintf("public/figures/figure-%d.%s", f.Number, format)] = bytesOf(t, figure(t, f.Number), format)
		}
	}
	words := must(json.MarshalIndent(Figures, "", "  "))(t)
	files["src/figures/figures.json"] = append(words, '\n')
	for name, want := range files {
		name = filepath.Join("..", "web", name)
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is drawn, %v: run go test ./draw -run TestFigureFiles -update, and make page", name, err)
		}
	}
}

// TestFigureColumn checks that figures fit a column, and that no text leaves the picture or meets another.
func TestFigureColumn(t *testing.T) {
	for _, f := range Figures {
		p := figure(t, f.Number)
		if p.width != 336 {
			t.Errorf("figure %d is %v wide, want 3.5 inches", f.Number, p.width)
		}
		checkPlaces(t, fmt.Sprint("figure ", f.Number), p)
	}
}

// TestFigureTrees compares the two trees with the paper's (7) and (8).
func TestFigureTrees(t *testing.T) {
	list := shown(t, 4)
	f := must(field.Parse("19"))(t)
	beta := field.Exp(f, f.Generator(), 18/9)
	want := []string{"f", "f(z) = x₀ + x₁z + … + x₈z⁸", "γ = 1", fmt.Sprintf("β = %v, q = 19", beta)}
	power := func(k, h int) string { // β^k to the power of 3^(2-h)
		n := uint64(k)
		for range 2 - h {
			n *= 3
		}
		text := map[uint64]string{0: "β⁰", 1: "β", 2: "β²", 3: "β³", 4: "β⁴", 5: "β⁵", 6: "β⁶", 7: "β⁷", 8: "β⁸"}[n]
		return fmt.Sprint(text, " = ", field.Exp(f, beta, n))
	}
	for k0 := range 3 {
		want = append(want, subscript(fmt.Sprint("f", k0)), subscript(fmt.Sprint("γ", k0))+" = "+power(k0, 1))
		want = append(want, subscript(fmt.Sprintf("f%d(z) = x%d + x%dz + x%dz²", k0, k0, k0+3, k0+6)))
		want[len(want)-1] = strings.NewReplacer("(₂)", "(z)").Replace(want[len(want)-1])
		for k1 := range 3 {
			// Of f_k0 = Σ x_(k0+3d) z^d the child k1 is coefficient k1. The digits of the field elements are k1 k0.
			want = append(want, subscript(fmt.Sprintf("f%d%d = x%d", k0, k1, k0+3*k1)))
			want = append(want, subscript(fmt.Sprintf("γ%d%d", k1, k0))+" = "+power(3*k1+k0, 2))
		}
	}
	for _, text := range want {
		if count(list, text) != 1 {
			t.Errorf("%q is there %d times in %q", text, count(list, text), list)
		}
	}
	nodes := 0
	for _, text := range list {
		if regexp.MustCompile(`^[fγ][₀-₉]*( = .*)?$`).MatchString(text) {
			nodes++
		}
	}
	if nodes != 2*13 {
		t.Errorf("%d nodes", nodes)
	}
}

// TestTikz checks the brackets of what LaTeX gets.
func TestTikz(t *testing.T) {
	pictures := map[string]*Picture{
		"plan":  schedulePicture(t, algotest.Compile(t, "universal:2,4", "2^8", "cauchy", 8, 2)),
		"chart": must(chart(6).Picture())(t),
	}
	for _, f := range Figures {
		pictures[fmt.Sprint("figure", f.Number)] = figure(t, f.Number)
	}
	for name, p := range pictures {
		text := bytesOf(t, p, "tex")
		open := 0
		for _, c := range regexp.MustCompile(`%.*|\\.`).ReplaceAllString(string(text), "") {
			switch c {
			case '{':
				open++
			case '}':
				open--
			}
			if open < 0 {
				t.Fatalf("%s: a bracket too many", name)
			}
			if c > 127 && c != 'µ' && c != '×' {
				t.Errorf("%s: LaTeX may not know %q", name, c)
			}
		}
		if open != 0 || !bytes.Contains(text, []byte("\\begin{tikzpicture}[x=0.75bp, y=-0.75bp]\n")) {
			t.Errorf("%s: %d brackets are open: %.300s", name, open, text)
		}
	}
}
