package located

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"volley/internal/fuzzlimit"
)

// plain returns what encoding/json makes of a value, by the methods of this package.
func plain(v Value) (any, error) {
	switch v.Bytes()[0] {
	case '{':
		o, err := v.Object()
		if err != nil {
			return nil, err
		}
		m := map[string]any{}
		for key, x := range o.members {
			if m[key], err = plain(x); err != nil {
				return nil, err
			}
		}
		return m, nil
	case '[':
		list := []any{}
		err := v.List(func(x Value) error {
			element, err := plain(x)
			list = append(list, element)
			return err
		})
		return list, err
	case '"':
		return v.Text()
	}
	var x any
	err := json.Unmarshal(v.Bytes(), &x)
	return x, err
}

// FuzzParse compares what is parsed with what encoding/json makes of it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		``, ` `, `null`, ` true `, `-1.5e+3`, `"a\"b\\"`, `[]`, `{}`, "[ 1 ,\n2\t, [3]]", `{"a" : {"b":[{}, "]"]} , "\u0063":null}`,
		`{"a":1,"a":2}`, `[1`, `{"a"}`, `1 2`, "\"\xff\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzlimit.Hold(t, len(text))()
		var want any
		wrong := json.Unmarshal(text, &want)
		v, err := Parse(bytes.NewReader(text), 1<<20)
		if number := new(json.UnmarshalTypeError); errors.As(wrong, &number) { // 1e999
			return
		}
		if (err == nil) != (wrong == nil) {
			t.Fatalf("got error %v, want %v", err, wrong)
		}
		if err != nil {
			if at := new(Error); !errors.As(err, &at) || at.Line < 1 || at.Line > 1+bytes.Count(text, []byte("\n")) {
				t.Fatalf("error %v", err)
			}
			return
		}
		got, err := plain(v)
		if refused := new(Error); errors.As(err, &refused) && (strings.HasSuffix(refused.Reason, "twice") || strings.HasSuffix(refused.Reason, "keys")) {
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, error %v, want %v", got, err, want)
		}
	})
}

func TestErrors(t *testing.T) {
	use := func(v Value) error {
		o, err := v.Object()
		if err != nil {
			return err
		}
		x, err := o.Get("a")
		if err != nil {
			return err
		}
		return x.List(func(x Value) error {
			o, err := x.Object()
			if err != nil {
				return err
			}
			if n, ok := o.Find("n"); ok {
				_, err := n.Int(0, 9)
				return err
			}
			if s, ok := o.Find("s"); ok {
				_, err := s.Text()
				return err
			}
			f, err := o.Get("f")
			if err == nil {
				_, err = f.Float(0, 9)
			}
			return err
		})
	}
	many := make([]string, mostMembers+1)
	for i := range many {
		many[i] = fmt.Sprintf("%q:0", fmt.Sprint(i))
	}
	for _, c := range []struct{ text, want string }{
		{"", "line 1: unexpected end of JSON input"},
		{"{\n\"a\":[\n\n\n", "line 2: unexpected end of JSON input"},
		{"{\n\"a\":[\n}", "line 3: invalid character '}' looking for beginning of value"},
		{"{}\n{}", "line 2: invalid character '{' after top-level value"},
		{"\n[]", "line 2: want an object"},
		{"\n{}", "line 2: a is missing"},
		{"{\"a\":\n5}", "line 2: a: want a list"},
		{"{\"a\":[{\"n\":1},\n{\"n\":10}]}", "line 2: a[1].n: 10: want a whole number from 0 to 9"},
		{"{\"a\":[{\"n\":1.5}]}", "line 1: a[0].n: 1.5: want a whole number from 0 to 9"},
		{"{\"a\":[{\"n\":[1]}]}", "line 1: a[0].n: not a number: want a whole number from 0 to 9"},
		{"{\"a\":[{\"f\":-1}]}", "line 1: a[0].f: -1: want a number from 0 to 9"},
		{"{\"a\":[{\"f\":1e999}]}", "line 1: a[0].f: 1e999: want a number from 0 to 9"},
		{"{\"a\":[{\"s\":1}]}", "line 1: a[0].s: want a text"},
		{"{\"a\":[{\"s\":\"\"},\n{\"q\":1}]}", "line 2: a[1]: f is missing"},
		{"{\"a\":1,\n\"b\":1,\n\"a\":1}", "line 3: a: it is there twice"},
		{"{" + strings.Join(many, ",\n") + "}", "line 1: it has more than 1000 keys"},
	} {
		v, err := Parse(strings.NewReader(c.text), 1<<20)
		if err == nil {
			err = use(v)
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%.100q: got error %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := Parse(strings.NewReader("[\n1\n]"), 4); err == nil || err.Error() != "line 3: longer than 4 bytes" {
		t.Errorf("too long: got error %v", err)
	}
	if _, err := Parse(iotest.ErrReader(errors.ErrUnsupported), 4); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unreadable: got error %v", err)
	}
}
