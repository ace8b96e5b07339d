package ssh

import (
	"os/exec"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for arg, want := range map[string]Address{
		"/data":                    {Path: "/data"},
		"./a:b":                    {Path: "./a:b"},
		"a/b:c":                    {Path: "a/b:c"},
		":x":                       {Path: ":x"},
		"a:/data":                  {Host: "a", Path: "/data"},
		"a:data":                   {Host: "a", Path: "data"},
		"me@a:/x:y":                {Host: "me@a", Path: "/x:y"},
		"[::1]:/x":                 {Host: "::1", Path: "/x"},
		"me@[fe80::1]:x":           {Host: "me@fe80::1", Path: "x"},
		"{host}:/coded":            {Host: "{host}", Path: "/coded"},
		"with/slash:and/colon:too": {Path: "with/slash:and/colon:too"},
	} {
		want.Name = arg
		if got, err := Parse(arg); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", arg, got, err, want)
		}
	}
	for _, arg := range []string{"-oProxyCommand=x:/y", "a:", "me@:/x", "me@-x:/y", "a b:/x", "ssh://", "ssh://a/x", "ssh://me@a:22/x", "a\n:/x", "[::1:/x"} {
		if got, err := Parse(arg); err == nil {
			t.Errorf("%q is %+v: want an error", arg, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, arg := range []string{"a:/x", "me@[::1]:x", "[", "[]:x", "@:", "a@b@c:d"} {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		a, err := Parse(arg)
		if err == nil && (a.Path == "" && arg != "" || strings.HasPrefix(a.Host, "-") || strings.ContainsAny(a.Host, " \t\n[]")) {
			t.Errorf("%q is %+v", arg, a)
		}
	})
}

// TestQuote has a shell read what was quoted.
func TestQuote(t *testing.T) {
	for _, text := range []string{"a", "two words", "it's", `$x "y" \ !z`, "new\nline", "*", "", ";ls"} {
		out, err := exec.Command("sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q came as %q, %v", text, out, err)
		}
	}
	if got := quoteProgram("~/my bin/volley"); got != "~/'my bin/volley'" {
		t.Error(got)
	}
}
