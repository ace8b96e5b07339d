// Package located reads JSON that came from elsewhere, and says in which line it is wrong.
package located

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// An Error says what is wrong with a text, and where.
type Error struct {
	Line   int // from 1
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// LineOf returns the line of data at which an error of encoding/json is, 0 where that does not tell.
func LineOf(data []byte, err error) int {
	offset := int64(-1)
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return 0
	}
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// A Value is a JSON value and where it stands.
type Value struct {
	text       []byte // valid JSON, all of it
	begin, end int    // of the value
	name       string // such as "rounds[2].messages"; "" is that of the whole
}

// Parse reads a JSON text of at most so many bytes. The error is an *[Error] or that of r.
func Parse(r io.Reader, most int64) (Value, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return Value{}, err
	}
	v := Value{text: text}
	if int64(len(text)) > most {
		return v, v.fail(int(most), fmt.Sprintf("longer than %d bytes", most))
	}
	if err := json.Unmarshal(text, new(nothing)); err != nil {
		offset := len(text)
		if wrong := new(json.SyntaxError); errors.As(err, &wrong) {
			offset = int(wrong.Offset) - 1 // of the character, where there is one
		}
		return v, v.fail(offset, err.Error())
	}
	v.begin = v.skipSpace(0)
	v.end = v.skip(v.begin)
	return v, nil
}

// nothing is what a text is read into to find out whether it is JSON.
type nothing struct{}

func (*nothing) UnmarshalJSON([]byte) error { return nil }

// fail returns the error at an offset of the text. White space at the end is no line.
func (v Value) fail(offset int, reason string) error {
	text := bytes.TrimRight(v.text, " \t\r\n")
	return &Error{1 + bytes.Count(text[:max(0, min(offset, len(text)-1))], []byte("\n")), reason}
}

// Errorf returns the error of a value that is not right, under its name.
func (v Value) Errorf(format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if v.name != "" {
		reason = v.name + ": " + reason
	}
	return v.fail(v.begin, reason)
}

// Bytes returns the text of the value, which is not to be changed.
func (v Value) Bytes() []byte { return v.text[v.begin:v.end] }

func (v Value) skipSpace(i int) int {
	for v.text[i] == ' ' || v.text[i] == '\t' || v.text[i] == '\r' || v.text[i] == '\n' {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i.
func (v Value) skip(i int) int {
	for depth := 0; ; {
		switch v.text[i] {
		case '"':
			for i++; v.text[i] != '"'; i++ {
				if v.text[i] == '\\' {
					i++
				}
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++ // inside an object or a list
			continue
		default:
			for i < len(v.text) && literal(v.text[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// literal reports whether a character is one of a number, true, false or null.
func literal(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// An Object is the members of a JSON object.
type Object struct {
	value   Value
	members map[string]Value
}

// mostMembers is more than objects have that are not lists in truth: members take many
// times the memory of their text.
const mostMembers = 1000

// Object returns the members of an object: at most 1000, each of which it has once. The
// error is an *[Error].
func (v Value) Object() (Object, error) {
	o := Object{v, map[string]Value{}}
	if v.text[v.begin] != '{' {
		return o, v.Errorf("want an object")
	}
	prefix := ""
	if v.name != "" {
		prefix = v.name + "."
	}
	for i := v.skipSpace(v.begin + 1); v.text[i] != '}'; {
		end := v.skip(i)
		key := unquote(v.text[i:end])
		begin := v.skipSpace(v.skipSpace(end) + 1) // after the colon
		x := Value{v.text, begin, v.skip(begin), prefix + key}
		if _, twice := o.members[key]; twice {
			return o, x.Errorf("it is there twice")
		}
		if len(o.members) == mostMembers {
			return o, v.Errorf("it has more than %d keys", mostMembers)
		}
		o.members[key] = x
		if i = v.skipSpace(x.end); v.text[i] == ',' {
			i = v.skipSpace(i + 1)
		}
	}
	return o, nil
}

// unquote returns what a JSON string stands for.
func unquote(text []byte) (s string) {
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text[1 : len(text)-1])
	}
	_ = json.Unmarshal(text, &s) // is a string
	return s
}

// Get returns a member. It returns an *[Error] where there is none of that name.
func (o Object) Get(key string) (Value, error) {
	x, ok := o.members[key]
	if !ok {
		return x, o.value.Errorf("%s is missing", key)
	}
	return x, nil
}

// Find returns a member, and false where there is none of that name.
func (o Object) Find(key string) (Value, bool) {
	x, ok := o.members[key]
	return x, ok
}

// List calls each for the elements of a list, up to the first error, which it returns. The
// error of what is no list is an *[Error].
func (v Value) List(each func(x Value) error) error {
	if v.text[v.begin] != '[' {
		return v.Errorf("want a list")
	}
	n := 0
	for i := v.skipSpace(v.begin + 1); v.text[i] != ']'; n++ {
		x := Value{v.text, i, v.skip(i), fmt.Sprintf("%s[%d]", v.name, n)}
		if err := each(x); err != nil {
			return err
		}
		if i = v.skipSpace(x.end); v.text[i] == ',' {
			i = v.skipSpace(i + 1)
		}
	}
	return nil
}

// Int returns a whole number from least to most. The error is an *[Error].
func (v Value) Int(least, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(v.Bytes()), 10, 64)
	if err != nil || n < least || n > most {
		return 0, v.Errorf("%s: want a whole number from %d to %d", v.brief(), least, most)
	}
	return n, nil
}

// Float returns a number from least to most. The error is an *[Error].
func (v Value) Float(least, most float64) (float64, error) {
	x, err := strconv.ParseFloat(string(v.Bytes()), 64)
	if err != nil || !(x >= least && x <= most) {
		return 0, v.Errorf("%s: want a number from %g to %g", v.brief(), least, most)
	}
	return x, nil
}

// Text returns a string. The error is an *[Error].
func (v Value) Text() (string, error) {
	if v.text[v.begin] != '"' {
		return "", v.Errorf("want a text")
	}
	return unquote(v.Bytes()), nil
}

// Bool returns true or false. The error is an *[Error].
func (v Value) Bool() (bool, error) {
	text := string(v.Bytes())
	if text != "true" && text != "false" {
		return false, v.Errorf("want true or false")
	}
	return text == "true", nil
}

// brief returns the value for a message.
func (v Value) brief() string {
	const most = 40
	if v.end-v.begin > most || v.text[v.begin] == '{' || v.text[v.begin] == '[' {
		return "not a number"
	}
	return string(v.Bytes())
}
