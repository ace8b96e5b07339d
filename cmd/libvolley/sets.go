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
	force  bool   // sets of which nothing is left are given up

	unnamed []string // patterns of files that no node of the set names; nil: all are protected
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

// A saying is what a process says of its node when they meet.
type saying struct {
	sets.Member
	Files []string // nil: all
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
	mine := saying{Files: n.files, Member: sets.Member{Name: host + ":" + n.dir, Domain: cmp.Or(n.set.domain, host)}}
	if n.set.size != 0 {
		mine.Identity = group.Identify(n.dir)
	}
	sayings, err := collective.AllgatherValues(ctx, e, &mine, n.options.Timeout)
	if err != nil {
		return err
	}
	if n.set.size == 0 {
		n.set.noteUnnamed(sayings)
		return work(ctx, e, protection.SetIndex{})
	}
	var members []sets.Member
	for _, x := range sayings {
		members = append(members, x.Member)
	}
	list, err := sets.Choose(members, n.set.size, n.set.domain != "")
	if err != nil {
		return err
	}
	number, key := 0, 0
	for i, s := range list {
		if s.Lost && !n.set.force {
			return exit.Usagef("set %d of %d: none of its directories is named, or all are empty: name them; force in the options gives up what they had", i, len(list))
		}
		if index := slices.Index(s.Members, e.Rank()); index >= 0 {
			number, key = i, index
		}
	}
	var setSayings []*saying
	for _, r := range list[number].Members {
		setSayings = append(setSayings, sayings[r])
	}
	n.set.noteUnnamed(setSayings)
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

// noteUnnamed notes which files are excluded, as no node of the set names them.
func (o *setOptions) noteUnnamed(sayings []*saying) {
	var files []string
	named := false
	for _, x := range sayings {
		files, named = append(files, x.Files...), named || x.Files != nil
	}
	if named {
		o.unnamed = patternsOf(files)
	}
}
