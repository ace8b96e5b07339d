package coded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"volley"
	"volley/coded/manifest"
	"volley/collective"
	"volley/files"
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
	Report  *volley.Report // of all ranks
	Inputs  int            // K
	Sources []string       // the coded files that were decoded from, one for each input that was lost
}

// Decode decodes the inputs of an [Encode] into a directory, those that have survived too. Each gets the last part of
// the name it had; input.<k> if two of these are equal or one cannot be a file of the directory. Each is compared with
// its SHA-256 in the manifest before any of them gets its name.
//
// Every rank of t calls it. A rank writes the inputs that it has. An input that is lost goes to the rank of its
// processor. Where that rank has survivors of others, it goes to a rank that has fewer.
//
// The errors are an [*InputError], also where too few files are left, a [*WrongError], a
// [*ChangedError], a [*files.BusyError] or [*files.SharedError] where a directory has another user, those of volley.Encoder.Run and
// of the file system.
func Decode(ctx context.Context, t transport.Transport, d Decoding) (*Decoded, error) {
	h := &filesAtHand{
		run: newRun(ctx, t, d.Options, "decode"), d: d,
		inputs: map[int]packetFile{}, coded: map[int]packetFile{}, scratch: map[int]disk.File{}, results: map[int]*newFile{},
	}
	defer h.close()
	result, err := h.decode()
	return result, h.fail(err)
}

