package explore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"volley/group"
	"volley/internal/selection"
)

var words = []string{"WAVE", "TIDE", "REEF", "SAND"}

// TestMix loses words in all ways: as many as have a coded packet each in what is left come back, no others. Shifts add up
// to their product.
func TestMix(t *testing.T) {
	t.Parallel()
	for which := range 1 << len(words) {
		r := mixRequest{Words: words}
		for k := range words {
			if which>>k&1 == 1 {
				r.Lost = append(r.Lost, k)
			}
		}
		a, err := mix(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if enough := a.Left >= a.Needed; enough != (len(r.Lost) <= 2) || enough && len(a.Back) != len(r.Lost) || !enough && len(a.Back) > 0 {
			t.Errorf("%v lost: %d packets left of %d needed, %d back", r.Lost, a.Left, a.Needed, len(a.Back))
		}
		for i, m := range a.Back {
			if m.Text != words[r.Lost[i]] || len(m.Terms) != len(words) {
				t.Errorf("%v lost: %+v comes back", r.Lost, m)
			}
		}
		for _, m := range append(a.Mixtures, a.Back...) {
			for _, p := range m.Terms {
				sum := make([]byte, len(words[0]))
				for _, s := range p.Shifts {
					xor(sum, s.Bytes)
				}
				if hex.EncodeToString(sum) != p.Bytes {
					t.Errorf("%s·%s is %s, and its shifts are %x", p.Coef, p.Name, p.Bytes, sum)
				}
			}
		}
	}
}

func xor(sum []byte, text string) {
	data, _ := hex.DecodeString(text)
	for i := range sum {
		sum[i] ^= data[i]
	}
}

// TestMixIsParity protects the words in directories: what a group keeps at each node is what the page mixes.
func TestMixIsParity(t *testing.T) {
	t.Parallel()
	a, err := mix(t.Context(), mixRequest{Words: words}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, word := range words {
		dirs = append(dirs, t.TempDir())
		if err := os.WriteFile(filepath.Join(dirs[len(dirs)-1], "word"), []byte(word), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g, err := group.Open(dirs, group.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Protect(t.Context(), group.ProtectOptions{Tolerate: 2, Layout: "full"}); err != nil {
		t.Fatal(err)
	}
	for k, dir := range dirs {
		mixed, _ := hex.DecodeString(a.Mixtures[k].Bytes)
		found := false
		err := filepath.WalkDir(filepath.Join(dir, ".volley"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			found = found || bytes.HasPrefix(data, mixed)
			return err
		})
		if err != nil || !found {
			t.Errorf("no file of node %d begins with its mixture %x: %v", k, mixed, err)
		}
	}
}

// TestMixErrors names the field at fault.
func TestMixErrors(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		field string
		mixRequest
	}{
		{"words", mixRequest{}},
		{"words", mixRequest{Words: []string{""}}},
		{"words", mixRequest{Words: []string{"WAVE", "SEA"}}},
		{"words", mixRequest{Words: make([]string, mostWords+1)}},
		{"field", mixRequest{Words: words, Flags: flags{"field": "17"}}},
		{"field", mixRequest{Words: words, Flags: flags{"sinks": "2"}}},
	} {
		_, err := mix(t.Context(), x.mixRequest, nil)
		if fault := new(selection.Error); !errors.As(err, &fault) || fault.Flag != x.field {
			t.Errorf("%v: %v, want one of %s", x.mixRequest, err, x.field)
		}
	}
}
