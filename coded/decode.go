package coded

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley"
	"volley/algo"
	"volley/collective"
	"volley/field"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/transport"
)

// A Decoding says what [Decode] does. All ranks give the same, except for Coded, Survivors and the directory.
type Decoding struct {
	Options

	// Coded is a directory that Encode has made. Ranks share it or have their own, each with some of the files; {rank}
	// in it stands for the number of the rank. A rank that has lost its directory takes the manifest of another one.
	Coded string

	// Survivors are files of inputs, whatever their names are now: their lengths and SHA-256 tell
	// which. A directory stands for the regular files in it. Where there are several ranks, {rank}
	// stands for the numbers of the processors of this one, and a file need not be there.
	Survivors []string
}

// A Decoded says what [Decode] has done.
type Decoded struct {
	Report *volley.Report // of all ranks
	Inputs int            // K
	From   []string       // the coded files that were decoded from, one for each input that was lost
}

// Decode decodes the inputs of an [Encode] into a directory, those that have survived too. Each gets the last part of
// the name it had; input.<k> if two of these are equal or one cannot be a file of the directory. Each is compared with
// its SHA-256 in the manifest before any of them gets its name.
//
// Every rank of t calls it. A rank writes the inputs that it has. An input that is lost goes to the rank of its
// processor. Where that rank has survivors of others, it goes to a rank that has fewer.
//
// The errors are an [*InputError], also where too few files are left, a [*WrongError], a
// [*ChangedError], those of volley.Encoder.Run and of the file system.
func Decode(ctx context.Context, t transport.Transport, d Decoding) (*Decoded, error) {
	j := &decodeJob{run: newRun(ctx, t, d.Options, "decode"), d: d}
	defer j.close()
	result, err := j.do()
	return result, j.fail(err)
}

type decodeJob struct {
	run
	d         Decoding
	stored    *stored
	packets   *filesAtHand
	names     []string // of the files to write
	survivors []string // the files that this rank names
	sources   []string // the files that may be read
	encoder   *volley.Encoder
}

func (j *decodeJob) close() {
	if j.packets != nil {
		j.packets.close()
	}
	if j.stored != nil {
		j.stored.Close()
	}
}

func (j *decodeJob) do() (*Decoded, error) {
	if err := j.openManifest(); err != nil {
		return nil, err
	}
	if err := j.together(j.checkOutput); err != nil {
		return nil, err
	}
	if err := j.choose(); err != nil {
		return nil, err
	}
	m := j.stored.Manifest
	if err := j.together(j.compile); err != nil {
		return nil, err
	}
	result := &Decoded{Inputs: m.Processors}
	for _, s := range j.packets.slots {
		if s.coded >= 0 {
			result.From = append(result.From, m.Files[s.coded].Name)
		}
	}
	var err error
	if j.DryRun {
		result.Report, err = j.encoder.EstimateOn(j.t, m.SymbolsPerPacket)
	} else {
		result.Report, err = j.write()
	}
	return result, err
}

func (j *decodeJob) compile() error {
	m := j.stored.Manifest
	options, err := j.options(j.stored.field, m.SymbolsPerPacket)
	if err != nil {
		return err
	}
	a, err := j.stored.code.decoder(j.packets.slots, m.CodedPackets())
	if err != nil {
		return inputf("cannot decode %s: %w", j.stored.path, err)
	}
	j.encoder, err = j.newEncoder(a, inOrder(options)...)
	return err
}

// inOrder returns the options for a decoding: each slot is to obtain its own result.
func inOrder(options []volley.Option) []volley.Option {
	return append(slices.Clip(options), volley.WithOrder(algo.Natural))
}

func (j *decodeJob) write() (*volley.Report, error) {
	if there, err := os.Stat(j.Dir); err == nil && disk.Among(there, []string{j.stored.path}) {
		j.stored.Close() // or it would wait for itself
	}
	at, err := j.place(j.checkOutput)
	if err != nil {
		return nil, err
	}
	dir, err := create(at, j.names, ErrFileExists, j.Replace)
	if err != nil {
		return nil, outputError(err)
	}
	defer dir.Discard()
	j.found(dir)
	if err := j.packets.create(dir); err != nil {
		return nil, outputError(err)
	}
	report, err := j.encode(j.encoder, j.packets, j.stored.Manifest.SymbolsPerPacket)
	if err != nil {
		return nil, err
	}
	if err := j.packets.finish(); err != nil {
		return nil, err
	}
	perms, err := exchange(&j.run, j.packets.perm())
	if err != nil {
		return nil, err
	}
	perm := fs.ModePerm
	for _, p := range perms {
		perm &= p
	}
	return report, j.commit(func() error { return dir.CommitFiles(perm) })
}

// checkOutput returns an error when files of the output directory may not be replaced, or are among the sources.
func (j *decodeJob) checkOutput() error { return j.check(j.sources, j.names, false) }

