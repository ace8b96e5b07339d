package store

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"volley/group/internal/tree"
	"volley/internal/disk"
	"volley/internal/fuzzlimit"
)

// manifests are changes of a small one, and why what comes of it is refused.
var manifests = []struct {
	what   string
	change func(m *Manifest)
	want   string // "": it is taken
}{
	{"nothing", func(*Manifest) {}, ""},
	{"format", func(m *Manifest) { m.Format = "volley" }, `format: "volley": want "volley-group"`},
	{"version 0", func(m *Manifest) { m.Version = 0 }, "version: 0: this program knows version 6"},
	{"version 1", func(m *Manifest) { m.Version = 1 }, "version: 1"},
	{"version 7", func(m *Manifest) { m.Version = 7 }, "version: 7"},
	{"a record less", func(m *Manifest) { m.Records = m.Records[1:] }, "members: 1 of 2 nodes"},
	{"a name less", func(m *Manifest) { m.Names = []tree.Name{"a"} }, "names: 1 of 2 nodes"},
	{"a record more", func(m *Manifest) { m.Records = append(m.Records, m.Records[0]) }, "members: 3 of 2 nodes"},
	{"R", func(m *Manifest) { m.Tolerate = 2 }, "cannot tolerate the loss of 2 of 2 nodes: want 1 to 1"},
	{"field", func(m *Manifest) { m.Field = "2^16" }, `field: "2^16": want "2^8"`},
	{"data chunks", func(m *Manifest) { m.DataChunks = 2 }, "data_chunks, parity_chunks: 2 and 1: want 1 and 1"},
	{"parity chunks", func(m *Manifest) { m.ParityChunks = 2 }, "data_chunks, parity_chunks: 1 and 2: want 1 and 1"},
	{"no group", func(m *Manifest) { m.Group = "" }, `group: "": want a name`},
	{"a long group", func(m *Manifest) { m.Group = long(65) }, "group:"},
	{"not too long", func(m *Manifest) { m.Group = long(64) }, ""},
	{"a path", func(m *Manifest) { m.Group = "a/b" }, "group:"},
	{"generation 0", func(m *Manifest) { m.Generation = 0 }, "generation: 0: want 1 to 9007199254740992"},
	{"the last generation", func(m *Manifest) { m.Generation = MostGeneration }, ""},
	{"one more", func(m *Manifest) { m.Generation = MostGeneration + 1 }, "generation:"},
	{"chunks below 0", func(m *Manifest) { m.ChunkBytes = -8 }, "chunk_bytes: -8: want a multiple of 8"},
	{"chunks of 0", func(m *Manifest) { m.ChunkBytes = 0 }, ""},
	{"chunks of 12", func(m *Manifest) { m.ChunkBytes = 12 }, "chunk_bytes: 12"},
	{"the largest chunk", func(m *Manifest) { m.ChunkBytes = MostChunk }, ""},
	{"a larger one", func(m *Manifest) { m.ChunkBytes = MostChunk + Align }, "chunk_bytes:"},
	{"blocks of 0", func(m *Manifest) { m.BlockBytes = 0 }, "block_bytes: 0: want a multiple of 8"},
	{"the smallest block", func(m *Manifest) { m.BlockBytes = Align }, ""},
	{"blocks of 12", func(m *Manifest) { m.BlockBytes = 12 }, "block_bytes: 12"},
	{"the largest block", func(m *Manifest) {
		m.BlockBytes, m.ChunkBytes = LongBlock, FewBlocks/2*LongBlock
	}, ""},
	{"a larger one", func(m *Manifest) {
		m.BlockBytes, m.ChunkBytes = LongBlock+Align, FewBlocks*LongBlock
	}, "block_bytes:"},
	{"blocks of any chunk", func(m *Manifest) { m.BlockBytes = 4 * UsualBlock }, ""},
	{"blocks that are few", func(m *Manifest) {
		m.BlockBytes = 4*UsualBlock + Align
		m.ChunkBytes = (FewBlocks/2 - 2) * m.BlockBytes
	}, "too long for chunks of 7864560 bytes"},
	{"as many as there have to be", func(m *Manifest) {
		m.BlockBytes = 4*UsualBlock + Align
		m.ChunkBytes = (FewBlocks/2 - 1) * m.BlockBytes
	}, ""},
	{"longer ones", func(m *Manifest) { m.BlockBytes = 4*UsualBlock + Align }, "block_bytes: 262152: too long for chunks of 8 bytes"},
	{"digest", func(m *Manifest) { m.Digest = "md5" }, `digest: "md5": there is no such digest`},
	{"bytes of a record", func(m *Manifest) { m.Records[1].Bytes = -1 }, "members[1]: want bytes, 0 to 4294967296, and the SHA-256"},
	{"the most bytes of a record", func(m *Manifest) { m.Records[1].Bytes = MostRecord }, ""},
	{"more", func(m *Manifest) { m.Records[1].Bytes = MostRecord + 1 }, "members[1]:"},
	{"no digest", func(m *Manifest) { m.Records[1].SHA256 = "" }, "members[1]:"},
	{"an epoch of nothing", func(m *Manifest) { m.Epoch = 1 }, "epoch: 1: want 0, or"},
	{"nothing replaced", func(m *Manifest) { m.Replaces = &Predecessor{Epoch: 0, Nodes: 3} }, "epoch: 0: want 0, or"},
	{"an epoch", func(m *Manifest) {
		m.Epoch, m.Replaces = 1, &Predecessor{Epoch: 0, Nodes: 3, Names: []tree.Name{"a", "b", "c"}}
	}, ""},
	{"a later one replaced", func(m *Manifest) { m.Epoch, m.Replaces = 1, &Predecessor{Epoch: 1, Nodes: 3} }, "replaces: epoch 1 of 3 nodes"},
	{"few names replaced", func(m *Manifest) {
		m.Epoch, m.Replaces = 1, &Predecessor{Epoch: 0, Nodes: 3, Names: []tree.Name{"a"}}
	}, "replaces: epoch 0 of 3 nodes, with 1 names"},
	{"no bytes of a record", func(m *Manifest) { m.Records[1].Bytes = 0 }, ""},
	{"no digits", func(m *Manifest) { m.Records[1].SHA256 = strings.Repeat("x", 64) }, "members[1]:"},
	{"few digits", func(m *Manifest) { m.Records[1].SHA256 = "00" }, "members[1]:"},
}

