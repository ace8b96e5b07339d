package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"volley/field"
	"volley/files"
	"volley/internal/disk"
)

// The manifest is in its directory twice, under these names.
const (
	FileName = "manifest.json"
	CopyName = "manifest.copy.json"
)

// format and version name the form of a manifest.
const (
	format  = "volley-manifest"
	version = 1
)

// A Manifest says what the files of a directory are: enough to decode them.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`

	Field      string     `json:"field"`
	Matrix     MatrixSpec `json:"matrix"`
	Processors int        `json:"processors"`      // with an initial packet
	Sinks      int        `json:"sinks,omitempty"` // coded packets, where not as many

	SymbolBytes      int   `json:"symbol_bytes"`       // of a symbol in a coded file
	SymbolsPerPacket int64 `json:"symbols_per_packet"` // initial packets are padded to it with zeros

	// BitsPerSymbol says how input bytes became symbols: as a little-endian stream of that many bits for each symbol.
	// It is 0 where the inputs were symbols already.
	BitsPerSymbol int `json:"bits_per_symbol"`

	Files  []CodedFile `json:"files"`
	Inputs []CodedFile `json:"inputs"`

	// SHA256 is that of the text of the manifest without these digits. Manifests had none once.
	SHA256 string `json:"sha256,omitempty"`
}

// MatrixSpec is the matrix A of a run, without need of the files that it may have come from.
type MatrixSpec struct {
	Family  files.Name `json:"family"`          // as the command line takes it, such as "random:7"
	Inverse bool       `json:"inverse"`         // A is the inverse of that
	Order   string     `json:"order,omitempty"` // of the columns, where it is not natural

	// Columns says which column of A each coded file has, where that is not the one of its own number.
	Columns []int       `json:"columns,omitempty"`
	Points  []PointList `json:"points,omitempty"`  // of families that have points
	Entries [][]string  `json:"entries,omitempty"` // rows of decimal symbol codes, of a matrix from a file
}

// PointList is a set of points of a matrix, in the order of its rows or columns.
type PointList struct {
	Name   string   `json:"name"`
	Values []string `json:"values"` // decimal symbol codes
}

// A CodedFile is a file of the manifest: a coded file of the directory, or an input of a processor.
type CodedFile struct {
	Name      files.Name `json:"name"`
	Processor int        `json:"processor"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"`
}

// codedName matches the names of coded files, none of which leads out of the directory.
var codedName = regexp.MustCompile(`^(coded\.[0-9]+)(?:\.([1-9][0-9]{0,17}))?$`)

// CodedName returns the name of the coded file of a processor: its number in as many digits as the last one has. Behind
// it is the number of the run, unless that is 0: one that replaces a result has a number of its own.
func CodedName(proc, processors int, run int64) string {
	name := fmt.Sprintf("coded.%0*d", len(fmt.Sprint(processors-1)), proc)
	if run > 0 {
		name = fmt.Sprint(name, ".", run)
	}
	return name
}

// RunOf returns the number of the run in the name of a coded file, and whether the name is one.
func RunOf(name string) (run int64, valid bool) {
	parts := codedName.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	run, _ = strconv.ParseInt(parts[2], 10, 64) // 0 where it has none
	return run, true
}

// Text returns the text of a manifest, with its format, version and SHA-256.
func (m *Manifest) Text() ([]byte, error) {
	sealed := *m
	sealed.Format, sealed.Version, sealed.SHA256 = format, version, strings.Repeat("0", 64)
	text, err := json.MarshalIndent(sealed, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	bounds := sealOf.FindSubmatchIndex(text)
	copy(text[bounds[2]:], disk.Sum(slices.Concat(text[:bounds[2]], text[bounds[3]:])))
	return text, nil
}

// sealOf finds the digits of the SHA-256 at the end of a manifest.
var sealOf = regexp.MustCompile(`"sha256"\s*:\s*"([0-9a-f]{64})"\s*}\s*$`)

// Parse reads the text of a manifest. It returns an error for another format or version, for a file name that is not
// one of a coded file, and where the manifest has another SHA-256 than it says.
func Parse(data []byte) (*Manifest, error) {
	var head struct { // first, as another version has other keys
		Format  string
		Version int
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, wrong(data, err)
	}
	if head.Format != format || head.Version != version {
		return nil, fmt.Errorf("format %q version %d: want %q version %d", head.Format, head.Version, format, version)
	}
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, wrong(data, err)
	}
	if m.SHA256 != "" {
		bounds := sealOf.FindSubmatchIndex(data)
		if bounds == nil || m.SHA256 != disk.Sum(slices.Concat(data[:bounds[2]], data[bounds[3]:])) {
			return nil, errors.New("damaged: the text has another SHA-256 than it says; without the key sha256 it is not checked")
		}
	}
	for _, f := range m.Files {
		if _, valid := RunOf(string(f.Name)); !valid {
			return nil, fmt.Errorf("file %q: want a name such as coded.0 or coded.0.1", string(f.Name))
		}
	}
	return m, nil
}

