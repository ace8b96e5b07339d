package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"volley/internal/disk"
	"volley/internal/fuzzlimit"
)

// layersManifest has three rows of two blocks of parity: of 16, 16 and 8 bytes each.
var layersManifest = &Manifest{DataChunks: 2, ParityChunks: 2, BlockBytes: 16, ChunkBytes: 40}

// TestPlace finds the blocks of parity in the base and in files of changes, of which the latest counts.
func TestPlace(t *testing.T) {
	m := layersManifest
	for _, c := range []struct {
		name    string
		changes []Changes
		want    string // of each byte 3 of a block
	}{
		{"no changes", nil, "parity+3 parity+19 parity+35 parity+51 parity+67 parity+75"},
		{"one", []Changes{{7, 48, [][3]int{{1, 3, 0}, {5, 6, 2}}}}, "parity+3 changes.7+3 changes.7+19 parity+51 parity+67 changes.7+35"},
		{"two", []Changes{{7, 48, [][3]int{{1, 4, 0}}}, {9, 32, [][3]int{{2, 3, 1}, {4, 5, 0}}}}, "parity+3 changes.7+3 changes.9+19 changes.7+35 changes.9+3 parity+75"},
		{"of chunks that were longer", []Changes{{7, 1600, [][3]int{{0, 100, 0}}}}, "changes.7+3 changes.7+19 changes.7+35 changes.7+51 changes.7+67 changes.7+83"},
	} {
		x := &Layers{Format: Format, Changes: c.changes}
		var places []string
		for row := range m.Rows() {
			for chunk := range m.ParityChunks {
				name, place := x.Place(m, m.OffsetOf(row, chunk, m.ParityChunks)+3)
				places = append(places, fmt.Sprint(name, "+", place))
			}
		}
		if text := strings.Join(places, " "); text != c.want {
			t.Errorf("%s: %s: want %s", c.name, text, c.want)
		}
		if name, place := x.Place(m, m.ParityBytes()); name != ParityFile || place != m.ParityBytes() {
			t.Errorf("%s: behind all: %s+%d", c.name, name, place)
		}
	}
}

// layersTexts are lines of LayersFile, and what is wrong with them.
var layersTexts = map[string]string{
	`{"format":"volley-group","base":80,"changes":[{"generation":7,"bytes":48,"blocks":[[1,3,0],[5,6,2]]},{"generation":9,"bytes":0,"blocks":[]}],"later":1}`: "",
	`{"format":"volley","base":80}`:        "format",
	`{"format":"volley-group","base":-1}`:  "base",
	`{"format":"volley-group","base":1e9}`: "base",
	`{"format":"volley-group","changes":[` + strings.Repeat(`{"generation":1},`, mostChanges) + `{"generation":1}]}`: "changes",
	layersText(`{"generation":0}`):                                                            "generation 0",
	layersText(`{"generation":7},{"generation":7}`):                                           "after generation 7",
	layersText(`{"generation":7,"bytes":-1}`):                                                 "-1 bytes",
	layersText(`{"generation":7,"bytes":9000000000000000000}`):                                "bytes",
	layersText(`{"generation":7,"bytes":48,"blocks":[[3,3,0]]}`):                              "[3 3 0]",
	layersText(`{"generation":7,"bytes":48,"blocks":[[1,3,0],[2,4,0]]}`):                      "after block 3",
	layersText(`{"generation":7,"bytes":48,"blocks":[[-1,1,0]]}`):                             "[-1 1 0]",
	layersText(`{"generation":7,"bytes":48,"blocks":[[0,1,-1]]}`):                             "[0 1 -1]",
	layersText(`{"generation":7,"bytes":48,"blocks":[[0,2,2]]}`):                              "of 3 slots",
	layersText(`{"generation":7,"bytes":48,"blocks":[[1,9223372036854775807,9]]}`):            "of 3 slots",
	layersText(`{"generation":7,"bytes":48,"blocks":[[0,1,9223372036854775807]]}`):            "of 3 slots",
	layersText(`{"generation":7,"bytes":48,"blocks":[[0,9223372036854775808,0]]}`):            "9223372036854775808",
	layersText(`{"generation":7,"bytes":72057594037927936,"blocks":[[0,281474976710656,0]]}`): "",
}

func layersText(changes string) string {
	return `{"format":"volley-group","base":80,"changes":[` + changes + `]}`
}

// TestDecodeLayers refuses what contradicts itself, and says what.
func TestDecodeLayers(t *testing.T) {
	for text, wrong := range layersTexts {
		_, err := DecodeLayers(disk.Seal([]byte(text)), 16)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%.200s: %v: want %q", text, err, wrong)
		}
	}
	if _, err := DecodeLayers([]byte(layersText("")), 16); err == nil {
		t.Error("what is not sealed is taken")
	}
}

// FuzzDecodeLayers checks that no text takes more memory than its length allows, and that each block has a place in a
// file that is long enough.
func FuzzDecodeLayers(f *testing.F) {
	for text := range layersTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		defer fuzzlimit.Hold(t, len(line))()
		m := layersManifest
		x, err := DecodeLayers(disk.Seal(line), m.BlockBytes)
		if err != nil {
			return
		}
		for offset := range m.ParityBytes() {
			name, place := x.Place(m, offset)
			i := slices.IndexFunc(x.Changes, func(c Changes) bool { return changesName(c.Generation) == name })
			if i < 0 && name != ParityFile || i >= 0 && (place < 0 || place >= x.Changes[i].Bytes) {
				t.Fatalf("byte %d: %s+%d of %+v", offset, name, place, x)
			}
		}
	})
}
