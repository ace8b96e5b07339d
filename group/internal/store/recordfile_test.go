package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"volley/internal/disk/disktest"
	"volley/internal/fuzzlimit"
)

// listing returns a text of as many files as there are times, which it has.
func listing(times []int) (text []byte) {
	for i, time := range times {
		text = fmt.Appendf(text, `{"path":"directory/%06d","type":"file","mtime":%d},`, i, time)
	}
	return text
}

// TestChangedRecord changes, inserts and removes files: little of a record is new then, and all of it comes back.
func TestChangedRecord(t *testing.T) {
	times := make([]int, 20_000)
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range times {
		times[i] = rng.IntN(1e9)
	}
	earlier := Pack(listing(times))
	for name, c := range map[string]struct{ from, to, parts int }{ // times 70 from and to take the places of which others
		"nothing": {100, 100, 0}, "one": {9000, 9001, 1}, "the first": {0, 1, 1}, "the last": {19_999, 20_000, 1}, "some": {500, 600, 2},
	} {
		changed := append(append(append([]int{}, times[:c.from]...), make([]int, c.to-c.from)...), times[c.to:]...)
		record := Pack(listing(changed))
		file := ChangedRecord(record, earlier)
		back, err := WholeRecord(file, earlier)
		if err != nil || !bytes.Equal(back, record) {
			t.Errorf("%s: it does not come back: %v", name, err)
		}
		if most := c.parts*len(earlier)*4/bytes.Count(earlier, []byte("\n")) + 100; len(file) > most {
			t.Errorf("%s: %d bytes of %d are sent: want %d at most", name, len(file), len(record), most)
		}
	}
	if file := ChangedRecord(earlier, nil); !bytes.Equal(file, earlier) {
		t.Error("a first record is not whole")
	}
}

// TestRecordFilesBounded has a record of 1,000 bytes that names two files as long as one may be: together they are longer.
func TestRecordFilesBounded(t *testing.T) {
	m := disktest.NewMachine()
	m.MkdirAll("/n/.volley/generation.3", 0o700)
	m.WriteFile("/n/.volley/generation.3/record", []byte("=1 0 1\n=2 0 1\n"), 0o600)
	for _, name := range []string{"record@1", "record@2"} {
		m.WriteFile("/n/.volley/generation.3/"+name, bytes.Repeat([]byte("x"), 1000), 0o600)
	}
	d, err := m.Process().Open("/n")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := readRecord(d, "generation.3", "record", 1000); err == nil || !strings.Contains(err.Error(), "longer than such a file can be") {
		t.Error(err)
	}
}

// recordTexts are record files, over one of 12 bytes of generation 7, and what is wrong with them.
var recordTexts = map[string]string{
	"":                               "",
	"a\nb\n":                         "",
	"=7 0 12\n":                      "",
	"=7 0 4\nnew\n=7 8 4\n":          "",
	"=7 4 4\n=7 8 4\nnew":            "",
	"=7 0 4\n=7 0 4\n":               "want bytes from 4 to 12",
	"=7 0 4\n=7 3 4\n":               "want bytes from 4 to 12",
	"=7 0 13\n":                      "want bytes from 0 to 12",
	"=7 13 1\n":                      "want bytes from 0 to 12",
	"=8 0 1\n":                       "generation 8 is missing",
	"=7 4294967296 4294967296\n":     "want bytes from",
	"=7 9223372036854775807 1\n":     "want bytes from 0 to 12",
	"=7 1 9223372036854775807\n":     "want bytes from 0 to 12",
	"=7 99999999999999999999 1\n":    "want =,",
	"=7 -1 1\n":                      "want bytes from 0 to 12",
	"=7 1 -1\n":                      "want bytes from 0 to 12",
	"=7 1 0\n":                       "want bytes from 0 to 12",
	"=0 0 1\n":                       "want =,",
	"=7 1\n":                         "want =,",
	"=7 1 1 1\n":                     "want =,",
	"=\n":                            "want =,",
	strings.Repeat("=7 1 1\nx\n", 2): "want bytes from 2 to 12",
}

func earlierFile(g int64) ([]byte, error) {
	if g == 7 {
		return []byte("one\ntwo\nsix\n"), nil
	}
	return nil, fmt.Errorf("generation %d is missing", g)
}

// TestLay refuses spans that are not there, and says which.
func TestLay(t *testing.T) {
	many := ""
	for g := range mostFiles + 1 {
		many += fmt.Sprintf("=%d 0 1\n", g+1)
	}
	if _, _, err := lay([]byte(many), func(int64) ([]byte, error) { return []byte("x"), nil }); err == nil || !strings.Contains(err.Error(), "one of 64 generations") {
		t.Errorf("spans of many files: %v", err)
	}
	for text, wrong := range recordTexts {
		_, _, err := lay([]byte(text), earlierFile)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v: want %q", text, err, wrong)
		}
	}
	record, places, err := lay([]byte("=7 4 4\nnew\n=7 8 4\n"), earlierFile)
	if want := []span{{7, 4, 4}, {0, 7, 4}, {7, 8, 4}}; err != nil || string(record) != "two\nnew\nsix\n" || !slices.Equal(places, want) {
		t.Errorf("%q, %v, %v", record, places, err)
	}
	if file, _ := shorten([]byte("two\nsix\nold\n"), record, places); string(file) != "=7 4 8\nold\n" {
		t.Errorf("of spans comes %q", file)
	}
	unread := errors.New("unread")
	if _, _, err := lay([]byte("=7 0 1\n"), func(int64) ([]byte, error) { return nil, unread }); !errors.Is(err, unread) {
		t.Errorf("a file that is not read: %v", err)
	}
}

// FuzzLay checks that a record file takes no more memory than it and the earlier ones allow, and that a record comes back
// from what is new in it.
func FuzzLay(f *testing.F) {
	earlier, _ := earlierFile(7)
	for text := range recordTexts {
		f.Add([]byte(text), earlier)
		f.Add(earlier, []byte(text))
	}
	f.Fuzz(func(t *testing.T, file, earlier []byte) {
		defer fuzzlimit.Hold(t, len(file)+len(earlier))()
		record, _, err := lay(file, func(g int64) ([]byte, error) { return earlier, nil })
		if files := bytes.Count(file, []byte("=")); err == nil && len(record) > len(file)+files*len(earlier) {
			t.Fatalf("%d bytes and %d files have become %d bytes", len(file), files, len(record))
		}
		if bytes.HasPrefix(file, []byte("=")) || bytes.Contains(file, []byte("\n=")) { // no record has such lines
			return
		}
		if record, err := WholeRecord(ChangedRecord(file, earlier), earlier); err != nil || !bytes.Equal(record, file) {
			t.Fatalf("%q comes back from %q: %v", record, ChangedRecord(file, earlier), err)
		}
	})
}
