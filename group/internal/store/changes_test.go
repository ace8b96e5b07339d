package store

import (
	"slices"
	"strings"
	"testing"

	"volley/internal/disk"
	"volley/internal/fuzzlimit"
)

// changesManifest has three rows of two blocks of parity: of 16, 16 and 8 bytes each.
var changesManifest = &Manifest{DataChunks: 2, ParityChunks: 2, BlockBytes: 16, ChunkBytes: 40}

// changesTexts are lines of ChangesFile, and what is wrong with them.
var changesTexts = map[string]string{
	`{"format":"volley-group","base":80,"files":[{"generation":7,"bytes":48,"blocks":[[1,3,0],[5,6,2]]},{"generation":9,"bytes":0,"blocks":[]}],"later":1}`: "",
	`{"format":"volley","base":80}`:        "format",
	`{"format":"volley-group","base":-1}`:  "base",
	`{"format":"volley-group","base":1e9}`: "base",
	`{"format":"volley-group","files":[` + strings.Repeat(`{"generation":1},`, mostFiles) + `{"generation":1}]}`: "files",
	changesText(`{"generation":0}`):                                                            "generation 0",
	changesText(`{"generation":7},{"generation":7}`):                                           "after generation 7",
	changesText(`{"generation":7,"bytes":-1}`):                                                 "-1 bytes",
	changesText(`{"generation":7,"bytes":9000000000000000000}`):                                "bytes",
	changesText(`{"generation":7,"bytes":48,"blocks":[[3,3,0]]}`):                              "[3 3 0]",
	changesText(`{"generation":7,"bytes":48,"blocks":[[1,3,0],[2,4,0]]}`):                      "after block 3",
	changesText(`{"generation":7,"bytes":48,"blocks":[[-1,1,0]]}`):                             "[-1 1 0]",
	changesText(`{"generation":7,"bytes":48,"blocks":[[0,1,-1]]}`):                             "[0 1 -1]",
	changesText(`{"generation":7,"bytes":48,"blocks":[[0,2,2]]}`):                              "of 3 positions",
	changesText(`{"generation":7,"bytes":48,"blocks":[[1,9223372036854775807,9]]}`):            "of 3 positions",
	changesText(`{"generation":7,"bytes":48,"blocks":[[0,1,9223372036854775807]]}`):            "of 3 positions",
	changesText(`{"generation":7,"bytes":48,"blocks":[[0,9223372036854775808,0]]}`):            "9223372036854775808",
	changesText(`{"generation":7,"bytes":72057594037927936,"blocks":[[0,281474976710656,0]]}`): "",
}

func changesText(changes string) string {
	return `{"format":"volley-group","base":80,"files":[` + changes + `]}`
}

// TestDecodeChanges refuses what contradicts itself, and says what.
func TestDecodeChanges(t *testing.T) {
	for text, wrong := range changesTexts {
		_, err := DecodeChanges(disk.Seal([]byte(text)), 16)
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%.200s: %v: want %q", text, err, wrong)
		}
	}
	if _, err := DecodeChanges([]byte(changesText("")), 16); err == nil {
		t.Error("what is not sealed is taken")
	}
}

// FuzzDecodeChanges checks that no text takes more memory than its length allows, and that each block has a place in a
// file that is long enough.
func FuzzDecodeChanges(f *testing.F) {
	for text := range changesTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		defer fuzzlimit.Hold(t, len(line))()
		m := changesManifest
		x, err := DecodeChanges(disk.Seal(line), m.BlockBytes)
		if err != nil {
			return
		}
		for offset := range m.ParityBytes() {
			name, place := x.Place(m, offset)
			i := slices.IndexFunc(x.Files, func(c ChangedBlocks) bool { return changesName(c.Generation) == name })
			if i < 0 && name != ParityFile || i >= 0 && (place < 0 || place >= x.Files[i].Bytes) {
				t.Fatalf("byte %d: %s+%d of %+v", offset, name, place, x)
			}
		}
	})
}
