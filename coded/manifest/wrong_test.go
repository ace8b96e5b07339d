package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"volley/files"
	"volley/internal/fuzzlimit"
)

type listed struct {
	N int `json:"n"`
	A []struct {
		B struct {
			N int `json:"n"`
		} `json:"b"`
	} `json:"a"`
}

// FuzzWrong looks whether an error names a line of the text.
func FuzzWrong(f *testing.F) {
	for _, s := range []string{``, ` `, `[]`, "{\"a\": [ 1 ,\n2\t, [3]]}", `{"a":1}`, `[1`, `{"a"}`, `1 2`, "\"\xff\"", "{\"n\":\n1.5}\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Hold(t, len(data))()
		err := json.Unmarshal(data, new(listed))
		if err == nil {
			return
		}
		if e := new(files.FormatError); !errors.As(wrong(data, err), &e) || e.Line < 1 || e.Line > 1+bytes.Count(data, []byte("\n")) {
			t.Fatalf("error %v", e)
		}
	})
}

func TestWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "line 1: unexpected end of JSON input"},
		{"{\n\"a\":[\n\n\n", "line 2: unexpected end of JSON input"},
		{"{\n\"a\":[\n}", "line 3: invalid character '}' looking for beginning of value"},
		{"{}\n{}", "line 2: invalid character '{' after top-level value"},
		{"[]", "line 1: want an object"},
		{"{\"n\":1,\n\n\"n\":1.5}", "line 3: n: number 1.5 does not fit there"},
		{"{\"a\":\n[{\"b\":\n{\"n\":\"\"}}]}", "line 3: a.b.n: string does not fit there"},
	} {
		text := []byte(c.text)
		if err := wrong(text, json.Unmarshal(text, new(listed))); err.Error() != c.want {
			t.Errorf("%.100q: got error %v, want %s", c.text, err, c.want)
		}
	}
	if err := wrong(nil, errors.New(`json: unknown field "m"`)); err.Error() != `unknown field "m"` {
		t.Errorf("got error %v", err)
	}
}
