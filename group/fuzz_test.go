package group

import (
	"bytes"
	"testing"
)

// FuzzDecodeManifest checks that no manifest makes the decoder fail but by an error, and
// that what it takes is stored again as it was read.
func FuzzDecodeManifest(f *testing.F) {
	digest := sum(nil)
	m := Manifest{Format: Format, Version: Version, Group: "g", Generation: 1, Nodes: 2, Tolerate: 1, Layout: Full, Field: "2^8", Matrix: Cauchy,
		DataChunks: 1, ParityChunks: 1, ChunkBytes: 8, BlockBytes: 64 << 10}
	for range 2 {
		m.Members = append(m.Members, Member{Bytes: 3, Data: []string{digest}, Parity: []string{digest}, Entries: []Entry{
			{Path: ".", Type: typeDir, Mode: 0o755}, {Path: "\xff", Type: typeFile, Size: 3, SHA256: digest}, {Path: "l", Type: typeSymlink, Target: "x"},
		}})
	}
	text, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	if _, err := DecodeManifest(text); err != nil {
		f.Fatal(err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	f.Add(line)
	f.Add([]byte(`{"format":"volley-group","version":1,"nodes":4,"tolerate":2,"layout":"striped","matrix":"cauchy"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := DecodeManifest(seal(line))
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(again); err != nil {
			t.Fatalf("%v: %s", err, again)
		}
	})
}
