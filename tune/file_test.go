package tune_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"volley/sim"
	"volley/tune"
)

func example() *tune.Result {
	return &tune.Result{
		Platform: tune.Platform{Transport: "local", Hosts: []string{"node"}, Ranks: 2},
		Date:     time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC), CPU: "EPYC", CPUs: 2,
		Network: sim.Network{Latency: 895, Overhead: 40, Gaps: sim.Gaps{{Messages: 1, PerByte: 1.14e-10}}},
		Points:  []tune.Point{{Messages: 1, Bytes: 1, Seconds: 9e-7, Least: 8e-7, Greatest: 1e-6, Samples: 26}},
		Coding:  []tune.Coding{{Field: "2^8", SymbolBytes: 1, Sources: 8, Cached: 2e-11, Uncached: 4e-11, Spread: 0.01}},
	}
}

func load(t *testing.T, path string) []*tune.Result {
	t.Helper()
	list, err := tune.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSaveLoad checks that a result replaces that of its place, and no other.
func TestSaveLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "tune.json")
	first, second := example(), example()
	second.Hosts = []string{"node", "other"}
	for range 2 {
		for _, r := range []*tune.Result{first, second} {
			if err := r.Save(path); err != nil {
				t.Fatal(err)
			}
		}
		if got := load(t, path); !reflect.DeepEqual(got, []*tune.Result{first, second}) {
			t.Errorf("got %+v, want %+v and %+v", got, first, second)
		}
		first.Network.Latency++
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 || entries[1].Name() != "tune.json.lock" {
		t.Errorf("%v, %v: want the file and its lock", entries, err)
	}

	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	second.Network.Overhead = 0
	if err := second.Save(link); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v, %v: the link is gone", info, err)
	}
	if got := load(t, path); len(got) != 2 || !reflect.DeepEqual(got[1], second) {
		t.Errorf("behind the link: %+v", got)
	}
}

