//go:build mpi

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"volley"
	"volley/collective"
	"volley/group"
	"volley/group/protection"
	"volley/internal/exit"
	"volley/internal/sets"
	"volley/transport/mpi"
)

// setOptions say into which sets the processes are cut, each a group of its own.
type setOptions struct {
	size   int    // members at most; 0: all are one group
	domain string // what fails together with this process; "": its host
}

func (o *setOptions) check() error {
	switch {
	case o.size < 0:
		return exit.Usagef("set_size: %d: want 2 or more; 0: all processes are one group", o.size)
	case o.size == 0 && o.domain != "":
		return exit.Usagef("domain: %q: it is for sets: set_size says how large they are", o.domain)
	}
	return nil
}

// An outcome is what a set has come to.
type outcome struct {
	Text string
	Code int
}

// inSet has this process work in its set, with the others of it: all processes, without sets. The error of any set is
// that of all.
func (n *node) inSet(ctx context.Context, e *mpi.Endpoint, work func(context.Context, *mpi.Endpoint, protection.SetIndex) error) error {
	if err := volley.Greet(ctx, e, n.verb, n.options.Timeout, collective.TermOf("set_size", n.set.size), collective.TermOf("domain given", n.set.domain != "")); err != nil {
		return err
	}
	host, _ := os.Hostname()
	mine := sets.Member{Name: host + ":" + n.dir, Domain: cmp.Or(n.set.domain, host)}
	if n.set.size != 0 {
		mine.Identity = group.Identify(n.dir)
	}
	members, err := collective.AllgatherValues(ctx, e, mine, n.options.Timeout)
	if err != nil {
		return err
	}
	if n.set.size == 0 {
		return work(ctx, e, protection.SetIndex{})
	}
	list, err := sets.Choose(members, n.set.size, n.set.domain != "")
	if err != nil {
		return err
	}
	number, key := 0, 0
	for i, s := range list {
		if s.Lost {
			return exit.Usagef("set %d of %d: none of its directories is named, or all are empty: name them; volley protect --force gives up what they had", i, len(list))
		}
		if index := slices.Index(s.Members, e.Rank()); index >= 0 {
			number, key = i, index
		}
	}
	t, err := e.Split(number, key)
	if err != nil {
		return err
	}
	n.opened = append(n.opened, t)
	var failure error
	outcomes, err := collective.SteadyValues(ctx, e, n.options.Timeout, func(ctx context.Context) (outcome, error) {
		err := work(ctx, t, protection.SetIndex{Set: number, Sets: len(list)})
		if failure = cmp.Or(err, n.verdict); failure == nil {
			return outcome{}, nil
		}
		failure = fmt.Errorf("set %d of %d: %w", number, len(list), failure)
		switch {
		case err != nil && ctx.Err() != nil:
			return outcome{}, failure
		case err != nil:
			t.Abort(numbered(failure))
		}
		return outcome{tell(failure), exit.Code(failure)}, nil
	})
	if err != nil {
		return err
	}
	n.verdict = failure
	for _, x := range outcomes {
		if x.Code != 0 {
			n.verdict = cmp.Or(n.verdict, exit.WithCode(errors.New(x.Text), x.Code))
		}
	}
	return nil
}
