package group

import (
	"bytes"
	"strings"
	"testing"

	"volley/group/internal/store"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/fuzzlimit"
)

// FuzzDecodeManifest checks that no manifest makes the decoder fail but by an error, and
// that what it takes is stored again as it was read.
func FuzzDecodeManifest(f *testing.F) {
	m := fuzzManifest()
	text, err := m.Encode(nil)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := store.DecodeManifest(text); err != nil {
		f.Fatal(err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	f.Add(line)
	f.Add([]byte(`{"format":"volley-group","version":6,"nodes":4,"tolerate":2}`))
	encodes(f, func(line []byte) (*store.Manifest, error) { return store.DecodeManifest(disk.Seal(line)) }, func(m *store.Manifest) ([]byte, error) { return m.Encode(nil) }, store.DecodeManifest)
}

// encodes fuzzes what decodes: what it takes is decoded once more after it was encoded.
func encodes[T any](f *testing.F, decode func([]byte) (T, error), encode func(T) ([]byte, error), again func([]byte) (T, error)) {
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzzlimit.Hold(t, len(text))()
		x, err := decode(text)
		if err != nil {
			return
		}
		encoded, err := encode(x)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again(encoded); err != nil {
			t.Fatalf("%v: %s", err, encoded)
		}
	})
}

// fuzzManifest is a small manifest.
func fuzzManifest() *store.Manifest {
	return &store.Manifest{
		Format: store.Format, Version: store.Version, Group: "g", Generation: 1, Nodes: 2, Tolerate: 1, Field: "2^8", Digest: SHA256,
		DataChunks: 1, ParityChunks: 1, ChunkBytes: 8, BlockBytes: 64 << 10, Records: []store.RecordSum{{Bytes: 1, SHA256: disk.Sum(nil)}, {Bytes: 1, SHA256: disk.Sum(nil)}},
	}
}

// FuzzDecodeMember does the same for records.
func FuzzDecodeMember(f *testing.F) {
	m := fuzzManifest()
	digest := make([]byte, 32)
	record := &store.Record{Bytes: 3, FileDigests: digest, Parity: digest, Entries: []*tree.Entry{
		{Path: ".", Type: tree.TypeDir, Mode: 0o755}, {Path: "l", Type: tree.TypeSymlink, Target: "x"}, {Path: "\xff", Type: tree.TypeFile, Size: 3},
	}}
	text, err := record.Encode()
	if err != nil {
		f.Fatal(err)
	}
	if _, err := m.ParseRecord(bytes.NewReader(text)); err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	parse := func(text []byte) (*store.Record, error) { return m.ParseRecord(bytes.NewReader(text)) }
	encodes(f, parse, (*store.Record).Encode, parse)
}

// FuzzUnpack reads records that are compressed: what is no record is refused, and nothing takes more memory than its
// length allows.
func FuzzUnpack(f *testing.F) {
	for _, text := range []string{"", "{}", strings.Repeat("{}", 10_000)} {
		f.Add(store.Pack([]byte(text)))
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		defer fuzzlimit.Hold(t, store.MostPacked*len(record))()
		text, err := unpack(record)
		if len(text) > store.MostPacked*len(record)+1 {
			t.Fatalf("%d bytes have become %d", len(record), len(text))
		}
		if err != nil {
			return
		}
		if again, err := unpack(store.Pack(text)); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