func long(n int) string { return strings.Repeat("g", n) }

// TestManifestRefused changes a manifest in one way at a time: what contradicts the rest is
// refused by name, and what is at a bound is taken.
func TestManifestRefused(t *testing.T) {
	t.Parallel()
	for _, x := range manifests {
		m := smallManifest()
		x.change(m)
		text, err := m.Encode(nil)
		must(t, err)
		_, err = DecodeManifest(text)
		if (x.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v: want %q", x.what, err, x.want)
		}
	}
	text, err := smallManifest().Encode(nil)
	must(t, err)
	for _, at := range []int{3, len(text) - 5} {
		damaged := slices.Clone(text)
		damaged[at] ^= 1
		if _, err := DecodeManifest(damaged); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("byte %d differs: %v", at, err)
		}
	}
	for _, line := range []string{"", "[]", `{"format":1}`, `{"format":"volley-group","version":2,"nodes":"2"}`, `{"format":"volley-group","version":1,"nodes":"2"}`} {
		if _, err := DecodeManifest(disk.Seal([]byte(line))); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

// TestRecordRefused does the same with the record of a node, whose chunk has two blocks of 8 bytes.
func TestRecordRefused(t *testing.T) {
	m := smallManifest()
	m.ChunkBytes, m.BlockBytes = 16, 8
	add := func(e tree.Entry) func(*Record) {
		return func(x *Record) { x.Entries = append(x.Entries, &e) }
	}
	at := func(i int, change func(*tree.Entry)) func(*Record) {
		return func(x *Record) { change(x.Entries[i]) }
	}
	for _, c := range []struct {
		what   string
		change func(x *Record)
		want   string // "": it is taken
	}{
		{"nothing", func(*Record) {}, ""},
		{"bytes below 0", func(x *Record) { x.Bytes = -1 }, "bytes: -1"},
		{"all bytes", func(x *Record) { x.Bytes = 16 }, ""},
		{"more bytes", func(x *Record) { x.Bytes = 17 }, "bytes: 17: more than 1 chunks of 16 hold"},
		{"parity", func(x *Record) { x.Parity = x.Parity[32:] }, "parity: 32 bytes of digests of 1 chunks of 2 blocks"},
		{"a part less", func(x *Record) { x.FileDigests = x.FileDigests[32:] }, "segments: 64 bytes of digests of 3 parts of files"},
		{"outside", at(3, func(e *tree.Entry) { e.Path = "../f" }), `entries: "../f": want a path below`},
		{"not clean", at(3, func(e *tree.Entry) { e.Path = "d/../f" }), "want a path below"},
		{"absolute", at(3, func(e *tree.Entry) { e.Path = "/f" }), "want a path below"},
		{"a zero", at(3, func(e *tree.Entry) { e.Path = "f\x00" }), "want a path below"},
		{"Volley's own", at(1, func(e *tree.Entry) { e.Path = tree.MetaName }), "want a path below"},
		{"below that", at(3, func(e *tree.Entry) { e.Path = tree.MetaName + "/f" }), "want a path below"},
		{"named like that", func(x *Record) {
			x.Entries = slices.Insert(x.Entries, 1, &tree.Entry{Path: tree.MetaName + "x", Type: tree.TypeFile})
		}, ""},
		{"twice", add(tree.Entry{Path: "l", Type: tree.TypeDir}), `entries: "l": is there twice`},
		{"not in order", add(tree.Entry{Path: "e", Type: tree.TypeDir}), `entries: "e": is there twice, or not in the order of paths`},
		{"type", at(2, func(e *tree.Entry) { e.Type = "pipe" }), `type "pipe": want file, dir, symlink or link`},
		{"all mode bits", at(3, func(e *tree.Entry) { e.Mode = 0o7777 }), ""},
		{"mode", at(3, func(e *tree.Entry) { e.Mode = 0o10000 }), "mode 010000: want permission bits"},
		{"nanoseconds", at(3, func(e *tree.Entry) { e.Nanoseconds = 999_999_999 }), ""},
		{"a second", at(3, func(e *tree.Entry) { e.Nanoseconds = 1_000_000_000 }), "mtime_ns 1000000000: want 0 to 999999999"},
		{"before it", at(3, func(e *tree.Entry) { e.Nanoseconds = -1 }), "mtime_ns -1"},
		{"no target", at(4, func(e *tree.Entry) { e.Target = "" }), `entries: "l": a symbolic link without target`},
		{"a name of no file", add(tree.Entry{Path: "m", Type: tree.TypeLink, Target: "d"}), `entries: "m": the file of which it is a name is not among them`},
		{"another name", add(tree.Entry{Path: "m", Type: tree.TypeLink, Target: "f"}), ""},
		{"owner below 0", at(3, func(e *tree.Entry) { e.Owner = &tree.Owner{UID: -1, GID: 0} }), "owner -1:0: want 0 to 4294967294"},
		{"the last group", at(3, func(e *tree.Entry) { e.Owner = &tree.Owner{UID: 0, GID: tree.MostID} }), ""},
		{"one more", at(3, func(e *tree.Entry) { e.Owner = &tree.Owner{UID: 0, GID: tree.MostID + 1} }), "owner 0:4294967295"},
		{"size below 0", at(3, func(e *tree.Entry) { e.Size = -1 }), "size, offset or room out of range"},
		{"offset below 0", at(3, func(e *tree.Entry) { e.Offset = -1 }), "size, offset or room out of range"},
		{"size", at(3, func(e *tree.Entry) { e.Size = MostChunk + 1 }), "size, offset or room out of range"},
		{"room below 0", at(3, func(e *tree.Entry) { e.Room = -1 }), "size, offset or room out of range"},
		{"offset", at(3, func(e *tree.Entry) { e.Offset = MostChunk + 1 }), "size, offset or room out of range"},
		{"the largest offset of no bytes", at(2, func(e *tree.Entry) { e.Size, e.Offset = 0, MostChunk }), "segments: 96 bytes"},
		{"the largest size", at(3, func(e *tree.Entry) { e.Size = MostChunk }), "lie outside"},
		{"overlapping", at(2, func(e *tree.Entry) { e.Offset = 9 }), `entries: "d/g": bytes 9 to 12 of 13 overlap another file`},
		{"outside its bytes", at(2, func(e *tree.Entry) { e.Size = 4 }), "bytes 10 to 14 of 13"},
		{"no directory", at(1, func(e *tree.Entry) { e.Path = "c" }), `entries: "d/g": its directory is not among them`},
		{"a file for a directory", at(1, func(e *tree.Entry) { e.Type = tree.TypeFile }), "its directory is not among them"},
		{"no root", at(0, func(e *tree.Entry) { e.Path = "a" }), "its directory is not among them"},
	} {
		x := &Record{Bytes: 13, Parity: make([]byte, 64), FileDigests: make([]byte, 96), Entries: []*tree.Entry{
			{Path: ".", Type: tree.TypeDir, Mode: 0o755}, {Path: "d", Type: tree.TypeDir}, {Path: "d/g", Type: tree.TypeFile, Size: 3, Offset: 10},
			{Path: "f", Type: tree.TypeFile, Size: 10}, {Path: "l", Type: tree.TypeSymlink, Target: "x"},
		}}
		c.change(x)
		text, err := x.Encode()
		must(t, err)
		_, err = m.ParseRecord(bytes.NewReader(text))
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: want %q", c.what, err, c.want)
		}
	}
	for _, text := range []string{"", "[]", "{}", "{}\n7", "{}\n[]", "{}\nnull", "{}\n{", "{}\n}"} {
		if _, err := m.ParseRecord(strings.NewReader(text)); err == nil {
			t.Errorf("%s was taken for a record", text)
		}
	}
}

