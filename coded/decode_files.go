package coded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"volley"
	"volley/coded/manifest"
	"volley/executor"
	"volley/field"
	"volley/files"
	solver "volley/internal/code"
	"volley/internal/disk"
	"volley/internal/poll"
	"volley/internal/printable"
	"volley/matrix"
)

// filesAtHand are the packets of the processors of a decoding at this rank, and the files of their results.
type filesAtHand struct {
	run
	*stored
	d         Decoding
	matrix    matrix.Matrix // A, by the manifest
	decoding  matrix.Matrix // how lost inputs come of what is decoded from, as [solver.Solve] says
	names     []string      // of the files to write, by input
	survivors []string      // the files that this rank names
	encoder   *volley.Encoder

	inputs  map[int]packetFile // that have survived and are here
	coded   map[int]packetFile // coded files here that are decoded from
	holders *inventory
	procs   []processor
	opened  []packetFile
	scratch map[int]disk.File // packets of other ranks, by processor
	results map[int]*newFile  // by processor
	unfit   []files.Name      // survivors that are left out, and why
	absent  absent
}

// files returns the survivors that this rank names.
func (h *filesAtHand) files() (names []string, err error) {
	job := h.t.Size() > 1 || h.Job
	for _, name := range h.d.Survivors {
		paths := []string{name}
		if strings.Contains(name, rankWord) && job {
			first, end := executor.Hosted(h.Manifest.Processors, h.t.Rank(), h.t.Size())
			paths = numbered(name, first, end)
		}
		for _, name := range paths {
			files, err := expandDirectories([]string{name})
			switch {
			case err == nil:
				names = append(names, files...)
			case !job, errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrNotExist): // in a job it may have nothing here
				return nil, input(err)
			}
		}
	}
	return names, nil
}

// openFile opens a file until h is closed.
func (h *filesAtHand) openFile(name string) (packetFile, error) {
	f, err := openPacket(name)
	if err == nil {
		h.opened = append(h.opened, f)
	}
	return f, err
}

// match finds out which inputs the survivors are, and leaves out others. Of several ranks one reads a file all see.
func (h *filesAtHand) match() error {
	h.holders = newInventory(h.t.Size(), h.Manifest.Processors, h.Manifest.CodedPackets())
	var found []packetFile
	for _, name := range h.survivors {
		f, err := h.openFile(name)
		if err != nil {
			h.leaveOut("%s (%s)", name, reason(err))
			continue
		}
		found = append(found, f)
	}
	found, err := h.mine(found)
	if err != nil {
		return err
	}
	type says struct {
		Inputs []int
		Unfit  []files.Name
		Coded  []string // see absent
	}
	answers, err := exchangeWork(&h.run, func() (mine says, err error) {
		sums, errs := digests(h.ctx, found)
		if h.ctx.Err() != nil {
			return mine, context.Cause(h.ctx)
		}
		processors := map[manifest.CodedFile][]int{} // by length and digest; more than one where inputs are equal
		for p, entry := range h.Manifest.Inputs {
			expected := manifest.CodedFile{Bytes: entry.Bytes, SHA256: entry.SHA256}
			processors[expected] = append(processors[expected], p)
		}
		for i, f := range found {
			matches := processors[manifest.CodedFile{Bytes: f.bytes, SHA256: sums[i]}]
			switch {
			case errs[i] != nil:
				h.leaveOut("%s (%s)", f.Name(), reason(errs[i]))
			case len(matches) == 0:
				h.leaveOut("%s (%d bytes of SHA-256 %.12s…%s)", f.Name(), f.bytes, sums[i], h.namesake(f))
			}
			for _, p := range matches {
				h.inputs[p] = f
			}
		}
		return says{slices.Sorted(maps.Keys(h.inputs)), h.unfit, h.stat()}, nil
	})
	if err != nil {
		return err
	}
	h.unfit = nil
	fit := false
	for rank, x := range answers {
		for _, p := range x.Inputs {
			if p < 0 || p >= len(h.holders.inputs) {
				return fmt.Errorf("rank %d says that it has input %d of %d", rank, p, len(h.holders.inputs))
			}
			h.holders.note(h.holders.inputs, p, rank)
			fit = true
		}
		if len(x.Coded) != len(h.holders.coded) {
			return fmt.Errorf("rank %d tells of %d coded files: want %d", rank, len(x.Coded), len(h.holders.coded))
		}
		h.unfit, h.absent = append(h.unfit, x.Unfit...), append(h.absent, x.Coded)
	}
	if len(h.unfit) > 0 && !fit {
		return h.failAll(inputf("cannot use any survivor: none is an input of %s: %s. Leave them out", filepath.Join(h.d.Coded, manifest.FileName), printable.List(h.unfit)))
	}
	return nil
}