func (h *filesAtHand) decode() (*Decoded, error) {
	if err := h.openManifest(); err != nil {
		return nil, err
	}
	if err := h.match(); err != nil {
		return nil, err
	}
	if err := h.pick(); err != nil {
		return nil, err
	}
	m := h.Manifest
	err := h.atAllRanks(func() error {
		options, err := h.options(h.matrix.Field(), m.SymbolsPerPacket)
		if err != nil {
			return err
		}
		h.encoder, err = h.newDecoder(h.matrix.Field(), h.procs, h.decoding, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	result := &Decoded{Inputs: m.Processors}
	for _, s := range h.procs {
		if s.coded >= 0 {
			result.Sources = append(result.Sources, string(m.Files[s.coded].Name))
		}
	}
	if h.DryRun {
		result.Report, err = h.encoder.Estimate(h.ctx, h.t, m.SymbolsPerPacket)
	} else {
		result.Report, err = h.write()
	}
	return result, err
}

func (h *filesAtHand) write() (*volley.Report, error) {
	if info, err := os.Stat(h.Dir); err == nil && disk.Among(info, []string{h.path}) {
		h.stored.Close() // or it would wait for itself
	}
	dir, err := h.open(h.names, h.checkOutput)
	if err != nil {
		return nil, err
	}
	defer dir.Discard()
	if err := h.create(dir); err != nil {
		return nil, err
	}
	report, err := h.encode(h.encoder, h, h.Manifest.SymbolsPerPacket)
	if err != nil {
		return nil, err
	}
	if err := h.finish(); err != nil {
		return nil, err
	}
	return report, h.commit(dir, nil, h.perm())
}

// checkOutput returns an error when files of the output directory may not be replaced, or are among the sources.
func (h *filesAtHand) checkOutput() error {
	return h.check(append(h.stored.sources(), h.survivors...), h.names)
}

// A holding is what a rank has of a manifest.
type holding struct {
	Digests []string   // of the manifest, and of its copy
	Missing files.Name // why the rank has none
	Absent  bool
}

// holding opens the directory of this rank.
func (h *filesAtHand) holding(path string) (mine holding, err error) {
	if h.d.Coded == "" {
		return mine, inputf("no directory of coded files: name what volley encode -o has made")
	}
	switch h.stored, err = openStored(h.disk, path, disk.HolderOf(h.verb, "")); {
	case errors.As(err, new(*files.BusyError)):
		return mine, err
	case err != nil && h.t.Size() == 1:
		return mine, inputf("%w: want a directory that volley encode -o has made", err)
	case err != nil:
		h.stored = &stored{path: path, close: func() {}}
		return holding{Missing: files.Name(err.Error()), Absent: errors.Is(err, fs.ErrNotExist)}, nil
	}
	for _, m := range []*manifest.Manifest{h.Manifest, h.Copy} {
		if m == nil {
			continue
		}
		text, err := m.Text()
		if err != nil {
			return mine, err
		}
		mine.Digests = append(mine.Digests, disk.Sum(text))
	}
	return mine, nil
}

// openManifest reads the manifest, which all ranks have in common, and finds the survivors that this one names.
func (h *filesAtHand) openManifest() error {
	path := strings.ReplaceAll(h.d.Coded, rankWord, fmt.Sprint(h.t.Rank()))
	answers, err := exchangeWork(&h.run, func() (holding, error) { return h.holding(path) })
	if err == nil {
		err = h.shareManifest(answers)
	}
	if err != nil {
		return err
	}
	return h.atAllRanks(func() (err error) {
		if h.matrix, err = h.Manifest.Code(); err != nil {
			return inputf("%s: %w", filepath.Join(path, manifest.FileName), err)
		}
		if err := h.checkRanks(h.Manifest.Processors); err != nil {
			return err
		}
		if damage := h.Damage; damage != nil {
			h.warn("%v: its copy %s is used", damage, manifest.CopyName)
		}
		var renamed bool
		if h.names, renamed = outputNames(h.Manifest.Inputs); renamed && h.t.Rank() == 0 {
			h.warn("the inputs become %s: the names they had would not do for the files of one directory", printable.List(h.names))
		}
		if h.survivors, err = h.files(); err != nil {
			return err
		}
		return h.look(h.checkOutput)
	})
}

// shareManifest gives the manifest to ranks that have none. Those that have one have the same, or the same copy: an
// encode that was interrupted may have put its manifest in force at some ranks only, and all have the earlier one then.
func (h *filesAtHand) shareManifest(answers []holding) error {
	mine := answers[h.t.Rank()]
	holder := slices.IndexFunc(answers, func(x holding) bool { return x.Missing == "" })
	if holder < 0 {
		return h.failAll(inputf("no rank has a manifest: %s: want a directory that volley encode -o has made", answers[0].Missing))
	}
	differs := -1
	common := slices.IndexFunc(answers[holder].Digests, func(d string) bool {
		differs = slices.IndexFunc(answers, func(x holding) bool { return x.Missing == "" && !slices.Contains(x.Digests, d) })
		return differs < 0
	})
	if common < 0 {
		return h.failAll(inputf("ranks %d and %d have manifests of different runs: name directories of one encode", holder, differs))
	}
	if mine.Missing == "" && slices.Index(mine.Digests, answers[holder].Digests[common]) > 0 {
		h.Manifest = h.Copy
		h.warn("%s is of a run that was interrupted when other ranks had not come so far: %s is used", h.File(manifest.FileName), manifest.CopyName)
	}
	if !slices.ContainsFunc(answers, func(x holding) bool { return x.Missing != "" }) {
		return nil
	}
	var text []byte
	if h.t.Rank() == holder {
		var err error
		if text, err = h.Manifest.Text(); err != nil {
			return err
		}
	}
	received, err := collective.Allgatherv(h.ctx, h.t, text, h.Timeout)
	if err != nil || mine.Missing == "" {
		return err
	}
	if !mine.Absent {
		h.warn("%s: the manifest of rank %d is used", mine.Missing, holder)
	}
	h.Manifest, err = manifest.Parse(received[holder])
	return err
}

// sources returns the paths of the manifest and of all coded files.
func (c *stored) sources() []string {
	paths := []string{c.File(manifest.FileName), c.File(manifest.CopyName)}
	for _, f := range c.Manifest.Files {
		paths = append(paths, c.File(f.Name))
	}
	return paths
}

// outputNames returns the last parts of the inputs' names or, where these will not do, numbers, and which it was.
func outputNames(inputs []manifest.CodedFile) (names []string, renamed bool) {
	seen := map[string]bool{}
	for _, input := range inputs {
		name := filepath.Base(string(input.Name))
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
