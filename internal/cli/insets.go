package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"volley/group"
	"volley/internal/exit"
	"volley/internal/launch"
	"volley/internal/sets"
	"volley/transport"
	"volley/transport/local"
)

// inSets runs a verb on the nodes here: on each set of them side by side, or with the other ranks of this rank's set.
func (o *groupOptions) inSets(cmd *cobra.Command, dirs []string, verb func(t transport.Transport, dirs []string, of group.Part, w io.Writer) error) error {
	out := cmd.OutOrStdout()
	switch mine := o.sets.mine; {
	case o.sets.size == 0:
		part := group.Part{}
		if at := o.session.at; at != nil {
			part = at.Part
		}
		return verb(o.party.Transport, dirs, part, out)
	case mine != nil:
		o.party.apart(func() {
			if mine.err == nil {
				mine.err = verb(o.party.Transport, dirs, mine.part(), &mine.body)
			}
		})
		if mine.err != nil {
			mine.Error = message(mine.err)
		}
		if o.party.Rank() == 0 {
			mine.err = errors.Join(mine.err, mine.print(out, o.json))
		}
		if o.rank == 0 {
			return cmp.Or(mine.err, o.printSets(cmd.Context(), out, o.sets.lost))
		}
		return mine.err
	}
	if err := group.Apart(dirs); err != nil {
		return err
	}
	var members []sets.Member
	for _, dir := range dirs {
		m := sets.Member{Name: dir, Identity: group.Identify(dir)}
		if o.sets.apart() {
			var err error
			if m.Domain, err = o.sets.domainOf("", dir, ""); err != nil {
				return err
			}
		}
		members = append(members, m)
	}
	_, reports, err := o.sets.choose(members)
	if err != nil {
		return err
	}
	return o.runSets(cmd.Context(), out, reports, runtime.GOMAXPROCS(0), func(_ int, r *setReport) error {
		return verb(local.New(1)[0], r.Dirs, r.part(), &r.body)
	})
}

// runSets runs the sets that are there side by side, so many at a time, and prints their reports.
func (o *groupOptions) runSets(ctx context.Context, stdout io.Writer, reports []*setReport, limit int, run func(n int, r *setReport) error) error {
	var all errgroup.Group
	all.SetLimit(limit)
	for n, r := range reports {
		if r.err == nil {
			all.Go(func() error { r.err = run(n, r); return nil })
		}
	}
	all.Wait()
	return o.printSets(ctx, stdout, reports)
}

// printSets prints the reports of all sets, and says which have failed. It returns the exit code of the first of these.
func (o *groupOptions) printSets(ctx context.Context, stdout io.Writer, reports []*setReport) error {
	code := exit.OK
	for _, r := range reports {
		if r.err != nil && r.Error == "" {
			r.Error = message(r.err)
		}
		if err := r.print(stdout, o.json); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, r := range reports {
		if r.err == nil {
			continue
		}
		o.session.fails(launch.Saying{Text: fmt.Sprintf("set %d: %s", r.Set, r.Error)})
		if code == exit.OK {
			code = exit.Code(r.err)
		}
	}
	if code == exit.OK {
		return nil
	}
	return exit.With(exit.ErrSaid, code)
}
