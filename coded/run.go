package coded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"volley"
	"volley/coded/manifest"
	"volley/collective"
	"volley/executor"
	"volley/field"
	"volley/files"
	"volley/internal/disk"
	"volley/internal/printable"
	"volley/matrix"
	"volley/transport"
)

// Options are what [Encode] and [Decode] have in common.
type Options struct {
	// Dir gets the result, and is made if need be. Ranks share it or have their own. It may be empty in a dry run.
	Dir string

	// Replace replaces an earlier result in Dir, which is else an error that wraps ErrExists or ErrFileExists.
	Replace bool

	// DryRun only estimates what the run would do, and writes nothing.
	DryRun bool

	// Encoder returns the options for packets of so many symbols over f, the same at all ranks; nil: the defaults.
	Encoder func(f field.Field, symbols int64) ([]volley.Option, error)

	// Job says that there may be several ranks, so that files are named as for several also where there is one.
	Job bool

	// Timeout bounds the wait for a message; 0 is no bound.
	Timeout time.Duration

	// Progress, unless nil, is called, also at once, with how many more bytes of the result are written, and are to be.
	Progress func(finished, added int64)

	// Warn, unless nil, is called with what the caller may want to know, such as that a coded
	// file is damaged and left out. A text has one line, and names of files as they are.
	Warn func(text string)

	// Log gets what the run does, for who looks into it; nil: nothing is logged.
	Log *slog.Logger

	disk disk.Disk // nil: disk.OS
}

// A run is one of Encode or Decode at this rank.
type run struct {
	Options
	ctx  context.Context
	t    transport.Transport
	verb string
}

// newRun returns a run with the options, of which disk is set.
func newRun(ctx context.Context, t transport.Transport, o Options, verb string) run {
	o.disk = cmp.Or(o.disk, disk.OS)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return run{Options: o, ctx: ctx, t: t, verb: verb}
}

func (r *run) warn(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Sprintf(format, args...))
	}
}

// checkRanks returns an error where so many processors are not to be dealt out to the ranks.
func (r *run) checkRanks(processors int) error {
	if ranks := r.t.Size(); ranks > processors {
		return inputf("%s for %s: start no more of them", printable.Count(ranks, "process"), printable.Count(processors, "processor"))
	}
	return nil
}

// fail ends the run at all ranks.
func (r *run) fail(err error) error {
	if err != nil && !errors.As(err, new(*transport.AbortError)) {
		r.t.Abort(err)
	}
	return err
}

// atAllRanks does work here, such as syncing files, and returns when all ranks have done theirs, however long that takes.
func (r *run) atAllRanks(work func() error) error {
	return collective.Steady(r.ctx, r.t, r.Timeout, func(context.Context) error { return work() })
}

// newEncoder is [volley.NewEncoder] until the context ends. It says that other errors are the caller's to mend.
func (r *run) newEncoder(a matrix.Matrix, options ...volley.Option) (*volley.Encoder, error) {
	e, err := volley.NewEncoder(r.ctx, a, options...)
	return e, r.input(err)
}

// input returns the cause of the context where that has ended, and else marks err as [input] does.
func (r *run) input(err error) error {
	if err != nil && r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return input(err)
}

// failAll returns an error that all ranks find in what they know of each other.
func (r *run) failAll(err error) error { return collective.New(r.t, r.Timeout).SharedError(r.ctx, err) }

// exchange tells all ranks what each of them says.
func exchange[T any](r *run, mine T) ([]T, error) {
	return collective.AllgatherValues(r.ctx, r.t, mine, r.Timeout)
}

// exchangeWork does work here, and tells all ranks what each has found once all have done theirs, however long that takes.
func exchangeWork[T any](r *run, work func() (T, error)) ([]T, error) {
	return collective.SteadyValues(r.ctx, r.t, r.Timeout, func(context.Context) (T, error) { return work() })
}

func (r *run) options(f field.Field, symbols int64) (list []volley.Option, err error) {
	if r.Encoder != nil {
		if list, err = r.Encoder(f, symbols); err != nil {
			return nil, err
		}
	}
	return append(list, volley.WithTimeout(r.Timeout)), nil
}

// outputError says that the output directory cannot be written, unless that shows already.
func outputError(err error) error {
	switch {
	case errors.Is(err, ErrExists), errors.Is(err, ErrFileExists):
		return input(err)
	case err == nil, errors.As(err, new(*InputError)),
		errors.As(err, new(*transport.AbortError)), errors.As(err, new(*files.BusyError)):
		return err
	}
	return inputf("output directory: %w", err)
}

// packets are what a run takes and makes at this rank.
type packets interface {
	source(k int, p *volley.Packet) // sets packet k as symbols
	sink(s int, p *volley.Packet)   // sets where coded packet s goes
}

// encode runs the encoder on packets of at most that many symbols. It returns the report of all ranks.
func (r *run) encode(e *volley.Encoder, p packets, symbols int64) (*volley.Report, error) {
	problem := e.Problem()
	a := problem.Matrix
	r.Log.DebugContext(r.ctx, r.verb[:len(r.verb)-1]+"ing", "processors", problem.Processors(), "field", a.Field().Name(), "matrix", a.ID())
	first, end := executor.Hosted(problem.Processors(), r.t.Rank(), r.t.Size())
	var mine []volley.Packet
	for k := first; k < end; k++ {
		var packet volley.Packet
		if row, ok := problem.Source(k); ok {
			p.source(row, &packet)
		}
		if s, ok := problem.Sink(k); ok {
			p.sink(s, &packet)
			if r.Progress != nil && packet.Coded != nil {
				r.Progress(0, symbols*int64(a.Field().SymbolBytes()))
				packet.Coded = &counted{packet.Coded, func(n int) { r.Progress(int64(n), 0) }}
			}
		}
		mine = append(mine, packet)
	}
	report, err := e.Run(r.ctx, r.t, mine...)
	if err != nil {
		return nil, err
	}
	reports, err := exchange(r, report)
	if err != nil {
		return nil, err
	}
	for rank, x := range reports {
		if x == nil || len(x.Rounds) != len(report.Rounds) {
			return nil, fmt.Errorf("rank %d has no report of this run", rank)
		}
	}
	return volley.Merge(reports), nil
}

// commit gives the result its names. Files may be read by whom all ranks allow it: each tells of what any of them has
// read.
func (r *run) commit(d *directory, m *manifest.Manifest, perm fs.FileMode) error {
	perms, err := exchangeWork(r, func() (fs.FileMode, error) { return perm, context.Cause(r.ctx) })
	if err != nil {
		return err
	}
	for _, p := range perms {
		perm &= p
	}
	return d.Commit(m, perm)
}

// counted is a writer that tells how much was written.
type counted struct {
	io.WriterAt
	tell func(n int)
}

func (w *counted) WriteAt(p []byte, offset int64) (int, error) {
	n, err := w.WriterAt.WriteAt(p, offset)
	w.tell(n)
	return n, err
}
