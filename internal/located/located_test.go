package located

import (
	"encoding/json"
	"testing"
)

func TestWrong(t *testing.T) {
	type Inner struct {
		N int `json:"n"`
	}
	for _, c := range []struct{ text, want string }{
		{"", "line 1: unexpected end of JSON input"},
		{"{\n\"a\":[\n\n\n", "line 2: unexpected end of JSON input"},
		{"{\n\"a\":[\n}", "line 3: invalid character '}' looking for beginning of value"},
		{"{}\n{}", "line 2: invalid character '{' after top-level value"},
		{"[]", "line 1: want an object"},
		{"{\"a\":[{\"n\":1}\n,\n\n{\"n\":1.5}]}", "line 4: a.n: number 1.5 does not fit there"},
		{"{\"Inner\":\n{\"n\":\"\"}}", "line 2: n: string does not fit there"},
	} {
		var x struct {
			A     []struct{ Inner } `json:"a"`
			Inner Inner
		}
		if err := Wrong([]byte(c.text), json.Unmarshal([]byte(c.text), &x)); err.Error() != c.want {
			t.Errorf("%q: got error %v, want %s", c.text, err, c.want)
		}
	}
}
