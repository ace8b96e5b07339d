package coded

import (
	"context"
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
	"volley/coded/manifest"
	"volley/collective"
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
// [*ChangedError], a [*BusyError] or [*SharedError] where a directory has another user, those of volley.Encoder.Run and
// of the file system.
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
	for _, s := range j.packets.procs {
		if s.coded >= 0 {
			result.From = append(result.From, string(m.Files[s.coded].Name))
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
	options, err := j.options(j.stored.matrix.Field(), m.SymbolsPerPacket)
	if err != nil {
		return err
	}
	a, err := decoder(j.stored.matrix, j.stored.inverse, j.packets.procs)
	if err != nil {
		return inputf("cannot decode %s: %w", j.stored.path, err)
	}
	j.encoder, err = j.newEncoder(a, inOrder(options)...)
	return err
}

// inOrder returns the options for a decoding: each processor is to obtain its own result.
func inOrder(options []volley.Option) []volley.Option {
	return append(slices.Clip(options), volley.WithOrder(algo.Natural))
}

func (j *decodeJob) write() (*volley.Report, error) {
	if there, err := os.Stat(j.Dir); err == nil && disk.Among(there, []string{j.stored.path}) {
		j.stored.Close() // or it would wait for itself
	}
	dir, err := j.open(j.names, j.checkOutput)
	if err != nil {
		return nil, err
	}
	defer dir.Discard()
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
	return report, j.commit(dir, nil, j.packets.perm())
}

// checkOutput returns an error when files of the output directory may not be replaced, or are among the sources.
func (j *decodeJob) checkOutput() error { return j.check(j.sources, j.names) }

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
	return j.together(func() (err error) {
		if j.stored.matrix, err = j.stored.Manifest.Code(); err != nil {
			return inputf("%s: %w", filepath.Join(path, manifest.FileName), err)
		}
		if err := j.checkRanks(j.stored.Manifest.Processors); err != nil {
			return err
		}
		if damage := j.stored.Damage; damage != nil {
			j.warn("%v: its copy %s is used", damage, manifest.CopyName)
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

// shareManifest gives the manifest to ranks that have none. Those that have one have the same, or the same copy: an
// encode that was interrupted may have put its manifest in force at some ranks only, and all have the earlier one then.
func (j *decodeJob) shareManifest(missing error) error {
	if j.t.Size() == 1 {
		return nil
	}
	type says struct {
		Digests []string
		Missing manifest.Name
		Gone    bool
	}
	var mine says
	var texts [][]byte
	own := []*manifest.Manifest{j.stored.Manifest, j.stored.Copy}
	if missing != nil {
		mine, own = says{Missing: manifest.Name(missing.Error()), Gone: errors.Is(missing, fs.ErrNotExist)}, nil
	}
	for _, m := range own {
		if m == nil {
			continue
		}
		same := *m
		same.SHA256 = "" // of another text
		text, err := json.Marshal(same)
		if err != nil {
			return err
		}
		mine.Digests, texts = append(mine.Digests, disk.Sum(text)), append(texts, text)
	}
	all, err := exchange(&j.run, mine)
	if err != nil {
		return err
	}
	has := slices.IndexFunc(all, func(s says) bool { return s.Missing == "" })
	if has < 0 {
		return j.alike(inputf("no rank has a manifest: %s: want a directory that volley encode -o has made", all[0].Missing))
	}
	differs := -1
	common := slices.IndexFunc(all[has].Digests, func(d string) bool {
		differs = slices.IndexFunc(all, func(s says) bool { return s.Missing == "" && !slices.Contains(s.Digests, d) })
		return differs < 0
	})
	if common < 0 {
		return j.alike(inputf("ranks %d and %d have manifests of different runs: name directories of one encode", has, differs))
	}
	if missing == nil && slices.Index(mine.Digests, all[has].Digests[common]) > 0 {
		j.stored.Manifest = j.stored.Copy
		j.warn("%s is of a run that was interrupted when other ranks had not come so far: %s is used", j.stored.File(manifest.FileName), manifest.CopyName)
	}
	if !slices.ContainsFunc(all, func(s says) bool { return s.Missing != "" }) {
		return nil
	}
	var text []byte
	if j.t.Rank() == has {
		text = texts[common]
	}
	given, err := collective.Allgatherv(j.ctx, j.t, text, j.Timeout)
	if err != nil || missing == nil {
		return err
	}
	if !mine.Gone {
		j.warn("%v: the manifest of rank %d is used", missing, has)
	}
	j.stored.Manifest, err = manifest.Parse(given[has])
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
func outputNames(inputs []manifest.Entry) (names []string, renamed bool) {
	seen := map[string]bool{}
	for _, in := range inputs {
		name := filepath.Base(string(in.Name))
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
