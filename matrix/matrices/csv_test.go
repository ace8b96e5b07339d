package matrices

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"volley/field"
	"volley/field/fieldtest"
	"volley/internal/fuzzlimit"
	"volley/matrix"
)

func TestWriteCSV(t *testing.T) {
	var text strings.Builder
	if err := WriteCSV(&text, must(matrix.Cauchy(fieldtest.Parse(t, "257"), 2, 2))(t)); err != nil {
		t.Fatal(err)
	}
	// 1/(0-2), 1/(0-3); 1/(1-2), 1/(1-3) mod 257
	if want := "128,171\n256,128\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
	// Values on both sides of the limbs of an element.
	large := matrix.NewDense(fieldtest.Parse(t, "bls12-381"), 1, 5)
	large.Set(0, 0, field.Element{1<<64 - 1})
	for limb := range 4 {
		var e field.Element
		e[limb] = 1
		large.Set(0, 1+limb, e)
	}
	text.Reset()
	if err := WriteCSV(&text, large); err != nil {
		t.Fatal(err)
	}
	if want := "18446744073709551615,1,18446744073709551616,340282366920938463463374607431768211456,6277101735386680763835789423207666416102355444464034512896\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
	broken := errors.New("disk full")
	if err := WriteCSV(failWriter{broken}, must(matrix.Random(fieldtest.Parse(t, "2"), 100, 100, 1))(t)); !errors.Is(err, broken) {
		t.Errorf("error %v does not wrap the writer's", err)
	}
}

type failWriter struct{ err error }

func (w failWriter) Write([]byte) (int, error) { return 0, w.err }

func TestFromCSVAccepts(t *testing.T) {
	f := fieldtest.Parse(t, "257")
	want := must(FromCSV(f, strings.NewReader("1,2\n3,256\n"), "A.csv"))(t)
	if want.Rows() != 2 || want.Cols() != 2 || want.At(0, 1) != field.Code(2) || want.At(1, 1) != field.Code(256) {
		t.Fatalf("read as %d×%d", want.Rows(), want.Cols())
	}
	for _, text := range []string{
		"1,2\n3,256",
		"1,2\r\n3,256\r\n",
		" 1 , 2\t\n\n   \n3,  256  \n\n",
		"# points 1,2,x\n1,2\n#\n# 9,9\n3,256\n# end",
		"\"1\",2\n3,\"256\"\n",
		"01,002\n000000000000000000000000003,0256\n",
		"1, \"2\"\n3,256\n",
		"1,2\n" + strings.Repeat("0", 99) + "3,256\n", // as many digits as there may be
	} {
		got, err := FromCSV(f, strings.NewReader(text), "A.csv")
		if err != nil || !equal(got, want) {
			t.Errorf("%q: error %v, or another matrix", text, err)
		}
	}
}

