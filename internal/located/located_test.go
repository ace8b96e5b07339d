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

	"volley/files"
	"volley/internal/fuzzlimit"
)

// FuzzRead compares what is read with what encoding/json makes of it.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		``, ` `, `null`, ` true `, `[]`, `{}`, `{"a":[]}`, "{\"a\": [ 1 ,\n2\t, [3]]}", `{"b":[1],"a" : [{"b":[{}, "]"]}] , "\u0063":null}`,
		`{"a":1}`, `[1`, `{"a"}`, `1 2`, "\"\xff\"", "{\"\xff\":{},\n\"a\":[\"\\ud800\"]}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Hold(t, len(data))()
		located := func(err error) {
			if at := new(files.FormatError); !errors.As(err, &at) || at.Line < 1 || at.Line > 1+bytes.Count(data, []byte("\n")) {
				t.Fatalf("error %v", err)
			}
		}
		text, err := Read(bytes.NewReader(data), 1<<20)
		if (err == nil) != json.Valid(data) {
			t.Fatalf("got error %v", err)
		}
		if err != nil {
			located(err)
			return
		}
		var got []json.RawMessage
		err = List(text, "a", func(d *json.Decoder) error {
			var x json.RawMessage
			defer func() { got = append(got, x) }()
			return d.Decode(&x)
		})
		if err != nil {
			located(err)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || strings.Count(string(data), `"`) > 2 { // a key may be there twice, or be escaped
			return
		}
		var list []json.RawMessage
		if wrong := json.Unmarshal(want["a"], &list); (wrong == nil && list != nil) != (err == nil) || len(list)+len(got) > 0 && !reflect.DeepEqual(got, list) {
			t.Fatalf("got %s, error %v, want %s", got, err, want["a"])
		}
	})
}

func TestErrors(t *testing.T) {
	type Inner struct {
		N int `json:"n"`
	}
	for _, c := range []struct{ text, want string }{
		{"", "line 1: unexpected end of JSON input"},
		{"{\n\"a\":[\n\n\n", "line 2: unexpected end of JSON input"},
		{"{\n\"a\":[\n}", "line 3: invalid character '}' looking for beginning of value"},
		{"{}\n{}", "line 2: invalid character '{' after top-level value"},
		{"[]", "line 1: want an object"},
		{"{}", "line 1: a is missing"},
		{"{\"a\":\n5}", "line 2: a: want a list"},
		{"{\"b\":{\"a\":[]},\"a\":[{\"n\":1},\n{\"n\":10}]}", "line 2: a[1]: 10"},
		{"{\"a\":[{\"n\":1}\n,\n\n{\"n\":1.5}]}", "line 4: a[1]: n: number 1.5 does not fit there"},
		{"{\"a\":[\n[]]}", "line 2: a[0]: want an object"},
		{"{\"a\":[{\"m\":1}]}", `line 1: a[0]: unknown field "m"`},
	} {
		text, err := Read(strings.NewReader(c.text), 1<<20)
		if err == nil {
			err = List(text, "a", func(d *json.Decoder) error {
				d.DisallowUnknownFields()
				var x struct{ Inner }
				if err := d.Decode(&x); err != nil {
					return err
				}
				if x.N > 9 {
					return fmt.Errorf("%d", x.N)
				}
				return nil
			})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%.100q: got error %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := Read(strings.NewReader("[\n1\n]"), 4); err == nil || err.Error() != "line 3: longer than 4 bytes" {
		t.Errorf("too long: got error %v", err)
	}
	if _, err := Read(iotest.ErrReader(errors.ErrUnsupported), 4); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unreadable: got error %v", err)
	}
	var x struct{ Inner struct{ N int } }
	text := []byte("{\n\"Inner\":{\"N\":\"\"}}")
	if err := Wrong(text, json.Unmarshal(text, &x)); err.Error() != "line 2: N: string does not fit there" {
		t.Errorf("got error %v", err)
	}
}