// leaveOut notes a survivor that is not used, and why.
func (h *filesAtHand) leaveOut(format string, args ...any) {
	h.unfit = append(h.unfit, files.Name(fmt.Sprintf(format, args...)))
}

// mine returns the files that this rank is to read, of those that several see. Path, length and times tell a file.
func (h *filesAtHand) mine(found []packetFile) ([]packetFile, error) {
	if h.t.Size() == 1 {
		return found, nil
	}
	identities := make([]files.Name, len(found))
	for i, f := range found {
		path, err := filepath.Abs(f.Name())
		if err != nil {
			path = f.Name()
		}
		identities[i] = files.Name(fmt.Sprint(path, " ", f.bytes, " ", f.info.ModTime().UnixNano(), " ", disk.Changed(f.info).UnixNano()))
	}
	listed, err := exchange(&h.run, identities)
	if err != nil {
		return nil, err
	}
	seen := map[files.Name][]int{} // by whom
	for rank, list := range listed {
		for _, id := range list {
			if !slices.Contains(seen[id], rank) {
				seen[id] = append(seen[id], rank)
			}
		}
	}
	byName := map[string]int{} // the rank of an input of that name
	for rank := range h.t.Size() {
		first, end := executor.Hosted(h.Manifest.Processors, rank, h.t.Size())
		for k := first; k < end; k++ {
			byName[filepath.Base(string(h.Manifest.Inputs[k].Name))] = rank
		}
	}
	var mine []packetFile
	for i, f := range found {
		ranks := seen[identities[i]]
		reads, known := byName[filepath.Base(f.Name())]
		if !known || !slices.Contains(ranks, reads) {
			reads = ranks[slices.Index(listed[ranks[0]], identities[i])%len(ranks)]
		}
		if reads == h.t.Rank() {
			mine = append(mine, f)
		}
	}
	return mine, nil
}

// namesake tells of an input that has the name of the file.
func (h *filesAtHand) namesake(f packetFile) string {
	for _, entry := range h.Manifest.Inputs {
		if filepath.Base(string(entry.Name)) == filepath.Base(f.Name()) {
			return fmt.Sprintf("; %s had %d of %.12s…", entry.Name, entry.Bytes, entry.SHA256)
		}
	}
	return ""
}

// absent says by rank and coded packet why it is not there, or not right as far as is known: "" where it is.
type absent [][]string

// reasonOf says why no rank has a coded packet: "" where one has.
func (a absent) reasonOf(j int) string {
	cause := missing
	for _, list := range a {
		if list[j] == "" {
			return ""
		}
		if cause == missing {
			cause = list[j]
		}
	}
	return cause
}

// stat says of each coded file why this rank has none that can be right; "" where it has.
func (h *filesAtHand) stat() []string {
	states := make([]string, h.Manifest.CodedPackets())
	for j, f := range h.Manifest.Files {
		info, err := os.Stat(h.File(f.Name))
		switch {
		case err != nil:
			states[j] = reason(err)
		case !info.Mode().IsRegular():
			states[j] = "not a regular file"
		case info.Size() != f.Bytes:
			states[j] = fmt.Sprintf("damaged: %d bytes, not %d", info.Size(), f.Bytes)
		}
	}
	return states
}

// pick decides what to decode from: the inputs at hand and, for lost ones, coded files whose SHA-256 is right.
func (h *filesAtHand) pick() error {
	chosen, err := h.sufficient()
	if err != nil {
		return err
	}
	h.procs = h.holders.assign(chosen)
	if h.t.Rank() > 0 {
		return nil
	}
	for _, text := range h.unfit {
		h.warn("survivor %s is left out: it is no input of %s", text, h.File(manifest.FileName))
	}
	for j, f := range h.Manifest.Files {
		if cause := h.absent.reasonOf(j); cause != "" {
			h.warn("%s is left out: %s", h.File(f.Name), cause)
		}
	}
	return nil
}