func TestFromCSVErrors(t *testing.T) {
	long := strings.Repeat("9", 101)
	for _, c := range []struct{ name, field, text, want string }{
		{"empty", "2^8", "", "matrix: A.csv has no values: want a line of decimal values per row"},
		{"no number", "2^8", "# x\n1,2\n3,four\n", `matrix: A.csv line 3: column 2: "four" is not a decimal number`},
		{"nothing between commas", "2^8", "1,,2\n", `matrix: A.csv line 1: column 2: "" is not a decimal number`},
		{"too many digits", "2^8", long + "\n", `matrix: A.csv line 1: column 1: "` + long[:37] + `..." is outside the field 2^8: no element has over 100 digits`},
		{"long text", "2^8", "x" + long + "\n", `matrix: A.csv line 1: column 1: "x` + long[:36] + `..." is not a decimal number`},
		{"short row", "2^8", "\n1,2,3\n# c\n4\n", "matrix: A.csv line 4: a row of 1 value, and line 2 has 3: want rows of equal length"},
		{"long row", "2^8", "1,2\n4,5,6\n", "matrix: A.csv line 2: a row of 3 values, and line 1 has 2: want rows of equal length"},
		{"open quote", "2^8", "1,2\n3,\"4\n", `matrix: A.csv line 2: extraneous or missing " in quoted-field`},
		{"byte order mark", "2^8", "\ufeff1\n", `matrix: A.csv line 1: column 1: "\ufeff1" is not a decimal number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromCSV(fieldtest.Parse(t, c.field), strings.NewReader(c.text), "A.csv")
			wantError(t, err, c.want)
		})
	}
	broken := errors.New("read failed")
	_, err := FromCSV(fieldtest.Parse(t, "2^8"), io.MultiReader(strings.NewReader("1,2\n"), iotest.ErrReader(broken)), "A.csv")
	if !errors.Is(err, broken) {
		t.Errorf("error %v does not wrap the reader's", err)
	}
	wantError(t, err, "matrix: A.csv after line 1: read failed")
}

// endless repeats its text without end.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// TestFromCSVEndless: no text, however long, takes memory without bound.
func TestFromCSVEndless(t *testing.T) {
	for text, want := range map[endless]string{
		"0":   "matrix: A.csv after line 1: a row of more than 4 MiB",
		"\n":  "matrix: A.csv after line 1: a row of more than 4 MiB",
		"#\n": "matrix: A.csv after line 1: a row of more than 4 MiB",
	} {
		_, err := FromCSV(fieldtest.Parse(t, "2^8"), io.MultiReader(strings.NewReader("1\n"), text), "A.csv")
		wantError(t, err, want)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := FromCSV(fieldtest.Parse(t, "2^8"), endless(","), "A.csv")
	runtime.ReadMemStats(&after)
	wantError(t, err, "matrix: A.csv after line 0: a row of more than 4 MiB")
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<30 {
		t.Errorf("%d MiB for a row of 4 MiB", n>>20)
	}
}

// TestFromCSVLongest has a row that, with the comment before it, is as long as may be, to
// the byte, and one byte longer.
func TestFromCSVLongest(t *testing.T) {
	f := fieldtest.Parse(t, "2^8")
	read := func(n int) error {
		text := "#" + strings.Repeat(" ", n-4) + "\n1\n"
		end := strings.NewReader(text[n-9:])
		_, err := FromCSV(f, io.MultiReader(strings.NewReader(text[:n-9]), iotest.OneByteReader(end)), "A.csv")
		return err
	}
	if err := read(maxRow); err != nil {
		t.Error(err)
	}
	wantError(t, read(maxRow+1), "matrix: A.csv after line 0: a row of more than 4 MiB")
	if n, err := new(limitedReader).Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("past the limit %d bytes, error %v", n, err)
	}
}

// FuzzFromCSV: what is read can be written and read again.
func FuzzFromCSV(f *testing.F) {
	for _, text := range []string{"", "1,2\n3,4\n", "# c\n 1 , 2 \n", "\"1\",2", "1,\n", "256\n", "1,2\n3\n", "\"\n", "#", "00000000000000000000001"} {
		f.Add(text)
	}
	var all []field.Field
	for _, name := range []string{"2^8", "257", "2"} {
		all = append(all, fieldtest.Parse(f, name))
	}
	all = append(all, fieldtest.Parse(f, "bls12-381"))
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzlimit.Hold(t, len(text))()
		for _, f := range all {
			m, err := FromCSV(f, strings.NewReader(text), "A.csv")
			if err != nil {
				if !strings.HasPrefix(err.Error(), "matrix: A.csv ") {
					t.Errorf("error without the file's name: %v", err)
				}
				continue
			}
			var out bytes.Buffer
			if err := WriteCSV(&out, m); err != nil {
				t.Fatal(err)
			}
			if again := must(FromCSV(f, &out, "out.csv"))(t); !equal(again, m) {
				t.Errorf("%s: written and read again it is another matrix", f.Name())
			}
		}
	})
}
