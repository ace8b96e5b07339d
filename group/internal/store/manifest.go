package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"volley/group/internal/tree"
	"volley/group/protection"
	"volley/internal/disk"
)

// Format and Version are those of manifests.
const (
	Format  = "volley-group"
	Version = 6
)

// A Manifest says how the parity of a generation was made, and of what records. All nodes have the same.
type Manifest struct {
	Format     string `json:"format"`
	Version    int    `json:"version"`
	Group      string `json:"group"`           // made up when the group was first protected
	Epoch      int    `json:"epoch,omitempty"` // how often the group has been resized
	Generation int64  `json:"generation"`      // grows with every run of Protect
	Nodes      int    `json:"nodes"`
	Tolerate   int    `json:"tolerate"`
	Field      string `json:"field"`
	Digest     string `json:"digest"` // of files, part by part, and of parity

	DataChunks   int   `json:"data_chunks"` // of every node
	ParityChunks int   `json:"parity_chunks"`
	ChunkBytes   int64 `json:"chunk_bytes"`
	BlockBytes   int64 `json:"block_bytes"` // of a chunk

	Exclude       tree.Excludes `json:"exclude,omitempty"`         // patterns of what is not protected
	OneFileSystem bool          `json:"one_file_system,omitempty"` // and neither is what other file systems have below nodes

	protection.SetIndex

	Names []tree.Name `json:"names,omitempty"` // of the directories, by node: the whole path, or as Names of the settings has it

	Replaces *Predecessor `json:"replaces,omitempty"` // nil: of the first epoch

	Records []RecordSum `json:"members"` // by node

	MAC string `json:"-"` // HMAC of it, as stored; "": it was made without a key
}

// A Predecessor is the epoch of a group that another one makes void: the group has been resized.
type Predecessor struct {
	Epoch int         `json:"epoch"`
	Nodes int         `json:"nodes"`
	Names []tree.Name `json:"names,omitempty"` // of its directories, by node
}

// A RecordSum identifies the [Record] of a node.
type RecordSum struct {
	Bytes  int64  `json:"bytes"` // of the record, compressed
	SHA256 string `json:"sha256"`
}

// A Record is the record of a node: what its data is, and the digests of its data and parity.
type Record struct {
	Bytes   int64         `json:"bytes"` // of its data, with what is between files
	Entries []*tree.Entry `json:"-"`     // in the order of their paths

	// Digests of the parts of its files in blocks, in the order of their places, one after the other.
	FileDigests Digests `json:"segments"`

	// Digests of its parity blocks, in the order of their places.
	Parity Digests `json:"parity"`

	Copies map[tree.Name][]tree.Name `json:"-"` // by file: names, one of each inode but the source's, that hold its bytes
}

// Digests follow each other. Their text, hexadecimal, stays the same wherever they lie.
type Digests []byte

func (d Digests) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d), nil }

func (d *Digests) UnmarshalText(text []byte) (err error) {
	*d, err = hex.AppendDecode(nil, text)
	return err
}

func (m *Manifest) Rows() int { return int((m.ChunkBytes + m.BlockBytes - 1) / m.BlockBytes) }

// Block returns where in a chunk the block of a row begins, and how long it is.
func (m *Manifest) Block(row int) (offset, n int64) {
	offset = int64(row) * m.BlockBytes
	return offset, min(m.BlockBytes, m.ChunkBytes-offset)
}

// OffsetOf returns where the block of a row and chunk lies in the data or parity of a node, which
// has that many chunks: row by row, so that more data comes after all there is.
func (m *Manifest) OffsetOf(row, chunk, chunks int) int64 {
	offset, n := m.Block(row)
	return offset*int64(chunks) + int64(chunk)*n
}

// BlockAt returns the block that has a byte of the data or parity of a node, which has that many chunks, and where it ends.
func (m *Manifest) BlockAt(position int64, chunks int) (row, chunk int, end int64) {
	width := int64(chunks) * m.BlockBytes
	row = int(position / width)
	_, n := m.Block(row)
	chunk = int(position % width / n)
	return row, chunk, m.OffsetOf(row, chunk, chunks) + n
}

