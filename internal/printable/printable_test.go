package printable

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"a file.txt":               "a file.txt",
		"größe/β τ → ∑ 文件":         "größe/β τ → ∑ 文件",
		"a\nvolley: all is well":   `a\nvolley: all is well`,
		"\x1b[31m\a\r\t\x7f":       `\x1b[31m\a\r\t\x7f`,
		"\xffa\xc3":                `\xffa\xc3`,
		"\u202egpj.exe\u2066":      `\u202egpj.exe\u2066`,
		"it's \\n as it is \"\"'":  "it's \\n as it is \"\"'",
		"\u0085\u2028\ufeff\ufffd": "\\u0085\\u2028\\ufeff\ufffd",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\n\x1b\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: got %q", s, got)
		}
		if again := Text(got); again != got {
			t.Errorf("%q: got %q, and of that %q", s, got, again)
		}
	})
}

func TestFprintf(t *testing.T) {
	type name string
	var b strings.Builder
	Fprintf(&b, "%s %-4s| %q %v %v %d %.1f\n", name("a\nb"), "c", "d\x1b", errors.New("e\xff"), []string{"f\n", "g"}, 7, 2.5)
	if want := `a\nb c   | "d\x1b" e\xff [f\n g] 7 2.5` + "\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestTime writes a moment of any zone as one here.
func TestTime(t *testing.T) {
	here := time.Local
	defer func() { time.Local = here }()
	time.Local = time.FixedZone("CET", 3600)
	if got := Time(time.Date(2026, 11, 26, 14, 46, 50, 0, time.UTC)); got != "2026-11-26 15:46:50 CET" {
		t.Error(got)
	}
}

// TestLists counts things and lists names.
func TestLists(t *testing.T) {
	for n, want := range map[int]string{0: "0 packets", 1: "1 packet", 2: "2 packets"} {
		if got := Count(n, "packet"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Count(2, "process"); got != "2 processes" {
		t.Errorf("%q", got)
	}
	names := strings.Split("abcdefghij", "")
	for n, want := range map[int]string{0: "", 1: "a", 9: "a, b, c, d, e, f, g, h, i", 10: "a, b, c, d, e, f, g, h and 2 more"} {
		if got := List(names[:n]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
