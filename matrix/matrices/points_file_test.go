package matrices

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/fuzzlimit"
	"volley/internal/pointset"
	"volley/matrix"
)

func TestReadPoints(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	want := must(ReadPoints(f, strings.NewReader("3 0 256"), "p"))(t)
	if want.Len() != 3 || want.At(0) != field.Code(3) || want.At(2) != field.Code(256) || want.Field() != f {
		t.Fatalf("%d points from %v", want.Len(), want.At(0))
	}
	wantPanic(t, "point 3 of 3", func() { want.At(3) })
	for _, text := range []string{
		"3\n0\n256\n", "3,0,256", " 3 ,\t0,\r\n256", "# 9\n3\n  # 1 2 x\n0, 256\n#", "003 0 0256", "3,,0,,\n,256,", strings.Repeat("0", 99) + "3 0 256",
	} {
		got, err := ReadPoints(f, iotest.OneByteReader(strings.NewReader(text)), "p")
		if err != nil || got.Len() != 3 || got.ID() != want.ID() {
			t.Errorf("%q: error %v, or other points", text, err)
			continue
		}
		for k := range 3 {
			if got.At(k) != want.At(k) {
				t.Errorf("%q: point %d is %v", text, k, got.At(k))
			}
		}
	}
	if got := must(matrix.NewPoints(f, pointset.Elements(nil, want)))(t); got.ID() != want.ID() {
		t.Errorf("listed they have the ID %s, want %s", got.ID(), want.ID())
	}
	if must(ReadPoints(f, strings.NewReader("0 3 256"), "p"))(t).ID() == want.ID() {
		t.Error("one ID for two orders")
	}
	large := must(ReadPoints(fieldtest.Parse(t, "bls12-381"), strings.NewReader("52435875175126190479447740508185965837690552500527637822603658699938581184512"), "p"))(t)
	if large.At(0) != fieldtest.Parse(t, "bls12-381").Sub(field.Element{}, field.One) {
		t.Errorf("-1 is read as %v", large.At(0))
	}
}

func TestReadPointsErrors(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	long := strings.Repeat("1", 5000)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "matrix: p.txt has no points: want decimal values"},
		{"comments only", "#1\n# 2\n , \n", "matrix: p.txt has no points: want decimal values"},
		{"no number", "1\n2, x7\n", `matrix: p.txt line 2: "x7" is not a decimal number`},
		{"too large", "1\n\n# c\n256\n", "matrix: p.txt line 4: 256 is outside the field 2^8: want 0 to 255"},
		{"too long", long, `matrix: p.txt line 1: "` + long[:37] + `..." is outside the field 2^8: no element has over 100 digits`},
		{"twice", "1 2\n3\n4 2\n", "matrix: p.txt line 3: the point 2 is on line 1 already: want distinct points"},
		{"twice in a line", "1\n7 07", "matrix: p.txt line 2: the point 7 is on line 2 already: want distinct points"},
		{"comment behind a value", "1 # one\n", `matrix: p.txt line 1: "#" is not a decimal number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadPoints(f, strings.NewReader(c.text), "p.txt")
			wantError(t, err, c.want)
		})
	}
	broken := errors.New("read failed")
	_, err := ReadPoints(f, io.MultiReader(strings.NewReader("1\n"), iotest.ErrReader(broken)), "p.txt")
	if !errors.Is(err, broken) {
		t.Errorf("error %v does not wrap the reader's", err)
	}
	_, err = ReadPoints(f, io.MultiReader(strings.NewReader("1\n# "), endless("1 ")), "p.txt")
	wantError(t, err, "matrix: p.txt line 2: a line of more than 16 MiB")
}

// FuzzReadPoints: what is read can be written and read again, and has no point
// twice.
func FuzzReadPoints(f *testing.F) {
	for _, text := range []string{"", "1 2 3", "1,2\n# 3\n4", "#", "1 # 2", "1 1", "256", "-1", "00000000000000000000001"} {
		f.Add(text)
	}
	all := []field.Field{fieldtest.Parse(f, "2^8"), fieldtest.Parse(f, "257"), fieldtest.Parse(f, "bls12-381")}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzlimit.Hold(t, len(text))()
		for _, f := range all {
			p, err := ReadPoints(f, strings.NewReader(text), "p.txt")
			if err != nil {
				if !strings.HasPrefix(err.Error(), "matrix: p.txt ") {
					t.Errorf("error without the file's name: %v", err)
				}
				continue
			}
			var out strings.Builder
			seen := map[field.Element]bool{}
			for k := range p.Len() {
				seen[p.At(k)] = true
				fmt.Fprintln(&out, p.At(k))
			}
			if len(seen) != p.Len() {
				t.Errorf("%s: %d distinct points of %d", f.Name(), len(seen), p.Len())
			}
			if again := must(ReadPoints(f, strings.NewReader(out.String()), "out"))(t); again.Len() != p.Len() || again.ID() != p.ID() {
				t.Errorf("%s: written and read again they are other points", f.Name())
			}
		}
	})
}
