package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type planet struct {
	name  string
	moons int
	days  float64 // 0: unknown
}

var planets = []planet{{"Earth", 1, 365.25}, {"Haumea, dwarf", 2, 0}}

var columns = []Column[planet]{
	{Name: "name", Value: func(p planet) any { return p.name }},
	{Name: "moons", Head: "has", Unit: "moons", Value: func(p planet) any { return p.moons }},
	{Name: "days", Join: "; ", Unit: "days", Text: func(v any) string { return fmt.Sprintf("%.0f", v) }, Value: known(1)},
	{Name: "year", Value: known(365.25), Text: func(v any) string { return fmt.Sprintf("%.2f", v) }},
}

// known returns the days of a planet in a unit, where they are known.
func known(unit float64) func(p planet) any {
	return func(p planet) any {
		if p.days == 0 {
			return nil
		}
		return p.days / unit
	}
}

// TestWrite writes a table in each form. Without rows it is a table, too.
func TestWrite(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"text": `
name           has          year
               moons; days
Earth          1; 365       1.00
Haumea, dwarf  2
`,
		"csv": `
name,moons,days,year
Earth,1,365.25,1
"Haumea, dwarf",2,,
`,
		"json": `
{
  "rows": [
    {
      "days": 365.25,
      "moons": 1,
      "name": "Earth",
      "year": 1
    },
    {
      "moons": 2,
      "name": "Haumea, dwarf"
    }
  ]
}
`,
	} {
		var b strings.Builder
		if err := Write(&b, format, columns, planets); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + b.String(); got != want {
			t.Errorf("%s:%s\nwant:%s", format, got, want)
		}
	}
	for format, want := range map[string]string{"csv": "name,moons,days,year\n", "json": "{\n  \"rows\": []\n}\n"} {
		var b strings.Builder
		if err := Write(&b, format, columns, nil); err != nil || b.String() != want {
			t.Errorf("%s: %q, %v, want %q", format, b.String(), err, want)
		}
	}
	if err := Write(&bytes.Buffer{}, "xml", columns, planets); err == nil || !strings.Contains(err.Error(), "xml") || !strings.Contains(err.Error(), "json") {
		t.Errorf("format xml: %v, want an error with it and those there are", err)
	}
}

func TestParagraphs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := Paragraphs(&b, columns, planets); err != nil {
		t.Fatal(err)
	}
	const want = `
Earth
  has   1
  days  365
  year  1.00

Haumea, dwarf
  has  2
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("%s\nwant:%s", got, want)
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	for _, format := range Formats {
		if err := Write(fullDisk{}, format, columns, planets); !errors.Is(err, errFull) {
			t.Errorf("%s on a full disk: %v", format, err)
		}
	}
	if err := Paragraphs(fullDisk{}, columns, planets); !errors.Is(err, errFull) {
		t.Errorf("records on a full disk: %v", err)
	}
}
