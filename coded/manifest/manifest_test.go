package manifest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"volley/internal/fuzzlimit"
)

func TestCodedName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		proc, processors int
		run              int64
		want             string
	}{{0, 1, 0, "coded.0"}, {9, 10, 0, "coded.9"}, {9, 11, 0, "coded.09"}, {99, 100, 0, "coded.99"}, {5, 1001, 0, "coded.0005"}, {0, 1, 12, "coded.0.12"}} {
		got := CodedName(c.proc, c.processors, c.run)
		if run, is := RunOf(got); got != c.want || !is || run != c.run {
			t.Errorf("CodedName(%d, %d, %d) = %s, of run %d %v: want %s", c.proc, c.processors, c.run, got, run, is, c.want)
		}
	}
	for _, not := range []string{"coded.", "coded.x", "coded.0.0", "coded.0.01", "coded.0.1.1", "coded.0\n", "../coded.0", "manifest.json"} {
		if run, is := RunOf(not); is {
			t.Errorf("%q is a coded file of run %d", not, run)
		}
	}
}

const valid = `{"format":"volley-manifest","version":1,"field":"2^8","matrix":{"family":"file:A.csv","inverse":true,` +
	`"points":[{"name":"x","values":["0","1"]}],"entries":[["1","2"],["3","4"]]},"processors":2,` +
	`"symbol_bytes":1,"symbols_per_packet":5,"bits_per_symbol":8,` +
	`"files":[{"name":"coded.0","processor":0,"bytes":5,"sha256":"00"}],"inputs":[]}`

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "end of JSON",
		"[]":                                   "want an object",
		"{}":                                   `want "volley-manifest"`,
		valid + "x":                            "after top-level value",
		`{"format":"volley-plan","version":1}`: "volley-plan",
		`{"format":"volley-manifest","version":2,"new":0}`:                              "version 2",
		`{"format":"volley-manifest","version":1,"new":0}`:                              "new",
		strings.Replace(valid, "coded.0", "../coded.csv", 1):                            "../coded.csv",
		strings.Replace(valid, "coded.0", "/coded.0", 1):                                "/coded.0",
		strings.Replace(valid, "coded.0", "coded.0\\n", 1):                              "coded.0",
		strings.Replace(valid, "coded.0", "manifest.json", 1):                           "manifest.json",
		strings.Replace(valid, "coded.0", "coded.csv", 1):                               "coded.csv",
		strings.Replace(valid, `"symbols_per_packet":5`, `"symbols_per_packet":"5"`, 1): "symbols_per_packet",
		"{\n\n\"format\":,}": "line 3: ",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %s", text, err, want)
		}
	}
	if m, err := Parse([]byte(valid)); err != nil || m.Files[0].Name != "coded.0" || m.Matrix.Entries[1][0] != "3" {
		t.Errorf("%+v, %v", m, err)
	}
}

// FuzzManifest checks that the decoder takes only what it can give back, and no
// name that leads out of the directory.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(`{"format":"volley-manifest","version":1,"files":[{"name":"coded.0"},{"name":"coded./../x"}]}`))
	f.Add([]byte(`{"FORMAT":"volley-manifest","version":1e0,"files":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzlimit.Hold(t, len(data))()
		m, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := m.Validate(); err == nil && len(m.Files) != m.Processors {
			t.Fatalf("%d files of %d processors", len(m.Files), m.Processors)
		}
		for _, file := range m.Files {
			if name := string(file.Name); !filepath.IsLocal(name) || filepath.Base(name) != name || name == FileName {
				t.Fatalf("file %q", name)
			}
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s comes back as %s, %v", text, again, err)
		}
	})
}
