package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"volley/group/internal/session"
	"volley/group/internal/store"
	"volley/group/protection"
)

// choose decides which snapshot a verb takes, of all of them, the newest first. It passes over those that for certain do
// not come back, and no others: what cannot be told of a newer one selects no older one. Verbs that only look pass over
// those, too, that are not protected yet, or are just being protected.
func choose(list []Snapshot, looks bool) (int, error) {
	var reasons []string
	for i, x := range list {
		switch x.State {
		case InForce, Recoverable:
			return i, nil
		case Unprotected:
			if !looks {
				return i, nil
			}
			reasons = append(reasons, session.StepName(x.Step)+": it is not protected")
			continue
		case Busy:
			if !looks {
				return 0, x.Err
			}
		case Unclear:
			return 0, &NotLostError{x.Step, x.Err}
		}
		reasons = append(reasons, session.StepName(x.Step)+": "+x.Reason)
	}
	if list == nil {
		reasons = []string{"no root has a directory step-N (N a number without leading zeros)"}
	}
	err := store.Inputf("no snapshot can be recovered: %s", strings.Join(reasons, "; "))
	if slices.ContainsFunc(list, func(x Snapshot) bool { return x.Nodes > 0 || x.State == Busy }) {
		return 0, err
	}
	return 0, &protection.NoneError{Err: err} // nobody has a manifest
}

// A NotLostError says that no older snapshot is taken in the place of one that may come back.
type NotLostError struct {
	Step int64
	Err  error // why it does not come back now
}

// Unwrap returns why it does not come back now.
func (e *NotLostError) Unwrap() error { return e.Err }

func (e *NotLostError) Error() string {
	return fmt.Sprintf("%s: %v. It may not be lost, so no older snapshot takes its place: mend that, and run again", session.StepName(e.Step), e.Err)
}

// pickSnapshot settles which snapshot the directories of this run are. Where it was to be found, it returns the others.
func pickSnapshot(ctx context.Context, s *session.Session) (found *surroundings, err error) {
	step := s.Step
	switch {
	case step < session.Latest:
		err = s.SharedError(ctx, store.Inputf("there is no step %d: a step is 0 or more", step))
	case s.Verb.Needs:
		step, err = commonStep(ctx, s)
	case step == session.Latest:
		var i int
		if found, err = lookAround(ctx, s); err != nil {
			break
		}
		if i, err = choose(found.List, s.Passed == nil); err != nil {
			absent := new(protection.NoneError)
			if j := slices.IndexFunc(found.Roots, func(x rootState) bool { return x.Failing != "" }); j >= 0 && errors.As(err, &absent) {
				err = fmt.Errorf("%w; %s cannot be read: %s", absent.Err, found.Roots[j].Dir, found.Roots[j].Failing)
			}
			err = s.SharedError(ctx, err)
			break
		}
		step = found.List[i].Step
	}
	if err != nil {
		return found, err
	}
	for i, n := range s.Nodes {
		s.Nodes[i] = n.Sub(session.StepName(step))
		if found != nil && found.opened[i][step] != nil {
			s.Nodes[i] = found.opened[i][step]
		}
	}
	s.Taken = &step
	return found, nil
}

// commonStep returns the step asked for, or the newest, that every root has a directory of.
func commonStep(ctx context.Context, s *session.Session) (int64, error) {
	roots, err := session.Collect(ctx, s, func(_ context.Context, _ int, n *store.Node) (rootState, error) { return lookAtRoot(s, n) })
	if err != nil {
		return 0, err
	}
	var list []string
	count := map[int64]int{}
	newest := session.Latest
	for _, x := range roots {
		var names []string
		for _, step := range x.steps() {
			names = append(names, session.StepName(step))
			if count[step]++; count[step] == s.K && (s.Step == session.Latest || s.Step == step) {
				newest = max(newest, step)
			}
		}
		list = append(list, fmt.Sprintf("%s has %s", x.Dir, cmp.Or(strings.Join(names, ", "), x.Failing, "none")))
	}
	if newest >= 0 {
		return newest, nil
	}
	subject := "no step-N (N a number without leading zeros) is"
	if s.Step != session.Latest {
		subject = session.StepName(s.Step) + " is not"
	}
	return 0, s.SharedError(ctx, store.Inputf("%s at every node: %s. A node that has lost its snapshots gets the latest back by recover", subject, strings.Join(list, "; ")))
}

// renameNewer renames snapshots newer than the recovered one, so that no mixture of old and new files is protected. The
// decision for that one has passed over all of them: they are lost.
func (f *surroundings) renameNewer(ctx context.Context, s *session.Session, writes bool, notes *[]string) error {
	var newer []int64
	for _, x := range f.List {
		if x.Step > *s.Taken {
			newer = append(newer, x.Step)
			*notes = append(*notes, fmt.Sprintf("%s is passed over: %s", session.StepName(x.Step), x.Reason))
		}
	}
	if !writes {
		return nil
	}
	_, err := f.renameSnapshots(ctx, s, newer, session.Latest, notes)
	return err
}