// sufficient returns as many coded packets as inputs are lost, from which with the other inputs
// these can be told. It notes in holders which rank has each coded packet.
func (h *filesAtHand) sufficient() (chosen []int, _ error) {
	kept, lost := h.holders.split()
	if len(lost) == 0 {
		return nil, nil
	}
	for {
		for j := range h.holders.coded {
			h.holders.coded[j] = -1
			for rank, list := range h.absent {
				if list[j] == "" {
					h.holders.note(h.holders.coded, j, rank)
				}
			}
		}
		usable, damaged := h.holders.preferred(), false
		answers, err := exchangeWork(&h.run, func() (bad map[int]string, err error) {
			if chosen, h.decoding, err = solver.Solve(h.ctx, h.matrix, kept, lost, usable); err != nil {
				return nil, h.input(err)
			}
			return h.checkCoded(chosen)
		})
		if err != nil {
			return nil, err
		}
		for rank, bad := range answers {
			for j, cause := range bad {
				if j < 0 || j >= len(h.holders.coded) {
					return nil, fmt.Errorf("rank %d tells of coded packet %d of %d", rank, j, len(h.holders.coded))
				}
				damaged, h.absent[rank][j] = true, cause
			}
		}
		switch {
		case damaged: // choose again without
		case len(chosen) < len(lost):
			return nil, h.failAll(h.tooFew(lost, len(usable), len(chosen)))
		default:
			return chosen, nil
		}
	}
}

// checkCoded opens the coded files of these that this rank is to read. It returns why it leaves out damaged ones.
func (h *filesAtHand) checkCoded(chosen []int) (bad map[int]string, err error) {
	bad = map[int]string{}
	var indices []int
	var files []packetFile
	for _, j := range chosen {
		if _, checked := h.coded[j]; checked || h.holders.coded[j] != h.t.Rank() {
			continue
		}
		f, err := h.openFile(h.File(h.Manifest.Files[j].Name))
		if err != nil {
			bad[j] = reason(err)
			continue
		}
		indices, files = append(indices, j), append(files, f)
	}
	sums, errs := digests(h.ctx, files)
	if h.ctx.Err() != nil {
		return nil, context.Cause(h.ctx)
	}
	for i, j := range indices {
		switch {
		case errs[i] != nil:
			bad[j] = reason(errs[i])
		case sums[i] != h.Manifest.Files[j].SHA256:
			bad[j] = "damaged: another SHA-256"
			if k := slices.IndexFunc(h.Manifest.Files, func(f manifest.CodedFile) bool { return f.SHA256 == sums[i] }); k >= 0 {
				bad[j] = fmt.Sprintf("it is %s: give it that name", h.Manifest.Files[k].Name)
			}
		default:
			h.coded[j] = files[i]
		}
	}
	return bad, nil
}

// tooFew says that the coded files have only that rank in the lost inputs.
func (h *filesAtHand) tooFew(lost []int, usable, rank int) error {
	m := h.Manifest
	lacking := len(lost) - rank
	want := fmt.Sprintf("%d %s", lacking, printable.Plural(lacking, "more input or coded file is", "more inputs or coded files are"))
	var unknown []files.Name
	var excluded []string
	for _, p := range lost {
		unknown = append(unknown, m.Inputs[p].Name)
	}
	for j, f := range m.Files {
		if cause := h.absent.reasonOf(j); cause != "" {
			excluded = append(excluded, fmt.Sprintf("%s (%s)", f.Name, cause))
		}
	}
	text := fmt.Sprintf("cannot decode %s: %s needed. Unknown inputs: %s", h.d.Coded, want, printable.List(unknown))
	if len(excluded) > 0 {
		text += ". Coded files left out: " + printable.List(excluded)
	}
	if len(h.unfit) > 0 {
		text += ". Survivors left out, as no input: " + printable.List(h.unfit)
	}
	if usable > rank {
		text += fmt.Sprintf(". For these inputs the other coded files tell no more than %d of them would, by the matrix %s", rank, m.Matrix.Family)
	}
	return inputf("%s", text)
}

// perm returns what the files here that the inputs come from all allow.
func (h *filesAtHand) perm() fs.FileMode {
	perm := fs.ModePerm
	for _, s := range h.procs {
		if s.holder == h.t.Rank() {
			perm &= disk.Permissions(h.fileOf(s).info)
		}
	}
	return perm
}

// fileOf returns the file of a processor's packet, which this rank has.
func (h *filesAtHand) fileOf(s processor) packetFile {
	if s.coded >= 0 {
		return h.coded[s.coded]
	}
	return h.inputs[s.input]
}

