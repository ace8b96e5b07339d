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
	sources   []string      // the files that may be read
	encoder   *volley.Encoder

	inputs  map[int]packetFile // that have survived and are here
	coded   map[int]packetFile // coded files here that are decoded from
	procs   []processor
	first   int             // processor here
	local   []processorHere // processors here
	opened  []packetFile
	scratch map[int]disk.File // packets of other ranks, by processor
	unfit   []files.Name      // survivors that are left out, and why
}

type processorHere struct {
	processor
	packet io.ReaderAt
	file   *newFile // of the result
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
	err = h.atAllRanks(func() error {
		sums, errs := digests(h.ctx, found)
		if h.ctx.Err() != nil {
			return context.Cause(h.ctx)
		}
		type content struct {
			bytes int64
			sum   string
		}
		processors := map[content][]int{} // more than one where inputs are equal
		for p, entry := range h.Manifest.Inputs {
			expected := content{entry.Bytes, entry.SHA256}
			processors[expected] = append(processors[expected], p)
		}
		for i, f := range found {
			matches := processors[content{f.bytes, sums[i]}]
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
		return nil
	})
	if err != nil {
		return err
	}
	type tally struct {
		Fit   int
		Unfit []files.Name
	}
	tallies, err := exchange(&h.run, tally{len(h.inputs), h.unfit})
	if err != nil {
		return err
	}
	fit, unfit := 0, []files.Name(nil)
	for _, t := range tallies {
		fit, unfit = fit+t.Fit, append(unfit, t.Unfit...)
	}
	if len(unfit) > 0 && fit == 0 {
		return h.failAll(inputf("cannot use any survivor: none is an input of %s: %s. Leave them out", filepath.Join(h.d.Coded, manifest.FileName), printable.List(unfit)))
	}
	h.unfit = unfit
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

func (h *filesAtHand) stat() (absent, error) {
	n := h.Manifest.CodedPackets()
	mine := make([]string, n)
	for j, f := range h.Manifest.Files {
		info, err := os.Stat(h.File(f.Name))
		switch {
		case err != nil:
			mine[j] = reason(err)
		case !info.Mode().IsRegular():
			mine[j] = "not a regular file"
		case info.Size() != f.Bytes:
			mine[j] = fmt.Sprintf("damaged: %d bytes, not %d", info.Size(), f.Bytes)
		}
	}
	states, err := exchange(&h.run, mine)
	if err != nil {
		return nil, err
	}
	for rank, list := range states {
		if len(list) != n {
			return nil, fmt.Errorf("rank %d tells of %d coded files: want %d", rank, len(list), n)
		}
	}
	return states, nil
}

// pick decides what to decode from: the inputs at hand and, for lost ones, coded files whose SHA-256 is right.
func (h *filesAtHand) pick() error {
	k, ranks := h.Manifest.Processors, h.t.Size()
	holders := newInventory(ranks, k, h.Manifest.CodedPackets())
	answers, err := exchange(&h.run, slices.Sorted(maps.Keys(h.inputs)))
	if err != nil {
		return err
	}
	for rank, inputs := range answers {
		for _, p := range inputs {
			if p < 0 || p >= k {
				return fmt.Errorf("rank %d says that it has input %d of %d", rank, p, k)
			}
			holders.note(holders.inputs, p, rank)
		}
	}
	c, err := h.stat()
	if err != nil {
		return err
	}
	chosen, err := h.sufficient(holders, c)
	if err != nil {
		return err
	}
	h.procs = holders.assign(chosen)
	first, end := holders.hosted(h.t.Rank())
	h.first = first
	for _, s := range h.procs[first:end] {
		h.local = append(h.local, processorHere{processor: s})
	}
	if h.t.Rank() > 0 {
		return nil
	}
	for _, text := range h.unfit {
		h.warn("survivor %s is left out: it is no input of %s", text, h.File(manifest.FileName))
	}
	for j, f := range h.Manifest.Files {
		if cause := c.reasonOf(j); cause != "" {
			h.warn("%s is left out: %s", h.File(f.Name), cause)
		}
	}
	return nil
}

// sufficient returns as many coded packets as inputs are lost, from which with the other inputs
// these can be told. It notes in holders which rank has each coded packet.
func (h *filesAtHand) sufficient(holders *inventory, c absent) (chosen []int, _ error) {
	kept, lost := holders.split()
	if len(lost) == 0 {
		return nil, nil
	}
	for {
		for j := range holders.coded {
			holders.coded[j] = -1
			for rank, list := range c {
				if list[j] == "" {
					holders.note(holders.coded, j, rank)
				}
			}
		}
		usable := holders.preferred()
		err := h.atAllRanks(func() (err error) {
			chosen, h.decoding, err = solver.Solve(h.ctx, h.matrix, kept, lost, usable)
			return h.input(err)
		})
		if err != nil {
			return nil, err
		}
		damaged, err := h.checkCoded(holders, c, chosen)
		switch {
		case err != nil:
			return nil, err
		case damaged: // choose again without
		case len(chosen) < len(lost):
			return nil, h.failAll(h.tooFew(c, lost, len(usable), len(chosen)))
		default:
			return chosen, nil
		}
	}
}

// checkCoded has every rank open its coded files of these, leaves out damaged ones, and reports whether there are any.
func (h *filesAtHand) checkCoded(holders *inventory, c absent, chosen []int) (damaged bool, err error) {
	mine := map[int]string{} // why it is left out
	err = h.atAllRanks(func() error {
		var indices []int
		var files []packetFile
		for _, j := range chosen {
			if _, checked := h.coded[j]; checked || holders.coded[j] != h.t.Rank() {
				continue
			}
			f, err := h.openFile(h.File(h.Manifest.Files[j].Name))
			if err != nil {
				mine[j] = reason(err)
				continue
			}
			indices, files = append(indices, j), append(files, f)
		}
		sums, errs := digests(h.ctx, files)
		if h.ctx.Err() != nil {
			return context.Cause(h.ctx)
		}
		for i, j := range indices {
			switch {
			case errs[i] != nil:
				mine[j] = reason(errs[i])
			case sums[i] != h.Manifest.Files[j].SHA256:
				mine[j] = reason(errDamaged)
				if k := slices.IndexFunc(h.Manifest.Files, func(f manifest.Entry) bool { return f.SHA256 == sums[i] }); k >= 0 {
					mine[j] = fmt.Sprintf("it is %s: give it that name", h.Manifest.Files[k].Name)
				}
			default:
				h.coded[j] = files[i]
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	reasons, err := exchange(&h.run, mine)
	if err != nil {
		return false, err
	}
	for rank, bad := range reasons {
		for j, cause := range bad {
			if j < 0 || j >= len(holders.coded) {
				return false, fmt.Errorf("rank %d tells of coded packet %d of %d", rank, j, len(holders.coded))
			}
			damaged, c[rank][j] = true, cause
		}
	}
	return damaged, nil
}

// tooFew says that the coded files have only that rank in the lost inputs.
func (h *filesAtHand) tooFew(c absent, lost []int, usable, rank int) error {
	m := h.Manifest
	lacking := len(lost) - rank
	want := fmt.Sprintf("%d more inputs or coded files are", lacking)
	if lacking == 1 {
		want = "1 more input or coded file is"
	}
	var unknown []files.Name
	var excluded []string
	for _, p := range lost {
		unknown = append(unknown, m.Inputs[p].Name)
	}
	for j, f := range m.Files {
		if cause := c.reasonOf(j); cause != "" {
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
	permissions := fs.ModePerm
	for _, s := range h.procs {
		if f, present := h.fileOf(s); present {
			permissions &= disk.Permissions(f.info)
		}
	}
	return permissions
}

// fileOf returns the file of a processor's packet where this rank has it.
func (h *filesAtHand) fileOf(s processor) (f packetFile, present bool) {
	switch {
	case s.holder != h.t.Rank():
	case s.coded >= 0:
		f, present = h.coded[s.coded]
	default:
		f, present = h.inputs[s.input]
	}
	return f, present
}

func (h *filesAtHand) bytes(s processor) int64 {
	if s.coded >= 0 {
		return h.Manifest.SymbolsPerPacket * int64(h.Manifest.SymbolBytes)
	}
	return h.Manifest.Inputs[s.input].Bytes
}

func (h *filesAtHand) source(p int, packet *volley.Packet) {
	s := h.local[p-h.first]
	n := h.bytes(s.processor)
	packet.Source, packet.Size = s.packet, n
	if s.coded < 0 && h.Manifest.BitsPerSymbol != 0 {
		packet.Source, packet.Size = field.NewReaderAt(h.matrix.Field(), s.packet, n), field.PackingOf(h.matrix.Field()).Symbols(n)*int64(h.Manifest.SymbolBytes)
	}
}

func (h *filesAtHand) sink(p int, packet *volley.Packet) {
	s := h.local[p-h.first]
	entry := h.Manifest.Inputs[s.result]
	packet.Coded = cutWriter{s.file, entry.Bytes}
	if h.Manifest.BitsPerSymbol != 0 {
		packet.Coded = unpackingWriter{field.NewWriterAt(h.matrix.Field(), s.file, entry.Bytes), string(entry.Name)}
	}
}

func (h *filesAtHand) reader(s processor) io.ReaderAt {
	f, _ := h.fileOf(s)
	return f
}

func (h *filesAtHand) writer(p int) io.WriterAt { return h.scratch[p] }

// create makes the files of the results here. Packets for processors at other ranks go there, into files without names.
func (h *filesAtHand) create(dir *directory) error {
	err := h.atAllRanks(func() error {
		for i := range h.local {
			s := &h.local[i]
			f, err := dir.Create(h.names[s.result])
			if err != nil {
				return outputError(err)
			}
			s.file = f
			if f, present := h.fileOf(s.processor); present {
				s.packet = f
				continue
			}
			scratch, err := dir.Scratch()
			if err != nil {
				return outputError(err)
			}
			h.scratch[h.first+i], s.packet = scratch, scratch
		}
		return nil
	})
	if err != nil {
		return err
	}
	return h.move(newInventory(h.t.Size(), len(h.procs), 0), h.procs, h)
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
	for _, s := range h.local {
		entry := h.Manifest.Inputs[s.result]
		if size, sum := s.file.Sum(); size != entry.Bytes || sum != entry.SHA256 {
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