// TestSaveTogether checks that none of several that save at a time is lost.
func TestSaveTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tune.json")
	var all sync.WaitGroup
	const n = 16
	for i := range n {
		all.Go(func() {
			r := example()
			r.Ranks += i
			if err := r.Save(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := load(t, path); len(got) != n {
		t.Errorf("%d results, want %d", len(got), n)
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
		dir:   "is a directory",
		notes: notes + ": line 1: ",
		write("cut", `{"format": "volley-tune", "vers`):           "line 1: ",
		write("newer", `{"format": "volley-tune", "version": 4}`): "version: 4: this volley reads version 3: move it away",
		filepath.Join(notes, "tune.json"):                         "not a directory",
		os.DevNull:                                                "not a regular file",
	} {
		if err := example().Save(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", path, err, want)
		}
	}
	if text, err := os.ReadFile(notes); err != nil || string(text) != "what I want to keep\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, path := range []string{write("empty", ""), write("old", `{"format": "volley-tune", "version": 1, "beta_seconds": 1}`)} {
		if err := example().Save(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got := load(t, path); len(got) != 1 {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestDamaged checks that the error names the file, the line and the key that is to blame.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tune.json")
	if err := example().Save(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	good := string(file)
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{good, "", "line 1: "},
		{good, "null", "format: missing: want"},
		{good, "[]", "line 1: want an object"},
		{good, strings.Repeat(" ", 16<<20) + good, "longer than 16777216 bytes"},
		{"\n}", "", "line "},
		{"\n}", "\n}{", "line "},
		{`"format"`, `"formats"`, `format: missing: want "volley-tune"`},
		{`"volley-tune"`, `"volley-plan"`, `format: "volley-plan": want "volley-tune"`},
		{`"version": 3`, `"version": 1`, " was written by an older volley: version 1, this one reads 3: measure again with volley tune"},
		{`"version": 3`, `"version": 4`, "version: 4: this volley reads version 3: move it away and measure again with volley tune"},
		{`"version": 3`, `"version": "2"`, "version: \"2\": this volley"},
		{`"results"`, `"result"`, "line 1: results is missing"},
		{`"ranks": 2`, `"ranks": 1`, `line 5: results[0]: transport "local", 1 ranks: want a name, and 2 ranks or more`},
		{`"latency_ns": 895`, `"latency_ns": "1us"`, "line 5: results[0]: network.latency_ns: string does not fit there"},
		{`"latency_ns": 895`, `"latency_ns": -1`, "line 5: results[0]: sim: network with a latency"},
		{`1.14e-10`, `-1.14e-10`, "line 5: results[0]: sim: gap 0"},
		{`1.14e-10`, `1e999`, "1e999 does not fit there"},
		{`"network"`, `"networks"`, `results[0]: unknown field "networks"`},
		{`"spread"`, `"spreads"`, `results[0]: unknown field "spreads"`},
		{`"field": "2^8"`, `"field": ""`, `coding[0].field: "": want a field`},
		{`"cached": 2e-11`, `"cached": -2e-11`, "coding[0]: -2e-11: want seconds"},
		{`"uncached": 4e-11`, `"uncached": 4000`, "coding[0]: 4000: want seconds"},
		{`"coding": [`, `"coding": [{"field": "2^8"},`, `coding[1].field: "2^8": want a field, each once`},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if c.want != "" && text == good {
			t.Fatalf("there is no %q in %s", c.old, good)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		list, err := tune.Load(path)
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "measure again with volley tune") {
			t.Errorf("%q for %q: got error %v, want %q", c.new, c.old, err, c.want)
		}
		if list != nil {
			t.Errorf("%q for %q: got %+v", c.new, c.old, list)
		}
	}
	if _, err := tune.Load(path + ".none"); err == nil || !strings.Contains(err.Error(), path+".none") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestFind checks which of several results a run takes.
func TestFind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tune.json")
	t.Setenv(tune.Variable, path)
	day := 0
	save := func(transport string, ranks int, hosts ...string) {
		r := example()
		day++
		r.Platform, r.Date = tune.Platform{Transport: transport, Hosts: hosts, Ranks: ranks}, r.Date.AddDate(0, 0, day)
		if err := r.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	save("mpi", 4, "a", "b", "c", "d")
	save("mpi", 64, "a", "b", "c", "d")
	save("mpi", 16, "e", "f")
	save("mpi", 2, "a")
	save("local", 2, "a")
	for _, c := range []struct {
		at   tune.Platform
		want string
	}{
		{tune.Platform{Transport: "mpi", Hosts: []string{"a", "b", "c", "d"}, Ranks: 4}, "mpi, 4 ranks on 4 hosts"},
		{tune.Platform{Transport: "mpi", Hosts: []string{"a", "b", "c", "d"}, Ranks: 17}, "mpi, 64 ranks on 4 hosts"},
		{tune.Platform{Transport: "mpi", Hosts: []string{"a", "b", "c", "d"}, Ranks: 15}, "mpi, 4 ranks on 4 hosts"},
		{tune.Platform{Transport: "mpi", Hosts: []string{"a", "b", "c", "d"}, Ranks: 16}, "mpi, 64 ranks on 4 hosts"}, // the newer of two as far
		{tune.Platform{Transport: "mpi", Hosts: []string{"x", "y"}, Ranks: 17}, "mpi, 16 ranks on 2 hosts"},
		{tune.Platform{Transport: "mpi", Hosts: []string{"x"}, Ranks: 64}, "mpi, 2 ranks on 1 host"},
		{tune.Platform{Transport: "mpi", Ranks: 60}, "mpi, 64 ranks on 4 hosts"},
		{tune.Platform{Transport: "local", Hosts: []string{"b"}, Ranks: 64}, "local, 2 ranks on 1 host"},
		{tune.Platform{Transport: "local", Hosts: []string{"b", "c"}}, ""},
		{tune.Platform{Transport: "tcp"}, ""},
		{tune.Platform{}, "local, 2 ranks on 1 host"}, // the newest
	} {
		got, err := tune.Find(c.at)
		switch {
		case err != nil || (got == nil) != (c.want == ""):
			t.Errorf("%+v: %+v, %v", c.at, got, err)
		case got != nil && got.Platform.String() != c.want:
			t.Errorf("%+v: %v, want %s", c.at, got.Platform, c.want)
		}
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
	is := func(what string, latency time.Duration, wantErr ...string) {
		t.Helper()
		r, err := tune.Find(tune.Platform{Transport: "local"})
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
		case (r != nil) != (latency > 0) || r != nil && r.Network.Latency != latency:
			t.Errorf("%s: %+v", what, r)
		}
	}
	is("nothing measured", 0)
	r := example()
	if err := r.Save(usual); err != nil {
		t.Fatal(err)
	}
	is("measured", r.Network.Latency)

	other := filepath.Join(home, "other.json")
	t.Setenv(tune.Variable, other)
	is("another file, not there", 0, other, "volley tune", tune.Variable)
	r.Network.Latency *= 2
	if err := r.Save(other); err != nil {
		t.Fatal(err)
	}
	if path, err := tune.Path(); path != other || err != nil {
		t.Errorf("%s, %v", path, err)
	}
	is("another file", r.Network.Latency)

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
