package draw

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"volley/algo/algotest"
	"volley/field"
	"volley/matrix/matrixtest"
	"volley/plan"
	"volley/verify"
)

var update = flag.Bool("update", false, "write the files of the figures for the page")

func figure(t *testing.T, number int) *Picture {
	t.Helper()
	p, err := Figures[number-1].Picture()
	if err != nil {
		t.Fatal(err)
	}
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
	words, err := json.MarshalIndent(Figures, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
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

// TestFigureUniversal compares the labels of figure 1 with the caption in the paper, and with the numbers of a plan.
func TestFigureUniversal(t *testing.T) {
	list := shown(t, 1)
	at := func(k int) int { return (k + 4) % 4 }
	for k := range 4 {
		sum := func(rows ...int) string {
			var terms []string
			for _, r := range rows {
				terms = append(terms, subscript(fmt.Sprintf("a%d%dx%d", at(r), k, at(r))))
			}
			return strings.Join(terms, "+")
		}
		first := subscript(fmt.Sprintf("x%d", k))
		second := sum(k-2, k-3)
		result := fmt.Sprintf("x̃%s = %s + %s + (%s)", subscript(fmt.Sprint(k)), sum(k), sum(k-1), second)
		for _, text := range []string{first, second, result} {
			if count(list, text) != 1 {
				t.Errorf("%q is there %d times in %q", text, count(list, text), list)
			}
		}
	}

	p := algotest.Compile(t, "prepare-and-shoot", "7", "random:27", 4, 1)
	m, err := plan.Materialize(p)
	if err != nil {
		t.Fatal(err)
	}
	memories, err := verify.Trace(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	a := matrixtest.Random(t, m.Common.Field, 4, 27)
	for _, x := range m.Messages()[1] {
		for row := range 4 {
			want := field.Element{}
			if row == at(x.Dst-2) || row == at(x.Dst-3) {
				want = a.At(row, x.Dst)
			}
			if got := memories[x.Src].Coefficient(x.Slots[0], row); got != want {
				t.Errorf("processor %d sends %v·x%d, and the figure has %v", x.Src, got, row, want)
			}
		}
	}
}

// TestFigurePrepare looks at the boxes and arrows of figure 2: R_0^+ is 0 to 8, and in round t messages go ρ·9/3^t further.
func TestFigurePrepare(t *testing.T) {
	p := figure(t, 2)
	_, arrows := read(t, p)
	list := shown(t, 2)
	for k := range 9 {
		if n := count(list, fmt.Sprint(k)); n != 3 {
			t.Errorf("processor %d is drawn %d times", k, n)
		}
	}
	if arrows != 2+6 {
		t.Errorf("%d arrows", arrows)
	}
	dark := 0
	for _, s := range p.shapes {
		if s.colour == ink && s.width == 0 && len(s.paths[0]) == 4 {
			dark++
		}
	}
	if dark != 1+3+9 {
		t.Errorf("%d boxes have x₀", dark)
	}
}

// TestFigureShoot compares the parts of figure 3 with S_0^- and R_k^- of the paper, of which each packet counts once.
func TestFigureShoot(t *testing.T) {
	plan, _, err := compile("prepare-and-shoot", "2^8", "cauchy", "", 65, 2)
	if err != nil {
		t.Fatal(err)
	}
	list := plan.partsOf()
	if len(list) != 9 {
		t.Fatalf("%d parts", len(list))
	}
	at := func(k int) int { return (k%65 + 65) % 65 }
	for i, q := range list {
		l := 8 - i
		if q.processor != at(-9*l) {
			t.Errorf("part %d is of processor %d, want %d", i, q.processor, at(-9*l))
		}
		var want []int // the offsets from 9·l on, below K
		for offset := min(9*l+8, 64); offset >= 9*l; offset-- {
			want = append(want, at(-offset))
		}
		if !slices.Equal(q.rows, want) {
			t.Errorf("the part of %d is made of %v, want %v", q.processor, q.rows, want)
		}
		// The digits of l in base 3, the lower first: a message of round t goes ρ·9·3^(t-1) further.
		to, round := l-l%3, 0
		if l%3 == 0 {
			to, round = 0, 1
		}
		if l > 0 && (q.next != at(-9*to) || q.round != round) {
			t.Errorf("%d sends to %d in round %d", q.processor, q.next, q.round+1)
		}
	}
	texts := shown(t, 3)
	for _, text := range []string{"zero", "58", "1–2", "3–11", "57–0", "The part of processor 58 is zero: it is sent, and changes nothing."} {
		if !slices.Contains(texts, text) {
			t.Errorf("no %q in %q", text, texts)
		}
	}
}

// TestFigureTrees compares the two trees with the paper's (7) and (8).
func TestFigureTrees(t *testing.T) {
	list := shown(t, 4)
	f, err := field.Parse("19")
	if err != nil {
		t.Fatal(err)
	}
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

// TestTikz checks the brackets of what LaTeX gets, and compiles it where LaTeX is.
func TestTikz(t *testing.T) {
	latex, _ := exec.LookPath("pdflatex") // "": there is none
	dir := t.TempDir()
	pictures := map[string]*Picture{"plan": schedulePicture(t, algotest.Compile(t, "universal:2,4", "2^8", "cauchy", 8, 2))}
	var err error
	if pictures["chart"], err = chart(6).Picture(); err != nil {
		t.Fatal(err)
	}
	for _, f := range Figures {
		pictures[fmt.Sprint("figure", f.Number)] = figure(t, f.Number)
	}
	document := "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage{tikz}\n\\begin{document}\n"
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
		if err := os.WriteFile(filepath.Join(dir, name+".tex"), text, 0o666); err != nil {
			t.Fatal(err)
		}
		document += "\\noindent\\resizebox{\\columnwidth}{!}{\\input{" + name + "}}\n\\newpage\n"
	}
	if latex == "" {
		t.Skip("no pdflatex")
	}
	if err := os.WriteFile(filepath.Join(dir, "all.tex"), []byte(document+"\\end{document}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(latex, "-halt-on-error", "-interaction=nonstopmode", "all.tex")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