// InOrder calls f for all blocks of chunks, in the order of their places.
func (m *Manifest) InOrder(chunks int, f func(row, chunk int, offset, n int64) error) error {
	for row := range m.Rows() {
		_, n := m.Block(row)
		for chunk := range chunks {
			if err := f(row, chunk, m.OffsetOf(row, chunk, chunks), n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Number returns which of all blocks of chunks the one of a row and chunk is, in order.
func (m *Manifest) Number(row, chunk, chunks int) int {
	return row*chunks + chunk
}

func (m *Manifest) ParityBytes() int64 { return int64(m.ParityChunks) * m.ChunkBytes }

// PartParityBytes is the length of a parity of which recover could not make all: who does not read it sees that it is not
// whole.
func (m *Manifest) PartParityBytes() int64 { return m.ParityBytes() + 1 }

// A FilePart is the part of a file in a block.
type FilePart struct {
	File       int // of the extents
	Offset, N  int64
	Row, Chunk int
}

func (m *Manifest) FilePartsOf(x tree.Extents) []FilePart {
	var list []FilePart
	for i := range x {
		end := x[i].Offset + x[i].Size
		for offset := x[i].Offset; offset < end; {
			row, chunk, stop := m.BlockAt(offset, m.DataChunks)
			n := min(stop, end) - offset
			list = append(list, FilePart{i, offset, n, row, chunk})
			offset += n
		}
	}
	return list
}

// Rules say what is not protected.
func (m *Manifest) Rules() tree.Rules {
	return tree.Rules{Exclude: m.Exclude, OneFileSystem: m.OneFileSystem}
}

// Encode returns the manifest as it is stored: a line of JSON, and one with its SHA-256 and, with a key, its HMAC.
func (m *Manifest) Encode(key []byte) ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if m.MAC = MacOf(key, OfManifest, text); m.MAC != "" {
		return SealKeyed(text, m.MAC), nil
	}
	return disk.Seal(text), nil
}

// DecodeManifest reads a manifest as it is stored, and checks it, but not with which key it was made.
func DecodeManifest(data []byte) (*Manifest, error) {
	text, mac, err := UnsealKeyed(data)
	if err != nil {
		return nil, err
	}
	var head struct { // first, as another version has other keys
		Format  string
		Version int
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	switch {
	case head.Format != Format:
		return nil, fmt.Errorf("format: %q: want %q", head.Format, Format)
	case head.Version != Version:
		return nil, &VersionError{head.Version}
	}
	m := &Manifest{MAC: mac}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	return m, m.Validate()
}

// A VersionError says that a manifest is of another version.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("version: %d: this program knows version %d", e.Version, Version)
}

// Validate returns an error that names a field which contradicts others.
func (m *Manifest) Validate() error {
	if len(m.Records) != m.Nodes { // which bounds what a code may take
		return fmt.Errorf("members: %d of %d nodes", len(m.Records), m.Nodes)
	}
	if m.Names != nil && len(m.Names) != m.Nodes {
		return fmt.Errorf("names: %d of %d nodes", len(m.Names), m.Nodes)
	}
	if err := m.validateCode(); err != nil {
		return err
	}
	switch r := m.Replaces; {
	case m.Epoch < 0 || m.Epoch > MostNodes*MostNodes || (m.Epoch == 0) != (r == nil):
		return fmt.Errorf("epoch: %d: want 0, or the one after the epoch that it replaces", m.Epoch)
	case r != nil && (r.Epoch < 0 || r.Epoch >= m.Epoch || r.Nodes < 2 || r.Nodes > MostNodes || r.Names != nil && len(r.Names) != r.Nodes):
		return fmt.Errorf("replaces: epoch %d of %d nodes, with %d names: want an earlier epoch than %d, and a name for each of its nodes", r.Epoch, r.Nodes, len(r.Names), m.Epoch)
	}
	if err := m.Exclude.Validate(); err != nil {
		return err
	}
	if DigestBytes[m.Digest] == 0 {
		return fmt.Errorf("digest: %q: there is no such digest", m.Digest)
	}
	for n, r := range m.Records {
		if digest, err := hex.DecodeString(r.SHA256); err != nil || len(digest) != sha256.Size || r.Bytes < 0 || r.Bytes > MostRecord {
			return fmt.Errorf("members[%d]: want bytes, 0 to %d, and the SHA-256 of the record", n, int64(MostRecord))
		}
	}
	return nil
}

func (m *Manifest) validateCode() error {
	c, err := ShapeOf(m.Nodes, m.Tolerate)
	switch {
	case err != nil:
		return err
	case m.Field != c.Field:
		return fmt.Errorf("field: %q: want %q", m.Field, c.Field)
	case m.DataChunks != c.Data || m.ParityChunks != c.Parity:
		return fmt.Errorf("data_chunks, parity_chunks: %d and %d: want %d and %d", m.DataChunks, m.ParityChunks, c.Data, c.Parity)
	case m.Group == "" || len(m.Group) > 64 || strings.ContainsAny(m.Group, "/\\\x00"):
		return fmt.Errorf("group: %q: want a name", m.Group)
	case m.Generation < 1 || m.Generation > MostGeneration:
		return fmt.Errorf("generation: %d: want 1 to %d", m.Generation, int64(MostGeneration))
	case !m.SetIndex.Valid():
		return fmt.Errorf("set, sets: %d of %d: want 0 of 0, or one of 1 to %d", m.Set, m.Sets, protection.MostSets)
	case m.ChunkBytes < 0 || m.ChunkBytes%Align != 0 || m.ChunkBytes > MostChunk:
		return fmt.Errorf("chunk_bytes: %d: want a multiple of %d, to %d", m.ChunkBytes, Align, int64(MostChunk))
	case m.BlockBytes < Align || m.BlockBytes%Align != 0 || m.BlockBytes > LongBlock:
		return fmt.Errorf("block_bytes: %d: want a multiple of %d, to %d", m.BlockBytes, Align, int64(LongBlock))
	case m.BlockBytes > 4*UsualBlock && (m.ChunkBytes/m.BlockBytes+1)*int64(m.DataChunks+m.ParityChunks) < FewBlocks:
		return fmt.Errorf("block_bytes: %d: too long for chunks of %d bytes", m.BlockBytes, m.ChunkBytes)
	}
	return nil
}

// Encode returns the text of a record: a line of JSON, and one for each entry.
func (x *Record) Encode() ([]byte, error) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	err := lines.Encode(x)
	for _, e := range x.Entries {
		err = cmp.Or(err, lines.Encode(e))
	}
	return text.Bytes(), err
}

func (m *Manifest) DecodeRecord(record []byte) (*Record, error) {
	text, err := Unpack(record)
	if err != nil {
		return nil, err
	}
	return m.ParseRecord(text)
}

func (m *Manifest) ParseRecord(text io.Reader) (*Record, error) {
	x, lines := new(Record), json.NewDecoder(text)
	err := lines.Decode(x)
	for last := tree.Name(""); err == nil; {
		e := new(tree.Entry)
		if err = lines.Decode(e); err == io.EOF {
			return x, m.validateRecord(x)
		}
		if wrong := e.Validate(last); err == nil && wrong != nil { // before the next one: of many wrong ones it makes no long list
			err = fmt.Errorf("entries: %q: %w", string(e.Path), wrong)
		}
		x.Entries, last = append(x.Entries, e), e.Path
	}
	return nil, err
}

func (m *Manifest) validateRecord(x *Record) error {
	if x.Bytes < 0 || x.Bytes > int64(m.DataChunks)*m.ChunkBytes {
		return fmt.Errorf("bytes: %d: more than %d chunks of %d hold", x.Bytes, m.DataChunks, m.ChunkBytes)
	}
	// Rows are compared first, as the product may overflow. What digests there are bounds them.
	if rows := (m.ChunkBytes + m.BlockBytes - 1) / m.BlockBytes; rows > int64(len(x.Parity)) || int64(len(x.Parity)) != int64(m.ParityChunks)*rows*int64(DigestBytes[m.Digest]) {
		return fmt.Errorf("parity: %d bytes of digests of %d chunks of %d blocks", len(x.Parity), m.ParityChunks, rows)
	}
	var end int64
	list := tree.ExtentsOf(x.Entries)
	for _, e := range list {
		if e.Offset < end || e.Offset+e.Size > x.Bytes {
			return fmt.Errorf("entries: %q: bytes %d to %d of %d overlap another file or lie outside", string(e.Path), e.Offset, e.Offset+e.Size, x.Bytes)
		}
		end = e.Offset + e.Size
	}
	missing := func(p tree.Name, kind string) bool {
		e := tree.Find(x.Entries, p)
		return e == nil || e.Type != kind
	}
	found := tree.Name("") // the directory of the last entry
	for _, e := range x.Entries {
		if e.Type == tree.TypeLink && missing(e.Target, tree.TypeFile) {
			return fmt.Errorf("entries: %q: the file of which it is a name is not among them", string(e.Path))
		}
		if parent := tree.Name(path.Dir(string(e.Path))); parent != found {
			if missing(parent, tree.TypeDir) {
				return fmt.Errorf("entries: %q: its directory is not among them", string(e.Path))
			}
			found = parent
		}
	}
	if n, digestBytes := m.countFileParts(list), int64(DigestBytes[m.Digest]); int64(len(x.FileDigests))/digestBytes != n || int64(len(x.FileDigests))%digestBytes != 0 {
		return fmt.Errorf("segments: %d bytes of digests of %d parts of files", len(x.FileDigests), n)
	}
	return nil
}

// countFileParts counts the parts of files: more than memory may hold, so a record has their digests first.
func (m *Manifest) countFileParts(x tree.Extents) int64 {
	var n int64
	for i := range x {
		first, c, _ := m.BlockAt(x[i].Offset, m.DataChunks)
		last, d, _ := m.BlockAt(x[i].Offset+x[i].Size-1, m.DataChunks)
		n += int64(m.Number(last, d, m.DataChunks) - m.Number(first, c, m.DataChunks) + 1)
	}
	return n
}

const (
	Align          = 8       // bytes that chunks and blocks are multiples of: those of symbols of all fields
	MostChunk      = 1 << 56 // bytes, so that sums do not overflow
	LongBlock      = 1 << 26 // bytes, which are read at a time
	FewBlocks      = 64      // of a node, which has more of them before they get longer
	MostGeneration = 1 << 53
	MostRecord     = 1 << 32 // bytes

	// Blocks are what is found damaged, or changed, and coded again.
	UsualBlock = 64 << 10 // bytes
	mostRow    = 8 << 20  // bytes of a node's data, for which blocks are made shorter
	MostBlocks = 1 << 16  // of a node, of data and parity, unless that takes longer blocks than before
)

func Aligned(n int64) int64 { return (n + Align - 1) / Align * Align }

// ChunkBytes is how long chunks are where the node that has most has that many bytes of data, in so many chunks.
func ChunkBytes(bytes int64, chunks int) int64 {
	return Aligned((bytes + int64(chunks) - 1) / int64(chunks))
}

// Geometry sets the sizes of chunks and blocks, for that many bytes of data at the node that
// has most. Blocks stay as long as those of an earlier manifest unless that makes far too many
// or too few of them: with others, all would be coded again.
func (m *Manifest) Geometry(dataBytes int64, earlier *Manifest) {
	d := int64(m.DataChunks)
	chunks := d + int64(m.ParityChunks)
	m.ChunkBytes = ChunkBytes(dataBytes, m.DataChunks)
	for m.BlockBytes = UsualBlock; d*m.BlockBytes > mostRow && m.BlockBytes > UsualBlock/16; {
		m.BlockBytes /= 2
	}
	blocks := func(bytes int64) int64 { return (m.ChunkBytes + bytes - 1) / bytes * chunks }
	for blocks(m.BlockBytes) > MostBlocks && m.BlockBytes < LongBlock {
		m.BlockBytes *= 2
	}
	if m.Follows(earlier) && blocks(earlier.BlockBytes) <= 4*MostBlocks && earlier.BlockBytes <= 4*m.BlockBytes {
		m.BlockBytes = earlier.BlockBytes
	}
}

// Follows reports whether the parity of an earlier generation is made in the way of this one.
func (m *Manifest) Follows(earlier *Manifest) bool {
	return earlier != nil && earlier.Digest == m.Digest && earlier.Nodes == m.Nodes && earlier.Tolerate == m.Tolerate
}

// Keeps reports whether rows of an earlier generation's parity can be kept: m follows it with blocks as long.
func (m *Manifest) Keeps(earlier *Manifest) bool {
	return m.Follows(earlier) && m.BlockBytes == earlier.BlockBytes
}