// TestRecordBounded takes lists of many entries of little text, in little memory.
func TestRecordBounded(t *testing.T) {
	m := smallManifest()
	for _, one := range []string{"{}\n", "null\n", `{"path":"a"}`, `{"path":"a","type":"dir"}`} {
		text := []byte("{}" + strings.Repeat(one, 4<<20/len(one)))
		end := fuzzlimit.Hold(t, len(text)/MostPacked) // as little as a record with that text may have
		if _, err := m.ParseRecord(bytes.NewReader(text)); err == nil {
			t.Errorf("a list of %s was taken", one)
		}
		end()
	}
}

// TestNameOf takes names of .volley apart.
func TestNameOf(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		kind string // "": it is of no generation
		g    int64
	}{
		{"generation.1", GenerationName, 1}, {"pending.12", PendingName, 12}, {"generation.9007199254740992", GenerationName, 1 << 53},
		{"manifest.1.json", "", 0}, {"generation.3.json", "", 0}, {"generation.0", "", 0}, {"pending.-1", "", 0}, {"pending.01", "", 0},
		{"generation.9007199254740993", "", 0}, {"generation", "", 0}, {"replaced", "", 0},
	} {
		kind, g, ok := NameOf(x.name)
		if ok != (x.kind != "") || ok && (kind != x.kind || g != x.g) {
			t.Errorf("%s: %q, generation %d, %v", x.name, kind, g, ok)
		}
	}
	for name, want := range map[string]bool{"tmp-parity": true, ".volley-x": true, "generation.1": false, "replaced": false} {
		if Leftover(name) != want {
			t.Errorf("%s is left over: %v", name, !want)
		}
	}
}