// CodedPackets returns how many coded packets there are.
func (m *Manifest) CodedPackets() int {
	if m.Sinks > 0 {
		return m.Sinks
	}
	return m.Processors
}

// Validate returns the field, and an error when m is not as a run writes it, which names the key.
func (m *Manifest) Validate() (field.Field, error) {
	f, err := field.Parse(m.Field)
	if err != nil {
		return nil, err
	}
	packing := field.PackingOf(f)
	switch {
	case m.Processors < 1:
		return nil, fmt.Errorf("processors: %d: want 1 or more", m.Processors)
	case m.Sinks < 0:
		return nil, fmt.Errorf("sinks: %d: want 1 or more, or none", m.Sinks)
	case m.SymbolBytes != f.SymbolBytes():
		return nil, fmt.Errorf("symbol_bytes: %d: a symbol of %s has %d", m.SymbolBytes, m.Field, f.SymbolBytes())
	case m.SymbolsPerPacket < 0 || m.SymbolsPerPacket > mostSymbols:
		return nil, fmt.Errorf("symbols_per_packet: %d: want 0 to %d", m.SymbolsPerPacket, int64(mostSymbols))
	case m.BitsPerSymbol != 0 && m.BitsPerSymbol != packing.Bits():
		return nil, fmt.Errorf("bits_per_symbol: %d: want 0, as for symbols, or %d, what a symbol of %s holds", m.BitsPerSymbol, packing.Bits(), m.Field)
	}
	packet, coded := m.SymbolsPerPacket*int64(m.SymbolBytes), m.CodedPackets()
	err = validate("files", m.Files, coded, func(f CodedFile) error {
		run, _ := RunOf(string(f.Name))
		switch want := CodedName(f.Processor, coded, 0); {
		case string(f.Name) != CodedName(f.Processor, coded, run):
			return fmt.Errorf("name: %q: want %s for processor %d, or that with a number behind it", string(f.Name), want, f.Processor)
		case f.Bytes != packet:
			return fmt.Errorf("bytes: %d: want %d, symbols_per_packet times symbol_bytes", f.Bytes, packet)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	longest := int64(0)
	err = validate("inputs", m.Inputs, m.Processors, func(input CodedFile) error {
		if input.Bytes > packet {
			return fmt.Errorf("bytes: %d: want at most %d, symbols_per_packet times symbol_bytes", input.Bytes, packet)
		}
		symbols := input.Bytes / int64(m.SymbolBytes)
		if m.BitsPerSymbol != 0 {
			symbols = packing.Symbols(input.Bytes)
		}
		longest = max(longest, symbols)
		switch {
		case m.BitsPerSymbol == 0 && input.Bytes%int64(m.SymbolBytes) != 0:
			return fmt.Errorf("bytes: %d: a symbol of %s has %d", input.Bytes, m.Field, m.SymbolBytes)
		case symbols > m.SymbolsPerPacket:
			return fmt.Errorf("bytes: %d: more than the %d symbols of a packet hold", input.Bytes, m.SymbolsPerPacket)
		}
		return nil
	})
	if err == nil && longest != m.SymbolsPerPacket { // else inputs that all survive would be padded to any length
		err = fmt.Errorf("symbols_per_packet: %d: the longest of the inputs has %d", m.SymbolsPerPacket, longest)
	}
	return f, err
}

// validate returns an error unless the list has an entry for each processor in order.
func validate(key string, list []CodedFile, processors int, check func(CodedFile) error) error {
	if len(list) != processors {
		return fmt.Errorf("%s: %d of them: want %d", key, len(list), processors)
	}
	for k, f := range list {
		err := error(nil)
		switch {
		case f.Processor != k:
			err = fmt.Errorf("processor: %d: want %d", f.Processor, k)
		case f.Bytes < 0:
			err = fmt.Errorf("bytes: %d: want 0 or more", f.Bytes)
		case !digest.MatchString(f.SHA256):
			err = fmt.Errorf("sha256: %q: want 64 lower-case hexadecimal digits", f.SHA256)
		default:
			err = check(f)
		}
		if err != nil {
			return fmt.Errorf("%s[%d].%w", key, k, err)
		}
	}
	return nil
}

// mostSymbols is more than any disk holds, and few enough to reckon with.
const mostSymbols = 1 << 50

var digest = regexp.MustCompile("^[0-9a-f]{64}$")
