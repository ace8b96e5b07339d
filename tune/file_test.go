package tune_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"volley/tune"
)

func example() *tune.Result {
	return &tune.Result{
		Date: time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC), Host: "node", CPU: "EPYC", CPUs: 2,
		Transport: "local", Ranks: 2, Ports: 1,
		BetaSeconds: 8.95e-7, TauSecondsPerByte: 1.14e-10, Residual: 0.06, RSquared: 0.99,
		Points: []tune.Point{{Bytes: 0, Seconds: 9e-7, Least: 8e-7, Most: 1e-6, Samples: 26, Rounds: 1000}},
		Coding: []tune.Coding{{Field: "2^8", SymbolBytes: 1, Sources: 8, Cached: 2e-11, Uncached: 4e-11, Spread: 0.01}},
	}
}

func TestSaveLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "tune.json")
	want := example()
	for range 2 { // the second one replaces the first
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
		got, err := tune.Load(path)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		want.BetaSeconds = 0
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want the file alone", entries, err)
	}

	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	want.TauSecondsPerByte = 0
	if err := want.Save(link); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v, %v: the link is gone", info, err)
	}
	if got, err := tune.Load(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("behind the link: %+v, %v", got, err)
	}
}

func TestSaveRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notes := write("notes.txt", "what I want to keep\n")
	for path, want := range map[string]string{
		dir:                               "is a directory",
		notes:                             "not written by volley tune",
		filepath.Join(notes, "tune.json"): "not a directory",
		os.DevNull:                        "not a regular file",
	} {
		if err := example().Save(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", path, err, want)
		}
	}
	if text, err := os.ReadFile(notes); err != nil || string(text) != "what I want to keep\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, path := range []string{write("empty", ""), write("cut", `{"format": "volley-tune", "vers`)} {
		if err := example().Save(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestDamaged checks that the error names the file, and the key that is to blame.
func TestDamaged(t *testing.T) {
	good, err := json.MarshalIndent(example(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tune.json")
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{string(good), "", "line 1: "},
		{string(good), "null", `format: "": want "volley-tune"`},
		{string(good), "[]", "line 1: the whole: array does not fit there"},
		{string(good), strings.Repeat(" ", 1<<20) + string(good), "more than 1048576 bytes"},
		{"\n}", "", "line "},
		{"\n}", "\n}{", "line "},
		{`"volley-tune"`, `"volley-plan"`, `format: "volley-plan": want "volley-tune"`},
		{`"version": 1`, `"version": 2`, "version: 2: this volley reads version 1: measure again with volley tune"},
		{`"version": 1`, `"version": "1"`, "line 3: version: string does not fit there"},
		{`"beta_seconds": 8.95e-7,`, ``, "beta_seconds: missing"},
		{`"beta_seconds": 8.95e-7`, `"beta_seconds": null`, "beta_seconds: missing"},
		{`"beta_seconds": 8.95e-7`, `"beta_seconds": "1us"`, "beta_seconds: string does not fit there"},
		{`"beta_seconds": 8.95e-7`, `"beta_seconds": -1`, "beta_seconds: -1: want seconds, from 0 to 3600"},
		{`"beta_seconds": 8.95e-7`, `"beta_seconds": 1e9`, "beta_seconds: 1e+09: want seconds, from 0 to 3600"},
		{`"beta_seconds": 8.95e-7`, `"beta_seconds": 1e999`, "beta_seconds: number 1e999 does not fit there"},
		{`"tau_seconds_per_byte": 1.14e-10,`, ``, "tau_seconds_per_byte: missing"},
		{`1.14e-10`, `-1.14e-10`, "tau_seconds_per_byte: -1.14e-10: want seconds"},
		{`"coding"`, `"codings"`, "coding: missing"},
		{`"spread"`, `"spreads"`, `unknown field "spreads"`},
		{`"field": "2^8"`, `"field": ""`, "coding[0].field: missing"},
		{`"cached": 2e-11`, `"cached": -2e-11`, "coding[0].cached: -2e-11: want seconds"},
		{`"uncached": 4e-11`, `"uncached": 4000`, "coding[0].uncached: 4000: want seconds"},
		{`"coding": [`, `"coding": [{"field": "2^8"},`, `coding[1].field: "2^8": twice`},
	} {
		text := strings.Replace(string(good), c.old, c.new, 1)
		if c.want != "" && text == string(good) {
			t.Fatalf("there is no %q in %s", c.old, good)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := tune.Load(path)
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "volley tune") {
			t.Errorf("%q for %q: got error %v, want %q", c.new, c.old, err, c.want)
		}
		if r != nil {
			t.Errorf("%q for %q: got %+v", c.new, c.old, r)
		}
	}
	if _, err := tune.Load(path + ".none"); err == nil || !strings.Contains(err.Error(), path+".none") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestDefault checks where runs look, and what they make of what is there.
func TestDefault(t *testing.T) {
	home := t.TempDir()
	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(variable, home)
	}
	t.Setenv(tune.Variable, "")
	usual, err := tune.Path()
	if err != nil || !strings.HasPrefix(usual, home) || !strings.HasSuffix(usual, filepath.Join("volley", "tune.json")) {
		t.Fatalf("%s, %v", usual, err)
	}
	is := func(what string, beta float64, wantErr ...string) {
		t.Helper()
		r, ok, err := tune.Default()
		switch {
		case len(wantErr) > 0:
			if err == nil {
				t.Errorf("%s: no error", what)
				return
			}
			for _, want := range wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got error %v, want %q", what, err, want)
				}
			}
		case err != nil:
			t.Errorf("%s: %v", what, err)
		case ok != (beta > 0) || ok != (r != nil) || ok && r.BetaSeconds != beta:
			t.Errorf("%s: %+v, %v", what, r, ok)
		}
	}
	is("nothing measured", 0)
	r := example()
	if err := r.Save(usual); err != nil {
		t.Fatal(err)
	}
	is("measured", r.BetaSeconds)

	other := filepath.Join(home, "other.json")
	t.Setenv(tune.Variable, other)
	is("another file, not there", 0, other, "volley tune", tune.Variable)
	r.BetaSeconds *= 2
	if err := r.Save(other); err != nil {
		t.Fatal(err)
	}
	if path, err := tune.Path(); path != other || err != nil {
		t.Errorf("%s, %v", path, err)
	}
	is("another file", r.BetaSeconds)

	t.Setenv(tune.Variable, "off")
	if path, err := tune.Path(); path != "" || err != nil {
		t.Errorf("%s, %v", path, err)
	}
	is("off", 0)

	t.Setenv(tune.Variable, "")
	if err := os.WriteFile(usual, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	is("damaged", 0, usual, "volley tune", "VOLLEY_TUNE=off")

	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(variable, os.DevNull) // as of users that are no persons
	}
	is("no directory", 0)
	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(variable, "")
	}
	if path, err := tune.Path(); err == nil {
		t.Errorf("without a home: %s", path)
	}
	is("no home", 0)
}