// TestPack compresses records: those of many names get much shorter, and none shorter than unpack takes. Bytes that have
// become much more are refused, with what is damaged and what is cut off.
func TestPack(t *testing.T) {
	t.Parallel()
	var names []byte
	for i := range 10_000 {
		names = fmt.Appendf(names, `{"path":"some/directory/%06d","type":"file","mode":420,"mtime":17%08d,"size":%d},`, i, i*i, i%77)
	}
	for _, text := range [][]byte{nil, []byte("[]"), names, bytes.Repeat([]byte("a"), 1<<20)} {
		record := Pack(text)
		if is, err := unpacked(record); err != nil || !bytes.Equal(is, text) || len(text) > MostPacked*len(record) {
			t.Errorf("%d bytes, %d compressed: %v", len(text), len(record), err)
		}
	}
	if n := len(Pack(names)); n > len(names)/4 {
		t.Errorf("%d bytes are compressed to %d", len(names), n)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(make([]byte, 1<<20))
	must(t, z.Close())
	record, damaged := Pack(names), Pack(names)
	damaged[len(damaged)/2] ^= 1
	for want, record := range map[string][]byte{"have a text of more than": b.Bytes(), "unexpected EOF": record[:len(record)-3], "invalid header": []byte("[] and more"), "gzip: invalid checksum": damaged} {
		if _, err := unpacked(record); err == nil || !strings.Contains(err.Error(), want) && want != "gzip: invalid checksum" {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

func unpacked(record []byte) ([]byte, error) {
	text, err := Unpack(record)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(text)
}

// smallManifest is of two nodes.
func smallManifest() *Manifest {
	return &Manifest{
		Format: Format, Version: Version, Group: "g", Generation: 1, Nodes: 2, Tolerate: 1, Field: "2^8", Digest: SHA256,
		DataChunks: 1, ParityChunks: 1, ChunkBytes: 8, BlockBytes: 64 << 10, Records: []RecordSum{{Bytes: 1, SHA256: disk.Sum(nil)}, {Bytes: 1, SHA256: disk.Sum(nil)}},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
