package group

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Format and Version are those of the manifests that this package writes.
const (
	Format  = "volley-group"
	Version = 1
)

// A Manifest says what the data of all nodes is and how its parity was made. All nodes
// of a group have the same.
type Manifest struct {
	Format     string `json:"format"`
	Version    int    `json:"version"`
	Group      string `json:"group"`      // made up when the group was first protected
	Generation int64  `json:"generation"` // grows with every run of Protect
	Nodes      int    `json:"nodes"`
	Tolerate   int    `json:"tolerate"`
	Layout     string `json:"layout"`
	Field      string `json:"field"`
	Matrix     string `json:"matrix"`

	DataChunks   int   `json:"data_chunks"` // of every node
	ParityChunks int   `json:"parity_chunks"`
	ChunkBytes   int64 `json:"chunk_bytes"`
	BlockBytes   int64 `json:"block_bytes"` // of a chunk, that have a digest

	Members []Member `json:"members"` // by node
}

// A Member is what a manifest says of a node.
type Member struct {
	Bytes   int64   `json:"bytes"` // of its data, with what is between files
	Entries []Entry `json:"entries"`

	// SHA-256 of the blocks of its chunks, those of a chunk one after the other. Data is
	// padded with zeros to whole chunks.
	Data   []string `json:"data"`
	Parity []string `json:"parity"`
}

// rows returns how many blocks a chunk has.
func (m *Manifest) rows() int { return int((m.ChunkBytes + m.BlockBytes - 1) / m.BlockBytes) }

// block returns where in a chunk a block begins, and how long it is.
func (m *Manifest) block(row int) (offset, n int64) {
	offset = int64(row) * m.BlockBytes
	return offset, min(m.BlockBytes, m.ChunkBytes-offset)
}

// code returns the code of the manifest.
func (m *Manifest) code() (*code, error) { return newCode(m.Nodes, m.Tolerate, m.Layout, m.Matrix) }

// encode returns the manifest as it is stored: a line of JSON, and one with its SHA-256.
func (m *Manifest) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return seal(text), nil
}

// seal adds a line with the SHA-256 to a line of JSON.
func seal(text []byte) []byte {
	return fmt.Appendf(slices.Clip(text), "\n{\"sha256\":%q}\n", sum(text))
}

