package groups

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"volley/group"
	"volley/internal/cli/session"
	"volley/internal/exit"
	"volley/internal/grouptext"
	"volley/internal/launch"
	"volley/internal/printable"
	"volley/internal/sets"
	"volley/transport"
	"volley/transport/local"
)

// setOptions is the flags that cut nodes into sets.
type setOptions struct {
	size    int               // 0: the nodes are one group
	domain  string            // env:NAME, or ""
	domains map[string]string // by directory, of the group file; nil: it has none
	mine    *setReport        // the set of this rank
	lost    []*setReport      // sets of no rank, which rank 0 reports
	forget  bool              // sets of which no directory is named
	err     error             // all ranks find it
}

func (o *setOptions) add(f *pflag.FlagSet) {
	f.IntVar(&o.size, "group-size", 0, "cut the nodes into sets of at most `N`, each a group of its own; they run side by side")
	f.StringVar(&o.domain, "domain", "", "what fails together, of which a set gets one node: `env:NAME`, a variable of each rank (default: that of the group file, or else a host, where that is possible)")
}

// check refuses flags that do not go with sets.
func (o *setOptions) check(cmd *cobra.Command) error {
	f := cmd.Flags()
	if o.size != 0 && ofRoots(cmd) {
		return exit.Usagef("--group-size: snapshots are of one group: leave it out, and name the roots of one set")
	}
	if o.domain != "" && o.variable() == o.domain {
		return exit.Usagef("--domain %s: want env:NAME, or a group file with the domain of each member: volley group init --help", o.domain)
	}
	if o.size == 0 && o.domain != "" {
		return exit.Usagef("--domain %s: it is for sets: --group-size N says how large they are", o.domain)
	}
	for _, name := range []string{"believe", "to", "meta"} {
		if flag := f.Lookup(name); o.size != 0 && flag != nil && flag.Changed {
			return exit.Usagef("--%s is for one group: leave --group-size out, and name the directories of one set", name)
		}
	}
	return nil
}

// variable returns that which has the domain of each rank, or "".
func (o *setOptions) variable() string { return strings.TrimPrefix(o.domain, "env:") }

// apart reports whether somebody has said what fails together.
func (o *setOptions) apart() bool { return o.domain != "" || o.domains != nil }

// domainOf returns the domain of a directory at a host: value is that of the variable.
func (o *setOptions) domainOf(value, dir, host string) (string, error) {
	switch {
	case o.domain != "" && value == "":
		return "", exit.Usagef("--domain %s: the variable is not set at %s", o.domain, dir)
	case o.domain != "":
		return value, nil
	case o.domains != nil:
		return o.domains[dir], nil
	}
	return host, nil
}

// choose returns the sets of members, and what to report of each: of a lost one an error.
func (o *setOptions) choose(members []sets.Member) ([]sets.Set, []*setReport, error) {
	list, err := sets.Choose(members, o.size, o.apart())
	if o.forget {
		list = slices.DeleteFunc(list, func(s sets.Set) bool { return s.Members == nil })
	}
	var reports []*setReport
	for n, s := range list {
		r := &setReport{Set: n, Sets: len(list), Dirs: []string{}, Notes: s.Notes}
		if s.Lost && !o.forget {
			r.err = exit.Wrongf("none of its directories is named, or all are empty: name them; protect --force gives up what they had")
		}
		for _, i := range s.Members {
			r.Dirs = append(r.Dirs, members[i].Name)
			if o.apart() {
				r.Domains = append(r.Domains, members[i].Domain)
			}
		}
		reports = append(reports, r)
	}
	return list, reports, err
}

// A setReport says what a verb has done with a set.
type setReport struct {
	Set     int             `json:"set"`
	Sets    int             `json:"sets"`
	Dirs    []string        `json:"dirs"` // by node
	Domains []string        `json:"domains,omitempty"`
	Notes   []string        `json:"notes,omitempty"`
	Report  json.RawMessage `json:"report,omitempty"` // the verb's
	Error   string          `json:"error,omitempty"`

	body bytes.Buffer // what the verb prints
	err  error
}

func (r *setReport) part() group.Part { return group.Part{Set: r.Set, Sets: r.Sets} }

// print prints the report in one go.
func (r *setReport) print(w io.Writer, asJSON bool) error {
	var b bytes.Buffer
	if asJSON {
		r.Report = r.body.Bytes()
		if err := session.WriteJSON(&b, r); err != nil {
			return err
		}
	} else {
		var list []string
		for i, dir := range r.Dirs {
			if r.Domains != nil {
				dir += " (" + r.Domains[i] + ")"
			}
			list = append(list, dir)
		}
		printable.Fprintf(&b, "set %d of %d: %s\n", r.Set, r.Sets, cmp.Or(strings.Join(list, ", "), "no directory"))
		grouptext.Notes(&b, r.Notes)
		b.Write(r.body.Bytes())
	}
	_, err := w.Write(b.Bytes())
	return err
}

// inSets runs a verb on the nodes here: on each set of them side by side, or with the other ranks of this rank's set.
func (o *groupOptions) inSets(cmd *cobra.Command, dirs []string, verb func(t transport.Transport, dirs []string, of group.Part, w io.Writer) error) error {
	out := cmd.OutOrStdout()
	switch mine := o.sets.mine; {
	case o.sets.size == 0:
		part := group.Part{}
		if at := o.Session.At; at != nil {
			part = at.Part
		}
		return verb(o.Party.Transport, dirs, part, out)
	case mine != nil:
		o.Party.Apart(func() {
			if mine.err == nil {
				mine.err = verb(o.Party.Transport, dirs, mine.part(), &mine.body)
			}
		})
		if mine.err != nil {
			mine.Error = session.Message(mine.err)
		}
		if o.Party.Rank() == 0 {
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
			r.Error = session.Message(r.err)
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
		o.Session.Fails(launch.Saying{Text: fmt.Sprintf("set %d: %s", r.Set, r.Error)})
		if code == exit.OK {
			code = exit.Code(r.err)
		}
	}
	if code == exit.OK {
		return nil
	}
	return exit.With(exit.ErrSaid, code)
}