func (h *filesAtHand) bytes(s processor) int64 {
	if s.coded >= 0 {
		return h.Manifest.SymbolsPerPacket * int64(h.Manifest.SymbolBytes)
	}
	return h.Manifest.Inputs[s.input].Bytes
}

func (h *filesAtHand) source(p int, packet *volley.Packet) {
	s, bits := h.procs[p], h.Manifest.BitsPerSymbol
	if s.coded >= 0 {
		bits = 0
	}
	file := io.ReaderAt(h.scratch[p])
	if s.holder == h.t.Rank() {
		file = h.fileOf(s)
	}
	setSource(packet, h.matrix.Field(), bits, file, h.bytes(s))
}

func (h *filesAtHand) sink(p int, packet *volley.Packet) {
	entry := h.Manifest.Inputs[h.procs[p].result]
	packet.Coded = cutWriter{h.results[p], entry.Bytes}
	if h.Manifest.BitsPerSymbol != 0 {
		packet.Coded = unpackingWriter{field.NewWriterAt(h.matrix.Field(), h.results[p], entry.Bytes), string(entry.Name)}
	}
}

func (h *filesAtHand) reader(s processor) io.ReaderAt { return h.fileOf(s) }

func (h *filesAtHand) writer(p int) io.WriterAt { return h.scratch[p] }

// create makes the files of the results here. Packets for processors at other ranks go there, into files without names.
func (h *filesAtHand) create(dir *directory) error {
	err := h.atAllRanks(func() (err error) {
		for p, end := h.holders.hosted(h.t.Rank()); p < end && err == nil; p++ {
			if h.results[p], err = dir.Create(h.names[h.procs[p].result]); err == nil && h.procs[p].holder != h.t.Rank() {
				h.scratch[p], err = dir.Scratch()
			}
		}
		return outputError(err)
	})
	if err != nil {
		return err
	}
	return h.move(h.holders, h.procs, h)
}

// cutWriter takes a packet and writes the first size bytes of it.
type cutWriter struct {
	io.WriterAt
	size int64
}

func (w cutWriter) WriteAt(p []byte, offset int64) (int, error) {
	if rest := max(0, w.size-offset); rest < int64(len(p)) {
		if _, err := w.WriterAt.WriteAt(p[:rest], min(offset, w.size)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return w.WriterAt.WriteAt(p, offset)
}

// unpackingWriter takes a packet of packed bytes.
type unpackingWriter struct {
	io.WriterAt
	name string // of the input
}

func (w unpackingWriter) WriteAt(p []byte, offset int64) (int, error) {
	n, err := w.WriterAt.WriteAt(p, offset)
	if overfull := new(field.OverfullError); errors.As(err, &overfull) {
		err = &WrongError{[]string{w.name}, fmt.Sprintf("symbol %d is %v and may have only %d bits", overfull.Symbol, overfull.Value, overfull.Bits)}
	}
	return n, err
}

// finish returns a *WrongError where the inputs are not what they were.
func (h *filesAtHand) finish() error {
	var wrong []string
	for p, end := h.holders.hosted(h.t.Rank()); p < end; p++ {
		entry := h.Manifest.Inputs[h.procs[p].result]
		if size, sum := h.results[p].Sum(); size != entry.Bytes || sum != entry.SHA256 {
			wrong = append(wrong, string(entry.Name))
		}
	}
	failures, err := exchange(&h.run, len(wrong))
	if err != nil || slices.Max(failures) == 0 {
		return err
	}
	return h.atAllRanks(func() error {
		for _, f := range h.opened { // after its digest was right
			if err := f.unchanged(); err != nil {
				return err
			}
		}
		if len(wrong) == 0 {
			return nil
		}
		return &WrongError{wrong, "the SHA-256 is another"}
	})
}

func (h *filesAtHand) close() {
	for _, f := range h.opened {
		f.Close()
	}
	for _, f := range h.scratch {
		f.Close()
	}
	if h.stored != nil {
		h.stored.Close()
	}
}

// digests returns the SHA-256 of files, in hexadecimal, or why there is none.
func digests(ctx context.Context, files []packetFile) ([]string, []error) {
	sums, errs := make([]string, len(files)), make([]error, len(files))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range files {
		group.Go(func() error {
			h := sha256.New()
			_, errs[i] = io.CopyBuffer(poll.Writer{Context: ctx, Writer: h}, io.NewSectionReader(f, 0, f.bytes), make([]byte, 1<<18))
			sums[i] = hex.EncodeToString(h.Sum(nil))
			return nil
		})
	}
	group.Wait()
	return sums, errs
}
