package draw

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the files of the figures for the page")

func figure(t *testing.T, number int) *Picture {
	t.Helper()
	p := must(Figures[number-1].Picture())(t)
	return p
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