// openManifest reads the manifest, which all ranks have in common, and finds the survivors that this one names.
func (j *decodeJob) openManifest() error {
	if j.d.Coded == "" {
		return j.together(func() error { return inputf("no directory of coded files: name what volley encode -o has made") })
	}
	path := strings.ReplaceAll(j.d.Coded, rankWord, fmt.Sprint(j.t.Rank()))
	var missing error // the manifest of this rank
	err := j.together(func() (err error) {
		switch j.stored, err = openStored(j.disk, path, disk.HolderOf(j.verb, "")); {
		case errors.As(err, new(*disk.BusyError)):
			return err
		case err != nil && j.t.Size() == 1:
			return inputf("%w: want a directory that volley encode -o has made", err)
		case err != nil:
			missing = err
			j.stored = &stored{path: path, close: func() {}}
		}
		j.stored.named = j.d.Coded
		return nil
	})
	if err == nil {
		err = j.shareManifest(missing)
	}
	if err != nil {
		return err
	}
	return j.together(func() error {
		if err := j.stored.load(); err != nil {
			return inputf("%s: %w", filepath.Join(path, ManifestName), err)
		}
		if err := j.checkRanks(j.stored.Manifest.Processors); err != nil {
			return err
		}
		if damage := j.stored.Damage; damage != nil {
			j.warn("%v: its copy %s is used", damage, CopyName)
		}
		var renamed bool
		if j.names, renamed = outputNames(j.stored.Manifest.Inputs); renamed && j.t.Rank() == 0 {
			j.warn("the inputs become %s: the names they had would not do for the files of one directory", printable.List(j.names))
		}
		files, err := j.files()
		j.survivors, j.sources = files, append(j.stored.sources(), files...)
		return err
	})
}

// shareManifest gives the manifest to ranks that have none. Those that have one have the same.
func (j *decodeJob) shareManifest(missing error) error {
	if j.t.Size() == 1 {
		return nil
	}
	var text []byte
	if missing == nil {
		m := *j.stored.Manifest
		m.SHA256 = "" // of another text
		var err error
		if text, err = json.Marshal(m); err != nil {
			return err
		}
	}
	type says struct {
		Digest  [sha256.Size]byte
		Missing string
		Gone    bool
	}
	mine := says{Digest: sha256.Sum256(text)}
	if missing != nil {
		mine = says{Missing: missing.Error(), Gone: errors.Is(missing, fs.ErrNotExist)}
	}
	all, err := exchange(&j.run, mine)
	if err != nil {
		return err
	}
	has, lacks := -1, false
	for rank, s := range all {
		switch {
		case s.Missing != "":
			lacks = true
		case has < 0:
			has = rank
		case s.Digest != all[has].Digest:
			return j.alike(inputf("ranks %d and %d have manifests of different runs: name directories of one encode", has, rank))
		}
	}
	if has < 0 {
		return j.alike(inputf("no rank has a manifest: %s: want a directory that volley encode -o has made", all[0].Missing))
	}
	if !lacks {
		return nil
	}
	if j.t.Rank() != has {
		text = nil
	}
	texts, err := collective.Allgatherv(j.ctx, j.t, text, j.Timeout)
	if err != nil || missing == nil {
		return err
	}
	if !mine.Gone {
		j.warn("%v: the manifest of rank %d is used", missing, has)
	}
	j.stored.Manifest, err = ParseManifest(texts[has])
	return err
}

func (c *stored) load() (err error) {
	m := c.Manifest
	if err = m.Validate(); err != nil {
		return err
	}
	if err = c.checkField(); err != nil {
		return err
	}
	c.code, err = codeOf(m.Matrix, c.field, m.Processors, m.CodedPackets())
	return err
}

func (c *stored) checkField() (err error) {
	m := c.Manifest
	if c.field, err = field.Parse(m.Field); err != nil {
		return err
	}
	packing := field.PackingOf(c.field)
	switch {
	case m.SymbolBytes != c.field.SymbolBytes():
		return fmt.Errorf("symbol_bytes: %d: a symbol of %s has %d", m.SymbolBytes, m.Field, c.field.SymbolBytes())
	case m.BitsPerSymbol != 0 && m.BitsPerSymbol != packing.Bits():
		return fmt.Errorf("bits_per_symbol: %d: want 0, as for symbols, or %d, what a symbol of %s holds", m.BitsPerSymbol, packing.Bits(), m.Field)
	}
	longest := int64(0)
	for k, in := range m.Inputs {
		symbols := in.Bytes / int64(m.SymbolBytes)
		if m.BitsPerSymbol != 0 {
			symbols = packing.Symbols(in.Bytes)
		}
		longest = max(longest, symbols)
		switch {
		case m.BitsPerSymbol == 0 && in.Bytes%int64(m.SymbolBytes) != 0:
			return fmt.Errorf("inputs[%d].bytes: %d: a symbol of %s has %d", k, in.Bytes, m.Field, m.SymbolBytes)
		case symbols > m.SymbolsPerPacket:
			return fmt.Errorf("inputs[%d].bytes: %d: more than the %d symbols of a packet hold", k, in.Bytes, m.SymbolsPerPacket)
		}
	}
	if longest != m.SymbolsPerPacket { // else inputs that all survive would be padded to any length
		return fmt.Errorf("symbols_per_packet: %d: the longest of the inputs has %d", m.SymbolsPerPacket, longest)
	}
	return nil
}

// sources returns the paths of the manifest and of all coded files.
func (c *stored) sources() []string {
	paths := []string{c.File(ManifestName), c.File(CopyName)}
	for _, f := range c.Manifest.Files {
		paths = append(paths, c.File(f.Name))
	}
	return paths
}

// outputNames returns the last parts of the inputs' names or, where these will not do, numbers, and which it was.
func outputNames(inputs []Entry) (names []string, renamed bool) {
	seen := map[string]bool{}
	for _, in := range inputs {
		name := filepath.Base(in.Name)
		if seen[name] || !validName(name) {
			renamed = true
		}
		seen[name] = true
		names = append(names, name)
	}
	if renamed {
		for k := range names {
			names[k] = fmt.Sprintf("input.%0*d", len(fmt.Sprint(len(names)-1)), k)
		}
	}
	return names, renamed
}
