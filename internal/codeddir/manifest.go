package codeddir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
)

// ManifestName is the name of the manifest in its directory.
const ManifestName = "manifest.json"

// Format and Version name the form of a manifest.
const (
	Format  = "volley-manifest"
	Version = 1
)

// A Manifest says what the files of a directory are: enough to decode them.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`

	Field      string `json:"field"`
	Matrix     Matrix `json:"matrix"`
	Algorithm  string `json:"algorithm"`
	Processors int    `json:"processors"`
	Ports      int    `json:"ports"`

	SymbolBytes      int   `json:"symbol_bytes"`       // of a symbol in a coded file
	SymbolsPerPacket int64 `json:"symbols_per_packet"` // initial packets are padded to it with zeros

	// BitsPerSymbol says how input bytes became symbols: as a little-endian
	// stream of that many bits for each symbol. It is 0 where the inputs were
	// symbols already.
	BitsPerSymbol int `json:"bits_per_symbol"`

	Files  []Entry `json:"files"`
	Inputs []Entry `json:"inputs"`
}

// Matrix is the matrix A of a run, without need of the files that it may have
// come from.
type Matrix struct {
	Family  string     `json:"family"`            // as the command line takes it, such as "random:7"
	Inverse bool       `json:"inverse"`           // A is the inverse of that
	Points  []PointSet `json:"points,omitempty"`  // of families that have points
	Entries [][]string `json:"entries,omitempty"` // rows of decimal symbol codes, of a matrix from a file
}

// PointSet is a set of points of a matrix, in the order of its rows or columns.
type PointSet struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // decimal symbol codes
}

// An Entry is a file of the manifest: a coded file of the directory, or an input
// that a processor's initial packet was read from. Processor is -1 for a file
// that holds the packets of all.
type Entry struct {
	Name      string `json:"name"`
	Processor int    `json:"processor"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"`
}

// codedName matches the names that a manifest may give to files, none of which
// leads out of the directory.
var codedName = regexp.MustCompile(`^coded\.([0-9]+|csv)$`)

// CodedName returns the name of the coded file of a processor: its number in as
// many digits as the last one has.
func CodedName(proc, processors int) string {
	return fmt.Sprintf("coded.%0*d", len(fmt.Sprint(processors-1)), proc)
}

// ReadManifest reads a manifest. It returns an error for another format or
// version and for a file name that is not one of a coded file.
func ReadManifest(path string) (*Manifest, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func decode(data []byte) (*Manifest, error) {
	var head struct { // first, as another version has other keys
		Format  string
		Version int
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Format != Format || head.Version != Version {
		return nil, fmt.Errorf("format %q version %d: want %q version %d", head.Format, head.Version, Format, Version)
	}
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if !codedName.MatchString(f.Name) {
			return nil, fmt.Errorf("file %q: want a name such as coded.0", f.Name)
		}
	}
	return m, nil
}
