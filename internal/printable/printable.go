// Package printable writes text for people: names that others have chosen cannot end a line or move the cursor.
package printable

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text returns s with a Go escape for every line break, control and direction character, and byte that is no UTF-8.
func Text(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteString(s[:n])
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		s = s[n:]
	}
	return b.String()
}

// Lines is an argument of [Fprintf] that is written as it is: text of the program's own.
type Lines string

// Fprintf is fmt.Fprintf where only the format begins lines: arguments that are or have text go through [Text].
func Fprintf(w io.Writer, format string, args ...any) error {
	shown := make([]any, len(args))
	for i, arg := range args {
		shown[i] = arg
		switch x := arg.(type) {
		case Lines:
		case error, fmt.Stringer:
			shown[i] = text(fmt.Sprint(x))
		default:
			switch v := reflect.ValueOf(arg); v.Kind() {
			case reflect.String:
				shown[i] = text(v.String())
			case reflect.Slice, reflect.Array, reflect.Struct, reflect.Map, reflect.Pointer:
				shown[i] = text(fmt.Sprint(arg))
			}
		}
	}
	_, err := fmt.Fprintf(w, format, shown...)
	return err
}

// text is an argument.
type text string

// Format writes it by a directive; %q quotes it as it is.
func (t text) Format(f fmt.State, verb rune) {
	s := string(t)
	if verb != 'q' {
		s = Text(s)
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), s)
}

// List lists names, the first ones if there are many.
func List[S ~string](names []S) string {
	const limit = 8
	var list, suffix string
	if omitted := len(names) - limit; omitted > 1 {
		names, suffix = names[:limit], fmt.Sprintf(" and %d more", omitted)
	}
	for i, name := range names {
		if i > 0 {
			list += ", "
		}
		list += string(name)
	}
	return list + suffix
}

// Count returns "1 packet", "2 packets", "2 processes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ss"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Plural returns the singular where n is 1, and else the plural.
func Plural(n int, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// Time is a moment as people here read it: local, with its zone.
func Time(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// Texts returns texts, in which paths may be any bytes, as JSON can carry them.
func Texts(list []string) []string {
	for i := range list {
		list[i] = Text(list[i])
	}
	return list
}