// unseal returns the line of JSON if it is what was sealed.
func unseal(data []byte) ([]byte, error) {
	text, rest, _ := bytes.Cut(data, []byte("\n"))
	if string(rest) != string(seal(text)[len(text)+1:]) {
		return nil, errors.New("line 2 is not the SHA-256 of line 1: the file is damaged")
	}
	return text, nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// DecodeManifest reads a manifest as it is stored, and checks it.
func DecodeManifest(data []byte) (*Manifest, error) {
	text, err := unseal(data)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	return m, m.validate()
}

// validate returns an error that names a field which contradicts others.
func (m *Manifest) validate() error {
	if m.Format != Format {
		return fmt.Errorf("format: %q: want %q", m.Format, Format)
	}
	if m.Version != Version {
		return fmt.Errorf("version: %d: this program knows version %d", m.Version, Version)
	}
	if len(m.Members) != m.Nodes { // which bounds what a code may take
		return fmt.Errorf("members: %d of %d nodes", len(m.Members), m.Nodes)
	}
	c, err := m.code()
	switch {
	case err != nil:
		return err
	case m.Field != c.field.Name():
		return fmt.Errorf("field: %q: want %q", m.Field, c.field.Name())
	case m.DataChunks != c.data || m.ParityChunks != c.parity:
		return fmt.Errorf("data_chunks, parity_chunks: %d and %d: want %d and %d", m.DataChunks, m.ParityChunks, c.data, c.parity)
	case m.Group == "" || len(m.Group) > 64 || strings.ContainsAny(m.Group, "/\\\x00"):
		return fmt.Errorf("group: %q: want a name", m.Group)
	case m.Generation < 1:
		return fmt.Errorf("generation: %d: want 1 or more", m.Generation)
	case m.ChunkBytes < 0 || m.ChunkBytes%align != 0 || m.ChunkBytes > mostChunk:
		return fmt.Errorf("chunk_bytes: %d: want a multiple of %d, to %d", m.ChunkBytes, align, int64(mostChunk))
	case m.BlockBytes < align || m.BlockBytes%align != 0 || m.BlockBytes > mostChunk:
		return fmt.Errorf("block_bytes: %d: want a multiple of %d, to %d", m.BlockBytes, align, int64(mostChunk))
	}
	for n := range m.Members {
		if err := m.validateMember(&m.Members[n]); err != nil {
			return fmt.Errorf("members[%d].%w", n, err)
		}
	}
	return nil
}

func (m *Manifest) validateMember(x *Member) error {
	rows := m.rows()
	if x.Bytes < 0 || x.Bytes > int64(m.DataChunks)*m.ChunkBytes {
		return fmt.Errorf("bytes: %d: more than %d chunks of %d hold", x.Bytes, m.DataChunks, m.ChunkBytes)
	}
	for _, list := range []struct {
		name    string
		digests []string
		chunks  int
	}{{"data", x.Data, m.DataChunks}, {"parity", x.Parity, m.ParityChunks}} {
		if len(list.digests) != list.chunks*rows {
			return fmt.Errorf("%s: %d digests of %d chunks of %d blocks", list.name, len(list.digests), list.chunks, rows)
		}
		for i, d := range list.digests {
			if _, err := hex.DecodeString(d); err != nil || len(d) != 64 {
				return fmt.Errorf("%s[%d]: %q: want a SHA-256", list.name, i, d)
			}
		}
	}
	seen := map[Name]string{}
	var end int64
	for _, e := range x.Entries {
		if err := e.validate(seen); err != nil {
			return fmt.Errorf("entries: %q: %w", string(e.Path), err)
		}
	}
	for _, e := range extentsOf(x.Entries) {
		if e.Offset < end || e.Offset+e.Size > x.Bytes {
			return fmt.Errorf("entries: %q: bytes %d to %d of %d overlap another file or lie outside", string(e.Path), e.Offset, e.Offset+e.Size, x.Bytes)
		}
		end = e.Offset + e.Size
	}
	for p := range seen {
		if up := Name(path.Dir(string(p))); p != "." && seen[up] != typeDir {
			return fmt.Errorf("entries: %q: its directory is not among them", string(p))
		}
	}
	return nil
}

// validate checks an entry by itself; those seen so far are by path.
func (e *Entry) validate(seen map[Name]string) error {
	p := string(e.Path)
	switch {
	case p != path.Clean(p) || !filepath.IsLocal(filepath.FromSlash(p)) || strings.Contains(p, "\x00") || p == metaName || strings.HasPrefix(p, metaName+"/"):
		return errors.New("want a path below the node's directory")
	case seen[e.Path] != "":
		return errors.New("is there twice")
	case e.Type != typeFile && e.Type != typeDir && e.Type != typeSymlink:
		return fmt.Errorf("type %q: want %s, %s or %s", e.Type, typeFile, typeDir, typeSymlink)
	case e.Mode > 0o7777:
		return fmt.Errorf("mode %#o: want permission bits", e.Mode)
	case e.Type == typeSymlink && e.Target == "":
		return errors.New("a symbolic link without target")
	case e.Type == typeFile && (e.Size < 0 || e.Offset < 0 || e.Size > mostChunk || e.Offset > mostChunk || len(e.SHA256) != 64):
		return errors.New("size, offset or sha256 out of range")
	}
	seen[e.Path] = e.Type
	return nil
}

// align is what chunks and blocks are multiples of, in bytes: of the symbols of all fields.
const align = 8

// mostChunk bounds a chunk, so that sums do not overflow.
const mostChunk = 1 << 56

// geometry sets the sizes of chunks and blocks, for that many bytes of data at the node that
// has most. Chunks stay as long as those of an earlier manifest where data fits well
// enough: with longer ones, all data would move to others.
func (m *Manifest) geometry(most int64, earlier *Manifest) {
	d := int64(m.DataChunks)
	m.ChunkBytes = ((most+d-1)/d + align - 1) / align * align
	m.BlockBytes = leastBlock
	for (m.ChunkBytes+m.BlockBytes-1)/m.BlockBytes*int64(m.DataChunks+m.ParityChunks) > mostDigests {
		m.BlockBytes *= 2
	}
	if earlier == nil || earlier.Layout != m.Layout || earlier.Nodes != m.Nodes || earlier.Tolerate != m.Tolerate {
		return
	}
	if d == 1 && earlier.BlockBytes >= m.BlockBytes/2 && earlier.BlockBytes <= 2*m.BlockBytes {
		m.BlockBytes = earlier.BlockBytes
	}
	if d > 1 && most <= d*earlier.ChunkBytes && most > d*earlier.ChunkBytes/2 {
		m.ChunkBytes, m.BlockBytes = earlier.ChunkBytes, earlier.BlockBytes
	}
}

// Blocks have a digest each: they are what is found damaged, or changed, and coded again.
const (
	leastBlock  = 64 << 10
	mostDigests = 1024 // of a node
)
